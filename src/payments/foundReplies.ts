// Replies that this process does not remember the payments of, because it was started since or another one sent them: each payment is looked for by
// what was on disk before anything left.

import type { FoundReply } from '../connectors/connector.ts'
import { operationOf, takeLateReply } from './execute.ts'
import { cardOfPayment, referenceOf } from './followUps/followUp.ts'
import type { PaymentParts } from './parts.ts'
import { withoutOwnNumber } from './read/written.ts'
import { findChain, findPrepared } from './store/read.ts'

export const foundReplies =
  (parts: PaymentParts): FoundReply =>
  (prepared, madeAt, read) => {
    const trace = Object.values(prepared).join(' ')
    take(parts, trace, prepared, madeAt, read).catch((error: Error) =>
      parts.log.error({ trace, why: error.message }, 'a very late reply could not be taken'),
    )
  }

type FoundParameters = Parameters<FoundReply>

async function take(
  parts: PaymentParts,
  trace: string,
  prepared: FoundParameters[0],
  madeAt: FoundParameters[1],
  read: FoundParameters[2],
): Promise<void> {
  const db = parts.database.work
  const merchants = [...new Set(parts.directory.channels().map(({ merchantId }) => merchantId))]
  const payment = Number.isNaN(madeAt) ? undefined : await findPrepared(db, merchants, prepared, madeAt)
  if (!payment) return parts.log.warn({ trace }, 'a reply belongs to no payment')
  const { merchantId, rootId, id } = payment
  const chain = rootId === undefined ? [] : await findChain(db, merchantId, rootId)
  const root = chain.find(one => one.id === rootId) ?? payment
  const operation = operationOf(
    parts,
    payment,
    { attempt: 1, ...(root !== payment && { reference: referenceOf(root, chain) }) },
    await cardOfPayment(parts, root),
  )
  const reply = withoutOwnNumber(read(operation), operation.card?.number)
  parts.log.warn({ paymentId: id, trace, ...(reply.kind === 'answer' && { result: reply.result }) }, 'a reply came very late')
  await takeLateReply(parts, merchantId, id, reply)
}
