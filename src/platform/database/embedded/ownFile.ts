// Files and folders of the database server. Its user may write beside them, and may have put links to files of others in their places: the gateway,
// which may be root, works on nothing but the file that is meant.

import { spawnSync } from 'node:child_process'
import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { childEnvironment } from '../../childEnvironment.ts'
import { whoMayReplace } from '../../files.ts'
import { FolderError } from '../folder.ts'

/** Opens a file only if it is there as itself, and belongs to one of these users. */
export function openOwn(path: string, flags: number, owners: readonly number[]): number {
  const refusal = new FolderError(
    `${path} is no file of its own, or of another user than the server's: somebody may have put it there. Look at it, and remove it.`,
  )
  let handle: number
  try {
    handle = openSync(path, flags | constants.O_NOFOLLOW | constants.O_NONBLOCK, 0o600) // no link is followed, no pipe waited for
  } catch (error) {
    throw ['ELOOP', 'ENXIO', 'EISDIR'].includes((error as NodeJS.ErrnoException).code!) ? refusal : error
  }
  const stat = fstatSync(handle)
  if (stat.isFile() && stat.nlink === 1 && owners.includes(stat.uid)) return handle
  closeSync(handle)
  throw refusal
}

export const readOwn = (path: string, owner: number): string =>
  closed(openOwn(path, constants.O_RDONLY, [owner]), handle => readFileSync(handle, 'utf8'))

export const writeOwn = (path: string, owner: number, text: string): void =>
  closed(openOwn(path, constants.O_WRONLY, [owner]), handle => {
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

/** Whoever may put names into a folder could have root write, or give away, what a link leads to; in live mode nobody else has a say in it at all. */
export function refuseOpenFolder(name: string, folder: string, strict: boolean): void {
  const who = strict || process.getuid?.() === 0 ? whoMayReplace(folder) : undefined
  if (who !== undefined) throw new FolderError(`${name} names ${folder}, which ${who}.`)
}
