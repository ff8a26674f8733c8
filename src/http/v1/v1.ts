// The request functions of the interface: a request goes in, an answer comes out. They know no sockets and no framework.

import { mayBeRepeated } from '../../contract/cardNumbers.ts'
import { type Form, peek, readForm } from '../../contract/form.ts'
import { type FormCheck, formChecker, type ParameterError } from '../../contract/formCheck.ts'
import { namesNear } from '../../contract/nearest.ts'
import { emptyNested, type Nested } from '../../contract/nested.ts'
import type { Values } from '../../contract/parameters/table.ts'
import { type RequestKind, requests } from '../../contract/requests.ts'
import { catalogue } from '../../contract/results/catalogue.ts'
import type { ResultName } from '../../contract/results/results.ts'
import type { Channel } from '../../merchants/directory.ts'
import { cardNumberRules } from '../../merchants/settings.ts'
import type { PaymentResponse } from '../../payments/execute.ts'
import { followUp } from '../../payments/followUps/followUp.ts'
import { requestKey } from '../../payments/idempotency.ts'
import { chooseAuthentication } from '../../payments/initial/authenticate.ts'
import type { Refusal } from '../../payments/initial/choose.ts'
import { type PaymentRequest, pay } from '../../payments/initial/pay.ts'
import { currentRecord, readPayment } from '../../payments/read/status.ts'
import { type HttpAnswer, isId, json, ndcOf, type Request, resultAnswer, saidAnswer } from '../answer.ts'
import { authenticator, type Caller, channelOf, isCaller } from '../authenticate.ts'
import type { HttpParts } from '../parts.ts'
import type { RequestFunction } from '../router.ts'
import { withinRate } from './rates.ts'
import { limitReads } from './reads.ts'
import { searches } from './searches.ts'

export type V1 = Readonly<
  Record<
    | 'postPayment'
    | 'postFollowUp'
    | 'getPayment'
    | 'postThreeDSecure'
    | 'getThreeDSecure'
    | 'queryOne'
    | 'queryList'
    | 'v3One'
    | 'v3List'
    | 'resultCodes',
    RequestFunction
  >
>

/** A GET whose caller and query are known. */
export type AdmittedRead = { readonly caller: Caller; readonly values: Values }

export function v1(parts: HttpParts): V1 {
  const authenticate = withinRate(parts, authenticator(parts))
  const reads = limitReads()
  const check = {
    payment: checker(requests.payment),
    threeDSecure: checker(requests.threeDSecure),
    backoffice: checker(requests.backoffice),
    read: checker(requests.read),
    query: checker(requests.query),
  }

  /** In a sandbox the log shows the names that no parameter has: most are typing errors. */
  function checker(kind: RequestKind): FormCheck {
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
  function identify(request: Request): { form: Form; caller: Caller } | HttpAnswer | Promise<HttpAnswer> {
    const form = readForm(request.body, request.charset)
    if (form === 'tooManyParameters') return resultAnswer(parts, request, 400, form)
    const caller = authenticate(request, form)
    if (!isCaller(caller)) return caller
    const inQuery = namesInQuery(request)
    if (inQuery.length > 0)
      return wrong(
        request,
        form,
        caller,
        'parametersInQuery',
        inQuery.map(name => ({ name, message: 'must be in the body of a POST, not in its URL' })),
      )
    return { form, caller }
  }

  /** Judges the form of a POST by its channel. */
  function admit(
    request: Request,
    { form, caller }: { form: Form; caller: Caller },
    channel: Channel | undefined,
    judge: FormCheck,
  ): PaymentRequest | HttpAnswer {
    if (!channel)
      return wrong(request, form, caller, 'entityTooBroad', [
        { name: 'entityId', message: 'no rule of the merchant chooses a channel for this request' },
      ])
    const checked = judge(form, channel.settings.lenient, cardNumberRules(channel.settings))
    if (checked.errors.length > 0) return wrong(request, form, caller, 'invalidParameter', checked.errors)
    if (checked.dropped.length > 0)
      parts.log.info({ entityId: channel.id, names: checked.dropped }, 'malformed descriptive parameters were dropped')
    if (checked.numbered.length > 0)
      parts.log.warn({ entityId: channel.id, names: checked.numbered }, 'card numbers, or what passes for them, stood in texts')
    const key = request.headers['idempotency-key']
    if (key !== undefined && !/^[\x21-\x7e]{1,255}$/.test(key)) {
      return wrong(request, form, caller, 'invalidParameter', [
        { name: 'Idempotency-Key', message: 'must be 1 to 255 visible ASCII characters' },
      ])
    }
    const { values, known } = checked
    return {
      channel,
      values,
      known,
      ndc: ndcOf(request, caller.entityId),
      tokenId: caller.token.id,
      ...(key !== undefined && { key: requestKey(parts, channel, request.path, key, form) }),
    }
  }

  /** The channel that the request names, or that the merchant's rules choose. */
  const ruledChannel = ({ form, caller }: { form: Form; caller: Caller }): Channel | undefined =>
    channelOf(parts, caller, peek(form, 'paymentBrand'), peek(form, 'currency'))

  /** A merchant's capture, refund or reversal goes to the channel of its payment: a reversal has nothing that a rule could go by. */
  async function channelOfReference({ entity, merchantId }: Caller, id: string): Promise<Channel | undefined> {
    if (entity.kind === 'channel') return undefined
    const payment = await readPayment(parts, merchantId, id)
    const channel = payment && parts.directory.entity(payment.channelId)
    return channel?.kind === 'channel' ? channel : undefined
  }

  /** An answer to a bad request: all wrong parameters, and the type and brand that were asked for. */
  function wrong(
    request: Request,
    form: Form,
    { entityId }: Pick<Caller, 'entityId'>,
    name: ResultName,
    parameterErrors: readonly ParameterError[],
  ): HttpAnswer {
    return resultAnswer(parts, request, 400, name, {
      entityId,
      parameterErrors,
      more: asked(peek(form, 'paymentType'), peek(form, 'paymentBrand')),
    })
  }

  function answerOf(request: Request, { channel, values }: PaymentRequest, said: PaymentResponse | Refusal): HttpAnswer {
    parts.count.payment('refused' in said ? 'refused' : said.outcome)
    if (!('refused' in said)) return saidAnswer(said)
    return resultAnswer(parts, request, 400, said.refused, {
      entityId: channel.id,
      more: asked(values.get('paymentType'), values.get('paymentBrand')),
      ...(said.parameterErrors && { parameterErrors: said.parameterErrors }),
    })
  }

  /** Reads the query of a GET and finds the caller. */
  function admitRead(request: Request, judge: FormCheck): AdmittedRead | HttpAnswer | Promise<HttpAnswer> {
    const form = readForm(request.query)
    if (form === 'tooManyParameters') return resultAnswer(parts, request, 400, form)
    const caller = authenticate(request, form)
    if (!isCaller(caller)) return caller
    const { values, errors } = judge(form, caller.entity.kind === 'channel' && caller.entity.settings.lenient)
    if (errors.length > 0)
      return resultAnswer(parts, request, 400, 'invalidParameter', { entityId: caller.entityId, parameterErrors: errors })
    return { caller, values }
  }

  return {
    async postPayment(request) {
      const identified = identify(request)
      if (!('caller' in identified)) return identified
      const admitted = admit(request, identified, ruledChannel(identified), check.payment)
      if (!('channel' in admitted)) return admitted
      return answerOf(request, admitted, await pay(parts, admitted))
    },

    async postFollowUp(request, { id: referenceId = '' }) {
      const identified = identify(request)
      if (!('caller' in identified)) return identified
      // An id that cannot be one of ours names no payment.
      const id = isId(referenceId) ? referenceId : '0'.repeat(32)
      const channel = (await channelOfReference(identified.caller, id)) ?? ruledChannel(identified)
      const admitted = admit(request, identified, channel, check.backoffice)
      if (!('channel' in admitted)) return admitted
      const said = await followUp(parts, { ...admitted, referenceId: id })
      if ('unknown' in said) {
        const { channel, values } = admitted
        return resultAnswer(parts, request, 404, said.unknown, {
          entityId: channel.id,
          more: asked(values.get('paymentType'), values.get('paymentBrand')),
        })
      }
      return answerOf(request, admitted, said)
    },

    async getPayment(request, { id = '' }) {
      const admitted = admitRead(request, check.read)
      if (!('caller' in admitted)) return admitted
      const { entityId, merchantId, entity, token } = admitted.caller
      const perMinute = entity.kind === 'channel' && isId(id) ? entity.settings.statusReadsPerMinute : 0
      const wait = reads(`${merchantId} ${id}`, perMinute, parts.clock.real())
      if (wait > 0)
        return resultAnswer(parts, request, 429, 'tooManyReads', {
          entityId,
          tokenId: token.id,
          more: { id },
          headers: { 'Retry-After': String(wait) },
        })
      const payment = isId(id) ? await readPayment(parts, merchantId, id) : undefined
      return payment
        ? json(200, currentRecord(parts, payment))
        : resultAnswer(parts, request, 404, 'transactionNotFound', { entityId })
    },

    async postThreeDSecure(request) {
      const identified = identify(request)
      if (!('caller' in identified)) return identified
      const admitted = admit(request, identified, ruledChannel(identified), check.threeDSecure)
      if (!('channel' in admitted)) return admitted
      return answerOf(request, admitted, await pay(parts, admitted, chooseAuthentication))
    },

    async getThreeDSecure(request, { id = '' }) {
      const admitted = admitRead(request, check.read)
      if (!('caller' in admitted)) return admitted
      const { entityId, merchantId } = admitted.caller
      const found = isId(id) ? await readPayment(parts, merchantId, id) : undefined
      return found?.type === '3D'
        ? json(200, currentRecord(parts, found))
        : resultAnswer(parts, request, 404, 'transactionNotFound', { entityId })
    },

    async queryOne(request, { id = '' }) {
      const admitted = admitRead(request, check.query)
      if (!('caller' in admitted)) return admitted
      const { entityId, merchantId } = admitted.caller
      const payment = isId(id) ? await readPayment(parts, merchantId, id) : undefined
      return payment
        ? json(200, currentRecord(parts, payment))
        : resultAnswer(parts, request, 400, 'transactionNotFound', { entityId })
    },

    ...searches(parts, request => admitRead(request, check.query)),

    resultCodes(request) {
      const footer = resultAnswer(parts, request, 200, 'requestSucceeded')
      return { ...footer, before: codes, body: footer.body.slice(1) }
    },
  }
}

/** The same bytes for all who ask: whoever asks often and reads slowly holds no copies. */
const codes = Buffer.from(
  `{"resultCodes":${JSON.stringify(Object.values(catalogue).map(([code, description]) => ({ code, description })))},`,
)

/** Names in the URL of a POST, each once. */
function namesInQuery({ query }: Request): string[] {
  if (query === '') return []
  const form = readForm(query)
  return form === 'tooManyParameters' ? ['?'] : [...new Set(form.pairs.map(([name]) => name))].slice(0, 20)
}

function asked(paymentType: string | undefined, paymentBrand: string | undefined): Nested {
  const more = emptyNested()
  if (paymentType !== undefined && /^[A-Z]{2}(\.[A-Z]{2})?$/.test(paymentType)) more.paymentType = paymentType
  if (paymentBrand !== undefined && /^[A-Z0-9_]{1,32}$/i.test(paymentBrand) && mayBeRepeated(paymentBrand))
    more.paymentBrand = paymentBrand
  return more
}
