// A backup becomes the database of an empty DATA_DIR, as it was at its end or at any moment since, where the archive reaches. All of it is done in
// a draft beside the place; only what is whole, and was let pass, is moved there, in one step.

import { closeSync, existsSync, mkdirSync, openSync, readdirSync, realpathSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type pg from 'pg'
import { systemClock } from '../../clock.ts'
import { syncFolder } from '../../files.ts'
import { makePool } from '../connect.ts'
import { findBinaries } from '../embedded/binaries.ts'
import { clearDraft } from '../embedded/orphan.ts'
import { recovering, walFolder } from '../embedded/walArchive.ts'
import { startEmbedded } from '../embedded.ts'
import { claimFolder } from '../folder.ts'
import { BackupError, copyHashed, type Manifest, readManifest, type Seals, treeOf, whoReads } from './manifest.ts'
import { backupsIn } from './take.ts'

export type RestoreOrder = {
  /** The folder of a backup, or one in which backups stand. */
  readonly from: string
  readonly dataDir: string
  /** Milliseconds; absent = all that there is. */
  readonly to: number | undefined
  readonly user: string | undefined
  readonly strict: boolean
  readonly seals: Seals
  /** Throws when the backup is of another mode or was written with other keys. */
  compare(manifest: Manifest): void
  /** Throws when the database is not the one that it was said to be. */
  examine(pool: pg.Pool): Promise<void>
  say(text: string): void
}

const draftName = 'postgres.restoring'
/** What may stand in DATA_DIR already. */
const mayStand = /^(keys|gateway\.lock.*|postgres\.restoring|postgres\.log|socket)$/

export async function restoreBackup(order: RestoreOrder): Promise<{ manifest: Manifest }> {
  const { dataDir, to, say } = order
  const source = realpathSync(order.from)
  const folder = backupFor(source, to)
  const { manifest, hasSealOf } = readManifest(folder)
  refuseOther(manifest, folder)
  order.compare(manifest)
  if (!hasSealOf(order.seals)) throw new BackupError(`The manifest of ${folder} was altered.`)
  const backupDir = dirname(folder)
  if (existsSync(walFolder(backupDir))) refuseGap(walFolder(backupDir), manifest)
  else if (to !== undefined)
    throw new BackupError(`There is no archive beside ${folder}: it can only be restored as it was at its end, without --to.`)
  const claim = claimFolder(dataDir)
  try {
    const standing = readdirSync(dataDir).filter(name => !mayStand.test(name))
    if (standing.length > 0)
      throw new BackupError(`${dataDir} is not empty (${standing.join(', ')}): nothing is restored over what is there.`)
    const draft = join(realpathSync(dataDir), draftName)
    await clearDraft(draft, say)
    try {
      say(`Copying ${folder} ...`)
      mkdirSync(draft, { mode: 0o700 })
      copyBack(folder, join(draft, 'postgres'), manifest)
      say(`Reading what was written ${to === undefined ? 'since' : `until ${new Date(to).toISOString()}`} ...`)
      await recover(order, draft, backupDir)
    } catch (error) {
      await clearDraft(draft, say)
      throw error
    }
    renameSync(join(draft, 'postgres'), join(dataDir, 'postgres'))
    syncFolder(dataDir)
    await clearDraft(draft, say)
    return { manifest }
  } finally {
    claim.release()
  }
}

/** A backup, or of several the newest that had ended by then. */
function backupFor(from: string, to: number | undefined): string {
  const all = backupsIn(from)
  const fitting = (all.length === 0 ? [from] : all).filter(one => to === undefined || readManifest(one).manifest.endedAt <= to)
  const newest = fitting.at(-1)
  if (newest !== undefined) return newest
  throw new BackupError(`No backup in ${from} is from before ${new Date(to!).toISOString()}.`)
}

function refuseOther({ server }: Manifest, folder: string): void {
  const ours = whoReads(findBinaries().major)
  if (server !== ours) throw new BackupError(`${folder} is of ${server}; this program brings ${ours}, which cannot read it.`)
}

/** Recovery would take a piece that is missing for the end of the archive. */
function refuseGap(wal: string, { wal: [from, to] }: Manifest): void {
  const line = from.slice(0, 8)
  const names = readdirSync(wal)
    .filter(name => /^[0-9A-F]{24}\.gz$/.test(name) && name.startsWith(line) && name.slice(0, 24) > to)
    .map(name => name.slice(0, 24))
    .sort()
  const numberOf = (name: string) => Number.parseInt(name.slice(8, 16), 16) * 256 + Number.parseInt(name.slice(16), 16)
  const gap = [to, ...names].find((name, at, all) => at > 0 && numberOf(name) !== numberOf(all[at - 1]!) + 1)
  if (gap !== undefined) throw new BackupError(`The archive ${wal} has a gap before ${gap}: what came after it is lost.`)
}

function copyBack(folder: string, cluster: string, { folders, files }: Manifest): void {
  const data = join(folder, 'data')
  const found = treeOf(data).files
  const missing = Object.keys(files).find(path => !found.includes(path))
  if (missing !== undefined) throw new BackupError(`${folder} is incomplete: ${missing} is missing.`)
  const foreign = found.find(path => !(path in files))
  if (foreign !== undefined) throw new BackupError(`${folder} was altered: ${foreign} does not belong to it.`)
  mkdirSync(cluster, { mode: 0o700 })
  for (const path of folders) mkdirSync(join(cluster, path), { mode: 0o700 })
  for (const [path, { bytes, sha256 }] of Object.entries(files)) {
    const source = openSync(join(data, path), 'r')
    const copied = copyHashed(source, join(cluster, path), { flush: false }) // a server that recovers begins with that
    closeSync(source)
    if (copied.bytes !== bytes || copied.sha256 !== sha256)
      throw new BackupError(`${folder} was altered: ${path} is not as it was written.`)
  }
  writeFileSync(join(cluster, 'recovery.signal'), '')
}

/** Lets a server of its own read the WAL, and take the database over when it is done. */
async function recover({ to, user, strict, examine, say }: RestoreOrder, dataDir: string, backupDir: string): Promise<void> {
  const claim = claimFolder(dataDir)
  const server = await startEmbedded({
    dataDir,
    say,
    strict,
    extras: recovering(backupDir, to),
    ...(user !== undefined && { user }),
  }).catch((error: Error) => {
    claim.release()
    throw unreached(error.message, to)
  })
  const { host, port, user: role, database } = server
  const pool = makePool({ host, port, user: role, database, ssl: false }, 1, () => {})
  try {
    const ended = server.exited.then(tail => {
      throw unreached(tail, to)
    })
    await Promise.race([ended, promoted(pool)])
    await examine(pool)
  } finally {
    await pool.end()
    await server.stop()
    claim.release()
  }
}

async function promoted(pool: pg.Pool): Promise<void> {
  for (;;) {
    const { rows } = await pool.query<{ recovers: boolean }>('select pg_is_in_recovery() as recovers').catch(() => ({ rows: [] }))
    if (rows[0]?.recovers === false) return
    await systemClock.sleep(100)
  }
}

const unreached = (tail: string, to: number | undefined): BackupError =>
  new BackupError(
    to !== undefined && tail.includes('recovery ended before configured recovery target was reached')
      ? `The archive ends before ${new Date(to).toISOString()}: without --to all that it has is restored.`
      : `The backup could not be recovered. ${tail}`,
  )
