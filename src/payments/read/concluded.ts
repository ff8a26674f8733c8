// What a payment has come to. A PA.CP has with its capture: until that is answered it is pending, and where it fails the payment has failed (decisions, 13).

import type { Connection } from '../../platform/database/connect.ts'
import { isCompleting } from '../followUps/rules.ts'
import type { PaymentState } from '../payment.ts'
import { findChain, findPayment, storedJson } from '../store/read.ts'

/** Whose answer counts: the payment's own, or that of the capture which failed; undefined while there is none. */
export async function conclusionOf(db: Connection, payment: PaymentState): Promise<PaymentState | undefined> {
  if (!payment.answer?.approved || !payment.record.captureAtOnce) return payment.answer && payment
  const followers = await findChain(db, payment.merchantId, payment.id)
  const captures = followers.filter(({ type }) => type === 'CP')
  if (captures.some(({ answer }) => answer?.approved)) return payment
  // Reversed before it could be captured, it stands like any that is reversed.
  const completing = followers.find(isCompleting)
  if (!completing) return followers.some(({ type, answer }) => type === 'RV' && answer?.approved) ? payment : undefined
  return completing.answer && completing
}

/** The payment as its merchant and its shopper are told of it: with the answer that counts, none while it is captured. */
export async function concluded(db: Connection, payment: PaymentState): Promise<PaymentState> {
  const end = await conclusionOf(db, payment)
  if (end === payment) return payment
  const { answer, ...open } = payment
  if (!answer || !end) return open
  const { result, resultDetails }: Record<string, unknown> = storedJson(end.id, 'body', end.answer!.body)
  const body = { ...storedJson(payment.id, 'body', answer.body), result, ...(resultDetails !== undefined && { resultDetails }) }
  return { ...open, answer: { ...answer, result: end.answer!.result, approved: false, body: JSON.stringify(body) } }
}

export async function findConcluded(db: Connection, merchantId: string, id: string): Promise<PaymentState | undefined> {
  const payment = await findPayment(db, merchantId, id)
  return payment && concluded(db, payment)
}
