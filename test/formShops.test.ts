// Shops as they are: a page written for the interface long ago works unchanged, and every option does what docs/hosted-form.md says.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import type { Browser, Frame } from 'playwright-core'
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

async function begin(
  page: Partial<ShopPage> = {},
  fields: Record<string, string> = {},
): Promise<Visit & { readonly id: string; readonly frame: Frame }> {
  const { id } = await makeCheckout(gateway, fields)
  const visit = await visitShop(browser, shop.page(shopPage(gateway, { id, ...page })))
  await visit.form.locator('html.ready').waitFor()
  return Object.assign(visit, { id, frame: visit.page.frames()[1]! })
}

it('a page of long ago works unchanged', async () => {
  const { id } = await makeCheckout(gateway)
  const url = shop.page(`<!DOCTYPE html>
<html>
<head>
<title>Kasse</title>
<style>
  body { background-color: #f6f6f5; }
  .wpwl-form-card { background: white; border: 1px solid rgb(1, 2, 3); }
  .wpwl-button-pay { background: green; }
  .customInput { margin: 5px; }
</style>
</head>
<body>
<script>
  var seen = []
  var wpwlOptions = {
    style: "card",
    locale: "de",
    brandDetection: true,
    labels: { cardNumber: "Nummer Ihrer Karte", cvv: "Prüfziffer", submit: "Jetzt kaufen" },
    errorMessages: { cardNumberError: "Diese Nummer geht nicht" },
    onReady: function (containers) {
      seen.push("ready " + JSON.stringify(containers))
      var button = document.querySelector("form.wpwl-form-card .wpwl-button")
      var box = document.createElement("div")
      box.className = "customInput"
      box.innerHTML = '<label><input type="checkbox" name="createRegistration" value="true"> Karte merken</label>'
      button.parentNode.insertBefore(box, button)
    },
    onDetectBrand: function (brands, active) { seen.push("detected " + brands.join() + " " + active) },
    onChangeBrand: function (brand) { seen.push("brand " + brand) },
    onBlurCardNumber: function (isValid) { seen.push("number " + isValid) },
    onBlurCardHolder: function (isValid) { seen.push("holder " + isValid) },
    onBlurSecurityCode: function (isValid) { seen.push("code " + isValid) },
    onBeforeSubmitCard: function (e) { seen.push("before"); return document.getElementById("terms").checked },
    onAfterSubmit: function () { localStorage.setItem("after", "true"); return true },
    onError: function (error) { seen.push("error " + error.name) }
  }
</script>
<script src="${gateway.baseUrl}/v1/paymentWidgets.js?checkoutId=${id}"></script>
<label><input type="checkbox" id="terms"> Ich nehme die Bedingungen an</label>
<form action="${shop.origin}/thanks?order=7" class="paymentWidgets">VISA MASTER AMEX
  <input type="hidden" name="customParameters[SHOPPER_newsletter]" value="yes">
</form>
</body>
</html>`)
  const { page, form, problems, picture, close } = await visitShop(browser, url)
  await page.locator('.customInput').waitFor()
  // What old styles and scripts look for.
  const found = await page.evaluate(`[
    'div.wpwl-container.wpwl-container-card > form.wpwl-form.wpwl-form-card.wpwl-clearfix[method=POST][target=cnpIframe]',
    '.wpwl-group.wpwl-group-brand .wpwl-wrapper-brand select.wpwl-control-brand[name=paymentBrand] option[value=MASTER]',
    '.wpwl-group-submit .wpwl-wrapper-submit button.wpwl-button.wpwl-button-pay[name=pay]',
    '.wpwl-brand.wpwl-brand-card',
  ].filter(one => document.querySelector(one) === null)`)
  assert.deepEqual(found, [])
  assert.equal(await page.locator('.wpwl-form-card').getAttribute('action'), `${gateway.baseUrl}/v1/checkouts/${id}/payment`)
  assert.equal(await page.evaluate(`getComputedStyle(document.querySelector('.wpwl-form-card')).borderTopColor`), 'rgb(1, 2, 3)')
  assert.deepEqual(await page.evaluate('[typeof wpwl.executePayment, typeof wpwl.unload, typeof wpwl.cacheVersion]'), [
    'function',
    'function',
    'string',
  ])
  assert.equal(await form.locator('#cardNumber-label').textContent(), 'Nummer Ihrer Karte')
  assert.equal(await form.locator('#pay').textContent(), 'Jetzt kaufen')
  await picture('old-shop')

  await form.locator('#cardNumber').fill('4200000000000001')
  await form.locator('#cvv').focus()
  assert.equal(await form.locator('#cardNumber-error').textContent(), 'Diese Nummer geht nicht')
  await typeCard(form)
  await form.locator('#pay').click()
  // The shop wants its box to be ticked first; the payment waits for it.
  await eventually(() => page.evaluate(`seen.includes('before')`) as Promise<boolean>, 'the shop is asked')
  await page.check('#terms')
  await page.check('input[name=createRegistration]')
  const seen = (await page.evaluate('seen')) as string[]
  await page.evaluate(`document.querySelector('.wpwl-button-pay').click()`)
  const status = await atShop(gateway, { page }, id)
  assert.equal(status.result.code, '000.100.110')
  assert.deepEqual(status.customParameters, { SHOPPER_newsletter: 'yes' })
  assert.match(status.registrationId, /^[0-9a-f]{32}$/)
  assert.equal(await page.evaluate(`localStorage.getItem('after')`), 'true')
  assert.deepEqual(
    seen.filter(one => !/^holder|^code/.test(one)),
    [
      'ready [{"containerKey":"card","ccMethods":["VISA","MASTER","AMEX"]}]',
      'detected VISA VISA',
      'brand VISA',
      'number false',
      'number true',
      'before',
    ],
  )
  assert.deepEqual(problems, [])
  await close()
})

describe('an option', () => {
  it('changes what is seen', async () => {
    const { form, frame, problems, close } = await begin({
      options: `{ style: "plain", showLabels: false, showPlaceholders: false, showCVVHint: false, maskCvv: true, autofocus: true, theme: "dark",
        labels: { cardHolder: "<b>Name</b>", expiryDate: "Good until", submit: "Buy" } }`,
    })
    await form.locator('#cardNumber:focus').waitFor()
    const seen = await frame.evaluate(`[
      getComputedStyle(document.querySelector('main')).borderTopWidth,
      document.getElementById('cardNumber-label').offsetWidth,
      document.querySelectorAll('input[placeholder]').length,
      document.getElementById('cvv-hint').offsetWidth,
      document.getElementById('cvv').type,
      getComputedStyle(document.documentElement).colorScheme,
      document.getElementById('cardHolder-label').textContent,
      document.getElementById('expiry-label').textContent,
      document.getElementById('pay').textContent,
    ]`)
    assert.deepEqual(seen, ['0px', 1, 0, 0, 'password', 'dark', '<b>Name</b>', 'Good until', 'Buy'])
    assert.deepEqual(problems, [])
    await close()
  })

  it('changes what is asked', async () => {
    const { form, close } = await begin({
      options: `{ numberFormatting: false, disableCardExpiryDateValidation: true, allowEmptyCvv: true, allowEmptyCardHolderName: true,
        disableSubmitOnEnter: true, labels: { cardHolderPlaceholder: "As on the card" } }`,
    })
    const wrong = () => form.locator('.error:not([hidden])').allTextContents()
    assert.equal(await form.locator('#cardHolder').getAttribute('placeholder'), 'As on the card')
    await form.locator('#cardNumber').press('Enter')
    await form.locator('#cardNumber').pressSequentially('42000000')
    assert.equal(await form.locator('#cardNumber').inputValue(), '42000000')
    await form.locator('#expiry').fill('0518')
    assert.deepEqual(await wrong(), ['The card number is incomplete.'], 'Enter sent nothing')
    await form.locator('#pay').click()
    assert.deepEqual(await wrong(), ['The card number is incomplete.'])
    await close()
  })

  it('brandDetection: the shopper says the brand where the shop wants that, and no code where it does not', async () => {
    const { page, form, id, close } = await begin({ options: '{ brandDetection: false, requireCvv: false }' })
    assert.deepEqual(await form.locator('.chip:visible').allTextContents(), ['Visa', 'Mastercard', 'American Express'])
    await typeCard(form)
    await form.locator('#pay').click()
    assert.equal(await form.locator('#cardNumber-error').textContent(), 'Choose the card brand.')
    await form.locator('.chip', { hasText: 'Visa' }).click()
    await form.locator('#cvv').fill('')
    await form.locator('#pay').click()
    assert.equal(await form.locator('#cvv-error').isVisible(), false)
    await form.locator('#cvv').fill('123')
    await form.locator('#pay').click()
    await atShop(gateway, { page }, id)
    await close()
  })

  it('brandDetectionPriority says which of two brands stands first', async () => {
    const { page, form, id, close } = await begin({
      brands: 'VISAELECTRON CARTEBLEUE',
      options: '{ brandDetectionPriority: ["CARTEBLEUE"] }',
    })
    await typeCard(form)
    await form.locator('#pay').click()
    assert.equal((await atShop(gateway, { page }, id)).paymentBrand, 'CARTEBLEUE')
    await close()
  })

  it('forceCardHolderEqualsBillingName: the name that is known is not asked for again', async () => {
    const { form, close } = await begin(
      { options: '{ forceCardHolderEqualsBillingName: true }' },
      { 'customer.givenName': 'Jane', 'customer.surname': 'Jones' },
    )
    assert.equal(await form.locator('#cardHolder').inputValue(), 'Jane Jones')
    assert.notEqual(await form.locator('#cardHolder').getAttribute('readonly'), null)
    await close()
  })

  it('onBeforeSubmitCardPromise holds a payment back until it is kept, or for good', async () => {
    const { page, form, id, close } = await begin({
      options:
        '{ tries: 0, onBeforeSubmitCardPromise() { return new Promise((go, stop) => { setTimeout(++this.tries === 1 ? stop : go, 50); document.title = "asked " + this.tries }) } }',
    })
    await typeCard(form)
    await form.locator('#pay').click()
    await eventually(
      async () => (await page.title()) === 'asked 1' && (await form.locator('#pay').getAttribute('aria-disabled')) === 'false',
      'the first is refused',
    )
    await form.locator('#pay').click()
    await atShop(gateway, { page }, id)
    await close()
  })

  it('registrations: saved cards come alone, the others at a click, or not at all', async () => {
    const saved = await gateway.pay({ createRegistration: 'true' })
    const fields = { 'registrations[0].id': saved.body.registrationId }
    const first = await begin({ options: '{ registrations: { requireCvv: true, hideInitialPaymentForms: true } }' }, fields)
    assert.equal(await first.form.locator('.chosen input[name="card.cvv"]').isVisible(), true)
    assert.equal(await first.form.locator('#others').isVisible(), false)
    await first.form.getByText('Use another payment method').click()
    assert.equal(await first.form.locator('#cardNumber').isVisible(), true)
    await first.close()
    const second = await begin({ options: '{ showOneClickWidget: false }' }, fields)
    assert.equal(await second.form.locator('#saved').count(), 0)
    await typeCard(second.form)
    await second.form.locator('#pay').click()
    await atShop(gateway, second, second.id)
    await second.close()
  })
})

describe('the look of a shop', () => {
  it('comes from its own style sheet, by names that are allowed and values that look right', async () => {
    const { frame, close } = await begin({
      head: `<style>:root { --wpwl-color-primary: #0b6b3a; --wpwl-border-radius: 2px; --wpwl-color-text: red; --wpwl-font-family: url(https://x.example/f); --evil: 1px }</style>`,
    })
    assert.deepEqual(
      await frame.evaluate(`(() => {
        const button = getComputedStyle(document.getElementById('pay')), root = document.documentElement.style
        return [button.backgroundColor, button.color, button.borderRadius, root.getPropertyValue('--wpwl-color-text'), root.getPropertyValue('--wpwl-font-family'), root.getPropertyValue('--evil')]
      })()`),
      ['rgb(11, 107, 58)', 'rgb(255, 255, 255)', '2px', '', '', ''],
    )
    await close()
  })

  it('does not move what stands below when the form is there', async () => {
    const { page, form, close } = await begin()
    const height = async () => (await page.locator('iframe').boundingBox())!.height
    await eventually(
      async () => Math.abs((await height()) - (await form.locator('main').boundingBox())!.height) < 2,
      'the frame is as high as the form',
    )
    const low = await height()
    await form.locator('#pay').click()
    await eventually(async () => (await height()) > low + 40, 'errors have room')
    await close()
  })

  it('comes from the channel: name, logo and colour, with words that can be read on it; the name of the request wins', async () => {
    const pixel =
      'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
    await gateway.pool.query('update entities set settings = settings || $1 where id = $2', [
      { shopName: 'Corner Shop', shopColour: '#ffd400', shopLogo: pixel },
      sandbox.lenientEntityId,
    ])
    await gateway.restart()
    for (const [name, fields] of [
      ['Corner Shop', {}],
      ['Shop of Today', { 'merchant.name': 'Shop of Today' }],
    ] as const) {
      const { id } = await makeCheckout(gateway, { entityId: sandbox.lenientEntityId, ...fields })
      const { page, problems, close } = await visitShop(browser, `${gateway.baseUrl}/pay/${id}`)
      assert.equal(await page.locator('header .shop').textContent(), name)
      assert.deepEqual(
        await page.evaluate(`[
          getComputedStyle(document.getElementById('pay')).backgroundColor,
          getComputedStyle(document.getElementById('pay')).color,
          document.querySelector('header img').naturalWidth,
        ]`),
        ['rgb(255, 212, 0)', 'rgb(0, 0, 0)', 1],
      )
      assert.deepEqual(problems, [])
      await close()
    }
    const { page, close } = await visitShop(browser, `${gateway.baseUrl}/pay/nothing`)
    assert.equal(await page.title(), 'This payment page is closed')
    await close()
  })
})

describe('scripts of a shop', () => {
  it('pay by wpwl.executePayment, take the form away and put it there again', async () => {
    const { page, form, id, close } = await begin()
    await page.evaluate('wpwl.unload()')
    assert.deepEqual([await page.locator('iframe').count(), await page.locator('form.paymentWidgets').count()], [0, 1])
    await page.addScriptTag({ url: `${gateway.baseUrl}/v1/paymentWidgets.js?checkoutId=${id}` })
    await typeCard(form, goodCard)
    await page.evaluate(`wpwl.executePayment('wpwl-container-card')`)
    await atShop(gateway, { page }, id)
    await close()
  })

  it('hear why a form cannot be had, or that it does not answer', async () => {
    const names: string[] = []
    const open = await makeCheckout(gateway)
    for (const [id, brands] of [
      ['nothing', 'VISA'],
      ['', 'VISA'],
      [open.id, 'NOSUCHBRAND'],
    ] as const) {
      const html = shopPage(gateway, { id, brands, options: '{ onError: error => document.title = error.name }' })
      const { page, close } = await visitShop(browser, shop.page(html))
      await eventually(async () => (await page.title()) !== 'Shop', 'the shop hears of it')
      names.push(await page.title())
      await close()
    }
    assert.deepEqual(names, ['InvalidCheckoutIdError', 'InvalidCheckoutIdError', 'WidgetError'])
    // A frame that never comes: a proxy or a policy in between.
    const { id } = await makeCheckout(gateway)
    const page = await browser.newPage()
    await page.clock.install()
    await page.route(/\/v1\/form\//, route => route.abort())
    await page.goto(shop.page(shopPage(gateway, { id, options: '{ onError: error => document.title = error.name }' })))
    await page.locator('iframe').waitFor()
    await page.clock.fastForward(21_000)
    await page.waitForFunction(`document.title === 'PciIframeCommunicationError'`)
    await page.close()
  })
})

it('the policy of docs/hosted-form.md is enough for a shop’s page', async () => {
  const document = readFileSync(new URL('../docs/hosted-form.md', import.meta.url), 'utf8')
  const policy = /^ {4}Content-Security-Policy: (.*)$/m.exec(document)![1]!.replaceAll('https://pay.example', gateway.baseUrl)
  const { id, integrity } = await makeCheckout(gateway, { integrity: 'true' })
  const html = shopPage(gateway, { id, integrity }).replace(/<script>.*?<\/script>/s, '')
  const { page, form, problems, close } = await visitShop(browser, shop.page(html, { 'Content-Security-Policy': policy }))
  await typeCard(form)
  await form.locator('#pay').click()
  await atShop(gateway, { page }, id)
  assert.deepEqual(problems, [])
  await close()
})
