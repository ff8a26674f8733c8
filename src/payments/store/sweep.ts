// What runs over many payments: the search for unanswered ones, and what is erased when its time is over.

import { type Connection, eraseInSteps, timeParameter } from '../../platform/database/connect.ts'

/** Erases idempotency keys recorded before a moment. */
export const eraseKeys = (db: Connection, before: number): Promise<number> =>
  eraseInSteps(
    db,
    `delete from idempotency_keys where (merchant_id, key_hash) in (
       select merchant_id, key_hash from idempotency_keys where recorded_at < $1 limit $2)`,
    before,
  )

/** Erases the addresses that were handed to shoppers before a moment. */
export const eraseRedirects = (db: Connection, before: number): Promise<number> =>
  eraseInSteps(
    db,
    `delete from redirects where (merchant_id, payment_id) in (
       select merchant_id, payment_id from redirects where made_at < $1 limit $2)`,
    before,
  )

/** Hands what is under way since before a moment to recovery; without a moment everything that is under way. Returns how many. */
export async function sweepUnanswered(db: Connection, before: number | undefined, dueAt: number): Promise<number> {
  const { rowCount } = await db.query(
    `with left_behind as (
       delete from unanswered
        where (merchant_id, payment_id) in (
          select merchant_id, payment_id from unanswered where recorded_at < coalesce($1::timestamptz, 'infinity') limit 1000 for update skip locked)
       returning merchant_id, payment_id)
     insert into due_work (kind, merchant_id, subject_id, due_at)
     select 'recover', merchant_id, payment_id, $2::timestamptz from left_behind
     on conflict do nothing`,
    [before === undefined ? null : timeParameter(before), timeParameter(dueAt)],
  )
  return rowCount ?? 0
}

// A row is committed a little after the time in its id.
export const slackMilliseconds = 10_000

/** The smallest id that a payment recorded at a time can have: ids begin with the milliseconds. */
export const idAt = (milliseconds: number): string => milliseconds.toString(16).padStart(12, '0').padEnd(32, '0')
