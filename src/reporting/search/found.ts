// A payment as people look for it: one row of what is known of it, read from the payment and its answer. An e-mail address stands in it as a keyed hash.

import { isApproved, type Outcome, results } from '../../contract/results/results.ts'
import type { PaymentState } from '../../payments/payment.ts'
import { type Keys, keyedHash, keyedHashes } from '../../vault/keys.ts'

export type FoundPayment = {
  readonly merchantId: string
  readonly paymentId: string
  readonly rootId: string
  readonly channelId: string
  /** Business time, milliseconds. */
  readonly receivedAt: number
  readonly mode: string
  readonly type: string
  readonly brand: string | null
  /** Hundredths. */
  readonly amount: number | null
  readonly currency: string | null
  /** Code. */
  readonly result: string
  readonly outcome: Outcome
  readonly merchantTransactionId: string | null
  readonly invoice: string | null
  readonly bin: string | null
  readonly lastFour: string | null
  readonly descriptor: string | null
  readonly slipNumber: string | null
  readonly reference: string | null
}

export type SearchedPayment = FoundPayment & {
  readonly emailHash: Buffer | null
  /** The id of the lookup key that it was made with. */
  readonly emailKey: string | null
}

export function searchedPayment(keys: Keys, payment: PaymentState): SearchedPayment {
  const { record, answer } = payment
  const field = (name: string) => record.fields.find(([given]) => given === name)?.[1] ?? null
  const { code, outcome } = answer ? results[answer.result] : results.pending
  const email = field('customer.email')
  const kept = answer?.kept ?? {}
  return {
    merchantId: payment.merchantId,
    paymentId: payment.id,
    rootId: payment.rootId ?? payment.id,
    channelId: payment.channelId,
    receivedAt: payment.receivedAt,
    mode: payment.mode,
    type: payment.type,
    brand: payment.brand ?? null,
    amount: payment.amount,
    currency: payment.currency,
    result: code,
    outcome,
    merchantTransactionId: payment.merchantTransactionId ?? null,
    invoice: field('merchantInvoiceId'),
    bin: record.card?.bin ?? null,
    lastFour: record.card?.last4Digits ?? null,
    descriptor: field('descriptor'),
    slipNumber: kept.account === undefined ? null : (kept.number ?? null),
    reference: kept.hostReference ?? kept.rrn ?? null,
    emailHash: email === null ? null : keyedHash(keys, emailPurpose, emailText(email)),
    emailKey: email === null ? null : keys.lookup[0]!.id,
  }
}

const emailPurpose = 'search e-mail'
const emailText = (email: string): string => email.trim().toLowerCase()

/** As it may be stored: under each lookup key. */
export const emailHashes = (keys: Keys, email: string): readonly Buffer[] => keyedHashes(keys, emailPurpose, emailText(email))

/** Did money move, or is some held? */
export const isGoodPayment = ({ outcome }: FoundPayment): boolean => isApproved(outcome)
