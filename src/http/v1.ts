// The request functions of the interface: a request goes in, an answer comes out. They know no sockets and no framework.

import { brandsOf } from '../connectors/index.ts'
import { type Check, type Form, formChecker, type ParameterError, peek, readForm } from '../contract/form.ts'
import { namesNear } from '../contract/nearest.ts'
import { emptyNested, type Nested } from '../contract/nested.ts'
import { pageSize } from '../contract/parameters/query.ts'
import { type RequestKind, requests } from '../contract/requests.ts'
import { catalogue } from '../contract/results/catalogue.ts'
import type { ResultName } from '../contract/results/results.ts'
import type { Gateway } from '../gateway.ts'
import type { Channel } from '../merchants/directory.ts'
import { cardNumberRules } from '../merchants/settings.ts'
import { chooseAuthentication } from '../payments/authenticate.ts'
import { followUp } from '../payments/backoffice.ts'
import type { Said } from '../payments/carryOut.ts'
import type { Refusal } from '../payments/choose.ts'
import { requestKey } from '../payments/idempotency.ts'
import { type PaymentRequest, pay } from '../payments/pay.ts'
import { currentRecord, givenRecord, readPayment, searchPage, withChains } from '../payments/status.ts'
import type { Search } from '../payments/store/read.ts'
import { type Answer, json, ndcOf, type Request, saidAnswer, told } from './answer.ts'
import { authenticator, type Caller, channelOf, isCaller } from './authenticate.ts'
import { countFailures } from './failures.ts'
import { limitReads } from './reads.ts'

export type RequestFunction = (request: Request, id: string) => Answer | Promise<Answer>
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

export function v1(gateway: Gateway): V1 {
  const authenticate = authenticator(gateway, countFailures())
  const reads = limitReads()
  const check = {
    payment: checker(requests.payment),
    threeDSecure: checker(requests.threeDSecure),
    backoffice: checker(requests.backoffice),
    read: checker(requests.read),
    query: checker(requests.query),
  }

  /** In a sandbox the log shows the names that no parameter has: most are typing errors. */
  function checker(kind: RequestKind): Check {
    const check = formChecker(kind, gateway.cardBrands)
    if (!gateway.sandbox) return check
    const nearest = namesNear(kind)
    return (...given) => {
      const checked = check(...given)
      const names = nearest(checked.unknown)
      if (names.length > 0) gateway.log.warn({ names }, 'unknown parameters were ignored')
      return checked
    }
  }

  /** Reads the body of a POST and finds the caller. */
  function identify(request: Request): { form: Form; caller: Caller } | Answer {
    const form = readForm(request.body, request.charset)
    if (form === 'tooManyParameters') return told(gateway, request, 400, form)
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
    judge: Check,
  ): PaymentRequest | Answer {
    if (!channel)
      return wrong(request, form, caller, 'entityTooBroad', [
        { name: 'entityId', message: 'no rule of the merchant chooses a channel for this request' },
      ])
    const checked = judge(form, channel.settings.lenient, cardNumberRules(channel.settings))
    if (checked.errors.length > 0) return wrong(request, form, caller, 'invalidParameter', checked.errors)
    if (checked.dropped.length > 0)
      gateway.log.info({ entityId: channel.id, names: checked.dropped }, 'malformed descriptive parameters were dropped')
    if (checked.numbered.length > 0)
      gateway.log.warn({ entityId: channel.id, names: checked.numbered }, 'card numbers, or what passes for them, stood in texts')
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
      ...(key !== undefined && { key: requestKey(gateway, request.path, key, form) }),
    }
  }

  /** The channel that the request names, or that the merchant's rules choose. */
  const ruledChannel = ({ form, caller }: { form: Form; caller: Caller }): Channel | undefined =>
    channelOf(gateway, caller, peek(form, 'paymentBrand'), peek(form, 'currency'))

  /** A merchant's capture, refund or reversal goes to the channel of its payment: a reversal has nothing that a rule could go by. */
  async function channelOfReference({ entity, merchantId }: Caller, id: string): Promise<Channel | undefined> {
    if (entity.kind === 'channel') return undefined
    const payment = await readPayment(gateway, merchantId, id)
    const channel = payment && gateway.directory.entity(payment.channelId)
    return channel?.kind === 'channel' ? channel : undefined
  }

  /** An answer to a bad request: all wrong parameters, and the type and brand that were asked for. */
  function wrong(
    request: Request,
    form: Form,
    { entityId }: Pick<Caller, 'entityId'>,
    name: ResultName,
    parameterErrors: readonly ParameterError[],
  ): Answer {
    return told(gateway, request, 400, name, {
      entityId,
      parameterErrors,
      more: asked(peek(form, 'paymentType'), peek(form, 'paymentBrand')),
    })
  }

  function answerOf(request: Request, { channel, values }: PaymentRequest, said: Said | Refusal): Answer {
    gateway.count.payment('refused' in said ? 'refused' : said.outcome)
    if (!('refused' in said)) return saidAnswer(said)
    return told(gateway, request, 400, said.refused, {
      entityId: channel.id,
      more: asked(values.get('paymentType'), values.get('paymentBrand')),
      ...(said.parameterErrors && { parameterErrors: said.parameterErrors }),
    })
  }

  /** Reads the query of a GET and finds the caller. */
  function admitRead(request: Request, judge: Check): { caller: Caller; values: ReadonlyMap<string, string> } | Answer {
    const form = readForm(request.query)
    if (form === 'tooManyParameters') return told(gateway, request, 400, form)
    const caller = authenticate(request, form)
    if (!isCaller(caller)) return caller
    const { values, errors } = judge(form, caller.entity.kind === 'channel' && caller.entity.settings.lenient)
    if (errors.length > 0)
      return told(gateway, request, 400, 'invalidParameter', { entityId: caller.entityId, parameterErrors: errors })
    return { caller, values }
  }

  /** A list as /v1/query answers it. */
  async function listByTransaction(request: Request): Promise<Answer> {
    const admitted = admitRead(request, check.query)
    if (!('caller' in admitted)) return admitted
    const {
      caller: { entityId, merchantId },
      values,
    } = admitted
    const merchantTransactionId = values.get('merchantTransactionId')
    if (merchantTransactionId === undefined) {
      return told(gateway, request, 400, 'invalidParameter', {
        entityId,
        parameterErrors: [{ name: 'merchantTransactionId', message: 'is required' }],
      })
    }
    const { records } = await searchPage(gateway, { merchantId, merchantTransactionId, ...filterOf(values) }, 500, 1, false)
    if (records.length === 0) return told(gateway, request, 400, 'transactionNotFound', { entityId })
    return told(gateway, request, 200, 'requestSucceeded', { entityId, more: { payments: [...records] } })
  }

  return {
    async postPayment(request) {
      const identified = identify(request)
      if (!('caller' in identified)) return identified
      const admitted = admit(request, identified, ruledChannel(identified), check.payment)
      if (!('channel' in admitted)) return admitted
      return answerOf(request, admitted, await pay(gateway, admitted))
    },

    async postFollowUp(request, referenceId) {
      const identified = identify(request)
      if (!('caller' in identified)) return identified
      // An id that cannot be one of ours names no payment.
      const id = isId(referenceId) ? referenceId : '0'.repeat(32)
      const channel = (await channelOfReference(identified.caller, id)) ?? ruledChannel(identified)
      const admitted = admit(request, identified, channel, check.backoffice)
      if (!('channel' in admitted)) return admitted
      const said = await followUp(gateway, { ...admitted, referenceId: id })
      if ('unknown' in said) {
        const { channel, values } = admitted
        return told(gateway, request, 404, said.unknown, {
          entityId: channel.id,
          more: asked(values.get('paymentType'), values.get('paymentBrand')),
        })
      }
      return answerOf(request, admitted, said)
    },

    async getPayment(request, id) {
      const admitted = admitRead(request, check.read)
      if (!('caller' in admitted)) return admitted
      const { entityId, merchantId, entity } = admitted.caller
      const perMinute = entity.kind === 'channel' && isId(id) ? entity.settings.statusReadsPerMinute : 0
      const wait = reads(`${merchantId} ${id}`, perMinute, gateway.clock.real())
      if (wait > 0)
        return told(gateway, request, 429, 'tooManyReads', { entityId, more: { id }, headers: { 'Retry-After': String(wait) } })
      const payment = isId(id) ? await readPayment(gateway, merchantId, id) : undefined
      return payment
        ? json(200, currentRecord(gateway, payment))
        : told(gateway, request, 404, 'transactionNotFound', { entityId })
    },

    async postThreeDSecure(request) {
      const identified = identify(request)
      if (!('caller' in identified)) return identified
      const admitted = admit(request, identified, ruledChannel(identified), check.threeDSecure)
      if (!('channel' in admitted)) return admitted
      return answerOf(request, admitted, await pay(gateway, admitted, chooseAuthentication))
    },

    async getThreeDSecure(request, id) {
      const admitted = admitRead(request, check.read)
      if (!('caller' in admitted)) return admitted
      const { entityId, merchantId } = admitted.caller
      const found = isId(id) ? await readPayment(gateway, merchantId, id) : undefined
      return found?.type === '3D'
        ? json(200, currentRecord(gateway, found))
        : told(gateway, request, 404, 'transactionNotFound', { entityId })
    },

    async queryOne(request, id) {
      const admitted = admitRead(request, check.query)
      if (!('caller' in admitted)) return admitted
      const { entityId, merchantId } = admitted.caller
      const payment = isId(id) ? await readPayment(gateway, merchantId, id) : undefined
      return payment
        ? json(200, currentRecord(gateway, payment))
        : told(gateway, request, 400, 'transactionNotFound', { entityId })
    },

    queryList: listByTransaction,

    async v3One(request, id) {
      const admitted = admitRead(request, check.query)
      if (!('caller' in admitted)) return admitted
      const {
        caller: { entityId, merchantId },
        values,
      } = admitted
      const payment = isId(id) ? await readPayment(gateway, merchantId, id) : undefined
      if (!payment) return told(gateway, request, 400, 'transactionNotFound', { entityId })
      const { types, brands } = filterOf(values)
      const all = values.get('includeLinkedTransactions') === 'true' ? await withChains(gateway, [payment]) : [payment]
      const records = all
        .filter(({ type, brand = '' }) => (types?.includes(type) ?? true) && (brands?.includes(brand) ?? true))
        .map(one => givenRecord(gateway, one))
      if (records.length === 0) return told(gateway, request, 400, 'transactionNotFound', { entityId })
      return told(gateway, request, 200, 'requestSucceeded', { entityId, more: { records } })
    },

    async v3List(request) {
      const admitted = admitRead(request, check.query)
      if (!('caller' in admitted)) return admitted
      const { caller, values } = admitted
      const { entityId } = caller
      const search = searchOf(caller, values)
      if ('errors' in search) return told(gateway, request, 400, 'invalidParameter', { entityId, parameterErrors: search.errors })
      const linked = values.get('includeLinkedTransactions') === 'true'
      const { records, pages } = await searchPage(
        gateway,
        { ...search, ...filterOf(values) },
        Number(values.get('limit') ?? pageSize),
        Number(values.get('pageNo') ?? 1),
        linked,
      )
      if (records.length === 0) return told(gateway, request, 400, 'transactionNotFound', { entityId })
      return told(gateway, request, 200, 'requestSucceeded', { entityId, more: { records: [...records], pages: String(pages) } })
    },

    resultCodes(request) {
      const footer = told(gateway, request, 200, 'requestSucceeded', { headers: { 'Access-Control-Allow-Origin': '*' } })
      return { ...footer, before: codes, body: footer.body.slice(1) }
    },
  }

  /** What a search leaves out: by the types and the methods that it names. */
  function filterOf(values: ReadonlyMap<string, string>): Pick<Search, 'types' | 'brands'> {
    const types = listOf(values.get('paymentTypes'))
    const methods = listOf(values.get('paymentMethods'))
    return {
      ...(types && { types: types.flatMap(type => type.split('.')) }), // PA.CP made a PA and a CP
      ...(methods && { brands: brandsOf(methods, gateway.methods, gateway.cardBrands) }),
    }
  }
}

/** The same bytes for all who ask: whoever asks often and reads slowly holds no copies. */
const codes = Buffer.from(
  `{"resultCodes":${JSON.stringify(Object.values(catalogue).map(([code, description]) => ({ code, description })))},`,
)

const isId = (id: string): boolean => /^[0-9a-f]{32}$/.test(id)

const listOf = (value: string | undefined): string[] | undefined => value?.split(',')

/** Names in the URL of a POST, each once. */
function namesInQuery({ query }: Request): string[] {
  if (query === '') return []
  const form = readForm(query)
  return form === 'tooManyParameters' ? ['?'] : [...new Set(form.pairs.map(([name]) => name))].slice(0, 20)
}

function asked(paymentType: string | undefined, paymentBrand: string | undefined): Nested {
  const more = emptyNested()
  if (paymentType !== undefined && /^[A-Z]{2}(\.[A-Z]{2})?$/.test(paymentType)) more.paymentType = paymentType
  if (paymentBrand !== undefined && /^[A-Z0-9_]{1,32}$/i.test(paymentBrand) && !/\d{8}/.test(paymentBrand))
    more.paymentBrand = paymentBrand
  return more
}

/** A search by merchantTransactionId, by time, or both. Bare days are whole days in UTC (decisions, 31). */
function searchOf({ merchantId, entity }: Caller, values: ReadonlyMap<string, string>): Search | { errors: ParameterError[] } {
  const [from, to, merchantTransactionId] = [values.get('date.from'), values.get('date.to'), values.get('merchantTransactionId')]
  const errors: ParameterError[] = []
  if (from === undefined && to !== undefined) errors.push({ name: 'date.from', message: 'is required together with date.to' })
  if (to === undefined && from !== undefined) errors.push({ name: 'date.to', message: 'is required together with date.from' })
  if (from === undefined && to === undefined && merchantTransactionId === undefined) {
    errors.push(
      { name: 'date.from', message: 'is required without merchantTransactionId' },
      { name: 'date.to', message: 'is required without merchantTransactionId' },
    )
  }
  const begin = from === undefined ? undefined : Date.parse(`${from.length === 10 ? `${from} 00:00:00` : from}Z`)
  const end = to === undefined ? undefined : Date.parse(`${to.length === 10 ? `${to} 23:59:59` : to}Z`) + 1000
  if (begin !== undefined && end !== undefined && begin >= end)
    errors.push({ name: 'date.from', message: 'must not be after date.to' })
  if (errors.length > 0) return { errors }
  return {
    merchantId,
    ...(entity.kind === 'channel' && begin !== undefined && { channelId: entity.id }),
    ...(merchantTransactionId !== undefined && { merchantTransactionId }),
    ...(begin !== undefined && { from: begin }),
    ...(end !== undefined && { to: end }),
  }
}
