// Operations to messages, and answers to replies. Pure: no sockets, no clock.

import { currencies } from '../../../contract/currencies.ts'
import type { ConnectorState, Operation, OperationType, Reply } from '../../connector.ts'
import { amountDigits, currencyOfNumber, hundredthsOf } from '../../minorUnits.ts'
import type { Message } from './codec.ts'
import type { Dialect } from './dialects.ts'
import { type AcquirerAccountData, categoryOf, isOnFile, nameAndPlace, privateValues } from './forwarding.ts'
import { readPrivateData, tags, writePrivateData } from './privateData.ts'
import { kindOfMessage, proofOf } from './proofs.ts'
import { avsLetter, cvvLetter, responseOf, resultOfResponse } from './responseCodes.ts'
import { type Original, retrievalReference, transmitted, versionOf } from './versions.ts'

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

function shapeOf(type: OperationType): Shape {
  const shape = requests[type]
  if (!shape) throw new Error(`there is no message for ${type}`)
  return shape
}

export function messageOf(operation: Operation, trace: Trace, account: AcquirerAccountData, dialect: Dialect): Message {
  return taskOf(operation) === 'request'
    ? request(operation, trace, account, dialect)
    : reversal(operation, trace, account, dialect)
}

/** PA, DB, CD, CP, RF and RV as the merchant asked for them. */
function request(operation: Operation, trace: Trace, account: AcquirerAccountData, dialect: Dialect): Message {
  const { type, fields, amount, currency, card, reference, attempt } = operation
  const version = versionOf(dialect)
  const shape = shapeOf(type)
  const said = new Map<number, string>()
  const say = (pairs: Iterable<readonly [number, string]>) => {
    for (const [field, value] of pairs) said.set(field, value)
  }
  say(header(operation, trace, account, dialect, shape.processing))
  say([
    [18, categoryOf(fields, account)],
    [22, isOnFile(fields) ? version.onFile : version.entered],
    ...version.electronicCommerce,
    [43, nameAndPlace(fields, account)],
  ])
  if (card) say([[14, `${card.expiryYear.slice(2)}${card.expiryMonth}`]])
  if (shape.carries === 'card') {
    const text = writePrivateData(privateValues(operation, account))
    if (text !== '') say([[48, text]])
  } else {
    say(version.original(originalOf(reference!.kept, account)))
    if (type !== 'RV' && reference!.kept.authorizationCode) say([[38, reference!.kept.authorizationCode]])
    if (type === 'RV') {
      const authorized = amountDigits(reference!.amount, currency)
      if (operation.remains) say(version.replacement(authorized, amountDigits(operation.remains, currency)))
      else say([[4, authorized]])
    } else say([[4, amountDigits(amount, currency)]])
  }
  return { type: `${version.digit}${attempt > 1 ? repeated(shape.type) : shape.type}`, fields: said }
}

/** 0420: takes back what may have been done, or releases what a capture left of a hold. It carries the trace of what it belongs to. */
function reversal(operation: Operation, trace: Trace, account: AcquirerAccountData, dialect: Dialect): Message {
  const { amount, currency, reference, attempt } = operation
  const version = versionOf(dialect)
  const isRelease = taskOf(operation) === 'release'
  const original = isRelease ? originalOf(reference!.kept, account) : originalOfUnknown(reference!.type, trace, account, dialect)
  const said = new Map<number, string>(
    header(operation, trace, account, dialect, shapeOf(isRelease ? 'PA' : reference!.type).processing),
  )
  for (const [field, value] of version.original(original)) said.set(field, value)
  if (isRelease) {
    const replaced = version.replacement(amountDigits(reference!.amount, currency), amountDigits(amount, currency))
    for (const [field, value] of replaced) said.set(field, value)
  } else for (const [field, value] of version.timedOut) said.set(field, value)
  return { type: `${version.digit}${attempt > 1 ? '421' : '420'}`, fields: said }
}

/** What every message carries. */
function header(
  { amount, currency, card }: Operation,
  { terminal, stan, at }: Trace,
  account: AcquirerAccountData,
  dialect: Dialect,
  processing: string,
): [number, string][] {
  const version = versionOf(dialect)
  return [
    [2, card!.number],
    [3, processing],
    [4, amountDigits(amount, currency)],
    [7, transmitted(at)],
    [11, stan],
    ...version.localTime(at).map(([field, value]): [number, string] => [field, value]),
    [32, account.acquirerId],
    [37, retrievalReference(at, stan)],
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
  type: `${versionOf(dialect).digit}${shapeOf(type).type}`,
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
  const code = raw === '' ? '' : responseOf(dialect.version, raw)
  const task = taskOf(operation)
  const authorizes = operation.type === 'PA' || operation.type === 'DB'
  const amounts = confirmed(operation, sent, answer)
  const proof = proofOf(kindOfMessage(sent.type), operation.attempt, code)
  const why = raw === '' ? 'the answer has no response code' : `the answer ${raw} to ${sent.type} does not say what became of it`
  // What is settled by a reversal needs nobody to decide.
  if (proof === 'again' || (proof === 'doubted' && !authorizes)) return { kind: 'unknown', why, answered: true }
  if (proof === 'person' || (code === '94' && isOtherThan(operation, amounts)))
    return { kind: 'unknown', why, answered: true, ...(!authorizes && { needsDecision: true }) }
  const result = proof === 'done' || proof === 'nothing' ? 'succeeded' : resultOfResponse(code, operation.brand)
  const rrn = retrievalReference(trace.at, trace.stan)
  const additional = answer.fields.get(44) ?? ''
  const privateData = readPrivateData(answer.fields.get(48) ?? '')
  const avs = authorizes && asksAddress(sent) ? (avsLetter(additional[0] ?? '') ?? 'U') : undefined
  const cvv = authorizes ? cvvLetter(additional[1] ?? '') : undefined
  const networkTransactionId = privateData?.get(tags.networkTransaction)
  return {
    kind: 'answer',
    result,
    ...amounts,
    details: {
      ExtendedDescription: result === 'succeeded' ? 'Approved' : 'Declined',
      clearingInstituteName: institute,
      ConnectorTxID1: rrn,
      AcquirerResponse: raw,
    },
    ...(avs !== undefined && { avsResponse: avs }),
    ...(cvv !== undefined && { cvvResponse: cvv }),
    ...((result === 'partlyApproved' || proof === 'doubted') && { leaves: 'reverse' as const }),
    ...(operation.type === 'CP' &&
      task === 'request' &&
      result === 'succeeded' &&
      operation.amount < operation.reference!.amount && { leaves: 'release' as const }),
    kept: {
      acquirer,
      type: sent.type,
      stan: trace.stan,
      at: String(trace.at),
      terminal: trace.terminal,
      rrn,
      ...(answer.fields.has(38) && { authorizationCode: answer.fields.get(38)! }),
      ...(networkTransactionId !== undefined && { networkTransactionId }),
    },
  }
}

const isOtherThan = (one: Pick<Operation, 'amount' | 'currency'>, other: Pick<Operation, 'amount' | 'currency'>): boolean =>
  one.amount !== other.amount || one.currency !== other.currency

const asksAddress = (sent: Message): boolean => readPrivateData(sent.fields.get(48) ?? '')?.has(tags.address) === true

/** Amount and currency as the host confirmed them; hosts leave them out of some answers. */
function confirmed({ amount, currency }: Operation, sent: Message, answer: Message): { amount: number; currency: string } {
  const [said, number] = [answer.fields.get(4), answer.fields.get(49)]
  const otherCurrency = number === undefined ? undefined : (currencyOfNumber(number) ?? 'unknown')
  if (said === undefined || said === sent.fields.get(4) || answer.fields.get(39) === '10')
    return { amount, currency: otherCurrency ?? currency }
  return { amount: hundredthsOf(BigInt(said), currency) ?? -1, currency: otherCurrency ?? currency }
}
