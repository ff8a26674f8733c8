// Somebody returned: the browser, a notice from the other side's server, or the deadline. Exactly one of them takes the continuation and goes on.

import type { Kept } from '../../connectors/connector.ts'
import type { DueHandler } from '../../platform/due/worker.ts'
import { carryOut, operationOf, settle } from '../execute.ts'
import { captureAtOnce, openCard } from '../followUps/followUp.ts'
import type { PaymentParts } from '../parts.ts'
import type { Answered } from '../payment.ts'
import { findPayment } from '../store/read.ts'
import { type Held, openCvv, openHeld } from './hold.ts'
import { dropContinuation, findContinuation, takeContinuation } from './store.ts'
import { addressesOf } from './tokens.ts'

/** Longer than any connector takes: then recovery may believe that the resumption died. */
const recoverAfterSeconds = 90

/** Goes on with a payment; false when somebody else has taken its continuation. */
export async function resume(parts: PaymentParts, payment: Answered, step: string, event: Kept, ended = false): Promise<boolean> {
  const { merchantId, id } = payment
  const taken = await takeContinuation(
    parts.database.work,
    merchantId,
    id,
    step,
    parts.directory.businessTime(merchantId),
    parts.clock.real() + recoverAfterSeconds * 1000,
    ended,
  )
  if (!taken) return false
  const held = openHeld(parts, merchantId, id, taken.sealed)
  const connector = parts.connectors.get(payment.connector)
  if (!connector?.resume) throw new Error(`the connector ${payment.connector} does not take returns`)
  const sealedCard = await openCard(parts, payment)
  const cvv = taken.secret ? openCvv(parts, merchantId, id, taken.secret) : undefined
  if (held.cvv && cvv === undefined)
    parts.log.warn({ paymentId: id }, 'the CVV is gone with a crash of the database: it is not sent')
  const operation = operationOf(
    parts,
    payment,
    { attempt: 1, addresses: addressesOf(parts.publicUrl(), held.page, held.notice) },
    sealedCard && { ...sealedCard, ...(cvv !== undefined && { cvv }) },
  )
  if (ended && !held.asksAtEnd) {
    await settle(parts, { payment, rootType: payment.type }, endedReply(payment, held), true)
    return true
  }
  const resumed = { step, data: held.data, event: { ...event, ...(taken.mark !== null && { mark: taken.mark }) } }
  const said = await carryOut(parts, { payment, rootType: payment.type, connector, operation, resumed })
  const channel = parts.directory.entity(payment.channelId)
  if (payment.record.captureAtOnce && said.outcome !== 'pending' && channel?.kind === 'channel')
    await captureAtOnce(parts, channel, payment, said)
  return true
}

const endedReply = ({ amount, currency }: Answered, { endsAs }: Held) => ({
  kind: 'answer' as const,
  result: endsAs,
  amount,
  currency,
  details: { ExtendedDescription: 'The shopper did not come back in time' },
  kept: {},
})

/** Due work of kind `redirectExpiry`: nobody came back in time. */
export const redirectExpiry: DueHandler<PaymentParts> = async (parts, { merchantId, subjectId }) => {
  const db = parts.database.work
  const payment = await findPayment(db, merchantId, subjectId)
  if (!payment || payment.answer) {
    await dropContinuation(db, merchantId, subjectId)
    return 'done'
  }
  const row = await findContinuation(db, merchantId, subjectId)
  // Somebody is at work on it, and may yet send the shopper away again.
  if (!row) return { again: parts.clock.real() + recoverAfterSeconds * 1000 }
  const left = row.deadline - parts.directory.businessTime(merchantId)
  if (left > 0) return { again: parts.clock.real() + left }
  if (await resume(parts, payment, row.step, { ended: 'true' }, true))
    parts.log.info({ paymentId: subjectId, kind: row.step }, 'the shopper did not come back in time')
  return { again: parts.clock.real() + recoverAfterSeconds * 1000 }
}

/** Where a payment stands for somebody who looks at it: answered, waiting for a step, or in the hands of another. */
export type Standing =
  | { readonly at: 'answered'; readonly payment: Answered }
  | { readonly at: 'step'; readonly payment: Answered; readonly step: string; readonly held: Held; readonly mark: string | null }
  | { readonly at: 'work'; readonly payment: Answered }

export async function standing(parts: PaymentParts, merchantId: string, paymentId: string): Promise<Standing> {
  const db = parts.database.work
  const row = await findContinuation(db, merchantId, paymentId)
  const payment = (await findPayment(db, merchantId, paymentId))!
  if (payment.answer) return { at: 'answered', payment }
  if (row && row.deadline > parts.directory.businessTime(merchantId)) {
    const held = openHeld(parts, merchantId, paymentId, row.sealed)
    return { at: 'step', payment, step: row.step, held, mark: row.mark }
  }
  return { at: 'work', payment }
}

/** Waits until a payment is answered or has reached another step, or the time is up. */
export async function settledStanding(
  parts: PaymentParts,
  merchantId: string,
  paymentId: string,
  notAt: string | undefined,
  seconds: number,
): Promise<Standing> {
  const deadline = parts.clock.real() + seconds * 1000
  for (let pause = 20; ; pause = Math.min(pause * 2, 250)) {
    const found = await standing(parts, merchantId, paymentId)
    const moved = found.at === 'answered' || (found.at === 'step' && found.step !== notAt)
    if (moved || parts.clock.real() >= deadline) return found
    await parts.clock.sleep(pause)
  }
}
