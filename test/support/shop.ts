// A shop on another site than the gateway, with pages as its merchant writes them, and a browser that visits them.

import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser, BrowserContextOptions, FrameLocator, Page } from 'playwright-core'
import { type Body, type Fields, sandbox, type TestGateway } from './gateway.ts'

export type Shop = {
  /** Another site than 127.0.0.1. */
  readonly origin: string
  /** Serves a page, and says where. */
  page(html: string, headers?: Record<string, string>): string
  stop(): void
}

/** `/thanks` is where shoppers come back to. */
export async function startShop(host = 'localhost'): Promise<Shop> {
  const pages: { readonly html: string; readonly headers: Record<string, string> }[] = []
  const server = http.createServer(({ url = '/' }, outgoing) => {
    const { html, headers } = pages[Number(url.slice(1).split('?')[0])] ?? { html: '<h1>Thank you</h1>', headers: {} }
    outgoing.writeHead(200, { 'Content-Type': 'text/html;charset=utf-8', ...headers }).end(html)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const origin = `http://${host}:${(server.address() as AddressInfo).port}`
  return {
    origin,
    page: (html, headers = {}) => `${origin}/${pages.push({ html, headers }) - 1}`,
    stop() {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** A checkout of the strict channel: 92.00 EUR, as a debit. */
export async function makeCheckout(gateway: TestGateway, fields: Fields = {}): Promise<Body> {
  const { body } = await gateway.post('/v1/checkouts', {
    entityId: sandbox.entityId,
    amount: '92.00',
    currency: 'EUR',
    paymentType: 'DB',
    ...fields,
  })
  assert.equal(body.result.code, '000.200.100', JSON.stringify(body))
  return body
}

export type ShopPage = {
  readonly id: string
  readonly brands?: string
  readonly action?: string
  /** JavaScript: the value of wpwlOptions. */
  readonly options?: string
  readonly head?: string
  readonly inside?: string
  readonly integrity?: string
}

/** The two lines that a shop writes, in a page. */
export const shopPage = (
  gateway: TestGateway,
  { id, brands = 'VISA MASTER AMEX', action = '/thanks?order=7', ...page }: ShopPage,
): string =>
  `<!doctype html><html lang="en"><head><title>Shop</title><meta name="viewport" content="width=device-width, initial-scale=1">${page.head ?? ''}
<script>${page.options === undefined ? '' : `var wpwlOptions = ${page.options}`}</script>
<script async src="${gateway.baseUrl}/v1/paymentWidgets.js?checkoutId=${encodeURIComponent(id)}"${page.integrity === undefined ? '' : ` integrity="${page.integrity}" crossorigin="anonymous"`}></script>
</head><body><h1>Shop</h1><main><form action="${action}" class="paymentWidgets" data-brands="${brands}">${page.inside ?? ''}</form></main></body></html>`

export type Visit = {
  readonly page: Page
  /** The form, in its frame. */
  readonly form: FrameLocator
  /** What the browser complained of. */
  readonly problems: string[]
  /** SCREENSHOTS=<folder> keeps it. */
  picture(name: string): Promise<void>
  close(): Promise<void>
}

export async function visitShop(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<Visit> {
  const context = await browser.newContext({ locale: 'en-US', viewport: { width: 700, height: 900 }, ...options })
  const page = await context.newPage()
  page.setDefaultTimeout(60_000)
  const problems: string[] = []
  page.on('console', message => {
    if (message.type() === 'error' || /Content Security Policy/.test(message.text())) problems.push(message.text())
  })
  page.on('pageerror', error => problems.push(error.message))
  await page.goto(url)
  return {
    page,
    form: page.frameLocator('iframe'),
    problems,
    async picture(name) {
      const folder = process.env.SCREENSHOTS
      if (folder === undefined) return
      mkdirSync(folder, { recursive: true })
      await page.screenshot({ path: `${folder}/${name}.png`, fullPage: true })
    },
    close: () => context.close(),
  }
}

export const goodCard = { number: '4200000000000000', expiry: '0534', cvv: '123', holder: 'Jane Jones' }

export async function typeCard(form: FrameLocator | Page, card: Partial<typeof goodCard> = {}): Promise<void> {
  const { number, expiry, cvv, holder } = { ...goodCard, ...card }
  await form.locator('#cardNumber').fill(number)
  await form.locator('#expiry').fill(expiry)
  await form.locator('#cvv').fill(cvv)
  await form.locator('#cardHolder').fill(holder)
}

/** The shopper is back at the shop, with what the shop needs to read the status; what the status is. */
export async function atShop(
  gateway: TestGateway,
  { page }: Pick<Visit, 'page'>,
  id: string,
  purpose = 'payment',
): Promise<Body> {
  await page.waitForURL(/\/thanks\?/)
  const values = new URL(page.url()).searchParams
  const resourcePath = `/v1/checkouts/${id}/${purpose}`
  assert.deepEqual([...values].slice(-2), [
    ['id', id],
    ['resourcePath', resourcePath],
  ])
  return (await gateway.get(resourcePath, { entityId: sandbox.entityId })).body
}
