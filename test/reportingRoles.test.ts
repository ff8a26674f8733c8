// The two roles of a reporting database: what one may do beyond what the page gives it is told, also where it may only become who does; and names for which a cell
// would wait with each payment.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type pg from 'pg'
import { makePool } from '../src/platform/database/connect.ts'
import { grantReading, rightsBeyond } from '../src/start/reporting/roles.ts'
import { publisherRefusals } from '../src/start/reporting/subscribe.ts'
import { eventually } from './support/gateway.ts'
import { type PostgresServer, type PostgresServers, postgresServers } from './support/postgres.ts'

let servers: PostgresServers
let server: PostgresServer
let pool: pg.Pool
before(async () => {
  servers = postgresServers()
  server = await servers.server(['wal_level=logical', 'max_slot_wal_keep_size=1GB', 'synchronous_commit=local'])
  await server.make('cell')
  pool = makePool({ connectionString: server.urlOf('cell') }, 2, () => {})
  await pool.query('create role owning; create role mighty superuser; grant select, insert on journal to owning')
})
after(async () => {
  await pool.end()
  await servers.stop()
})

const told = {
  'login noinherit in role owning': [/is a member of owning: revoke owning from/, 'both'],
  'login noinherit in role mighty': [/is a member of mighty/, 'both'],
  'login in role pg_monitor': [/is a member of pg_monitor/, 'both'],
  'login createdb': [/may make databases: alter role \w+ nocreatedb/, 'both'],
  'login bypassrls': [/may go round row security/, 'both'],
  'login createrole': [/may make roles/, 'both'],
  'login superuser': [/is a superuser/, 'both'],
  'login replication': [/may replicate: alter role \w+ noreplication/, 'reader'],
} as const

test('a role that may become another, or do what no reader does, is told by name', async () => {
  for (const [index, [words, [sentence, kinds]]] of Object.entries(told).entries())
    for (const kind of ['reader', 'replicator'] as const) {
      const role = `${kind}_${index}`
      await pool.query(`create role ${role} ${words}`)
      await grantReading(pool, role, kind)
      const found = await rightsBeyond(pool, kind, role)
      if (kinds !== 'both' && kinds !== kind) assert.deepEqual(found, [], `${kind}: ${words}`)
      else assert.match(found.join('\n'), sentence, `${kind}: ${words}`)
    }
  await pool.query('create role plain_reader login')
  await grantReading(pool, 'plain_reader', 'reader')
  assert.deepEqual(await rightsBeyond(pool, 'reader', 'plain_reader'), [])
  // An extension lets everybody read its views; those of others are not taken for such.
  await pool.query('create extension pg_stat_statements')
  assert.deepEqual(await rightsBeyond(pool, 'reader', 'plain_reader'), [])
  await pool.query('create view open_to_all as select 1 as one; grant select on open_to_all to public')
  assert.deepEqual(await rightsBeyond(pool, 'reader', 'plain_reader'), ['The role plain_reader may read open_to_all.'])
  await pool.query('drop view open_to_all; drop extension pg_stat_statements')
  await pool.query('grant update (amount) on journal to plain_reader')
  assert.match((await rightsBeyond(pool, 'reader', 'plain_reader')).join(), /may write journal/)
})

test('who signs in as another and is set to a plain role can take that back', async () => {
  await pool.query('create role plain login replication; create role hidden login replication in role plain, owning')
  await pool.query(`alter role hidden set role to plain`)
  const db = makePool({ connectionString: server.urlOf('cell', 'hidden') }, 1, () => {})
  try {
    assert.equal((await db.query('select current_user as role')).rows[0].role, 'plain')
    assert.match((await rightsBeyond(db, 'replicator')).join('\n'), /The role hidden is a member of owning/)
  } finally {
    await db.end()
  }
})

test('a name for which payments would wait is seen however it is written, and others are not taken for it', async () => {
  const given = async (names: string, url = 'postgresql://a@b/c') => {
    await server.pool.query(`alter system set synchronous_standby_names = '${names}'`)
    await server.pool.query('select pg_reload_conf()')
    const isRead = async () => (await pool.query('show synchronous_standby_names')).rows[0].synchronous_standby_names === names
    await eventually(isRead, 'it is read')
    const found = await publisherRefusals({ name: 'one-a', owner: pool, replicator: pool, url })
    return found.some(one => one.startsWith('synchronous_standby_names'))
  }
  const own = 'tollgate_reporting_one_a'
  for (const names of [
    own,
    `"${own}"`,
    own.toUpperCase(),
    `FIRST 1 (s1, "${own}")`,
    `ANY 1 (s1,${own})`,
    '*',
    '"*"',
    'FIRST 1 (s1, "*")',
    '2 (*)',
  ])
    assert.equal(await given(names), true, names)
  for (const names of ['', 's1', `FIRST 1 (s1, "x${own}")`, `${own}b`, `"a ${own}"`])
    assert.equal(await given(names), false, names)
  assert.equal(await given('FIRST 1 (s1)', 'postgresql://a@b/c?application_name=S1'), true)
  await server.pool.query('alter system reset synchronous_standby_names')
  await server.pool.query('select pg_reload_conf()')
})
