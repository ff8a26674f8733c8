// Sealed cards in the database.

import { type Connection, eraseInSteps } from '../platform/database/connect.ts'

/** A part of the statement that stores payments: cards of `given` whose payments are `stored` now. */
export const putCards = `
    insert into sealed_cards (merchant_id, payment_id, sealed, erase_after)
    select merchant_id, id, sealed, erase_after from given where sealed is not null and id in (select id from stored)
    on conflict do nothing`

/** Another day is the last one of the card that stands under an owner and an id; both, and the day, are SQL. */
export const keepCards = (from: string, owner: string, id: string, day: string): string => `
    update sealed_cards set erase_after = ${day} from ${from}
     where sealed_cards.merchant_id = ${owner} and sealed_cards.payment_id = ${id}`

/** The same for a registration: its owner stands in the place of the merchant. */
export async function putCard(
  db: Connection,
  ownerId: string,
  id: string,
  { sealed, eraseAfter }: { readonly sealed: Buffer; readonly eraseAfter: string },
): Promise<void> {
  await db.query(
    'insert into sealed_cards (merchant_id, payment_id, sealed, erase_after) values ($1, $2, $3, $4) on conflict do nothing',
    [ownerId, id, sealed, eraseAfter],
  )
}

export async function dropCard(db: Connection, ownerId: string, id: string): Promise<void> {
  await db.query('delete from sealed_cards where merchant_id = $1 and payment_id = $2', [ownerId, id])
}

export async function findSealedCard(db: Connection, merchantId: string, paymentId: string): Promise<Buffer | undefined> {
  const { rows } = await db.query<{ sealed: Buffer }>({
    name: 'find card',
    text: 'select sealed from sealed_cards where merchant_id = $1 and payment_id = $2',
    values: [merchantId, paymentId],
  })
  return rows[0]?.sealed
}

/** Erases cards whose last day is over, by the time of their merchant. `now` is real time. */
export const eraseCards = (db: Connection, now: number): Promise<number> =>
  eraseInSteps(
    db,
    `delete from sealed_cards where (merchant_id, payment_id) in (
       select c.merchant_id, c.payment_id from sealed_cards c join entities m on m.id = c.merchant_id
        where c.erase_after < (($1::timestamptz + m.clock_offset_ms * interval '1 millisecond') at time zone 'UTC')::date limit $2)`,
    now,
  )
