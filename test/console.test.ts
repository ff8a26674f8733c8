// The console of a sandbox: who has its link sees what happens without a reload, why a request was refused, and makes time pass.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { violations } from './support/axe.ts'
import { launchBrowser } from './support/chromium.ts'
import { addEndpoint } from './support/endpoints.ts'
import { eventually, sandbox, type TestGateway, testGateway } from './support/gateway.ts'
import { type Clerk, sandboxDeveloper, signedIn, visitor } from './support/office.ts'
import { type Receiver, startReceiver } from './support/receiver.ts'

let gateway: TestGateway
let receiver: Receiver
let browser: Browser
let context: BrowserContext
let page: Page
let developer: Clerk
before(async () => {
  ;[gateway, receiver, browser] = await Promise.all([testGateway(), startReceiver(), launchBrowser()])
  await addEndpoint(gateway.pool, { url: receiver.url })
  developer = await sandboxDeveloper(gateway)
  context = await browser.newContext({ locale: 'en-GB', viewport: { width: 1400, height: 900 } })
  await context.addCookies([...developer.cookies].map(([name, value]) => ({ name, value, url: gateway.baseUrl })))
  page = await context.newPage()
  page.setDefaultTimeout(60_000)
  await page.goto(gateway.baseUrl)
})
after(async () => {
  await browser?.close()
  await receiver?.close()
})

const panel = (name: string) => page.locator(`#${name}`)
const shows = (name: string, text: string) => panel(name).getByText(text).first().waitFor()

describe('the console', () => {
  it('is at /, and tells how to begin', async () => {
    assert.equal(new URL(page.url()).pathname, '/office/console')
    assert.match(await panel('requests').innerText(), /curl http.*\/v1\/payments/)
  })

  it('shows a payment, its request and its notification without a reload', async () => {
    const { body } = await gateway.pay({ amount: '12.34', amuont: '1.00' })
    await shows('requests', body.id)
    await shows('requests', 'ignored: amuont: did you mean amount?')
    await shows('payments', 'DB 12.34 EUR')
    await shows('notifications', receiver.url)
    await gateway.refer(body.id, { paymentType: 'RF', amount: '2.34', currency: 'EUR' })
    await shows('payments', 'RF 2.34 EUR')
    assert.equal(await panel('payments').locator('li').count(), 1, 'the refund stands beside its payment')
  })

  it('shows why a request was refused', async () => {
    await gateway.pay({ currency: 'EURO', 'card.number': '4200000000000001' })
    await shows('requests', 'currency must be')
    const text = await panel('requests').innerText()
    assert.match(text, /400/)
    assert.match(text, /currency .*not "EURO"/)
    assert.doesNotMatch(await page.content(), /4200000000000001/)
  })

  it('keeps open what somebody opened', async () => {
    const request = panel('requests').locator('details').last()
    const name = await request.getAttribute('id')
    await request.locator('summary').click()
    const { body } = await gateway.pay({ amount: '5.00' })
    await shows('requests', body.id)
    assert.equal(await panel('requests').locator('details[open]').getAttribute('id'), name)
    assert.match(await panel('requests').locator('details[open]').innerText(), /card\.number=420000•••0000/)
  })

  it('sends a notification again', async () => {
    const before = receiver.received.length
    await panel('notifications').getByRole('button').first().click()
    await eventually(async () => receiver.received.length > before, 'it came again')
  })

  it('makes time pass', async () => {
    const offset = async () =>
      Number(
        (await gateway.pool.query('select clock_offset_ms as ms from entities where id = $1', [sandbox.merchantId])).rows[0].ms,
      )
    await page.getByRole('button', { name: '72h' }).click()
    await eventually(async () => (await offset()) === 72 * 3_600_000, 'the clock is moved')
    await page.locator('#clock').waitFor()
  })

  for (const colorScheme of ['light', 'dark'] as const)
    it(`nothing is wrong with it: ${colorScheme}`, async () => {
      await page.emulateMedia({ colorScheme })
      await page.goto(`${gateway.baseUrl}/office/console`)
      if (process.env.SCREENSHOTS)
        await page.screenshot({ path: `${process.env.SCREENSHOTS}/console-${colorScheme}.png`, fullPage: true })
      assert.deepEqual(await violations(page), [])
    })

  it('fits a phone', async () => {
    await page.setViewportSize({ width: 360, height: 740 })
    if (process.env.SCREENSHOTS) await page.screenshot({ path: `${process.env.SCREENSHOTS}/console-phone.png`, fullPage: true })
    assert.ok(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'))
    assert.deepEqual(await violations(page), [])
  })
})

describe('nobody else', () => {
  it('who is not signed in', async () => {
    for (const path of ['/', '/office/console', '/office/console/changes'])
      assert.ok([303, 401].includes((await visitor(gateway).ask(path)).status), path)
    assert.notEqual(
      (await visitor(gateway).post('/office/console/clock', { merchant: sandbox.merchantId, advance: '1d' })).status,
      303,
    )
  })

  it('whose role has no business here, and who acts for another merchant', async () => {
    assert.equal((await (await signedIn(gateway, 'viewer', [sandbox.merchantId])).ask('/office/console')).status, 403)
    const before = (await gateway.pool.query('select clock_offset_ms from entities order by id')).rows
    const stranger = await signedIn(gateway, 'developer', ['e9'.repeat(16)])
    assert.equal((await stranger.post('/office/console/clock', { merchant: sandbox.merchantId, advance: '1d' })).status, 303)
    assert.deepEqual((await gateway.pool.query('select clock_offset_ms from entities order by id')).rows, before)
    assert.ok(!(await stranger.ask('/office/console')).text.includes(`/office/payments/${sandbox.merchantId}`))
  })

  it('who was moved to another merchant while looking on', async () => {
    const support = await signedIn(gateway, 'support', [sandbox.merchantId])
    const cookie = [...support.cookies].map(pair => pair.join('=')).join('; ')
    const { body } = await fetch(`${gateway.baseUrl}/office/console/changes`, { headers: { Cookie: cookie } })
    const told: string[] = []
    let isOver = false
    const reading = (async () => {
      for await (const chunk of body!) told.push(Buffer.from(chunk).toString())
      isOver = true
    })()
    const before = (await gateway.pay({ merchantTransactionId: 'before the move' })).body.id
    await eventually(async () => told.join('').includes(before), 'it is told')
    await gateway.pool.query('update staff set entities = $2 where id = $1', [support.id, ['e9'.repeat(16)]])
    const after = (await gateway.pay({ merchantTransactionId: 'after the move' })).body.id
    await eventually(async () => isOver, 'the stream is over')
    await reading
    assert.ok(!told.join('').includes(after))
  })

  it('with a page of another site', async () => {
    const foreign = await developer.post(
      '/office/console/clock',
      { merchant: sandbox.merchantId, advance: '1d' },
      { Origin: 'https://evil.example' },
    )
    assert.equal(foreign.status, 403)
  })
})

it('a gateway stops though somebody looks on', async () => {
  await page.goto(`${gateway.baseUrl}/office/console`)
  await page.locator('#live', { hasText: 'live' }).waitFor()
  const began = performance.now()
  await gateway.stop()
  assert.ok(performance.now() - began < 20_000, 'it did not wait for the reader')
})
