// A database on several servers: connections go to the one that takes writes, and to another when that one is lost.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import net, { type AddressInfo, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, it } from 'node:test'
import type pg from 'pg'
import { systemClock } from '../src/platform/clock.ts'
import { connect, type Database } from '../src/platform/database/connect.ts'
import { isLost } from '../src/platform/database/errors.ts'
import { serversOf } from '../src/platform/database/servers.ts'
import { readConfig } from '../src/start/config.ts'
import { makeDatabase, type TestDatabase, withPool } from './support/database.ts'
import { eventually } from './support/gateway.ts'
import { type Wire, wireTo } from './support/wire.ts'

let database: TestDatabase
let wires: readonly [Wire, Wire]
let standby: Server
let url: string
let db: Database

/** A way to the database on which every session takes no writes, as on a server that follows another. */
function readOnly({ host, port }: pg.PoolConfig): Server {
  return net.createServer(near => {
    const far = net.connect(`${host}/.s.PGSQL.${port}`)
    near.on('data', text => far.write(Buffer.from(text.toString('latin1').replace('read_only=off', 'read_only=on '), 'latin1')))
    far.pipe(near)
    for (const [one, other] of [[near, far] as const, [far, near] as const])
      one.on('error', () => other.destroy()).on('close', () => other.destroy())
  })
}

before(async () => {
  database = await makeDatabase()
  wires = [await wireTo(database.connection), await wireTo(database.connection)]
  standby = readOnly(database.connection).listen(0, '127.0.0.1')
  await once(standby, 'listening')
  const ports = [1, (standby.address() as AddressInfo).port, ...wires.map(({ connection: { port } }) => port)]
  const { user, database: name } = database.connection
  const others = `sslmode=disable&options=${encodeURIComponent('-c default_transaction_read_only=off')}`
  url = `postgresql://${user}@${ports.map(port => `127.0.0.1:${port}`)}/${name}?target_session_attrs=read-write&${others}`
  // What listens asks every 15 s whether it is still connected.
  const impatient = { ...systemClock, after: (ms: number, act: () => void) => systemClock.after(ms / 50, act) }
  db = connect({ connectionString: url }, impatient, () => {})
})
after(async () => {
  await db.close()
  for (const wire of wires) await wire.close()
  standby.close()
  await database.drop()
})

it('a URL names them as libpq does', () => {
  assert.deepEqual(serversOf('postgresql://u:p@a:1,b/x?sslmode=require&target_session_attrs=read-write'), [
    'postgresql://u:p@a:1/x?sslmode=require',
    'postgresql://u:p@b/x?sslmode=require',
  ])
  assert.deepEqual(serversOf('postgres://[::1]:1,[::2]/x?target_session_attrs=primary&a=b'), [
    'postgres://[::1]:1/x?a=b',
    'postgres://[::2]/x?a=b',
  ])
  assert.deepEqual(serversOf('postgres:///x?host=/run'), ['postgres:///x?host=/run'])
})

it('a wish for one that takes no writes is refused', () => {
  for (const wish of ['standby', 'any', 'prefer-standby'])
    assert.throws(() => readConfig({ DATABASE_URL: `postgres://a,b/x?target_session_attrs=${wish}` }, '/nonexistent'), {
      message: `DATABASE_URL asks for target_session_attrs=${wish}: the gateway writes, so it must be read-write.`,
    })
  assert.equal(readConfig({ DATABASE_URL: 'postgres://a,b/x' }, '/nonexistent').databaseUrl, 'postgres://a,b/x')
})

it('sessions are named by the gateway alone', () => {
  for (const [query, sentence] of [
    ['application_name=x', 'DATABASE_URL must not set application_name: the gateway names its sessions.'],
    ['sslmode=require&application%5Fname=gateway-one', 'DATABASE_URL has the name of a parameter encoded: application_name.'],
  ] as const)
    assert.throws(() => readConfig({ DATABASE_URL: `postgres://a,b/x?${query}` }, '/nonexistent'), { message: sentence })
})

it('one that is down or takes no writes is passed over, and so is one that is silent', async () => {
  await withPool(database.connection, pool => pool.query('create table notes (text text)'))
  wires[0].silence()
  const others = Array.from({ length: 5 }, () => db.work.connect()) // each a connection of its own, made while one server says nothing
  for (const connection of await Promise.all(others)) {
    await connection.query(`insert into notes values ('written')`)
    connection.release(true)
  }
  wires[0].resume()
  assert.ok(wires[1].made() >= 5)
})

it('a server that is lost is left for another, by what listens too', async () => {
  let heard = 0
  const listener = await db.listen('notes', () => heard++)
  wires[0].cut()
  await wires[0].close()
  await eventually(
    () => db.paymentLane.query(`insert into notes values ('after')`).catch(() => false),
    'the next statement finds the other one',
  )
  wires[1].cut()
  const tell = () => db.answerLane.query('notify notes').catch(() => false)
  await eventually(async () => (await tell()) && heard > 0, 'notices are heard again')
  await listener.stop()
})

it('none that takes writes is a database that is away, and it is used again when there is one', async () => {
  const name = database.connection.database!
  await withPool(database.connection, pool => pool.query(`alter database ${name} set default_transaction_read_only = on`))
  const away = connect({ connectionString: url.replace(/&options.*/, '') }, systemClock, () => {})
  const failed = await away.work.query('select 1').catch((error: Error) => error)
  assert.match(
    String(failed),
    /no server takes writes \(127\.0\.0\.1:1: connect ECONNREFUSED .*; 127\.0\.0\.1:\d+: it takes no writes/,
  )
  assert.ok(isLost(failed))
  await withPool(database.connection, pool =>
    pool.query(`set transaction_read_only = off; alter database ${name} reset default_transaction_read_only`),
  )
  assert.equal((await away.work.query('select 1 as one')).rows[0].one, 1)
  await away.close()
})

it('a line on which no TLS can be read any more is lost', async () => {
  const garbled = net.createServer(socket => {
    socket.on('error', () => {})
    socket.once('data', () => {
      socket.once('data', () => socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n'))
      socket.write('S')
    })
  })
  await once(garbled.listen(0, '127.0.0.1'), 'listening')
  const { port } = garbled.address() as AddressInfo
  const line = connect({ connectionString: `postgres://u@127.0.0.1:${port}/x?sslmode=no-verify` }, systemClock, () => {})
  const failed = await line.work.query('select 1').catch((error: Error) => error)
  assert.match(String((failed as NodeJS.ErrnoException).code), /^(EPROTO|ERR_SSL_)/)
  assert.ok(isLost(failed), String(failed))
  await line.close()
  garbled.close()
})

it('a session whose server became a follower is given up', async () => {
  const connection = await db.chains.connect()
  await connection.query('set session characteristics as transaction read only')
  const failed = await connection.query(`insert into notes values ('never')`).catch((error: Error) => error)
  assert.ok(isLost(failed), String(failed))
  connection.release(true)
})

it('each server is told the password that the file of passwords has for it, and no other', async () => {
  const heard: string[] = []
  const asking = net.createServer(socket => answerAsDatabase(socket, password => heard.push(password)))
  await once(asking.listen(0, '127.0.0.1'), 'listening')
  const { port } = asking.address() as AddressInfo
  const folder = mkdtempSync(join(tmpdir(), 'passwords-'))
  const file = join(folder, 'pgpass')
  writeFileSync(file, `127.0.0.1:1:*:*:of-the-first\n127.0.0.1:${port}:*:*:of-the-second\n`, { mode: 0o600 })
  process.env.PGPASSFILE = file
  const line = connect(
    { connectionString: `postgres://u@127.0.0.1:1,127.0.0.1:${port}/x?sslmode=disable` },
    systemClock,
    () => {},
  )
  await line.work.query('show transaction_read_only')
  assert.deepEqual([...new Set(heard)], ['of-the-second'])
  delete process.env.PGPASSFILE
  await line.close()
  asking.close()
  rmSync(folder, { recursive: true })
})

/** A server that wants a password in clear, and takes writes: each statement is answered with one row that says so. */
function answerAsDatabase(socket: Socket, hear: (password: string) => void): void {
  const message = (kind: string, body: Buffer) => {
    const head = Buffer.from(`${kind}\0\0\0\0`)
    head.writeInt32BE(body.length + 4, 1)
    return Buffer.concat([head, body])
  }
  const authentication = (code: number) => message('R', Buffer.from([0, 0, 0, code]))
  const ready = message('Z', Buffer.from('I'))
  const column = Buffer.concat([Buffer.from([0, 1]), Buffer.from('transaction_read_only\0'), Buffer.alloc(18)])
  const row = message('D', Buffer.concat([Buffer.from([0, 1, 0, 0, 0, 3]), Buffer.from('off')]))
  const answer = Buffer.concat([message('T', column), row, message('C', Buffer.from('SHOW\0')), ready])
  socket.on('error', () => {})
  socket.once('data', () => socket.write(authentication(3)))
  socket.on('data', bytes => {
    if (bytes[0] === 0x70) {
      hear(bytes.subarray(5, -1).toString())
      socket.write(Buffer.concat([authentication(0), ready]))
    } else if (bytes[0] === 0x51) socket.write(answer)
  })
}
