// A backup of the embedded server while it works: its files as they are in these minutes, and the WAL that makes one moment of them. The server's
// package brings no pg_basebackup; this is PostgreSQL's own way for those who copy themselves (pg_backup_start, pg_backup_stop).

import { closeSync, constants, existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import pg from 'pg'
import type { Clock } from '../../clock.ts'
import { syncFolder } from '../../files.ts'
import { makeBackupDir, openOwn } from '../embedded/ownFile.ts'
import { clusterMajor, systemIdentifier } from '../embedded/place.ts'
import { archivedWal } from '../embedded/walArchive.ts'
import { databaseLocks } from '../locks.ts'
import {
  BackupError,
  copyHashed,
  type FileProof,
  type Manifest,
  readManifest,
  type Seals,
  treeOf,
  whoReads,
  writeHashed,
  writeManifest,
} from './manifest.ts'

export type BackupOrder = {
  readonly connection: pg.PoolConfig
  /** The server's files. */
  readonly cluster: string
  /** Where backups stand, one folder each. */
  readonly backupDir: string
  readonly clock: Clock
  readonly seals: Seals
  readonly about: Pick<Manifest, 'mode' | 'build' | 'keys'>
}

// What belongs to the server that runs, and not to its data; WAL is taken at the end.
const ofTheProcess =
  /^(postmaster\.(pid|opts)|[^/]*\.signal|backup_label.*|tablespace_map.*|(pg_wal|pg_replslot|pg_dynshmem|pg_notify|pg_serial|pg_snapshots|pg_stat_tmp|pg_subtrans)\/.*)$|(^|\/)(pgsql_tmp|pg_internal\.init)[^/]*(\/|$)/
/** Of the same cluster no other backup is being made, of another there may be. */
const endingOf = (identifier: string): string => `_${identifier}.unfinished`
const archivePatienceMs = 30_000

/** → the folder of the backup, how many bytes it has, and the piece of WAL that the archive did not take, if it takes none. Killed, it leaves a folder that no restore takes and the next backup clears away. */
export async function takeBackup(order: BackupOrder): Promise<{ folder: string; bytes: number; unarchived: string | null }> {
  const { cluster, backupDir, clock, about } = order
  makeBackupDir('The place of backups', backupDir, about.mode === 'live')
  const ending = endingOf(systemIdentifier(cluster))
  // All in one session: it is a backup as long as this lives.
  const session = new pg.Client({ ...order.connection, application_name: 'tollgate backup' })
  session.on('error', () => {}) // the next statement fails
  await session.connect()
  try {
    const { rows: locked } = await session.query<{ ours: boolean }>('select pg_try_advisory_lock($1) as ours', [
      databaseLocks.backup,
    ])
    if (!locked[0]!.ours) throw new BackupError('Another backup of this database is being made.')
    for (const name of readdirSync(backupDir).filter(name => name.endsWith(ending)))
      rmSync(join(backupDir, name), { recursive: true })
    const beganAt = clock.real()
    const folder = join(backupDir, `base-${new Date(beganAt).toISOString().replace(/[-:]|\.\d+/g, '')}`)
    if (existsSync(folder)) throw new BackupError(`${folder} is there already.`)
    const draft = folder + ending
    const { files, to } = await writeDraft(order, session, draft, beganAt).catch(error => {
      // Half a backup is of no use, and the archive needs its room.
      rmSync(draft, { recursive: true, force: true })
      throw error
    })
    renameSync(draft, folder)
    syncFolder(backupDir)
    const unarchived = await untilArchived(session, clock, to)
    return { folder, unarchived, bytes: Object.values(files).reduce((sum, { bytes }) => sum + bytes, 0) }
  } finally {
    await session.end()
  }
}

async function writeDraft(
  { cluster, clock, seals, about }: BackupOrder,
  session: pg.Client,
  draft: string,
  beganAt: number,
): Promise<{ files: Record<string, FileProof>; to: string }> {
  const data = join(draft, 'data')
  mkdirSync(data, { recursive: true, mode: 0o700 })
  const from = await walFile(session, `pg_backup_start('tollgate', true)`)
  const { folders, files } = copyCluster(cluster, data)
  const { rows } = await session.query<{ lsn: string; label: string }>(
    'select lsn, labelfile as label from pg_backup_stop(wait_for_archive => false)',
  )
  files.backup_label = writeHashed(join(data, 'backup_label'), rows[0]!.label)
  const to = await walFile(session, `'${rows[0]!.lsn}'::pg_lsn`)
  Object.assign(files, copyWal(cluster, data, from, to))
  const server = whoReads(clusterMajor(cluster))
  writeManifest(draft, { format: 1, server, ...about, beganAt, endedAt: clock.real(), wal: [from, to], folders, files }, seals)
  for (const path of ['', ...folders]) syncFolder(join(data, path))
  syncFolder(draft)
  return { files, to }
}

/** The end of a backup ends its last piece too, so that a working archive takes it at once. → the piece that it does not take; null where there is no archive. */
async function untilArchived(session: pg.Client, clock: Clock, last: string): Promise<string | null> {
  for (const until = clock.real() + archivePatienceMs; ; await clock.sleep(100)) {
    const { rows } = await session.query<{ isOn: boolean; taken: string; failed: string | null }>(
      `select current_setting('archive_mode') <> 'off' as "isOn", coalesce(last_archived_wal, '') as taken,
              case when last_failed_time > coalesce(last_archived_time, '-infinity') then last_failed_wal end as failed
         from pg_stat_archiver`,
    )
    const { isOn, taken, failed } = rows[0]!
    if (!isOn || taken.slice(0, last.length) >= last) return null
    if (failed !== null || clock.real() > until) return failed ?? last
  }
}

async function walFile(session: pg.Client, position: string): Promise<string> {
  const { rows } = await session.query<{ name: string }>(`select pg_walfile_name(${position}) as name`)
  return rows[0]!.name
}

/** The files of the data. A table that no WAL is written of begins empty after a restore: its rows, secrets among them, stay here. */
function copyCluster(cluster: string, data: string): { folders: string[]; files: Record<string, FileProof> } {
  const tree = treeOf(cluster)
  const unlogged = new Set(tree.files.filter(path => path.endsWith('_init')).map(path => path.slice(0, -'_init'.length)))
  const isUnlogged = (path: string) => !path.endsWith('_init') && unlogged.has(path.replace(/(_(fsm|vm))?(\.\d+)?$/, ''))
  const files: Record<string, FileProof> = {}
  const folders = tree.folders.filter(path => !ofTheProcess.test(`${path}/`) || !path.includes('/'))
  for (const path of folders) mkdirSync(join(data, path), { mode: 0o700 })
  for (const path of tree.files.filter(path => !ofTheProcess.test(path) && !isUnlogged(path))) {
    const source = openUnlessGone(cluster, path)
    if (source === undefined) continue // a table that was dropped meanwhile: the WAL says so
    files[path] = copyHashed(source, join(data, path), { flush: true })
    closeSync(source)
  }
  return { folders, files }
}

function copyWal(cluster: string, data: string, from: string, to: string): Record<string, FileProof> {
  const names = readdirSync(join(cluster, 'pg_wal')).filter(name => /^[0-9A-F]{24}$/.test(name) && name >= from && name <= to)
  if (!names.includes(from))
    throw new BackupError(
      `So much was written during the backup that the server let go of ${from}, with which it began. Make it at a quieter time.`,
    )
  return Object.fromEntries(
    names.map(name => {
      const source = openOwn(cluster, `pg_wal/${name}`, constants.O_RDONLY)
      const proof = copyHashed(source, join(data, 'pg_wal', name), { flush: true })
      closeSync(source)
      return [`pg_wal/${name}`, proof]
    }),
  )
}

function openUnlessGone(cluster: string, path: string): number | undefined {
  try {
    return openOwn(cluster, path, constants.O_RDONLY)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** The folders of finished backups, the oldest first. */
export const backupsIn = (backupDir: string): string[] =>
  readdirSync(backupDir, { withFileTypes: true })
    .filter(entry => entry.isDirectory() && /^base-\d{8}T\d{6}Z$/.test(entry.name))
    .map(({ name }) => name)
    .sort()
    .map(name => join(backupDir, name))

/**
 * Removes all but the newest backups, of which the one just made is always one, and the WAL that none of those that stay needs. What has no seal of ours,
 * a backup that was altered or of another installation, is neither counted nor removed. → names of what was removed
 */
export function removeOldBackups(backupDir: string, keep: number, made: string, seals: Seals): string[] {
  const ours = backupsIn(backupDir)
    .flatMap(folder => sealedBackup(folder, seals) ?? [])
    .sort(
      (one, other) =>
        Number(one.folder === made) - Number(other.folder === made) || one.manifest.endedAt - other.manifest.endedAt,
    )
  const old = ours.slice(0, Math.max(0, ours.length - keep))
  for (const { folder, identifier } of old) {
    // In one step it is no backup any more.
    const draft = folder + endingOf(identifier)
    renameSync(folder, draft)
    rmSync(draft, { recursive: true })
  }
  for (const identifier of new Set(ours.map(one => one.identifier))) {
    const needed = ours
      .filter(one => !old.includes(one) && one.identifier === identifier)
      .map(({ manifest }) => manifest.wal[0].slice(8))
    removeWal(backupDir, identifier, needed.sort()[0])
  }
  return old.map(({ folder }) => basename(folder))
}

type SealedBackup = { readonly folder: string; readonly identifier: string; readonly manifest: Manifest }

function sealedBackup(folder: string, seals: Seals): SealedBackup | undefined {
  try {
    const { manifest, hasSealOf } = readManifest(folder)
    return hasSealOf(seals) ? { folder, identifier: systemIdentifier(join(folder, 'data')), manifest } : undefined
  } catch {
    return undefined
  }
}

/** What the archive has from before a piece; absent = all. Histories of time lines are small, and a way through all of them may be needed. */
function removeWal(backupDir: string, identifier: string, from: string | undefined): void {
  for (const [name, path] of archivedWal(backupDir, identifier))
    if (/^\w{24}/.test(name) && (from === undefined || name.slice(8, 24) < from)) rmSync(path)
}
