// Sealed cards in the database.

import type { Connection } from '../platform/database/connect.ts'
import { servedHere } from '../platform/database/elsewhere.ts'
import type { Kept } from '../platform/retention/kept.ts'

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

/** `$1` is real time; the merchant whose time was moved furthest says how far the index is read. */
const eraseCards = `delete from sealed_cards where (merchant_id, payment_id) in (
  select c.merchant_id, c.payment_id from sealed_cards c join entities m on m.id = c.merchant_id
   where c.erase_after < (($1::timestamptz + (select max(clock_offset_ms) from entities) * interval '1 millisecond') at time zone 'UTC')::date
     and ${servedHere('c.merchant_id')} and c.erase_after < (($1::timestamptz + m.clock_offset_ms * interval '1 millisecond') at time zone 'UTC')::date limit $2)`

// biome-ignore format: a kind in few lines
export const keptCards: readonly Kept[] = [
  { kind: 'cards', what: 'sealed card numbers', table: 'sealed_cards', key: 'merchant_id, payment_id', since: 'erase_after', statement: eraseCards,
    days: 0, why: 'Each says its last day, by the time of its merchant: 400 days after its payment, so that refunds find it; of a registration 14 months after it expires.' },
]

/** As long as the card of a payment is kept, the payment is not archived: it may be paid back, or captured. */
export const cardsOfChains = [{ table: 'sealed_cards', holds: 'true', stays: true }] as const
