// Makes the files of a new database.

import { randomUUID } from 'node:crypto'
import { chownSync, mkdirSync, readdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { syncFolder } from '../../files.ts'
import { FolderError } from '../folder.ts'
import { start } from './account.ts'
import { removeFolder } from './ownFile.ts'
import { type EmbeddedPlace, superuser } from './place.ts'
import { makeRole } from './role.ts'

/** Makes them beside their place and moves them there in one step: what was interrupted is never taken for a database. */
export async function initialise(place: EmbeddedPlace, fast: boolean, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted()
  const { folder, cluster, binaries, account } = place
  for (const name of readdirSync(folder))
    if (name.startsWith('postgres.new-')) {
      try {
        removeFolder(join(folder, name))
      } catch {} // a killed start has left its initdb, which still writes there: the next start removes it
    }
  const draft = `${cluster}.new-${randomUUID()}`
  mkdirSync(draft, { mode: 0o700 })
  if (process.getuid?.() === 0) chownSync(draft, account.uid, account.gid)
  const initdb = start(
    binaries.initdb,
    [
      '-D',
      draft,
      `--username=${superuser}`,
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
  const giveUp = () => initdb.kill()
  signal?.addEventListener('abort', giveUp)
  let complaint = ''
  initdb.stderr?.on('data', chunk => {
    complaint += chunk
  })
  const status = await new Promise(resolve => {
    initdb.once('error', error => resolve(error.message))
    initdb.once('close', (code, signal) => resolve(code ?? signal))
  })
  signal?.removeEventListener('abort', giveUp)
  if (status !== 0) {
    removeFolder(draft)
    signal?.throwIfAborted()
    throw new FolderError(
      `PostgreSQL could not make its files in ${folder} as user ${account.name} (${status}). ${complaint.trim()}`,
    )
  }
  await makeRole(place, draft, fast)
  renameSync(draft, cluster)
  if (!fast) syncFolder(folder)
}
