// The demo shop in a real browser: a merchant of another origin that sells, is paid through the form, reads the status and is notified.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { after, before, describe, it } from 'node:test'
import type { Browser } from 'playwright-core'
import { systemClock, systemRandom } from '../src/platform/clock.ts'
import { makeLog } from '../src/platform/log.ts'
import { type DemoShop, startDemoShop } from '../src/sandbox/demoShop/shop.ts'
import { violations } from './support/axe.ts'
import { launchBrowser } from './support/chromium.ts'
import { ended } from './support/ended.ts'
import { eventually, sandbox, type TestGateway, testGateway } from './support/gateway.ts'
import { typeCard, visitShop } from './support/shop.ts'

let gateway: TestGateway
let browser: Browser
let shop: DemoShop
before(async () => {
  ;[gateway, browser] = await Promise.all([testGateway(), launchBrowser({ isolated: true })])
  shop = await startShop({ baseUrl: gateway.baseUrl })
})
/** Where it would like to be is taken: it finds another port. */
const startShop = ({ baseUrl }: { baseUrl: string }): Promise<DemoShop> =>
  startDemoShop({
    account: { baseUrl, entityId: sandbox.entityId, accessToken: sandbox.accessToken },
    host: '127.0.0.1',
    hosts: { names: new Set(), followed: true },
    port: Number(new URL(baseUrl).port),
    clock: systemClock,
    random: systemRandom,
    log: makeLog('silent'),
  })
after(async () => {
  await browser?.close()
  await shop?.stop()
  await gateway?.stop()
})

describe('the demo shop', () => {
  it('answers what is no address, and who asks for another host, with a refusal', async () => {
    const ask = async (target: string, host: string) => {
      const socket = connect(Number(new URL(shop.url).port), '127.0.0.1').setEncoding('latin1')
      let got = ''
      socket.on('data', (chunk: string) => {
        got += chunk
      })
      socket.write(`GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
      await ended(socket)
      return got.slice(9, 12)
    }
    for (const target of ['//', '///x', '/%', '/nothing', 'http://[/'])
      assert.match(await ask(target, 'localhost'), /40[04]/, target)
    for (const target of ['/', '/notifications']) assert.equal(await ask(target, 'evil.example'), '400')
    assert.equal((await fetch(shop.url)).status, 200)
  })
  it('begins no checkout for a picture in a page of another site, and for whoever comes from there by a link', async () => {
    const begun = async () => Number((await gateway.pool.query('select count(*) from checkouts')).rows[0].count)
    const ask = async (path: string, site: string, dest: string) => {
      const stopping = new AbortController()
      const headers = { 'Sec-Fetch-Site': site, 'Sec-Fetch-Dest': dest }
      const { status } = await fetch(shop.url + path, { headers, signal: stopping.signal })
      stopping.abort()
      return status
    }
    const before = await begun()
    for (const dest of ['image', 'empty', 'iframe', 'script']) {
      assert.equal(await ask('/', 'cross-site', dest), 403, dest)
      assert.equal(await ask('/notifications', 'cross-site', dest), 403, dest)
    }
    assert.equal(await begun(), before)
    assert.equal(await ask('/', 'cross-site', 'document'), 200)
    assert.equal(await ask('/', 'same-site', 'document'), 200)
    assert.equal(await begun(), before + 2)
    assert.equal(await ask('/notifications', 'same-origin', 'empty'), 200)
  })
  it('works on one request of a connection, and on so many together', async () => {
    // A gateway that says nothing.
    const held: ServerResponse[] = []
    const silent = createServer((_, response) => held.push(response)).listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const waiting = await startShop({ baseUrl: `http://127.0.0.1:${(silent.address() as AddressInfo).port}` })
    const many = connect(Number(new URL(waiting.url).port), '127.0.0.1').resume()
    many.on('error', () => {})
    many.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(500))
    await eventually(async () => held.length > 0, 'the first of them asks the gateway')
    const asked = Array.from({ length: 31 }, () => fetch(waiting.url))
    await eventually(async () => held.length === 32, 'all of them ask the gateway, and none that stood behind the first')
    assert.equal((await fetch(waiting.url)).status, 503)
    for (const response of held) response.writeHead(500).end()
    for (const page of asked) assert.equal((await page).status, 502)
    await ended(many)
    await waiting.stop()
    silent.close()
  })
  it('has room for whoever comes, however many are connected and say nothing', async () => {
    const idle = Array.from({ length: 300 }, () => connect(Number(new URL(shop.url).port), '127.0.0.1').on('error', () => {}))
    await eventually(async () => idle.filter(socket => !socket.connecting).length === idle.length, 'all are connected')
    assert.equal((await fetch(shop.url)).status, 200)
    for (const socket of idle) socket.destroy()
  })
  it('stands beside the gateway, by whichever address a browser comes', async () => {
    for (const name of ['localhost', '127.0.0.1']) {
      const at = (url: string) => url.replace('127.0.0.1', name)
      const page = await fetch(at(shop.url))
      assert.ok(page.headers.get('content-security-policy')!.includes(`frame-src ${at(gateway.baseUrl)};`))
      const text = await page.text()
      assert.ok(text.includes(`${at(gateway.baseUrl)}/v1/paymentWidgets.js`))
      assert.ok(text.includes(`${at(shop.url)}/done`))
    }
  })
  it('goes on for others when somebody listens on many connections', async () => {
    const stopping = new AbortController()
    const listening = Array.from({ length: 40 }, () => fetch(`${shop.url}/notifications`, { signal: stopping.signal }))
    const statuses = (await Promise.all(listening)).map(({ status }) => status)
    assert.deepEqual([statuses.filter(one => one === 200).length, statuses.filter(one => one === 204).length], [32, 8])
    assert.equal((await fetch(shop.url)).status, 200)
    stopping.abort()
  })
  it('is of another origin than the form', () => assert.notEqual(new URL(shop.url).origin, new URL(gateway.baseUrl).origin))

  it('sells by card, thanks again when the page is loaded again, and shows the status and the notification', async () => {
    const { page, form, problems, picture, close } = await visitShop(browser, shop.url, {
      viewport: { width: 1280, height: 900 },
    })
    await form.locator('#cardNumber').waitFor()
    await page.waitForTimeout(process.env.SCREENSHOTS ? 500 : 0)
    await picture('demo-shop')
    await typeCard(form)
    await form.locator('#pay').click()
    await page.waitForURL(/\/done\?/)
    assert.equal(await page.textContent('h1'), 'Thank you for your order')
    const status = JSON.parse((await page.textContent('main pre'))!)
    assert.deepEqual([status.result.code, status.amount, status.paymentType], ['000.100.110', '18.50', 'DB'])
    await page.waitForSelector('#told li')
    assert.match((await page.textContent('#told summary'))!, /PAYMENT DB 18\.50 EUR 000\.100\.110/)
    await picture('demo-shop-thanks')
    await page.reload()
    assert.equal(await page.textContent('h1'), 'Thank you for your order')
    assert.deepEqual(problems, [])
    await close()
  })

  it('sells by 3-D Secure in another language, and by the wallet', async () => {
    const secure = await visitShop(browser, `${shop.url}/?locale=ar&secure=1`, { viewport: { width: 390, height: 800 } })
    await typeCard(secure.form, { number: '4200000000000042' })
    await secure.picture('demo-shop-ar')
    await secure.form.locator('#pay').click()
    await secure.page.fill('#otp', '1234')
    await secure.page.keyboard.press('Enter')
    await secure.page.waitForURL(/\/done\?/)
    assert.equal(await secure.page.textContent('h1'), 'Thank you for your order')
    await secure.close()
    const wallet = await visitShop(browser, shop.url)
    await wallet.form.getByText('PayPal').first().click()
    await wallet.form.locator('#pay').click()
    await wallet.page.click('button[value=cancel]')
    await wallet.page.waitForURL(/\/done\?/)
    assert.equal(await wallet.page.textContent('h1'), 'Your order is not paid')
    await wallet.close()
  })

  it('shows its own source to copy, and never its token', async () => {
    const { page, close } = await visitShop(browser, shop.url)
    const source = (await page.textContent('aside'))!
    for (const part of [
      `${gateway.baseUrl}/v1/paymentWidgets.js?checkoutId=`,
      'class="paymentWidgets"',
      'export const beginCheckout',
      '4200000000000000',
    ])
      assert.ok(source.includes(part), part)
    assert.ok(!(await page.content()).includes(sandbox.accessToken))
    assert.deepEqual(await violations(page), [])
    await close()
  })

  it('says so when somebody comes back with what is no order of it', async () => {
    const { page, close } = await visitShop(browser, `${shop.url}/done?id=${'A'.repeat(32)}.x&resourcePath=/v1/payments/1`)
    assert.equal(await page.textContent('h1'), 'Your order is not paid')
    await close()
  })
})
