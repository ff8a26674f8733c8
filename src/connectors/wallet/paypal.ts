// The wallet as a connector: Set, redirect, Get details, Do; then captures, refunds and voids. Errors by their number.

import { amountText, hundredths } from '../../contract/amounts.ts'
import type { ResultName } from '../../contract/results/results.ts'
import { hostOf } from '../../platform/http.ts'
import type { Connector, Mode, Operation, Redirect, Reply } from '../connector.ts'
import type { Method } from '../registry.ts'
import { asItCame } from '../takenBack.ts'
import { NotSent, type Transport } from '../transport.ts'
import {
  buyerOf,
  doCheckout,
  followUpRequest,
  isTooFine,
  type Pairs,
  readPairs,
  setCheckout,
  signed,
  type WalletCredentials,
  walletBounds,
  writePairs,
} from './nvp.ts'

export type WalletSettings = {
  readonly endpoint: string
  /** Where the buyer goes, without the query. */
  readonly checkout: string
  /** By channel id, or `default`. */
  readonly credentials: Readonly<Record<string, WalletCredentials>>
}

export const walletMethod: Method = {
  brand: 'PAYPAL',
  code: 'VA',
  connector: 'wallet',
  types: ['PA', 'DB'],
  currencies: [],
  needs: ['shopperResultUrl'],
}

/** A buyer who does not come back within half an hour has given up; the wallet's own token lives three hours. */
const endsAfterSeconds = 1800

const alreadyDone = '10415'
const expired = '10411'
/** An internal error: it may have been carried out. */
const internalError = '10001'
/** The wallet's error numbers that mean something of their own; every other one is a decline. */
const errors: Readonly<Record<string, ResultName>> = {
  '10002': 'configuredMethodInvalid', // the credentials are wrong
  [expired]: 'pendingTimedOut',
  '10412': 'duplicateAtWallet',
  '10413': 'walletAmountsDiffer',
  '10417': 'declinedByWallet',
  '10009': 'declinedByWallet',
  '10601': 'declinedByWallet',
}
/** The buyer is sent back to the wallet to choose another funding source. */
const sendBack: ReadonlySet<string> = new Set(['10486', '10422'])

export function wallet(mode: Mode, settings: () => WalletSettings, transport: Transport): Connector {
  async function call(operation: Operation, method: string, pairs: Pairs, signal: AbortSignal): Promise<Pairs> {
    const { endpoint, credentials } = settings()
    const mine = credentials[operation.channel.id] ?? credentials.default
    if (!mine) throw new NotSent('no credentials for this channel')
    const headers = { 'Content-Type': 'application/x-www-form-urlencoded' }
    const { status, body } = await transport(
      { method: 'POST', url: endpoint, headers, body: writePairs(signed(mine, method, pairs)), answerMost: walletBounds.length },
      signal,
    )
    const answer = readPairs(body)
    if (status !== 200 || answer.ACK === undefined) throw new Error(`the wallet answered with status ${status}`)
    return answer
  }

  async function begin(operation: Operation, signal: AbortSignal): Promise<Reply> {
    const answer = await call(operation, 'SetExpressCheckout', setCheckout(operation), signal)
    if (!isGood(answer) || !answer.TOKEN) return declined(operation, answer)
    return away(operation, answer.TOKEN, answer)
  }

  /** The buyer goes to the wallet, for the first time or again. */
  function away({ addresses }: Operation, token: string, answer: Pairs): Redirect {
    const query = { cmd: '_express-checkout', token }
    return {
      kind: 'redirect',
      step: 'wallet',
      data: { token },
      hop: { kind: 'go', url: `${settings().checkout}?${new URLSearchParams(query)}` },
      endsAfterSeconds,
      endsAs: 'pendingTimedOut',
      details: {
        ...correlation(answer),
        AcquirerResponse: answer.ACK ?? '',
        ExtendedDescription: 'The buyer goes to the wallet',
      },
      ...(addresses && { parameters: Object.entries(query).map(([name, value]) => ({ name, value })) }),
    }
  }

  const look = (operation: Operation, token: string, signal: AbortSignal): Promise<Pairs> =>
    call(operation, 'GetExpressCheckoutDetails', { TOKEN: token }, signal)

  /** The buyer is back, and nothing was paid yet: only an expired token ends it, any other failed reading says nothing. */
  async function conclude(operation: Operation, token: string, payerId: string, signal: AbortSignal): Promise<Reply> {
    const details = await look(operation, token, signal)
    if (!isAbout(operation, token, details)) return unclear
    if (details.L_ERRORCODE0 === expired) return declined(operation, details)
    if (!isGood(details)) return unread(details)
    if (details.PAYERID !== payerId) return declined(operation, { ...details, L_ERRORCODE0: '10419' })
    return payWith(operation, token, details, signal)
  }

  /** The buyer agreed: whoever he is goes into the answer, and the money moves once. */
  async function payWith(operation: Operation, token: string, details: Pairs, signal: AbortSignal): Promise<Reply> {
    const payerId = details.PAYERID!
    const done = await call(operation, 'DoExpressCheckoutPayment', doCheckout(operation, token, payerId), signal)
    if (!isAbout(operation, token, done)) return unclear
    const code = done.L_ERRORCODE0 ?? ''
    if (!isGood(done) && sendBack.has(code)) return away(operation, token, done)
    if (!isGood(done) && code === alreadyDone) {
      // Done before under this token: the wallet tells under which transaction.
      const again = await look(operation, token, signal)
      if (!isAbout(operation, token, again)) return unclear
      return approved(operation, again, {
        ...again,
        PAYMENTINFO_0_PAYMENTSTATUS: again.CHECKOUTSTATUS === 'PaymentActionCompleted' ? 'Completed' : '',
        PAYMENTINFO_0_TRANSACTIONID: again.PAYMENTREQUEST_0_TRANSACTIONID ?? '',
        PAYMENTINFO_0_AMT: again.PAYMENTREQUEST_0_AMT ?? '',
        PAYMENTINFO_0_CURRENCYCODE: again.PAYMENTREQUEST_0_CURRENCYCODE ?? '',
      })
    }
    if (isUnclear(done)) return unclear
    return isGood(done) ? approved(operation, details, done) : declined(operation, done)
  }

  return {
    name: `wallet ${mode}`,
    answerWithinSeconds: 20,
    askedAt: () => hostOf(settings().endpoint),
    operations: {
      PA: { how: 'repeat', afterSeconds: 15 },
      DB: { how: 'repeat', afterSeconds: 15 },
      CP: { how: 'repeat', afterSeconds: 15 },
      RF: { how: 'repeat', afterSeconds: 15 },
      RV: { how: 'repeat', afterSeconds: 15 },
    },
    refundsStand: true,
    partialReversal: () => false,
    refuses: ({ amount, currency }) => (isTooFine(amount, currency) ? 'amountFinerThanCurrency' : undefined),
    perform: (operation, signal) =>
      guarded(async () => {
        const { type, continued, recovering, attempt } = operation
        if (recovering) return reverse(operation, signal)
        if (type === 'PA' || type === 'DB') {
          if (continued) return settleAgain(operation, continued.token!, signal)
          // The process died before the buyer was sent away: nobody holds the token, so nothing can be paid with it.
          if (attempt > 1 || !operation.addresses) return ended(operation, 'pendingTimedOut', {})
          return begin(operation, signal)
        }
        const { method, pairs } = followUpRequest(operation)
        const answer = await call(operation, method, pairs, signal)
        if (isUnclear(answer)) return unclear
        return isGood(answer) ? followed(operation, method, answer) : declined(operation, answer)
      }),
    resume: (operation, { data, event }, signal) =>
      guarded(async () => {
        if (event.cancelled !== undefined) return ended(operation, 'cancelledByShopper', {})
        return conclude(operation, data.token!, event.payerId!, signal)
      }),
    readReturn({ data, values, cancelled }) {
      if (values.get('token') !== data.token) return { kind: 'forged', why: 'the token is not the one of this payment' }
      if (cancelled) return { kind: 'resume', event: { cancelled: 'true' } }
      const payerId = values.get('PayerID') ?? ''
      if (!/^[A-Z0-9]{1,20}$/i.test(payerId)) return { kind: 'forged', why: 'the return names no payer' }
      return { kind: 'resume', event: { payerId } }
    },
  }

  /** After a crash in the middle: ask who the buyer is, and do it again under the same MSGSUBID, which never pays twice. It may have been
   * paid before, so that no failed reading is an end, not even that the token has expired. */
  async function settleAgain(operation: Operation, token: string, signal: AbortSignal): Promise<Reply> {
    const details = await look(operation, token, signal)
    if (!isAbout(operation, token, details)) return unclear
    if (!isGood(details)) return unread(details)
    if (!details.PAYERID) return ended(operation, 'pendingTimedOut', correlation(details))
    const reply = await payWith(operation, token, details, signal)
    return reply.kind === 'redirect' ? ended(operation, 'declinedByWallet', reply.details ?? {}) : reply
  }

  /** Money that must go back: an authorization is voided, a sale or capture refunded. A refund cannot be taken back. */
  async function reverse(operation: Operation, signal: AbortSignal): Promise<Reply> {
    const { type, kept } = operation.reference!
    if (type === 'RF' || !kept.TRANSACTIONID) return { kind: 'unknown', why: 'there is no transaction to take back' }
    const all = asItCame(operation)
    const { method, pairs } = followUpRequest(all)
    const answer = await call(all, method, pairs, signal)
    return isGood(answer)
      ? followed(all, method, answer)
      : { kind: 'unknown', why: `the wallet refuses the reversal: ${answer.L_ERRORCODE0}`, answered: true }
  }
}

/** A token that has expired will never be read again. */
const unread = ({ L_ERRORCODE0: code }: Pairs): Reply => ({
  kind: 'unknown',
  why: `the checkout could not be read: ${code}`,
  answered: true,
  ...(code === expired && { needsDecision: true }),
})

async function guarded(work: () => Promise<Reply>): Promise<Reply> {
  try {
    return await work()
  } catch (error) {
    return error instanceof NotSent ? { kind: 'notSent', why: error.message } : { kind: 'unknown', why: (error as Error).message }
  }
}

function approved(operation: Operation, details: Pairs, done: Pairs): Reply {
  const buyer = buyerOf(details)
  const transaction = done.PAYMENTINFO_0_TRANSACTIONID
  if (!transaction || !isName(transaction)) return { kind: 'unknown', why: 'the wallet says done and names no transaction' }
  const { PAYMENTINFO_0_PAYMENTSTATUS: word = '', PAYMENTINFO_0_PENDINGREASON: reason = '' } = done
  // An authorization waits for its capture; a sale that is one has taken nothing.
  const isHeld = statusOf(word) === 'waits' && reason.toLowerCase() === 'authorization'
  const status = !isHeld ? statusOf(word) : operation.type === 'PA' ? 'done' : undefined
  const money = confirmed(operation, done.PAYMENTINFO_0_AMT ?? '', done.PAYMENTINFO_0_CURRENCYCODE)
  if (status === undefined || !money) return unclear
  if (status === 'refused') return declined(operation, done)
  const waits = status === 'waits'
  return {
    kind: 'answer',
    result: waits ? 'reviewStillPending' : 'succeeded',
    ...money,
    details: {
      ExtendedDescription: waits ? `Pending at the wallet: ${reason}` : 'Approved',
      ...correlation(done),
      ...buyer.details,
      ConnectorTxID1: transaction,
      AcquirerResponse: done.ACK ?? '',
    },
    transaction,
    kept: { TRANSACTIONID: transaction },
    structures: { virtualAccount: buyer.account },
  }
}

/** What an answer names, and what it says became of it. A void ends what it names, and a refund has not always a status of its own. */
const proofs: Readonly<Record<string, (answer: Pairs) => { readonly name: string; readonly status: string }>> = {
  DoCapture: ({ TRANSACTIONID = '', PAYMENTSTATUS = '' }) => ({ name: TRANSACTIONID, status: PAYMENTSTATUS }),
  DoVoid: ({ AUTHORIZATIONID = '' }) => ({ name: AUTHORIZATIONID, status: 'Completed' }),
  RefundTransaction: ({ REFUNDTRANSACTIONID = '', REFUNDSTATUS = 'Completed' }) => ({
    name: REFUNDTRANSACTIONID,
    status: /^none$/i.test(REFUNDSTATUS) ? 'Failed' : REFUNDSTATUS, // what it says of a refund that failed
  }),
}

function followed(operation: Operation, method: string, answer: Pairs): Reply {
  const { name, status: word } = proofs[method]!(answer)
  const status = statusOf(word)
  const money = confirmed(operation, answer.AMT ?? answer.GROSSREFUNDAMT, answer.CURRENCYCODE)
  if (status === undefined || !money || !isName(name)) return unclear
  if (status === 'refused') return declined(operation, answer)
  return {
    kind: 'answer',
    result: status === 'waits' ? 'reviewStillPending' : 'succeeded',
    ...money,
    details: {
      ExtendedDescription: status === 'waits' ? 'Pending at the wallet' : 'Approved',
      ...correlation(answer),
      ConnectorTxID1: name,
      AcquirerResponse: answer.ACK ?? '',
    },
    // A void is called what it ends.
    ...(method !== 'DoVoid' && { transaction: name }),
    kept: { TRANSACTIONID: name },
  }
}

function declined(operation: Operation, answer: Pairs): Reply {
  const code = answer.L_ERRORCODE0 ?? ''
  return ended(operation, errors[code] ?? 'declinedByWallet', {
    ...correlation(answer),
    AcquirerResponse: answer.ACK ?? '',
    ...(code !== '' && { acquirerReturnCode: code }),
    ExtendedDescription: answer.L_LONGMESSAGE0 ?? answer.L_SHORTMESSAGE0 ?? 'The wallet declined',
  })
}

const ended = ({ amount, currency }: Operation, result: ResultName, details: Readonly<Record<string, string>>): Reply => ({
  kind: 'answer',
  result,
  amount,
  currency,
  details: { ExtendedDescription: 'The payment ended at the wallet', ...details },
  kept: {},
})

/** What the wallet confirms, hundredths. A void names no amount, then what was asked for counts; undefined when what it names is none. */
function confirmed(asked: Operation, amount = amountText(asked.amount), currency = asked.currency) {
  if (!/^\d{1,10}(\.\d{2})?$/.test(amount) || !/^[A-Z]{3}$/.test(currency)) return undefined
  return { amount: hundredths(amount), currency }
}

const unclear: Reply = { kind: 'unknown', why: 'what the wallet says proves nothing', answered: true }

/** What the wallet says became of money, by what it means. Any other word says nothing. */
const statuses: Readonly<Record<string, 'done' | 'waits' | 'refused'>> = {
  completed: 'done',
  processed: 'done',
  'completed-funds-held': 'done', // it is paid, and the wallet keeps it for a while
  instant: 'done',
  delayed: 'done',
  pending: 'waits',
  denied: 'refused',
  failed: 'refused',
  expired: 'refused',
  voided: 'refused',
}
const statusOf = (word: string) => (Object.hasOwn(statuses, word.toLowerCase()) ? statuses[word.toLowerCase()] : undefined)

/** Where an answer names a checkout or an invoice, they are those that it was asked about. */
function isAbout(operation: Operation, token: string, answer: Pairs): boolean {
  const { PAYMENTREQUEST_0_INVNUM: ours } = doCheckout(operation, token, '')
  const { TOKEN = token, INVNUM: whole = ours, PAYMENTREQUEST_0_INVNUM: part = ours } = answer
  return TOKEN === token && whole === ours && part === ours
}

/** A name of the wallet that a database can keep. */
const isName = (name: string): boolean => /^\P{C}{1,255}$/u.test(name)

const correlation = ({ CORRELATIONID }: Pairs) => (CORRELATIONID === undefined ? {} : { CORRELATIONID })
const isGood = ({ ACK }: Pairs): boolean => ACK === 'Success' || ACK === 'SuccessWithWarning'
/** Neither done nor refused: no word of the four, a refusal without its number, an error of the wallet's own, or two words that contradict. */
function isUnclear({ ACK = '', L_ERRORCODE0: code = '', PAYMENTINFO_0_ACK: part = ACK }: Pairs): boolean {
  if (isGood({ ACK })) return !isGood({ ACK: part })
  return !/^Failure(WithWarning)?$/.test(ACK) || !/^\d{5}$/.test(code) || code === internalError
}
