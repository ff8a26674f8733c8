// Recovery: settles payments whose outcome is unknown, by the rule that the connector declares for each operation (decisions, 4).
//   ask      the other side is asked what became of it
//   repeat   the same message is sent again until it is acknowledged
//   reverse  the payment ends as timed out and reversed, and the reversal is sent until it is acknowledged

import type { Connector, ConnectorState, Operation, Reply } from '../connectors/connector.ts'
import { takenBack } from '../connectors/takenBack.ts'
import { isApproved, type ResultName, results } from '../contract/results/results.ts'
import type { Clock, Timer } from '../platform/clock.ts'
import { type DueItem, dueAbout } from '../platform/due/store.ts'
import { backOff, type DueHandler } from '../platform/due/worker.ts'
import type { CaseDecision } from './cases/cases.ts'
import { closeSettled, hasOpenCase } from './cases/store.ts'
import { answerRow, channelOfPayment, closedHere, openPaymentCase, operationOf, proven, settle } from './execute.ts'
import { cardOfPayment, completeCapture, referenceOf } from './followUps/followUp.ts'
import { done, reversalOpen } from './followUps/rules.ts'
import { rootTypeOf } from './ledger/journal.ts'
import type { PaymentParts } from './parts.ts'
import type { PaymentState } from './payment.ts'
import { withoutOwnNumber } from './read/written.ts'
import { openContinuation } from './redirects/continuation.ts'
import { wasAnnouncedPending } from './store/answers.ts'
import { acknowledgeLateApproval, findLateApproval } from './store/lateApprovals.ts'
import { findChain, findPayment } from './store/read.ts'
import { sweepUnanswered } from './store/sweep.ts'
import { insertTakenBack } from './store/takenBack.ts'
import { standing } from './transactions.ts'

/** Due work of kind `recover`: the payment has no answer yet. */
export const recover: DueHandler<PaymentParts> = async (parts, item) => {
  const found = await findCarried(parts, item.merchantId, item.subjectId)
  if (!found || found.payment.answer) return 'done'
  if (found.gone) throw new Error(found.gone.why)
  const held = typeof item.details.sealed === 'string' ? openSealed(parts, item, item.details.sealed) : undefined
  const { payment, root, connector } = found
  const updates = await wasAnnouncedPending(parts.database.work, payment)
  // Refused before any connector was chosen, and the process died between its two writes: nothing was ever sent.
  if (!connector) {
    const row = answerRow(parts, payment, rootTypeOf(root), 'notAsked', { kept: {}, outcome: {} })
    // A refused capture, refund or reversal reserved nothing, and is no event (decisions, 15).
    await parts.insertAnswer({ ...row, transfers: [], announced: payment.rootId === undefined, updates })
    return 'done'
  }
  const decided = decisionOf(item)
  if (decided) {
    const { amount, currency } = payment
    const details = { ExtendedDescription: 'Decided by an operator' }
    const isPart = payment.type === 'CP' && decided === 'succeeded' && amount < (payment.record.releases ?? 0)
    const leaves = isPart && connector.partialReversal(root.answer?.kept ?? {}) ? { leaves: 'release' as const } : {}
    const reply: Reply = { kind: 'answer', result: decided, amount, currency, details, kept: {}, ...leaves }
    await settle(parts, { payment, rootType: rootTypeOf(root) }, reply, updates)
    return 'done'
  }
  // Asking again would not help: somebody has to decide.
  if (await hasOpenCase(parts.database.work, payment.merchantId, 'answerUnproven', payment.id)) return 'done'
  const { how } = connector.operations[payment.type] ?? { how: 'reverse' }
  if (how === 'reverse') {
    // The answer decides against a late approval first; the reversal that it leaves behind is then sent until it is acknowledged.
    const row = answerRow(parts, payment, rootTypeOf(root), 'timeoutReversed', { kept: {}, outcome: {} })
    if (await parts.insertAnswer({ ...row, updates, leftToDo: { kind: 'reverse', dueAt: parts.clock.real() } }))
      parts.log.info({ paymentId: payment.id, result: 'timeoutReversed' }, 'recovered')
    return 'done'
  }
  const operation = operationOf(
    parts,
    payment,
    {
      attempt: item.attempts + 1,
      ...(root !== payment && { reference: referenceOf(root, await findChain(parts.database.work, root.merchantId, root.id)) }),
      ...(held && { continued: held.data }),
    },
    await cardOfPayment(parts, root),
  )
  const reply =
    closedHere(payment) ??
    proven(connector, payment, await standing(parts, payment, await askAgain(parts.clock, connector, operation, how)))
  const settled = reply.kind === 'answer' || (reply.kind === 'notSent' && reply.never) ? reply : undefined
  if (!settled) {
    if (reply.kind === 'unknown' && reply.needsDecision) {
      await openPaymentCase(parts, payment, 'answerUnproven', reply.why)
      return 'done'
    }
    const wasAnswered = reply.kind === 'unknown' && reply.answered
    if (isForSomebody(item.attempts, wasAnswered)) await openPaymentCase(parts, payment, 'stillUnknown', whyOf(reply))
    return { again: parts.clock.real() + backOff(item.attempts) }
  }
  await settle(parts, { payment, rootType: rootTypeOf(root) }, settled, updates)
  const unknown = { merchantId: payment.merchantId, kind: 'stillUnknown', subject: payment.id }
  await closeSettled(parts.database.work, unknown, parts.clock.real(), 'gateway', 'it was answered')
  parts.log.info({ paymentId: payment.id, result: settled.kind === 'answer' ? settled.result : 'neverSent' }, 'recovered')
  return 'done'
}

const decidedResults: Readonly<Record<CaseDecision, ResultName>> = {
  carriedOut: 'succeeded',
  notCarriedOut: 'acquirerErrorAnswer',
}
/** What an operator has decided who closed the case of the payment. */
const decisionOf = ({ details }: DueItem): ResultName | undefined => decidedResults[details.decision as CaseDecision]

const openSealed = (parts: PaymentParts, { merchantId, subjectId }: DueItem, sealed: string) =>
  openContinuation(parts, merchantId, subjectId, Buffer.from(sealed, 'base64'))

/** Due work of kind `reverse`: money that may be held or moved goes back. Never given up before it is acknowledged. */
export const reverse: DueHandler<PaymentParts> = async (parts, item) => {
  const found = await findCarried(parts, item.merchantId, item.subjectId)
  if (!found?.connector && !found?.gone) return 'done'
  const { payment } = found
  const late = await findLateApproval(parts.database.work, item.merchantId, item.subjectId)
  if (late?.acknowledged) return 'done'
  const reference = {
    paymentId: payment.id,
    type: payment.type,
    amount: payment.amount,
    receivedAt: payment.receivedAt,
    kept: late?.kept ?? payment.answer?.kept ?? {},
  }
  const carried = { type: 'RV', recovering: true, reference } as const
  const reply = await giveBack(parts, item, found, carried)
  if (reply !== 'done') return reply
  if (payment.type === 'CP') await tellOfHold(parts, found)
  if (late) await acknowledgeLateApproval(parts.database.work, item.merchantId, item.subjectId, parts.clock.real())
  parts.log.info({ paymentId: payment.id, attempt: item.attempts }, 'the reversal was acknowledged')
  return 'done'
}

/**
 * What a capture took goes into the hold again, also where that had ended: reversed meanwhile, or captured by another. Then no message of ours would release it, nor where
 * somebody has closed the case of a PA.CP that failed.
 */
async function tellOfHold(parts: PaymentParts, { payment, root }: Carried): Promise<void> {
  const chain = await findChain(parts.database.work, root.merchantId, root.id)
  const hasEnded = done(chain, 'CP').length > 0 || reversalOpen(root, chain) === 0
  if (hasEnded || (root.record.captureAtOnce && !(await isLookedAfter(parts, root))))
    await openPaymentCase(
      parts,
      payment,
      'reversalOpen',
      'it was approved late and taken back behind the end of its hold, which may stand again',
    )
}

/** The rest of a PA.CP is asked for still, or somebody is told to look. */
async function isLookedAfter({ database }: PaymentParts, { merchantId, id }: PaymentState): Promise<boolean> {
  const asked = await dueAbout(database.work, merchantId, ['capture'], [id])
  return asked.length > 0 || (await hasOpenCase(database.work, merchantId, 'reversalOpen', id))
}

/** Due work of kind `capture`: the second half of a PA.CP, when its request died in between or its approval came late; and the reversal that is
 * owed when the capture fails after all. */
export const capture: DueHandler<PaymentParts> = async (parts, item) => {
  const chain = await findChain(parts.database.work, item.merchantId, item.subjectId)
  const authorized = chain.find(({ id }) => id === item.subjectId)!
  const end = await completeCapture(parts, channelOfPayment(parts, authorized), authorized, chain)
  const again = { again: parts.clock.real() + backOff(item.attempts) }
  if (end === 'again') return again
  if (end === 'over') {
    const open = { merchantId: item.merchantId, kind: 'reversalOpen', subject: item.subjectId }
    await closeSettled(parts.database.work, open, parts.clock.real(), 'gateway', 'it is captured, or given back')
    return 'done'
  }
  const { held, isUnsent } = end
  if (!isUnsent || isForSomebody(item.attempts, true))
    await openPaymentCase(parts, authorized, 'reversalOpen', `the capture failed, and so did the reversal: ${held}`)
  if (isUnsent) return again
  // Each attempt is a payment of its own: what a bank declines so often it will go on declining.
  const declines = Number(item.details.declines ?? 0) + 1
  return declines < declinesMost ? { ...again, details: { declines } } : 'done'
}

const declinesMost = 12

/** Due work of kind `release`: what a partial capture left of the hold goes free at the issuer. Its subject is the capture. */
export const release: DueHandler<PaymentParts> = async (parts, item) => {
  const found = await findCarried(parts, item.merchantId, item.subjectId)
  if (!found?.connector && !found?.gone) return 'done'
  const { payment, root } = found
  return giveBack(parts, item, found, {
    type: 'RV',
    releasing: payment.record.releases ?? root.amount,
    reference: referenceOf(root, []),
  })
}

/** So many answers that prove nothing, or about an hour without any, and somebody should ask the other side. It is tried on all the same. */
const isForSomebody = (attempts: number, wasAnswered: boolean | undefined): boolean => attempts >= (wasAnswered ? 5 : 14)

/** Why a reply ended nothing. */
function whyOf(reply: Reply): string {
  if (reply.kind === 'answer') return `refused: ${reply.result}`
  return reply.kind === 'redirect' ? 'redirected' : reply.why
}

/** One attempt. Only what the other side has taken back is done. */
async function giveBack(
  parts: PaymentParts,
  { subjectId, kind, attempts, details }: DueItem,
  { payment, root, connector, gone }: Carried,
  more: Partial<Operation>,
): Promise<'done' | { readonly again: number; readonly details?: object }> {
  const progress = details.progress as ConnectorState | undefined
  const operation = operationOf(
    parts,
    payment,
    { ...more, attempt: attempts, ...(progress && { progress }) },
    await cardOfPayment(parts, root),
  )
  const said = gone ?? (await askAgain(parts.clock, connector!, operation, 'repeat'))
  const reply = takenBack(operation, said, connector?.refundsStand)
  const db = parts.database.work
  // An answer that refuses gives nothing back.
  if (reply.kind === 'answer' && isApproved(results[reply.result].outcome)) {
    const { acquirer, nothing } = reply.kept
    // The totals of its day hold the payment and its reversal.
    if (kind === 'reverse' && acquirer !== undefined && nothing === undefined)
      await insertTakenBack(db, payment.merchantId, subjectId, acquirer, parts.clock.real())
    const open = { merchantId: payment.merchantId, kind: 'reversalOpen', subject: subjectId }
    await closeSettled(db, open, parts.clock.real(), 'gateway', 'it was acknowledged')
    return 'done'
  }
  const open = reply.kind === 'notSent' || reply.kind === 'unknown' ? reply : undefined
  const why = whyOf(reply)
  parts.log.warn({ paymentId: subjectId, kind, attempt: attempts, why }, 'money could not be given back yet')
  const wasAnswered = reply.kind === 'answer' || (reply.kind === 'unknown' && reply.answered)
  if (open?.needsDecision || isForSomebody(attempts, wasAnswered)) await openPaymentCase(parts, payment, 'reversalOpen', why)
  return { again: parts.clock.real() + backOff(attempts), ...(open?.progress && { details: { progress: open.progress } }) }
}

type Carried = {
  readonly payment: PaymentState
  readonly root: PaymentState
  /** Absent on what was refused before one was chosen, and when it is gone. */
  readonly connector: Connector | undefined
  /** It is not configured any more. */
  readonly gone?: Extract<Reply, { kind: 'notSent' }>
}

async function findCarried(parts: PaymentParts, merchantId: string, paymentId: string): Promise<Carried | undefined> {
  const payment = await findPayment(parts.database.work, merchantId, paymentId)
  if (!payment) return undefined
  const root = payment.rootId === undefined ? payment : (await findPayment(parts.database.work, merchantId, payment.rootId))!
  const connector = payment.connector === '' ? undefined : parts.connectors.get(payment.connector)
  if (connector || payment.connector === '') return { payment, root, connector }
  const why = `the connector ${payment.connector} is not configured any more`
  return { payment, root, connector, gone: { kind: 'notSent', why, needsDecision: true } }
}

const deafMilliseconds = 1000

async function askAgain(clock: Clock, connector: Connector, operation: Operation, how: 'ask' | 'repeat'): Promise<Reply> {
  const patience = connector.answerWithinSeconds * 1000
  const signal = clock.deadline(patience)
  const asked = how === 'ask' && connector.ask ? connector.ask(operation, signal) : connector.perform(operation, signal)
  // What a connector says when its time is over counts, such as who was told meanwhile. Only one that does not hear its signal is left alone.
  let timer: Timer | undefined
  const tooLate = new Promise<Reply>(resolve => {
    timer = clock.after(patience + deafMilliseconds, () => resolve({ kind: 'unknown', why: 'no answer in time' }))
  })
  const reply = await Promise.race([asked, tooLate]).catch((error: Error): Reply => ({ kind: 'unknown', why: error.message }))
  timer?.cancel()
  return withoutOwnNumber(reply, operation.card?.number)
}

/** Beyond what a request waits for its connector: an authentication before it, two writes, each with the patience for a slow database, and some slack. */
const orphanSlackSeconds = 45
const sweepSeconds = 5

/** A payment is an orphan when nobody can be waiting for its connector any more. */
export const orphanSeconds = ({ connectors }: Pick<PaymentParts, 'connectors'>): number =>
  Math.max(0, ...[...connectors.values()].map(({ answerWithinSeconds }) => answerWithinSeconds)) + orphanSlackSeconds

/** Looks for payments whose process died between its two writes. `alone`: whatever is unanswered now was left behind. That search has ended when this
 * resolves, so that it comes before the first request: it would take that for an orphan too. `maySweep`: by a clock that is ahead all that is under way is one. */
export async function startSweeping(
  parts: PaymentParts,
  alone: boolean,
  maySweep: () => boolean,
): Promise<{ stop(): Promise<void> }> {
  const sweep = async (before: number | undefined) => {
    try {
      const found = await sweepUnanswered(parts.database.work, before, parts.clock.real())
      if (found > 0) parts.log.warn({ attempt: found }, 'unanswered payments were found and go to recovery')
    } catch (error) {
      parts.log.warn({ why: (error as Error).message }, 'the search for unanswered payments failed')
    }
  }
  if (alone) await sweep(undefined)
  let running = Promise.resolve()
  const timer = parts.clock.every(sweepSeconds * 1000, () => {
    running = running.then(async () => {
      if (maySweep()) await sweep(parts.clock.real() - orphanSeconds(parts) * 1000)
    })
  })
  return {
    async stop() {
      timer.cancel()
      await running
    },
  }
}
