// What is told of a payment that was announced as pending: rendered from the payment alone, as it was at that moment (decisions, 39).

import { results } from '../contract/results/results.ts'
import type { Gateway } from '../gateway.ts'
import { paymentRecord } from './record.ts'
import { findPayment } from './store/read.ts'

export async function announcedPending(
  gateway: Gateway,
  merchantId: string,
  paymentId: string,
  occurredAt: number,
): Promise<string> {
  const payment = await findPayment(gateway.database.work, merchantId, paymentId)
  if (!payment) throw new Error(`an event names the payment ${paymentId}, which does not exist`)
  return JSON.stringify(paymentRecord(payment, { result: results.pending }, gateway.build, occurredAt))
}
