// A backup becomes the database of an empty DATA_DIR, as it was at its end or at any moment since, where the archive reaches. All of it is done in
// a draft beside the place; only what is whole, and was let pass, is moved there, in one step.

import { closeSync, constants, existsSync, mkdirSync, readdirSync, realpathSync, renameSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { gunzipSync } from 'node:zlib'
import type pg from 'pg'
import { systemClock } from '../../clock.ts'
import { syncFolder } from '../../files.ts'
import { makePool } from '../connect.ts'
import { letPass } from '../embedded/account.ts'
import { findBinaries } from '../embedded/binaries.ts'
import { clearDraft } from '../embedded/orphan.ts'
import { openOwn, readOwn } from '../embedded/ownFile.ts'
import { restoringName, systemIdentifier } from '../embedded/place.ts'
import { archivedWal, pieceNumber, recovering } from '../embedded/walArchive.ts'
import { startEmbedded } from '../embedded.ts'
import { claimFolder } from '../folder.ts'
import { BackupError, copyHashed, type Manifest, readManifest, type Seals, treeOf, whoReads, writeHashed } from './manifest.ts'
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

/** What may stand in DATA_DIR already. */
const mayStand = /^(keys|gateway\.lock.*|postgres\.restoring|postgres\.log|socket)$/

export async function restoreBackup(order: RestoreOrder): Promise<{ manifest: Manifest }> {
  const { dataDir, to, say } = order
  if (!existsSync(order.from)) throw new BackupError(`There is no backup ${order.from}. Nothing was restored.`)
  const source = realpathSync(order.from)
  const folder = backupFor(source, to)
  const { manifest, hasSealOf } = readManifest(folder)
  refuseOther(manifest, folder)
  order.compare(manifest)
  if (!hasSealOf(order.seals)) throw new BackupError(`The manifest of ${folder} was altered.`)
  const archive = archiveBeside(folder)
  if (archive.size === 0 && to !== undefined)
    throw new BackupError(`There is no archive beside ${folder}: it can only be restored as it was at its end, without --to.`)
  refuseGap(dirname(folder), archive, manifest)
  const claim = claimFolder(dataDir)
  try {
    const standing = readdirSync(dataDir).filter(name => !mayStand.test(name))
    if (standing.length > 0)
      throw new BackupError(`${dataDir} is not empty (${standing.join(', ')}): nothing is restored over what is there.`)
    const draft = join(realpathSync(dataDir), restoringName)
    await clearDraft(draft, say)
    try {
      say(`Copying ${folder} ...`)
      mkdirSync(draft, { mode: 0o700 })
      letPass(dirname(draft)) // as a start does; the server works in the draft
      await copyBack(folder, join(draft, 'postgres'), manifest)
      say(`Reading what was written ${to === undefined ? 'since' : `until ${new Date(to).toISOString()}`} ...`)
      await recover(order, draft, archive)
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
  const ended = (all.length === 0 ? [from] : all).map(folder => ({ folder, at: readManifest(folder).manifest.endedAt }))
  const newest = ended
    .filter(({ at }) => to === undefined || at <= to)
    .sort((one, other) => one.at - other.at)
    .at(-1)
  if (newest !== undefined) return newest.folder
  throw new BackupError(`No backup in ${from} is from before ${new Date(to!).toISOString()}.`)
}

function refuseOther({ server }: Manifest, folder: string): void {
  const ours = whoReads(findBinaries().major)
  if (server !== ours) throw new BackupError(`${folder} is of ${server}; this program brings ${ours}, which cannot read it.`)
}

/** Of the cluster that the backup is of, and of no other that was archived beside it. */
function archiveBeside(folder: string): ReadonlyMap<string, string> {
  const data = join(folder, 'data')
  if (existsSync(join(data, 'global/pg_control'))) return archivedWal(dirname(folder), systemIdentifier(data))
  throw new BackupError(`${folder} is incomplete: global/pg_control is missing.`)
}

/** Recovery would take a piece that is missing for the end of the archive. It goes along the newest time line that follows the backup's, from where it begins. */
function refuseGap(backupDir: string, archive: ReadonlyMap<string, string>, { wal: [, to] }: Manifest): void {
  let newest = lineOf(to)
  while (archive.has(historyOf(newest + 1))) newest++
  const ends = new Map([
    [newest, Number.POSITIVE_INFINITY],
    ...(newest === lineOf(to) ? [] : endsOf(backupDir, archive.get(historyOf(newest))!)),
  ])
  const names = [...archive.keys()]
    .filter(
      name => /^\w{24}$/.test(name) && pieceNumber(name) > pieceNumber(to) && pieceNumber(name) <= (ends.get(lineOf(name)) ?? 0),
    )
    .sort((one, other) => pieceNumber(one) - pieceNumber(other))
  const gap = [to, ...names].find((name, at, all) => at > 0 && pieceNumber(name) > pieceNumber(all[at - 1]!) + 1)
  if (gap !== undefined)
    throw new BackupError(`The archive ${join(backupDir, 'wal')} has a gap before ${gap}: what came after it is lost.`)
}

const lineOf = (name: string): number => Number.parseInt(name.slice(0, 8), 16)
const historyOf = (line: number): string => `${line.toString(16).toUpperCase().padStart(8, '0')}.history`

/** The time lines that one follows, each with the number of the piece in which it was left; a row of a history is `line, position, reason`. */
const endsOf = (backupDir: string, history: string): [line: number, piece: number][] =>
  [
    ...gunzipSync(readOwn(backupDir, relative(backupDir, history)))
      .toString('utf8')
      .matchAll(/^(\d+)\s+([0-9A-F]+)\/([0-9A-F]+)/gm),
  ].map(([, line, high, low]) => [
    Number(line),
    256 * Number.parseInt(high!, 16) + Math.floor(Number.parseInt(low!, 16) / 2 ** 24),
  ])

async function copyBack(folder: string, cluster: string, { folders, files }: Manifest): Promise<void> {
  const data = join(folder, 'data')
  const found = treeOf(data).files
  const missing = Object.keys(files).find(path => !found.includes(path))
  if (missing !== undefined) throw new BackupError(`${folder} is incomplete: ${missing} is missing.`)
  const foreign = found.find(path => !(path in files))
  if (foreign !== undefined) throw new BackupError(`${folder} was altered: ${foreign} does not belong to it.`)
  mkdirSync(cluster, { mode: 0o700 })
  for (const path of folders) mkdirSync(join(cluster, path), { mode: 0o700 })
  let turned = systemClock.elapsed()
  for (const [path, { bytes, sha256 }] of Object.entries(files)) {
    // Else nobody would show, while a large one is copied, that the folder is held.
    if (systemClock.elapsed() - turned > 1000) {
      await systemClock.sleep(0)
      turned = systemClock.elapsed()
    }
    const source = openOwn(folder, `data/${path}`, constants.O_RDONLY)
    const copied = copyHashed(source, join(cluster, path), { flush: false }) // a server that recovers begins with that
    closeSync(source)
    if (copied.bytes !== bytes || copied.sha256 !== sha256)
      throw new BackupError(`${folder} was altered: ${path} is not as it was written.`)
  }
  writeHashed(join(cluster, 'recovery.signal'), '')
}

/** Lets a server of its own read the WAL, and take the database over when it is done. */
async function recover(
  { to, user, strict, examine, say }: RestoreOrder,
  dataDir: string,
  archive: ReadonlyMap<string, string>,
): Promise<void> {
  const claim = claimFolder(dataDir)
  const server = await startEmbedded({
    dataDir,
    say,
    strict,
    isOurs: true, // its manifest says so, and its server's command line was left out of it
    extras: recovering(archive, join(dataDir, 'wal'), to),
    ...(user !== undefined && { user }),
  }).catch((error: Error) => {
    claim.release()
    throw unreached(error.message, to)
  })
  const { host, port, user: role, database } = server
  const pool = makePool({ host, port, user: role, database, ssl: false }, 1, () => {})
  const over = new AbortController()
  try {
    const ended = server.exited.then(tail => {
      throw unreached(tail, to)
    })
    await Promise.race([ended, promoted(pool, over.signal)])
    await examine(pool)
  } finally {
    over.abort()
    await pool.end()
    await server.stop()
    claim.release()
  }
}

async function promoted(pool: pg.Pool, over: AbortSignal): Promise<void> {
  while (!over.aborted) {
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
