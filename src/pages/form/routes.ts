// The payment form's addresses: the script of the shop's page, the frame, the page of our own for shops without a form, and what they are made of.

import { type FormView, formView } from '../../checkouts/view.ts'
import { shopperAdvice } from '../../contract/results/shopperAdvice.ts'
import { type HttpAnswer, json, type Request } from '../../http/answer.ts'
import type { RequestFunction, Route } from '../../http/router.ts'
import { chooseLanguage, english, type Language, languageOf } from '../languages/languages.ts'
import type { PageParts } from '../parts.ts'
import { pressed, pressedOnce } from '../pressed.ts'
import { qrCode } from '../qrCode.ts'
import { brandMark } from './brandNames.ts'
import { codePage, type FormLook, type FormPage, formPage, themes } from './page.ts'
import { findScript } from './store.ts'

export function formRoutes(parts: PageParts): Route[] {
  return [
    { method: 'GET', path: '/v1/paymentWidgets.js', callers: 'anyone', cors: true, answer: widgetScript(parts) },
    { method: 'GET', path: '/v1/form/{checkout}', callers: 'browser', answer: formFrame(parts) },
    { method: 'GET', path: '/v1/static/{build}/{name}', callers: 'anyone', cors: true, answer: script(parts) },
    { method: 'GET', path: '/v1/static/{build}/img/{name}', callers: 'anyone', cors: true, answer: brandImage },
    { method: 'GET', path: '/pay/{checkout}', callers: 'browser', answer: payPage(parts) },
    { method: 'GET', path: '/pay/{checkout}/code', callers: 'browser', answer: linkPage(parts) },
  ]
}

/** The present build, or the one that the checkout is pinned to: the page that asks may insist on its bytes. */
const widgetScript =
  (parts: PageParts): RequestFunction =>
  async request => {
    const asked = valuesOf(request).get('checkoutId') ?? ''
    const { widget } = parts.builtForm
    const pinned = asked === '' ? undefined : (await formView(parts, asked.split('/')[0]!)).scriptBuild
    const content =
      pinned === undefined || pinned === widget.hash ? widget.content : await findScript(parts.database.work, pinned, widget.name)
    return scriptAnswer(request, content ?? widget.content, 'public, max-age=300')
  }

const script =
  (parts: PageParts): RequestFunction =>
  async (request, { build = '', name = '' }) => {
    const present = Object.values(parts.builtForm).find(file => file.hash === build && file.name === name)
    if (!/^[0-9a-f]{32}$/.test(build) || !/^[A-Za-z0-9.]{1,64}$/.test(name)) return nothingHere
    const content = present?.content ?? (await findScript(parts.database.work, build, name))
    return content === undefined ? nothingHere : scriptAnswer(request, content, forever)
  }

/** The build only says how old it is: a mark is drawn from the present table. */
const brandImage: RequestFunction = (_, { name = '' }) => {
  const brand = /^([A-Za-z0-9_]{1,32})\.(svg|png)$/.exec(name)?.[1]
  if (brand === undefined) return nothingHere
  return {
    status: 200,
    body: brandMark(brand.toUpperCase()).html,
    headers: {
      ...forOtherSites,
      'Content-Type': 'image/svg+xml',
      'Cache-Control': 'public, max-age=86400',
    },
  }
}

const formFrame =
  (parts: PageParts): RequestFunction =>
  async (request, { checkout = '' }) => {
    const values = valuesOf(request)
    const language = languageOf(values.get('locale') ?? '') ?? english
    const view = await formView(parts, checkout)
    if (request.headers.accept === 'application/json') {
      const advice = shopperAdvice(values.get('code') ?? '')
      return json(200, { state: view.state, ...(advice && { advice, text: language.texts[advice] }) })
    }
    const brands = values.get('brands')
    const theme = themes.find(one => one === values.get('theme')) ?? 'light'
    const look = lookOf(parts, view, {
      door: 'frame',
      language,
      theme,
      ...(brands && { brands: [...new Set(brands.slice(0, 2000).split(' '))] }),
    })
    return pageAnswer(request, formPage(view, look))
  }

const payPage =
  (parts: PageParts): RequestFunction =>
  async (request, { checkout = '' }) => {
    const view = await formView(parts, checkout)
    return pageAnswer(request, formPage(view, lookOf(parts, view, { door: 'page', language: readerOf(request), theme: 'auto' })))
  }

const linkPage =
  (parts: PageParts): RequestFunction =>
  async (request, { checkout = '' }) => {
    const view = await formView(parts, checkout)
    const look = lookOf(parts, view, { door: 'page', language: readerOf(request), theme: 'auto' })
    if (view.state === 'over') return pageAnswer(request, formPage(view, look))
    const link = `${request.publicUrl}/pay/${view.id}`
    return pageAnswer(request, codePage(view, look, link, qrCode(link)))
  }

/** What a page is made of beside the checkout and the request. */
function lookOf(parts: PageParts, { id }: FormView, chosen: Pick<FormLook, 'door' | 'language' | 'theme' | 'brands'>): FormLook {
  const { directory, clock, random, cardBrands, builtForm, sandbox } = parts
  const merchantId = directory.merchantOfTail(id.split('.')[1] ?? '')
  const today = merchantId === undefined ? clock.real() : directory.businessTime(merchantId)
  return {
    ...chosen,
    rows: cardBrands.rows,
    script: builtForm.form,
    now: clock.real(),
    month: new Date(today).toISOString().slice(0, 7),
    sandbox,
    nonce: random.bytes(16).toString('base64'),
  }
}

/** The language that the address names, or that the browser wants. */
const readerOf = (request: Request): Language =>
  languageOf(valuesOf(request).get('locale') ?? '') ?? chooseLanguage(request.headers['accept-language'])

const pageAnswer = (request: Request, { body, headers }: FormPage): Promise<HttpAnswer> => pressed(request, body, headers)

const forever = 'public, max-age=31536000, immutable'
const forOtherSites = { 'Cross-Origin-Resource-Policy': 'cross-origin' }
const nothingHere: HttpAnswer = { status: 404, body: 'not found', headers: { 'Content-Type': 'text/plain' } }

const scriptAnswer = (request: Request, content: string, caching: string): Promise<HttpAnswer> =>
  pressedOnce(request, content, { ...forOtherSites, 'Content-Type': 'text/javascript;charset=UTF-8', 'Cache-Control': caching })

const valuesOf = ({ query }: Request): URLSearchParams => new URLSearchParams(query)
