// A backup of the embedded server while it works: its files as they are in these minutes, and the WAL that makes one moment of them. The server's
// package brings no pg_basebackup; this is PostgreSQL's own way for those who copy themselves (pg_backup_start, pg_backup_stop).

import { closeSync, constants, existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import pg from 'pg'
import type { Clock } from '../../clock.ts'
import { syncFolder } from '../../files.ts'
import { openOwn } from '../embedded/ownFile.ts'
import { clusterMajor } from '../embedded/place.ts'
import { walFolder } from '../embedded/walArchive.ts'
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
const ending = '.unfinished'

/** → the folder of the backup, how many bytes it has, and the piece of WAL that the archive did not take, if it takes none. Broken off, it leaves a folder that no restore takes and the next backup clears away. */
export async function takeBackup(order: BackupOrder): Promise<{ folder: string; bytes: number; unarchived: string | null }> {
  const { cluster, backupDir, clock, seals, about } = order
  mkdirSync(backupDir, { recursive: true, mode: 0o700 })
  // All in one session: it is a backup as long as this lives.
  const session = new pg.Client({ ...order.connection, application_name: 'tollgate backup' })
  session.on('error', () => {}) // the next statement fails
  await session.connect()
  try {
    const { rows: locked } = await session.query<{ ours: boolean }>('select pg_try_advisory_lock(7065114) as ours')
    if (!locked[0]!.ours) throw new BackupError('Another backup of this database is being made.')
    for (const name of readdirSync(backupDir).filter(name => name.endsWith(ending)))
      rmSync(join(backupDir, name), { recursive: true })
    const beganAt = clock.real()
    const folder = join(backupDir, `base-${new Date(beganAt).toISOString().replace(/[-:]|\.\d+/g, '')}`)
    if (existsSync(folder)) throw new BackupError(`${folder} is there already.`)
    const draft = folder + ending
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
    renameSync(draft, folder)
    syncFolder(backupDir)
    const { rows: failed } = await session.query<{ piece: string | null }>(
      `select last_failed_wal as piece from pg_stat_archiver where last_failed_time > coalesce(last_archived_time, '-infinity')`,
    )
    const unarchived = failed[0]?.piece ?? null
    return { folder, unarchived, bytes: Object.values(files).reduce((sum, { bytes }) => sum + bytes, 0) }
  } finally {
    await session.end()
  }
}

async function walFile(session: pg.Client, position: string): Promise<string> {
  const { rows } = await session.query<{ name: string }>(`select pg_walfile_name(${position}) as name`)
  return rows[0]!.name
}

/** The files of the data. A table that no WAL is written of begins empty after a restore: its rows, secrets among them, stay here. */
function copyCluster(cluster: string, data: string): { folders: string[]; files: Record<string, FileProof> } {
  const owner = statSync(cluster).uid
  const tree = treeOf(cluster)
  const unlogged = new Set(tree.files.filter(path => path.endsWith('_init')).map(path => path.slice(0, -'_init'.length)))
  const isUnlogged = (path: string) => !path.endsWith('_init') && unlogged.has(path.replace(/(_(fsm|vm))?(\.\d+)?$/, ''))
  const files: Record<string, FileProof> = {}
  const folders = tree.folders.filter(path => !ofTheProcess.test(`${path}/`) || !path.includes('/'))
  for (const path of folders) mkdirSync(join(data, path), { mode: 0o700 })
  for (const path of tree.files.filter(path => !ofTheProcess.test(path) && !isUnlogged(path))) {
    const source = openUnlessGone(join(cluster, path), owner)
    if (source === undefined) continue // a table that was dropped meanwhile: the WAL says so
    files[path] = copyHashed(source, join(data, path), { flush: true })
    closeSync(source)
  }
  return { folders, files }
}

function copyWal(cluster: string, data: string, from: string, to: string): Record<string, FileProof> {
  const owner = statSync(cluster).uid
  const names = readdirSync(join(cluster, 'pg_wal')).filter(name => /^[0-9A-F]{24}$/.test(name) && name >= from && name <= to)
  if (!names.includes(from))
    throw new BackupError(
      `So much was written during the backup that the server let go of ${from}, with which it began. Make it at a quieter time.`,
    )
  return Object.fromEntries(
    names.map(name => {
      const source = openOwn(join(cluster, 'pg_wal', name), constants.O_RDONLY, [owner])
      const proof = copyHashed(source, join(data, 'pg_wal', name), { flush: true })
      closeSync(source)
      return [`pg_wal/${name}`, proof]
    }),
  )
}

function openUnlessGone(path: string, owner: number): number | undefined {
  try {
    return openOwn(path, constants.O_RDONLY, [owner])
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** The folders of finished backups, the oldest first. */
export const backupsIn = (backupDir: string): string[] =>
  readdirSync(backupDir)
    .filter(name => /^base-\d{8}T\d{6}Z$/.test(name))
    .sort()
    .map(name => join(backupDir, name))

/** Removes all but the newest backups, and the WAL from before the oldest that stays. → names of what was removed */
export function removeOldBackups(backupDir: string, keep: number): string[] {
  const all = backupsIn(backupDir)
  const old = all.slice(0, Math.max(0, all.length - keep))
  for (const folder of old) {
    // In one step it is no backup any more.
    renameSync(folder, folder + ending)
    rmSync(folder + ending, { recursive: true })
  }
  const [oldest] = all.slice(old.length)
  const wal = walFolder(backupDir)
  if (oldest === undefined || !existsSync(wal)) return old.map(path => basename(path))
  const [from] = readManifest(oldest).manifest.wal
  // Histories of time lines are small, and a way through all of them may be needed.
  for (const name of readdirSync(wal))
    if (/^[0-9A-F]{24}/.test(name) && name.slice(8, 24) < from.slice(8)) rmSync(join(wal, name))
  return old.map(path => basename(path))
}
