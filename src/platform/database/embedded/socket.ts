// The folder of the server's unix socket, its only door.

import { createHash } from 'node:crypto'
import { chownSync, lstatSync, mkdirSync, realpathSync } from 'node:fs'
import { createConnection } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { FolderError } from '../folder.ts'
import type { SystemAccount } from './account.ts'
import { removeFolder } from './ownFile.ts'
import { port } from './place.ts'

/** An empty folder for the socket that only the server's user can enter. */
export async function freshSocketFolder(folder: string, account: SystemAccount): Promise<string> {
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
  removeFolder(path) // a lock file left there may name a pid that is somebody else's now
  mkdirSync(path, { mode: 0o700 })
  if (process.getuid?.() === 0) chownSync(path, account.uid, account.gid)
  return path
}

/** Systems allow a socket's path little more than 100 bytes; longer ones move to the folder for temporary files. */
function socketFolderFor(folder: string, account: SystemAccount): string {
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
    // EAGAIN: so many wait at its door that no more may.
    connection.once('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'EAGAIN'))
  })
}
