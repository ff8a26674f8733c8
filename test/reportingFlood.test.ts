// A reporting server that is not what it should be: whatever it sends, without an end or at once, it is away a moment later, and has cost next to nothing.

import assert from 'node:assert/strict'
import net, { type AddressInfo, type Socket } from 'node:net'
import { after, test } from 'node:test'
import { systemClock } from '../src/platform/clock.ts'
import type { Connection } from '../src/platform/database/connect.ts'
import { lookAt } from '../src/platform/database/following.ts'
import { followingDatabase, ReportingAway } from '../src/platform/database/reporting.ts'
import { eventually } from './support/gateway.ts'

// The words of PostgreSQL's protocol that a server needs to be taken for one.
const int = (value: number) => {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
}
const short = (value: number) => int(value).subarray(2)
const message = (type: string, ...body: readonly Buffer[]) =>
  Buffer.concat([Buffer.from(type), int(Buffer.concat(body).length + 4), ...body])
const ready = message('Z', Buffer.from('I'))
const completed = message('C', Buffer.from('SET\0'))
const many = (one: Buffer) => Buffer.concat(Array.from({ length: Math.ceil(65536 / one.length) }, () => one))
const columns = (count: number) =>
  message(
    'T',
    short(count),
    ...Array.from({ length: count }, () =>
      Buffer.concat([Buffer.from('name\0'), int(0), short(0), int(25), short(65535), int(-1), short(0)]),
    ),
  )
const row = (...values: readonly Buffer[]) =>
  message('D', short(values.length), ...values.flatMap(value => [int(value.length), value]))
const notice = message('N', Buffer.from('SNOTICE\0C00000\0Mx\0\0'))

/** What it says before the flood, and the flood; `silent`: it comes as soon as the session stands. */
type Flood = { readonly before: Buffer; readonly flood: Buffer; readonly silent?: boolean }
const floods: Readonly<Record<string, Flood>> = {
  'rows without an end': { before: columns(1), flood: many(row(Buffer.alloc(1000, 120))) },
  'rows of nothing': { before: columns(0), flood: many(row()) },
  'wide rows': { before: columns(1600), flood: many(message('D', short(1600), Buffer.alloc(6400, 255))) },
  'one huge row': { before: Buffer.concat([columns(1), Buffer.from('D'), int(1_900_000_000)]), flood: Buffer.alloc(65536) },
  'an error of a gigabyte': { before: Buffer.concat([Buffer.from('E'), int(1_000_000_000)]), flood: Buffer.alloc(65536, 77) },
  notices: { before: Buffer.alloc(0), flood: many(notice), silent: true },
  'settings that nobody asked for': { before: Buffer.alloc(0), flood: many(message('S', Buffer.from('a\0b\0'))), silent: true },
}

const servers: net.Server[] = []
const sockets = new Set<Socket>()
after(() => {
  for (const socket of sockets) socket.destroy()
  for (const server of servers) server.close()
})

/** `beforeStart`: it answers the first words with the flood already. */
async function hostile({ before, flood, silent }: Flood, beforeStart = false) {
  const sent = { connections: 0, open: 0, bytes: 0 }
  const pour = (socket: Socket, first: Buffer) => {
    const more = () => {
      while (!socket.destroyed && socket.write(flood)) sent.bytes += flood.length
      sent.bytes += flood.length
    }
    socket.write(first)
    socket.on('drain', more)
    more()
  }
  const server = net.createServer(socket => {
    sent.connections += 1
    sent.open += 1
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => {
      sent.open -= 1
    })
    let stands = false
    socket.on('data', data => {
      if (!stands) {
        stands = true
        if (beforeStart) return pour(socket, before)
        socket.write(Buffer.concat([message('R', int(0)), message('K', int(1), int(2)), ready]))
      } else if (data.includes('session characteristics')) {
        const answers = data.toString('latin1').split(';').length
        socket.write(Buffer.concat([...Array.from({ length: answers }, () => completed), ready]))
        if (silent) pour(socket, before)
      } else if (!silent) pour(socket, before)
    })
  })
  servers.push(server)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const url = `postgresql://reader:x@127.0.0.1:${(server.address() as AddressInfo).port}/x`
  return { sent, database: followingDatabase({ connectionString: url }) }
}

const nothing = { query: async () => ({ rows: [] }) } as unknown as Connection
/** Of a socket's buffers some megabytes are sent that nobody reads. */
const little = 24 * 1024 * 1024

for (const [name, flood] of Object.entries(floods))
  for (const beforeStart of [false, true])
    test(`${name}${beforeStart ? ', before it is a connection at all' : ''}`, async () => {
      const { sent, database } = await hostile(flood, beforeStart)
      const standing = await lookAt(nothing, database.follows, systemClock)
      assert.equal(standing.state, 'away')
      await eventually(() => Promise.resolve(sent.connections > 0 && sent.open === 0), 'the connection is ended')
      assert.ok(sent.bytes < little, `${sent.bytes} bytes`)
      await database.follows.close()
    })

test('whoever reads is told that it is away, and it is asked no more until somebody has looked', async () => {
  const { sent, database } = await hostile(floods['rows without an end']!)
  database.follows.set({ state: 'ready', sources: [] })
  const read = () => assert.rejects(database.query('select 1'), ReportingAway)
  await read()
  assert.equal(database.follows.standing().state, 'away')
  const { connections } = sent
  await read()
  assert.equal(sent.connections, connections)
  await eventually(() => Promise.resolve(sent.open === 0), 'the connection is ended')
  assert.ok(sent.bytes < 3 * little, `${sent.bytes} bytes`)
  await database.follows.close()
})

test('notices in the place of an answer end it long before rows would', async () => {
  const { sent, database } = await hostile({ before: Buffer.alloc(0), flood: many(notice) })
  database.follows.set({ state: 'ready', sources: [] })
  await assert.rejects(database.query('select 1'), ReportingAway)
  await eventually(() => Promise.resolve(sent.open === 0), 'the connection is ended')
  assert.ok(sent.bytes < little, `${sent.bytes} bytes`)
  await database.follows.close()
})
