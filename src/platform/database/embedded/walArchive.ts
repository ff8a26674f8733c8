// The archive of what the server writes ahead (WAL): every piece of 16 MB, and each minute what there is of one, is packed into BACKUP_DIR/wal
// before the server lets go of it. With a backup from before, it leads to any moment since.

import { chownSync, closeSync, constants, existsSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { FolderError } from '../folder.ts'
import { openOwn } from './ownFile.ts'
import type { EmbeddedPlace } from './place.ts'

/** Settings of a server, and variables of its environment, where names of folders stand: no sign in them is read as anything else. */
export type ServerExtras = { readonly settings: readonly string[]; readonly env: Readonly<Record<string, string>> }

/** A piece appears in one step, on the disk; one that is there is never replaced by another. */
const keep = [
  'to="$TOLLGATE_WAL/%f.gz"',
  'if test -e "$to"; then gunzip -c "$to" | cmp -s - "%p"; exit; fi',
  'gzip -1 <"%p" >"$to.new" && sync "$to.new" && mv "$to.new" "$to" && sync "$TOLLGATE_WAL"',
].join('; ')

/** Above 125 recovery ends with an error: what is there and cannot be read is not the end of the archive. */
const bring = `from="$TOLLGATE_WAL/%f.gz"; test -e "$from" || exit 1; gunzip -c "$from" >"%p" || exit 200`

export const walFolder = (backupDir: string): string => join(backupDir, 'wal')

export function archiving({ cluster, account }: EmbeddedPlace, backupDir: string): ServerExtras {
  const folder = walFolder(backupDir)
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    if (process.getuid?.() === 0) chownSync(folder, account.uid, account.gid)
  } catch (error) {
    throw new FolderError(`BACKUP_DIR: ${folder} cannot be made (${(error as NodeJS.ErrnoException).code}).`)
  }
  archiveHistory(cluster, account.uid)
  return {
    settings: ['archive_mode=on', 'archive_timeout=60', `archive_command=${keep}`],
    env: { TOLLGATE_WAL: folder },
  }
}

/** A restored server began a history of its own while it had no archive: it is told that this waits for one, or a later restore would not find its way. */
function archiveHistory(cluster: string, owner: number): void {
  const status = join(cluster, 'pg_wal/archive_status')
  if (!existsSync(status)) return
  for (const name of readdirSync(join(cluster, 'pg_wal')).filter(name => name.endsWith('.history')))
    if (['.done', '.ready'].every(end => !existsSync(join(status, name + end))))
      closeSync(openOwn(join(status, `${name}.ready`), constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY, [owner, 0]))
}

/** Recovery up to a moment (milliseconds); absent = up to the end of what there is. */
export const recovering = (backupDir: string, to: number | undefined): ServerExtras => ({
  settings: [
    `restore_command=${bring}`,
    'recovery_target_action=promote',
    ...(to === undefined ? [] : [`recovery_target_time=${new Date(to).toISOString().replace('T', ' ').replace('Z', '+00')}`]),
  ],
  env: { TOLLGATE_WAL: walFolder(backupDir) },
})
