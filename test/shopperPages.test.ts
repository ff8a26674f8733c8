// Shoppers' pages and the simulators' in a real browser: in every language, at the widths of phones and desks, nothing runs out of the page;
// by keyboard and screen reader, in light and dark.

import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import type { Browser, Page as BrowserPage } from 'playwright-core'
import { type Page, renderPage } from '../src/pages/html.ts'
import { english, type Language, languages } from '../src/pages/languages/languages.ts'
import type { Texts } from '../src/pages/languages/texts.ts'
import * as views from '../src/pages/shopper/views.ts'
import { violations } from './support/axe.ts'
import { launchBrowser } from './support/chromium.ts'
import { type Fields, type TestGateway, testGateway, visa } from './support/gateway.ts'
import { makeShopper } from './support/shopper.ts'

let gateway: TestGateway
let browser: Browser
let page: BrowserPage
before(async () => {
  ;[gateway, browser] = await Promise.all([testGateway(), launchBrowser()])
  page = await (await browser.newContext({ locale: 'en-US' })).newPage()
})
after(async () => {
  await browser?.close()
  await gateway?.stop()
})

/** SCREENSHOTS=<folder> keeps pictures. */
const pictures = process.env.SCREENSHOTS
const widths = [320, 360, 1280]
const logo =
  'data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIHdpZHRoPSIxMjAiIGhlaWdodD0iNDAiPjxyZWN0IHdpZHRoPSIxMjAiIGhlaWdodD0iNDAiIGZpbGw9IiMyMjUiLz48L3N2Zz4='

/** Our own pages of a payment, without the scripts that would leave them. */
function ours(language: Language): [name: string, html: string][] {
  const about: views.About = {
    language,
    shop: { name: 'Blumenhandlung Özgür & Töchter', logo, colour: '#7a1f5c' },
    amount: 1_234_567_05,
    currency: 'EUR',
    shopUrl: 'https://shop.example/',
    page: 'https://pay.example/r/x',
  }
  const named: Record<string, Page> = {
    continue: views.postPage(about, { kind: 'post', url: 'https://acs.example/', parameters: [] }, 'https://acs.example/'),
    preparing: views.browserPage(about, { kind: 'browser' }, undefined, 'https://pay.example/r/x'),
    wait: views.waitPage(about, 'https://pay.example/r/x'),
    unconfirmed: views.unconfirmedPage(about),
    forged: views.refusedPage(about, 'forged'),
    session: views.refusedPage({ ...about, shop: { name: 'Shop' } }, 'session'),
    unknown: views.plainPage(language, 'unknown'),
    error: views.plainPage(language, 'error', about),
  }
  return Object.entries(named).map(([name, { script: _left, refresh: _again, ...still }]) => [name, renderPage(still, 'n').body])
}

const simulated: Readonly<Record<string, Fields>> = {
  issuer: { ...visa, 'card.number': '4200000000000018', 'customParameters[3DS2_enrolled]': 'true' },
  wallet: { paymentBrand: 'PAYPAL' },
  bank: { paymentBrand: 'SOFORTUEBERWEISUNG' },
}

async function simulators(language: Language): Promise<[name: string, html: string][]> {
  const found: [string, string][] = []
  for (const [name, fields] of Object.entries(simulated)) {
    const { body } = await gateway.pay({ shopperResultUrl: 'https://shop.example/', ...fields })
    const shopper = makeShopper(language.tag)
    const seen = await shopper.walk(body.redirect.url, gateway.baseUrl)
    found.push([name, seen.text])
    if (name === 'issuer') found.push(['wrong', (await shopper.press(seen, 'otp', gateway.baseUrl, { otp: '1' })).text])
  }
  return found
}

/** What stands out of the window, or is cut off, or is too small to be hit. Runs in the browser. */
const problems = (): Promise<string[]> =>
  page.evaluate(`(() => {
    const wide = document.documentElement.scrollWidth
    const wrong = wide > innerWidth ? ['the page is ' + wide + ' wide'] : []
    for (const element of document.querySelectorAll('main *, aside *, .notice')) {
      const { left, right, height } = element.getBoundingClientRect()
      const text = element.tagName + ' ' + element.textContent.trim().slice(0, 40)
      if (left < 0 || right > innerWidth + 1) wrong.push(text + ' stands out')
      if (element.scrollWidth > element.clientWidth + 1 && element.clientWidth > 0) wrong.push(text + ' is cut off')
      if (/^(BUTTON|A|INPUT)$/.test(element.tagName) && element.type !== 'hidden' && height < 44) wrong.push(text + ' is ' + height + ' high')
    }
    return wrong
  })()`)

async function fits(name: string, language: Language, html: string): Promise<void> {
  await page.setContent(html)
  for (const width of widths) {
    await page.setViewportSize({ width, height: 800 })
    assert.deepEqual(await problems(), [], `${name} in ${language.code} at ${width}`)
    if (pictures === undefined || !['ar', 'ja', 'de', 'ru'].includes(language.code)) continue
    mkdirSync(pictures, { recursive: true })
    await page.screenshot({ path: `${pictures}/${name}-${language.code}-${width}.png`, fullPage: true })
  }
}

describe('at 320, 360 and 1280 px', () => {
  for (const language of languages.values())
    it(`every page fits in ${language.code}, and what is pressed is 44 px high`, async () => {
      for (const [name, html] of [...ours(language), ...(await simulators(language))]) {
        await fits(name, language, html)
        assert.deepEqual(await page.evaluate('[document.documentElement.lang, document.documentElement.dir]'), [
          language.tag,
          language.direction,
        ])
      }
    })

  it('and with texts that are forty per cent longer', async () => {
    const longer = (text: string) => `[${text.replace(/[aeiou]/g, '$&$&$&')}]`
    const texts = Object.fromEntries(Object.entries(english.texts).map(([name, text]) => [name, longer(text)])) as Texts
    for (const [name, html] of ours({ ...english, texts })) await fits(name, english, html)
  })
})

describe('for everybody', () => {
  for (const colorScheme of ['light', 'dark'] as const)
    for (const code of ['en', 'ar'])
      it(`axe finds nothing in ${code}, ${colorScheme}`, async () => {
        const language = languages.get(code)!
        await page.emulateMedia({ colorScheme })
        await page.setViewportSize({ width: 1280, height: 800 })
        for (const [name, html] of [...ours(language), ...(await simulators(language))]) {
          await page.setContent(html)
          assert.deepEqual(await violations(page), [], `${name} in ${code}, ${colorScheme}`)
          if (pictures && code === 'en' && colorScheme === 'dark')
            await page.screenshot({ path: `${pictures}/${name}-dark.png`, fullPage: true })
        }
      })

  it('the issuer’s field has the focus, Enter confirms, and a wrong code is told at the field', async () => {
    const { body } = await gateway.pay({ shopperResultUrl: 'https://shop.example/', ...simulated.issuer })
    await page.goto(body.redirect.url)
    await page.waitForSelector('#otp:focus')
    await page.keyboard.type('9999')
    await page.keyboard.press('Enter')
    await page.waitForSelector('#otp[aria-invalid=true]:focus')
    const description = await page.getAttribute('#otp', 'aria-describedby')
    assert.equal(await page.textContent(`#${description}`), english.texts.wrongCode)
    await page.keyboard.press('Tab')
    assert.equal(await page.evaluate('document.activeElement.textContent'), english.texts.confirmButton)
  })
})
