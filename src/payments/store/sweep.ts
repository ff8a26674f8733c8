// What runs over many payments: the search for unanswered ones.

import { type Connection, timeParameter } from '../../platform/database/connect.ts'
import { servedHere } from '../../platform/database/elsewhere.ts'

/** Hands what is under way since before a moment to recovery; without a moment everything that is under way. Returns how many. */
export async function sweepUnanswered(db: Connection, before: number | undefined, dueAt: number): Promise<number> {
  const { rowCount } = await db.query(
    `with left_behind as (
       delete from unanswered
        where (merchant_id, payment_id) in (
          select merchant_id, payment_id from unanswered where recorded_at < coalesce($1::timestamptz, 'infinity') and ${servedHere()} limit 1000 for update skip locked)
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
