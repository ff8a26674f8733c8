// A standby of the gateway's database, on a server of its own, as its reporting database: what is read there, and what happens while it lags or is gone.

import assert from 'node:assert/strict'
import { after, before, it } from 'node:test'
import type pg from 'pg'
import { openCells } from '../src/cli/eachCell.ts'
import { clockWith } from '../src/platform/clock.ts'
import { connect, inTransaction, makePool } from '../src/platform/database/connect.ts'
import { lookAt } from '../src/platform/database/following.ts'
import { keepMode } from '../src/platform/database/installation.ts'
import { followingDatabase } from '../src/platform/database/reporting.ts'
import { survey } from '../src/start/cellMap.ts'
import { keepKeys } from '../src/vault/keys.ts'
import { readProofs } from '../src/vault/store.ts'
import { eventually, sandbox, type TestGateway, testGateway, testKeys } from './support/gateway.ts'
import { sandboxDeveloper } from './support/office.ts'
import { type PostgresServer, type PostgresServers, postgresServers } from './support/postgres.ts'

let servers: PostgresServers
let standby: PostgresServer
let gateway: TestGateway
/** As superuser on the standby. */
let there: pg.Pool

before(async () => {
  servers = postgresServers()
  const primary = await servers.server()
  const database = await primary.make('tollgate')
  await primary.stop()
  standby = await servers.server([], primary)
  await primary.start()
  there = standby.pool
  gateway = await testGateway({
    database,
    environment: { REPORTING_DATABASE_URL: standby.urlOf('tollgate'), METRICS_PORT: String(9100 + (process.pid % 800)) },
  })
})
after(async () => {
  await gateway?.stop()
  await servers?.stop()
})

const list = () =>
  gateway.get('/v3/query', { entityId: sandbox.entityId, 'date.from': '2020-01-01 00:00:00', 'date.to': '2099-01-01 00:00:00' })
const has = async (id: string) => {
  const { status, body } = await list()
  return status === 200 && body.records.some((one: { id: string }) => one.id === id)
}
const stands = (state: string) =>
  eventually(async () => {
    const { status, body } = await gateway.get('/health/ready')
    assert.equal(status, 200)
    return body.reporting === state
  }, `the reporting database is ${state}`)
const metric = async (name: string): Promise<number | undefined> => {
  const text = await (await fetch(`http://127.0.0.1:${9100 + (process.pid % 800)}/metrics`)).text()
  const [, value] = new RegExp(`^${name}(?:\\{.*\\})? (\\S+)$`, 'm').exec(text) ?? []
  return value === undefined ? undefined : Number(value)
}

it('is no database of a cell', async () => {
  await keepMode(gateway.pool, 'sandbox', Date.now())
  await inTransaction(gateway.pool, db => keepKeys(db, testKeys, Date.now()))
  const pool = makePool({ connectionString: standby.urlOf('tollgate') }, 1, () => {})
  await eventually(async () => (await readProofs(pool)).length > 0, 'the standby has it')
  await pool.end()
  const keys = { SEAL_KEY: Buffer.alloc(32, 1).toString('hex'), LOOKUP_KEY: Buffer.alloc(32, 2).toString('hex') }
  const environment = { DATABASE_URL: standby.urlOf('tollgate'), ...keys }
  const cells = [{ name: 'one', environment, gateways: [] }]
  const why = 'its database takes no writes: it is a standby, or was set to be read only'
  assert.deepEqual(await openCells({ map: '', cells }), { opened: [], silent: [{ cell: 'one', why }] })
  assert.deepEqual([...(await survey({ map: '', cells }))], [['one', why]])
})

it('is read for lists, where nothing can be written', async () => {
  await stands('ready')
  const { body } = await gateway.pay()
  await eventually(() => has(body.id), 'the payment is in a list')
  const clients = await there.query(
    `select application_name as name from pg_stat_activity where application_name like 'tollgate%'`,
  )
  assert.deepEqual([...new Set(clients.rows.map(({ name }) => name))].sort(), ['tollgate reporting', 'tollgate reporting watch'])
  assert.equal(await metric('tollgate_reporting_up'), 1)
  assert.ok((await metric('tollgate_reporting_lag_seconds'))! <= 4)
})

it('lags and says so, in answers, figures and the office; payments and a reading of one do not', async () => {
  const office = await sandboxDeveloper(gateway)
  assert.doesNotMatch((await office.ask('/office/payments')).text, /seconds old/)
  await there.query('select pg_wal_replay_pause()')
  const { status, body } = await gateway.pay()
  assert.equal(status, 200)
  assert.equal((await gateway.get(`/v1/payments/${body.id}`, { entityId: sandbox.entityId })).status, 200)
  await stands('behind')
  assert.equal(await has(body.id), false)
  const old = Number((await list()).headers.get('age'))
  assert.ok(old > 10, `${old}`)
  assert.ok((await metric('tollgate_reporting_lag_seconds'))! > 10)
  for (const page of ['payments', 'overview', 'reports'])
    assert.match((await office.ask(`/office/${page}`)).text, /\d+ seconds old/, page)
  await there.query('select pg_wal_replay_resume()')
  await eventually(() => has(body.id), 'the payment is in a list')
  await stands('ready')
})

it('that has what is no payment is as if it were away, and what it has is in no log', async () => {
  const { body } = await gateway.pay()
  await eventually(() => has(body.id), 'the payment is in a list')
  for (const [table, key, column] of [
    ['payments', 'id', 'record'],
    ['answers', 'payment_id', 'reply'],
    ['answers', 'payment_id', 'body'],
  ] as const)
    for (const text of ['Jane Jones, 1 Long Street', '7']) {
      const set = (value: string) => gateway.pool.query(`update ${table} set ${column} = $2 where ${key} = $1`, [body.id, value])
      const { rows } = await gateway.pool.query(`select ${column} as text from ${table} where ${key} = $1`, [body.id])
      await set(text)
      const refused = await eventually(async () => {
        const answer = await list()
        return answer.status === 200 ? undefined : answer
      }, 'the copy has it')
      assert.deepEqual([refused.status, refused.body.result.code], [503, '800.800.801'], `${column} ${text}`)
      assert.equal(refused.headers.get('retry-after'), '5')
      await set(rows[0].text)
      await eventually(() => has(body.id), 'the payment is in a list again')
    }
  assert.ok(gateway.logged.some(line => line.includes(`the record of the payment ${body.id} is no JSON object`)))
  assert.ok(!gateway.logged.some(line => /Jane|Jones/.test(line)))
})

it('that is gone makes a page of the office say so, and no other', async () => {
  const office = await sandboxDeveloper(gateway)
  await standby.stop()
  await stands('away')
  assert.equal(await metric('tollgate_reporting_up'), 0)
  const answer = await office.ask('/office/payments')
  assert.equal(answer.status, 503)
  assert.equal(answer.headers.get('retry-after'), '5')
  assert.match(answer.text, /Payments are made all the while/)
  for (const page of ['cases', 'risk', 'audit']) assert.equal((await office.ask(`/office/${page}`)).status, 200, page)
  const { body } = await gateway.pay()
  assert.equal((await gateway.get(`/v1/payments/${body.id}`, { entityId: sandbox.entityId })).status, 200)
  await standby.start()
  await stands('ready')
})

it('of another database is not read, nor one without a schema, and its age is told by its sources', async () => {
  await standby.stop()
  await standby.start()
  await stands('ready')
  const look = async (database: string, later = 0) => {
    const own = connect(
      gateway.connection,
      clockWith(Date.now),
      () => {},
      followingDatabase({ connectionString: standby.urlOf(database) }),
    )
    try {
      return await lookAt(
        own.work,
        own.reporting.follows!,
        clockWith(() => Date.now() + later),
      )
    } finally {
      await own.close()
    }
  }
  assert.equal((await look('tollgate')).state, 'ready')
  assert.equal((await look('tollgate', 60_000)).state, 'behind')
  const empty = await look('postgres')
  assert.deepEqual([empty.state, empty.why], ['unfit', 'it is no copy of this database'])
  const stranger = await servers.server()
  await stranger.make('tollgate')
  const other = makePool({ connectionString: stranger.urlOf('tollgate') }, 1, () => {})
  await other.query(`insert into beats values ('database', gen_random_uuid(), now())`)
  await other.end()
  const own = connect(
    gateway.connection,
    clockWith(Date.now),
    () => {},
    followingDatabase({ connectionString: stranger.urlOf('tollgate') }),
  )
  const { state, why } = await lookAt(own.work, own.reporting.follows!, clockWith(Date.now))
  assert.deepEqual([state, why], ['unfit', 'it does not follow this database (database)'])
  await own.close()
})
