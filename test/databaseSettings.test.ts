// What a database was set to, what it is made of and whose it is: settings change nothing of what the gateway reads, and a database that cannot be
// used is told in a sentence.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { systemClock } from '../src/platform/clock.ts'
import { connect, poolNames } from '../src/platform/database/connect.ts'
import { databaseUrl, makeDatabase, type TestDatabase, withPool } from './support/database.ts'
import { eventually } from './support/gateway.ts'
import { postgresServers } from './support/postgres.ts'
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
]

const triggersRest = /is set to session_replication_role = replica, .* Let a superuser reset it/

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
                  $2::text[] as list, null = null is null as unknown, extract(hour from $1::timestamptz)::int as hour`,
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

  it('that have triggers and foreign keys do nothing are refused by every connection, and at a start', async () => {
    const servers = postgresServers()
    try {
      const server = await servers.server()
      await server.make('resting')
      await server.pool.query('create role gate login superuser')
      const connectionString = server.urlOf('resting', 'gate')
      for (const [whose, role] of [
        ['database', 'local'],
        ['database', 'replica'],
        ['role', 'origin'],
        ['role', 'replica'],
      ] as const) {
        await server.pool.query('alter database resting reset all')
        await server.pool.query(
          `alter ${whose === 'role' ? 'role gate' : 'database resting'} set session_replication_role = ${role}`,
        )
        const connected = connect({ connectionString }, systemClock, () => {})
        for (const name of poolNames) {
          const asked = connected[name].query('select 1 as one')
          if (role === 'replica') await assert.rejects(asked, triggersRest, name)
          else assert.equal((await asked).rows.length, 1, name)
        }
        await connected.close()
      }
      const environment = { DATABASE_URL: connectionString, DATA_DIR: join(folder, 'resting') }
      await assert.rejects(startProcess(environment), (error: Error) => {
        assert.match(error.message, /^it ended with 1:\nTollgate cannot start\.\nThe database, or the role, is set to/)
        return triggersRest.test(error.message)
      })
      const verified = await commandLine(environment, 'audit', 'verify')
      assert.equal(verified.code, 1)
      assert.match(verified.out, /^The database, or the role, is set to/)
    } finally {
      await servers.stop()
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
      await withPool(beside.connection, pool => pool.query(`drop database if exists ${name} with (force)`))
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
