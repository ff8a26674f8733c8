// One reporting database that subscribes to two cells, on servers of their own: what is found there, what happens while it is away, behind or broken, what a merchant's
// move does to it, and how `bin/tollgate cells reporting` puts it right.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import type pg from 'pg'
import { inTransaction, makePool } from '../src/platform/database/connect.ts'
import { keepMode } from '../src/platform/database/installation.ts'
import { closeMovements, reopenMovements } from '../src/reporting/settlement/store.ts'
import { keepKeys } from '../src/vault/keys.ts'
import { withPool } from './support/database.ts'
import { eventually, sandbox, type TestGateway, testGateway, testKeys } from './support/gateway.ts'
import { type PostgresServer, type PostgresServers, postgresServers } from './support/postgres.ts'
import { type CommandRun, commandLine } from './support/process.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollgate-reporting-'))
const file = join(folder, 'cells.json')
const keys = { SEAL_KEY: '01'.repeat(32), LOOKUP_KEY: '02'.repeat(32) }
let servers: PostgresServers
let one: PostgresServer
let two: PostgresServer
let reporting: PostgresServer
let url: string
/** As gateways and commands that read have it. */
let readerUrl: string
let first: TestGateway
let second: TestGateway
/** As superuser in the reporting database. */
let there: pg.Pool

const count = async (pool: pg.Pool, table: string): Promise<number> =>
  Number((await pool.query(`select count(*) as count from ${table}`)).rows[0].count)
const writeCells = (more: Record<string, Record<string, string | undefined>> = {}): void => {
  const cell = (name: string, server: PostgresServer, gateway: number) => ({
    name,
    environment: {
      DATABASE_URL: server.urlOf('cell'),
      REPLICATION_URL: server.urlOf('cell', 'tollgate_replicator'),
      ...more[name],
    },
    gateways: [`127.0.0.1:${gateway}`],
  })
  writeFileSync(file, JSON.stringify({ map: 'cells.map', cells: [cell('one', one, 8001), cell('cell-two', two, 8002)] }), {
    mode: 0o600,
  })
}
/** The page says how roles are made: its own statements, with a password. */
const makeRole = async (server: PostgresServer, role: string): Promise<void> => {
  const page = readFileSync(new URL('../docs/operating-reporting.md', import.meta.url), 'utf8')
  const lines = page.match(new RegExp(`^    .*\\b${role}\\b.*;$`, 'gm'))!
  assert.ok(lines.length > 0)
  for (const line of lines) await server.pool.query(line.replace('…', `password of ${role}`))
}
const command = (...words: string[]) =>
  commandLine(
    { ...keys, REPORTING_DATABASE_URL: url, DATA_DIR: folder },
    'cells',
    'reporting',
    '--cells',
    file,
    ...words,
  ) as Promise<CommandRun>
const follow = async (): Promise<string> => {
  const { code, out } = await command()
  assert.equal(code, 0, out)
  return out
}
/** All that both cells have is there. */
const caughtUp = (): Promise<unknown> =>
  eventually(
    async () => {
      for (const table of ['payments', 'answers', 'journal', 'searched_payments']) {
        const { rows } = await there.query(
          `select merchant_id, ${table === 'payments' ? 'id' : 'payment_id'} as id from ${table}`,
        )
        const known = new Set(rows.map(row => row.id))
        for (const { pool } of [first, second]) {
          if ((await count(pool, 'events where searched is null')) > 0) return false
          const { rows } = await pool.query(`select ${table === 'payments' ? 'id' : 'payment_id'} as id from ${table}`)
          if (!rows.every(row => known.has(row.id))) return false
        }
      }
      return true
    },
    'what the cells have is in the reporting database',
    40,
  )
/** What the audit of a cell tells of the reporting database. */
const toldOf = async ({ pool }: TestGateway): Promise<string[]> => {
  const { rows } = await pool.query<Record<string, string>>(
    `select actor_kind, action, subject, result from audit where concat(action, details) ~ 'cell(Followed|Unfollowed)' order by sequence`,
  )
  return rows.map(row => Object.values(row).join(' '))
}
const lately = () => ({
  entityId: sandbox.entityId,
  'date.from': '2020-01-01 00:00:00',
  'date.to': '2099-01-01 00:00:00',
  limit: '100',
})
const found = async (gateway: TestGateway): Promise<string[]> => {
  const { status, body } = await gateway.get('/v3/query', lately())
  assert.ok(status === 200 || body.result.code === '700.400.580', JSON.stringify(body))
  return (body.records ?? []).map(({ id }: { id: string }) => id)
}
const ready = async (gateway: TestGateway) => {
  const { status, body } = await gateway.get('/health/ready')
  assert.equal(status, 200, 'it is ready whatever the reporting database does')
  return body.reporting as string
}
const stands = (state: string, ...gateways: TestGateway[]) =>
  Promise.all(
    gateways.map(gateway => eventually(async () => (await ready(gateway)) === state, `the reporting database is ${state}`, 40)),
  )

before(async () => {
  servers = postgresServers()
  one = await servers.server()
  two = await servers.server()
  reporting = await servers.server(['shared_preload_libraries=pg_stat_statements'])
  url = reporting.urlOf('reporting')
  readerUrl = reporting.urlOf('reporting', 'tollgate_reader')
  await reporting.makeEmpty('reporting')
  there = makePool({ connectionString: url }, 2, () => {})
  await makeRole(reporting, 'tollgate_reader')
  for (const server of [one, two]) await makeRole(server, 'tollgate_replicator')
  writeCells()
  const cell = async (server: PostgresServer) => {
    const gateway = await testGateway({
      database: await server.make('cell'),
      environment: { REPORTING_DATABASE_URL: readerUrl, METRICS_PORT: '0' },
    })
    await inTransaction(gateway.pool, db => keepKeys(db, testKeys, Date.now()))
    await keepMode(gateway.pool, 'sandbox', Date.now())
    return gateway
  }
  first = await cell(one)
  second = await cell(two)
})
after(async () => {
  await first?.stop()
  await second?.stop()
  await there?.end()
  await servers?.stop()
  rmSync(folder, { recursive: true, force: true })
})

describe('before it follows', () => {
  it('searches are refused with a time to come again, and payments are made', async () => {
    await stands('unfit', first)
    const { status, body, headers } = await first.get('/v3/query', lately())
    assert.equal(`${status} ${body.result.code}`, '503 800.800.801')
    assert.equal(headers.get('retry-after'), '5')
    const paid = await first.pay()
    assert.equal(paid.status, 200)
    assert.equal((await first.get(`/v1/payments/${paid.body.id}`, { entityId: sandbox.entityId })).status, 200)
  })

  it('what keeps a cell from being followed is told by name, and keeps no other from it', async () => {
    await one.pool.query('alter system set synchronous_standby_names = "*"')
    await one.pool.query('alter system set max_slot_wal_keep_size = -1')
    await one.pool.query('alter system set synchronous_commit = local')
    await one.pool.query('select pg_reload_conf()')
    await eventually(
      async () => (await one.pool.query('show max_slot_wal_keep_size')).rows[0].max_slot_wal_keep_size === '-1',
      'read',
    )
    const { code, stdout, stderr } = await command()
    assert.equal(code, 1)
    assert.match(stderr, /^one: max_slot_wal_keep_size is -1: it must have a limit/m)
    assert.match(stderr, /^synchronous_standby_names is \*: it must name standbys/m)
    assert.match(stdout, /^cell-two is copied\.$/m)
    assert.equal(await count(one.pool, 'pg_replication_slots'), 0)
    for (const name of ['synchronous_standby_names', 'max_slot_wal_keep_size', 'synchronous_commit'])
      await one.pool.query(`alter system reset ${name}`)
    await one.pool.query('select pg_reload_conf()')
    await eventually(
      async () => (await one.pool.query('show max_slot_wal_keep_size')).rows[0].max_slot_wal_keep_size === '1GB',
      'read',
    )
  })

  it('a database in which another program has its tables is refused, and left as it is', async () => {
    const foreign = (await reporting.makeEmpty('others')).connection.connectionString!
    await withPool({ connectionString: foreign }, pool => pool.query('create table mine (id int)'))
    const words = ['cells', 'reporting', '--cells', file]
    const { code, out } = await commandLine({ ...keys, REPORTING_DATABASE_URL: foreign, DATA_DIR: folder }, ...words)
    assert.equal(code, 1)
    assert.match(out, /^Another program has made mine in this database: a reporting database begins empty\.$/m)
    const tables = `select tablename from pg_tables where schemaname = 'public'`
    const { rows } = await withPool({ connectionString: foreign }, pool => pool.query(tables))
    assert.deepEqual(rows, [{ tablename: 'mine' }], 'nothing was made there')
  })

  it('a server without logical replication, another mode, other keys, a database of a gateway and an embedded one are refused', async () => {
    const plain = await servers.server(['wal_level=replica'])
    await makeRole(plain, 'tollgate_replicator')
    const made = await plain.make('cell')
    const gateway = await testGateway({ database: made })
    await inTransaction(gateway.pool, db => keepKeys(db, testKeys, Date.now()))
    await keepMode(gateway.pool, 'sandbox', Date.now())
    const refused = async (sentence: RegExp, more: Record<string, string>, reportingUrl = url) => {
      const of = more.DATABASE_URL && { REPLICATION_URL: more.DATABASE_URL.replace('postgres@', 'tollgate_replicator@') }
      writeCells({ one: { ...of, ...more } })
      const run = await commandLine(
        { ...keys, REPORTING_DATABASE_URL: reportingUrl, DATA_DIR: folder },
        ...['cells', 'reporting', '--cells', file],
      )
      assert.equal(run.code, 1)
      assert.match(run.out, sentence)
    }
    await refused(/^one: wal_level is replica: it must be logical\./m, { DATABASE_URL: plain.urlOf('cell') })
    await gateway.pool.query(`update key_checks set proof = sha256(proof) where name like 'lookup%'`)
    await refused(/^one: Its lookup key is another than that of the cells which are followed already/m, {
      DATABASE_URL: plain.urlOf('cell'),
    })
    await gateway.pool.query(`update installation set mode = 'live'`)
    await refused(/^one: This database belongs to live mode/m, { DATABASE_URL: plain.urlOf('cell') })
    await refused(/^one: Its database cannot be reached: /m, { DATABASE_URL: 'postgresql://postgres@127.0.0.1:1/cell' })
    await refused(/^one: Its database lacks migrations|^one: No gateway has used its database yet/m, {
      DATABASE_URL: (await plain.makeEmpty('empty')).connection.connectionString!,
    })
    await refused(/A gateway has used this database: a reporting database begins empty/, {}, two.urlOf('cell'))
    writeFileSync(
      file,
      JSON.stringify({ map: 'm', cells: [{ name: 'one', environment: { DATA_DIR: folder }, gateways: ['a:1'] }] }),
    )
    assert.match((await command()).out, /^one: It has an embedded database/m)
    writeCells()
    await gateway.stop()
    await plain.stop()
  })
})

describe('a reporting database of two cells', () => {
  it('has what was there before and what comes, of both, and nothing that is sealed', async () => {
    const early = await second.pay()
    assert.match(await follow(), /^one is copied\.$/m)
    assert.deepEqual(await toldOf(first), ['commandLine actBegun one done', 'commandLine cellFollowed one done'])
    const late = await first.pay()
    await caughtUp()
    await stands('ready', first, second)
    assert.ok((await found(first)).includes(late.body.id))
    assert.ok((await found(second)).includes(early.body.id))
    const { rows } = await there.query('select distinct id from payments where id = any ($1)', [[early.body.id, late.body.id]])
    assert.equal(rows.length, 2)
    for (const table of ['sealed_cards', 'pending_answers', 'due_work', 'events', 'access_tokens', 'staff'])
      assert.equal(await count(there, table), 0, table)
    assert.equal(await count(there, `entities where settings <> '{}'`), 0)
  })

  it('lets gateways read what they ask for, and nobody a password; the reporting server knows no password that writes', async () => {
    const may = async (server: PostgresServer, database: string, role: string, text: string) => {
      const pool = makePool({ connectionString: server.urlOf(database, role) }, 1, () => {})
      try {
        return await pool.query(text).then(
          () => 'reads',
          ({ code }) => code,
        )
      } finally {
        await pool.end()
      }
    }
    const forbidden = [
      'subconninfo from pg_subscription',
      'rolpassword from pg_authid',
      'count(*) from access_tokens',
      'settings from entities',
    ]
    const asked = (server: PostgresServer, database: string, role: string) =>
      Promise.all([...forbidden, 'count(*) from journal'].map(text => may(server, database, role, `select ${text}`)))
    const denied = Array.from(forbidden, () => '42501')
    assert.deepEqual(await asked(reporting, 'reporting', 'tollgate_reader'), [...denied, 'reads'])
    assert.deepEqual(await asked(one, 'cell', 'tollgate_replicator'), [...denied, 'reads'])
    assert.equal(await may(one, 'cell', 'tollgate_replicator', 'delete from journal'), '42501')
    const { rows } = await there.query('select subconninfo as url from pg_subscription')
    assert.deepEqual(
      rows.map(row => new URL(row.url).username),
      ['tollgate_replicator', 'tollgate_replicator'],
    )
  })

  it('keeps the password of REPLICATION_URL in the list of subscriptions alone, whatever the server keeps of statements, and also when it fails', async () => {
    const secret = 'kept-in-no-log'
    const given = one.urlOf('cell', `tollgate_replicator:${secret}`)
    const most = { log_statement: 'all', log_min_duration_statement: '0', log_transaction_sample_rate: '1' }
    const set = async (statements: string[]) => {
      for (const statement of statements) await reporting.pool.query(`alter system ${statement}`)
      await reporting.pool.query('select pg_reload_conf()')
    }
    const log = () => readFileSync(`${reporting.folder}.log`, 'utf8')
    await reporting.pool.query('create extension pg_stat_statements')
    await set(Object.entries(most).map(([name, value]) => `set ${name} = '${value}'`))
    await eventually(async () => (await there.query('show log_statement')).rows[0].log_statement === 'all', 'it logs')
    writeCells({ one: { REPLICATION_URL: given } })
    assert.match(await follow(), /^one follows\.$/m)
    const connections = 'select subconninfo from pg_subscription where subname = $1'
    const kept = async () => (await there.query(connections, ['tollgate_reporting_one'])).rows[0]?.subconninfo
    assert.equal(await kept(), given)
    // The command's own driver takes this, and the server's does not.
    assert.equal((await command('--end', 'one')).code, 0)
    writeCells({ one: { REPLICATION_URL: `${given}&statement_timeout=5000` } })
    const failed = await command()
    writeCells()
    assert.equal(failed.code, 1)
    assert.match(failed.stderr, /^one: .*statement_timeout/m)
    assert.equal(failed.out.includes(secret), false)
    assert.match(log(), /STATEMENT|statement: /, 'it has logged others')
    assert.equal(log().includes(secret), false, 'a line of the log has the password')
    const { rows } = await reporting.pool.query<{ query: string }>('select query from pg_stat_statements')
    assert.ok(rows.some(({ query }) => /^alter subscription .* enable$/.test(query)))
    assert.equal(
      rows.some(({ query }) => query.includes(secret)),
      false,
      'the statistics have the password',
    )
    await set(Object.keys(most).map(name => `reset ${name}`))
    await follow()
    await caughtUp()
    await stands('ready', first)
  })

  it('a role that may do more is told by name, in the cell, in the reporting database, and by doctor', async () => {
    const refused = async (more: Record<string, string | undefined>, why: RegExp) => {
      writeCells({ one: more })
      const run = await command()
      writeCells()
      assert.equal(run.code, 1, run.out)
      assert.match(run.stderr, why)
      assert.doesNotMatch(run.stderr, /\n\s+at /)
    }
    await refused({ REPLICATION_URL: undefined }, /^one: Its environment must hold REPLICATION_URL/m)
    const encrypted = one.urlOf('cell', 'tollgate_replicator').replace('sslmode=disable', 'sslmode=verify-full')
    await refused({ REPLICATION_URL: encrypted }, /^one: REPLICATION_URL: its database cannot be reached: The server does not/m)
    await refused({ REPLICATION_URL: 'postgres://a:b#c@h/x' }, /^one: REPLICATION_URL is no address: /m)
    await refused({ REPLICATION_URL: one.urlOf('cell') }, /^one: REPLICATION_URL: The role postgres is a superuser/m)
    await one.pool.query('grant pg_read_all_data to tollgate_replicator')
    await refused({}, /^one: .*is a member of pg_read_all_data: revoke pg_read_all_data from tollgate_replicator\./m)
    await one.pool.query('revoke pg_read_all_data from tollgate_replicator')
    await first.pool.query('grant insert on journal to tollgate_replicator')
    await refused({}, /^one: .*The role tollgate_replicator may write journal\./m)
    await first.pool.query('revoke insert on journal from tollgate_replicator')
    await first.pool.query('grant select on entities to tollgate_replicator')
    await refused({}, /^one: .*The role tollgate_replicator may read entities\./m)
    await first.pool.query('revoke select on entities from tollgate_replicator')

    await there.query('grant pg_read_all_data to tollgate_reader')
    await refused({}, /^REPORTING_DATABASE_URL: The role tollgate_reader is a member of pg_read_all_data/m)
    const doctor = () =>
      commandLine(
        {
          ...keys,
          DATABASE_URL: one.urlOf('cell'),
          REPORTING_DATABASE_URL: readerUrl,
          DATA_DIR: folder,
        },
        'doctor',
      )
    assert.match((await doctor()).out, /^The role tollgate_reader may read access_tokens, .* more\.$/m)
    await there.query('revoke pg_read_all_data from tollgate_reader')
    await follow()
    assert.doesNotMatch((await doctor()).out, /tollgate_reader/)
    const none = await command('--reader', 'nobody_reads')
    assert.deepEqual([none.code, /There is no role nobody_reads/.test(none.stderr)], [1, true])
  })

  it('says how old it is, and reports and the overview are read there', async () => {
    const { headers } = await first.get('/v3/query', lately())
    assert.match(headers.get('age')!, /^[0-9]$/)
    const today = new Date().toISOString().slice(0, 10)
    const report = () =>
      first.get('/reports/v1/reconciliations/aggregations', {
        entityId: sandbox.entityId,
        'date.from': today,
        'date.to': today,
        testMode: 'INTERNAL',
      })
    const { body, headers: reported } = await report()
    assert.equal(body.result.code, '000.000.100')
    assert.match(reported.get('age')!, /^[0-9]$/)
    // It is read there: what is different there is told.
    await there.query('update journal set amount = amount + 1')
    const other = await report()
    assert.notEqual(JSON.stringify(other.body.aggregations), JSON.stringify(body.aggregations))
    await there.query('update journal set amount = amount - 1')
  })

  it('is not asked for a payment that is named: a merchant reads what it has just made', async () => {
    await there.query('alter subscription tollgate_reporting_one disable')
    const merchantTransactionId = `named-${Date.now()}`
    const { body } = await first.pay({ merchantTransactionId })
    assert.equal((await first.get(`/v1/payments/${body.id}`, { entityId: sandbox.entityId })).body.id, body.id)
    const byName = { entityId: sandbox.entityId, merchantTransactionId }
    assert.equal((await first.get('/v1/query', byName)).body.payments[0].id, body.id)
    assert.equal((await first.get('/v3/query', byName)).body.records[0].id, body.id)
    const chain = await first.get(`/v3/query/${body.id}`, { entityId: sandbox.entityId, includeLinkedTransactions: 'true' })
    assert.equal(chain.body.records[0].id, body.id)
    assert.ok(!(await found(first)).includes(body.id), 'the list is that of the reporting database')
  })

  it('that is behind is read, says so, and keeps nobody from being ready', async () => {
    await stands('behind', first)
    const { status, headers } = await first.get('/v3/query', lately())
    assert.equal(status, 200)
    assert.ok(Number(headers.get('age')) > 10)
    await follow()
    await caughtUp()
    await stands('ready', first)
  })

  it('that stalls or is gone is told of at once, and payments do not notice', async () => {
    const slowest = async () => {
      let slowest = 0
      for (let times = 0; times < 10; times++) {
        const began = performance.now()
        assert.equal((await first.pay()).status, 200)
        slowest = Math.max(slowest, performance.now() - began)
      }
      return slowest
    }
    reporting.stall()
    const searches = Array.from({ length: 10 }, () => first.get('/v3/query', lately()))
    assert.ok((await slowest()) < 1500)
    for (const reply of await Promise.all(searches)) assert.match(`${reply.status}`, /^(503|429)$/)
    await stands('away', first)
    const began = performance.now()
    assert.equal((await first.get('/v3/query', lately())).status, 503)
    assert.ok(performance.now() - began < 1000, 'nobody waits for what is known to be away')
    reporting.goOn()
    await stands('ready', first)
    await reporting.stop()
    await stands('away', first)
    assert.ok((await slowest()) < 1500)
    assert.equal((await first.get('/v3/query', lately())).status, 503)
    await reporting.start()
    await stands('ready', first)
    await caughtUp()
  })

  it('is what commands search in, and doctor says how it stands', async () => {
    const run = (...words: string[]) =>
      commandLine(
        {
          ...keys,
          DATABASE_URL: one.urlOf('cell'),
          REPORTING_DATABASE_URL: readerUrl,
          DATA_DIR: folder,
        },
        ...words,
      )
    const search = await run('search', 'find', '92.00', '--json')
    assert.equal(search.code, 0, search.out)
    assert.ok(JSON.parse(search.stdout).payments.length > 0)
    const { reporting, sources } = JSON.parse((await run('doctor', '--json')).stdout)
    assert.equal(reporting, 'ready')
    assert.deepEqual(
      sources.map((one: { source: string }) => one.source),
      ['cell-two', 'one'],
    )
    await there.query('alter table searched_payments rename to elsewhere')
    assert.notEqual((await run('search', 'find', '92.00')).code, 0, 'it is read there and nowhere else')
    await there.query('alter table elsewhere rename to searched_payments')
  })

  it('is not taken for the database of a gateway', async () => {
    const { code, out } = await commandLine({ ...keys, DATABASE_URL: url, DATA_DIR: folder, MODE: 'sandbox' }, 'doctor')
    assert.equal(code, 1, out)
    assert.match(out, /follows others for reports \(cell-two, one\) and takes no payments/)
  })

  it('goes on where the command was ended between two steps, and when what a cell kept is lost', async () => {
    const lost = async (name: string) => {
      await there.query(`alter subscription ${name} disable`)
      await there.query(`alter subscription ${name} set (slot_name = none)`)
      await there.query(`drop subscription ${name}`)
    }
    // The slot was made, the subscription was not.
    await lost('tollgate_reporting_one')
    await first.pay()
    await eventually(async () => (await count(one.pool, 'pg_replication_slots where active')) === 0, 'nobody uses it')
    assert.match(await follow(), /^one is copied\.$/m)
    await caughtUp()
    // The subscription is there, the slot is not: another server of the cell took over.
    await there.query('alter subscription tollgate_reporting_one disable')
    await eventually(async () => (await count(one.pool, 'pg_replication_slots where active')) === 0, 'nobody uses it')
    await one.pool.query(`select pg_drop_replication_slot('tollgate_reporting_one')`)
    await first.pay()
    assert.match(await follow(), /^one is copied anew/m)
    await caughtUp()
    assert.match(await follow(), /^one follows\.$/m)
    assert.equal(await count(one.pool, 'pg_replication_slots'), 1)
  })

  it('keeps the rows of a merchant that moves, once, in the state of the later cell, whatever comes first', async () => {
    const errors = async () =>
      (await there.query('select sum(apply_error_count) as sum from pg_stat_subscription_stats')).rows[0].sum
    const { body } = await first.pay({
      'customer.givenName': 'Ana',
      'customer.surname': 'Lima',
      'customer.email': 'moved@example.org',
    })
    assert.equal(body.result.code, '000.100.110', JSON.stringify(body))
    await caughtUp()
    const before = await errors()
    const tables = ['payments', 'answers', 'journal', 'searched_payments']
    const idOf = (table: string) => (table === 'payments' ? 'id' : 'payment_id')
    const copy = async (table: string) => {
      const { rows } = await first.pool.query(`select to_jsonb(t) as row from ${table} t where ${idOf(table)} = $1`, [body.id])
      for (const { row } of rows)
        await second.pool.query(`insert into ${table} select * from jsonb_populate_record(null::${table}, $1)`, [row])
    }
    for (const table of tables) await copy(table)
    // The new cell writes it anew; what the old one wrote before comes after that, because its way took longer.
    await there.query('alter subscription tollgate_reporting_one disable')
    const change = (pool: pg.Pool, result: string, seconds: number) =>
      pool.query(
        `update searched_payments set result = $2, written_at = written_at + make_interval(secs => $3) where payment_id = $1`,
        [body.id, result, seconds],
      )
    await change(first.pool, 'of the old cell', 1)
    await change(second.pool, 'of the new cell', 2)
    const state = async () =>
      (await there.query('select result from searched_payments where payment_id = $1', [body.id])).rows[0].result
    await eventually(async () => (await state()) === 'of the new cell', 'the new cell is heard')
    await there.query('alter subscription tollgate_reporting_one enable')
    const mark = await first.pay()
    await caughtUp()
    assert.equal(await state(), 'of the new cell')
    // The old cell forgets it. What is written behind that has come: so did the deletions, if they do.
    for (const table of tables) await first.pool.query(`delete from ${table} where ${idOf(table)} = $1`, [body.id])
    await first.pay()
    await caughtUp()
    for (const table of tables) assert.equal(await count(there, `${table} where ${idOf(table)} = '${body.id}'`), 1, table)
    assert.ok((await found(second)).includes(body.id))
    // Both at once: one of two waits for the other, and takes its row then.
    const crowd = Array.from({ length: 300 }, (_, at) => `${mark.body.id.slice(0, 24)}${String(at).padStart(8, '0')}`)
    await Promise.all(
      [first, second].map(({ pool }) =>
        pool.query(
          `insert into payments select (jsonb_populate_record(p, jsonb_build_object('id', one))).*
             from payments p, unnest($2::uuid[]) one where p.id = $1`,
          [pool === first.pool ? mark.body.id : body.id, crowd],
        ),
      ),
    )
    await caughtUp()
    assert.equal(await count(there, `payments where id = any ('{${crowd}}')`), crowd.length)
    assert.ok(Number(await errors()) - Number(before) < 20)
    for (const { pool } of [first, second]) await pool.query('delete from payments where id = any ($1)', [crowd])
    await there.query('delete from payments where id = any ($1)', [crowd])
  })

  it('counts what a cell archives once, as its sum, also when it is brought back and copied anew', async () => {
    const { body } = await first.pay()
    await caughtUp()
    const today = new Date().toISOString().slice(0, 10)
    const days = { entityId: sandbox.entityId, 'date.from': today, 'date.to': today, testMode: 'INTERNAL' }
    const sum = async () => {
      const answer = await first.get('/reports/v1/reconciliations/aggregations', days)
      return JSON.stringify(answer.body.aggregations?.map((one: { amount: string; count: string }) => [one.amount, one.count]))
    }
    const before = await sum()
    const archive = '0'.repeat(31).concat('a')
    const tables = ['answers', 'journal', 'settled_bookings', 'searched_payments', 'redirects']
    const rows = new Map<string, object[]>()
    for (const table of [...tables, 'payments']) {
      const id = table === 'payments' ? 'id' : 'payment_id'
      rows.set(
        table,
        (await first.pool.query(`select to_jsonb(t) as row from ${table} t where ${id} = $1`, [body.id])).rows.map(
          one => one.row,
        ),
      )
    }
    await first.pool.query(`insert into archives (id, name, before, began_at) values ($1, 'test', now(), now())`, [archive])
    await inTransaction(first.pool, async db => {
      await closeMovements(db, sandbox.merchantId, archive, [body.id])
      await db.query('insert into archived_payments values ($1, $2, $2, $3)', [sandbox.merchantId, body.id, archive])
      for (const table of tables) await db.query(`delete from ${table} where payment_id = $1`, [body.id])
      await db.query('delete from payments where id = $1', [body.id])
    })
    await eventually(async () => (await count(there, `payments where id = '${body.id}'`)) === 0, 'it is gone there too')
    for (const table of tables) assert.equal(await count(there, `${table} where payment_id = '${body.id}'`), 0, table)
    assert.equal(await sum(), before)
    await inTransaction(first.pool, async db => {
      for (const [table, of] of rows)
        for (const row of of)
          await db.query(`insert into ${table} select * from jsonb_populate_record(null::${table}, $1)`, [row])
      await reopenMovements(db, sandbox.merchantId, archive, [body.id])
      await db.query('delete from archived_payments where payment_id = $1', [body.id])
    })
    await caughtUp()
    await follow()
    assert.equal(await sum(), before)
  })

  it('ends following a cell by name, with the slot that would hold what is written there', async () => {
    const { code, out } = await command('--end', 'cell-two')
    assert.equal((await toldOf(second)).at(-1), 'commandLine cellUnfollowed cell-two done')
    assert.equal(code, 0, out)
    assert.equal(await count(two.pool, 'pg_replication_slots'), 0)
    assert.equal(await count(there, 'reporting_sources'), 1)
    await stands('unfit', second)
    assert.equal(await ready(first), 'ready')
    assert.match((await command('--end', 'cell-two')).out, /does not follow cell-two/)
    await follow()
    await stands('ready', second)
  })

  it('stops at a column that it lacks, counts that, and goes on when it has it', async () => {
    const errors = async () =>
      Number(
        (
          await there.query(
            `select apply_error_count as errors from pg_stat_subscription_stats where subname = 'tollgate_reporting_one'`,
          )
        ).rows[0].errors,
      )
    const before = await errors()
    await first.pool.query('alter table payments add column added_later text')
    const { body } = await first.pay()
    await eventually(async () => (await errors()) > before, 'the subscription is stopped and says so')
    assert.equal((await first.get(`/v1/payments/${body.id}`, { entityId: sandbox.entityId })).status, 200)
    await there.query('alter table payments add column added_later text')
    await follow()
    await caughtUp()
  })
})
