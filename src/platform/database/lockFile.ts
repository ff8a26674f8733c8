// Lock files that name their holder, so that a dead one's can be taken over. In another container or on another machine a pid says nothing: there a pipe beside the
// lock shows who lives, because the kernel knows whether anybody has it open. Where that cannot be known the holder lives.

import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  linkSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { childEnvironment } from '../childEnvironment.ts'
import { bootName, isSameProcess, processIdentity, processPlace } from './running.ts'

/** A lock that this process has. */
export type LockFile = {
  /** Its sign of life: a child that is given it too keeps the lock from being anybody's, also when this process is dead. */
  readonly sign: number
  /** Shows when its holder last lived, and puts back a lock that is merely gone. → false when another has it, or had it meanwhile. */
  renew(): boolean
  release(): void
}

/** Who has a lock. `place`: where the pid names it; '' of a release that did not write it. `kernel`: see kernelOf. */
export type Holder = {
  readonly lock: string
  readonly pid: number
  readonly identity: string
  readonly place: string
  readonly kernel: string
  readonly sign: string
  readonly text: string
  readonly touchedAt: number
  /** 'unknown': nothing that can be seen from here tells. */
  readonly life: 'seen' | 'unknown' | 'over'
}

export const isHere = ({ place }: Pick<Holder, 'place'>): boolean => place === '' || place === processPlace()

/** Takes the lock for this process, or answers with the holder, who lives or may live; then nothing has been written. */
export function takeLock(lock: string): LockFile | Holder {
  const before = readHolder(lock) ?? withoutLock(lock)
  if (before !== undefined && before.life !== 'over') return before
  const sign = signOf(lock)
  makeSign(sign)
  let handle: number
  try {
    handle = openSync(sign, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return takeLock(lock) // whoever took it in this moment has removed the sign
    throw error
  }
  const text = `${process.pid}\n${processIdentity(process.pid)}\n${processPlace()}\n${kernelOf(dirname(lock))}\n${basename(sign)}\n`
  const end = () => {
    closeSync(handle)
    rmSync(sign, { force: true })
  }
  let holder: Holder | undefined
  try {
    holder = take(lock, text)
  } catch (error) {
    end()
    throw error
  }
  if (holder !== undefined) {
    end()
    return holder
  }
  removeSigns(lock, sign)
  return {
    sign: handle,
    renew: () => renew(lock, text, sign),
    release() {
      if (readHolder(lock)?.text === text) unlinkSync(lock)
      end()
    },
  }
}

/**
 * The lock appears with its content in one step (a hard link to a file already written), and the lock of a dead holder is replaced only by whoever holds
 * `<lock>.next`, itself such a lock: of many starters at the same instant exactly one replaces it, the others then see a living holder.
 */
function take(lock: string, text: string): Holder | undefined {
  const mine = draftOf(lock)
  try {
    writeFileSync(mine, text, { flag: 'wx', mode: 0o644 }) // readable: another user must be able to see who holds it
    for (;;) {
      if (linked(mine, lock)) return undefined
      const found = readHolder(lock)
      if (found === undefined) continue // released in this moment
      if (found.life !== 'over') return found
      const replacing = take(`${lock}.next`, text)
      if (replacing !== undefined) {
        if (!isHere(replacing)) return replacing
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5)
        continue
      }
      try {
        if (readHolder(lock)?.text !== found.text) continue // someone was faster
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
      const [pid, identity = '', place = '', kernel = '', sign = ''] = text.split('\n')
      const named = { lock, pid: Number(pid) || 0, identity, place, kernel, sign, text, touchedAt: fstatSync(handle).mtimeMs }
      return { ...named, life: lifeOf(named) }
    })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/**
 * Whose lock was taken away while he stands still, and puts it back when he goes on: his sign is there, and lives. Where its name says that he was here, what has
 * it open may be all that he left.
 */
function withoutLock(lock: string): Holder | undefined {
  for (const sign of signsOf(lock)) {
    if (lifeBySign(sign) !== 'seen') continue
    const named = holderOf(sign)
    const life = isHere(named) ? lifeHere(named) : 'seen'
    if (life !== 'over') return { ...named, lock, kernel: '', sign, text: '', touchedAt: statSync(sign).mtimeMs, life }
  }
}

/** A sign tells by its name whose it is, as long as it is there. */
const signOf = (lock: string): string =>
  `${draftOf(lock)}.${[processIdentity(process.pid)!, processPlace()].map(encodeURIComponent)}${signEnd}`

/** That of a release which did not write more than the pid is of anywhere. */
function holderOf(sign: string): Pick<Holder, 'pid' | 'identity' | 'place'> {
  const [, pid, identity = '', place = 'elsewhere'] = /\.(\d+)-[\w-]+(?:\.([^,]*),([^,]*))?\.alive$/.exec(basename(sign)) ?? []
  return { pid: Number(pid) || 0, identity: decodeURIComponent(identity), place: decodeURIComponent(place) }
}

const lifeHere = ({ pid, identity }: Pick<Holder, 'pid' | 'identity'>): Holder['life'] =>
  isSameProcess(pid, identity) ? 'seen' : 'over'

function lifeOf(holder: Omit<Holder, 'life'>): Holder['life'] {
  if (isHere(holder)) return lifeHere(holder)
  const folder = dirname(holder.lock)
  return holder.kernel !== '' && holder.kernel === kernelOf(folder) ? lifeBySign(join(folder, basename(holder.sign))) : 'unknown'
}

/** A pipe is opened to be written to only while somebody has it open to read (fifo(7)). */
function lifeBySign(sign: string): Holder['life'] {
  try {
    const isPipe = withFile(sign, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW, handle =>
      fstatSync(handle).isFIFO(),
    )
    return isPipe ? 'seen' : 'unknown'
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENXIO' ? 'over' : 'unknown'
  }
}

const signEnd = '.alive'

/** Where no pipe can be made a file stands for it, which shows nobody's life. */
function makeSign(path: string): void {
  try {
    execFileSync('mkfifo', ['-m', '600', path], { env: childEnvironment(), stdio: 'ignore' })
  } catch {
    writeFileSync(path, '', { mode: 0o600 })
  }
}

/** Of all who had the lock before, also of one that lives: it must not have it again. */
function removeSigns(lock: string, own: string): void {
  for (const sign of signsOf(lock)) if (sign !== own) rmSync(sign, { force: true })
}

const signsOf = (lock: string): string[] =>
  readdirSync(dirname(lock))
    .filter(name => name.startsWith(`${basename(lock)}.`) && name.endsWith(signEnd))
    .map(name => join(dirname(lock), name))

/**
 * Which kernel has the pipes of a folder. A disk’s file system is one kernel's at a time, and whoever had it under another has lost it with the disk. Others, as of a
 * network, have many at once, each with pipes of its own: there it is the kernel, and its number of the mount. '' where the system does not tell.
 */
export function kernelOf(folder: string): string {
  try {
    const { type } = statfsSync(folder)
    return ofDisks.has(type) ? `disk ${type.toString(16)}` : `${bootName()} ${statSync(folder).dev}`
  } catch {
    return ''
  }
}

/** As in linux/magic.h: ext2 to ext4, XFS, btrfs, F2FS, ZFS, bcachefs, tmpfs, and the layers of a container. */
const ofDisks = new Set([0xef53, 0x58465342, 0x9123683e, 0xf2f52010, 0x2fc12fc1, 0xca451a4e, 0x01021994, 0x794c7630])

/** The same bytes again, if they are still there: never into the lock of another, and a reader never finds a part. Whoever had it meanwhile has removed the sign. */
function renew(lock: string, text: string, sign: string): boolean {
  try {
    return withFile(lock, 'r+', handle => readFileSync(handle, 'utf8') === text && writeSync(handle, text, 0) > 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') return true // what cannot be written now is tried again
    return existsSync(sign) && putBack(lock, text)
  }
}

function putBack(lock: string, text: string): boolean {
  const mine = draftOf(lock)
  try {
    writeFileSync(mine, text, { flag: 'wx', mode: 0o644 })
    return linked(mine, lock)
  } catch {
    return true // as above
  } finally {
    rmSync(mine, { force: true })
  }
}

const draftOf = (lock: string): string => `${lock}.${process.pid}-${randomUUID()}`

function withFile<Value>(path: string, flags: string | number, work: (handle: number) => Value): Value {
  const handle = openSync(path, flags)
  try {
    return work(handle)
  } finally {
    closeSync(handle) // a network's file system tells others of it no later
  }
}
