// What shoppers see between the shop and the other side. Every page has a visible button, so that nothing depends on scripts.

import type { Hop } from '../../connectors/connector.ts'
import type { ShopperAdvice } from '../../contract/results/shopperAdvice.ts'
import type { Shop } from '../../merchants/shop.ts'
import { type Html, html, originOf, type Page } from '../html.ts'
import { type Language, moneyText } from '../languages/languages.ts'
import { fill, type Texts } from '../languages/texts.ts'

/** What a page says about the payment that it belongs to. */
export type About = {
  readonly language: Language
  readonly shop: Shop
  readonly amount: number
  readonly currency: string
  /** Where the shopper goes back to, with the payment's id; undefined where this browser is not told. */
  readonly shopUrl: string | undefined
  /** Our own page of this payment. */
  readonly page: string
}

const summary = ({ language: { texts, locale }, amount, currency }: About): Html => html`<dl>
<dt>${texts.amount}</dt><dd><bdi>${moneyText(locale, amount, currency)}</bdi></dd>
</dl>`

const backToShop = (texts: Texts, url: string | undefined, kind = ''): Html | undefined =>
  url === undefined ? undefined : html`<a class="button ${kind}" href="${url}">${texts.shopButton}</a>`

/** Posts what the other side wants, by itself where scripts run. */
export function postPage(about: About, hop: Extract<Hop, { kind: 'post' }>, url: string): Page {
  const { language, shop, shopUrl } = about
  const { texts } = language
  return {
    language,
    shop,
    title: texts.continueTitle,
    body: html`<h1>${texts.continueTitle}</h1>
<p>${texts.continueText}</p>
${summary(about)}
<form id="go" method="post" action="${url}">
${hop.parameters.map(({ name, value }) => html`<input type="hidden" name="${name}" value="${value}">`)}
<button>${texts.continueButton}</button>
</form>`,
    script: `addEventListener('pageshow', event => { if (!event.persisted) document.getElementById('go').submit() })`,
    formsTo: [...originOf(hop.url), ...originOf(shopUrl)],
  }
}

/** Collects what 3-D Secure asks about the browser while a hidden frame makes the issuer's own acquaintance. */
export function browserPage(
  about: About,
  hop: Extract<Hop, { kind: 'browser' }>,
  frame: string | undefined,
  action: string,
): Page {
  const { language, shop, shopUrl } = about
  const { texts } = language
  const names = ['language', 'screenHeight', 'screenWidth', 'screenColorDepth', 'timezone', 'javaEnabled', 'javascriptEnabled']
  return {
    language,
    shop,
    title: texts.preparingTitle,
    body: html`<div class="wait" aria-hidden="true"></div>
<h1>${texts.preparingTitle}</h1>
<p role="status">${texts.preparingText}</p>
${summary(about)}
<form id="go" method="post" action="${action}">
<input type="hidden" name="browser" value="1">
${names.map(name => html`<input type="hidden" name="${name}" value="">`)}
<button>${texts.continueButton}</button>
</form>
${frame !== undefined && html`<iframe id="frame" src="${frame}" title="3-D Secure" aria-hidden="true" tabindex="-1"></iframe>`}`,
    script: browserScript,
    formsTo: originOf(shopUrl),
    framesFrom: hop.method ? originOf(hop.method.url) : [],
  }
}

// The issuer has ten seconds for its method; then the authentication goes on without.
const browserScript = `
const form = document.getElementById('go')
const seen = { language: navigator.language, screenHeight: screen.height, screenWidth: screen.width, screenColorDepth: screen.colorDepth,
  timezone: new Date(performance.timeOrigin).getTimezoneOffset(), javaEnabled: false, javascriptEnabled: true }
for (const [name, value] of Object.entries(seen)) form.elements[name].value = String(value)
let gone = false
const go = () => { if (!gone) { gone = true; form.submit() } }
if (document.getElementById('frame')) {
  addEventListener('message', event => { if (event.origin === location.origin && event.data === 'methodDone') go() })
  setTimeout(go, 10000)
} else go()
`

/** Inside the hidden frame: posts the method data to the issuer. */
export const framePage = (hop: NonNullable<Extract<Hop, { kind: 'browser' }>['method']>, language: Language): Page => ({
  language,
  title: '3-D Secure',
  body: html`<form id="go" method="post" action="${hop.url}">
${hop.parameters.map(({ name, value }) => html`<input type="hidden" name="${name}" value="${value}">`)}
<button>3-D Secure</button>
</form>`,
  script: `document.getElementById('go').submit()`,
  formsTo: originOf(hop.url),
  framable: true,
})

export const frameDonePage = (language: Language): Page => ({
  language,
  title: '3-D Secure',
  body: html``,
  script: `parent.postMessage('methodDone', location.origin)`,
  framable: true,
})

export function waitPage(about: About, address: string): Page {
  const { language, shop } = about
  const { texts } = language
  return {
    language,
    shop,
    title: texts.waitTitle,
    body: html`<div class="wait" aria-hidden="true"></div>
<h1>${texts.waitTitle}</h1>
<p role="status">${texts.waitText}</p>
${summary(about)}
<a class="button" href="${address}">${texts.waitButton}</a>`,
    refresh: 3,
  }
}

/** The browser is back, but the result that counts has not come. */
export function unconfirmedPage(about: About): Page {
  const { language, shop, page, shopUrl } = about
  const { texts } = language
  return {
    language,
    shop,
    title: texts.unconfirmedTitle,
    body: html`<h1>${texts.unconfirmedTitle}</h1>
<p>${texts.unconfirmedText}</p>
${summary(about)}
<a class="button" href="${page}">${texts.againButton}</a>
${backToShop(texts, shopUrl, 'plain')}`,
  }
}

/** What became of a payment, for whoever is not sent to the shop; without advice it has succeeded. */
export function endPage(about: About, advice: ShopperAdvice | undefined): Page {
  const { language, shop } = about
  const { texts } = language
  const title = texts[advice === undefined ? 'paidTitle' : advice === 'waitForShop' ? 'pendingTitle' : 'overTitle']
  return {
    language,
    shop,
    title,
    body: html`<h1>${title}</h1>
<p role="status">${advice === undefined ? fill(texts.paidText, { shop: shop.name }) : texts[advice]}</p>
${summary(about)}`,
  }
}

/** A return that is not what was waited for. */
export function refusedPage(about: About, kind: 'forged' | 'session'): Page {
  const { language, shop, page, shopUrl } = about
  const { texts } = language
  return {
    language,
    shop,
    title: texts[`${kind}Title`],
    body: html`<h1>${texts[`${kind}Title`]}</h1>
<p>${texts[`${kind}Text`]}</p>
${kind === 'forged' && html`<a class="button" href="${page}">${texts.againButton}</a>`}
${backToShop(texts, shopUrl, kind === 'forged' ? 'plain' : '')}`,
  }
}

/** Nothing is known of a payment here, at most its shop: what became of money this page must not say. */
export const plainPage = (
  language: Language,
  kind: 'unknown' | 'error',
  known?: { readonly shop: Shop; readonly shopUrl: string | undefined },
): Page => ({
  language,
  ...(known && { shop: known.shop }),
  title: language.texts[`${kind}Title`],
  body: html`<h1>${language.texts[`${kind}Title`]}</h1>
<p>${language.texts[`${kind}Text`]}</p>
${known && backToShop(language.texts, known.shopUrl)}`,
})
