// What an answer says that gives money back.

import { isApproved, results } from '../contract/results/results.ts'
import type { ConnectorState, Operation, Reply } from './connector.ts'

/** Kept of what moved otherwise than was asked: so much has to go back. */
export const cameAs = ({ amount, currency }: Pick<Operation, 'amount' | 'currency'>): ConnectorState => ({
  amount: String(amount),
  currency,
})

/**
 * To a reversal by recovery. Only what was asked for, or what came instead of it, is money that went back: after any other sum nobody knows what still stands. Where
 * there was nothing to take back, no sum counts.
 */
export function takenBack({ amount, currency, reference }: Operation, reply: Reply): Reply {
  if (reply.kind !== 'answer' || !isApproved(results[reply.result].outcome) || reply.kept.nothing !== undefined) return reply
  const came =
    reference?.kept.amount === undefined ? [] : [{ amount: Number(reference.kept.amount), currency: reference.kept.currency }]
  if ([{ amount, currency }, ...came].some(sum => sum.amount === reply.amount && sum.currency === reply.currency)) return reply
  const why = 'the other side gave back another amount or currency than it was asked for'
  return { kind: 'unknown', why, answered: true, needsDecision: true }
}
