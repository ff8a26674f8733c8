// What an answer says that gives money back.

import { isApproved, results } from '../contract/results/results.ts'
import type { ConnectorState, Operation, Reply } from './connector.ts'

/** Kept of what moved otherwise than was asked: so much has to go back. */
export const cameAs = ({ amount, currency }: Pick<Operation, 'amount' | 'currency'>): ConnectorState => ({
  amount: String(amount),
  currency,
})

/**
 * To a reversal by recovery, or a release. Only what was asked for, or what came instead of it, is money that went back: after any other sum nobody knows what still
 * stands. `byRefund`: what came is what was asked for. Where there was nothing to take back, no sum counts.
 */
export function takenBack({ amount, currency, reference }: Operation, reply: Reply, byRefund = false): Reply {
  if (reply.kind !== 'answer' || !isApproved(results[reply.result].outcome) || reply.kept.nothing !== undefined) return reply
  const came = reference && cameOtherwise(reference)
  const sums = [...(came ? [came] : []), ...(came && byRefund ? [] : [{ amount, currency }])]
  if (sums.some(sum => sum.amount === reply.amount && sum.currency === reply.currency)) return reply
  return gaveOtherwise
}

export const gaveOtherwise: Reply = {
  kind: 'unknown',
  why: 'the other side gave back another amount or currency than it was asked for',
  answered: true,
  needsDecision: true,
}

const cameOtherwise = ({ kept }: NonNullable<Operation['reference']>) =>
  kept.amount === undefined ? undefined : { amount: Number(kept.amount), currency: kept.currency! }

/** What gives back all that came of a payment: as if so much had been asked for. */
export function asItCame(operation: Operation): Operation {
  const reference = operation.reference!
  const came = cameOtherwise(reference)
  return came ? { ...operation, ...came, reference: { ...reference, amount: came.amount } } : operation
}
