// Installs the locked packages when they are missing or out of date: `node scripts/setup.mjs run|all`, called by npm before
// start, test and the like. 'run' is what the gateway needs, 'all' has the development tools too. Plain JavaScript,
// because it runs on the machine's own Node, 20 or later, before there is another. It never removes what another command of
// this clone works with: it only adds, and changes nothing that a gateway of this clone runs on.
import { execFileSync, spawnSync } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { existsSync, linkSync, readdirSync, readFileSync, renameSync, rmSync, statSync, unlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

process.on('SIGUSR1', () => {}) // which would open this process to everybody on the machine
const root = dirname(dirname(fileURLToPath(import.meta.url)))
const modules = join(root, 'node_modules')
const stampFile = join(modules, '.tollgate-setup.json')
const lockFile = join(root, '.tollgate-setup.lock')

const asked = process.argv[2]
if (asked !== 'run' && asked !== 'all') fail('Usage: node scripts/setup.mjs run|all')
if (!satisfied(asked)) oneAtATime(() => satisfied(asked) || install(asked))
checkNode()

// ---- Is there anything to do?

/** Whether node_modules holds what is asked for. The stamp is the short way; the long way also knows an installation by hand. */
function satisfied(set) {
  const stamp = readJson(stampFile)
  const hash = lockHash()
  if (!hasPackages()) return false
  if (stamp && stampFits(stamp, { hash, tree: treeState(), set })) return true
  if (stamp?.unfinished) return false
  // A package that is optional here may have been left out on purpose by who installs by hand (npm ci --omit=optional); not
  // so by an earlier set-up from another lock file.
  const excuseOptional = stamp === undefined || stamp.hash === hash
  const lacks = what => missing(lockedPackages(), installedPackages(), what, excuseOptional).length > 0
  if (lacks(set)) return false
  writeStamp({ hash, tree: treeState(), set: lacks('all') ? set : 'all' })
  return true
}

/** The stamp speaks of this lock file, this set and this state of node_modules, and the installation came to its end. */
function stampFits(stamp, { hash, tree, set }) {
  return !stamp.unfinished && stamp.hash === hash && stamp.tree === tree && (stamp.set === 'all' || stamp.set === set)
}

/** The names of locked packages that this machine needs for the set and that are not there, or in another version. */
function missing(locked, installed, set, excuseOptional) {
  return Object.entries(locked)
    .filter(([path, wanted]) => {
      if (path === '' || wanted.link || !fitsMachine(wanted)) return false
      if (set === 'run' && wanted.dev) return false
      const found = installed[path]
      if (found === undefined) return !((wanted.optional || wanted.devOptional) && excuseOptional)
      return found.version !== wanted.version || (found.integrity ?? wanted.integrity) !== (wanted.integrity ?? found.integrity)
    })
    .map(([path]) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length))
}

/** Packages with programs in them name the systems they are for; npm leaves the others out. */
function fitsMachine({ os, cpu, libc }) {
  if (!named(os, process.platform) || !named(cpu, process.arch)) return false
  return !libc || (process.platform === 'linux' && named(libc, ownLibc()))
}

/** npm's lists: names that fit, or names with '!' before them that do not; one name may stand without a list. */
function named(list, own) {
  const names = [list ?? []].flat()
  if (names.includes(`!${own}`)) return false
  return names.includes(own) || names.every(name => name.startsWith('!'))
}

function ownLibc() {
  process.report.excludeNetwork = true // or it looks up names, which takes seconds without network
  return process.report.getReport().header.glibcVersionRuntime ? 'glibc' : 'musl'
}

function lockHash() {
  return createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex')
}

function lockedPackages() {
  return readJson(join(root, 'package-lock.json'))?.packages ?? {}
}

/** What npm wrote down about node_modules at the end of its last installation; nothing when that never ended. */
function installedPackages() {
  return readJson(join(modules, '.package-lock.json'))?.packages ?? {}
}

function hasPackages() {
  return existsSync(join(modules, '.package-lock.json'))
}

function hasTools() {
  return Object.values(installedPackages()).some(({ dev }) => dev)
}

/** Changes whenever npm changes node_modules, which is how a stamp notices an `npm prune` or `npm install` by hand. */
function treeState() {
  const { mtimeMs, size } = statSync(join(modules, '.package-lock.json'))
  return `${mtimeMs}/${size}`
}

function writeStamp(stamp) {
  try {
    writeFileSync(stampFile, `${JSON.stringify(stamp)}\n`)
  } catch {
    // Not ours to write: then every start compares the versions, which takes a few ms.
  }
}

function readJson(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch {
    return undefined
  }
}

// ---- Installing

function install(set) {
  const gateways = runningGateways()
  // Tools come beside what a gateway runs on, and leave that as it is.
  const touched = gateways.length > 0 ? missing(lockedPackages(), installedPackages(), 'run', true) : []
  if (touched.length > 0) {
    fail(
      'The packages in node_modules do not match package-lock.json, but a gateway of this folder is running ' +
        `(pid ${gateways.join(', ')}).`,
      'Nothing was changed. Stop the gateway, then try again.',
    )
  }
  // Only ever adds: where the tools are, or have been asked for before, they stay.
  const whole = set === 'all' || readJson(stampFile)?.set === 'all' || hasTools()
  // `npm ci` begins by deleting node_modules, so it is for the first time only: without network an update must not cost
  // what is there. `npm install` puts the locked versions too, and undoes what it did when it fails.
  const fresh = !hasPackages()
  const args = [
    ...(fresh ? ['ci'] : ['install', '--no-save']),
    whole ? '--include=dev' : '--omit=dev',
    '--prefer-offline',
    '--no-audit',
    '--no-fund',
    '--loglevel=error',
  ]
  const before = readJson(stampFile)
  if (!fresh) writeStamp({ ...before, unfinished: true }) // what a killed npm leaves must not pass for either version
  console.error(`Installing the locked packages (npm ${args.slice(0, fresh ? 2 : 3).join(' ')}) ...`)
  const { status, signal, error } = spawnSync('npm', args, { cwd: root, stdio: ['ignore', 2, 2] })
  if (status !== 0) {
    if (before && status !== null) writeStamp(before)
    else if (status !== null) rmSync(stampFile, { force: true })
    const reason = error?.code ?? signal ?? `status ${status}`
    fail(
      `The packages could not be installed: \`npm ${args.join(' ')}\` in ${root} failed (${reason}).`,
      'The network, or a registry that has the packages, is needed this once; afterwards everything works without. ' +
        'If npm named another reason above, mend that and try again.',
    )
  }
  const packages = lockedPackages()
  const absent = missing(packages, installedPackages(), whole ? 'all' : set, true)
  if (absent.length > 0) {
    fail(
      `npm ended well, but these are not installed as package-lock.json says: ${absent.join(', ')}.`,
      'Run `npm ci`. If that does not help, package.json and package-lock.json do not belong together.',
    )
  }
  const left = missing(packages, installedPackages(), set, false).join(', ')
  if (left !== '') console.error(`Not installed, because npm could not get them or was told to omit them: ${left}.`)
  writeStamp({ hash: lockHash(), tree: treeState(), set: whole ? 'all' : set })
}

/** The pids of gateways of this clone that are alive; the marks of dead ones are removed. See src/platform/database/running.ts. */
function runningGateways() {
  if (!existsSync(modules)) return []
  return readdirSync(modules).flatMap(name => {
    const pid = Number(/^\.tollgate-running-(\d+)$/.exec(name)?.[1])
    if (!pid) return []
    const mark = join(modules, name)
    if (isSameProcess(pid, readText(mark)?.trim() ?? '')) return [pid]
    rmSync(mark, { force: true })
    return []
  })
}

/** The gateway is TypeScript run unbuilt, which needs Node 24; the packages bring one for most machines. */
function checkNode() {
  const own = join(modules, '.bin', 'node')
  if (existsSync(own) || Number(process.versions.node.split('.')[0]) >= 24) return
  fail(
    `Node 24 is needed, but this is ${process.version}, and node_modules has none for ${process.platform}-${process.arch}.`,
    'Install Node 24 or later (nodejs.org), then try again.',
  )
}

// ---- One set-up at a time. The same way as src/platform/database/folder.ts, which says why.

function oneAtATime(act) {
  let told = false
  try {
    for (let holder = take(lockFile); holder !== undefined; holder = take(lockFile)) {
      if (!told) console.error(`Waiting for another set-up of this folder (pid ${holder.pid}) ...`)
      told = true
      sleep(200)
    }
  } catch (error) {
    fail(
      `The packages must be installed, but ${root} cannot be written to (${error.code ?? error}).`,
      'Run this as the owner of that folder.',
    )
  }
  process.on('exit', () => rmSync(lockFile, { force: true })) // also when it fails
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1))
  act()
}

function take(lock) {
  const own = `${process.pid}\n${processIdentity(process.pid)}\n`
  const mine = `${lock}.${process.pid}-${randomUUID()}`
  writeFileSync(mine, own, { flag: 'wx' })
  try {
    for (;;) {
      if (linked(mine, lock)) return undefined
      const text = readText(lock)
      if (text === undefined) continue
      const [pid, identity] = text.split('\n')
      if (isSameProcess(Number(pid), identity)) return { pid }
      if (take(`${lock}.next`) !== undefined) {
        sleep(5)
        continue
      }
      try {
        if (readText(lock) !== text) continue
        renameSync(mine, lock)
        return undefined
      } finally {
        unlinkSync(`${lock}.next`)
      }
    }
  } finally {
    rmSync(mine, { force: true })
  }
}

function linked(from, to) {
  try {
    linkSync(from, to)
    return true
  } catch (error) {
    if (error.code === 'EEXIST') return false
    throw error
  }
}

// ---- Whether a process is alive: the same lines as src/platform/database/running.ts, which this Node may not be able to read.

function isSameProcess(pid, identity) {
  const now = processIdentity(pid)
  return now !== undefined && (now === identity || now === 'alive' || identity === 'alive')
}

function processIdentity(pid) {
  if (!exists(pid)) return undefined
  try {
    if (process.platform !== 'linux') {
      const env = { PATH: process.env.PATH ?? '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' }
      return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8', env }).trim() || undefined
    }
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    if (fields[0] === 'Z' || fields[0] === 'X') return undefined
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}/${fields[19]}`
  } catch {
    return exists(pid) ? 'alive' : undefined
  }
}

function exists(pid) {
  if (!Number.isSafeInteger(pid) || pid <= 0) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}

// ---- Small things

function readText(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (error.code === 'ENOENT') return undefined
    throw error
  }
}

function sleep(ms) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

function fail(...lines) {
  for (const line of lines) console.error(line)
  process.exit(1)
}
