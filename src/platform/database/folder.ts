// DATA_DIR belongs to one gateway at a time. The lock names its holder, so that a dead holder's lock can be taken over,
// and the holder alone may stop what that one left running. Processes of another container or machine cannot be seen: their
// holder shows in the lock itself that it lives.
import { randomUUID } from 'node:crypto'
import {
  accessSync,
  closeSync,
  constants,
  fstatSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../clock.ts'
import { OperatorError } from '../errors.ts'
import { whoMayPlace } from '../files.ts'
import { isSameProcess, processIdentity, processPlace } from './running.ts'

/** What people can mend themselves: the message is written for them and says which folder and what to do. */
export class FolderError extends OperatorError {}

/** By a process that cannot be seen from here. */
class HeldElsewhere extends FolderError {
  readonly holder: Sighting
  constructor(folder: string, holder: Sighting) {
    super(
      `The folder ${folder} is in use by another gateway, of another container or machine (pid ${holder.pid} there). Stop that one first, or give this one its own ` +
        `DATA_DIR; if it died, start this one again when nobody has written to gateway.lock for ${silentMs / 1000} seconds.`,
    )
    this.holder = holder
  }
}

/** So often a holder shows that it lives, and after so long a silence one that cannot be seen is dead. */
const touchMs = 5_000
export const silentMs = 30_000
/** Where its lock looks as old as that, so long a silence is enough: the clock of the file system may have been set in this moment. */
const watchedMs = 12_000

export type FolderClaim = { release(): void }

/**
 * Makes DATA_DIR if it is missing (mode 0700) and takes it for this process. Throws FolderError when it cannot be ours. Whoever loses it later ends: two must
 * not work on the same files.
 */
export function claimFolder(dataDir: string, isSilent: IsSilent = () => false): FolderClaim {
  const folder = makeFolder(dataDir)
  const lock = join(folder, 'gateway.lock')
  const holder = orNotWritable(folder, () => takeLock(lock, isSilent))
  if (holder !== undefined) {
    if (!isHere(holder)) throw new HeldElsewhere(folder, holder)
    const who = holder.pid === process.pid ? `this process (pid ${holder.pid})` : `another gateway (pid ${holder.pid})`
    throw new FolderError(`The folder ${folder} is in use by ${who}. Stop that one first, or give this one its own DATA_DIR.`)
  }
  claimed.add(folder)
  const text = ownText()
  const touching = systemClock.every(touchMs, () => {
    if (touch(lock, text)) return
    touching.cancel()
    process.stderr.write(`${lock} is another's by now, or gone: this process ends, as two must not work in ${folder}.\n`)
    process.kill(process.pid, 'SIGTERM')
  })
  return {
    release() {
      if (!claimed.delete(folder)) return
      touching.cancel()
      if (readHolder(lock)?.text === text) unlinkSync(lock)
    },
  }
}

/** As claimFolder, for a start: a container that was killed is often followed by the next one at once, which waits until the dead one's silence is long enough. */
export const claimWhenSilent = (dataDir: string, say: (text: string) => void, signal: AbortSignal): Promise<FolderClaim> =>
  claimWatching(dataDir, say, () => true, signal)

/** As claimFolder, for a command: it waits for nobody who was seen alive a moment ago. */
export const claimForCommand = (dataDir: string, say: (text: string) => void): Promise<FolderClaim> =>
  claimWatching(dataDir, say, ({ age }) => age < 0 || age >= silentMs)

/** Who touches the lock meanwhile lives. */
async function claimWatching(
  dataDir: string,
  say: (text: string) => void,
  isWorthIt: (holder: Sighting) => boolean,
  signal?: AbortSignal,
): Promise<FolderClaim> {
  const isSilent = watching()
  for (let first: Sighting | undefined; ; await systemClock.sleep(500, signal)) {
    try {
      return claimFolder(dataDir, isSilent)
    } catch (error) {
      if (!(error instanceof HeldElsewhere) || !(first ? isUntouched(first, error.holder) : isWorthIt(error.holder))) throw error
      if (first === undefined)
        say(`Looking whether the gateway of another container or machine that had ${dataDir} still lives ...`)
      first = error.holder
    }
  }
}

/** Whether this process holds the claim on the folder (its real path). */
export function holdsFolder(folder: string): boolean {
  return claimed.has(folder)
}

const claimed = new Set<string>()

/** The real path of DATA_DIR, which is made if it is missing. Throws FolderError when it cannot be ours. */
export function makeFolder(dataDir: string): string {
  refuseOpen(dataDir)
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST' || code === 'ENOTDIR') throw new FolderError(`${dataDir} is not a folder. Set DATA_DIR to a folder.`)
    throw new FolderError(`The folder ${dataDir} cannot be made by user ${ownName()} (${code}). Make it, or set DATA_DIR.`)
  }
  const folder = orNotWritable(dataDir, () => realpathSync(dataDir))
  orNotWritable(folder, () => accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK))
  refuseOpen(dataDir)
  refuseStrangers(folder)
  return folder
}

/** Whoever may put names into the folder, or another folder in its place, could have root write, read and open to others what a link of theirs leads to. */
export function refuseOpen(dataDir: string): void {
  const who = process.getuid?.() === 0 ? whoMayPlace(dataDir, { strict: false }) : undefined
  if (who !== undefined)
    throw new FolderError(
      `DATA_DIR names ${dataDir}, which ${who}. Root works in no such folder: give this as the user whose it is, or put DATA_DIR elsewhere.`,
    )
}

/** Their owner could replace what we write there. */
function refuseStrangers(folder: string): void {
  const { uid } = statSync(folder)
  if (uid !== (process.getuid?.() ?? uid) && uid !== 0)
    throw new FolderError(
      `The folder ${folder} belongs to user ${uid}, who could replace what ${ownName()} writes there: start the gateway as that user, or take it over (chown ${ownName()} ${folder}; chmod go-w ${folder}).`,
    )
}

function orNotWritable<T>(folder: string, act: () => T): T {
  try {
    return act()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === undefined) throw error
    throw new FolderError(`The folder ${folder} is not writable for user ${ownName()} (${code}${ownerHint(folder)}).`)
  }
}

function ownerHint(folder: string): string {
  try {
    const { uid, mode } = statSync(folder)
    return `; it belongs to uid ${uid}, mode ${(mode & 0o777).toString(8).padStart(4, '0')}`
  } catch {
    return ''
  }
}

function ownName(): string {
  try {
    return userInfo().username
  } catch {
    return String(process.getuid?.()) // a uid without an entry in the user table, as containers have
  }
}

/** `place`: where the pid names it; '' of a release that did not write it. */
type Holder = { pid: number; identity: string; place: string; text: string; touchedAt: number }
/** `age`: of its last sign, by the clock of the file system that has the lock: those of two machines may be apart. Below 0 where that clock was put back. */
type Sighting = Holder & { age: number }

const isHere = ({ place }: Holder): boolean => place === '' || place === processPlace()

const isUntouched = (before: Holder, now: Holder): boolean => before.text === now.text && before.touchedAt === now.touchedAt

/** Whether who holds a lock and cannot be seen from here is dead. */
type IsSilent = (lock: string, holder: Sighting) => boolean

/** For who looks again and again: by its own clock, which nobody sets, a lock has stood untouched for long enough. When in doubt its holder lives. */
export function watching(): IsSilent {
  const watched = new Map<string, { holder: Sighting; since: number }>()
  return (lock, holder) => {
    const before = watched.get(lock)
    const now = systemClock.elapsed()
    if (before !== undefined && isUntouched(before.holder, holder))
      return now - before.since >= (holder.age >= silentMs ? watchedMs : silentMs)
    watched.set(lock, { holder, since: now })
    return false
  }
}

/**
 * Takes the lock for this process, or answers with the living holder. The lock appears with its content in one step (a
 * hard link to a file already written), and the lock of a dead holder is replaced only by whoever holds `<lock>.next`,
 * itself such a lock: of many starters at the same instant exactly one replaces it, the others then see a living holder.
 */
export function takeLock(lock: string, isSilent: IsSilent): Sighting | undefined {
  const mine = `${lock}.${process.pid}-${randomUUID()}`
  writeFileSync(mine, ownText(), { flag: 'wx', mode: 0o644 }) // readable: another user must be able to see who holds it
  try {
    for (;;) {
      if (linked(mine, lock)) return undefined
      const found = readHolder(lock)
      if (found === undefined) continue // released in this moment
      const seen = { ...found, age: statSync(mine).mtimeMs - found.touchedAt }
      if (isHere(found) ? isSameProcess(found.pid, found.identity) : !isSilent(lock, seen)) return seen
      const replacing = takeLock(`${lock}.next`, isSilent)
      if (replacing !== undefined) {
        if (!isHere(replacing)) return seen // it is looked at again, as the lock is
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5)
        continue
      }
      try {
        const again = readHolder(lock)
        if (again === undefined || !isUntouched(found, again)) continue // someone was faster, or lives
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

function linked(from: string, to: string): boolean {
  try {
    linkSync(from, to)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/** The lock's content; a text that names nobody (cut short by a power failure) belongs to pid 0, who never lives. */
function readHolder(lock: string): Holder | undefined {
  try {
    return withFile(lock, 'r', handle => {
      const text = readFileSync(handle, 'utf8')
      const [pid, identity = '', place = ''] = text.split('\n')
      return { pid: Number(pid) || 0, identity, place, text, touchedAt: fstatSync(handle).mtimeMs }
    })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** The same bytes again, if they are still there: never into the lock of who took it over, and a reader never finds a part. → whether the lock is still its own. */
function touch(lock: string, text: string): boolean {
  try {
    return withFile(lock, 'r+', handle => readFileSync(handle, 'utf8') === text && writeSync(handle, text, 0) > 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOENT' // what cannot be written now is tried again
  }
}

function withFile<Value>(path: string, flags: string, work: (handle: number) => Value): Value {
  const handle = openSync(path, flags)
  try {
    return work(handle)
  } finally {
    closeSync(handle) // a network's file system tells others of it no later
  }
}

function ownText(): string {
  return `${process.pid}\n${processIdentity(process.pid)}\n${processPlace()}\n`
}
