// A transaction at a bank or a wallet settles one payment: whoever names it first has it. Of another payment it begins nothing, proves nothing and is
// not given back.

import type { Reply } from '../connectors/connector.ts'
import { isApproved, results } from '../contract/results/results.ts'
import { openPaymentCase } from './execute.ts'
import type { PaymentParts } from './parts.ts'
import type { Payment } from './payment.ts'
import { claimTransaction } from './store/transactions.ts'

/** The reply as far as it stands on a transaction that is the payment's own, which is on disk when this returns. */
export async function standing(parts: PaymentParts, payment: Payment, reply: Reply): Promise<Reply> {
  if ((reply.kind !== 'redirect' && reply.kind !== 'answer') || reply.transaction === undefined) return reply
  // What refuses moved nothing, whosever transaction it names.
  if (reply.kind === 'answer' && !isApproved(results[reply.result].outcome) && results[reply.result].outcome !== 'pending')
    return reply
  if (await claimTransaction(parts.database.work, payment, reply.transaction)) return reply
  const why = `the other side names the transaction ${reply.transaction}, which another payment has`
  if (reply.kind === 'answer') return { kind: 'unknown', why, answered: true, needsDecision: true }
  await openPaymentCase(parts, payment, 'transactionTaken', why)
  const { amount, currency } = payment
  const details = { ExtendedDescription: 'The other side begins nothing new' }
  return { kind: 'answer', result: 'acquirerErrorAnswer', amount, currency, details, kept: {} }
}
