// A notice for a payment that has ended. Where money may have moved after all, the other side is asked; an approval that came too late is
// sent back like any other.

import { operationOf, takeLateReply } from '../execute.ts'
import type { PaymentParts } from '../parts.ts'
import type { PaymentState } from '../payment.ts'
import { findLateApproval } from '../store/lateApprovals.ts'

export async function takeLateNotice(parts: PaymentParts, payment: PaymentState): Promise<void> {
  const connector = parts.connectors.get(payment.connector)
  if (!payment.answer || payment.answer.approved || !connector?.ask) return
  // What came too late is on its way back already.
  if (await findLateApproval(parts.database.work, payment.merchantId, payment.id)) return
  const operation = operationOf(parts, payment, { attempt: 1, continued: payment.answer.kept })
  const reply = await connector.ask(operation, parts.clock.deadline(connector.answerWithinSeconds * 1000))
  if (reply.kind === 'answer') await takeLateReply(parts, payment.merchantId, payment.id, reply)
}
