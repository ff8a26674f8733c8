// The addresses of a slip: its page, its PDF, its barcode as an image for shops that make a page of their own, and in a sandbox the button that pays it.

import { type HttpAnswer, type Request, redirectAnswer } from '../../http/answer.ts'
import { noteFailure } from '../../http/failure.ts'
import type { RequestFunction, Route } from '../../http/router.ts'
import { isPassing } from '../../platform/database/elsewhere.ts'
import { type Page, renderPage } from '../html.ts'
import { chooseLanguage, languageOf } from '../languages/languages.ts'
import { qrCode } from '../qrCode.ts'
import { plainPage } from '../shopper/views.ts'
import { barcodePng } from './barcodePng.ts'
import { slipPage } from './page.ts'
import { slipPapers } from './pdf.ts'
import { slipLanguage } from './texts.ts'
import { canBePaid, findView, type SlipPageParts, type SlipView } from './view.ts'

export function slipRoutes(parts: SlipPageParts): Route[] {
  const { paySlip } = parts
  const get = (path: string, answer: RequestFunction): Route => ({
    method: 'GET',
    path,
    callers: 'browser',
    cost: 8,
    answer,
  })
  return [
    get('/slip/{token}', page(parts)),
    get('/slip/{token}/slip.pdf', pdf(parts)),
    get('/slip/{token}/barcode.png', image(parts)),
    ...(paySlip
      ? [
          {
            method: 'POST',
            path: '/slip/{token}/pay',
            callers: 'browser',
            answer: found(parts, async ({ slip }, _, address) => {
              await paySlip(slip)
              return redirectAnswer(address)
            }),
          } as const,
        ]
      : []),
  ]
}

const page = (parts: SlipPageParts): RequestFunction =>
  found(parts, async (view, request, address) => {
    const words = slipLanguage(wanted(request), view.account.country)
    const pix = view.pix === undefined ? undefined : qrCode(view.pix)
    return render(parts, 200, slipPage(view, words, address, pix, parts.paySlip !== undefined && canBePaid(view)))
  })

/** Browsers show a PDF by a page of their own, which some hold to the file's policy: that it may load nothing would leave it empty. */
const unframed = { 'Content-Security-Policy': "frame-ancestors 'none'" }

/** Who cannot pay it any more has nothing to print. */
const pdf = (parts: SlipPageParts): RequestFunction => {
  const draw = slipPapers(parts.clock)
  return found(parts, async (view, request, address) => {
    if (!canBePaid(view)) return redirectAnswer(address)
    return bytes(await draw(request.networks.at(-1)!, view), 'application/pdf', unframed)
  })
}

const image = (parts: SlipPageParts): RequestFunction =>
  found(parts, async ({ slip: { barcode }, account }) =>
    bytes(barcodePng(account.kind === 'chain' ? 'code128' : 'interleaved2of5', barcode), 'image/png', {
      'Cross-Origin-Resource-Policy': 'cross-origin',
    }),
  )

const bytes = (body: Buffer, type: string, headers: Readonly<Record<string, string>> = {}): HttpAnswer => ({
  status: 200,
  body,
  headers: { 'Content-Type': type, 'Cache-Control': 'private, no-store', 'Referrer-Policy': 'no-referrer', ...headers },
})

/** An address of nothing, and one whose account is gone, look the same. */
const found =
  (parts: SlipPageParts, answer: (view: SlipView, request: Request, address: string) => Promise<HttpAnswer>): RequestFunction =>
  async (request, { token = '' }) => {
    try {
      const view = await findView(parts, token)
      if (view) return await answer(view, request, `${request.publicUrl}/slip/${token}`)
      parts.log.warn({ audit: 'unknownToken', ndc: request.number }, 'the address of a slip that does not exist was asked for')
      return render(parts, 404, plainPage(reader(request), 'unknown'))
    } catch (error) {
      noteFailure(parts, request, '/slip', error)
      const shown = plainPage(reader(request), 'error')
      return isPassing(error) ? render(parts, 503, shown, { 'Retry-After': '2' }) : render(parts, 500, shown)
    }
  }

const reader = ({ headers }: Request) => chooseLanguage(headers['accept-language'])

/** The first language of the browser, whether there are texts in it or not. */
const wanted = ({ headers }: Request) => languageOf(headers['accept-language']?.split(/[,;]/)[0] ?? '')

function render(parts: SlipPageParts, status: number, page: Page, more: Readonly<Record<string, string>> = {}): HttpAnswer {
  const { body, headers } = renderPage(page, parts.random.bytes(16).toString('base64'))
  return { status, body, headers: { ...headers, ...more } }
}
