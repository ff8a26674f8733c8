// Operations to messages, and answers to replies. Pure: no sockets, no clock.

import { currencies } from '../../../contract/currencies.ts'
import type { ConnectorState, Operation, OperationType, Reply } from '../../connector.ts'
import { amountDigits, currencyOfNumber, hundredthsOf } from '../../minorUnits.ts'
import { cameAs } from '../../takenBack.ts'
import type { Message } from './codec.ts'
import { type Dialect, responseOf } from './dialects.ts'
import {
  type AcquirerAccountData,
  agreementMode,
  categoryOf,
  entryOf,
  placeOf,
  privateValues,
  privateValuesAgain,
} from './forwarding.ts'
import { readPrivateData, writePrivateData } from './privateData.ts'
import type { ProfiledMessage, Situation } from './profile.ts'
import { kindOfMessage, proofOf } from './proofs.ts'
import { avsLetter, cvvLetter, resultOfResponse } from './responseCodes.ts'
import { namedDay, type Original, retrievalReference, transmitted, versionOf } from './versions.ts'

/** What identifies a message, durable before it leaves: repeats and reversals are told by it. */
export type Trace = { readonly terminal: string; readonly stan: string; readonly at: number }

/** What a captured hold still holds is released, or a payment whose outcome is unknown is taken back. */
export type Task = 'request' | 'release' | 'takeBack'

export const taskOf = ({ recovering, releasing }: Operation): Task =>
  releasing ? 'release' : recovering ? 'takeBack' : 'request'

type Shape = {
  /** Without the digit of the version. */
  readonly type: string
  readonly processing: string
  readonly carries: 'card' | 'reference'
}

const requests: Readonly<Partial<Record<OperationType, Shape>>> = {
  PA: { type: '100', processing: '000000', carries: 'card' },
  DB: { type: '200', processing: '000000', carries: 'card' },
  CD: { type: '200', processing: '200000', carries: 'card' },
  CP: { type: '220', processing: '000000', carries: 'reference' },
  RF: { type: '200', processing: '200000', carries: 'reference' },
  RV: { type: '400', processing: '000000', carries: 'reference' },
}

function shapeOf(type: OperationType, dialect: Dialect): Shape {
  const shape = requests[type]
  if (!shape) throw new Error(`there is no message for ${type}`)
  return type === 'RV' ? { ...shape, type: versionOf(dialect).reversalType } : shape
}

export function messageOf(operation: Operation, trace: Trace, account: AcquirerAccountData, dialect: Dialect): Message {
  const task = taskOf(operation)
  const [kind, message] =
    task === 'request'
      ? ([operation.type as ProfiledMessage, request(operation, trace, account, dialect)] as const)
      : ([task === 'release' ? 'release' : 'timeOut', reversal(operation, trace, account, dialect)] as const)
  return { type: message.type, fields: asProfiled(kind, message.fields, dialect) }
}

/** With what the profile says that always stands there, and without what it does not let the message carry. */
export function asProfiled(
  kind: ProfiledMessage,
  fields: ReadonlyMap<number, string>,
  dialect: Dialect,
): ReadonlyMap<number, string> {
  const carried = dialect.messages[kind]
  if (!carried && dialect.constants.length === 0) return fields
  return new Map([...fields, ...dialect.constants].filter(([field]) => carried?.has(field) ?? true))
}

/** PA, DB, CD, CP, RF and RV as the merchant asked for them. */
function request(operation: Operation, trace: Trace, account: AcquirerAccountData, dialect: Dialect): Message {
  const { type, amount, currency, card, reference, attempt } = operation
  const version = versionOf(dialect)
  const shape = shapeOf(type, dialect)
  // What the first payment said counts for what follows it, unless that says otherwise.
  const fields = reference?.fields ? new Map([...reference.fields, ...operation.fields]) : operation.fields
  const said = new Map<number, string>()
  const say = (pairs: Iterable<readonly [number, string]>) => {
    for (const [field, value] of pairs) said.set(field, value)
  }
  say(header(operation, trace, account, dialect, shape.processing))
  say([
    [version.category, categoryOf(fields, account)],
    [43, version.nameAndPlace(placeOf(fields, account))],
  ])
  if (card) say([[14, `${card.expiryYear.slice(2)}${card.expiryMonth}`]])
  if (shape.carries === 'card') {
    say(version.purpose(shape.type, true))
    say(dialect.entry[amount === 0 ? 'accountCheck' : entryOf(fields)])
    say(writePrivateData(privateValues(operation, account), dialect.privateData))
  } else {
    const { kept } = reference!
    const original = originalKept(operation)
    say(version.purpose(shape.type, amount === reference!.amount))
    say(dialect.entry[entryOf(fields)])
    say(writePrivateData(privateValuesAgain(fields, kept.networkTransactionId, account), dialect.privateData))
    say(version.original(originalOf(original, account), dialect.timeZone))
    if (kept.authorizationCode) say([[38, kept.authorizationCode]])
    if (original.hostReference) say([[37, original.hostReference]])
    if (type === 'RV') {
      const authorized = amountDigits(reference!.amount, currency)
      if (operation.remains) say(version.replacement(authorized, amountDigits(operation.remains, currency)))
      else say([[4, authorized], ...version.reversal('asked')])
    } else say([[4, amountDigits(amount, currency)]])
  }
  return { type: `${version.digit}${attempt > 1 ? repeated(shape.type) : shape.type}`, fields: said }
}

/** A refund gives back what the capture took; all else refers to the first payment. */
const originalKept = ({ type, reference }: Operation): ConnectorState =>
  (type === 'RF' ? reference!.captureKept : undefined) ?? reference!.kept

/** 0420: takes back what may have been done, or releases what a capture left of a hold. It carries the trace of what it belongs to. */
function reversal(operation: Operation, trace: Trace, account: AcquirerAccountData, dialect: Dialect): Message {
  const { amount, currency, reference, attempt } = operation
  const version = versionOf(dialect)
  const isRelease = taskOf(operation) === 'release'
  const original = isRelease ? originalOf(reference!.kept, account) : originalOfUnknown(reference!.type, trace, account, dialect)
  const { processing } = shapeOf(isRelease ? 'PA' : reference!.type, dialect)
  const said = new Map<number, string>(header(operation, trace, account, dialect, processing))
  const say = (pairs: Iterable<readonly [number, string]>) => {
    for (const [field, value] of pairs) said.set(field, value)
  }
  say(version.original(original, dialect.timeZone))
  if (reference!.kept.hostReference) say([[37, reference!.kept.hostReference]])
  say(
    isRelease
      ? version.replacement(amountDigits(reference!.amount, currency), amountDigits(amount, currency))
      : version.reversal('timedOut'),
  )
  return { type: `${version.digit}${attempt > 1 ? '421' : '420'}`, fields: said }
}

/** What every message carries. */
function header(
  { amount, currency, card }: Operation,
  { terminal, stan, at }: Trace,
  account: AcquirerAccountData,
  dialect: Dialect,
  processing: string,
): (readonly [number, string])[] {
  return [
    [2, card!.number],
    [3, processing],
    [4, amountDigits(amount, currency)],
    [7, transmitted(at)],
    [11, stan],
    ...versionOf(dialect).localTime(at, dialect.timeZone),
    [32, account.acquirerId],
    ...(dialect.retrievalReference === 'gateway' ? [[37, retrievalReference(at, stan)] as const] : []),
    [41, terminal.padEnd(8)],
    [42, account.merchantId.padEnd(15)],
    [49, currencies.get(currency)!.number],
  ]
}

const repeated = (type: string) => `${type.slice(0, 2)}1`

/** The message behind a payment, as its answer kept it. */
const originalOf = (kept: ConnectorState, account: AcquirerAccountData): Original => ({
  type: kept.type ?? '',
  stan: kept.stan ?? '',
  at: Number(kept.at),
  acquirerId: account.acquirerId,
})

/** There is no answer: the message is known by its trace. */
const originalOfUnknown = (
  type: OperationType,
  { stan, at }: Trace,
  { acquirerId }: AcquirerAccountData,
  dialect: Dialect,
): Original => ({
  type: `${versionOf(dialect).digit}${shapeOf(type, dialect).type}`,
  stan,
  at,
  acquirerId,
})

/** Reads an answer: what it proves stands in proofs.ts. What recovery takes back is taken back, or it is not known. */
export function replyOf(
  operation: Operation,
  sent: Message,
  trace: Trace,
  answer: Message,
  dialect: Dialect,
  acquirer: string,
  institute: string,
): Reply {
  const raw = (answer.fields.get(39) ?? '').trim()
  const code = raw === '' ? '' : responseOf(raw, situationOf(operation), dialect)
  const task = taskOf(operation)
  const authorizes = authorizing(operation)
  const part = code === '10' ? partOf(operation, sent, answer) : undefined
  const amounts = part ?? released(operation, confirmed(operation, sent, answer, code))
  const proof = part || isGood(code, operation) ? 'done' : proofOf(kindOfMessage(sent.type), operation.attempt, code)
  const why = raw === '' ? 'the answer has no response code' : `the answer ${raw} to ${sent.type} does not say what became of it`
  // What is settled by a reversal needs nobody to decide.
  if (proof === 'again' || (proof === 'doubted' && !authorizes)) return { kind: 'unknown', why, answered: true }
  if (proof === 'person' || (code === '94' && isOtherThan(operation, amounts)))
    return { kind: 'unknown', why, answered: true, ...(!authorizes && { needsDecision: true }) }
  const result = proof === 'done' || proof === 'nothing' ? 'succeeded' : resultOfResponse(code, operation.brand)
  const ours = retrievalReference(trace.at, trace.stan)
  const theirs = answer.fields.get(37)?.trim()
  const hostReference = theirs !== undefined && theirs !== '' && theirs !== ours ? theirs : undefined
  const additional = answer.fields.get(44) ?? ''
  const networkTransactionId = readPrivateData(answer.fields, dialect.privateData).get('networkTransaction')
  const settledOn = namedDay(answer.fields.get(15) ?? '', trace.at)
  const begins = result === 'succeeded' && authorizing(operation) && agreementMode(operation.fields) === 'INITIAL'
  const avs = authorizes && asksAddress(sent, dialect) ? (avsLetter(additional[0] ?? '') ?? 'U') : undefined
  const cvv = authorizes ? cvvLetter(additional[1] ?? '') : undefined
  return {
    kind: 'answer',
    result,
    ...amounts,
    details: {
      ExtendedDescription: result === 'succeeded' ? 'Approved' : 'Declined',
      clearingInstituteName: institute,
      ConnectorTxID1: hostReference ?? ours,
      AcquirerResponse: raw,
    },
    ...(avs !== undefined && { avsResponse: avs }),
    ...(cvv !== undefined && { cvvResponse: cvv }),
    ...((result === 'partlyApproved' || proof === 'doubted') && { leaves: 'reverse' as const }),
    ...(operation.type === 'CP' &&
      task === 'request' &&
      result === 'succeeded' &&
      operation.amount < operation.reference!.amount && { leaves: 'release' as const }),
    ...(begins &&
      networkTransactionId !== undefined && {
        structures: { standingInstruction: { initialTransactionId: networkTransactionId } },
      }),
    kept: {
      acquirer,
      type: sent.type,
      stan: trace.stan,
      at: String(trace.at),
      terminal: trace.terminal,
      rrn: ours,
      ...(hostReference !== undefined && { hostReference }),
      ...(settledOn !== undefined && { settledOn }),
      ...(proof === 'nothing' && { nothing: 'true' }),
      ...(answer.fields.has(38) && { authorizationCode: answer.fields.get(38)! }),
      ...(networkTransactionId !== undefined && { networkTransactionId }),
      ...(result === 'partlyApproved' && cameAs(confirmed(operation, sent, answer, '00'))),
    },
  }
}

/** Of an amount approved in part: that part, where the channel takes it. */
function partOf(
  operation: Operation,
  sent: Message,
  answer: Message,
): { amount: number; currency: string; part: true } | undefined {
  if (!authorizing(operation) || !operation.channel.settings.partialApprovals) return undefined
  const { amount, currency } = confirmed(operation, sent, answer, '00')
  return currency === operation.currency && amount > 0 && amount < operation.amount ? { amount, currency, part: true } : undefined
}

/** 85: no reason to decline, which only an account check hears. */
const isGood = (code: string, { amount }: Operation): boolean => code === '85' && amount === 0

const authorizing = ({ type }: Operation): boolean => type === 'PA' || type === 'DB'

/** As an answer is read for which nobody waits any more: a message that is repeated may have been so since, and it says no more than what a repeat hears. */
export const asLate = (operation: Operation): Operation => (authorizing(operation) ? operation : { ...operation, attempt: 2 })

/** What the operation is answered as. */
export const situationOf = (operation: Operation): Situation =>
  operation.type === 'RV' || taskOf(operation) !== 'request' ? 'reversal' : operation.attempt > 1 ? 'repeat' : 'first'

const isOtherThan = (one: Pick<Operation, 'amount' | 'currency'>, other: Pick<Operation, 'amount' | 'currency'>): boolean =>
  one.amount !== other.amount || one.currency !== other.currency

const asksAddress = (sent: Message, { privateData }: Dialect): boolean => readPrivateData(sent.fields, privateData).has('address')

/**
 * A host names what was held, what stays, or what goes free: each of these says that it was released as asked. Where a part was reversed before, it is told of the whole
 * hold all the same, since of that part it may not have heard (decisions, 8): it may go by either.
 */
function released({ amount, reference, releasing }: Operation, said: { readonly amount: number; readonly currency: string }) {
  const held = releasing === undefined ? [] : [releasing, reference!.amount]
  return held.some(sum => said.amount === sum || said.amount === sum - amount) ? { ...said, amount } : said
}

/** Amount and currency as the host confirmed them; hosts leave them out of some answers. */
function confirmed(
  { amount, currency }: Operation,
  sent: Message,
  answer: Message,
  code: string,
): { amount: number; currency: string } {
  const [said, number] = [answer.fields.get(4), answer.fields.get(49)]
  const otherCurrency = number === undefined ? undefined : (currencyOfNumber(number) ?? 'unknown')
  if (said === undefined || said === sent.fields.get(4) || code === '10') return { amount, currency: otherCurrency ?? currency }
  return { amount: hundredthsOf(BigInt(said), currency) ?? -1, currency: otherCurrency ?? currency }
}
