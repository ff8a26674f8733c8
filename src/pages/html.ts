// Pages as text: a template that escapes what is put in, the frame around every page, and the headers that go with it.

import { hasPlainHost } from '../contract/url.ts'
import type { Shop } from '../merchants/shop.ts'
import { buttonColours } from './colours.ts'
import type { Language } from './languages/languages.ts'

export type Html = { readonly html: string }

const escapes: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
export const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, character => escapes[character]!)

type Part = string | number | Html | undefined | false | readonly Html[]

/** html`<p>${text}</p>`: texts are escaped, pieces of html are not, lists of them are joined, absent ones leave nothing. */
export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return { html: strings.reduce((whole, string, at) => whole + string + (at < parts.length ? piece(parts[at]) : ''), '') }
}

/** Text of our own that is html already: styles and scripts. Never for anything from outside. */
export const trusted = (text: string): Html => ({ html: text })

function piece(part: Part): string {
  if (part === undefined || part === false) return ''
  if (Array.isArray(part)) return (part as readonly Html[]).map(one => one.html).join('')
  return typeof part === 'object' ? (part as Html).html : escapeHtml(String(part))
}

export type Page = {
  readonly language: Language
  readonly title: string
  readonly body: Html
  /** Whose page it is, where that is known. */
  readonly shop?: Shop
  readonly script?: string
  /** Rules of its own, beside those of all pages. */
  readonly style?: string
  /** Seconds until the page is asked for again. */
  readonly refresh?: number
  /** Origins that forms may go to, beside our own, and frames may come from. */
  readonly formsTo?: readonly string[]
  readonly framesFrom?: readonly string[]
  /** Hidden frames of other sites may hold the page. */
  readonly framable?: true
  /** A simulator's: said above the page, and shown beside it, apart from what shoppers would see. */
  readonly notice?: string
  readonly tester?: Html
  /** Forms may lead anywhere: for simulators, whose next hop is not theirs to know. */
  readonly formsAnywhere?: true
}

export type RenderedPage = { readonly body: string; readonly headers: Readonly<Record<string, string>> }

export function renderPage(page: Page, nonce: string): RenderedPage {
  const { tag, direction } = page.language
  const whole = html`<!doctype html>
<html lang="${tag}" dir="${direction}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta name="color-scheme" content="light dark">
${page.refresh !== undefined && html`<meta http-equiv="refresh" content="${page.refresh}">`}
<title>${page.title}</title>
<style nonce="${nonce}">${trusted(style)}${page.style !== undefined && trusted(page.style)}${page.shop?.colour !== undefined && trusted(shopStyle(page.shop.colour))}</style>
</head>
<body>
${page.notice !== undefined && html`<p class="notice" role="note">${page.notice}</p>`}
<div class="stage">
<main>
${page.shop && shopSign(page.shop)}
${page.body}
</main>
${page.tester && html`<aside class="tester" aria-labelledby="tester">${page.tester}</aside>`}
</div>
${page.script !== undefined && html`<script nonce="${nonce}">${trusted(page.script)}</script>`}
</body>
</html>
`
  return { body: whole.html, headers: { 'Content-Type': 'text/html;charset=UTF-8', ...policies(page, nonce) } }
}

/** The logo says the name, or the name stands alone. */
const shopSign = ({ name, logo }: Shop): Html | undefined =>
  name === ''
    ? undefined
    : html`<p class="shop">${logo === undefined ? html`<bdi>${name}</bdi>` : html`<img src="${logo}" alt="${name}">`}</p>`

const shopStyle = (colour: string): string => {
  const rule = (paper: string, line: string) =>
    `:root { ${Object.entries(buttonColours(colour, paper, line))
      .map(pair => pair.join(': '))
      .join('; ')} }`
  return `${rule('#ffffff', '#5b6877')} @media (prefers-color-scheme: dark) { ${rule('#1c232d', '#a3b0c0')} }`
}

function policies({ formsTo = [], framesFrom = [], framable, formsAnywhere, shop }: Page, nonce: string): Record<string, string> {
  const sources = [
    `default-src 'none'`,
    `script-src 'nonce-${nonce}'`,
    `style-src 'nonce-${nonce}'`,
    ['img-src data:', ...(shop?.logo?.startsWith('https:') ? originOf(shop.logo) : [])].join(' '),
    ...(formsAnywhere ? [] : [`form-action ${["'self'", ...new Set(formsTo)].join(' ')}`]),
    `frame-src ${["'self'", ...new Set(framesFrom)].join(' ')}`,
    `base-uri 'none'`,
    `frame-ancestors ${framable ? 'https: http:' : "'none'"}`,
  ]
  return {
    'Content-Security-Policy': sources.join('; '),
    'Referrer-Policy': 'no-referrer',
    'Cache-Control': 'private, no-store',
    ...(framable ? {} : { 'X-Frame-Options': 'DENY' }),
  }
}

/** The origin of an address, for a policy; of an app its scheme, which has no origins; nothing of an address that is none. */
export function originOf(url: string | undefined): string[] {
  if (url === undefined || !URL.canParse(url)) return []
  const parsed = new URL(url)
  if (!hasPlainHost(parsed)) return []
  return [parsed.origin === 'null' ? parsed.protocol : parsed.origin]
}

const style = `
:root { --ink: #1b2430; --soft: #5b6877; --paper: #fff; --ground: #eef1f5; --line: #d5dce5; --accent: #1d5fd1; --on-accent: #fff; --button-line: #1d5fd1; --focus: #1d5fd1; --wrong: #b3261e; --warn: #8a4b00; --warn-ground: #fff3dc; --warn-line: #d9a441; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8edf4; --soft: #a3b0c0; --paper: #1c232d; --ground: #11161d; --line: #344052; --accent: #7fb0ff; --on-accent: #0c1a30; --button-line: #7fb0ff; --focus: #7fb0ff; --wrong: #ffb4ab; --warn: #ffd591; --warn-ground: #2c2110; --warn-line: #8a6420; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; -webkit-text-size-adjust: 100%; }
.notice { margin: 0; padding: .6rem 1rem; background: var(--warn-ground); color: var(--warn); border-bottom: 1px solid var(--warn-line); text-align: center; font-weight: 600; font-size: .9rem; }
.stage { display: flex; flex-wrap: wrap; justify-content: center; align-items: flex-start; gap: 1.5rem; padding: clamp(1rem, 8vh, 5rem) 1rem 2rem; }
main, .tester { width: min(27rem, 100%); padding: 1.75rem; border-radius: 14px; }
main { background: var(--paper); border: 1px solid var(--line); }
.shop { margin: 0 0 1.25rem; padding-bottom: 1rem; border-bottom: 1px solid var(--line); font-weight: 600; overflow-wrap: anywhere; }
.shop img { display: block; max-width: 100%; height: 2.75rem; padding: .25rem; object-fit: contain; object-position: 0 50%; background: #fff; border-radius: 6px; }
[dir=rtl] .shop img { object-position: 100% 50%; }
h1, h2 { margin: 0 0 .5rem; font-size: 1.35rem; line-height: 1.25; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; }
p { margin: 0 0 1rem; overflow-wrap: anywhere; }
.soft { color: var(--soft); font-size: .92rem; }
dl { display: grid; grid-template-columns: minmax(0, auto) minmax(0, 1fr); gap: .35rem 1rem; margin: 0 0 1.25rem; padding: .9rem 0; border-block: 1px solid var(--line); }
dt { color: var(--soft); overflow-wrap: anywhere; }
dd { margin: 0; text-align: end; font-weight: 600; overflow-wrap: anywhere; }
form { margin: 0 0 .75rem; }
label { display: block; margin: 0 0 .3rem; font-weight: 600; font-size: .92rem; }
input[type=text] { width: 100%; min-height: 3rem; padding: .5rem .75rem; font: inherit; color: inherit; background: var(--paper); border: 1px solid var(--soft); border-radius: 9px; }
[dir=rtl] input[dir=ltr] { text-align: right; }
.field { margin: 0 0 1rem; }
.field .wrong { margin: .4rem 0 0; color: var(--wrong); font-size: .92rem; font-weight: 600; }
input[aria-invalid=true] { border: 2px solid var(--wrong); }
button, a.button { display: block; width: 100%; min-height: 3rem; padding: .65rem 1rem; font: inherit; font-weight: 600; text-align: center; text-decoration: none; overflow-wrap: anywhere; cursor: pointer; color: var(--on-accent); background: var(--accent); border: 1px solid var(--button-line); border-radius: 9px; }
button.plain, a.plain { color: var(--ink); background: transparent; border-color: var(--soft); }
button + button, a.button + a.button { margin-top: .6rem; }
button:focus-visible, a:focus-visible, input:focus-visible { outline: 3px solid var(--focus); outline-offset: 2px; }
.tester { color: var(--ink); background: var(--warn-ground); border: 1px dashed var(--warn-line); }
.tester h2 { color: var(--warn); }
.tester .soft { color: inherit; }
.tester form { margin: 0; }
.tester button { display: flex; flex-wrap: wrap; justify-content: space-between; align-items: center; gap: .1rem 1rem; min-height: 2.75rem; padding: .5rem .85rem; text-align: start; font-weight: 500; color: inherit; background: var(--paper); border-color: var(--warn-line); }
.tester button + button { margin-top: .4rem; }
code { direction: ltr; unicode-bidi: isolate; font: .82rem/1.4 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
.tester button code { margin-inline-start: auto; color: var(--soft); }
.wait { width: 2rem; height: 2rem; margin: 0 0 1rem; border: 3px solid var(--line); border-top-color: var(--focus); border-radius: 50%; animation: turn 1s linear infinite; }
@keyframes turn { to { transform: rotate(1turn); } }
@media (prefers-reduced-motion: reduce) { .wait { animation: none; } }
iframe { position: absolute; width: 0; height: 0; border: 0; }
@media (max-width: 30rem) {
  body { background: var(--paper); }
  .stage { padding: 0; gap: 0; }
  main { border: 0; border-radius: 0; padding: 1.5rem 1rem; }
  .tester { border-width: 1px 0 0; border-radius: 0; padding: 1.5rem 1rem; }
}
`
