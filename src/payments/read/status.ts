// Reading one payment by its id.

import type { Nested } from '../../contract/nested.ts'
import { wireTime } from '../../platform/clock.ts'
import { pendingRecord } from '../execute.ts'
import type { PaymentParts } from '../parts.ts'
import type { PaymentState } from '../payment.ts'
import { findPayment, storedJson } from '../store/read.ts'
import { concluded } from './concluded.ts'
import { pendingAnswers } from './pendingAnswers.ts'

/** A payment with its answer, or with what it was answered while it waits. */
export type Readable = PaymentState & { readonly pendingBody?: string | undefined }

/** The payment as it reads now: its answer with the time of this reading, or pending. */
export function currentRecord(parts: PaymentParts, payment: Readable): Nested {
  const record: Nested = storedJson(payment.id, 'body', givenText(parts, payment))
  record.timestamp = wireTime(parts.directory.businessTime(payment.merchantId))
  return record
}

/** The payment as it was answered, as text: what lists show. */
export const givenText = (parts: PaymentParts, payment: Readable): string =>
  payment.answer?.body ?? payment.pendingBody ?? pendingRecord(parts, payment).body

/** What a payment has come to. `keptTo`: of this channel alone. */
export async function readPayment(
  parts: PaymentParts,
  merchantId: string,
  id: string,
  keptTo?: string,
): Promise<Readable | undefined> {
  const payment = await findPayment(parts.database.work, merchantId, id)
  if (!payment || (keptTo ?? payment.channelId) !== payment.channelId) return undefined
  return payment.answer ? concluded(parts.database.work, payment) : (await readable(parts, [payment]))[0]
}

/** Payments of one merchant; those that wait bring what they were answered. */
export async function readable(parts: PaymentParts, payments: readonly PaymentState[]): Promise<Readable[]> {
  const given = await pendingAnswers(
    parts,
    payments.filter(({ answer }) => !answer),
  )
  return payments.map(payment => ({ ...payment, pendingBody: given.get(payment.id) }))
}
