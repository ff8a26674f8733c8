// The connector behind every redirect method of the configuration: begin a payment, send the shopper away, and ask what became of it. Neither a
// return nor a notice is believed; both only lead to asking.

import { amountText } from '../../contract/amounts.ts'
import { writtenBeginning } from '../../contract/cardNumbers.ts'
import { isApproved, type ResultName, resultOfCode, results } from '../../contract/results/results.ts'
import { parseUrl } from '../../contract/url.ts'
import { type Reviver, readObject } from '../../platform/answerText.ts'
import { hostOf } from '../../platform/http.ts'
import type { Connector, ConnectorState, Mode, NoticeResult, Operation, Reply, Structures } from '../connector.ts'
import type { Method } from '../registry.ts'
import { asItCame } from '../takenBack.ts'
import { NotSent, type Transport } from '../transport.ts'
import type { Endpoints, RedirectMethod } from './redirectMethods.ts'

export const transferMethod = ({ brand, types, currencies, needs, endpoints }: RedirectMethod): Method => ({
  brand,
  code: 'OT',
  connector: 'transfer',
  modes: Object.keys(endpoints) as Mode[],
  types,
  currencies,
  needs,
})

export function transfer(
  mode: Mode,
  methods: readonly RedirectMethod[],
  simulators: () => string,
  transport: Transport,
): Connector {
  const byBrand = new Map(methods.map(method => [method.brand, method]))

  async function ask(
    { brand }: Operation,
    which: keyof Omit<Endpoints, 'headers' | 'tls'>,
    words: ConnectorState,
    form: Readonly<Record<string, string>> | undefined,
    signal: AbortSignal,
  ): Promise<BankAnswer> {
    const method = byBrand.get(brand)
    const endpoints = method?.endpoints[mode]
    const address = endpoints?.[which]
    if (!method || !endpoints || address === undefined) throw new NotSent(`${brand} has no ${which} address for ${mode}`)
    const url = fill(address.replace('{simulators}', simulators()), words, encodeURIComponent)
    const { status, body } = await transport(
      {
        method: form ? 'POST' : 'GET',
        url,
        headers: { ...endpoints.headers, ...(form && { 'Content-Type': 'application/x-www-form-urlencoded' }) },
        ...(form && { body: new URLSearchParams({ ...form }).toString() }),
        ...(endpoints.tls && { tls: endpoints.tls }),
      },
      signal,
    )
    if (status >= 500) throw new Error(`answered with status ${status}`)
    const json = readObject(body, undefined, longNumbers)
    if (!json) throw new Error('answered with something that is no JSON object')
    const named = (name: keyof RedirectMethod['answer']) => {
      const value = json[method.answer[name] ?? name]
      if (value !== undefined && value !== null) return typeof value === 'object' ? '' : String(value)
      // What was configured must be there: a status without its amount confirms none.
      return which === 'status' && (name === 'amount' || name === 'currency') && method.answer[name] !== undefined
        ? ''
        : undefined
    }
    return {
      isGood: status >= 200 && status < 300,
      status: named('status') ?? '',
      ...optional('transactionId', named('transactionId')),
      ...optional('redirect', named('redirect')),
      ...optional('amount', named('amount')),
      ...optional('currency', named('currency')),
      ...optional('reason', named('reason')),
    }
  }

  async function begin(operation: Operation, signal: AbortSignal): Promise<Reply> {
    const method = byBrand.get(operation.brand)
    if (!method) return { kind: 'notSent', why: `${operation.brand} is not configured` }
    const words = wordsOf(operation)
    const form = Object.fromEntries(
      Object.entries(method.fields)
        .map(([name, template]) => [name, fill(template, words)] as const)
        .filter(([, value]) => value !== ''),
    )
    const answer = await ask(operation, 'start', words, form, signal)
    if (!isPlain(answer.transactionId) || !isAddress(answer.redirect)) {
      const result = resultOf(method, answer.status) ?? 'refusedByBank'
      return goesOn(result)
        ? { ...unproven('the bank begins a transfer and sends the shopper nowhere'), needsDecision: true }
        : replyOf(operation, result, answer)
    }
    return {
      kind: 'redirect',
      step: 'transfer',
      transaction: answer.transactionId,
      data: { transactionId: answer.transactionId },
      hop: { kind: 'go', url: new URL(answer.redirect).href },
      endsAfterSeconds: method.endsAfterSeconds,
      endsAs: 'onlineTransferTimedOut',
      asksAtEnd: true,
      details: {
        ConnectorTxID1: answer.transactionId,
        ExtendedDescription: `The shopper goes to ${method.title}`,
        AcquirerResponse: readable(answer.status),
      },
    }
  }

  /** What the bank says now. Pending keeps the payment open: the shopper goes to the shop, and the notice will come. */
  async function look(operation: Operation, data: ConnectorState, atEnd: boolean, signal: AbortSignal): Promise<Reply> {
    const method = byBrand.get(operation.brand)!
    const answer = await ask(operation, 'status', data, undefined, signal)
    if (!answer.isGood) return unproven('the bank answered with an error when it was asked')
    if (answer.transactionId !== undefined && answer.transactionId !== data.transactionId)
      return unproven('the bank answers about another transaction than it was asked about')
    const result = resultOf(method, answer.status)
    if (result === undefined) return strangeWord
    if (results[result].outcome !== 'pending')
      return replyOf(operation, result, { ...answer, transactionId: data.transactionId! })
    if (atEnd) return replyOf(operation, 'onlineTransferTimedOut', { ...answer, transactionId: data.transactionId! })
    return {
      kind: 'redirect',
      step: 'transfer',
      data,
      hop: { kind: 'shop' },
      endsAfterSeconds: method.endsAfterSeconds,
      endsAs: 'onlineTransferTimedOut',
      asksAtEnd: true,
    }
  }

  return {
    name: `transfer ${mode}`,
    answerWithinSeconds: 15,
    askedAt({ brand }) {
      const status = byBrand.get(brand)?.endpoints[mode]?.status
      return status === undefined ? '' : hostOf(status.replace('{simulators}', simulators()))
    },
    operations: {
      DB: { how: 'repeat', afterSeconds: 15 },
      RF: { how: 'repeat', afterSeconds: 15 },
    },
    refundsStand: true,
    partialReversal: () => false,
    perform: (operation, signal) =>
      guarded(async () => {
        const { type, continued, attempt, addresses } = operation
        if (type === 'RF') return refund(operation, signal)
        if (operation.recovering) return giveBack(operation, signal)
        if (continued) {
          const reply = await look(operation, continued, false, signal)
          return reply.kind === 'redirect' ? { kind: 'unknown', why: 'the bank has not decided' } : reply
        }
        if (attempt > 1 || !addresses) return replyOf(operation, 'onlineTransferTimedOut', { isGood: true, status: '' })
        return begin(operation, signal)
      }),
    ask: (operation, signal) =>
      guarded(async () => {
        const { transactionId } = operation.continued ?? {}
        if (transactionId === undefined) return { kind: 'unknown', why: 'no transfer was begun' }
        const reply = await look(operation, { transactionId }, false, signal)
        return reply.kind === 'redirect' ? { kind: 'unknown', why: 'the bank has not decided' } : reply
      }),
    resume: (operation, { data, event }, signal) => guarded(() => look(operation, data, event.ended === 'true', signal)),
    readReturn: () => ({ kind: 'resume', event: {} }),
    readNotice: (): NoticeResult => ({ kind: 'resume', event: {}, answer: 'ok', contentType: 'text/plain' }),
    staleNotice: async () => ({ answer: 'ok', contentType: 'text/plain' }),
  }

  async function refund(operation: Operation, signal: AbortSignal): Promise<Reply> {
    const { amount, currency, paymentId, reference } = operation
    const words: ConnectorState = { transactionId: reference?.kept.transactionId ?? '' }
    const form = { amount: amountText(amount), currency, reference: paymentId }
    const answer = await ask(operation, 'refund', words, form, signal)
    const result = resultOf(byBrand.get(operation.brand)!, answer.status)
    if (result === undefined) return strangeWord
    return replyOf(operation, results[result].outcome === 'pending' ? 'succeeded' : result, answer)
  }

  /** Money that came too late, or another amount than was asked for: what came goes back as a refund. */
  async function giveBack(operation: Operation, signal: AbortSignal): Promise<Reply> {
    const { type, kept } = operation.reference!
    if (type === 'RF' || kept.transactionId === undefined) return { kind: 'unknown', why: 'there is no transfer to give back' }
    return refund(asItCame(operation), signal)
  }
}

type BankAnswer = {
  /** Its HTTP status is one of success. */
  readonly isGood: boolean
  readonly status: string
  readonly transactionId?: string
  readonly redirect?: string
  readonly amount?: string
  readonly currency?: string
  readonly reason?: string
}

/** Words that templates may use: the payment, our addresses, the merchant's account, and every parameter of the request by its name. */
function wordsOf(operation: Operation): ConnectorState {
  const { addresses, channel, paymentId, amount, currency, fields } = operation
  const account = channel.settings.bankAccount
  return {
    ...Object.fromEntries(fields),
    paymentId,
    amount: amountText(amount),
    currency,
    back: addresses?.back ?? '',
    cancel: addresses?.cancel ?? '',
    notice: addresses?.notice ?? '',
    ...(account && { 'merchantAccount.holder': account.holder, 'merchantAccount.number': account.number }),
  }
}

/** `{name}` is replaced by its word, or by nothing; merchantInvoiceId is never among the words (decisions, 46). */
const fill = (template: string, words: ConnectorState, encode: (text: string) => string = text => text): string =>
  template.replace(/\{([A-Za-z0-9_.[\]]+)\}/g, (_, name: string) => encode(Object.hasOwn(words, name) ? words[name]! : ''))

const resultOf = ({ statuses }: RedirectMethod, status: string): ResultName | undefined =>
  Object.hasOwn(statuses, status) ? resultOfCode.get(statuses[status]!)?.name : undefined

/** Hundredths. Where the bank says nothing, what was asked for counts; undefined when it says something that is no amount or no currency. */
function cameBack(answer: BankAnswer, asked: Operation): { readonly amount: number; readonly currency: string } | undefined {
  const { amount = amountText(asked.amount), currency = asked.currency } = answer
  const [, whole, part = ''] = /^(\d{1,10})(?:\.(\d{1,2}))?$/.exec(amount) ?? []
  if (whole === undefined || !/^[A-Z]{3}$/.test(currency)) return undefined
  return { amount: Number(whole) * 100 + Number(part.padEnd(2, '0')), currency }
}

function replyOf(operation: Operation, result: ResultName, answer: BankAnswer): Reply {
  const { amount, currency, channel } = operation
  const account = channel.settings.bankAccount
  const said = cameBack(answer, operation)
  if (isApproved(results[result].outcome) && !said) return unproven('the bank names an amount or a currency that is none')
  if (isApproved(results[result].outcome) && !answer.isGood) return unproven('the bank says done in an answer that is an error')
  const structures: Structures | undefined = account && { 'merchant.bankAccount': account as unknown as ConnectorState }
  return {
    kind: 'answer',
    result,
    ...(said ?? { amount, currency }),
    details: {
      ExtendedDescription:
        (answer.reason && readable(answer.reason)) || (result === 'succeeded' ? 'Approved' : 'The transfer was not made'),
      ...(isPlain(answer.transactionId) && { ConnectorTxID1: answer.transactionId }),
      ...(answer.status !== '' && { AcquirerResponse: readable(answer.status) }),
    },
    // A refund may be called what its payment is called.
    ...(operation.type === 'DB' && isPlain(answer.transactionId) && { transaction: answer.transactionId }),
    kept: { ...(isPlain(answer.transactionId) && { transactionId: answer.transactionId }) },
    ...(structures && { structures }),
  }
}

async function guarded(work: () => Promise<Reply>): Promise<Reply> {
  try {
    return await work()
  } catch (error) {
    return error instanceof NotSent ? { kind: 'notSent', why: error.message } : { kind: 'unknown', why: (error as Error).message }
  }
}

const unproven = (why: string): Extract<Reply, { kind: 'unknown' }> => ({ kind: 'unknown', why, answered: true })
const strangeWord = unproven('the bank answered with a status that the configuration does not know')
/** Money moves, or may. */
const goesOn = (result: ResultName): boolean => isApproved(results[result].outcome) || results[result].outcome === 'pending'

const wordMost = 255

/** A name that can be sent back as it came. One or two dots in an address are its folder, or the one above, however they are encoded. */
const isPlain = (name: string | undefined): name is string =>
  name !== undefined && /^(?!\.{1,2}$)\P{C}+$/u.test(name) && name.length <= wordMost

/** A word of the bank as it may be kept and told: without what moves a cursor or that no database keeps. */
const readable = (text: string): string => writtenBeginning(text.replace(/[\p{C}\u2028\u2029]/gu, ''), wordMost)

/** A number that JavaScript cannot hold is its digits: two transactions of a bank are never one. */
const longNumbers: Reviver = (_name, value, { source }) =>
  typeof value === 'number' && Math.abs(value) > Number.MAX_SAFE_INTEGER ? source : value

const isAddress = (text: string | undefined): text is string => /^https?:$/.test(parseUrl(text ?? '')?.protocol ?? '')
const optional = <Name extends string>(name: Name, value: string | undefined) =>
  (value === undefined ? {} : { [name]: value }) as { readonly [key in Name]?: string }
