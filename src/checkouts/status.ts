// A merchant reads what became of a checkout. A success is told once: then the checkout is over, and the payment is found by its own id.

import { limits } from '../contract/limits.ts'
import type { Nested } from '../contract/nested.ts'
import { storesOnly } from '../contract/requests.ts'
import { currentRecord, readPayment } from '../payments/read/status.ts'
import { registrationRecord } from '../registrations/record.ts'
import { findRegistrations } from '../registrations/store.ts'
import { type Checkout, isOpen } from './checkout.ts'
import { cancelMissedReturn } from './missedReturn.ts'
import type { CheckoutParts } from './parts.ts'
import { type CheckoutAttempt, endCheckout, findLastAttempt } from './store.ts'

/** The record of the last attempt; `pending` before there was one; `gone` when there is nothing to be read any more. */
export type CheckoutStatus = Nested | 'pending' | 'gone'

export async function readCheckout(
  parts: CheckoutParts,
  checkout: Checkout,
  kind: 'payment' | 'registration',
): Promise<CheckoutStatus> {
  const stores = storesOnly(checkout.values)
  if (checkout.endedAt !== null || stores !== (kind === 'registration')) return 'gone'
  const last = await findLastAttempt(parts.database.work, checkout)
  if (!isReadable(parts, checkout, last)) return 'gone'
  if (!last) return 'pending'
  return stores ? readStored(parts, checkout, last) : readPaid(parts, checkout, last)
}

/** Who pays at the last moment can be read about for as long as anybody waits for a return. */
const isReadable = (parts: CheckoutParts, checkout: Checkout, last: CheckoutAttempt | undefined): boolean =>
  isOpen(parts, checkout) ||
  (last !== undefined && parts.directory.businessTime(checkout.merchantId) < last.madeAt + limits.checkoutMinutes * 60_000)

async function readPaid(parts: CheckoutParts, checkout: Checkout, { subjectId }: CheckoutAttempt): Promise<CheckoutStatus> {
  const payment = (await readPayment(parts, checkout.merchantId, subjectId))!
  if (payment.answer && !(await tell(parts, checkout, payment.answer.approved))) return 'gone'
  return currentRecord(parts, payment)
}

async function readStored(parts: CheckoutParts, checkout: Checkout, { subjectId }: CheckoutAttempt): Promise<CheckoutStatus> {
  const { merchantId } = checkout
  const [registration] = await findRegistrations(parts.database.work, [merchantId], [subjectId])
  if (!(await tell(parts, checkout, true))) return 'gone'
  return registrationRecord(registration!, parts.build, parts.directory.businessTime(merchantId))
}

/** A final result is told: nobody need be called for it. False when its success was told before. */
async function tell(parts: CheckoutParts, checkout: Checkout, succeeded: boolean): Promise<boolean> {
  const db = parts.database.work
  const { merchantId, id } = checkout
  if (succeeded && !(await endCheckout(db, checkout, parts.directory.businessTime(merchantId)))) return false
  await cancelMissedReturn(db, merchantId, id)
  return true
}
