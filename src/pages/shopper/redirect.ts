// The addresses of a payment whose shopper left: the page that sends on, the returns, the hidden frame, and notices from server to server.
// The pages know no method; what a return means is the connector's to say. Nothing here decides about money.

import { Buffer } from 'node:buffer'
import { timingSafeEqual } from 'node:crypto'
import type { Arrival, Hop, Structures } from '../../connectors/connector.ts'
import { type Charset, readForm } from '../../contract/form.ts'
import { limits } from '../../contract/limits.ts'
import { results } from '../../contract/results/results.ts'
import { shopperAdvice } from '../../contract/results/shopperAdvice.ts'
import { type HttpAnswer, type Request, redirectAnswer } from '../../http/answer.ts'
import { cookieOf, setCookie } from '../../http/cookies.ts'
import { noteFailure } from '../../http/failure.ts'
import type { RequestFunction } from '../../http/router.ts'
import { isHeldForBrowser } from '../../http/underWay.ts'
import { type Shop, shopOf } from '../../merchants/shop.ts'
import type { PaymentState } from '../../payments/payment.ts'
import { takeLateNotice } from '../../payments/redirects/late.ts'
import { type RedirectState, redirectState, resume, settledState, takeUp } from '../../payments/redirects/resume.ts'
import { bindSession, findRedirect, markContinuation, type RedirectRow } from '../../payments/redirects/store.ts'
import { cookieName, hashesOf, hashOf, readToken, type TokenKind } from '../../payments/redirects/tokens.ts'
import { findPayment, storedJson } from '../../payments/store/read.ts'
import { isPassing } from '../../platform/database/elsewhere.ts'
import type { LogFields } from '../../platform/log.ts'
import { plainAddress } from '../../platform/network.ts'
import { type Page, renderPage } from '../html.ts'
import { chooseLanguage, type Language } from '../languages/languages.ts'
import type { PageParts } from '../parts.ts'
import * as views from './views.ts'

/** How long a shopper's request waits for a result before a page says so. */
const patienceSeconds = 12
/** A challenge's browser may be a little faster than its result. */
const resultWithinSeconds = 2
/** How long a server waits that tells again what it has told already, while the payment goes on. */
const acknowledgedWithinSeconds = 3
/** From pressing pay until a browser is here that goes on by itself: a connector may take most of it. */
const atOnceSeconds = 120
/** So many of those may wait, and so many for one payment; each keeps what it sent. */
const repeatersMost = { atAll: 32, forOne: 4 }

type RedirectPayment = { readonly merchantId: string; readonly token: string; readonly redirected: RedirectRow }

export function redirectPages(
  parts: PageParts,
): Readonly<Record<'page' | 'back' | 'cancel' | 'method' | 'methodDone' | 'notice', RequestFunction>> {
  const tell = tellEnds(parts)
  return {
    page: page(parts),
    back: comeBack(parts, false),
    cancel: comeBack(parts, true),

    method: guarded(parts, async (request, { merchantId, redirected }) => {
      const state = await redirectState(parts, merchantId, redirected.paymentId)
      const method = state.kind === 'step' && state.held.hop.kind === 'browser' ? state.held.hop.method : undefined
      return render(
        parts,
        200,
        method
          ? views.framePage({ ...method, url: hereOf(parts, method.url, request) }, languageOf(request))
          : views.frameDonePage(languageOf(request)),
      )
    }),

    methodDone: guarded(parts, async (request, { merchantId, redirected }) => {
      await markContinuation(parts.database.work, merchantId, redirected.paymentId, 'methodDone')
      return render(parts, 200, views.frameDonePage(languageOf(request)))
    }),

    notice: (request, { token = '' }) => takeNotice(parts, request, token, tell),
  }
}

/** The other side's server tells of a payment. */
async function takeNotice(parts: PageParts, request: Request, token: string, tell: TellEnd): Promise<HttpAnswer> {
  const found = await find(parts, 'notice', token)
  const text = (status: number, answer: string, contentType: string): HttpAnswer => ({
    status,
    body: answer,
    headers: { 'Content-Type': contentType },
  })
  if (!found) {
    audit(parts, 'unknownToken', request, {}, 'a notice came to an address that does not exist')
    return text(404, 'not found', 'text/plain')
  }
  const state = await redirectState(parts, found.merchantId, found.redirected.paymentId)
  const connector = connectorOf(parts, state.payment)
  const body = Buffer.from(request.body, 'latin1').toString('utf8')
  const late = async () => {
    await takeLateNotice(parts, state.payment)
    parts.log.debug(
      { audit: 'returnedAgain', paymentId: state.payment.id },
      'a notice came for a payment that does not wait for one',
    )
    const stale = (await connector.staleNotice?.(body, () => tell(state.payment))) ?? {
      answer: 'not found',
      contentType: 'text/plain',
    }
    return text(200, stale.answer, stale.contentType)
  }
  if (state.kind !== 'step') return late()
  const noticed = connector.readNotice?.({ step: state.step, data: state.held.data, body })
  if (noticed?.kind !== 'resume') {
    audit(
      parts,
      'forgedNotice',
      request,
      { paymentId: state.payment.id, ...(noticed && { why: noticed.why }) },
      'a notice was refused',
    )
    return text(200, noticed?.answer ?? 'not found', noticed?.contentType ?? 'text/plain')
  }
  const { payment, step } = state
  const goOn = await takeUp(parts, payment, { step, event: noticed.event, publicUrl: request.publicUrl })
  if (!goOn) return late()
  // The other side waits for its acknowledgement, not for the authorization.
  void goOn().catch((error: Error) =>
    parts.log.error({ paymentId: payment.id, why: error.message }, 'a payment could not be resumed after its notice'),
  )
  return text(200, noticed.answer, noticed.contentType)
}

/** What a payment's answer says; one that goes on has it in a moment. Undefined when it has none by then, or when too many wait. */
type TellEnd = (payment: PaymentState) => Promise<Structures | undefined>

function tellEnds(parts: PageParts): TellEnd {
  const waiting: string[] = []
  // What became of its authentication is known before a capture is.
  const told = ({ payment }: RedirectState) => (payment.answer ? storedJson(payment.id, 'body', payment.answer.body) : undefined)
  return async ({ merchantId, id }) => {
    const now = await redirectState(parts, merchantId, id)
    const alike = waiting.filter(one => one === id).length
    if (now.kind !== 'work' || now.payment.answer || waiting.length >= repeatersMost.atAll || alike >= repeatersMost.forOne)
      return told(now)
    waiting.push(id)
    try {
      return told(await settledState(parts, merchantId, id, undefined, acknowledgedWithinSeconds))
    } finally {
      waiting.splice(waiting.indexOf(id), 1)
    }
  }
}

const isSecure = ({ publicUrl }: Request): boolean => publicUrl.startsWith('https:')

const render = (parts: PageParts, status: number, page: Page, headers: Record<string, string> = {}): HttpAnswer => {
  const rendered = renderPage(page, parts.random.bytes(16).toString('base64'))
  return { status, body: rendered.body, headers: { ...rendered.headers, ...headers } }
}
const languageOf = (request: Request): Language => chooseLanguage(request.headers['accept-language'])
const plain = (parts: PageParts, request: Request, status: number, kind: 'unknown' | 'error', known?: KnownShop): HttpAnswer =>
  render(parts, status, views.plainPage(languageOf(request), kind, known))
const audit = (parts: PageParts, line: NonNullable<LogFields['audit']>, request: Request, more: LogFields, why: string) =>
  parts.log.warn({ audit: line, ndc: request.number, ...more }, why)

async function find(parts: PageParts, kind: TokenKind, token: string): Promise<RedirectPayment | undefined> {
  const read = readToken(parts, kind, token)
  const redirected = read && (await findRedirect(parts.database.work, kind, read.merchantId, read.hashes))
  return redirected && { merchantId: read.merchantId, token, redirected }
}

/** Finds the payment of a token, and turns what must not happen into a page. */
const guarded =
  (parts: PageParts, work: (request: Request, found: RedirectPayment) => Promise<HttpAnswer>): RequestFunction =>
  async (request, { token = '' }) => {
    let found: RedirectPayment | undefined
    try {
      found = await find(parts, 'page', token)
      if (found) return await work(request, found)
      audit(parts, 'unknownToken', request, {}, 'a redirect address that does not exist was asked for')
      return plain(parts, request, 404, 'unknown')
    } catch (error) {
      noteFailure(parts, request, '/r', error)
      if (isPassing(error)) return render(parts, 503, views.plainPage(languageOf(request), 'error'), { 'Retry-After': '2' })
      return plain(parts, request, 500, 'error', found && (await knownShop(parts, request, found)))
    }
  }

type KnownShop = { readonly shop: Shop; readonly shopUrl: string | undefined }

/** The shop and the way back to it, where even that can be read. */
async function knownShop(parts: PageParts, request: Request, found: RedirectPayment): Promise<KnownShop | undefined> {
  const payment = await findPayment(parts.database.work, found.merchantId, found.redirected.paymentId).catch(() => undefined)
  return payment && { shop: shopOfPayment(parts, payment), shopUrl: wayBack(parts, request, found, payment) }
}

const shopOfPayment = ({ directory }: PageParts, { channelId, record }: PaymentState): Shop =>
  shopOf(directory, channelId, new Map(record.fields).get('merchant.name'))

/** `shopUrl`: absent where this browser is not told. */
function about(
  parts: PageParts,
  request: Request,
  found: RedirectPayment,
  payment: PaymentState,
  shopUrl = wayBack(parts, request, found, payment),
): views.About {
  return {
    language: languageOf(request),
    shop: shopOfPayment(parts, payment),
    amount: payment.amount,
    currency: payment.currency,
    shopUrl,
    page: `${request.publicUrl}/r/${found.token}`,
  }
}

/** Does the browser that returns hold the cookie of the one that began last? */
function isSameSession(parts: PageParts, request: Request, { token, redirected }: RedirectPayment): boolean {
  const sent = cookieOf(request, cookieName(token, isSecure(request)))
  const { sessionHash } = redirected
  if (sent === undefined || sessionHash === null) return false
  return hashesOf(parts, 'session', sent).some(hash => timingSafeEqual(hash, sessionHash))
}

/**
 * An address that a shopper said is for the browser that pays alone: whoever makes a payment in somebody's checkout would lead others anywhere under our name. Only one
 * for which the merchant stands is told to everybody.
 */
const wayBack = (parts: PageParts, request: Request, found: RedirectPayment, payment: PaymentState): string | undefined =>
  payment.record.shopSaidBy && !isSameSession(parts, request, found) ? undefined : shopAddressOf(payment)

/**
 * Nobody has come yet, and the shopper who has just pressed comes now. A form in a shop's frame can be given no cookie that would tell him from others; a link that is
 * handed on comes later.
 */
const comesAtOnce = (
  { directory }: PageParts,
  { merchantId, redirected }: RedirectPayment,
  { receivedAt }: PaymentState,
): boolean => redirected.sessionHash === null && directory.businessTime(merchantId) - receivedAt < atOnceSeconds * 1000

/** For who comes late and may have paid: he hears what became of it, and is led nowhere. */
function howItStands(here: views.About, { kind, payment }: RedirectState): Page {
  if (kind === 'work') return views.waitPage(here, here.page)
  return views.endPage(here, shopperAdvice((payment.answer ? results[payment.answer.result] : results.pending).code))
}

function wrongSession(parts: PageParts, request: Request, found: RedirectPayment, payment: PaymentState): HttpAnswer {
  audit(parts, 'wrongSession', request, { paymentId: payment.id }, 'a browser that did not begin the payment came back for it')
  return render(parts, 403, views.refusedPage(about(parts, request, found, payment), 'session'))
}

/** What was said of a payment is held for as long as its browser waits: for the other side, or for another request that goes on with it. */
const mayWait = (parts: PageParts, request: Request, { payment }: RedirectState): boolean =>
  isHeldForBrowser(parts, request, payment.record.fields)

/** It comes again by itself. */
const tooManyWait = (parts: PageParts, request: Request, found: RedirectPayment, { payment }: RedirectState): HttpAnswer => {
  const here = about(parts, request, found, payment)
  return render(parts, 429, views.waitPage(here, here.page), { 'Retry-After': '3' })
}

/** Who comes so far may be told where the shop is. */
const toShop = (payment: PaymentState): HttpAnswer => redirectAnswer(shopAddressOf(payment))

/** What somebody who looks at the payment gets to see. */
async function goOn(parts: PageParts, request: Request, found: RedirectPayment, state: RedirectState): Promise<HttpAnswer> {
  if (state.kind === 'answered') return toShop(state.payment)
  const here = about(parts, request, found, state.payment, shopAddressOf(state.payment))
  if (state.kind === 'work') return render(parts, 200, views.waitPage(here, here.page))
  const { hop } = state.held
  if (hop.kind === 'shop') return toShop(state.payment)
  const switched = (url: string) => (state.payment.mode === 'internal' ? passOn(parts, url, request) : url)
  if (hop.kind === 'go') return redirectAnswer(switched(hop.url))
  if (hop.kind === 'post') return render(parts, 200, views.postPage(here, hop, switched(hop.url)))
  const frame = hop.method && state.mark !== 'methodDone' ? `${request.publicUrl}/r/method/${found.token}` : undefined
  return render(parts, 200, views.browserPage(here, hop as Extract<Hop, { kind: 'browser' }>, frame, switched(here.page)))
}

const page = (parts: PageParts) =>
  guarded(parts, async (request, found) => {
    const { merchantId, redirected, token } = found
    const values = sentValues(request)
    let state = await redirectState(parts, merchantId, redirected.paymentId)
    if (!mayWait(parts, request, state)) return tooManyWait(parts, request, found, state)
    if (state.kind === 'work') state = await settledState(parts, merchantId, redirected.paymentId, undefined, patienceSeconds)
    const reports =
      state.kind === 'step' && state.held.hop.kind === 'browser' && request.method === 'POST' && values.has('browser')
    if (reports && state.kind === 'step') {
      if (!isSameSession(parts, request, found)) return wrongSession(parts, request, found, state.payment)
      const seen = new Map([...values, ...seenBy(request)])
      const returned = connectorOf(parts, state.payment).readReturn!({ step: state.step, data: state.held.data, values: seen })
      if (returned.kind === 'resume')
        await resume(parts, state.payment, { step: state.step, event: returned.event, publicUrl: request.publicUrl })
      state = await settledState(parts, merchantId, redirected.paymentId, state.step, patienceSeconds)
      return state.kind === 'answered'
        ? toShop(state.payment)
        : redirectAnswer(passOn(parts, `${request.publicUrl}/r/${token}`, request))
    }
    // Nobody begins anew what only leads to the shop: who comes at once, before anybody, is the one who paid.
    const isUnderWay = state.kind === 'step' && state.held.hop.kind !== 'shop'
    const isOpen = isUnderWay || wayBack(parts, request, found, state.payment) !== undefined
    if (!isOpen && !comesAtOnce(parts, found, state.payment))
      return redirected.sessionHash === null
        ? render(parts, 200, howItStands(about(parts, request, found, state.payment), state))
        : wrongSession(parts, request, found, state.payment)
    const cookies = await session(parts, request, found, !isOpen)
    if (!cookies) return wrongSession(parts, request, found, state.payment)
    return { ...(await goOn(parts, request, found, state)), cookies }
  })

/** Whoever opens the page begins anew: the cookie is kept when it is the right one. `onlyFirst`: undefined for who is not the first. */
async function session(
  parts: PageParts,
  request: Request,
  found: RedirectPayment,
  onlyFirst: boolean,
): Promise<readonly string[] | undefined> {
  if (isSameSession(parts, request, found)) return []
  // Who has loaded the page again would come after himself.
  if (onlyFirst && request.isGone()) return undefined
  const value = parts.random.bytes(16).toString('base64url')
  const hash = hashOf(parts, 'session', value)
  if (!(await bindSession(parts.database.work, found.merchantId, found.redirected.paymentId, hash, onlyFirst))) return undefined
  const secure = isSecure(request)
  return [setCookie(cookieName(found.token, secure), value, { path: '/r', seconds: 7200, isSecure: secure })]
}

const connectorOf = (parts: PageParts, payment: PaymentState) => {
  const connector = parts.connectors.get(payment.connector)
  if (!connector?.readReturn) throw new Error(`the connector ${payment.connector} does not take returns`)
  return connector
}

const comeBack = (parts: PageParts, cancelled: boolean) =>
  guarded(parts, async (request, found) => {
    const { merchantId, redirected, token } = found
    const values = sentValues(request)
    let state = await redirectState(parts, merchantId, redirected.paymentId)
    const arrival = (step: Extract<RedirectState, { kind: 'step' }>): Arrival => ({
      step: step.step,
      data: step.held.data,
      values,
      ...(cancelled && { cancelled: true }),
    })
    const forged = (payment: PaymentState, why: string) => {
      audit(parts, 'forgedReturn', request, { paymentId: payment.id, why }, 'a return was refused')
      return render(parts, 400, views.refusedPage(about(parts, request, found, payment), 'forged'))
    }
    if (request.method === 'POST') {
      // Browsers keep the cookie back when another site posts: what was posted is looked at, then the browser comes again by GET.
      if (state.kind === 'step') {
        const returned = connectorOf(parts, state.payment).readReturn!(arrival(state))
        if (returned.kind === 'forged') return forged(state.payment, returned.why)
      }
      return redirectAnswer(`${request.publicUrl}/r/${cancelled ? 'cancel' : 'return'}/${token}`)
    }
    if (!isSameSession(parts, request, found)) return wrongSession(parts, request, found, state.payment)
    if (!mayWait(parts, request, state)) return tooManyWait(parts, request, found, state)
    if (state.kind === 'answered')
      parts.log.debug({ audit: 'returnedAgain', paymentId: state.payment.id }, 'the shopper came back again')
    if (state.kind === 'step') {
      const { step } = state
      const returned = connectorOf(parts, state.payment).readReturn!(arrival(state))
      if (returned.kind === 'forged') return forged(state.payment, returned.why)
      if (returned.kind === 'resume') {
        const ours = await resume(parts, state.payment, { step, event: returned.event, publicUrl: request.publicUrl })
        state = ours ? await redirectState(parts, merchantId, redirected.paymentId) : state
        if (!ours) state = await settledState(parts, merchantId, redirected.paymentId, undefined, patienceSeconds)
      } else {
        state = await settledState(parts, merchantId, redirected.paymentId, step, resultWithinSeconds)
        if (state.kind === 'step' && state.step === step) {
          audit(
            parts,
            'forgedReturn',
            request,
            { paymentId: state.payment.id, why: 'no result had come' },
            'a browser returned without a result',
          )
          return render(parts, 200, views.unconfirmedPage(about(parts, request, found, state.payment)))
        }
      }
    }
    if (state.kind === 'work') state = await settledState(parts, merchantId, redirected.paymentId, undefined, patienceSeconds)
    if (state.kind === 'step' && state.held.hop.kind !== 'shop') return redirectAnswer(`${request.publicUrl}/r/${token}`)
    return goOn(parts, request, found, state)
  })

export function shopAddressOf({ id, type, record }: PaymentState): string {
  const url = new Map(record.fields).get('shopperResultUrl')!
  const { checkout } = record
  if (checkout !== undefined) return shopAddress(url, checkout, `/v1/checkouts/${checkout}/payment`)
  return shopAddress(url, id, `/v1/${type === '3D' ? 'threeDSecure' : 'payments'}/${id}`)
}

/** The shop's address with `id` and `resourcePath` behind what it has already. */
export function shopAddress(url: string, id: string, path: string): string {
  const hash = url.indexOf('#')
  const [base, fragment] = hash < 0 ? [url, ''] : [url.slice(0, hash), url.slice(hash)]
  const join = !base.includes('?') ? '?' : /[?&]$/.test(base) ? '' : '&'
  return new URL(`${base}${join}id=${id}&resourcePath=${encodeURIComponent(path)}${fragment}`).href
}

/** Addresses come from merchants and from the other side: a header takes them only as URL writes them. */
const passOn = (parts: PageParts, url: string, request: Request): string =>
  parts.passOn?.(hereOf(parts, url, request), request.query) ?? url

/** A page of the simulators, as this browser reaches it. */
const hereOf = (parts: PageParts, url: string, { publicUrl }: Request): string =>
  url.startsWith(`${parts.publicUrl()}/`) ? publicUrl + url.slice(parts.publicUrl().length) : url

/** What the request itself tells of the browser. */
function seenBy({ headers, address }: Request): (readonly [string, string])[] {
  const seen = { acceptHeader: headers.accept, userAgent: headers['user-agent'], ip: plainAddress(address) }
  return Object.entries(seen).flatMap(([name, value]) => (value === undefined || value === '' ? [] : [[name, value] as const]))
}

const sentValues = ({ method, query, body, charset }: Request): ReadonlyMap<string, string> =>
  method === 'POST' ? readValues(body, charset) : readValues(query)

/** Held while a shopper waits: more than a few have no side that brings him back. */
function readValues(text: string, charset?: Charset): ReadonlyMap<string, string> {
  const form = readForm(text, charset)
  return new Map(form === 'tooManyParameters' ? [] : form.pairs.slice(0, limits.shoppersParametersMax))
}
