// Reading one payment by its id.

import { wireTime } from '../clock.ts'
import type { Nested } from '../contract/nested.ts'
import type { Gateway } from '../gateway.ts'
import { pendingRecord } from './carryOut.ts'
import type { Answered } from './payment.ts'
import { findPayment } from './store/read.ts'

/** The payment as it reads now: its answer with the time of this reading, or pending. */
export function currentRecord(gateway: Gateway, payment: Answered): Nested {
  const record = JSON.parse(givenText(gateway, payment)) as Nested
  record.timestamp = wireTime(gateway.directory.businessTime(payment.merchantId))
  return record
}

/** The payment as it was answered, as text: what lists show. */
export const givenText = (gateway: Gateway, payment: Answered): string =>
  payment.answer?.body ?? pendingRecord(gateway, payment).body

export const readPayment = (gateway: Gateway, merchantId: string, id: string): Promise<Answered | undefined> =>
  findPayment(gateway.database.work, merchantId, id)
