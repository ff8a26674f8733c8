// The form as a page: whole from the server, so that it can be read before its script runs. In a shop's frame, or alone at /pay.

import { readFileSync } from 'node:fs'
import type { FormView } from '../../checkouts/view.ts'
import type { CardBrand } from '../../contract/brands.ts'
import { type Html, html, originOf, trusted } from '../html.ts'
import type { Language } from '../languages/languages.ts'
import { fill, type Texts } from '../languages/texts.ts'
import { slipLanguage } from '../slip/texts.ts'
import { brandTitle } from './brandNames.ts'
import { textOn } from './browser/colours.ts'
import type { FormFacts } from './browser/facts.ts'
import type { BuiltFile } from './build.ts'
import { cardBrands, money, openForm } from './ways.ts'

export const themes = ['light', 'dark', 'auto'] as const

export type FormLook = {
  readonly door: FormFacts['door']
  readonly language: Language
  readonly theme: (typeof themes)[number]
  /** The brands that the shop's form names; absent = all of the channel. */
  readonly brands?: readonly string[]
  readonly rows: readonly CardBrand[]
  readonly script: BuiltFile
  /** Of the installation, in real time, milliseconds. */
  readonly now: number
  /** `2026-11`, in the merchant's time. */
  readonly month: string
  readonly sandbox: boolean
  readonly nonce: string
}

export type FormPage = { readonly body: string; readonly headers: Readonly<Record<string, string>> }

const css = readFileSync(new URL('./form.css', import.meta.url), 'utf8')
  .replace(/\/\*.*?\*\//g, '')
  .replace(/\n\s*/g, '\n')

export function formPage(view: FormView, look: FormLook): FormPage {
  const { texts } = look.language
  const isOver = view.state === 'over'
  const inner = html`<div id="over" tabindex="-1"${!isOver && html` hidden`}>
${done}
<h2 id="over-title">${texts.overTitle}</h2>
<p id="over-text">${texts.overText}</p>
<a class="button" id="back" href="#" hidden>${texts.shopButton}</a>
</div>
${!isOver && openForm(view, look)}
<script type="application/json" id="data">${trusted(json(formDataOf(view, look)))}</script>`
  return look.door === 'frame'
    ? wholePage(view, look, { title: texts.formTitle, body: html`<body><main>${inner}</main></body>`, runs: true })
    : wholePage(view, look, {
        title: titleOf(view, texts),
        body: alone(
          view,
          look,
          html`<noscript><style nonce="${look.nonce}">#form { display: none }</style><p class="noscript">${texts.noScript}</p></noscript>${inner}`,
        ),
        runs: true,
      })
}

const done = trusted(
  '<svg class="done" id="done" viewBox="0 0 24 24" aria-hidden="true" hidden><circle cx="12" cy="12" r="11" fill="none" stroke="currentColor" stroke-width="1.5"/><path d="m7 12.500 3.500 3.500 6.500-7" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"/></svg>',
)

/** A link to pay as a picture, to be shown on a screen or printed. */
export function codePage(view: FormView, look: FormLook, link: string, code: Html): FormPage {
  const { texts, locale } = look.language
  const time = new Intl.DateTimeFormat(locale, {
    dateStyle: 'medium',
    timeStyle: 'long',
    timeZone: 'UTC',
    numberingSystem: 'latn',
  }).format(view.expiresAt)
  const inner =
    view.state === 'over'
      ? html`<div id="over"><h2>${texts.overTitle}</h2><p>${texts.overText}</p></div>`
      : html`<p>${texts.linkText}</p>
<div class="code" role="img" aria-label="${link}">${code}</div>
<a class="button" href="${link}">${texts.linkButton}</a>
<p class="link" dir="ltr">${link}</p>
<p class="hint">${fill(texts.validUntil, { time })}</p>`
  return wholePage(view, look, {
    title: titleOf(view, texts),
    body: alone(view, look, inner),
    runs: false,
  })
}

/** A checkout that is none has no shop. */
const titleOf = ({ shop: { name } }: FormView, texts: Texts): string =>
  name === '' ? texts.overTitle : fill(texts.linkTitle, { shop: name })

function wholePage(
  view: FormView,
  look: FormLook,
  { title, body, runs }: { title: string; body: Html; runs: boolean },
): FormPage {
  const { language, theme, nonce, script } = look
  const whole = html`<!doctype html>
<html lang="${language.tag}" dir="${language.direction}" data-theme="${theme}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title}</title>
<style nonce="${nonce}">${trusted(css)}${shopStyle(view, look)}</style>
${runs && html`<script src="/v1/static/${script.hash}/${script.name}" integrity="${script.integrity}" defer></script>`}
</head>
${body}
</html>
`
  return { body: whole.html, headers: policies(view, look) }
}

/** The shop's colour for its button, where it can be told from the page behind it; in the dark it seldom can. */
const shopStyle = ({ shop: { colour } }: FormView, { theme }: FormLook): Html | undefined =>
  colour === undefined || theme === 'dark'
    ? undefined
    : trusted(`html:not([data-theme=dark]){--wpwl-color-primary:${colour};--on-primary:${textOn(colour)}}`)

/** Inside a script element nothing but its end has to be kept from being read as HTML. */
const json = (value: object): string => JSON.stringify(value).replaceAll('<', '\\u003c')

function policies(view: FormView, { door, sandbox, nonce }: FormLook): Record<string, string> {
  const anywhere = sandbox ? ['https:', 'http:'] : ['https:']
  const ancestors =
    door === 'page' ? ["'none'"] : view.frameAncestors.length > 0 ? view.frameAncestors.flatMap(originOf) : anywhere
  return {
    'Content-Type': 'text/html;charset=UTF-8',
    'Content-Security-Policy': [
      "default-src 'none'",
      "script-src 'self'",
      `style-src 'nonce-${nonce}'`,
      `img-src ${(door !== 'frame' && originOf(view.shop.logo)[0]) || "'none'"}`,
      "connect-src 'self'",
      "base-uri 'none'",
      "form-action 'none'",
      "require-trusted-types-for 'script'",
      `frame-ancestors ${ancestors.join(' ')}`,
    ].join('; '),
    'Referrer-Policy': 'no-referrer',
    'Cache-Control': 'private, no-store',
    ...(door === 'page' && { 'X-Frame-Options': 'DENY' }),
  }
}

function alone(view: FormView, { language: { texts, locale } }: FormLook, inner: Html): Html {
  const { shop, amount, currency } = view
  return html`<body class="whole">
<div class="page">
<header>
${shop.logo !== undefined && html`<img src="${shop.logo}" alt="">`}
<h1 class="shop" aria-label="${titleOf(view, texts)}"><bdi>${shop.name}</bdi></h1>
${amount !== undefined && currency !== undefined && html`<p class="sum"><bdi>${money(locale, amount, currency)}</bdi></p>`}
</header>
<main>
${inner}
</main>
</div>
</body>`
}

// biome-ignore format: a list
const scriptTexts = [
  'cardNumberMissing', 'cardNumberIncomplete', 'cardNumberWrong', 'brandNotTaken', 'cardNotTaken', 'brandMissing', 'expiryMissing', 'expiryWrong',
  'expiryPast', 'cvvMissing', 'cvvWrong', 'cvvHint', 'cvvHintFront', 'holderMissing', 'holderWrong', 'checkFields', 'offline', 'connectionLost',
  'paying', 'saving', 'timeLeft', 'overTitle', 'overText', 'paidTitle', 'paidText', 'pendingTitle', 'waitForShop', 'savedDone', 'lookInShop',
  'tryAgainLater',
] as const satisfies readonly (keyof Texts)[]

/** What is wrong with the fields of slips, where there are any. */
function slipProblems({ brands }: FormView, language: Language): Record<string, string> {
  const asks = brands.find(brand => brand.asks)?.asks
  if (!asks) return {}
  const { fieldMissing, fieldWrong } = slipLanguage(language, asks.country).texts
  return { fieldMissing, fieldWrong }
}

function formDataOf(view: FormView, look: FormLook): FormFacts {
  const { language, door, rows, now, month } = look
  const taken = cardBrands(view, look)
  return {
    state: view.state,
    door,
    id: view.id,
    standalone: view.standalone,
    payPath: `/v1/checkouts/${view.id}/${view.standalone ? 'registration' : 'payment'}`,
    statePath: `/v1/form/${view.id}?locale=${language.code}`,
    rows:
      taken.length === 0
        ? []
        : rows.map(({ name, lengths, cvvLength, cvvRequired, ranges, also }) => ({
            name,
            title: brandTitle(name),
            lengths,
            cvvLength,
            cvvRequired,
            ranges,
            also,
          })),
    taken,
    month,
    secondsLeft: Math.max(0, Math.floor((view.expiresAt - now) / 1000)),
    origins: view.frameAncestors,
    ...(view.shopperResultUrl !== undefined && { shopperResultUrl: view.shopperResultUrl }),
    cvvAsked: view.requireCvv,
    savedCvvAsked: view.requireCvvForRegistrations,
    texts: {
      ...Object.fromEntries(scriptTexts.map(name => [name, fill(language.texts[name], { shop: view.shop.name })])),
      ...slipProblems(view, language),
    },
  }
}
