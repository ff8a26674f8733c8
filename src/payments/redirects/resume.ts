// Somebody returned: the browser, a notice from the other side's server, or the deadline. Exactly one of them takes the continuation and goes on.

import type { ConnectorState } from '../../connectors/connector.ts'
import { isLost } from '../../platform/database/errors.ts'
import type { DueHandler } from '../../platform/due/worker.ts'
import { execute, operationOf, settle } from '../execute.ts'
import { captureAtOnce, cardOfPayment } from '../followUps/followUp.ts'
import { rootTypeOf } from '../ledger/journal.ts'
import type { PaymentParts } from '../parts.ts'
import type { PaymentState } from '../payment.ts'
import { concluded } from '../read/concluded.ts'
import { sideOf } from '../sides.ts'
import { findPayment } from '../store/read.ts'
import { type ContinuationData, openContinuation, openCvv } from './continuation.ts'
import { dropContinuation, findContinuation, findTaken, type LeasedContinuation, takeContinuation } from './store.ts'
import { addressesOf } from './tokens.ts'

/** Longer than any connector takes: then recovery may believe that the resumption died. */
const recoverAfterSeconds = 90

/** `publicUrl`: as whoever came back reaches us. `ended`: nobody did by `now`. */
type Return = {
  readonly step: string
  readonly event: ConnectorState
  readonly publicUrl: string
  readonly ended?: boolean
  readonly now?: number
}

/** Goes on with a payment; false when somebody else has taken its continuation. */
export async function resume(parts: PaymentParts, payment: PaymentState, returned: Return): Promise<boolean> {
  const goOn = await takeUp(parts, payment, returned)
  await goOn?.()
  return goOn !== undefined
}

/** Takes the continuation: what goes on with the payment, or undefined when somebody else has it. Recovery stands behind it from then on. */
export async function takeUp(
  parts: PaymentParts,
  payment: PaymentState,
  { step, event, publicUrl, ended = false, now = parts.directory.businessTime(payment.merchantId) }: Return,
): Promise<(() => Promise<void>) | undefined> {
  const taken = await take(parts, payment, step, now, ended)
  return taken && (() => goOnWith(parts, payment, { step, event, publicUrl, ended }, taken))
}

/** Far less than recovery waits for whoever has taken it. */
const takeWithinMilliseconds = 15_000

/** Of a statement whose end was not heard of nobody knows whether it took the continuation: it is asked for by its taker, and tried again. */
async function take(
  parts: PaymentParts,
  payment: PaymentState,
  step: string,
  now: number,
  ended: boolean,
): Promise<Taken | undefined> {
  const { database, clock, random } = parts
  const { merchantId, id } = payment
  const taker = random.uuid()
  const side = sideOf(parts.connectors.get(payment.connector), payment)
  const [began, recoverAt] = [clock.elapsed(), clock.real() + recoverAfterSeconds * 1000]
  for (let attempt = 1; ; attempt++)
    try {
      const taken = await takeContinuation(database.work, merchantId, id, taker, step, now, recoverAt, ended, side)
      return taken ?? (attempt === 1 ? undefined : await findTaken(database.work, merchantId, id, taker))
    } catch (error) {
      if (!isLost(error) || attempt === 3 || clock.elapsed() - began > takeWithinMilliseconds) throw error
    }
}

type Taken = Pick<LeasedContinuation, 'sealed' | 'mark' | 'secret'>

async function goOnWith(
  parts: PaymentParts,
  payment: PaymentState,
  { step, event, publicUrl, ended }: Return,
  taken: Taken,
): Promise<void> {
  const { merchantId, id } = payment
  const held = openContinuation(parts, merchantId, id, taken.sealed)
  const connector = parts.connectors.get(payment.connector)
  if (!connector?.resume) throw new Error(`the connector ${payment.connector} does not take returns`)
  const sealedCard = await cardOfPayment(parts, payment)
  const cvv = taken.secret ? openCvv(parts, merchantId, id, taken.secret) : undefined
  if (held.cvv && cvv === undefined)
    parts.log.warn({ paymentId: id }, 'the CVV is gone with a crash of the database: it is not sent')
  const operation = operationOf(
    parts,
    payment,
    { attempt: 1, addresses: addressesOf(publicUrl, held.page, held.notice) },
    sealedCard && { ...sealedCard, ...(cvv !== undefined && { cvv }) },
  )
  if (ended && !held.asksAtEnd) {
    await settle(parts, { payment, rootType: rootTypeOf(payment) }, endedReply(payment, held), true)
    return
  }
  const resumed = { step, data: held.data, event: { ...event, ...(taken.mark !== null && { mark: taken.mark }) } }
  const said = await execute(parts, { payment, rootType: rootTypeOf(payment), connector, operation, resumed })
  const channel = parts.directory.entity(payment.channelId)
  if (payment.record.captureAtOnce && said.outcome !== 'pending' && channel?.kind === 'channel')
    await captureAtOnce(parts, channel, payment, said)
}

const endedReply = ({ amount, currency }: PaymentState, { endsAs }: ContinuationData) => ({
  kind: 'answer' as const,
  result: endsAs,
  amount,
  currency,
  details: { ExtendedDescription: 'The shopper did not come back in time' },
  kept: {},
})

const endedAt = (parts: PaymentParts, { step }: { readonly step: string }): Return => ({
  step,
  event: { ended: 'true' },
  publicUrl: parts.publicUrl(),
  ended: true,
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
  if (await resume(parts, payment, endedAt(parts, row)))
    parts.log.info({ paymentId: subjectId, kind: row.step }, 'the shopper did not come back in time')
  return { again: parts.clock.real() + recoverAfterSeconds * 1000 }
}

/** The shopper chose another way to pay: what waited for a return ends as if its time were over. What is in the hands of another stays there. */
export async function abandon(parts: PaymentParts, payment: PaymentState): Promise<boolean> {
  const row = await findContinuation(parts.database.work, payment.merchantId, payment.id)
  return row !== undefined && (await resume(parts, payment, { ...endedAt(parts, row), now: row.deadline }))
}

/** Where a payment stands for somebody who looks at it: answered, waiting for a step, or in the hands of another, also while it is captured. */
export type RedirectState =
  | { readonly kind: 'answered'; readonly payment: PaymentState }
  | {
      readonly kind: 'step'
      readonly payment: PaymentState
      readonly step: string
      readonly held: ContinuationData
      readonly mark: string | null
    }
  | { readonly kind: 'work'; readonly payment: PaymentState }

export async function redirectState(parts: PaymentParts, merchantId: string, paymentId: string): Promise<RedirectState> {
  const db = parts.database.work
  const row = await findContinuation(db, merchantId, paymentId)
  const payment = (await findPayment(db, merchantId, paymentId))!
  if (payment.answer) {
    const ended = await concluded(db, payment)
    return ended.answer ? { kind: 'answered', payment: ended } : { kind: 'work', payment }
  }
  if (row && row.deadline > parts.directory.businessTime(merchantId)) {
    const held = openContinuation(parts, merchantId, paymentId, row.sealed)
    return { kind: 'step', payment, step: row.step, held, mark: row.mark }
  }
  return { kind: 'work', payment }
}

/** Waits until a payment is answered or has reached another step, or the time is up. */
export function settledState(
  parts: PaymentParts,
  merchantId: string,
  paymentId: string,
  notAt: string | undefined,
  seconds: number,
): Promise<RedirectState> {
  return parts.lookTogether(
    `redirect ${merchantId} ${paymentId}`,
    () => redirectState(parts, merchantId, paymentId),
    found => found.kind === 'answered' || (found.kind === 'step' && found.step !== notAt),
    parts.clock.real() + seconds * 1000,
  )
}
