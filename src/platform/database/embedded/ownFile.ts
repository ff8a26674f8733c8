// Files and folders of the database server. Its user may write beside them, and may have put links to files of others in their places: the gateway,
// which may be root, works on nothing but the file that is meant.

import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  closeSync,
  constants,
  fchownSync,
  fstatSync,
  ftruncateSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { childEnvironment } from '../../childEnvironment.ts'
import { openedAs, whoMayPlace } from '../../files.ts'
import { FolderError } from '../folder.ts'

/**
 * Opens a file below a folder only if it is there as itself, and so is each folder on the way: no link is followed, no pipe waited for, and in a folder of
 * another user's stands that user's alone. Into root's folders, and ours, nobody else puts anything. What `O_EXCL` makes there belongs to whose the folder is.
 */
export const openOwn = (folder: string, name: string, flags: number): number =>
  closed(openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY), handle =>
    openBelow(handle, folder, name.split('/'), flags),
  )

function openBelow(above: number, place: string, [step, ...rest]: readonly string[], flags: number): number {
  const path = join(place, step!)
  if (rest.length === 0) return openStep(above, path, flags)
  return closed(openStep(above, path, constants.O_RDONLY | constants.O_DIRECTORY), handle => openBelow(handle, path, rest, flags))
}

function openStep(above: number, path: string, flags: number): number {
  const name = join(openedAs(above, dirname(path)), basename(path))
  const refusal = () => {
    const advice = lstatSync(name, { throwIfNoEntry: false })?.isSymbolicLink() ? ownLink : 'Look at it, and remove it.'
    return new FolderError(
      `${path} is no file of its own, or of another user than the server's: somebody may have put it there. ${advice}`,
    )
  }
  let handle: number
  try {
    handle = openSync(name, flags | constants.O_NOFOLLOW | constants.O_NONBLOCK, 0o600)
  } catch (error) {
    if (['ELOOP', 'ENOTDIR', 'ENXIO', 'EISDIR', 'EEXIST'].includes((error as NodeJS.ErrnoException).code!)) throw refusal()
    throw Object.assign(error as Error, { message: (error as Error).message.replace(name, path) })
  }
  const { uid, gid } = fstatSync(above)
  const isForeign = ![0, process.getuid?.() ?? uid].includes(uid)
  if (isForeign && (flags & constants.O_EXCL) !== 0) fchownSync(handle, uid, gid)
  const stat = fstatSync(handle)
  const isMeant = (flags & constants.O_DIRECTORY) !== 0 || (stat.isFile() && (stat.nlink === 1 || !writes(flags)))
  if (isMeant && (!isForeign || stat.uid === uid)) return handle
  closeSync(handle)
  throw refusal()
}

/** An operator's leads to another disk, as `initdb -X` makes one: without what it leads to the database is lost. */
const ownLink =
  'Look at it: if it is your own link to another disk, as of pg_wal, leave that as it is, stop the server, and mount it here in the place of the link; else remove the link.'

/** A file with a second name is written under both. Copies of backups may share theirs. */
const writes = (flags: number): boolean => (flags & (constants.O_WRONLY | constants.O_RDWR)) !== 0

export const readOwn = (folder: string, name: string): Buffer =>
  closed(openOwn(folder, name, constants.O_RDONLY), handle => readFileSync(handle))

export const writeOwn = (folder: string, name: string, text: string): void =>
  closed(openOwn(folder, name, constants.O_WRONLY), handle => {
    ftruncateSync(handle)
    writeFileSync(handle, text)
  })

function closed<Value>(handle: number, work: (handle: number) => Value): Value {
  try {
    return work(handle)
  } finally {
    closeSync(handle)
  }
}

/** Removes a folder with all that is in it. What is in another user's folder that user removes: it may turn into a link in the meantime. */
export function removeFolder(path: string): void {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  if (process.getuid?.() !== 0 || !stat?.isDirectory()) {
    rmSync(path, { recursive: true, force: true })
    return
  }
  if (stat.uid === 0) for (const name of readdirSync(path)) removeFolder(join(path, name))
  else
    spawnSync('/bin/sh', ['-c', 'rm -rf -- * .[!.]* ..?*'], {
      ...{ cwd: path, uid: stat.uid, gid: stat.gid, env: childEnvironment() },
      stdio: 'ignore',
    })
  rmdirSync(path)
}

/**
 * Makes the folder of backups where it is not there; root's lets the server's user pass. Whoever may put names into it could have root write, or give away,
 * what a link leads to; in live mode nobody else has a say in it at all.
 */
export function makeBackupDir(name: string, folder: string, strict: boolean): void {
  const isRoot = process.getuid?.() === 0
  const refuse = () => {
    const who = strict || isRoot ? whoMayPlace(folder, { strict }) : undefined
    if (who !== undefined) throw new FolderError(`${name} names ${folder}, which ${who}.`)
  }
  refuse()
  const first = mkdirSync(folder, { recursive: true, mode: 0o700 })
  refuse()
  if (first !== undefined && isRoot)
    for (let made = folder; made.length >= first.length; made = dirname(made)) chmodSync(made, 0o711)
}
