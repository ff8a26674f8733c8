// Erasing in the database, and what is known of it: for every kind when it was done last, and how many rows it took.

import type pg from 'pg'
import { idAt } from '../clock.ts'
import { refusedSeconds } from '../database/clocks.ts'
import { type Connection, inTransaction, timeParameter } from '../database/connect.ts'
import { servedHere } from '../database/elsewhere.ts'
import type { Kept } from './kept.ts'

/** No statement holds more rows than this. */
export const rowsOfStep = 1000

const statementOf = ({ statement, table, key, since, where = 'true', forgets }: Kept): string =>
  statement ??
  `${forgets === undefined ? `delete from ${table}` : `update ${table} set ${forgets}`} where (${key}) in (
     select ${key} from ${table} where ${since} < $1 and ${where} and ${ownedHere(key)} limit $2 for update skip locked)`

/** What has left, or has not arrived, is not erased: it is compared with what is in the other cell. */
const ownedHere = (key: string): string => {
  const owner = /^(merchant|owner)_id/.exec(key)?.[0]
  return owner === undefined ? 'true' : servedHere(owner)
}

/** Erases what is older than a moment, at most a step. How many rows went is counted in the same transaction. */
export async function eraseStep(pool: pg.Pool, one: Kept, before: number): Promise<number> {
  if (one.erase) {
    const erased = await one.erase(pool, before)
    await addErased(pool, one.kind, erased)
    return erased
  }
  return inTransaction(pool, async db => {
    const { rowCount } = await db.query(statementOf(one), [one.ids ? idAt(before) : timeParameter(before), rowsOfStep])
    await addErased(db, one.kind, rowCount ?? 0)
    return rowCount ?? 0
  })
}

async function addErased(db: Connection, kind: string, rows: number): Promise<void> {
  if (rows > 0) await db.query('update sweeps set erased = erased + $2 where kind = $1', [kind, rows])
}

/** Processes may be so far apart. What is noted of a later time was noted by a clock that was wrong, and keeps nobody from anything. */
const ahead = `interval '${2 * refusedSeconds} seconds'`

/** Whether it is ours to erase what is over now: nobody has begun since a moment. `wasAhead`: who began last did it by a time that is still to come. */
export async function takeSweep(
  db: Connection,
  kind: string,
  now: number,
  since: number,
): Promise<{ readonly wasAhead: boolean } | undefined> {
  const { rows } = await db.query<{ wasAhead: boolean }>(
    `insert into sweeps as s (kind, taken_at) values ($1, $2)
     on conflict (kind) do update set taken_at = excluded.taken_at where s.taken_at <= $3 or s.taken_at > $2::timestamptz + ${ahead}
     returning coalesce((select before.taken_at > $2::timestamptz + ${ahead} from sweeps before where before.kind = $1), false) as "wasAhead"`,
    [kind, timeParameter(now), timeParameter(since)],
  )
  return rows[0]
}

/** Nothing that was over at a moment is left. */
export async function noteSwept(db: Connection, kind: string, at: number): Promise<void> {
  await db.query(
    `update sweeps set swept_at = case when swept_at > $2::timestamptz + ${ahead} then $2 else greatest(swept_at, $2) end where kind = $1`,
    [kind, timeParameter(at)],
  )
}

export type Sweep = { readonly kind: string; readonly sweptAt: number | null; readonly erased: number }

export async function readSweeps(db: Connection): Promise<ReadonlyMap<string, Sweep>> {
  const { rows } = await db.query<Sweep>('select kind, swept_at as "sweptAt", erased from sweeps')
  return new Map(rows.map(row => [row.kind, row]))
}

/** How many rows there are, estimated where they are many, and since when the oldest is kept, in milliseconds. Reads the whole table. */
export async function measureKept(
  db: Connection,
  { table, since, where = 'true', ids }: Kept,
): Promise<{ readonly rows: number; readonly oldest: number | null }> {
  const { rows } = await db.query<{ rows: number; oldest: number | string | null }>(
    `select case when reltuples > 100000 then reltuples::bigint else (select count(*) from ${table} where ${where}) end as rows,
            (select ${since} from ${table} where ${where} order by 1 limit 1) as oldest
       from pg_class where oid = '${table}'::regclass`,
  )
  const { rows: count, oldest } = rows[0]!
  const at = typeof oldest !== 'string' ? oldest : ids ? Number.parseInt(oldest.slice(0, 12), 16) : Date.parse(oldest)
  return { rows: count, oldest: at }
}
