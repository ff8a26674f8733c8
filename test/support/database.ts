// A migrated database of its own for each test file, cloned from a template. The whole run shares one server, started by scripts/test.ts;
// a test file that is run alone starts its own.

import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { type EmbeddedDatabase, startEmbedded } from '../../src/platform/database/embedded.ts'
import { claimFolder } from '../../src/platform/database/folder.ts'
import { migrate } from '../../src/platform/database/migrate.ts'

export type TestDatabase = { readonly connection: pg.PoolConfig; drop(): Promise<void> }
export type TestServer = {
  readonly connection: pg.PoolConfig
  /** The template: all migrations and no rows, to be read only. */
  readonly migrated: pg.PoolConfig
  /** The files of an embedded server whose database is as the template is: what a process begins with faster than with none. */
  readonly cluster?: string
  stop(): Promise<void>
}

const template = 'tollgate_template'

/** A server in a temporary folder, with the template made. `forProcesses`: with the files for servers of processes. */
export async function startTestServer({ forProcesses = false } = {}): Promise<TestServer> {
  const given = process.env.TEST_DATABASE_URL
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-test-'))
  const claim = given ? undefined : claimFolder(folder)
  const startHere = () => startEmbedded({ dataDir: folder, say: () => {}, fast: true })
  const cluster = forProcesses && claim ? join(folder, 'cluster') : undefined
  if (cluster) {
    const first = await startHere()
    await withPool(connectionTo(first), pool => migrate(pool, new Date().toISOString()))
    await first.stop()
    copyCluster(join(folder, 'postgres'), cluster)
  }
  const server = claim && (await startHere())
  const connection: pg.PoolConfig = server ? connectionTo(server) : { connectionString: given }
  await withPool(connection, async pool => {
    await pool.query(`drop database if exists ${template}`)
    await pool.query(`create database ${template}`)
  })
  await withPool(inDatabase(connection, template), pool => migrate(pool, new Date().toISOString()))
  return {
    connection,
    migrated: inDatabase(connection, template),
    ...(cluster && { cluster }),
    async stop() {
      await server?.stop()
      claim?.release()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

const connectionTo = ({ host, port, user, database }: EmbeddedDatabase): pg.PoolConfig => ({
  host,
  port,
  user,
  database,
  ssl: false,
})

/** With its owner, who may be another than ours. */
export const copyCluster = (from: string, to: string): void => {
  execFileSync('cp', ['-a', from, to])
}

/** Drops what tests that were killed have left on a server of their own. */
export async function dropDatabases(connection: pg.PoolConfig): Promise<void> {
  await withPool(connection, async pool => {
    const { rows } = await pool.query<{ name: string }>(`select datname as name from pg_database where datname like 'test\\_%'`)
    for (const { name } of rows) await dropDatabase(pool, name)
  })
}

/** A copy beside it, as a backup is kept: nobody may work in it. */
export function keepCopy(connection: pg.PoolConfig): Promise<void> {
  return beside(connection, async (pool, name) => {
    await dropDatabase(pool, `${name}_kept`)
    await pool.query(`create database ${name}_kept template ${name}`)
  })
}

/** The copy in its place: nobody may work in either. */
export function putBack(connection: pg.PoolConfig): Promise<void> {
  return beside(connection, async (pool, name) => {
    await dropDatabase(pool, name)
    await pool.query(`alter database ${name}_kept rename to ${name}`)
  })
}

function beside(connection: pg.PoolConfig, work: (pool: pg.Pool, name: string) => Promise<void>): Promise<void> {
  const name = connection.database ?? new URL(connection.connectionString!).pathname.slice(1)
  return withPool(inDatabase(connection, 'postgres'), pool => work(pool, name))
}

/** A worker of autovacuum may be at it, which this role cannot end: it is soon done by itself. */
export async function dropDatabase(pool: pg.Pool, name: string): Promise<void> {
  for (let tries = 0; ; tries++) {
    const failed = await pool.query(`drop database if exists ${name} with (force)`).then(
      () => undefined,
      (error: Error & { code?: string }) => error,
    )
    if (!failed) return
    if (failed.code !== '42501' || tries === 40) throw failed
    await new Promise(resolve => setTimeout(resolve, 250))
  }
}

/** A fresh database with the schema and no rows. */
export async function makeDatabase(): Promise<TestDatabase> {
  const shared = process.env.TEST_SERVER
  const own = shared ? undefined : await startTestServer()
  const connection: pg.PoolConfig = own ? own.connection : JSON.parse(shared!)
  const name = `test_${randomUUID().replaceAll('-', '')}`
  await withPool(connection, pool => pool.query(`create database ${name} template ${template}`))
  return {
    connection: inDatabase(connection, name),
    async drop() {
      await withPool(connection, pool => dropDatabase(pool, name))
      await own?.stop()
    },
  }
}

function inDatabase(connection: pg.PoolConfig, database: string): pg.PoolConfig {
  if (connection.connectionString === undefined) return { ...connection, database }
  const url = new URL(connection.connectionString)
  url.pathname = `/${database}`
  return { connectionString: url.href }
}

/** Its connections may be ended under it, when the database is dropped. */
export function testPool(connection: pg.PoolConfig, max: number): pg.Pool {
  const pool = new pg.Pool({ max, ...connection })
  pool.on('error', () => {})
  return pool
}

/** What DATABASE_URL takes. */
export function databaseUrl({ connectionString, host, port, user, database }: pg.PoolConfig): string {
  return connectionString ?? `postgresql://${user}@localhost/${database}?host=${encodeURIComponent(host!)}&port=${port}`
}

export async function withPool<Value>(connection: pg.PoolConfig, work: (pool: pg.Pool) => Promise<Value>): Promise<Value> {
  const pool = testPool(connection, 1)
  try {
    return await work(pool)
  } finally {
    await pool.end()
  }
}
