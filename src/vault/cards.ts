// Cards of first payments and of registrations: put sealed, opened for what follows, erased when their time is over. Nobody else touches them.

import type { Card } from '../contract/card.ts'
import type { Random } from '../platform/clock.ts'
import type { Connection } from '../platform/database/connect.ts'
import { findSealedCard } from './cardStore.ts'
import type { Keys } from './keys.ts'
import { seal, unseal } from './seal.ts'
import { type SealedPlace, sealedColumn } from './store.ts'

/** A card as it is stored: without its CVV. */
export type SealedCard = {
  readonly sealed: Buffer
  /** yyyy-MM-dd, by the time of the merchant. */
  readonly eraseAfter: string
}

/** Card data stays sealed for as long as refunds are usual; then it is erased. */
export const cardRetentionDays = 400

/** `now`: the business time of its merchant. `putCards` stores it, in the statement that stores the payment. */
export const sealCard = (
  { keys, random }: { readonly keys: Keys; readonly random: Random },
  merchantId: string,
  paymentId: string,
  { cvv: _never, ...card }: Card,
  now: number,
  days = cardRetentionDays,
): SealedCard => ({
  sealed: seal(keys, random, placeOf(merchantId, paymentId), JSON.stringify(card)),
  eraseAfter: dayAt(now + days * 86_400_000),
})

/** A registered card is kept for so many months after it expired. */
const monthsAfterExpiry = 14

/** The last day on which a registration's card is kept; never sooner than that of a payment's, whatever is printed on it. */
export const registeredUntil = ({ expiryMonth, expiryYear }: Card, now: number): string =>
  dayAt(Math.max(Date.UTC(Number(expiryYear), Number(expiryMonth) + monthsAfterExpiry, 0), now + cardRetentionDays * 86_400_000))

const dayAt = (milliseconds: number): string => new Date(milliseconds).toISOString().slice(0, 10)

/** Undefined when it is erased or there never was one. Throws SealError when it does not open. */
export async function openCard(db: Connection, keys: Keys, merchantId: string, paymentId: string): Promise<Card | undefined> {
  const sealed = await findSealedCard(db, merchantId, paymentId)
  return sealed && JSON.parse(unseal(keys, placeOf(merchantId, paymentId), sealed))
}

/** What binds a sealed card to its payment. */
const placeOf = (merchantId: string, paymentId: string): string => `card ${merchantId} ${paymentId}`

export const sealedCards: SealedPlace = {
  what: 'card numbers',
  table: 'sealed_cards',
  id: 'payment_id',
  bound: placeOf,
  ...sealedColumn('sealed'),
}
