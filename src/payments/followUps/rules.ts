// What forbids a capture, a refund or a reversal. Each rule is one line, and the order is the precedence: it is part of the interface.
// Pure: given the referenced payment, its chain and the request, the name of the result that forbids, or nothing.
// Followers that are still pending count as done (decisions, 3).

import type { Mode } from '../../connectors/connector.ts'
import type { ResultName } from '../../contract/results/results.ts'
import { isApproved, results } from '../../contract/results/results.ts'
import type { PaymentState } from '../payment.ts'

export type FollowUpType = 'CP' | 'RF' | 'RV'

export type FollowUp = {
  readonly type: FollowUpType
  /** Hundredths; absent on a full reversal. */
  readonly amount?: number
  readonly currency?: string
  readonly channelId: string
  /** Only when the request names a test mode. */
  readonly mode?: Mode
  /** Business time, milliseconds. */
  readonly now: number
  /** Our own step that ends what was begun. */
  readonly completes?: true
}

/** The referenced payment, the first of its chain, and all that refer to it. */
export type Chain = {
  readonly reference: PaymentState
  readonly root: PaymentState
  readonly followers: readonly PaymentState[]
  /** A capture or refund that failed stands at the other side, and is taken back: until then nobody knows what is held, or can be refunded. */
  readonly takesBack?: boolean
}

/** What the connector of the payment can do. */
export type Abilities = { readonly offered: boolean; readonly partialReversal: boolean }

/** Within this time of the original a reversal is sent to the issuer, to release the held funds. */
export const releaseHours = 72

/** What refers to one first payment, at most: every rule looks at all of it, under a lock (decisions, 67). */
export const followersMost = 1000
/** What is stored of these, at most: all of it is read, five chains at a time. */
export const followersBytesMost = 8 * 1024 * 1024
/** Of what is refused beyond this share nothing is kept: a client that repeats it leaves room for a refund. */
const shareOfRefusals = 0.5
export const refusalsMost = followersMost * shareOfRefusals

/** Has a chain so many followers, or so large ones, that it takes no more? */
const isFull = (followers: Chain['followers'], share = 1): boolean =>
  followers.length >= followersMost * share ||
  followers.reduce((sum, { bytes = 0 }) => sum + bytes, 0) >= followersBytesMost * share
export const takesNoRefusals = (followers: Chain['followers']): boolean => isFull(followers, shareOfRefusals)

export function forbids(request: FollowUp, chain: Chain, abilities: Abilities): ResultName | undefined {
  const { reference, followers } = chain
  if (isFull(followers) && !request.completes) return 'chainFull'
  if (reference.channelId !== request.channelId) return 'channelDiffers'
  if (!reference.answer || chain.takesBack || (!request.completes && awaitsCapture(request, chain))) return 'referencePending'
  if (!isApproved(results[reference.answer.result].outcome)) return rejected[request.type]
  const wrong = byType[request.type](request, chain)
  if (wrong) return wrong
  if (request.mode !== undefined && request.mode !== chain.root.mode) return 'modeDiffers'
  if (request.currency !== undefined && request.currency !== chain.root.currency) return 'currencyDiffers'
  if (request.amount === 0) return 'zeroAmount'
  const tooMuch = byAmount[request.type](request, chain)
  if (tooMuch) return tooMuch
  if (!abilities.offered) return 'operationNotOffered'
  if (request.type === 'RV' && !abilities.partialReversal && isPartial(request, chain)) return 'partialReversalNotOffered'
  return undefined
}

/** A PA.CP is pending until it has its own capture, and where that was declined, until nothing of its hold is open: what is captured meanwhile would be told as failed. */
function awaitsCapture({ type }: FollowUp, { reference, followers }: Chain): boolean {
  if (!reference.record.captureAtOnce || !reference.answer?.approved || done(followers, 'CP').length > 0) return false
  return followers.some(isCompleting)
    ? type === 'CP' && reversalOpen(reference, followers) > 0
    : done(followers, 'RV').length === 0
}

const rejected: Readonly<Record<FollowUpType, ResultName>> = {
  CP: 'captureOfRejected',
  RF: 'refundOfRejected',
  RV: 'reversalOfRejected',
}

type FollowUpRule = (request: FollowUp, chain: Chain) => ResultName | undefined

const byType: Readonly<Record<FollowUpType, FollowUpRule>> = {
  CP: (_, { reference, followers }) => {
    if (reference.type !== 'PA') return 'notCapturable'
    if (reference.record.slip) return 'captureOfSlip'
    if (done(followers, 'CP').length > 0) return 'alreadyCaptured' // even after a partial capture
    if (sum(done(followers, 'RV')) >= reference.amount) return 'authorizationReversed'
    if (done(followers, 'RV').some(reversal => !reversal.answer)) return 'reversalUnderWay' // what is left of the hold is not known yet
    return undefined
  },
  RF: (_, { reference, root, followers }) => {
    if (reference.record.slip) return 'refundOfSlip'
    if (reference.type === 'PA' && done(followers, 'CP').length === 0) return 'notYetCaptured'
    if (!refundable.has(reference.type)) return 'notRefundable'
    if (root.type === 'PA' && done(followers, 'CP').some(capture => !capture.answer)) return 'referencePending'
    if (root.type === 'DB' && sum(done(followers, 'RV')) >= root.amount) return 'refundOfReversed'
    if (refundOpen({ reference, root, followers }) === 0)
      return chargedBack(followers) > 0 ? 'refundOfChargedBack' : 'alreadyRefunded'
    return undefined
  },
  RV: (request, { reference, followers }) => {
    if (reference.type === 'CP') return 'reversalOfCapture'
    if (reference.type !== 'PA' && reference.type !== 'DB') return 'notReversible'
    if (done(followers, 'CP').length > 0) return 'reversalOfCaptured'
    if (done(followers, 'RC').length > 0) return 'reversalOfPaid'
    if (done(followers, 'RF').length > 0) return 'reversalOfRefunded'
    if (chargedBack(followers) > 0) return 'reversalOfChargedBack'
    if (reversalOpen(reference, followers) === 0) return 'alreadyReversed'
    if (done(followers, 'RV').some(reversal => !reversal.answer)) return 'anotherReversalUnderWay' // what shall stand is not known yet
    if (reference.type === 'DB' && !releasesAtIssuer(request.now, reference)) return 'reversalAfterRelease'
    return undefined
  },
}

const byAmount: Readonly<Record<FollowUpType, FollowUpRule>> = {
  CP: ({ amount }, { reference, followers }) =>
    amount! > reversalOpen(reference, followers) ? 'captureAboveAuthorized' : undefined,
  RF: ({ amount }, chain) => (amount! > refundOpen(chain) ? 'refundAboveCleared' : undefined),
  RV: ({ amount }, { reference, followers }) =>
    amount !== undefined && amount > reversalOpen(reference, followers) ? 'reversalAboveOpen' : undefined,
}

const refundable: ReadonlySet<string> = new Set(['PA', 'DB', 'CP', 'RC'])

/** What a rule has refused has no connector. */
export const wasSent = ({ connector }: PaymentState): boolean => connector !== ''
/** Whether it may yet be approved: what was refused is not answered for a moment either, until that is written. */
export const isUndecided = (follower: PaymentState): boolean => !follower.answer && wasSent(follower)

/** Followers of a type that are approved or may yet be. */
export function done(followers: readonly PaymentState[], type: FollowUpType | 'CB' | 'CR' | 'RC'): readonly PaymentState[] {
  return followers.filter(follower => follower.type === type && (follower.answer?.approved || isUndecided(follower)))
}

/** The capture that completes a PA.CP, and none that somebody asked for. */
export const isCompleting = ({ type, record }: PaymentState): boolean => type === 'CP' && !record.asked

/** What was cleared: an approved DB, the approved capture of a PA, or the receipts of a slip. */
export function cleared(root: PaymentState, followers: readonly PaymentState[]): number {
  if (root.type === 'DB') return root.answer?.approved ? root.amount : 0
  return sum(followers.filter(({ type, answer }) => (type === 'CP' || type === 'RC') && answer?.approved))
}

/** What issuers took back and did not give again. */
export function chargedBack(followers: readonly PaymentState[]): number {
  return sum(done(followers, 'CB')) - sum(done(followers, 'CR'))
}

/** What can still be refunded: cleared, less refunds, reversals and chargebacks, over the whole chain. Of a receipt what was paid with it. */
export function refundOpen({ reference, root, followers }: Chain): number {
  if (reference.type === 'RC')
    return reference.amount - sum(done(followers, 'RF').filter(({ referenceId }) => referenceId === reference.id))
  const reversed = root.type === 'DB' ? sum(done(followers, 'RV')) : 0
  return Math.max(0, cleared(root, followers) - sum(done(followers, 'RF')) - reversed - chargedBack(followers))
}

/** What is left of a PA's hold, or of a DB, after reversals. */
export function reversalOpen(reference: PaymentState, followers: readonly PaymentState[]): number {
  return Math.max(0, reference.amount - sum(done(followers, 'RV')))
}

/** Up to 72:00:00.000 after the original a message releases the hold at the issuer. */
export const releasesAtIssuer = (now: number, original: { readonly receivedAt: number }): boolean =>
  now - original.receivedAt <= releaseHours * 3_600_000

function isPartial({ amount }: FollowUp, { reference }: Chain): boolean {
  return amount !== undefined && amount < reference.amount
}

const sum = (payments: readonly PaymentState[]): number => payments.reduce((total, { amount }) => total + amount, 0)
