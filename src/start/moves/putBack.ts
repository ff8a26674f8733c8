// A database that was put back to an earlier moment does not know of merchants who have left it since. It is noticed by where it stands: a backup that is restored
// makes another time line, a copy another database. In a cell nobody is served from then on until the other cells were asked (see restored). Files to
// banks and acquirers wait in every installation until somebody says what these have.

import type pg from 'pg'
import { lastFilesOfAll } from '../../clearing/fileSeries.ts'
import { passTraceNumbers } from '../../connectors/cards/terminals/store.ts'
import { announceChange, hasTokensForOthers } from '../../merchants/store.ts'
import type { Clock } from '../../platform/clock.ts'
import { type Connection, type Database, inTransaction, timeParameter } from '../../platform/database/connect.ts'
import { isUnavailable } from '../../platform/database/errors.ts'
import { type FileHold, holdFiles, type LastFile, readFileHold, writeFileHold } from '../../platform/database/fileHold.ts'
import { clusterOf, readStanding, standingOf, writeStanding } from '../../platform/database/installation.ts'
import type { Log } from '../../platform/log.ts'

const lookMilliseconds = 5000
/** A fail-over takes half a minute, and a restore longer than this: a process that has not looked for so long may have slept through more. */
const lookedLatelyMilliseconds = 120_000

const why =
  'the database is not where a gateway last saw it and may be from before merchants left: tollgate cells restored --cells FILE --cell NAME asks the other cells for them'

/** Looks once before anything is served, and then again and again: a process that lives through a fail-over knows how far moves were before it. */
export async function watchPutBack({ work }: Pick<Database, 'work'>, clock: Clock, log: Log): Promise<PutBackWatch> {
  if (!(await tellsStanding(work))) return { stop() {} }
  let seen: MovesSeen | undefined
  const look = async () => {
    const before = seen
    const now = await noticePutBack(work, clock, before)
    seen = now
    if (now.released > 0)
      log.warn({}, `${now.released} merchants are served again: a standby has taken over, and no move is lost`)
    if (now.refused > 0 || now.held.size > (before?.held.size ?? 0))
      log.error({ why }, `${now.held.size} merchants are refused, because the database may have been put back`)
  }
  await look()
  const timer = clock.every(lookMilliseconds, () => {
    look().catch(() => {}) // a database that does not answer is told of by others, and what was seen of it stays, as old as it is
  })
  return { stop: () => timer.cancel() }
}

export type PutBackWatch = { stop(): void }

/** Some roles may not ask, and some servers do not say it. */
const tellsStanding = (pool: pg.Pool): Promise<boolean> =>
  standingOf(pool).then(
    () => true,
    error => {
      if (isUnavailable(error)) throw error
      return false
    },
  )

/** `at`: elapsed time. `steps`: of moves, by merchant. `held`: merchants who are refused because nobody knows where they are. */
type MovesSeen = {
  readonly at: number
  readonly stands: string
  readonly steps: ReadonlyMap<string, number>
  readonly held: ReadonlySet<string>
  readonly lastFiles: ReadonlyMap<string, LastFile>
  readonly fileHold: FileHold
}

/** How many merchants this look itself refused, or served again. */
type LookEnd = MovesSeen & { readonly refused: number; readonly released: number }

/**
 * `lived`: what this process saw last. Where only the time line is another and none of those steps is lost, a standby has taken over. Who began meanwhile cannot know
 * that, and whom it has held is served again. Nor can know it who saw held merchants, because of their steps it knows nothing, or looked too long ago. All of it on
 * one connection: during a fail-over another one may lead to another server.
 */
function noticePutBack(pool: pg.Pool, clock: Clock, lived: MovesSeen | undefined): Promise<LookEnd> {
  const at = clock.elapsed()
  return inTransaction(pool, async db => {
    const stands = await standingOf(db)
    const seen = await readSeen(db, stands, at)
    const known = await readStanding(db)
    const lost = lived ? lostSince(lived, seen) : []
    const lostFiles = lived !== undefined && hasLostFiles(lived, seen)
    const isNew = known !== stands || (lived ?? seen).stands !== stands || lost.length > 0 || lostFiles
    if (known === undefined || !isNew) return { ...seen, refused: 0, released: 0 }
    const before = await readStanding(db, 'for update')
    const judge = lived?.held.size === 0 && clock.elapsed() - lived.at < lookedLatelyMilliseconds ? lived : undefined
    const isFailOver = judge !== undefined && lost.length === 0 && clusterOf(judge.stands) === clusterOf(stands)
    const isElsewhere = !isFailOver && Boolean(before) && before !== stands
    if (before !== stands) await writeStanding(db, stands) // else another process was first
    if (isFailOver) await releaseMerchants(db, await heldAfter(db, judge.stands))
    else if (isElsewhere && (await isOneOfCells(db))) await holdMerchants(db, clock.real(), null, judge ? null : before)
    await holdMerchants(db, clock.real(), lost) // also where it stands as before, or a process was first that had not seen these steps
    if (lostFiles || isElsewhere) await holdFiles(db, lostFiles || judge ? null : before)
    else if (isFailOver) await letFilesGo(db, judge)
    if (isElsewhere) await passTraceNumbers(db)
    await announceChange(db)
    const left = await readSeen(db, stands, at)
    return { ...left, refused: heldOnlyIn(left, seen).length, released: heldOnlyIn(seen, left).length }
  })
}

/** Whose steps are gone. A hold that is gone with the time line went with it; else `cells restored` has ended it. */
function lostSince(lived: MovesSeen, seen: MovesSeen): string[] {
  const steps = [...lived.steps].flatMap(([id, steps]) => ((seen.steps.get(id) ?? 0) < steps ? [id] : []))
  return lived.stands === seen.stands ? steps : [...new Set([...steps, ...heldOnlyIn(lived, seen)])]
}

/** Whether files are gone, and not with a merchant who has left: that account was seen as another cell's before it was forgotten. */
const hasLostFiles = (lived: MovesSeen, seen: MovesSeen): boolean =>
  [...lived.lastFiles].some(([subject, { last, here }]) => here && (seen.lastFiles.get(subject)?.last ?? 0) < last)

/** What only those have held who began since this one looked last; it may itself have seen less than others who hold what they have seen to be lost. */
async function letFilesGo(db: Connection, lived: MovesSeen): Promise<void> {
  const hold = await readFileHold(db, 'for update')
  if (hold.after === lived.stands) await writeFileHold(db, lived.fileHold)
}

const heldOnlyIn = (one: MovesSeen, other: MovesSeen): string[] => [...one.held].filter(id => !other.held.has(id))

async function readSeen(db: Connection, stands: string, at: number): Promise<MovesSeen> {
  const { rows } = await db.query<{ id: string; steps: number; held: boolean }>(
    'select merchant_id as id, steps, put_back_at is not null as held from merchant_moves',
  )
  const steps = new Map(rows.map(one => [one.id, one.steps]))
  const held = new Set(rows.flatMap(one => (one.held ? [one.id] : [])))
  const [lastFiles, fileHold] = [await lastFilesOfAll(db), await readFileHold(db)]
  return { at, stands, steps, held, lastFiles, fileHold }
}

/** As far as the database knows: a map was made of it, a merchant left it or came, or a token here acts for somebody who is not. */
export async function isOneOfCells(db: Connection): Promise<boolean> {
  const { rows } = await db.query<{ known: boolean }>(
    'select exists (select from merchant_moves) or exists (select from installation where in_cells) as known',
  )
  return rows[0]!.known || (await hasTokensForOthers(db))
}

/**
 * Nobody who was served here is, until somebody has asked the other cells. `only`: of these merchants. `after`: where the database stood before, when all that makes
 * them held is that nobody knows what became of it; without it they are served again by `cells restored` alone.
 */
export async function holdMerchants(
  db: Connection,
  now: number,
  only: readonly string[] | null,
  after: string | null = null,
): Promise<void> {
  const values = [timeParameter(now), only, after]
  await db.query(
    `update merchant_moves set here = false, put_back_at = coalesce(put_back_at, $1), held_after = $3
      where (here or (held_after is not null and $3::text is null)) and ($2::uuid[] is null or merchant_id = any ($2))`,
    values,
  )
  await db.query(
    `insert into merchant_moves (merchant_id, direction, state, here, other, run, put_back_at, held_after, changed_at)
     select id, 'leaving', 'stayed', false, '', 0, $1, $3, $1 from entities where kind = 'merchant' and ($2::uuid[] is null or id = any ($2))
     on conflict do nothing`,
    values,
  )
}

async function heldAfter(db: Connection, stands: string): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>('select merchant_id as id from merchant_moves where held_after = $1', [stands])
  return rows.map(({ id }) => id)
}

/** Serves them again, as before. */
export async function releaseMerchants(db: Connection, merchants: readonly string[]): Promise<void> {
  await db.query('delete from merchant_moves where put_back_at is not null and run = 0 and merchant_id = any ($1)', [merchants])
  await db.query(
    'update merchant_moves set here = true, put_back_at = null, held_after = null where put_back_at is not null and merchant_id = any ($1)',
    [merchants],
  )
}
