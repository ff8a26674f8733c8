// Servers of PostgreSQL beside each other, with settings of their own and a TCP port: what follows another, and what is followed. POSTGRES_BIN names the programs of
// another version than the embedded one.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  chownSync,
  closeSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type pg from 'pg'
import { makePool } from '../../src/platform/database/connect.ts'
import { findBinaries } from '../../src/platform/database/embedded/binaries.ts'
import { migrate } from '../../src/platform/database/migrate.ts'
import { copyCluster, type TestDatabase } from './database.ts'
import { freePort } from './freePort.ts'
import { eventually } from './gateway.ts'

const given = process.env.POSTGRES_BIN
const binaries = given ? { postgres: join(given, 'postgres'), initdb: join(given, 'initdb') } : findBinaries()
const isRoot = process.getuid?.() === 0
const idOf = (what: string) => Number(execFileSync('id', [what, 'nobody'], { encoding: 'utf8' }))
const account = isRoot ? { uid: idOf('-u'), gid: idOf('-g') } : {}
const environment = { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' }

export type PostgresServer = {
  readonly port: number
  readonly folder: string
  /** As superuser, in `postgres` unless another database is named. */
  readonly pool: pg.Pool
  urlOf(database: string, role?: string): string
  /** An empty database. */
  makeEmpty(name: string): Promise<TestDatabase>
  /** A database with the schema, as superuser. */
  make(name: string): Promise<TestDatabase>
  /** Nothing answers any more, and no connection is closed. */
  stall(): void
  goOn(): void
  stop(): Promise<void>
  /** Again on the same files and port. */
  start(): Promise<void>
}

export type PostgresServers = {
  /** `from`: a standby made of the files of a server that is stopped. */
  server(settings?: readonly string[], from?: PostgresServer): Promise<PostgresServer>
  stop(): Promise<void>
}

export function postgresServers(): PostgresServers {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-servers-'))
  chmodSync(folder, 0o755)
  if (isRoot) chownSync(folder, account.uid!, account.gid!)
  const first = join(folder, 'empty')
  const words = ['-D', first, '-U', 'postgres', '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync']
  execFileSync(binaries.initdb, words, { ...account, cwd: '/', env: environment, stdio: 'pipe' })
  const servers: PostgresServer[] = []
  return {
    async server(settings = [], from) {
      const place = join(folder, String(servers.length))
      copyCluster(from?.folder ?? first, place)
      if (from) {
        writeFileSync(join(place, 'standby.signal'), '')
        rmSync(join(place, 'postmaster.pid'), { force: true })
      }
      const port = await freePort()
      const options = [
        ...[`listen_addresses='127.0.0.1'`, `port=${port}`, `unix_socket_directories=''`, 'fsync=off', 'max_connections=100'],
        ...['wal_level=logical', 'max_slot_wal_keep_size=1GB', 'wal_retrieve_retry_interval=200ms', 'shared_buffers=32MB'],
        ...(from ? [`primary_conninfo='host=127.0.0.1 port=${from.port} user=postgres'`] : []),
        ...settings,
      ]
      appendFileSync(join(place, 'postgresql.conf'), `\n${options.join('\n')}\n`)
      const server = await serverOn(place, port)
      servers.push(server)
      return server
    },
    async stop() {
      // Who follows first: a server that ends waits until all is sent to whom it knows.
      for (const server of servers.reverse()) await server.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function serverOn(folder: string, port: number): Promise<PostgresServer> {
  const log = `${folder}.log`
  let child: ChildProcess | undefined
  let ended: Promise<void> = Promise.resolve()
  const connection = { host: '127.0.0.1', port, user: 'postgres', ssl: false }
  const pool = makePool({ ...connection, database: 'postgres' }, 2, () => {})
  async function start(): Promise<void> {
    const handle = openSync(log, 'a')
    child = spawn(binaries.postgres, ['-D', folder], {
      ...account,
      cwd: '/',
      env: environment,
      stdio: ['ignore', handle, handle],
    })
    closeSync(handle)
    ended = new Promise(resolve => child!.once('exit', () => resolve()))
    await eventually(async () => {
      if (child!.exitCode !== null) throw new Error(readFileSync(log, 'utf8'))
      return (await pool.query('select 1').catch(() => undefined)) !== undefined
    }, `a server starts: ${log}`)
  }
  /** Its sessions are processes of their own. */
  const signalAll = (signal: NodeJS.Signals): void => {
    const sessions = execFileSync('ps', ['-o', 'pid=', '--ppid', String(child!.pid)], { encoding: 'utf8' })
      .trim()
      .split(/\s+/)
    for (const pid of [child!.pid!, ...sessions.map(Number)]) process.kill(pid, signal)
  }
  await start()
  const urlOf = (database: string, role = 'postgres') => `postgresql://${role}@127.0.0.1:${port}/${database}?sslmode=disable`
  const makeEmpty = async (name: string): Promise<TestDatabase> => {
    await pool.query(`create database ${name}`)
    return { connection: { connectionString: urlOf(name) }, drop: async () => {} }
  }
  return {
    port,
    folder,
    pool,
    urlOf,
    makeEmpty,
    async make(name) {
      const made = await makeEmpty(name)
      const own = makePool(made.connection, 1, () => {})
      await migrate(own, new Date().toISOString())
      await own.end()
      return made
    },
    stall: () => signalAll('SIGSTOP'),
    goOn: () => signalAll('SIGCONT'),
    start,
    async stop() {
      if (child!.exitCode === null) child!.kill('SIGINT')
      await ended
    },
  }
}
