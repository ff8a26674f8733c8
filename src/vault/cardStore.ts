// Sealed cards in the database.

import { type Connection, eraseInSteps } from '../platform/database/connect.ts'

/** A part of the statement that stores payments: cards of `given` whose payments are `stored` now. */
export const putCards = `
    insert into sealed_cards (merchant_id, payment_id, sealed, erase_after)
    select merchant_id, id, sealed, erase_after from given where sealed is not null and id in (select id from stored)
    on conflict do nothing`

export async function findSealedCard(db: Connection, merchantId: string, paymentId: string): Promise<Buffer | undefined> {
  const { rows } = await db.query<{ sealed: Buffer }>(
    'select sealed from sealed_cards where merchant_id = $1 and payment_id = $2',
    [merchantId, paymentId],
  )
  return rows[0]?.sealed
}

/** Erases cards whose last day is over, by the time of their merchant. `now` is real time. */
export const eraseCards = (db: Connection, now: number): Promise<number> =>
  eraseInSteps(
    db,
    `delete from sealed_cards where ctid in (
       select c.ctid from sealed_cards c join entities m on m.id = c.merchant_id
        where c.erase_after < (($1::timestamptz + m.clock_offset_ms * interval '1 millisecond') at time zone 'UTC')::date limit $2)`,
    now,
  )
