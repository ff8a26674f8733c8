// What a database was set to, what it is made of and whose it is: settings change nothing of what the gateway reads, and a database that cannot be
// used is told in a sentence.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { beginAudit, verify } from '../src/audit/chain.ts'
import { systemClock } from '../src/platform/clock.ts'
import { connect, makePool, poolNames } from '../src/platform/database/connect.ts'
import { isUnavailable } from '../src/platform/database/errors.ts'
import { migrate } from '../src/platform/database/migrate.ts'
import { databaseUrl, dropDatabase, makeDatabase, type TestDatabase, withPool } from './support/database.ts'
import { eventually, testKeys } from './support/gateway.ts'
import { type PostgresServer, postgresServers } from './support/postgres.ts'
import { commandLine, startProcess } from './support/process.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollgate-settings-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const settings = [
  `datestyle = 'SQL, DMY'`,
  `timezone = 'Africa/Monrovia'`,
  `intervalstyle = 'iso_8601'`,
  `bytea_output = 'escape'`,
  `standard_conforming_strings = off`,
  `array_nulls = off`,
  `transform_null_equals = on`,
  `quote_all_identifiers = on`,
  `gin_fuzzy_search_limit = 1`,
  `extra_float_digits = -3`,
]

async function databaseWith(...changes: readonly string[]): Promise<TestDatabase> {
  const database = await makeDatabase()
  await withPool(database.connection, async pool => {
    const { rows } = await pool.query<{ name: string }>('select quote_ident(current_database()) as name')
    for (const change of changes) await pool.query(`alter database ${rows[0]!.name} set ${change}`)
  })
  return database
}

describe('settings of a database', () => {
  it('change nothing of what is read', async () => {
    const database = await databaseWith(...settings)
    const connected = connect(database.connection, systemClock, error => assert.fail(error))
    try {
      for (const at of [Date.UTC(2026, 2, 4, 5, 6, 7, 89), Date.UTC(1970, 0, 1), Date.UTC(2026, 10, 22)]) {
        const { rows } = await connected.work.query(
          `select $1::timestamptz as time, ($1::timestamptz at time zone 'UTC')::date as day, '\\x00ff'::bytea as bytes,
                  $2::text[] as list, null = null is null as unknown, extract(hour from $1::timestamptz)::int as hour,
                  0.1::float8 + 0.2::float8 as share, (0.1::float8 + 0.2::float8)::text as text`,
          [new Date(at).toISOString(), ['a', null]],
        )
        assert.deepEqual(rows, [
          {
            time: at,
            day: new Date(at).toISOString().slice(0, 10),
            bytes: Buffer.from([0, 255]),
            list: ['a', null],
            unknown: true,
            hour: new Date(at).getUTCHours(),
            share: 0.1 + 0.2,
            text: String(0.1 + 0.2),
          },
        ])
      }
      await connected.work.query(`create table many (list int[]); insert into many select '{1}' from generate_series(1, 20000);
        create index many_list on many using gin (list)`)
      const { rows } = await connected.work.query(`select count(*) from many where list @> '{1}'`)
      assert.deepEqual(rows, [{ count: 20000 }])
    } finally {
      await connected.close()
      await database.drop()
    }
  })

  it('leave no answer unwritten; how far beyond the server it is written is theirs', async () => {
    for (const [set, used] of [
      ['off', 'on'],
      ['local', 'local'],
      ['remote_apply', 'remote_apply'],
    ] as const) {
      const database = await databaseWith(`synchronous_commit = ${set}`)
      const connected = connect(database.connection, systemClock, error => assert.fail(error))
      try {
        for (const name of poolNames) {
          const { rows } = await connected[name].query('show synchronous_commit')
          assert.deepEqual(rows, [{ synchronous_commit: used }], name)
        }
      } finally {
        await connected.close()
        await database.drop()
      }
    }
  })

  it('a revoked token stays out, and the audit is read as it was written', async () => {
    const database = await databaseWith(...settings)
    const environment = { DATABASE_URL: databaseUrl(database.connection), DATA_DIR: join(folder, 'dates') }
    const gateway = await startProcess(environment)
    const { baseUrl, accessToken, entityId } = gateway.sandbox
    const status = async () =>
      (
        await fetch(`${baseUrl}/v1/payments/${'0'.repeat(32)}?entityId=${entityId}`, {
          headers: { Authorization: `Bearer ${accessToken}` },
        })
      ).status
    try {
      assert.equal(await status(), 404)
      const { stdout } = await commandLine(environment, 'list', '--json')
      for (const { id } of JSON.parse(stdout).tokens) assert.equal((await commandLine(environment, 'revoke', id)).code, 0)
      await eventually(async () => (await status()) === 403, 'the gateway hears of it')
      assert.deepEqual((await commandLine(environment, 'audit', 'verify')).code, 0)
      assert.match((await commandLine(environment, 'audit', '--action', 'tokenRevoked')).out, /tokenRevoked/)
    } finally {
      await gateway.stop()
      await database.drop()
    }
  })

  it('a time that is none is an error, never a number', async () => {
    const database = await makeDatabase()
    const connected = connect(database.connection, systemClock, error => assert.fail(error))
    try {
      await connected.work.query(`set datestyle = 'SQL, DMY'`) // as a statement of the same session could
      await assert.rejects(connected.work.query(`select timestamptz '2026-11-22' as at`), /is no time/)
    } finally {
      await connected.close()
      await database.drop()
    }
  })
})

describe('sessions in which nothing keeps the rules (session_replication_role = replica)', () => {
  const servers = postgresServers()
  let server: PostgresServer
  before(async () => {
    server = await servers.server()
    await server.pool.query('create role keeper login')
  })
  after(() => servers.stop())
  const refused = /The database cannot be used: its sessions begin with session_replication_role = replica/
  let count = 0
  /** A database of the role keeper, who is no superuser; `set`: how it is set then. */
  async function ownDatabase(
    ...set: string[]
  ): Promise<{ url: string; superuserUrl: string; set(...more: string[]): Promise<void> }> {
    const name = `kept_${++count}`
    await server.pool.query(`create database ${name} owner keeper`)
    const change = async (...statements: string[]) => {
      for (const statement of statements) await server.pool.query(statement.replaceAll('$name', name))
    }
    await change(...set)
    return { url: server.urlOf(name, 'keeper'), superuserUrl: server.urlOf(name), set: change }
  }
  const ofDatabase = 'alter database $name set session_replication_role = replica'
  const ofRole = 'alter role keeper in database $name set session_replication_role = REPLICA'

  it('are no way to begin, whoever the gateway is', async () => {
    for (const [set, url] of [
      [ofDatabase, 'url'],
      [ofRole, 'url'],
      [ofDatabase, 'superuserUrl'],
    ] as const) {
      const environment = { DATABASE_URL: (await ownDatabase(set))[url], DATA_DIR: join(folder, `replica${count}`) }
      const told = await startProcess(environment).then(
        async started => assert.fail(`it started: ${await started.stop()}`),
        (error: Error) => error.message,
      )
      assert.match(told, refused)
      assert.doesNotMatch(told, /\n\s+at /)
    }
  })

  it('are left by who may, and no others are used', async () => {
    const own = await ownDatabase()
    const first = makePool({ connectionString: own.url }, 2, () => {})
    const session = await first.connect() // a pool gives up the session of a statement that failed
    await migrate(first, new Date().toISOString())
    await beginAudit(first, testKeys)
    const taken = () => session.query('delete from audit_head')
    await assert.rejects(taken, /audit/)
    await own.set(ofDatabase)
    const asSuperuser = makePool({ connectionString: own.superuserUrl }, 1, () => {})
    const asKeeper = makePool({ connectionString: own.url }, 1, () => {})
    try {
      // One that began before stays what it was.
      await assert.rejects(taken, /audit/)
      await assert.rejects(asSuperuser.query('delete from audit_head'), /audit/)
      for (const statement of ['delete from audit_head', 'select 1'])
        await assert.rejects(asKeeper.query(statement), (error: Error) => refused.test(error.message) && isUnavailable(error))
      assert.equal((await first.query('select from audit_head')).rowCount, 1)
      const { findings } = await verify(first, testKeys)
      assert.deepEqual(findings, [
        'In the database, the setting session_replication_role=replica of all roles was not made by Tollgate.',
      ])
      await own.set('alter database $name reset session_replication_role', ofRole)
      assert.deepEqual((await verify(first, testKeys)).findings, [
        'In the database, the setting session_replication_role=replica of keeper was not made by Tollgate.',
      ])
      await own.set('alter role keeper in database $name reset session_replication_role')
      await own.set('alter role keeper set session_replication_role = replica')
      assert.deepEqual((await verify(first, testKeys)).findings, [
        'In the database, the setting session_replication_role=replica of keeper was not made by Tollgate.',
      ])
      // Somebody else's, elsewhere, is no finding.
      await own.set('alter role keeper reset session_replication_role', 'create role other')
      await own.set(
        'alter role other set session_replication_role = replica',
        'alter database postgres set session_replication_role = replica',
      )
      assert.deepEqual((await verify(first, testKeys)).findings, [])
      await own.set('alter role keeper in database $name set session_replication_role = local')
      assert.deepEqual((await verify(first, testKeys)).findings, [])
      await assert.rejects(asKeeper.query('delete from audit_head'), /audit/) // in which they act
    } finally {
      session.release()
      for (const pool of [first, asSuperuser, asKeeper]) await pool.end()
    }
  })
})

describe('a database that cannot be used is told in a sentence', () => {
  /** `make`: statements on a new database. */
  const refusalOf = async (options: string, ...make: readonly string[]): Promise<string> => {
    const beside = await makeDatabase()
    const name = `test_${randomUUID().replaceAll('-', '')}`
    const url = new URL(databaseUrl(beside.connection))
    url.pathname = `/${name}`
    try {
      await withPool(beside.connection, pool => pool.query(`create database ${name} template template0 ${options}`))
      await withPool({ connectionString: url.href }, async pool => {
        for (const statement of make) await pool.query(statement.replace('$name', name))
      })
      const environment = { DATABASE_URL: url.href, DATA_DIR: join(folder, name) }
      return await startProcess(environment).then(
        async started => assert.fail(`it started: ${await started.stop()}`),
        (error: Error) => error.message,
      )
    } finally {
      await withPool(beside.connection, pool => dropDatabase(pool, name))
      await beside.drop()
    }
  }
  const cases: Record<string, [sentence: RegExp, options: string, ...make: string[]]> = {
    'of another encoding': [
      /is encoded in LATIN1: make one with encoding 'UTF8'/,
      `encoding 'LATIN1' locale_provider libc lc_collate 'C' lc_ctype 'C'`,
    ],
    'that takes no writes': [/takes no writes/, '', 'alter database $name set default_transaction_read_only = on'],
    "of another program, with a table of one's name": [
      /cannot be used: relation "audit" already exists\. .*a database of its own/,
      '',
      'create table audit (id int)',
    ],
    'of another program with migrations': [
      /cannot be used: .* a database of its own/,
      '',
      'create table migrations (version int)',
    ],
    'of another program with a table of its mode': [
      /cannot be used: .* a database of its own/,
      '',
      'create table installation (id int primary key)',
      'insert into installation values (1)',
    ],
    'in which nothing may be made': [
      /cannot be used: permission denied/,
      '',
      'revoke all on schema public from public',
      'create schema own',
      'alter database $name set search_path = pg_catalog',
    ],
  }
  for (const [what, [sentence, options, ...make]] of Object.entries(cases))
    it(what, async () => {
      const told = await refusalOf(options, ...make)
      assert.match(told, /^it ended with 1:\nTollgate cannot start\.\n/)
      assert.match(told, sentence)
      assert.doesNotMatch(told, /\n\s+at /)
    })
})
