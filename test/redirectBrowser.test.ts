// From the API call to the final status in a real browser: a card with a challenge, the wallet, a transfer; then what only a browser can show.
// The shop is a server of its own here, so that the browser never leaves this machine.

import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { launchBrowser } from './support/chromium.ts'
import { type Body, eventually, type Fields, sandbox, type TestGateway, testGateway, visa } from './support/gateway.ts'

let gateway: TestGateway
let browser: Browser
let shop: string
/** The shop: a page of thanks, and below /frame one that makes the hidden frame of a redirect before it links to it. */
const shopServer = http.createServer(({ url = '/' }, outgoing) => {
  const frame = new URL(url, 'http://shop').searchParams.get('frame')
  outgoing.setHeader('Content-Type', 'text/html')
  outgoing.end(frame === null ? '<h1>Thank you</h1>' : `<iframe hidden src="${frame}"></iframe>`)
})
before(async () => {
  await new Promise<void>(resolve => shopServer.listen(0, '127.0.0.1', resolve))
  shop = `http://127.0.0.1:${(shopServer.address() as AddressInfo).port}/thanks?order=7`
  gateway = await testGateway()
  browser = await launchBrowser()
})
after(async () => {
  await browser?.close()
  await gateway?.stop()
  shopServer.closeAllConnections()
  shopServer.close()
})

/** SCREENSHOTS=<folder> keeps a picture of every page. */
const pictures = process.env.SCREENSHOTS

const atShop = (url: URL) => url.href.startsWith(shop)

type Visit = { readonly page: Page; readonly problems: string[]; picture(name: string): Promise<void>; close(): Promise<void> }

async function visit(language = 'en-US', width = 1100): Promise<Visit> {
  const context: BrowserContext = await browser.newContext({ locale: language, viewport: { width, height: 800 } })
  const page = await context.newPage()
  page.setDefaultTimeout(60_000)
  const problems: string[] = []
  page.on('console', message => {
    if (message.type() === 'error' || /Content Security Policy/.test(message.text())) problems.push(message.text())
  })
  page.on('pageerror', error => problems.push(error.message))
  return {
    page,
    problems,
    async picture(name) {
      if (pictures === undefined) return
      mkdirSync(pictures, { recursive: true })
      await page.screenshot({ path: `${pictures}/${name}-${width}-${language}.png` })
    },
    close: () => context.close(),
  }
}

async function begin(fields: Fields): Promise<Body> {
  const { body } = await gateway.post('/v1/payments', {
    entityId: sandbox.entityId,
    paymentType: 'DB',
    amount: '92.00',
    currency: 'EUR',
    shopperResultUrl: shop,
    ...fields,
  })
  assert.equal(body.result.code, '000.200.000', JSON.stringify(body))
  return body
}

const challenged = (number: string): Fields => ({ ...visa, 'card.number': number, 'customParameters[3DS2_enrolled]': 'true' })

/** The merchant’s page: a form where there are parameters, a link where there are none. */
async function send(page: Page, { redirect }: Body): Promise<void> {
  if (redirect.parameters.length === 0) return void (await page.goto(redirect.url))
  const inputs = redirect.parameters
    .map(({ name, value }: Fields) => `<input type="hidden" name="${name}" value="${value}">`)
    .join('')
  await page.setContent(`<form method="post" action="${redirect.url}">${inputs}<button>Pay</button></form>`)
  await page.click('button')
}

async function endsAtShop({ page, problems }: Visit, { id }: Body, code: string): Promise<void> {
  await page.waitForURL(atShop)
  const url = new URL(page.url())
  assert.deepEqual(Object.fromEntries(url.searchParams), { order: '7', id, resourcePath: `/v1/payments/${id}` })
  const { body } = await gateway.get(url.searchParams.get('resourcePath')!, { entityId: sandbox.entityId })
  assert.equal(body.result.code, code)
  assert.equal(body.redirect, undefined)
  const { rows } = await gateway.pool.query('select sequence, action from events where payment_id = $1 order by sequence', [id])
  assert.deepEqual(rows, [
    { sequence: 1, action: null },
    { sequence: 2, action: 'UPDATED' },
  ])
  assert.deepEqual(problems, [], 'no page broke its own policy')
}

describe('in a browser', () => {
  it('a card with hidden frame and challenge is approved by its one-time code', async () => {
    const started = await begin(challenged('4200000000000042'))
    const here = await visit()
    await here.page.goto(started.redirect.url, { waitUntil: 'commit' })
    await here.page.waitForSelector('#otp')
    await here.picture('issuer')
    await here.page.fill('#otp', '1234')
    await here.page.click('button[value=otp]')
    await endsAtShop(here, started, '000.100.110')
    // The back button leads nowhere else, and the card is not charged again.
    await here.page.goto(started.redirect.url)
    await here.page.waitForURL(atShop)
    const { rows } = await gateway.pool.query('select 1 from journal where payment_id = $1', [started.id])
    assert.equal(rows.length, 1)
    await here.close()
  })

  it('the merchant’s own page may make the hidden frame; ours then goes on without', async () => {
    const started = await begin(challenged('4200000000000091'))
    const here = await visit()
    const [precondition] = started.redirect.preconditions
    await here.page.goto(`${new URL(shop).origin}/frame?frame=${encodeURIComponent(precondition.url)}`)
    await eventually(async () => {
      const { rows } = await gateway.pool.query('select mark from continuations where payment_id = $1', [started.id])
      return rows[0]?.mark === 'methodDone'
    }, 'the issuer’s method ends in the merchant’s page')
    await here.page.goto(started.redirect.url, { waitUntil: 'commit' })
    await endsAtShop(here, started, '000.100.110')
    await here.close()
  })

  it('a challenge is declined on a phone, in the shopper’s language', async () => {
    const started = await begin(challenged('4200000000000018'))
    const here = await visit('de-DE', 390)
    await here.page.goto(started.redirect.url)
    await here.page.waitForSelector('button[value=decline]')
    assert.equal(await here.page.getAttribute('html', 'lang'), 'de')
    assert.equal(await here.page.evaluate('document.documentElement.scrollWidth <= innerWidth'), true)
    await here.picture('issuer')
    await here.page.click('button[value=decline]')
    await endsAtShop(here, started, '100.380.401')
    await here.close()
  })

  it('the wallet is agreed to with a form post, after one funding source failed', async () => {
    const started = await begin({ paymentBrand: 'PAYPAL' })
    const here = await visit('pt-BR', 390)
    await send(here.page, started)
    await here.picture('wallet')
    await here.page.click('button[value=insufficient]')
    await here.page.waitForSelector('[role=alert]')
    await here.picture('wallet-again')
    await here.page.dblclick('button[value=agree]')
    await endsAtShop(here, started, '000.100.110')
    await here.close()
  })

  it('a transfer is made at the bank', async () => {
    const started = await begin({ paymentBrand: 'SOFORTUEBERWEISUNG' })
    const here = await visit('ar', 390)
    await send(here.page, started)
    await here.page.waitForSelector('button[value=pay]')
    assert.equal(await here.page.getAttribute('html', 'dir'), 'rtl')
    await here.picture('bank')
    await here.page.click('button[value=pay]')
    await endsAtShop(here, started, '000.100.110')
    await here.close()
  })

  it('without scripts every page has a button that goes on', async () => {
    const started = await begin(challenged('4200000000000018'))
    const context = await browser.newContext({ locale: 'en-US', javaScriptEnabled: false, viewport: { width: 390, height: 700 } })
    const page = await context.newPage()
    // A picture taken while the next page comes fails: then it is taken of that.
    const shoot = (name: string) => page.screenshot({ path: `${pictures}/${name}-390-plain.png` })
    const picture = async (name: string) => pictures && shoot(name).catch(() => shoot(name))
    await page.goto(started.redirect.url)
    await picture('preparing')
    await page.click('button')
    await picture('continue')
    await page.click('button')
    await page.click('button[value=approve]')
    await picture('returning')
    await page.click('button')
    await page.waitForURL(atShop)
    const { body } = await gateway.get(`/v1/payments/${started.id}`, { entityId: sandbox.entityId })
    assert.equal(body.result.code, '000.100.110')
    await context.close()
  })

  it('a forged return shows a page that says so, and the shopper can go on from it', async () => {
    const started = await begin({ paymentBrand: 'PAYPAL' })
    const here = await visit('fr-FR', 390)
    await here.page.goto(`${started.redirect.url}`)
    const back = started.redirect.url.replace('/r/', '/r/return/')
    const response = await here.page.goto(`${back}?token=EC-00000000000000000&PayerID=ABCDEFGHIJKLM`)
    assert.equal(response!.status(), 400)
    await here.picture('forged')
    await here.page.click('a.button')
    await here.page.click('button[value=cancel]')
    here.problems.length = 0 // the 400 itself is reported as an error
    await endsAtShop(here, started, '100.396.101')
    await here.close()
    const stranger = await visit('es-ES', 1100)
    await stranger.page.goto(`${back}?token=x&PayerID=Y`)
    await stranger.picture('session')
    await stranger.page.goto(`${gateway.baseUrl}/r/nothing`)
    await stranger.picture('unknown')
    await stranger.close()
  })
})
