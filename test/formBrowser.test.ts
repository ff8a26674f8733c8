// The payment form in a real browser: a shop of another site holds it, the shopper pays in it, and what is typed is nobody's but ours.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Browser } from 'playwright-core'
import { launchBrowser } from './support/chromium.ts'
import { eventually, sandbox, type TestGateway, testGateway } from './support/gateway.ts'
import {
  atShop,
  goodCard,
  makeCheckout,
  type Shop,
  type ShopPage,
  shopPage,
  startShop,
  typeCard,
  type Visit,
  visitShop,
} from './support/shop.ts'

let gateway: TestGateway
let browser: Browser
let shop: Shop
before(async () => {
  ;[gateway, browser, shop] = await Promise.all([testGateway(), launchBrowser({ isolated: true }), startShop()])
})
after(async () => {
  await browser?.close()
  shop?.stop()
  await gateway?.stop()
})

/** A checkout and a shop's page with its form. */
async function begin(
  page: Partial<ShopPage> = {},
  fields: Record<string, string> = {},
): Promise<Visit & { readonly id: string }> {
  const { id } = await makeCheckout(gateway, fields)
  return Object.assign(await visitShop(browser, shop.page(shopPage(gateway, { id, ...page }))), { id })
}

const payments = async (id: string) => {
  const { rows } = await gateway.pool.query(
    'select p.id from checkout_attempts a join payments p on p.id = a.subject_id where a.checkout_id = $1 order by a.attempt',
    [id.slice(0, 32)],
  )
  return rows.length
}

const errors = (form: Visit['form']) => form.locator('.error:not([hidden])').allTextContents()

describe('a card', () => {
  it('is paid, and the shopper is back at the shop with what it needs to read the status', async () => {
    const { page, form, problems, id, close } = await begin()
    await typeCard(form)
    await form.locator('#pay').click()
    const status = await atShop(gateway, { page }, id)
    assert.equal(status.result.code, '000.100.110')
    assert.deepEqual([status.amount, status.paymentBrand, status.card.last4Digits, status.ndc], ['92.00', 'VISA', '0000', id])
    assert.equal(new URL(page.url()).searchParams.get('order'), '7')
    assert.deepEqual(problems, [])
    await close()
  })

  it('that is declined leaves the form with advice, and the next one pays', async () => {
    const { page, form, id, picture, close } = await begin()
    await typeCard(form, { number: '4000000000000002' })
    await form.locator('#pay').click()
    const summary = form.locator('#summary')
    await summary.waitFor()
    assert.match((await summary.textContent())!, /card/)
    assert.doesNotMatch((await summary.textContent())!, /\d{3}\.\d{3}/)
    await picture('form-declined')
    await form.locator('#cardNumber').fill('5454545454545454')
    await form.locator('#pay').click()
    assert.equal((await atShop(gateway, { page }, id)).paymentBrand, 'MASTER')
    assert.equal(await payments(id), 2)
    await close()
  })

  it('with a challenge goes to its bank in the whole window and comes back', async () => {
    const { page, form, id, close } = await begin({}, { 'customParameters[3DS2_enrolled]': 'true' })
    await typeCard(form, { number: '4200000000000042' })
    await form.locator('#pay').click()
    await page.waitForSelector('#otp')
    await page.fill('#otp', '1234')
    await page.click('button[value=otp]')
    const status = await atShop(gateway, { page }, id)
    assert.equal(status.result.code, '000.100.110')
    await close()
  })

  it('is saved where the merchant offers it, and pays the next checkout with its code alone', async () => {
    const first = await begin({}, { createRegistration: 'true' })
    await typeCard(first.form)
    await first.form.locator('#pay').click()
    const { registrationId } = await atShop(gateway, first, first.id)
    assert.match(registrationId, /^[0-9a-f]{32}$/)
    await first.close()

    const { page, form, id, picture, close } = await begin(
      { options: '{ registrations: { requireCvv: true } }' },
      { 'registrations[0].id': registrationId },
    )
    assert.match((await form.locator('.chosen .name').textContent())!, /Visa ending in 0000\s+Expires 05\/34/)
    await picture('form-saved')
    await form.locator('#pay').click()
    assert.deepEqual(await errors(form), ['Enter the security code.'])
    await form.locator('.chosen input[name="card.cvv"]').fill('123')
    await form.locator('#pay').click()
    const status = await atShop(gateway, { page }, id)
    assert.deepEqual([status.result.code, status.registrationId], ['000.100.110', registrationId])
    await close()
  })

  it('is not saved when the shopper does not want it', async () => {
    const { page, form, id, close } = await begin({}, { createRegistration: 'true' })
    await typeCard(form)
    await form.locator('#createRegistration').uncheck()
    await form.locator('#pay').click()
    assert.equal((await atShop(gateway, { page }, id)).registrationId, undefined)
    await close()
  })

  it('is stored without a payment', async () => {
    const { body } = await gateway.post('/v1/checkouts', { entityId: sandbox.entityId, createRegistration: 'true' })
    const { page, form, close } = await visitShop(browser, shop.page(shopPage(gateway, { id: `${body.id}/registration` })))
    assert.equal(await form.locator('#pay').textContent(), 'Save card')
    await typeCard(form)
    await form.locator('#pay').click()
    const status = await atShop(gateway, { page }, body.id, 'registration')
    assert.equal(status.result.code, '000.100.110')
    assert.match(status.id, /^[0-9a-f]{32}$/)
    await close()
  })
})

describe('other brands', () => {
  it('the wallet is agreed to on its own page', async () => {
    const { page, form, id, picture, close } = await begin({ brands: 'VISA PAYPAL SOFORTUEBERWEISUNG' })
    await form.locator('.name', { hasText: 'PayPal' }).click()
    assert.equal(await form.locator('#pay').textContent(), 'Pay with PayPal')
    assert.equal(await form.locator('#cardNumber').isVisible(), false)
    await picture('form-brands')
    await form.locator('#pay').click()
    await page.click('button[value=agree]')
    assert.equal((await atShop(gateway, { page }, id)).paymentBrand, 'PAYPAL')
    await close()
  })

  it('a transfer is made at the bank, from a form of its own', async () => {
    const { page, form, id, close } = await begin({ brands: 'SOFORTUEBERWEISUNG' })
    assert.equal(await form.locator('input[type=radio]').count(), 0, 'one way to pay is no choice')
    await page.locator('.wpwl-container-onlineTransfer-SOFORTUEBERWEISUNG .wpwl-form-onlineTransfer').waitFor()
    await form.locator('#pay').click()
    await page.click('button[value=pay]')
    assert.equal((await atShop(gateway, { page }, id)).result.code, '000.100.110')
    await close()
  })

  it('several forms on a page are one frame each, and only what the channel takes is offered', async () => {
    const { id } = await makeCheckout(gateway)
    const html = shopPage(gateway, { id, brands: 'VISA NOSUCHBRAND' }).replace(
      '</main>',
      '<form action="/thanks?order=7" class="paymentWidgets">PAYPAL</form></main>',
    )
    const { page, close } = await visitShop(browser, shop.page(html))
    const [card, wallet] = [page.frameLocator('iframe >> nth=0'), page.frameLocator('iframe >> nth=1')]
    assert.equal(await card.locator('#marks .mark').count(), 1)
    assert.equal(await wallet.locator('#cardNumber').count(), 0)
    await wallet.locator('#pay').click()
    await page.click('button[value=agree]')
    await atShop(gateway, { page }, id)
    await close()
  })
})

describe('what is typed', () => {
  it('is grouped, understood and judged as it comes', async () => {
    const { page, form, picture, close } = await begin({ brands: 'VISA AMEX CARTEBLEUE' })
    const number = form.locator('#cardNumber')
    const marks = () =>
      form.locator('#marks .mark:not([hidden])').evaluateAll(all => all.map(one => one.getAttribute('aria-label')))
    await number.pressSequentially('42000000')
    assert.equal(await number.inputValue(), '4200 0000')
    assert.deepEqual(await marks(), ['Visa'])
    // A digit in the middle: the caret stays behind it.
    await number.press('Home')
    for (let step = 0; step < 2; step++) await number.press('ArrowRight')
    await number.press('5')
    assert.equal(await number.inputValue(), '4250 0000 0')
    assert.equal(await number.evaluate(input => (input as unknown as { selectionStart: number }).selectionStart), 3)
    // Backspace behind a space takes the digit before it.
    for (let step = 0; step < 2; step++) await number.press('ArrowRight')
    await number.press('Backspace')
    assert.equal(await number.inputValue(), '4250 0000')
    // A paste in Arabic digits with a mark that nobody sees.
    await number.fill('\u200e٣٧٧٧-٧٧٧٧٧٧٧٧٧٧٠')
    assert.equal(await number.inputValue(), '3777 777777 77770')
    assert.deepEqual(await marks(), ['American Express'])
    assert.equal(await form.locator('#cvv-hint').textContent(), '4 digits on the front of your card')
    await number.fill('4200000000000001')
    assert.deepEqual(await errors(form), ['Check the card number: it is not valid.'])
    await number.fill('4200000000000000')
    assert.deepEqual(await errors(form), [])
    assert.deepEqual(await form.locator('.chip:visible').allTextContents(), ['Visa', 'Carte Bleue'])
    await form.locator('#expiry').pressSequentially('520')
    await form.locator('#cvv').focus()
    assert.deepEqual(await errors(form), ['This card has expired. Use another card.'])
    await form.locator('#pay').click()
    assert.deepEqual(await errors(form), [
      'This card has expired. Use another card.',
      'Enter the security code.',
      'Enter the name that is on the card.',
    ])
    assert.equal(await form.locator(':focus').getAttribute('id'), 'expiry', 'the first wrong field')
    const wrong = form.locator('#expiry')
    assert.deepEqual(
      [
        await wrong.getAttribute('aria-invalid'),
        await wrong.getAttribute('aria-describedby'),
        await form.locator('#summary').getAttribute('role'),
      ],
      ['true', 'expiry-error', 'alert'],
    )
    await picture('form-errors')
    assert.equal(page.url().includes('/thanks'), false)
    await close()
  })

  it('and a text that comes beside a field does not push the button away from under its click', async () => {
    const { form, close } = await begin()
    await form.locator('#cardNumber').fill('4200')
    // Near its upper edge: the text of one line moves it by more.
    await form.locator('#pay').click({ position: { x: 30, y: 5 } })
    await form.getByText('Enter the security code.').waitFor()
    await close()
  })

  it('asks browsers for what they know, and the phone for its number pad', async () => {
    const { form, close } = await begin()
    const seen = await form
      .locator('input.text')
      .evaluateAll(all =>
        all.map(one =>
          ['id', 'autocomplete', 'inputmode', 'dir', 'type', 'maxlength'].map(name => one.getAttribute(name) ?? '').join(' '),
        ),
      )
    assert.deepEqual(seen, [
      'cardNumber cc-number numeric ltr  ',
      'expiry cc-exp numeric ltr  ',
      'cvv cc-csc numeric ltr  ',
      'cardHolder cc-name    ',
    ])
    await close()
  })

  it('by the brand that the shopper chooses of two on the card', async () => {
    const { page, form, id, close } = await begin({ brands: 'VISA CARTEBLEUE' })
    await typeCard(form)
    await form.getByText('Carte Bleue').click()
    await form.locator('#pay').click()
    assert.equal((await atShop(gateway, { page }, id)).paymentBrand, 'CARTEBLEUE')
    await close()
  })
})

describe('nothing is paid twice', () => {
  it('by a second click, nor by Enter beside it', async () => {
    const { page, form, id, close } = await begin()
    let asked = 0
    const seen = Promise.withResolvers<void>()
    await page.route(/\/payment$/, async route => {
      asked++
      await seen.promise
      await route.continue()
    })
    await typeCard(form)
    await form.locator('#pay').dblclick()
    await form.locator('#pay').press('Enter')
    assert.equal(await form.locator('#progress').textContent(), 'Processing your payment…')
    seen.resolve()
    assert.equal((await atShop(gateway, { page }, id)).result.code, '000.100.110')
    assert.deepEqual([asked, await payments(id)], [1, 1])
    await close()
  })

  it('in a second tab', async () => {
    const first = await begin()
    const second = await visitShop(browser, shop.page(shopPage(gateway, { id: first.id })))
    await typeCard(first.form)
    await typeCard(second.form, { number: '5454545454545454' })
    await Promise.all([first.form.locator('#pay').click(), second.form.locator('#pay').click()])
    await first.page.waitForURL(/\/thanks/)
    await second.page.waitForURL(/\/thanks/)
    assert.equal(await payments(first.id), 1)
    await Promise.all([first.close(), second.close()])
  })

  it('when the answer is lost: the form asks, and sends the shopper to the shop', async () => {
    const { page, form, id, close } = await begin()
    await page.route(/\/payment$/, async route => {
      await route.fetch()
      await route.abort()
    })
    await typeCard(form)
    await form.locator('#pay').click()
    assert.equal((await atShop(gateway, { page }, id)).result.code, '000.100.110')
    assert.equal(await payments(id), 1)
    await close()
  })

  it('when the request is lost: the shopper is told to look first', async () => {
    const { page, form, id, close } = await begin()
    await page.route(/\/payment$/, route => route.abort())
    await typeCard(form)
    await form.locator('#pay').click()
    await form.getByText('We do not know yet').waitFor()
    assert.equal(await payments(id), 0)
    await page.unroute(/\/payment$/)
    await form.locator('#pay').click()
    await atShop(gateway, { page }, id)
    await close()
  })

  it('without a connection nothing is sent', async () => {
    const { page, form, id, close } = await begin()
    await typeCard(form)
    await page.context().setOffline(true)
    await form.locator('#pay').click()
    await form.getByText('You are offline').waitFor()
    await page.context().setOffline(false)
    await form.locator('#summary').waitFor({ state: 'hidden' })
    await form.locator('#pay').click()
    await atShop(gateway, { page }, id)
    await close()
  })
})

describe('a form whose time is over', () => {
  it('says so, counts down before, and leads back to the shop', async () => {
    const { id } = await makeCheckout(gateway)
    const context = await browser.newContext({ locale: 'en-US' })
    const page = await context.newPage()
    await page.clock.install()
    await page.goto(shop.page(shopPage(gateway, { id, options: '{ onError: error => document.title = error.name }' })))
    const form = page.frameLocator('iframe')
    await form.locator('#cardNumber').waitFor()
    assert.equal(await form.locator('#left').isVisible(), false)
    await page.clock.fastForward('25:30')
    await form.getByText('Time left to pay: 4:').waitFor()
    await page.clock.fastForward('05:00')
    await form.getByText('This payment page is closed').waitFor()
    assert.equal(await form.locator('#cardNumber').count(), 0)
    assert.equal(await page.title(), 'InvalidCheckoutIdError')
    await form.getByText('Back to the shop').click()
    await page.waitForURL(/\/thanks\?order=7&id=/)
    await context.close()
  })

  it('is never told from one that was paid, or never was', async () => {
    const paid = await begin()
    await typeCard(paid.form)
    await paid.form.locator('#pay').click()
    await atShop(gateway, paid, paid.id)
    await paid.close()
    for (const id of [paid.id, `${'0'.repeat(32)}.abc`, 'nothing']) {
      const { form, close } = await visitShop(browser, shop.page(shopPage(gateway, { id })))
      await form.getByText('This payment page is closed').waitFor()
      assert.equal(await form.locator('input').count(), 0)
      await close()
    }
  })
})

describe('the merchant’s page', () => {
  it('cannot read what is typed: not the document, not the keys, not the messages, not by asking for the frame', async () => {
    const head = `<script>
      window.caught = []
      for (const type of ['message', 'keydown', 'input', 'paste', 'submit', 'change'])
        addEventListener(type, event => caught.push(type + ' ' + JSON.stringify(event.data ?? event.key ?? null)), true)
      const post = MessagePort.prototype.postMessage
      MessagePort.prototype.postMessage = function (...all) { caught.push('said ' + JSON.stringify(all[0])); return post.apply(this, all) }
      const { set } = Object.getOwnPropertyDescriptor(MessagePort.prototype, 'onmessage')
      Object.defineProperty(MessagePort.prototype, 'onmessage', { set(hear) {
        set.call(this, event => { caught.push('heard ' + JSON.stringify(event.data)); hear(event) }) } })
    </script>`
    const { page, form, id, close } = await begin({
      head,
      options:
        '{ onBeforeSubmitCard: event => { caught.push("form " + JSON.stringify([...new FormData(event.target)])); return false } }',
    })
    await typeCard(form, { number: '4111111111111111', cvv: '987', holder: 'Josephine Doe' })
    await form.locator('#pay').click()
    const caught = await eventually(async () => {
      const all = (await page.evaluate('caught')) as string[]
      return all.some(one => one.startsWith('form ')) && all
    }, 'the shop is asked before the payment')
    assert.ok(caught.some(one => one.startsWith('heard {"kind":"before"')))
    for (const secret of ['4111', '1111', '987', '0534', '05 / 34', 'Josephine'])
      assert.doesNotMatch(caught.join('\n'), new RegExp(`\\b${secret}\\b`), `${secret} was heard`)
    const tried = (await page.evaluate(`(async () => {
      const frame = document.querySelector('iframe')
      const attempt = async read => { try { return String(await read()) } catch (error) { return error.name } }
      return [
        await attempt(() => frame.contentDocument),
        await attempt(() => frame.contentWindow.document),
        await attempt(() => frame.contentWindow.fetch),
        await attempt(() => frames[0].name),
        await attempt(async () => (await fetch(frame.src)).text()),
      ]
    })()`)) as string[]
    assert.deepEqual(tried, ['null', 'SecurityError', 'SecurityError', 'SecurityError', 'TypeError'])
    assert.equal(await payments(id), 0, 'the shop held the payment back')
    await close()
  })

  it('alone speaks with the form: a page that opened it is not heard, and nothing that it is given becomes markup', async () => {
    const { id } = await makeCheckout(gateway, { shopperResultUrl: `${shop.origin}/thanks?a=</script><h1>x</h1>` })
    const address = `${gateway.baseUrl}/v1/form/${id}`
    const { page, close } = await visitShop(
      browser,
      shop.page(`<button onclick="other = window.open('${address}')">Open</button>`),
    )
    const [opened] = await Promise.all([page.waitForEvent('popup'), page.click('button')])
    await opened.locator('#pay').waitFor()
    assert.equal(await opened.locator('h1').count(), 0)
    await page.evaluate(`(() => {
      window.heard = []
      const { port1, port2 } = new MessageChannel()
      port1.onmessage = event => heard.push(event.data)
      other.postMessage('tollgate form 1', '*', [port2])
      port1.postMessage({ kind: 'options', flags: { maskCvv: 'true' }, texts: { submit: 'Taken over' }, variables: {}, shopperResultUrl: '' })
    })()`)
    await opened.locator('#cardNumber').fill('4200000000000000')
    await opened.locator('#cvv').focus()
    assert.deepEqual(await page.evaluate('heard'), [])
    assert.equal(await opened.locator('#pay').textContent(), 'Pay €92.00')
    await close()
  })

  it('that is not of a channel’s sites gets no form, and another page cannot speak to it', async () => {
    await gateway.pool.query(`update entities set settings = settings || $1 where id = $2`, [
      { formOrigins: ['https://shop.example'] },
      sandbox.lenientEntityId,
    ])
    await gateway.restart()
    const { id } = await makeCheckout(gateway, { entityId: sandbox.lenientEntityId })
    const { headers } = await fetch(`${gateway.baseUrl}/v1/form/${id}`)
    assert.match(headers.get('content-security-policy')!, /frame-ancestors https:\/\/shop\.example$/)
    const { page, problems, close } = await visitShop(browser, shop.page(shopPage(gateway, { id })))
    await eventually(
      async () => problems.some(text => /frame-ancestors|Refused to frame|Framing/.test(text)),
      'the browser refuses the frame',
    )
    assert.equal(
      await page
        .frames()[1]
        ?.$('#cardNumber')
        .catch(() => null),
      null,
    )
    await close()
  })

  it('may insist on the bytes of the script, and they stay the same when the gateway is renewed', async () => {
    const { id, integrity } = await makeCheckout(gateway, { integrity: 'true' })
    const { page, form, close } = await visitShop(browser, shop.page(shopPage(gateway, { id, integrity })))
    await typeCard(form)
    await form.locator('#pay').click()
    await atShop(gateway, { page }, id)
    await close()
    // A build that was served before this one: its checkouts go on with it, others do not.
    const older = '/* older */ window.older = true'
    const hash = '0123456789abcdef0123456789abcdef'
    await gateway.pool.query(
      `insert into form_scripts (hash, name, content, made_at) values ($1, 'paymentWidgets.js', $2, now())`,
      [hash, older],
    )
    const pinned = await makeCheckout(gateway, { integrity: 'true' })
    await gateway.pool.query('update checkouts set script_build = $1 where id = $2', [hash, pinned.id.slice(0, 32)])
    const script = async (id: string) => (await fetch(`${gateway.baseUrl}/v1/paymentWidgets.js?checkoutId=${id}`)).text()
    assert.equal(await script(pinned.id), older)
    assert.notEqual(await script(id), older)
    const refused = await visitShop(browser, shop.page(shopPage(gateway, { id: pinned.id, integrity })))
    await eventually(async () => refused.problems.some(text => /integrity/.test(text)), 'the browser refuses other bytes')
    assert.equal(await refused.page.locator('iframe').count(), 0)
    await refused.close()
  })
})

describe('a page of our own', () => {
  it('pays for shops that have no form, and leads back to them', async () => {
    const { id } = await makeCheckout(gateway, { shopperResultUrl: `${shop.origin}/thanks?order=9` })
    const { page, problems, picture, close } = await visitShop(browser, `${gateway.baseUrl}/pay/${id}`)
    await picture('pay')
    await typeCard(page, goodCard)
    await page.locator('#pay').click()
    assert.equal((await atShop(gateway, { page }, id)).result.code, '000.100.110')
    assert.deepEqual(problems, [])
    await close()
  })

  it('thanks where there is no shop to go back to, and says what to do when it did not work', async () => {
    const { id } = await makeCheckout(gateway)
    const { page, picture, close } = await visitShop(browser, `${gateway.baseUrl}/pay/${id}`)
    await typeCard(page, { number: '4000000000000002' })
    await page.locator('#pay').click()
    await page.locator('#summary').waitFor()
    await typeCard(page)
    await page.locator('#pay').click()
    await page.getByText('Thank you').waitFor()
    await picture('pay-thanks')
    assert.equal(await page.locator('#back').isVisible(), false)
    await close()
  })

  it('says without scripts that it needs them, and stands in nobody’s frame', async () => {
    const { id } = await makeCheckout(gateway)
    const { page, close } = await visitShop(browser, `${gateway.baseUrl}/pay/${id}`, { javaScriptEnabled: false })
    assert.ok(await page.locator('.noscript').isVisible())
    assert.equal(await page.locator('#pay').isVisible(), false)
    const { headers } = await fetch(`${gateway.baseUrl}/pay/${id}`)
    assert.match(headers.get('content-security-policy')!, /frame-ancestors 'none'/)
    await close()
  })

  it('has its link as a code', async () => {
    const { id } = await makeCheckout(gateway)
    const { page, problems, picture, close } = await visitShop(browser, `${gateway.baseUrl}/pay/${id}/code`)
    await picture('pay-code')
    assert.equal(await page.locator('.link').textContent(), `${gateway.baseUrl}/pay/${id}`)
    assert.ok((await page.locator('.code svg').boundingBox())!.width > 150)
    await page.getByText('Open the payment page').click()
    await page.locator('#cardNumber').waitFor()
    assert.deepEqual(problems, [])
    await close()
  })
})
