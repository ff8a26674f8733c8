// Files of operators.

import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  openSync,
  read,
  readFileSync,
  readlinkSync,
  renameSync,
  type Stats,
  statSync,
} from 'node:fs'
import { basename, dirname, isAbsolute, join } from 'node:path'
import { promisify } from 'node:util'

/** Undefined for what is not there or cannot be come by: that has a message of its own. */
function statOf(path: string): Stats | undefined {
  try {
    return statSync(path)
  } catch {
    return undefined
  }
}

function lstatOf(path: string): Stats | undefined {
  try {
    return lstatSync(path)
  } catch {
    return undefined
  }
}

/** How many files this process may have open, sockets among them; undefined where the system does not say. */
export function openFilesMost(limits = '/proc/self/limits'): number | undefined {
  const most = existsSync(limits) && /^Max open files +(\d+)/m.exec(readFileSync(limits, 'utf8'))?.[1]
  return most ? Number(most) : undefined
}

/** False for what is not there. */
export function othersMayRead(path: string): boolean {
  const stat = statOf(path)
  return stat !== undefined && (stat.mode & (isHandedOver(stat) ? 0o037 : 0o077)) !== 0
}

/**
 * Root's, to be read by a group that we are in, or by us alone through an access list, whose mask then stands where the group's rights do: so Kubernetes and
 * systemd hand over secrets.
 */
const isHandedOver = ({ uid, gid }: Stats): boolean =>
  uid === 0 && process.getuid?.() !== 0 && [0, process.getgid?.(), ...(process.getgroups?.() ?? [])].includes(gid)

/** Who else could put something else in the place of a file; undefined when nobody could, or when it is not there. */
export const whoMayReplace = (path: string): string | undefined =>
  existsSync(path) ? whoDecides(path, { missing: next => `leads to no file: ${next}` }) : undefined

/** The end of a sentence about a file with secrets in it; undefined where nobody else gets at it, nor at what a shell hands over. */
export const whoGetsAt = (path: string): string | undefined =>
  /^\/dev\/(stdin$|fd\/)/.test(path)
    ? undefined
    : isFile(path) && othersMayRead(path)
      ? 'others may read: set its mode to 0600'
      : whoMayReplace(path)

/** Whoever may write here changes the program itself. */
const program = dirname(dirname(import.meta.dirname))

/**
 * The same of a folder that is made where it is not there: until then whoever may write to the nearest one above it is first. `strict` takes none that would be
 * made where everybody may, as in /tmp; otherwise its sticky bit will do, and below the program whoever owns that may do what its gateway may.
 */
export const whoMayPlace = (folder: string, { strict }: { readonly strict: boolean }): string | undefined =>
  whoDecides(folder, strict ? { missing: whoMayMake } : { missing: () => undefined, program })

/** Who else than a server could listen in a folder. It is the server's, whoever that is, and its group may be; but nobody else's, who came first to a place for everybody. */
export const whoMayListen = (folder: string): string | undefined =>
  whoDecides(folder, {
    missing: whoMayMake,
    server: statOf(folder)?.uid,
    end: ({ mode }) => ((mode & 0o002) !== 0 ? 'everybody may write to' : undefined),
  })

const whoMayMake = (_: string, above: string): string | undefined =>
  (statSync(above).mode & 0o022) !== 0 ? `others may make, who may write to the folder ${above}` : undefined

type PathRules = {
  readonly missing: (next: string, above: string) => string | undefined
  /** What is below is its owner's too. */
  readonly program?: string
  /** A user who may own what is on the way, where nobody else could have made it. */
  readonly server?: number | undefined
  readonly end?: (stat: Stats) => string | undefined
}

/** It goes the way that the system goes: whoever may change a name on it, a folder's or a link's, decides what is found at its end. */
function whoDecides(path: string, { missing, program, server, end }: PathRules): string | undefined {
  const whole = isAbsolute(path) ? path : `${process.cwd()}/${path}`
  const isBelow = program !== undefined && `${whole}/`.startsWith(`${program}/`) && !whole.split('/').includes('..')
  const trusted = isBelow ? program : undefined
  const own = trusted === undefined ? undefined : statSync(trusted).uid
  const isOfOthers = ({ uid }: Stats) => uid !== own && uid !== server && !isOwn(uid)
  let place = trusted ?? '/'
  let links = 0
  for (const ahead = whole.slice(trusted?.length ?? 0).split('/'); ahead.length > 0; ) {
    const name = ahead.shift()!
    if (name === '' || name === '.') continue
    if (name === '..') {
      place = dirname(place)
      continue
    }
    const who = place === trusted ? undefined : whoMayRename(place, isOfOthers)
    if (who !== undefined) return who
    const next = join(place, name)
    const stat = lstatOf(next)
    if (!stat || links > linksMost) return missing(next, place)
    if (stat.uid === server && !isOwn(server) && (statSync(place).mode & 0o022) !== 0)
      return `another user has made in the folder ${place}, where others may`
    if (!stat.isSymbolicLink()) {
      place = next
      continue
    }
    if (isOfOthers(stat)) return `another user may replace, whose link ${next} is`
    links++
    const target = readlinkSync(next)
    if (isAbsolute(target)) place = '/'
    ahead.unshift(...target.split('/'))
  }
  const stat = statSync(place)
  if (place === trusted) return
  if (end) return end(stat)
  if (isOfOthers(stat)) return 'another user may change: it must belong to the user of the gateway, or to root'
  if ((stat.mode & 0o022) !== 0) return `others may change: ${stat.isDirectory() ? 'chmod go-w' : 'set its mode to 0600'}`
}

/** As many as the system follows. */
const linksMost = 40

/** Who else may put another thing under a name of a folder. */
function whoMayRename(folder: string, isOfOthers: (stat: Stats) => boolean): string | undefined {
  const stat = statSync(folder)
  if (isOfOthers(stat)) return `another user may replace, whose folder ${folder} is`
  // In a folder with the sticky bit, as /tmp, names are safe from others.
  if ((stat.mode & 0o022) !== 0 && (stat.mode & 0o1000) === 0)
    return `others may replace, who may write to the folder ${folder}: chmod go-w ${folder}`
}

const isOwn = (uid: number): boolean => [0, process.getuid?.() ?? uid].includes(uid)

/** Not a folder, and no pipe that would be waited for. */
export const isFile = (path: string): boolean => statOf(path)?.isFile() === true

/** The end of a sentence about a path that could not be read. */
export const whyUnread = (path: string): string => (existsSync(path) && !isFile(path) ? 'is no file' : 'cannot be read')

/** Throws what cannot be read and, without waiting for it, what is a pipe or a device. `noLink`: and, without following it, what is a link. */
export function readPlainFile(path: string, noLink?: 'noLink'): Buffer {
  const { handle } = openPlain(path, noLink)
  try {
    return readFileSync(handle)
  } finally {
    closeSync(handle)
  }
}

/** The same of a file that may be long: others go on while the disk gives it. Of one with more bytes than `most`, their number, and nothing is read. */
export async function readLongFile(path: string, most: number, noLink?: 'noLink'): Promise<Buffer | number> {
  const { handle, size } = openPlain(path, noLink)
  try {
    if (size > most) return size
    const bytes = Buffer.alloc(size)
    let length = 0
    for (let read = 1; length < size && read > 0; length += read)
      read = (await readPiece(handle, bytes, length, size - length, length)).bytesRead
    return bytes.subarray(0, length)
  } finally {
    closeSync(handle)
  }
}

const readPiece = promisify(read)

function openPlain(path: string, noLink?: 'noLink'): { readonly handle: number; readonly size: number } {
  const handle = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | (noLink ? constants.O_NOFOLLOW : 0))
  const stat = fstatSync(handle)
  if (stat.isFile()) return { handle, size: stat.size }
  closeSync(handle)
  throw new Error(`${path} is no file`)
}

/** What a file is called until all of it is there: each attempt to write it has an id, and a part of its own. */
export const partName = (name: string, id: string): string => `${name}.${id}.tmp`

/** Whether a name is that of a part of a file, by whichever attempt. */
export const isPartOf = (part: string, name: string): boolean =>
  part.startsWith(`${name}.`) && /^[0-9a-f]{32}(\.tmp)?$/.test(part.slice(name.length + 1))

/** What was renamed survives a power failure only when the folder that names it has been forced to the disk. */
export function syncFolder(folder: string): void {
  const handle = openSync(folder, 'r')
  fsyncSync(handle)
  closeSync(handle)
}

/**
 * Moves a file into a folder that others may put another, or a link, in the place of: it goes to the one that was opened, whatever its name says by then. A
 * name that is there already gets a number. `file`: what somebody has looked at; another that has taken its name since goes back where it was.
 */
export function moveInto(path: string, folder: string, file: Stats, { followsLink }: { readonly followsLink: boolean }): void {
  const handle = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY | (followsLink ? 0 : constants.O_NOFOLLOW))
  try {
    const moved = freeIn(openedAs(handle, folder), basename(path))
    renameSync(path, moved)
    if (!isSameFile(lstatSync(moved), file)) renameSync(moved, freeIn(dirname(path), basename(path)))
  } finally {
    closeSync(handle)
  }
}

/** A name of the folder that was opened, whatever its own name says by now; systems without /proc have none. */
export const openedAs = (handle: number, folder: string): string =>
  existsSync('/proc/self/fd') ? `/proc/self/fd/${handle}` : folder

/** Below a folder: what is there already keeps its name, and this one gets a number. */
export function freeIn(folder: string, name: string): string {
  let free = name
  for (let count = 2; existsSync(join(folder, free)); count++) free = `${name}.${count}`
  return join(folder, free)
}

const isSameFile = (one: Stats, other: Stats): boolean =>
  one.dev === other.dev && one.ino === other.ino && one.size === other.size && one.mtimeMs === other.mtimeMs
