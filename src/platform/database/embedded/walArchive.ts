// The archive of what the server writes ahead (WAL): every piece of 16 MB, and each minute what there is of one, is packed into a folder of its own
// in BACKUP_DIR/wal before the server lets go of it. With a backup from before, it leads to any moment since.

import {
  closeSync,
  constants,
  type Dirent,
  existsSync,
  fchmodSync,
  fchownSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  symlinkSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { gunzipSync, constants as zlib } from 'node:zlib'
import { FolderError } from '../folder.ts'
import { makeBackupDir, openOwn } from './ownFile.ts'
import { type EmbeddedPlace, systemIdentifier } from './place.ts'

/** Settings of a server, and variables of its environment, where names of folders stand: no sign in them is read as anything else. */
export type ServerExtras = {
  readonly settings: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** Folders that its user must be able to pass and read. */
  readonly reaches: readonly string[]
}

/** A piece appears in one step, on the disk; one that is there is never replaced by another. */
const keep = [
  'to="$TOLLGATE_WAL/%f.gz"',
  'if test -e "$to"; then gunzip -c "$to" | cmp -s - "%p"; exit; fi',
  'gzip -1 <"%p" >"$to.new" && sync "$to.new" && mv "$to.new" "$to" && sync "$TOLLGATE_WAL"',
].join('; ')

/** Above 125 recovery ends with an error: what is there and cannot be read, or come by, is not the end of the archive. */
const bring = `from="$TOLLGATE_WAL/%f.gz"; test -L "$from" || exit 1; gunzip -c "$from" >"%p" || exit 200`

const wal = 'wal'
const common = (backupDir: string): string => join(backupDir, wal)

/** Clusters number their pieces from the same beginning: each has a folder of its own, by the server's name of it. */
export const walFolder = (backupDir: string, identifier: string): string => join(common(backupDir), identifier)

export function archiving({ cluster, account }: EmbeddedPlace, backupDir: string, strict: boolean): ServerExtras {
  const folder = walFolder(backupDir, systemIdentifier(cluster))
  try {
    makeBackupDir('BACKUP_DIR', backupDir, strict)
    // Who may pass the folder of all, and write to one, can put no link in the place of one.
    handOver(common(backupDir), 0o711, { uid: 0, gid: 0 })
    handOver(folder, 0o700, account)
  } catch (error) {
    if (error instanceof FolderError) throw error
    throw new FolderError(`BACKUP_DIR: ${folder} cannot be made (${(error as NodeJS.ErrnoException).code}).`)
  }
  archiveHistory(cluster)
  return {
    settings: ['archive_mode=on', 'archive_timeout=60', `archive_command=${keep}`],
    env: { TOLLGATE_WAL: folder },
    reaches: [folder],
  }
}

/** Makes a folder; root gives it to a user, and only the folder itself: the server's user once could put a link in its place. */
function handOver(folder: string, mode: number, { uid, gid }: { readonly uid: number; readonly gid: number }): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  if (process.getuid?.() !== 0) return
  let handle: number
  try {
    handle = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
  } catch {
    throw new FolderError(`${folder} is no folder of its own: somebody may have put a link there. Look at it, and remove it.`)
  }
  fchownSync(handle, uid, gid)
  fchmodSync(handle, mode)
  closeSync(handle)
}

/** A restored server began a history of its own while it had no archive: it is told that this waits for one, or a later restore would not find its way. */
function archiveHistory(cluster: string): void {
  const status = 'pg_wal/archive_status'
  if (!existsSync(join(cluster, status))) return
  for (const name of readdirSync(join(cluster, 'pg_wal')).filter(name => name.endsWith('.history')))
    if (['.done', '.ready'].every(end => !existsSync(join(cluster, status, name + end))))
      closeSync(openOwn(cluster, `${status}/${name}.ready`, constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY))
}

/** What the archive has of a cluster: paths by the names that the server gives. Programs of before put what came of all clusters into one folder. */
export function archivedWal(backupDir: string, identifier: string): ReadonlyMap<string, string> {
  const inFolder = (folder: string, isOurs: (name: string) => boolean): [string, string][] =>
    existsSync(folder)
      ? readdirSync(folder, { withFileTypes: true })
          .filter(({ name }) => /^[0-9A-F]{8}(\.history|[0-9A-F]{16}(\.\w+)*)\.gz$/.test(name))
          .map(entry => nameOfFile(folder, entry))
          .filter(isOurs)
          .map(name => [name.slice(0, -'.gz'.length), join(folder, name)])
      : []
  const before = common(backupDir)
  return new Map([
    ...inFolder(
      before,
      name => name.includes('.history') || [identifier, undefined].includes(writerOf(backupDir, join(wal, name))),
    ),
    ...inFolder(walFolder(backupDir, identifier), () => true),
  ])
}

/** A link or a pipe is no end of the archive either, and whoever unpacks it would wait for it. */
function nameOfFile(folder: string, entry: Dirent): string {
  if (entry.isFile()) return entry.name
  throw new FolderError(
    `${join(folder, entry.name)} is no file of its own: somebody may have put it there. Look at it, and remove it.`,
  )
}

/** Pieces of one time line follow each other: 256 of 16 MB to each of the higher part. */
export const pieceNumber = (name: string): number =>
  256 * Number.parseInt(name.slice(8, 16), 16) + Number.parseInt(name.slice(16, 24), 16)

/** The identifier of the cluster that wrote a piece, after 24 bytes of its first page; undefined when it cannot be read. */
function writerOf(backupDir: string, piece: string): string | undefined {
  const packed = Buffer.alloc(4096)
  const handle = openOwn(backupDir, piece, constants.O_RDONLY)
  try {
    const length = readSync(handle, packed)
    return String(gunzipSync(packed.subarray(0, length), { finishFlush: zlib.Z_SYNC_FLUSH }).readBigUInt64LE(24))
  } catch {
    return undefined
  } finally {
    closeSync(handle)
  }
}

/** Recovery up to a moment (milliseconds); absent = up to the end of what there is. `folder`: a new one, where it finds what the archive has. */
export function recovering(archive: ReadonlyMap<string, string>, folder: string, to: number | undefined): ServerExtras {
  mkdirSync(folder, { mode: 0o755 })
  for (const [name, path] of archive) symlinkSync(path, join(folder, `${name}.gz`))
  return {
    settings: [
      `restore_command=${bring}`,
      'recovery_target_action=promote',
      ...(to === undefined ? [] : [`recovery_target_time=${new Date(to).toISOString().replace('T', ' ').replace('Z', '+00')}`]),
    ],
    env: { TOLLGATE_WAL: folder },
    reaches: [...new Set([...archive.values()].map(path => dirname(path)))],
  }
}
