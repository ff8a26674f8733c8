// A database that was put back to an earlier moment does not know of merchants who have left it since. It is noticed by where it stands: a backup that is restored
// makes another time line, a copy another database. In a cell nobody is served from then on until the other cells were asked (see restored).

import type pg from 'pg'
import { announceChange, hasTokensForOthers } from '../../merchants/store.ts'
import type { Clock } from '../../platform/clock.ts'
import { type Connection, type Database, inTransaction, timeParameter } from '../../platform/database/connect.ts'
import type { Log } from '../../platform/log.ts'

const lookMilliseconds = 5000

const why =
  'the database is not where a gateway last saw it and may be from before merchants left: tollgate cells restored --cells FILE --cell NAME asks the other cells for them'

/** Looks once before anything is served, and then again and again: a process that lives through a fail-over knows how far moves were before it. */
export async function watchPutBack({ work }: Pick<Database, 'work'>, clock: Clock, log: Log): Promise<PutBackWatch> {
  let seen = await noticePutBack(work, clock.real())
  const tell = () => {
    if (seen.held > 0) log.error({ why }, `${seen.held} merchants are refused, because the database may have been put back`)
  }
  tell()
  const look = async () => {
    const before = seen
    seen = await noticePutBack(work, clock.real(), seen)
    if (seen.held > before.held) tell()
  }
  const timer = clock.every(lookMilliseconds, () => {
    look().catch(() => {}) // a database that does not answer is told of by others
  })
  return { database: () => seen.database, stop: () => timer.cancel() }
}

/** `database`: which one it is, as far as it was prepared by a gateway. */
export type PutBackWatch = { database(): string | undefined; stop(): void }

/** `lastStep`: when the last step of a move was written, as this database knows. `held`: merchants who are refused because nobody knows where they are. */
type MovesSeen = {
  readonly at: number
  readonly stands: string | undefined
  readonly lastStep: number
  readonly held: number
  readonly database: string | undefined
}

/**
 * `lived`: what this process saw last. Where only the time line is another and nothing of that is lost, a standby has taken over; a process that began meanwhile cannot
 * know that, and whom it has held is served again.
 */
async function noticePutBack(pool: pg.Pool, now: number, lived?: MovesSeen): Promise<MovesSeen> {
  const stands = await standingOf(pool)
  const known = await readStanding(pool)
  if (stands !== undefined && known !== undefined && known !== stands)
    await inTransaction(pool, async db => {
      const before = await readStanding(db, 'for update')
      if (before === stands) return // another process was first
      await db.query('update installation set stands_on = $1', [stands])
      if (before === null || (await hasLived(db, before, stands, lived)) || !(await isOneOfCells(db))) return
      await holdMerchants(db, now)
      await announceChange(db)
    })
  else if (stands !== undefined && lived?.stands !== undefined && lived.stands !== stands)
    await inTransaction(pool, async db => {
      if ((await readStanding(db, 'for update')) !== stands || !(await hasLived(db, lived.stands!, stands, lived))) return
      await releaseMerchants(db, await heldSince(db, lived.at))
      await announceChange(db)
    })
  return { ...(await readSeen(pool)), at: now, stands }
}

/** Only the time line is another, and nothing is lost of what was there when this process looked last. */
const hasLived = async (
  db: Connection,
  before: string | undefined,
  stands: string,
  lived: MovesSeen | undefined,
): Promise<boolean> =>
  lived !== undefined &&
  before !== undefined &&
  clusterOf(before) === clusterOf(stands) &&
  (await readSeen(db)).lastStep >= lived.lastStep

async function heldSince(db: Connection, at: number): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>('select merchant_id as id from merchant_moves where put_back_at >= $1', [
    timeParameter(at),
  ])
  return rows.map(({ id }) => id)
}

/** `cluster database timeline`; undefined where the role may not ask. */
async function standingOf(db: Connection): Promise<string | undefined> {
  const { rows } = await db
    .query<{ stands: string }>(
      `select concat_ws(' ', system_identifier, (select oid from pg_database where datname = current_database()), left(pg_walfile_name(pg_current_wal_lsn()), 8)) as stands
         from pg_control_system()`,
    )
    .catch(() => ({ rows: [] }))
  return rows[0]?.stands
}

const clusterOf = (stands: string): string => stands.split(' ', 2).join(' ')

/** Undefined in a database that no gateway has prepared; null where none has looked yet. */
async function readStanding(db: Connection, lock = ''): Promise<string | null | undefined> {
  return (await db.query<{ stands: string | null }>(`select stands_on as stands from installation ${lock}`)).rows[0]?.stands
}

async function readSeen(db: Connection): Promise<Pick<MovesSeen, 'lastStep' | 'held' | 'database'>> {
  const { rows } = await db.query<{ last: number | null; held: number }>(
    'select max(changed_at) filter (where put_back_at is null or run > 0) as last, count(put_back_at) as held from merchant_moves',
  )
  return { lastStep: rows[0]!.last ?? 0, held: rows[0]!.held, database: await databaseId(db) }
}

/** The same for all who work on this database, another for a copy of it; it gives nothing away. */
export async function databaseId(db: Connection): Promise<string | undefined> {
  const { rows } = await db.query<{ id: string }>(
    'select md5(concat_ws(chr(32), id, (select oid from pg_database where datname = current_database()))) as id from installation',
  )
  return rows[0]?.id
}

/** As far as the database knows: a map was made of it, a merchant left it or came, or a token here acts for somebody who is not. */
export async function isOneOfCells(db: Connection): Promise<boolean> {
  const { rows } = await db.query<{ known: boolean }>(
    'select exists (select from merchant_moves) or exists (select from installation where in_cells) as known',
  )
  return rows[0]!.known || (await hasTokensForOthers(db))
}

export async function noteCell(db: Connection): Promise<void> {
  await db.query('update installation set in_cells = true where not in_cells')
}

/** Nobody who was served here is, until somebody has asked the other cells. `only`: of these merchants. */
export async function holdMerchants(db: Connection, now: number, only: readonly string[] | null = null): Promise<void> {
  const values = [timeParameter(now), only]
  await db.query(
    'update merchant_moves set here = false, put_back_at = $1 where here and ($2::uuid[] is null or merchant_id = any ($2))',
    values,
  )
  await db.query(
    `insert into merchant_moves (merchant_id, direction, state, here, other, run, put_back_at, changed_at)
     select id, 'leaving', 'stayed', false, '', 0, $1, $1 from entities where kind = 'merchant' and ($2::uuid[] is null or id = any ($2))
     on conflict do nothing`,
    values,
  )
}

/** Serves them again, as before. */
export async function releaseMerchants(db: Connection, merchants: readonly string[]): Promise<void> {
  await db.query('delete from merchant_moves where put_back_at is not null and run = 0 and merchant_id = any ($1)', [merchants])
  await db.query(
    'update merchant_moves set here = true, put_back_at = null where put_back_at is not null and merchant_id = any ($1)',
    [merchants],
  )
}
