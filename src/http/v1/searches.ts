// The request functions that find payments: by merchantTransactionId, by time, by one id with its chain.

import { brandsOf } from '../../connectors/registry.ts'
import type { ParameterError } from '../../contract/formCheck.ts'
import { limits } from '../../contract/limits.ts'
import { pageSize } from '../../contract/parameters/query.ts'
import type { Values } from '../../contract/parameters/table.ts'
import type { SearchPage, SearchRefusal } from '../../payments/read/search.ts'
import { givenText, readPayment } from '../../payments/read/status.ts'
import type { Search } from '../../payments/store/search.ts'
import { isId } from '../../platform/clock.ts'
import { aged, type HttpAnswer, type Request, resultAnswer } from '../answer.ts'
import { type Caller, keptTo } from '../authenticate.ts'
import type { HttpParts } from '../parts.ts'
import type { RequestFunction } from '../router.ts'
import { type Admission, admitRead, notFound, tooManyReads } from './admission.ts'

/** Records that go out in one piece, with their length; more are streamed. */
const onePieceBytes = 256 * 1024
/** Records of one merchantTransactionId. */
const listMost = 500

export const queryList =
  (admission: Admission): RequestFunction =>
  async request => {
    const admitted = admitRead(admission, request, admission.checks.query, 'search')
    if (!('caller' in admitted)) return admitted
    const { token, entityId, merchantId } = admitted.caller
    const merchantTransactionId = admitted.values.get('merchantTransactionId')
    if (merchantTransactionId === undefined)
      return wrongQuery(admission.parts, request, entityId, { name: 'merchantTransactionId', message: 'is required' })
    const search = {
      merchantId,
      ...keptSearch(admitted.caller),
      merchantTransactionId,
      ...filterOf(admission.parts, admitted.values),
    }
    return pageAnswer(
      admission,
      request,
      admitted.caller,
      'payments',
      await admission.searches.page(token.id, search, listMost, 1, false),
    )
  }

export const v3One =
  (admission: Admission): RequestFunction =>
  async (request, { id = '' }) => {
    const admitted = admitRead(admission, request, admission.checks.query, 'search')
    if (!('caller' in admitted)) return admitted
    const refused = tooManyReads(admission, request, admitted.caller, id)
    if (refused) return refused
    const { token, entityId, merchantId } = admitted.caller
    const filter = filterOf(admission.parts, admitted.values)
    const payment = isId(id) ? await readPayment(admission.parts, merchantId, id, keptTo(admitted.caller)) : undefined
    if (!payment) return notFound(admission, request, admitted.caller, 400)
    if (admitted.values.get('includeLinkedTransactions') === 'true') {
      const chain = await admission.searches.chain(
        token.id,
        { merchantId, ...keptSearch(admitted.caller), ...filter },
        payment.rootId ?? id,
      )
      return pageAnswer(admission, request, admitted.caller, 'records', chain)
    }
    const { types, brands } = filter
    if (!(types?.includes(payment.type) ?? true) || !(brands?.includes(payment.brand ?? '') ?? true))
      return resultAnswer(admission.parts, request, 400, 'transactionNotFound', { entityId })
    const { body } = resultAnswer(admission.parts, request, 200, 'requestSucceeded', { entityId })
    return { status: 200, body: `{"records":[${givenText(admission.parts, payment)}],${body.slice(1)}` }
  }

export const v3List =
  (admission: Admission): RequestFunction =>
  async request => {
    const admitted = admitRead(admission, request, admission.checks.query, 'search')
    if (!('caller' in admitted)) return admitted
    const { caller, values } = admitted
    const { token, entityId } = caller
    const asked = searchOf(caller, values)
    if ('errors' in asked) return wrongQuery(admission.parts, request, entityId, ...asked.errors)
    const [limit, pageNo] = [Number(values.get('limit') ?? pageSize), Number(values.get('pageNo') ?? 1)]
    if ((pageNo - 1) * limit >= limits.searchReach)
      return wrongQuery(admission.parts, request, entityId, {
        name: 'pageNo',
        message: `leads beyond the first ${limits.searchReach} records of a search: narrow date.from and date.to`,
      })
    const search = { ...asked, ...filterOf(admission.parts, values) }
    const page = await admission.searches.page(
      token.id,
      search,
      limit,
      pageNo,
      values.get('includeLinkedTransactions') === 'true',
    )
    const pages = typeof page === 'string' || page.count === 0 ? 1 : await admission.searches.pages(token.id, search, limit)
    const answer = await pageAnswer(admission, request, caller, 'records', page, pages)
    return search.merchantTransactionId === undefined ? aged(admission.parts, answer) : answer
  }

const wrongQuery = (parts: HttpParts, request: Request, entityId: string, ...parameterErrors: ParameterError[]): HttpAnswer =>
  resultAnswer(parts, request, 400, 'invalidParameter', { entityId, parameterErrors })

/** The records of a page under their name, and the rest of the answer behind them. */
async function pageAnswer(
  admission: Admission,
  request: Request,
  caller: Caller,
  name: 'payments' | 'records',
  page: SearchPage | SearchRefusal,
  pages?: number | SearchRefusal,
): Promise<HttpAnswer> {
  const { parts } = admission
  const { entityId, token } = caller
  if (page === 'pageTooLarge')
    return resultAnswer(parts, request, 400, page, {
      entityId,
      parameterErrors: [{ name: 'limit', message: 'must be smaller here' }],
    })
  if (page === 'tooManySearches' || typeof pages === 'string')
    return resultAnswer(parts, request, 429, 'tooManySearches', {
      entityId,
      tokenId: token.id,
      headers: { 'Retry-After': '5' },
    })
  if (page.count === 0) return notFound(admission, request, caller, 400)
  const more = pages === undefined ? {} : { pages: String(pages) }
  const { body } = resultAnswer(parts, request, 200, 'requestSucceeded', { entityId, more })
  const records = inList(name, page.texts(), body)
  if (page.bytes > onePieceBytes) return { status: 200, body: records }
  let text = ''
  for await (const part of records) text += part
  return { status: 200, body: text }
}

/** What a search leaves out: by the types and the methods that it names. */
function filterOf(parts: HttpParts, values: Values): Pick<Search, 'types' | 'brands'> {
  const types = listOf(values.get('paymentTypes'))
  const methods = listOf(values.get('paymentMethods'))
  return {
    ...(types && { types: types.flatMap(type => type.split('.')) }), // PA.CP made a PA and a CP
    ...(methods && { brands: brandsOf(methods, parts.methods, parts.cardBrands) }),
  }
}

/** `{"records":[…],` and the rest of an answer whose brace is opened by it. */
export async function* inList(name: string, texts: AsyncIterable<string>, body: string): AsyncGenerator<string> {
  yield `{"${name}":[`
  yield* texts
  yield `],${body.slice(1)}`
}

const listOf = (value: string | undefined): string[] | undefined => value?.split(',')

/** A caller that is kept to its channel finds nothing of others, linked or not. */
function keptSearch(caller: Caller): Pick<Search, 'channelId' | 'keptTo'> {
  const channelId = keptTo(caller)
  return channelId === undefined ? {} : { channelId, keptTo: channelId }
}

/** A search by merchantTransactionId, by time, or both. Bare days are whole days in UTC (decisions, 31). */
function searchOf(caller: Caller, values: Values): Search | { errors: ParameterError[] } {
  const { merchantId, entity } = caller
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
    ...keptSearch(caller),
    ...(merchantTransactionId !== undefined && { merchantTransactionId }),
    ...(begin !== undefined && { from: begin }),
    ...(end !== undefined && { to: end }),
  }
}
