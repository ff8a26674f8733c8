// The demo shop's pages: what it sells, how the shopper pays, and beside it what a developer wants to see.

import { readFileSync } from 'node:fs'
import { type Html, html, trusted } from '../../pages/html.ts'
import { languages } from '../../pages/languages/languages.ts'
import { testCards } from '../testCards.ts'
import { type GatewayRecord, isPaid, isPending } from './merchant.ts'

export const product = { name: 'Coffee beans, 1 kg', amount: '18.50', currency: 'EUR' }
export const brands = 'VISA MASTER AMEX PAYPAL SOFORTUEBERWEISUNG'

export type ShopPage = { readonly gateway: string; readonly nonce: string; readonly source: string }

const merchantSource = readFileSync(new URL('./merchant.ts', import.meta.url), 'utf8')

/** The page with the form. `checkout`: what the gateway answered; `thanks`: where the shopper comes back. */
export function payingPage(
  shop: Omit<ShopPage, 'source'>,
  checkout: GatewayRecord,
  { thanks, locale, secure }: { readonly thanks: string; readonly locale: string; readonly secure: boolean },
): string {
  const source = `<script>var wpwlOptions = { locale: "${locale}" }</script>
<script src="${shop.gateway}/v1/paymentWidgets.js?checkoutId=${encodeURIComponent(checkout.id)}"></script>
<form action="${thanks}" class="paymentWidgets" data-brands="${brands}"></form>`
  const live = source.replace('<script>', `<script nonce="${shop.nonce}">`)
  return shopPage(
    { ...shop, source },
    'Your cart',
    html`<div class="product"><span class="bean" aria-hidden="true">☕</span><div><h2>${product.name}</h2><p>${product.amount} ${product.currency}</p></div></div>
<form class="choice" method="get"><label>Language <select name="locale">${[...languages.keys()].map(
      code => html`<option${code === locale && html` selected`}>${code}</option>`,
    )}</select></label>
<label><input type="checkbox" name="secure" value="1"${secure && html` checked`}> 3-D Secure</label><button>Again</button></form>
${checkout.id === undefined ? resultPart(checkout) : trusted(live)}`,
  )
}

/** The page of thanks, or of what came instead. */
export const thanksPage = (shop: Omit<ShopPage, 'source'>, status: GatewayRecord): string =>
  shopPage(
    { ...shop, source: '' },
    isPaid(status)
      ? 'Thank you for your order'
      : isPending(status)
        ? 'We are waiting for your payment'
        : 'Your order is not paid',
    html`${resultPart(status)}<p><a href="/">Buy again</a></p>`,
  )

const resultPart = (record: GatewayRecord): Html => html`<p><code>${record.result.code}</code> ${record.result.description}</p>
<details open><summary>The status that the shop has read</summary><pre tabindex="0">${JSON.stringify(record, null, 2)}</pre></details>`

function shopPage({ nonce, source }: ShopPage, title: string, body: Html): string {
  const cards = testCards.map(
    ([brand, number, digits]) => html`<tr><td>${brand}</td><td><code>${number}</code></td><td>CVV ${digits} digits</td></tr>`,
  )
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style nonce="${nonce}">${trusted(style)}</style>
</head>
<body>
<header><strong>Coffee &amp; Co</strong> a shop to try the gateway with; no money moves</header>
<div class="columns">
<main><h1>${title}</h1>${body}</main>
<aside aria-label="For developers">
<details open><summary>Cards to try</summary>
<table><tbody>${cards}</tbody></table>
<p>Any date to come. <code>4200000000000042</code> with 3-D Secure asks for a code; <code>4000000000000002</code> is declined, <code>4000000000009995</code> has too little money.</p></details>
<details open><summary>Notifications as they come</summary><ol id="told" aria-live="polite"></ol><p class="none">None yet.</p></details>
${source !== '' && html`<details><summary>This page’s source</summary><pre tabindex="0">${source}</pre></details>`}
<details><summary>The shop’s own server</summary><pre tabindex="0">${merchantSource}</pre></details>
</aside>
</div>
<script nonce="${nonce}">${trusted(told)}</script>
</body>
</html>
`.html
}

// The shop's server has decrypted them already.
const told = `
new EventSource('/notifications').onmessage = ({ data }) => {
  const { type, payload } = JSON.parse(data)
  const line = document.createElement('li')
  const summary = document.createElement('summary')
  const details = document.createElement('details')
  const text = document.createElement('pre')
  summary.textContent = [type, payload.paymentType, payload.amount, payload.currency, payload.result?.code].filter(Boolean).join(' ')
  text.textContent = JSON.stringify(payload, null, 2)
  text.tabIndex = 0
  details.append(summary, text)
  line.append(details)
  document.getElementById('told').prepend(line)
}
`

const style = `
:root { color-scheme: light; --ink: #2b2118; --soft: #6b5a4a; --line: #e2d8cc; }
* { box-sizing: border-box; }
body { margin: 0; background: #faf6f0; color: var(--ink); font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
header { padding: 1rem 1.5rem; border-bottom: 1px solid var(--line); color: var(--soft); }
header strong { margin-inline-end: .75rem; color: var(--ink); font-size: 1.15rem; }
.columns { display: grid; grid-template-columns: minmax(0, 30rem) minmax(0, 34rem); gap: 2rem; justify-content: center; padding: 1.5rem; }
h1 { margin: 0 0 1rem; font-size: 1.5rem; line-height: 1.25; }
h2 { margin: 0; font-size: 1.1rem; }
p { margin: .25rem 0 1rem; }
a { color: #8a3b12; }
.product { display: flex; gap: 1rem; align-items: center; margin-bottom: 1rem; padding: 1rem; background: #fff; border: 1px solid var(--line); border-radius: 12px; }
.product p { margin: 0; color: var(--soft); }
.bean { font-size: 2rem; }
.choice { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; margin-bottom: 1rem; color: var(--soft); font-size: .9rem; }
.choice label { display: flex; gap: .4rem; align-items: center; min-height: 2.75rem; }
select, .choice button { min-height: 2.75rem; padding: 0 .75rem; font: inherit; color: var(--ink); background: #fff; border: 1px solid #8c7a68; border-radius: 8px; }
input[type=checkbox] { width: 1.25rem; height: 1.25rem; }
aside > details { margin-bottom: 1rem; padding: .25rem 1rem; background: #fff; border: 1px solid var(--line); border-radius: 12px; }
summary { padding: .6rem 0; font-weight: 600; cursor: pointer; }
table { width: 100%; border-collapse: collapse; font-size: .9rem; }
td { padding: .3rem .5rem .3rem 0; border-top: 1px solid var(--line); overflow-wrap: anywhere; }
pre, code { font: .8rem/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
td code { white-space: nowrap; }
pre { max-height: 24rem; margin: 0 0 1rem; padding: .75rem; overflow: auto; background: #f4eee6; border-radius: 8px; }
ol { margin: 0; padding: 0; list-style: none; }
ol:not(:empty) + .none { display: none; }
li summary { font-weight: 400; font-size: .9rem; }
@media (max-width: 60rem) { .columns { grid-template-columns: minmax(0, 34rem); padding: 1rem; } }
`
