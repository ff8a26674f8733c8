// What runs over many payments: the search for unanswered ones, and what is erased when its time is over.

import { type Connection, timeParameter } from '../../database/connect.ts'

/** Erases sealed cards whose last day is over. */
export const eraseCards = (db: Connection, now: number): Promise<number> =>
  eraseInSteps(db, 'delete from sealed_cards where ctid in (select ctid from sealed_cards where erase_after < $1 limit $2)', now)

/** Erases idempotency keys recorded before a moment. */
export const eraseKeys = (db: Connection, before: number): Promise<number> =>
  eraseInSteps(
    db,
    'delete from idempotency_keys where ctid in (select ctid from idempotency_keys where recorded_at < $1 limit $2)',
    before,
  )

/** Erases the addresses that were handed to shoppers before a moment. */
export const eraseRedirects = (db: Connection, before: number): Promise<number> =>
  eraseInSteps(db, 'delete from redirects where ctid in (select ctid from redirects where made_at < $1 limit $2)', before)

/** Small steps, so that no statement holds many rows. */
async function eraseInSteps(db: Connection, statement: string, before: number): Promise<number> {
  const step = 1000
  let erased = 0
  for (let more = true; more; ) {
    const { rowCount } = await db.query(statement, [timeParameter(before), step])
    erased += rowCount ?? 0
    more = rowCount === step
  }
  return erased
}

/** Hands every unanswered payment recorded before a moment to recovery, and remembers how far it came. Returns how many. */
export async function sweepUnanswered(db: Connection, before: number, dueAt: number): Promise<number> {
  const sweep = await db.query<{ reached: number }>(`select reached_at as reached from sweeps where name = 'unanswered'`)
  const reached = sweep.rows[0]?.reached ?? 0
  const { rows } = await db.query<{ found: number }>(
    `with found as (
       insert into due_work (kind, merchant_id, subject_id, due_at)
       select 'recover', p.merchant_id, p.id, $1
         from entities m
         cross join lateral (
           select p.merchant_id, p.id from payments p
             left join lateral (
               -- the limit keeps this a look-up of each new payment: joined whole, all answers ever given would be read
               select true as given from answers a where a.merchant_id = p.merchant_id and a.payment_id = p.id limit 1) answer on true
            where p.merchant_id = m.id and p.id >= $2 and p.id < $3 and answer.given is null
              and not exists (select from continuations c where c.merchant_id = p.merchant_id and c.payment_id = p.id)) p
        where m.kind = 'merchant'
       on conflict do nothing returning 1)
     select count(*) as found from found`,
    [timeParameter(dueAt), idAt(Math.max(0, reached - slackMilliseconds)), idAt(before)],
  )
  await db.query(
    `insert into sweeps (name, reached_at) values ('unanswered', $1)
     on conflict (name) do update set reached_at = greatest(sweeps.reached_at, excluded.reached_at)`,
    [timeParameter(before)],
  )
  return rows[0]!.found
}

// A row is committed a little after the time in its id.
export const slackMilliseconds = 10_000

/** The smallest id that a payment recorded at a time can have: ids begin with the milliseconds. */
export const idAt = (milliseconds: number): string => milliseconds.toString(16).padStart(12, '0').padEnd(32, '0')
