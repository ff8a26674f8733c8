// POST /payment/query: the query of the old XML interface, by which merchants pull receipts. It reads and does nothing else.

import { methodCodeOf } from '../../connectors/registry.ts'
import { peek } from '../../contract/form.ts'
import { type ResultName, results } from '../../contract/results/results.ts'
import type { FoundPayments } from '../../payments/read/search.ts'
import { leaf, listXml, transactionXml } from '../../payments/read/xmlRecord.ts'
import { isId } from '../../platform/clock.ts'
import type { HttpAnswer, Request } from '../answer.ts'
import { type Caller, isCaller, sentForm } from '../authenticate.ts'
import type { RequestFunction } from '../router.ts'
import type { Admission } from '../v1/admission.ts'
import { readXmlQuery, WrongXmlQuery, type XmlQuery } from './queryRequest.ts'

export const xmlQuery =
  (admission: Admission): RequestFunction =>
  async request => {
    const form = sentForm(request)
    if (form === 'tooManyParameters') return wrongXml(400, form)
    let query: XmlQuery
    try {
      query = await readXmlQuery(peek(form, 'load') ?? '')
    } catch (error) {
      if (!(error instanceof WrongXmlQuery)) throw error
      if (peek(form, 'load') !== undefined) return wrongXml(400, 'invalidParameter', error.message)
      // Whoever sends no query shows no credentials either.
      const stranger = await admission.authenticate(request, { pairs: [], broken: new Set() }, 'report')
      return isCaller(stranger) ? wrongXml(400, 'invalidParameter', error.message) : asXml(stranger)
    }
    const caller = await callerOf(admission, request, query)
    if (!isCaller(caller)) return asXml(caller)
    const found = await find(admission, caller, query)
    if (found === 'tooManySearches') return wrongXml(429, found)
    if (found === 'pageTooLarge') return wrongXml(400, 'invalidParameter', `more than ${query.most} are found: narrow the query`)
    return { status: 200, headers: xmlHeaders, body: foundXml(admission, found) }
  }

/** By the token of the header, or by the user of the query: that is the user id and password of older clients. */
function callerOf(admission: Admission, request: Request, { entityId, user }: XmlQuery) {
  const pairs: [string, string][] = [['entityId', entityId]]
  if (user) pairs.push(['authentication.userId', user.login], ['authentication.password', user.password])
  return admission.authenticate(request, { pairs, broken: new Set() }, 'report')
}

function find({ searches }: Admission, { token, entity, merchantId }: Caller, query: XmlQuery) {
  const { id, mode, types, merchantTransactionId, from, to, most } = query
  if (id !== undefined && !isId(id)) return { count: 0, async *payments() {} } satisfies FoundPayments
  return searches.all(
    token.id,
    {
      merchantId,
      mode,
      ...(entity.kind === 'channel' && { channelId: entity.id }),
      ...(id !== undefined && { id }),
      ...(types && { types }),
      ...(merchantTransactionId !== undefined && { merchantTransactionId }),
      ...(from !== undefined && { from }),
      ...(to !== undefined && { to }),
    },
    most,
  )
}

const xmlHeaders = { 'Content-Type': 'text/xml;charset=UTF-8', 'Cache-Control': 'private, no-cache, no-store' }

async function* foundXml({ parts }: Admission, found: FoundPayments): AsyncGenerator<string> {
  const [before, behind] = listXml(found.count)
  yield before
  for await (const payment of found.payments()) yield transactionXml(payment, methodCodeOf(payment.brand, parts))
  yield behind
}

function wrongXml(status: number, name: ResultName, more = results[name].description): HttpAnswer {
  const [before, behind] = listXml(0)
  const body = before + leaf('Error', more, { code: results[name].code }) + behind
  return { status, body, headers: { ...xmlHeaders, ...(status === 429 && { 'Retry-After': '5' }) }, result: name }
}

/** What authentication refuses, in the words of this interface. */
const asXml = ({ status, result, tokenId, headers }: HttpAnswer): HttpAnswer => {
  const refused = wrongXml(status, result!)
  return { ...refused, headers: { ...refused.headers, ...headers }, ...(tokenId && { tokenId }) }
}
