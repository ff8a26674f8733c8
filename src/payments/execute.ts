// Write, call, write: the payment is on disk before this begins; here the connector is asked, outside any transaction, and its answer is stored.
// The first stored answer wins. What cannot be known is left pending for recovery.

import type { Connector, ConnectorState, LateReply, Operation, Reply } from '../connectors/connector.ts'
import { successOf } from '../connectors/registry.ts'
import { cameAs } from '../connectors/takenBack.ts'
import { amountText } from '../contract/amounts.ts'
import type { Card } from '../contract/card.ts'
import type { ParameterError } from '../contract/formCheck.ts'
import type { Values } from '../contract/parameters/table.ts'
import { isApproved, type Outcome, type ResultName, results } from '../contract/results/results.ts'
import type { Channel } from '../merchants/directory.ts'
import { shopOf } from '../merchants/shop.ts'
import type { Timer } from '../platform/clock.ts'
import { type CaseKind, openCase } from './cases/cases.ts'
import { closeSettled, hasOpenCase } from './cases/store.ts'
import { reversalOpen } from './followUps/rules.ts'
import { books, rootTypeOf } from './ledger/journal.ts'
import type { PaymentParts } from './parts.ts'
import type { Answer, Payment } from './payment.ts'
import { sealPending } from './read/pendingAnswers.ts'
import { paymentRecord } from './read/record.ts'
import { withoutOwnNumber, writtenText } from './read/written.ts'
import { holdContinuation } from './redirects/continuation.ts'
import { sideOf } from './sides.ts'
import { insertPending, type LeftToDo, type NewAnswer, wasAnnouncedPending } from './store/answers.ts'
import { addLateApproval } from './store/lateApprovals.ts'
import { findChain, findPayment } from './store/read.ts'
import { standing } from './transactions.ts'

/** What the caller is told: the outcome decides the HTTP status, the body is the answer. */
export type PaymentResponse = { readonly outcome: Outcome; readonly body: string }

/** What the first payment of the chain is decides which accounts a refund or reversal touches. */
export type Execution = {
  readonly payment: Payment
  readonly rootType: string
  readonly connector: Connector
  readonly operation: Operation
  /** The payment goes on after its shopper, or a notice, came back. */
  readonly resumed?: { readonly step: string; readonly data: ConnectorState; readonly event: ConnectorState }
}

export async function execute(parts: PaymentParts, carried: Execution): Promise<PaymentResponse> {
  const said = await ask(parts, carried)
  if (said.kind === 'unknown') return leavePending(parts, carried, said)
  try {
    const reply = proven(carried.connector, carried.payment, await standing(parts, carried.payment, said))
    if (reply.kind === 'unknown') return await leavePending(parts, carried, reply)
    if (reply.kind === 'redirect') return await holdContinuation(parts, carried.payment, carried.operation, reply)
    return await settle(parts, carried, reply, carried.resumed !== undefined)
  } catch (error) {
    // The answer is known but cannot be stored: it is not told before it is durable. Recovery finds the payment.
    parts.log.error({ paymentId: carried.payment.id, why: (error as Error).message }, 'the answer could not be stored')
    return leavePending(parts, carried, { why: 'the answer could not be stored' })
  }
}

/** Asks the connector and waits as long as it declares. What it throws is an unknown outcome: never guess. */
async function ask(parts: PaymentParts, carried: Execution): Promise<Reply> {
  const { connector, operation, payment } = carried
  const here = closedHere(payment)
  if (here) return here
  const waiting = new AbortController()
  let gaveUp = false
  const { resumed } = carried
  const performed = (
    resumed ? connector.resume!(operation, resumed, waiting.signal) : connector.perform(operation, waiting.signal)
  )
    .catch((error: Error): Reply => ({ kind: 'unknown', why: error.message }))
    .then(reply => withoutOwnNumber(reply, operation.card?.number))
  let timer: Timer | undefined
  const tooLate = new Promise<Reply>(resolve => {
    timer = parts.clock.after(patienceSeconds(connector, operation, resumed?.step) * 1000, () => {
      gaveUp = true
      resolve({ kind: 'unknown', why: 'no answer in time' })
      waiting.abort()
    })
  })
  // An answer that comes after all is a late reply like any other.
  performed
    .then(reply => (gaveUp ? takeLateReply(parts, payment.merchantId, payment.id, reply) : undefined))
    .catch((error: Error) => parts.log.error({ paymentId: payment.id, why: error.message }, 'a late reply could not be taken'))
  const reply = await Promise.race([performed, tooLate])
  timer?.cancel()
  return reply
}

const patienceSeconds = (connector: Connector, operation: Operation, step?: string): number =>
  connector.answerWithinSeconds + (connector.secondsBefore?.(operation, step) ?? 0)

/** After 72 hours a reversal releases nothing at the issuer any more: the hold is closed here, and no message is sent (decisions, 8). */
export function closedHere({ record, amount, currency }: Payment): Reply | undefined {
  if (record.releasesAtIssuer !== false) return undefined
  return {
    kind: 'answer',
    result: 'succeeded',
    amount,
    currency,
    details: { ExtendedDescription: 'Closed without a message' },
    kept: {},
  }
}

/**
 * Money that moved otherwise than was asked is given back; what a reversal has given back, and many a refund, is not to be had again. Of one that is answered with another
 * amount or currency nobody knows what still stands: it counts until somebody has asked the other side.
 */
export function proven(connector: Connector | undefined, payment: Payment, reply: Reply): Reply {
  if (
    !stays(connector, payment) ||
    reply.kind !== 'answer' ||
    !isApproved(results[reply.result].outcome) ||
    isAsSent(payment, reply)
  )
    return reply
  const why = `the other side ${payment.type === 'RV' ? 'reversed' : 'refunded'} another amount or currency than it was asked for`
  return { kind: 'unknown', why, answered: true, needsDecision: true }
}

/** What it has done cannot be taken back. */
const stays = (connector: Connector | undefined, { type }: Payment): boolean =>
  type === 'RV' || (type === 'RF' && connector?.refundsStand === true)

type Answered = Extract<Reply, { kind: 'answer' }>

const isAsAsked = ({ amount, currency }: Payment, reply: Answered): boolean =>
  reply.currency === currency && reply.amount === amount
const isAsSent = (payment: Payment, reply: Answered): boolean =>
  isAsAsked(payment, reply) || (reply.part === true && reply.currency === payment.currency && reply.amount < payment.amount)

/** A reply that ends a payment. */
type Final = Extract<Reply, { kind: 'answer' | 'notSent' }>

/** Stores what the connector said. When another answer was there first, that one counts, and an approval that lost is reversed. */
export async function settle(
  parts: PaymentParts,
  carried: Pick<Execution, 'payment' | 'rootType'>,
  reply: Final,
  updates: boolean,
): Promise<PaymentResponse> {
  const { payment, rootType } = carried
  const { result, leaves } = judged(payment, reply)
  const answered = reply.kind === 'answer' ? reply : undefined
  const part = answered?.part && !leaves ? answered.amount : undefined
  const stored = answerRow(parts, part === undefined ? payment : { ...payment, amount: part }, rootType, result, {
    kept: {
      ...answered?.kept,
      ...(part !== undefined && { approvedAmount: String(part) }),
      // A part too is taken back as it came, where another answer counts.
      ...(answered && (leaves === 'reverse' || part !== undefined) && !isAsAsked(payment, answered) && cameAs(answered)),
    },
    outcome: {
      ...(answered && { details: answered.details }),
      ...(answered?.avsResponse !== undefined && { avsResponse: answered.avsResponse }),
      ...(answered?.cvvResponse !== undefined && { cvvResponse: answered.cvvResponse }),
      ...(answered?.riskScore !== undefined && { riskScore: answered.riskScore }),
      ...(answered?.structures && { structures: answered.structures }),
    },
  })
  const leftToDo = leaves && { kind: leaves, dueAt: parts.clock.real() + afterSeconds[leaves] * 1000 }
  const { collects, slip } = (stored.answer.approved && answered) || {}
  if (
    await parts.insertAnswer({
      ...stored,
      updates,
      ...(leftToDo && { leftToDo }),
      ...(collects && { collects }),
      ...(slip && { slip }),
    })
  ) {
    if (payment.type === 'RV' && stored.answer.approved && payment.record.releasesAtIssuer !== false)
      // What is stored is told, also where the case has to be closed by hand.
      await closeHeld(parts, payment).catch((error: Error) =>
        parts.log.warn({ paymentId: payment.id, why: error.message }, 'the case could not be closed'),
      )
    return { outcome: results[result].outcome, body: stored.answer.body }
  }
  return yieldTo(parts, payment, stored.answer, stored.answer.approved || leaves === 'reverse')
}

/** A hold that somebody else has given back is nobody's case any more. */
async function closeHeld({ database, clock }: PaymentParts, { merchantId, rootId }: Payment): Promise<void> {
  const held = { merchantId, kind: 'reversalOpen', subject: rootId! } as const
  if (!(await hasOpenCase(database.work, merchantId, held.kind, held.subject))) return
  const chain = await findChain(database.work, merchantId, rootId!)
  if (reversalOpen(chain.find(({ id }) => id === rootId)!, chain) === 0)
    await closeSettled(database.work, held, clock.real(), 'gateway', 'it was reversed')
}

/** A refusal of our own, stored with the payment's id. */
export async function storeRefusal(
  parts: PaymentParts,
  payment: Payment,
  result: ResultName,
  announced: boolean,
  parameterErrors?: readonly ParameterError[],
): Promise<PaymentResponse> {
  const stored = answerRow(parts, payment, payment.type, result, {
    kept: {},
    outcome: { ...(parameterErrors && { parameterErrors }) },
  })
  await parts.insertAnswer({ ...stored, transfers: [], announced })
  return { outcome: results[result].outcome, body: stored.answer.body }
}

/** A reversal is due at once; the capture of a PA.CP only when the request that makes it must have ended. */
const afterSeconds: Readonly<Record<LeftToDo['kind'], number>> = { reverse: 0, release: 0, capture: 60 }

/** What a reply means: plain success takes the code of the mode, and another amount than was sent is no success. */
function judged(payment: Payment, reply: Final): { result: ResultName; leaves?: LeftToDo['kind'] } {
  if (reply.kind === 'notSent') return { result: reply.result ?? 'neverSent' }
  const { mode, record } = payment
  const approved = isApproved(results[reply.result].outcome)
  // A capture at once would be of the whole.
  if (reply.part && record.captureAtOnce) return { result: 'partlyApproved', leaves: 'reverse' }
  if (approved && !isAsSent(payment, reply)) return { result: 'amountCameBackDifferent', leaves: 'reverse' }
  const leaves = reply.leaves ?? (approved && record.captureAtOnce ? 'capture' : undefined)
  return {
    result: reply.result === 'succeeded' ? (record.risk?.review ?? successOf[mode]) : reply.result,
    ...(leaves && { leaves }),
  }
}

export function answerRow(
  parts: Pick<PaymentParts, 'directory' | 'clock' | 'build'>,
  payment: Payment,
  rootType: string,
  result: ResultName,
  said: { kept: Answer['kept']; outcome: Omit<Parameters<typeof paymentRecord>[1], 'result'> },
): NewAnswer {
  const now = parts.directory.businessTime(payment.merchantId)
  const networkTransactionId = said.outcome.structures?.standingInstruction?.initialTransactionId
  // An authentication moves nothing, a chargeback always moves money, though its result is no success.
  const approved = payment.type === 'CB' || (payment.type !== '3D' && isApproved(results[result].outcome))
  const body = JSON.stringify(paymentRecord(payment, { ...said.outcome, result: results[result] }, parts.build, now))
  return {
    payment,
    answer: { result, approved, kept: said.kept, body, answeredAt: now },
    transfers: books(payment, rootType, approved),
    announced: true,
    ...(networkTransactionId !== undefined && { networkTransactionId }),
    recordedAt: parts.clock.real(),
  }
}

/** Another answer was first. If ours moved money and the other did not, the money must go back, once, whoever hears of it how often. */
async function yieldTo(parts: PaymentParts, payment: Payment, ours: Answer, moved: boolean): Promise<PaymentResponse> {
  const db = parts.database.work
  const { merchantId, id } = payment
  const { answer: theirs } = (await findPayment(db, merchantId, id))!
  // The same answer twice has left its reversal behind at the first time.
  const goesBack = moved && !theirs!.approved && theirs!.result !== ours.result
  if (theirs!.approved && !ours.approved && ours.kept.stan !== undefined)
    await openPaymentCase(parts, payment, 'answersContradict', `a later answer says ${ours.result}`)
  // What a reversal has given back is not to be had again.
  if (goesBack && stays(parts.connectors.get(payment.connector), payment))
    await openPaymentCase(parts, payment, 'answersContradict', 'a later answer says that it was carried out')
  else if (goesBack && (await addLateApproval(db, merchantId, id, ours.kept, parts.clock.real())))
    parts.log.warn({ paymentId: id, result: theirs!.result }, 'an approval came too late and is reversed')
  return { outcome: results[theirs!.result].outcome, body: theirs!.body }
}

/** The outcome is unknown: the merchant reads pending, and recovery settles it by the connector's rule. */
async function leavePending(
  parts: PaymentParts,
  { payment, connector, operation }: Execution,
  { why, needsDecision, afterSeconds }: { readonly why: string; readonly needsDecision?: true; readonly afterSeconds?: number },
): Promise<PaymentResponse> {
  parts.log.warn({ paymentId: payment.id, why }, 'the outcome is unknown')
  const after = afterSeconds ?? connector.operations[operation.type]?.afterSeconds ?? 60
  const now = parts.clock.real()
  const said = pendingRecord(parts, payment)
  const sealed = sealPending(parts, payment, said.body)
  // Recovery leaves alone what somebody has to decide.
  if (needsDecision)
    await openPaymentCase(parts, payment, 'answerUnproven', why).catch((error: Error) =>
      parts.log.error({ paymentId: payment.id, why: error.message }, 'the case could not be opened'),
    )
  // What cannot be stored is true all the same: the payment is on disk without an answer, and the search for such payments finds it.
  await insertPending(parts.database.work, payment, sealed, now + after * 1000, now, sideOf(connector, payment)).catch(
    (error: Error) => parts.log.error({ paymentId: payment.id, why: error.message }, 'the pending state could not be stored'),
  )
  return said
}

/** What the other side knows the payment by stands with it. */
export async function openPaymentCase(
  parts: Pick<PaymentParts, 'database' | 'clock' | 'random' | 'log'>,
  { merchantId, id, type, amount, currency, record }: Payment,
  kind: CaseKind,
  why: string,
): Promise<void> {
  const details = { type, amount: amountText(amount), currency, why: writtenText(why), sent: record.prepared ?? [] }
  if (await openCase(parts.database.work, parts, { kind, merchantId, subject: id, details }))
    parts.log.warn({ paymentId: id, kind, why }, 'somebody has to decide: a case is open')
}

export function pendingRecord(parts: PaymentParts, payment: Payment): PaymentResponse {
  const now = parts.directory.businessTime(payment.merchantId)
  return { outcome: 'pending', body: JSON.stringify(paymentRecord(payment, { result: results.pending }, parts.build, now)) }
}

/** Takes replies that nobody waits for. Where one cannot be stored, recovery settles its payment without it. */
export const lateReplies =
  (parts: PaymentParts): LateReply =>
  (merchantId, paymentId, reply) => {
    takeLateReply(parts, merchantId, paymentId, reply).catch((error: Error) =>
      parts.log.error({ paymentId, why: error.message }, 'a late reply could not be taken'),
    )
  }

/** A reply that came after the request had stopped waiting, or a second time. */
export async function takeLateReply(parts: PaymentParts, merchantId: string, paymentId: string, said: Reply): Promise<void> {
  if (said.kind !== 'answer') return
  const payment = await findPayment(parts.database.work, merchantId, paymentId)
  if (!payment) return parts.log.error({ paymentId }, 'a reply came for a payment that does not exist')
  const found = proven(parts.connectors.get(payment.connector), payment, said)
  if (found.kind === 'unknown')
    return openPaymentCase(parts, payment, payment.answer ? 'answersContradict' : 'answerUnproven', found.why)
  const reply = await standing(parts, payment, said)
  // Another payment is paid by it: it is not given back, and what is open stays so until somebody decides.
  if (reply.kind === 'unknown')
    return openPaymentCase(parts, payment, payment.answer ? 'transactionTaken' : 'answerUnproven', reply.why)
  if (reply.kind !== 'answer') return
  const root = payment.rootId === undefined ? payment : (await findPayment(parts.database.work, merchantId, payment.rootId))!
  const updates = await wasAnnouncedPending(parts.database.work, payment)
  parts.log.info(
    { paymentId, result: reply.result },
    `a reply for ${amountText(payment.amount)} ${payment.currency} came late or twice`,
  )
  await settle(parts, { payment, rootType: rootTypeOf(root) }, reply, updates)
  const unproven = { merchantId, kind: 'answerUnproven', subject: paymentId }
  await closeSettled(parts.database.work, unproven, parts.clock.real(), 'gateway', 'it was answered')
}

/** Whoever has a payment has its channel: entities are never taken away. */
export function channelOfPayment({ directory }: Pick<PaymentParts, 'directory'>, { id, channelId }: Payment): Channel {
  const channel = directory.entity(channelId)
  if (channel?.kind !== 'channel') throw new Error(`payment ${id} belongs to no channel`)
  return channel
}

/** What connectors see of a payment's parameters: merchantInvoiceId is never passed onward (decisions, 46). */
export const forwardable = ({ record }: Payment): Values =>
  new Map(record.fields.filter(([name]) => name !== 'merchantInvoiceId'))

/** Puts the operation together as the connector sees it. */
export function operationOf(
  parts: PaymentParts,
  payment: Payment,
  more: Pick<Operation, 'attempt'> & Partial<Operation>,
  card?: Card,
): Operation {
  const channel = channelOfPayment(parts, payment)
  return {
    type: payment.type,
    merchantId: payment.merchantId,
    paymentId: payment.id,
    channel: { id: channel.id, settings: channel.settings },
    shopName: shopOf(parts.directory, channel.id, payment.record.fields.find(([name]) => name === 'merchant.name')?.[1]).name,
    mode: payment.mode,
    brand: payment.brand ?? '',
    amount: payment.amount,
    currency: payment.currency,
    fields: forwardable(payment),
    receivedAt: payment.receivedAt,
    ...(payment.record.prepared && { prepared: payment.record.prepared }),
    ...(payment.record.remains !== undefined && { remains: payment.record.remains }),
    ...(card && { card }),
    ...more,
  }
}
