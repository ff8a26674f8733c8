// Captures, refunds and reversals: POST /v1/payments/{id}. The rules and the first write run under a lock on the first payment of the chain.

import { refuseDismissed } from '../../audit/dismissed.ts'
import type { Actor } from '../../audit/entry.ts'
import type { Operation, OperationRequest } from '../../connectors/connector.ts'
import { minorUnits } from '../../connectors/minorUnits.ts'
import { modeOf } from '../../connectors/registry.ts'
import { amountText, hundredths } from '../../contract/amounts.ts'
import { type Values, valueNamed } from '../../contract/parameters/table.ts'
import { isApproved, type ResultName } from '../../contract/results/results.ts'
import type { Channel } from '../../merchants/directory.ts'
import { timeOrderedId } from '../../platform/clock.ts'
import type { Connection } from '../../platform/database/connect.ts'
import { dueAbout } from '../../platform/due/store.ts'
import { openCard } from '../../vault/cards.ts'
import {
  type Execution,
  execute,
  forwardable,
  operationOf,
  type PaymentResponse,
  pendingRecord,
  storeRefusal,
} from '../execute.ts'
import { answeredBefore, awaitTwin, ownerOf } from '../idempotency.ts'
import { keep, noRegistration, type Refusal, registers } from '../initial/choose.ts'
import { descriptorFor } from '../initial/descriptor.ts'
import { keptFields, type PaymentRequest } from '../initial/pay.ts'
import { reserves, rootTypeOf } from '../ledger/journal.ts'
import type { PaymentParts } from '../parts.ts'
import type { Payment, PaymentState } from '../payment.ts'
import { insertFollowUp } from '../store/payments.ts'
import { findPayment, findRoot, holdChain } from '../store/read.ts'
import { byTransfer, orderTransfer } from '../transfers/transfer.ts'
import { endUnsent, isTooLate, settleUnsent } from '../unsent.ts'
import {
  type Chain,
  done,
  type FollowUpType,
  forbids,
  isCompleting,
  releasesAtIssuer,
  reversalOpen,
  takesNoRefusals,
  wasSent,
} from './rules.ts'

/**
 * `completes`: our own step that ends what was begun, for example the capture of a PA.CP; a channel that is disabled meanwhile still ends it. `by`: who of the staff
 * wants it, and may be dismissed while it waits for its turn. `mayHold`: asked before anything is written whether what the first payment says may be held, too, until
 * the other side has answered.
 */
export type FollowUpRequest = Omit<PaymentRequest, 'publicUrl'> & {
  readonly referenceId: string
  readonly completes?: true
  readonly by?: Actor
  mayHold?(fields: Payment['record']['fields']): boolean
}

/** The referenced payment does not exist, or is another merchant's: nothing is stored. */
export type Unknown = { readonly unknown: ResultName }

export async function followUp(parts: PaymentParts, request: FollowUpRequest): Promise<PaymentResponse | Refusal | Unknown> {
  const type = request.values.get('paymentType')!
  if (!isFollowUpType(type)) return wrongType(type)
  if (registers(request.values)) return { ...keep(...noRegistration), stored: false }
  const malformed = wrongAmount(type, request.values)
  if (malformed) return malformed
  let unsent: Pick<Execution, 'payment' | 'rootType'> | undefined
  const written = await write(parts, request, type, (payment, rootType) => {
    unsent = { payment, rootType }
  }).catch((error: Error) => {
    if (unsent) endUnsent(parts, unsent)
    throw error
  })
  if ('carried' in written) return execute(parts, written.carried)
  const { ended } = written
  const isRefused = 'unknown' in ended || ('refused' in ended && !ended.stored)
  return (isRefused && request.key && (await answeredBefore(parts, request.channel.merchantId, request.key))) || ended
}

type FollowUpEnd = { readonly ended: PaymentResponse | Refusal | Unknown }

/** Everything up to the connector: whatever fails in here, nothing was sent. `begins` is told the payment before it is written. */
async function write(
  parts: PaymentParts,
  request: FollowUpRequest,
  type: FollowUpType,
  begins: (payment: Payment, rootType: string) => void,
): Promise<FollowUpEnd | { readonly carried: Execution }> {
  const began = parts.clock.elapsed()
  const { merchantId } = request.channel
  const rootId = await findRoot(parts.database.work, merchantId, request.referenceId)
  if (rootId === undefined) return { ended: { unknown: unknownReference[type] } }
  // What is read together costs one way to the database.
  const lock = (db: Connection) => Promise.all([holdChain(db, merchantId, rootId), openCard(db, parts.keys, merchantId, rootId)])
  const written = await parts.database.inChain(merchantId, rootId, lock, async (db, [payments, card]) => {
    if (payments.length === 0) return undefined // it was archived meanwhile
    const read = chainOf(payments, request, rootId)
    const failed = read.followers.filter(one => takenBackFirst.has(one.type) && one.answer?.approved === false && wasSent(one))
    const chain = { ...read, takesBack: await owesReversal(db, merchantId, failed) }
    const { settings, id } = request.channel
    if (settings.ownChannelOnly && chain.reference.channelId !== id) return undefined // nor is there another merchant's
    const { payment, refused } = decide(parts, request, type, chain)
    const rootType = rootTypeOf(chain.root)
    const transfers = refused ? [] : reserves(payment, rootType)
    const orders = payment.connector === byTransfer
    await refuseDismissed(db, request.by)
    if (!refused && request.mayHold?.(chain.root.record.fields) === false) return 'tooManyAtOnce'
    if (!refused && !orders) begins(payment, rootType)
    const lost = takesNoRefusals(chain.followers) && !request.completes ? refused : undefined
    const stored =
      !lost && (await insertFollowUp(db, { payment, ...(request.key && { key: request.key }) }, transfers, refused === undefined))
    const ordered = stored && orders && (await orderTransfer(parts, db, payment, chain.root, request.values.get('merchantMemo')))
    return { payment, chain, card, refused, lost, stored, ordered }
  })
  if (!written) return { ended: { unknown: unknownReference[type] } }
  if (written === 'tooManyAtOnce') return { ended: { refused: written, stored: false } }
  const { payment, chain, card, refused, lost, stored, ordered } = written
  // What is sent again is answered as it was, however full the chain is by now.
  if (lost && !(request.key && (await ownerOf(parts, merchantId, request.key))?.paid))
    return { ended: { refused: lost, stored: false } }
  if (!stored) {
    const twin = await awaitTwin(parts, payment, request.key!)
    if (twin !== 'ours') return { ended: twin }
  }
  if (refused) return { ended: await storeRefusal(parts, payment, refused, false) }
  if (ordered) return { ended: ordered }
  const rootType = rootTypeOf(chain.root)
  if (isTooLate(parts, began)) return { ended: await settleUnsent(parts, { payment, rootType }) }
  const connector = parts.connectors.get(payment.connector)!
  const operation = operationOf(parts, payment, { attempt: 1, reference: referenceOf(chain.root, chain.followers) }, card)
  return { carried: { payment, rootType, connector, operation } }
}

/**
 * PA.CP: captures a preauthorization that was just approved. When the capture fails, the preauthorization is reversed and the capture answers; while nobody knows what
 * became of it, the whole is pending.
 */
export async function captureAtOnce(
  parts: PaymentParts,
  channel: Channel,
  authorized: Payment,
  said: PaymentResponse,
): Promise<PaymentResponse> {
  if (!isApproved(said.outcome)) return said
  const { amount, currency } = authorized
  const captured = await refer(parts, channel, authorized, { paymentType: 'CP', amount: amountText(amount), currency })
  if (isApproved(captured.outcome)) return said
  if (captured.outcome === 'pending') return pendingRecord(parts, authorized)
  if (!(await owesReversal(parts.database.work, authorized.merchantId, [{ id: idIn(captured.body) }])))
    await refer(parts, channel, authorized, { paymentType: 'RV' })
  return captured
}

/** Nothing else of a chain is done before these are taken back: what a capture took goes into the hold again, and a refund that stands would be made twice. */
const takenBackFirst: ReadonlySet<string> = new Set<FollowUpType>(['CP', 'RF'])

async function owesReversal(db: Connection, merchantId: string, failed: readonly Pick<Payment, 'id'>[]): Promise<boolean> {
  const ids = failed.map(({ id }) => id)
  return ids.length > 0 && (await dueAbout(db, merchantId, ['reverse'], ids)).length > 0
}

const idIn = (body: string): string => (JSON.parse(body) as { readonly id: string }).id

/**
 * Does what of a PA.CP is not done yet: the capture, or after a failed one the reversal of all that is still held. → `again` while nobody knows what became of either, or
 * somebody else's reversal is in the way; `held`, with what was said, where the hold is not given back: `isUnsent` as long as there is nobody to ask.
 */
export async function completeCapture(
  parts: PaymentParts,
  channel: Channel,
  authorized: PaymentState,
  chain: readonly PaymentState[],
): Promise<'over' | 'again' | { readonly held: ResultName; readonly isUnsent: boolean }> {
  const captures = done(chain, 'CP')
  if (captures.length > 0) return captures.some(({ answer }) => answer) ? 'over' : 'again'
  if (!authorized.answer?.approved) return 'over'
  const reversals = done(chain, 'RV')
  if (reversals.some(({ answer }) => !answer)) return 'again'
  if (!chain.some(isCompleting)) {
    if (reversals.length > 0) return 'over' // it stands like any that was reversed
    const said = { outcome: 'success', body: authorized.answer.body } as const
    const { outcome } = await captureAtOnce(parts, channel, authorized, said)
    // A capture that failed is looked at again: was its hold given back?
    return isApproved(outcome) ? 'over' : 'again'
  }
  if (reversalOpen(authorized, chain) === 0) return 'over'
  if (await owesReversal(parts.database.work, authorized.merchantId, chain.filter(isCompleting))) return 'again'
  // A record of each look at a connector that is gone would say nothing.
  if (!parts.connectors.get(authorized.connector)?.operations.RV) return { held: 'operationNotOffered', isUnsent: true }
  const { outcome, body } = await refer(parts, channel, authorized, { paymentType: 'RV' })
  if (isApproved(outcome)) return 'over'
  if (outcome === 'pending') return 'again'
  const refused = await findPayment(parts.database.work, authorized.merchantId, idIn(body))
  const { result } = (refused && wasSent(refused) && refused.answer) || {}
  return result === undefined ? 'again' : { held: result, isUnsent: unsent.has(result) }
}

/** There was nobody to ask. */
const unsent: ReadonlySet<ResultName> = new Set(['neverSent', 'noTerminalFree', 'storedTooLate'])

async function refer(
  parts: PaymentParts,
  channel: Channel,
  { id, record, tokenId }: Payment,
  values: Record<string, string>,
): Promise<PaymentResponse> {
  const ours = {
    channel,
    referenceId: id,
    known: new Map(),
    ndc: record.ndc,
    values: new Map(Object.entries(values)),
    ...(tokenId !== undefined && { tokenId }), // whose PA.CP it is, whoever carries it on
  }
  return (await followUp(parts, { ...ours, completes: true })) as PaymentResponse
}

const chainOf = (payments: readonly PaymentState[], { referenceId }: FollowUpRequest, rootId: string): Chain => ({
  reference: payments.find(({ id }) => id === referenceId)!,
  root: payments.find(({ id }) => id === rootId)!,
  followers: payments.filter(({ id }) => id !== rootId),
})

function decide(
  parts: PaymentParts,
  request: FollowUpRequest,
  type: FollowUpType,
  chain: Chain,
): { payment: Payment; refused: ResultName | undefined } {
  const { values } = request
  const channel = actingChannel(parts, request.channel, chain.reference)
  const { reference, root, followers } = chain
  const now = parts.directory.businessTime(channel.merchantId)
  const amount = values.has('amount') ? hundredths(values.get('amount')!) : undefined
  const currency = values.get('currency')
  const testMode = values.get('testMode')
  const mode = testMode === undefined ? root.mode : modeOf(channel.settings, testMode)
  // What was paid on a slip goes back by a transfer, which no connector carries.
  const transferred = type === 'RF' && root.record.slip === true
  const connector = transferred ? undefined : parts.connectors.get(root.connector)
  const open = reversalOpen(root, followers)
  const asked: OperationRequest = {
    type,
    channel,
    mode: root.mode,
    brand: root.brand ?? '',
    amount: amount ?? (type === 'RV' ? open : 0),
    currency: currency ?? root.currency,
    reference: { kept: root.answer?.kept ?? {} },
    now,
  }
  const forbidden =
    [request.channel, channel].some(({ settings }) => settings.disabled) && !request.completes
      ? 'channelDisabled'
      : forbids(
          {
            type,
            channelId: channel.id,
            now,
            ...(request.completes && { completes: true as const }),
            ...(amount !== undefined && { amount }),
            ...(currency !== undefined && { currency }),
            // A mode that the channel does not take differs from that of any payment on it.
            ...(testMode !== undefined && { mode: mode === 'testModeOnLive' ? 'external' : (mode as Payment['mode']) }),
          },
          chain,
          {
            offered: transferred || connector?.operations[type] !== undefined,
            partialReversal: connector?.partialReversal(root.answer?.kept ?? {}) === true,
          },
        )
  const id = timeOrderedId(parts.clock.real(), parts.random)
  // What is left of an older payment goes back as it stands.
  const units = amount === undefined ? undefined : minorUnits(amount, asked.currency)
  const refused = forbidden ?? (typeof units === 'string' ? units : connector?.refuses?.(asked))
  const payment: Payment = {
    merchantId: channel.merchantId,
    id,
    channelId: channel.id,
    rootId: root.id,
    referenceId: reference.id,
    type,
    ...(root.brand !== undefined && { brand: root.brand }),
    amount: asked.amount,
    currency: asked.currency,
    mode: root.mode,
    // Refused: should the process die before the refusal is stored, recovery must not carry it out.
    connector: refused ? '' : transferred ? byTransfer : root.connector,
    ...inheritedTransactionId(values, reference),
    ...(request.tokenId !== undefined && { tokenId: request.tokenId }),
    receivedAt: now,
    recordedAt: parts.clock.real(),
    record: {
      ndc: request.ndc,
      fields: [
        ...inheritedFields(values, reference),
        ...keptFields(values, request.known),
        ['descriptor', descriptorOf(channel, id, values, reference)],
      ],
      ...(root.record.card && { card: root.record.card }),
      ...(root.record.captureAtOnce && !request.completes && { asked: true as const }),
      ...(type === 'CP' && { releases: open }),
      ...(type === 'RV' && { releasesAtIssuer: root.record.slip || releasesAtIssuer(now, root), remains: open - asked.amount }),
      ...(!refused && connector?.prepare && { prepared: connector.prepare(asked) }),
    },
  }
  return { payment, refused }
}

/** Absent from the request, these are those of the referenced payment (decisions, 29). */
const inherited = ['merchantTransactionId', 'merchantInvoiceId', 'customer.merchantCustomerId']

function inheritedFields(values: Values, reference: PaymentState): (readonly [string, string])[] {
  return reference.record.fields.filter(([name]) => inherited.includes(name) && valueNamed(values, name) === undefined)
}

function inheritedTransactionId(values: Values, reference: PaymentState): Pick<Payment, 'merchantTransactionId'> {
  const merchantTransactionId = values.get('merchantTransactionId') ?? reference.merchantTransactionId
  return merchantTransactionId === undefined ? {} : { merchantTransactionId }
}

/** Where the merchant lets its channels refer to each other's payments, what one asks is carried out on the channel of the payment: by its account. */
function actingChannel({ directory }: PaymentParts, asking: Channel, { channelId }: PaymentState): Channel {
  const own = directory.entity(channelId)
  return own?.kind === 'channel' && directory.merchant(asking.merchantId)?.settings.referencesAcrossChannels ? own : asking
}

/** A descriptor of its own is under the channel's setting like that of a first payment; else it is that of the referenced payment. */
function descriptorOf(channel: Channel, id: string, values: Values, { record }: PaymentState): string {
  const theirs = record.fields.find(([name]) => name === 'descriptor')?.[1]
  const sent = values.get('descriptor')
  return theirs !== undefined && (sent === undefined || channel.settings.descriptor === 'ignore')
    ? theirs
    : descriptorFor(channel, id, sent)
}

/** The payment that an operation refers to, as the connector sees it. */
export function referenceOf(root: PaymentState, followers: readonly PaymentState[]): NonNullable<Operation['reference']> {
  const capture = followers.find(({ type, answer }) => type === 'CP' && answer?.approved)
  return {
    paymentId: root.id,
    type: root.type,
    amount: root.amount,
    receivedAt: root.receivedAt,
    fields: forwardable(root),
    kept: root.answer?.kept ?? {},
    ...(capture && { captureKept: capture.answer!.kept }),
  }
}

/** The card of a first payment; undefined when it is erased or there never was one. */
export const cardOfPayment = ({ database, keys }: PaymentParts, { merchantId, id }: Payment): Promise<Operation['card']> =>
  openCard(database.work, keys, merchantId, id)

const isFollowUpType = (type: string): type is FollowUpType => type === 'CP' || type === 'RF' || type === 'RV'

const otherTypes: Readonly<Record<string, ResultName>> = {
  PA: 'typeIsInitial',
  DB: 'typeIsInitial',
  CD: 'typeIsInitial',
  'PA.CP': 'typeIsInitial',
  RB: 'rebillNotSupported',
  RC: 'receiptOnlyByPlatform',
}

const wrongType = (type: string): Refusal => ({
  refused: otherTypes[type] ?? 'typeUnknown',
  stored: false,
  parameterErrors: [{ name: 'paymentType', message: 'must be CP, RF or RV here' }],
})

/** Amount and currency: both for CP and RF, which the form has checked; both or neither for RV, where a currency alone is a full reversal too. */
function wrongAmount(type: FollowUpType, values: Values): Refusal | undefined {
  if (type === 'RV') {
    if (!values.has('amount') || values.has('currency')) return undefined
    return {
      refused: 'currencyMissing',
      stored: false,
      parameterErrors: [{ name: 'currency', message: 'is required for a partial reversal' }],
    }
  }
  if (hundredths(values.get('amount')!) === 0)
    return { refused: 'zeroAmount', stored: false, parameterErrors: [{ name: 'amount', message: 'must be above zero' }] }
  return undefined
}

const unknownReference: Readonly<Record<FollowUpType, ResultName>> = {
  CP: 'captureReferenceUnknown',
  RF: 'refundReferenceUnknown',
  RV: 'reversalReferenceUnknown',
}
