// Payments that are told to us, and asked of nobody: chargebacks of an acquirer, receipts of a bank or a store chain.

import type { PaymentParts } from '../payments/parts.ts'
import type { Payment, PaymentState } from '../payments/payment.ts'
import { timeOrderedId } from '../platform/clock.ts'

/** What became of what was told: recorded now or before, or why it fits nothing. */
export type ReportedResult<Why> =
  | { readonly kind: 'recorded'; readonly payment: Payment }
  | { readonly kind: 'known'; readonly paymentId: string }
  | { readonly kind: 'refused'; readonly why: Why }

/** The row of such a payment. `inherited`: parameters of the reference that stand on it too. */
export function reportedPayment(
  { clock, random, directory }: Pick<PaymentParts, 'clock' | 'random' | 'directory'>,
  { type, amount, currency }: Pick<Payment, 'type' | 'amount' | 'currency'>,
  root: PaymentState,
  reference: PaymentState,
  inherited: readonly string[],
): Payment {
  const { merchantId, channelId, merchantTransactionId } = reference
  const id = timeOrderedId(clock.real(), random)
  return {
    merchantId,
    id,
    channelId,
    rootId: root.id,
    referenceId: reference.id,
    type,
    ...(root.brand !== undefined && { brand: root.brand }),
    amount,
    currency,
    mode: root.mode,
    connector: '', // nobody is asked
    ...(merchantTransactionId !== undefined && { merchantTransactionId }),
    receivedAt: directory.businessTime(merchantId),
    recordedAt: clock.real(),
    record: {
      ndc: `${channelId}_${id}`,
      fields: reference.record.fields.filter(([name]) => inherited.includes(name)),
      ...(root.record.card && { card: root.record.card }),
    },
  }
}
