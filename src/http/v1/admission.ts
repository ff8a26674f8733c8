// Who comes in, and with what: the caller of a request and its form, judged by the channel. Every request of the interface passes here first.

import { mayBeRepeated } from '../../contract/cardNumbers.ts'
import { peek, readForm } from '../../contract/form.ts'
import { type FormCheck, formChecker, type ParameterError } from '../../contract/formCheck.ts'
import { namesNear } from '../../contract/nearest.ts'
import { emptyNested, type Nested } from '../../contract/nested.ts'
import type { Values } from '../../contract/parameters/table.ts'
import { type RequestKind, type RequestName, requests } from '../../contract/requests.ts'
import type { ResultName } from '../../contract/results/results.ts'
import type { Action } from '../../merchants/access/may.ts'
import type { Channel } from '../../merchants/directory.ts'
import { cardNumberRules } from '../../merchants/settings.ts'
import { answeredBefore, requestKey } from '../../payments/idempotency.ts'
import type { PaymentRequest } from '../../payments/initial/pay.ts'
import { makeSearches, type Searches } from '../../payments/read/search.ts'
import { isId } from '../../platform/clock.ts'
import { refuseElsewhere } from '../../platform/database/elsewhere.ts'
import { type HttpAnswer, ndcOf, type Request, resultAnswer, saidAnswer } from '../answer.ts'
import {
  type Authenticate,
  authenticator,
  type CalledForm,
  type Caller,
  channelOf,
  type Meant,
  readCaller,
} from '../authenticate.ts'
import type { HttpParts } from '../parts.ts'
import { countUnderWay, type UnderWay } from '../underWay.ts'
import { withinRate } from './requestRate.ts'
import { limitReads, type Reads } from './statusReads.ts'

/** What the interface's requests share. */
export type Admission = {
  readonly parts: HttpParts
  readonly authenticate: Authenticate
  readonly reads: Reads
  readonly searches: Searches
  /** Requests of browsers, of which no token says whose they are. */
  readonly underWay: UnderWay
  readonly checks: Readonly<Record<Exclude<RequestName, 'checkoutPayment'>, FormCheck>>
}

/** Whose answers name a checkout: this is their ndc. */
export type IdentifiedForm = CalledForm & { readonly ndc?: string }
/** A GET whose caller and query are known. */
export type AdmittedRead = { readonly caller: Caller; readonly values: Values }

export const makeAdmission = (parts: HttpParts): Admission => ({
  parts,
  authenticate: withinRate(parts, authenticator(parts)),
  reads: limitReads(),
  searches: makeSearches(parts),
  underWay: countUnderWay(),
  checks: {
    payment: checker(parts, requests.payment),
    threeDSecure: checker(parts, requests.threeDSecure),
    followUp: checker(parts, requests.followUp),
    read: checker(parts, requests.read),
    query: checker(parts, requests.query),
    report: checker(parts, requests.report),
    reportDetail: checker(parts, requests.reportDetail),
    checkout: checker(parts, requests.checkout),
    checkoutUpdate: checker(parts, requests.checkoutUpdate),
    registration: checker(parts, requests.registration),
    registrationPayment: checker(parts, requests.registrationPayment),
  },
})

/** In a sandbox the log shows the names that no parameter has: most are typing errors. */
function checker(parts: HttpParts, kind: RequestKind): FormCheck {
  const check = formChecker(kind, parts.cardBrands)
  if (!parts.sandbox) return check
  const nearest = namesNear(kind)
  return (...given) => {
    const checked = check(...given)
    const names = nearest(checked.unknown)
    if (names.length > 0) parts.log.warn({ names }, 'unknown parameters were ignored')
    return checked
  }
}

/** Reads the body of a POST and finds the caller. */
export function identify(
  { parts, authenticate }: Admission,
  request: Request,
  { action = 'pay', ...meant }: Meant & { readonly action?: Action } = {},
): CalledForm | HttpAnswer | Promise<HttpAnswer> {
  const called = readCaller(parts, authenticate, request, action, meant)
  if (!('caller' in called)) return called
  const { form, caller } = called
  const inQuery = namesInQuery(request)
  if (inQuery.length > 0)
    return wrongForm(
      parts,
      request,
      { form, caller },
      'parametersInQuery',
      inQuery.map(name => ({ name, message: 'must be in the body of a POST, not in its URL' })),
    )
  return called
}

/** Judges the form of a POST by its channel, which costs what its sender likes. */
export const admit = (
  admission: Admission,
  request: Request,
  identified: IdentifiedForm,
  channel: Channel | undefined,
  judge: FormCheck,
): PaymentRequest | HttpAnswer | Promise<PaymentRequest | HttpAnswer> =>
  request.inTurn(() => judged(admission, request, identified, channel, judge))

function judged(
  { parts }: Admission,
  request: Request,
  identified: IdentifiedForm,
  channel: Channel | undefined,
  judge: FormCheck,
): PaymentRequest | HttpAnswer {
  const { form, caller } = identified
  if (!channel)
    return wrongForm(parts, request, identified, 'entityTooBroad', [
      { name: 'entityId', message: 'no rule of the merchant chooses a channel for this request' },
    ])
  const checked = judge(form, channel.settings.lenient, cardNumberRules(channel.settings))
  if (checked.errors.length > 0) return wrongForm(parts, request, identified, 'invalidParameter', checked.errors)
  if (checked.dropped.length > 0)
    parts.log.info({ entityId: channel.id, names: checked.dropped }, 'malformed descriptive parameters were dropped')
  if (checked.numbered.length > 0)
    parts.log.warn(
      { entityId: channel.id, names: checked.numbered },
      'card numbers, or what passes for them, or CVVs stood in texts',
    )
  const key = request.headers['idempotency-key']
  if (key !== undefined && !isKey(key)) {
    return wrongForm(parts, request, identified, 'invalidParameter', [
      { name: 'Idempotency-Key', message: 'must be 1 to 255 visible ASCII characters' },
    ])
  }
  const { values, known } = checked
  return {
    channel,
    values,
    known,
    ndc: identified.ndc ?? ndcOf(request, caller.entityId),
    publicUrl: request.publicUrl,
    tokenId: caller.token.id,
    ...(key !== undefined && { key: requestKey(parts, caller.entityId, channel.id, request.path, key, form) }),
  }
}

const isKey = (text: string): boolean => /^[\x21-\x7e]{1,255}$/.test(text)

/**
 * A refusal of what may have been carried out before, when its channel, its registration or the rules of its merchant were others: what is sent again gets the answer
 * of the first all the same. Whoever is told of a refusal would pay in another way, and twice.
 */
export async function unlessAnswered(
  admission: Admission,
  request: Request,
  called: CalledForm,
  refused: HttpAnswer,
): Promise<HttpAnswer> {
  const sent = request.headers['idempotency-key']
  if (sent === undefined || !isKey(sent)) return refused
  const { entityId, merchantId } = called.caller
  const key = requestKey(admission.parts, entityId, ruledChannel(admission, called)?.id, request.path, sent, called.form)
  const first = await answeredBefore(admission.parts, merchantId, key)
  return first ? saidAnswer(first) : refused
}

/** The channel that the request names, or that the merchant's rules choose. */
export const ruledChannel = ({ parts }: Admission, { form, caller }: CalledForm): Channel | undefined =>
  channelOf(parts, caller, peek(form, 'paymentBrand'), peek(form, 'currency'))

/** Reads the query of a GET and finds the caller. */
export function admitRead(
  { parts, authenticate }: Admission,
  request: Request,
  judge: FormCheck,
  action: Action = 'read',
  meant?: Meant,
): AdmittedRead | HttpAnswer | Promise<HttpAnswer> {
  const called = readCaller(parts, authenticate, request, action, meant)
  if (!('caller' in called)) return called
  const { form, caller } = called
  const { values, errors } = judge(form, caller.entity.kind === 'channel' && caller.entity.settings.lenient)
  if (errors.length > 0)
    return resultAnswer(parts, request, 400, 'invalidParameter', { entityId: caller.entityId, parameterErrors: errors })
  return { caller, values }
}

/** An answer to a bad request: all wrong parameters, and the type and brand that were asked for. */
function wrongForm(
  parts: HttpParts,
  request: Request,
  { form, caller, ndc }: IdentifiedForm,
  name: ResultName,
  parameterErrors: readonly ParameterError[],
): HttpAnswer {
  return resultAnswer(parts, request, 400, name, {
    entityId: caller.entityId,
    ndc,
    parameterErrors,
    more: askedFor(peek(form, 'paymentType'), peek(form, 'paymentBrand')),
  })
}

/** Names in the URL of a POST, each once. */
function namesInQuery({ query }: Request): string[] {
  if (query === '') return []
  const form = readForm(query)
  return form === 'tooManyParameters' ? ['?'] : [...new Set(form.pairs.map(([name]) => name))].slice(0, 20)
}

/** The type and the brand that were asked for, where an answer may repeat them. */
export function askedFor(paymentType: string | undefined, paymentBrand: string | undefined): Nested {
  const more = emptyNested()
  if (paymentType !== undefined && /^[A-Z]{2}(\.[A-Z]{2})?$/.test(paymentType)) more.paymentType = paymentType
  if (paymentBrand !== undefined && /^[A-Z0-9_]{1,32}$/i.test(paymentBrand) && mayBeRepeated(paymentBrand))
    more.paymentBrand = paymentBrand
  return more
}

/** However one payment is asked for, these are reads of it. */
export function tooManyReads(
  { parts, reads }: Admission,
  request: Request,
  { entityId, merchantId, entity, token }: Caller,
  id: string,
): HttpAnswer | undefined {
  const perMinute = entity.kind === 'channel' && isId(id) ? entity.settings.statusReadsPerMinute : 0
  const wait = reads(merchantId, id, perMinute, parts.clock.real())
  if (wait <= 0) return undefined
  const headers = { 'Retry-After': String(wait) }
  return resultAnswer(parts, request, 429, 'tooManyReads', { entityId, tokenId: token.id, more: { id }, headers })
}

/** What is not found is not there only where its merchant is served: whoever has not heard of a move would deny what the other cell has, and a shop would pay again. */
export async function notFound(
  { parts }: Admission,
  request: Request,
  { entityId, merchantId }: Caller,
  status: 400 | 404,
): Promise<HttpAnswer> {
  await refuseElsewhere(parts.database.work, merchantId)
  return resultAnswer(parts, request, status, 'transactionNotFound', { entityId })
}
