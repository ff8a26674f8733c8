// How the form looks and how it is used without eyes or mouse: every language at every width, light and dark, by keyboard, and what axe-core finds.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { after, before, describe, it } from 'node:test'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { languages } from '../src/pages/languages/languages.ts'
import { launchBrowser } from './support/chromium.ts'
import { type TestGateway, testGateway, visa } from './support/gateway.ts'
import { makeCheckout, type Shop, shopPage, startShop, typeCard, visitShop } from './support/shop.ts'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

let gateway: TestGateway
let browser: Browser
let shop: Shop
let context: BrowserContext
let page: Page
/** Checkouts with all that a form can have, and with a card alone. */
let full: string
let plain: string
before(async () => {
  ;[gateway, browser, shop] = await Promise.all([testGateway(), launchBrowser({ isolated: true }), startShop()])
  const saved = await gateway.pay({ createRegistration: 'true' })
  const other = await gateway.pay({
    ...visa,
    createRegistration: 'true',
    'card.number': '377777777777770',
    'card.cvv': '1234',
    paymentBrand: 'AMEX',
  })
  full = (
    await makeCheckout(gateway, {
      createRegistration: 'true',
      'registrations[0].id': saved.body.registrationId,
      'registrations[1].id': other.body.registrationId,
      amount: '1234567.89',
    })
  ).id
  plain = (await makeCheckout(gateway)).id
  context = await browser.newContext({ locale: 'en-US' })
  page = await context.newPage()
  page.setDefaultTimeout(60_000)
})
after(async () => {
  await browser?.close()
  shop?.stop()
  await gateway?.stop()
})

const picture = async (name: string) =>
  process.env.SCREENSHOTS && (await page.screenshot({ path: `${process.env.SCREENSHOTS}/${name}.png`, fullPage: true }))

const styleOf = (id: string, property: string) => page.evaluate(`getComputedStyle(document.getElementById('${id}')).${property}`)

/** What sticks out, is cut off, or stands there without words. */
const faults = `(() => {
  const found = []
  if (document.documentElement.scrollWidth > innerWidth) found.push('the page is wider than its window')
  for (const one of document.querySelectorAll('body *')) {
    const box = one.getBoundingClientRect()
    if (box.width === 0 || box.height === 0 || one.closest('.unseen, svg, script')) continue
    const name = one.tagName + '#' + one.id + '.' + one.className
    if (box.left < -0.5 || box.right > innerWidth + 0.5) found.push(name + ' sticks out')
    if (one.tagName !== 'INPUT' && one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).display !== 'inline') found.push(name + ' is cut off')
  }
  for (const one of document.querySelectorAll('label, button, .button, h1, h2, legend, .error:not([hidden])'))
    if (one.checkVisibility() && one.textContent.trim() === '') found.push(one.tagName + '#' + one.id + ' is empty')
  if (/\\{\\w+\\}|undefined|NaN/.test(document.body.innerText)) found.push('a slot is not filled: ' + document.body.innerText)
  return found
})()`

describe('every language', () => {
  for (const [code, { tag, direction, texts }] of languages)
    it(`${code} has all its words and room for them at 320, 360 and 1280`, async () => {
      await page.setViewportSize({ width: 320, height: 700 })
      await page.goto(`${gateway.baseUrl}/v1/form/${full}?locale=${code}&brands=VISA MASTER CARTEBLEUE PAYPAL SOFORTUEBERWEISUNG`)
      assert.deepEqual(await page.evaluate(`[document.documentElement.lang, document.documentElement.dir]`), [tag, direction])
      assert.deepEqual(await page.evaluate(faults), [])
      await page.locator('[data-value=card] .head').click()
      await page.locator('#cardNumber').fill('4200')
      await page.locator('#pay').click()
      await page.locator('#cvv-error:not([hidden])').waitFor()
      // Too narrow for two beside each other.
      assert.equal((await page.locator('#cvv').boundingBox())!.x, (await page.locator('#expiry').boundingBox())!.x)
      for (const width of [320, 360, 1280]) {
        await page.setViewportSize({ width, height: 700 })
        assert.deepEqual(await page.evaluate(faults), [], `at ${width}`)
        await picture(`language-${code}-${width}`)
      }
      assert.equal(await page.locator('#cvv-error').textContent(), texts.cvvMissing)
      assert.equal(await styleOf('cardNumber', 'direction'), 'ltr')
      assert.doesNotMatch((await page.locator('#pay-text').textContent())!, /[٠-٩۰-۹]/)
      await page.setViewportSize({ width: 320, height: 700 })
      await page.goto(`${gateway.baseUrl}/pay/${full}?locale=${code}`)
      assert.deepEqual(await page.evaluate(faults), [], 'the page of our own')
    })

  it('a shop says which, in its own way or ours', async () => {
    for (const [locale, lang] of [
      ['de-AT', 'de'],
      ['sv', 'sv'],
      ['se', 'sv'],
      ['cn', 'zh'],
      ['tlh', 'en'],
    ] as const) {
      const { form, close } = await visitShop(
        browser,
        shop.page(shopPage(gateway, { id: plain, options: `{ locale: '${locale}' }` })),
      )
      await form.locator('#pay').waitFor()
      const found = await form.locator('html').getAttribute('lang')
      assert.ok(found!.startsWith(lang), `${locale} is ${found}`)
      await close()
    }
  })
})

describe('in Arabic', () => {
  it('numbers stay left to right, at the side where the reader looks', async () => {
    await page.setViewportSize({ width: 500, height: 900 })
    await page.goto(`${gateway.baseUrl}/v1/form/${plain}?locale=ar`)
    await typeCard(page, { number: '4200 0000 0000 0042' })
    const number = page.locator('#cardNumber')
    assert.deepEqual([await styleOf('cardNumber', 'direction'), await styleOf('cardNumber', 'textAlign')], ['ltr', 'right'])
    assert.equal(await number.inputValue(), '4200 0000 0000 0042')
    assert.equal(await page.locator('#expiry').inputValue(), '05 / 34')
    const [label, input, marks] = await Promise.all([
      page.evaluate(
        `(() => { const range = document.createRange(); range.selectNodeContents(document.getElementById('cardNumber-label')); return range.getBoundingClientRect().right })()`,
      ),
      number.boundingBox(),
      page.locator('#marks').boundingBox(),
    ])
    assert.ok((label as number) > 450, 'the label begins at the right')
    assert.ok(marks!.x < input!.x, 'the mark stands at the end, which is left')
    await picture('arabic')
  })
})

describe('axe-core finds nothing against WCAG 2.2 AA', () => {
  const states: readonly (readonly [name: string, address: () => string, act?: () => Promise<unknown>])[] = [
    ['card', () => `/v1/form/${plain}?locale=en`],
    ['errors', () => `/v1/form/${plain}?locale=de`, () => page.locator('#pay').click()],
    [
      'all',
      () => `/v1/form/${full}?locale=en&brands=VISA CARTEBLEUE PAYPAL`,
      () => page.locator('.method[data-value=card] .head').click(),
    ],
    [
      'choice',
      () => `/v1/form/${plain}?locale=fr&brands=VISA CARTEBLEUE`,
      () => page.locator('#cardNumber').fill('4200000000000000'),
    ],
    ['arabic', () => `/v1/form/${full}?locale=ar`],
    ['over', () => '/v1/form/nothing?locale=ja'],
    ['pay', () => `/pay/${full}`],
    ['code', () => `/pay/${plain}/code`],
  ]
  for (const theme of ['light', 'dark'] as const)
    for (const [name, address, act] of states)
      it(`${name}, ${theme}`, async () => {
        await page.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' })
        await page.setViewportSize({ width: 420, height: 800 })
        await page.goto(`${gateway.baseUrl}${address()}${address().includes('?') ? '&' : '?'}theme=${theme}`)
        await act?.()
        await picture(`axe-${name}-${theme}`)
        await page.evaluate(axe)
        const { violations } = (await page.evaluate(
          `axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] })`,
        )) as { violations: { id: string; nodes: { html: string; failureSummary: string }[] }[] }
        assert.deepEqual(
          violations.map(({ id, nodes }) => [id, nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`)]),
          [],
        )
      })

  it('nor in a shop’s page around it', async () => {
    const visit = await visitShop(browser, shop.page(shopPage(gateway, { id: plain })))
    await visit.form.locator('#pay').waitFor()
    await visit.page.evaluate(axe)
    const { violations } = (await visit.page.evaluate(
      `axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa'], iframes: false })`,
    )) as { violations: { id: string }[] }
    assert.deepEqual(
      violations.map(({ id }) => id),
      [],
    )
    await visit.close()
  })
})

describe('by keyboard alone', () => {
  it('everything is reached in the order of the page, can be seen where it is, and Enter pays', async () => {
    const {
      page: shopping,
      form,
      close,
    } = await visitShop(browser, shop.page(shopPage(gateway, { id: full, brands: 'VISA PAYPAL' })))
    await form.locator('#pay').waitFor()
    const frame = shopping.frames()[1]!
    const focus = (): Promise<[string, boolean]> =>
      frame.evaluate(
        `(() => { const { activeElement: one } = document; const style = getComputedStyle(one.closest('.control, .head') ?? one); return [one.id, style.outlineStyle !== 'none' || style.boxShadow !== 'none'] })()`,
      )
    const press = async (key: string) => {
      await shopping.keyboard.press(key)
      return focus()
    }
    assert.match((await press('Tab'))[0], /^way-saved-/)
    // The ways to pay are one group: arrows go through it, and Tab goes on to the fields of what is chosen.
    assert.deepEqual([await press('ArrowDown'), await press('ArrowDown')].slice(1), [['way-card', true]])
    const walk: string[] = []
    for (let step = 0; step < 6; step++) {
      const [name, isVisible] = await press('Tab')
      assert.ok(isVisible, `the focus is seen on ${name}`)
      walk.push(name)
    }
    assert.deepEqual(walk, ['cardNumber', 'expiry', 'cvv', 'cardHolder', 'createRegistration', 'pay'])
    await typeCard(form)
    await form.locator('#cardHolder').press('Enter')
    await shopping.waitForURL(/\/thanks/)
    await close()
  })

  it('targets are 44 pixels high', async () => {
    const { id } = await makeCheckout(gateway, { createRegistration: 'true' })
    await page.setViewportSize({ width: 360, height: 800 })
    await page.goto(`${gateway.baseUrl}/v1/form/${id}?brands=VISA CARTEBLEUE PAYPAL`)
    await page.locator('#cardNumber').fill('4200000000000000')
    const small = await page.evaluate(
      `[...document.querySelectorAll('button, .head, .chip, .check, .control, a.button')].filter(one => one.checkVisibility() && one.getBoundingClientRect().height < 44).map(one => one.outerHTML)`,
    )
    assert.deepEqual(small, [])
  })
})
