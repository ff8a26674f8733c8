// Four eyes: what somebody ordered waits until a colleague approves it. It is then carried out under the id of the approval, so that a second press of
// the button, or one after a crash, is the same order.

import { record } from '../../audit/chain.ts'
import { timeOrderedId } from '../../platform/clock.ts'
import { inTransaction } from '../../platform/database/connect.ts'
import type { StaffParts } from '../parts.ts'
import type { SignedIn } from '../sessions.ts'
import { type Approval, decideRow, insertApproval, lockApproval, type NewApproval, setOutcome } from './store.ts'

/** So long an order may be approved, or carried out again: shorter than keys of requests are kept. */
export const approvalHours = 24

export type FollowUpOrder = Pick<
  NewApproval,
  'merchantId' | 'paymentId' | 'channelId' | 'type' | 'amount' | 'currency' | 'reason'
>

/** The id of what waits now. */
export async function askApproval(parts: StaffParts, { by }: SignedIn, order: FollowUpOrder): Promise<string> {
  const { clock, random, database } = parts
  const now = clock.real()
  const id = timeOrderedId(now, random)
  const { channelId, paymentId, type, amount, currency, reason } = order
  await inTransaction(database.work, async db => {
    await insertApproval(db, { ...order, id, askedBy: by.id, askedAt: now })
    const details = { paymentId, type, amount, currency, reason }
    await record(db, parts, [{ actor: by, action: 'approvalAsked', entityId: channelId, subject: id, details }])
  })
  return id
}

/**
 * Decides what waits. One that was approved and of which nobody heard an outcome may be approved again, by anybody but who ordered it. `own`: that one
 * asks; `gone`: there is no such order, it is too old, or it is decided.
 */
export async function decideApproval(
  parts: StaffParts,
  { by }: SignedIn,
  merchantId: string,
  id: string,
  decision: 'approved' | 'refused',
): Promise<Approval | 'own' | 'gone'> {
  return inTransaction(parts.database.work, async db => {
    const now = parts.clock.real()
    const found = await lockApproval(db, merchantId, id)
    if (!found || found.outcome !== null || now - found.askedAt > approvalHours * 3_600_000) return 'gone'
    if (found.askedBy === by.id) return 'own'
    if (found.decision !== null) return found.decision === 'approved' && decision === 'approved' ? found : 'gone'
    await decideRow(db, found, decision, by.id, now)
    if (decision === 'refused') await setOutcome(db, found, 'refused')
    const { channelId, paymentId, type, amount } = found
    const details = { decision, paymentId, type, amount, askedBy: found.askedBy }
    await record(db, parts, [{ actor: by, action: 'approvalDecided', entityId: channelId, subject: id, details }])
    return found
  })
}
