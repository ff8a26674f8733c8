// What a waiting payment was answered, as it was given: for its notification, for later readings and for twin requests (decisions, 39).

import { results } from '../../contract/results/results.ts'
import { seal, unseal } from '../../vault/seal.ts'
import type { PaymentParts } from '../parts.ts'
import type { Payment } from '../payment.ts'
import { findPendingAnswers } from '../store/pendingAnswers.ts'
import { findPayment } from '../store/read.ts'
import { paymentRecord } from './record.ts'

type PaymentName = Pick<Payment, 'merchantId' | 'id'>

/** redirect.url in it lets its holder go on with the payment, so that no table shows it. */
export const sealPending = (
  { keys, random }: Pick<PaymentParts, 'keys' | 'random'>,
  payment: PaymentName,
  body: string,
): Buffer => seal(keys, random, pendingPlace(payment.merchantId, payment.id), body)

/** The pending answers of some payments of one merchant by id, JSON text. */
export async function pendingAnswers(
  parts: PaymentParts,
  payments: readonly PaymentName[],
): Promise<ReadonlyMap<string, string>> {
  if (payments.length === 0) return new Map()
  const { merchantId } = payments[0]!
  const ids = payments.map(({ id }) => id)
  const found = await findPendingAnswers(parts.database.work, merchantId, ids)
  return new Map([...found].map(([id, sealed]) => [id, unseal(parts.keys, pendingPlace(merchantId, id), sealed)]))
}

/** What is told of a payment that was announced as pending. Where its answer was not kept it is rendered from the payment. */
export async function announcedPending(
  parts: PaymentParts,
  { merchantId, paymentId, occurredAt }: { readonly merchantId: string; readonly paymentId: string; readonly occurredAt: number },
): Promise<string> {
  const given = (await pendingAnswers(parts, [{ merchantId, id: paymentId }])).get(paymentId)
  if (given !== undefined) return given
  const payment = await findPayment(parts.database.work, merchantId, paymentId)
  if (!payment) throw new Error(`an event names the payment ${paymentId}, which does not exist`)
  return JSON.stringify(paymentRecord(payment, { result: results.pending }, parts.build, occurredAt))
}

/** What binds a pending answer to its payment. */
export const pendingPlace = (merchantId: string, id: string): string => `pending answer ${merchantId} ${id}`
