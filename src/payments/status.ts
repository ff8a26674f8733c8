// Reading one payment by its id.

import { wireTime } from '../clock.ts'
import type { Nested } from '../contract/nested.ts'
import type { Connection } from '../database/connect.ts'
import type { Gateway } from '../gateway.ts'
import { pendingAnswers } from './announced.ts'
import { pendingRecord } from './carryOut.ts'
import type { Answered } from './payment.ts'
import { findPayment } from './store/read.ts'

/** A payment with its answer, or with what it was answered while it waits. */
export type Readable = Answered & { readonly pendingBody?: string | undefined }

/** The payment as it reads now: its answer with the time of this reading, or pending. */
export function currentRecord(gateway: Gateway, payment: Readable): Nested {
  const record = JSON.parse(givenText(gateway, payment)) as Nested
  record.timestamp = wireTime(gateway.directory.businessTime(payment.merchantId))
  return record
}

/** The payment as it was answered, as text: what lists show. */
export const givenText = (gateway: Gateway, payment: Readable): string =>
  payment.answer?.body ?? payment.pendingBody ?? pendingRecord(gateway, payment).body

export async function readPayment(gateway: Gateway, merchantId: string, id: string): Promise<Readable | undefined> {
  const payment = await findPayment(gateway.database.work, merchantId, id)
  return payment && (await readable(gateway, [payment]))[0]
}

/** Payments of one merchant; those that wait bring what they were answered. */
export async function readable(
  gateway: Gateway,
  payments: readonly Answered[],
  db: Connection = gateway.database.work,
): Promise<Readable[]> {
  const given = await pendingAnswers(
    gateway,
    payments.filter(({ answer }) => !answer),
    db,
  )
  return payments.map(payment => ({ ...payment, pendingBody: given.get(payment.id) }))
}
