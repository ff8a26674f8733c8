// The form as a page: whole from the server, so that it can be read before its script runs. In a shop's frame, or alone at /pay.

import { readFileSync } from 'node:fs'
import type { FormMethod, FormView, SavedDetails } from '../../checkouts/view.ts'
import { hundredths } from '../../contract/amounts.ts'
import type { CardBrand } from '../../contract/brands.ts'
import { type Html, html, trusted } from '../html.ts'
import { type Language, moneyText } from '../languages/languages.ts'
import { fill, type Texts } from '../languages/texts.ts'
import { brandMark, brandTitle } from './brandNames.ts'
import { textOn } from './browser/colours.ts'
import type { FormData } from './browser/frame/page.ts'
import type { BuiltFile } from './build.ts'

export const themes = ['light', 'dark', 'auto'] as const

export type FormLook = {
  readonly door: FormData['door']
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

const css = readFileSync(new URL('./form.css', import.meta.url), 'utf8').replace(/\/\*.*?\*\//g, '').replace(/\n\s*/g, '\n')

export function formPage(view: FormView, look: FormLook): FormPage {
  const { language, theme, door, nonce, script } = look
  const { texts } = language
  const title = door === 'page' ? fill(texts.linkTitle, { shop: view.shop.name }) : texts.formTitle
  const inner = html`<div id="over" tabindex="-1"${view.state === 'open' && html` hidden`}>
<h2 id="over-title">${texts.overTitle}</h2>
<p id="over-text">${texts.overText}</p>
<a class="button" id="back" href="#"${view.shopperResultUrl === undefined && html` hidden`}>${texts.shopButton}</a>
</div>
${view.state === 'open' && openForm(view, look)}`
  const whole = html`<!doctype html>
<html lang="${language.tag}" dir="${language.direction}" data-theme="${theme}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title}</title>
<style nonce="${nonce}">${trusted(css)}${view.shop.colour !== undefined && theme === 'light' && trusted(`:root{--wpwl-color-primary:${view.shop.colour};--on-primary:${textOn(view.shop.colour)}}`)}</style>
<script src="/v1/static/${script.hash}/${script.name}" integrity="${script.integrity}" defer></script>
</head>
<body${door === 'page' && html` class="whole"`}>
${door === 'page' ? alone(view, language, inner) : html`<main>${inner}</main>`}
<script type="application/json" id="data">${trusted(json(formDataOf(view, look)))}</script>
</body>
</html>
`
  return { body: whole.html, headers: policies(view, look) }
}

/** Inside a script element nothing but its end has to be kept from being read as HTML. */
const json = (value: object): string => JSON.stringify(value).replaceAll('<', '\\u003c')

function policies(view: FormView, { door, sandbox, nonce }: FormLook): Record<string, string> {
  const anywhere = sandbox ? ['https:', 'http:'] : ['https:']
  const ancestors = door === 'page' ? ["'none'"] : view.frameAncestors.length > 0 ? view.frameAncestors : anywhere
  return {
    'Content-Type': 'text/html;charset=UTF-8',
    'Content-Security-Policy': [
      "default-src 'none'",
      "script-src 'self'",
      `style-src 'nonce-${nonce}'`,
      `img-src ${view.shop.logo === undefined || door === 'frame' ? "'none'" : view.shop.logo.startsWith('data:') ? 'data:' : new URL(view.shop.logo).origin}`,
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

function alone({ shop, amount, currency }: FormView, { texts, locale }: Language, inner: Html): Html {
  return html`<div class="page">
<header>
${shop.logo !== undefined && html`<img src="${shop.logo}" alt="">`}
<div class="shop"><bdi>${shop.name}</bdi></div>
${amount !== undefined && currency !== undefined && html`<div class="sum"><bdi>${money(locale, amount, currency)}</bdi></div>`}
</header>
<main>
<h1 class="unseen">${fill(texts.linkTitle, { shop: shop.name })}</h1>
<noscript><p class="noscript">${texts.noScript}</p></noscript>
${inner}
</main>
</div>`
}

const money = (locale: string, amount: string, currency: string): string => moneyText(locale, hundredths(amount), currency)

/** A way to pay, as a row of the list or, where it is the only one, without a choice. */
type Way = {
  readonly value: string
  readonly kind: FormMethod | 'registration'
  readonly brand: string
  readonly name: Html
  readonly marks: Html
  readonly panel: Html
  readonly button: string
  readonly saved?: string
}

function openForm(view: FormView, look: FormLook): Html {
  const { texts } = look.language
  const saved = view.registrations.map(details => savedWay(view, look, details))
  const others = otherWays(view, look)
  const alone = saved.length + others.length === 1
  const list = (ways: readonly Way[], from: number) => ways.map((way, at) => wayHtml(way, alone, from + at === 0))
  return html`<form id="form" novalidate aria-label="${texts.formTitle}">
<div id="left" role="timer" hidden></div>
<div id="choices">
${saved.length > 0 && html`<h2 class="title">${texts.savedTitle}</h2><div id="saved" class="methods" role="radiogroup" aria-label="${texts.savedTitle}">${list(saved, 0)}</div>`}
${saved.length > 0 && others.length > 0 && html`<button type="button" id="showOthers" hidden>${texts.otherMethod}</button>`}
<div id="others"${alone ? '' : html` class="methods" role="radiogroup" aria-label="${saved.length > 0 ? texts.otherMethod : texts.methodsTitle}"`}>${list(others, saved.length)}</div>
</div>
<p id="summary" role="alert" hidden></p>
<button class="button" id="pay"><span id="pay-text">${(saved[0] ?? others[0])?.button}</span></button>
<p id="progress" class="unseen" role="status"></p>
<p class="secure">${lock}<span>${texts.secureHint}</span></p>
</form>`
}

const lock = trusted(
  '<svg viewBox="0 0 16 16" aria-hidden="true"><path fill="currentColor" d="M4 7V5a4 4 0 0 1 8 0v2h.5A1.5 1.5 0 0 1 14 8.5v5a1.5 1.5 0 0 1-1.5 1.5h-9A1.5 1.5 0 0 1 2 13.500v-5A1.5 1.5 0 0 1 3.500 7zm1.600 0h4.800V5a2.400 2.400 0 0 0-4.800 0z"/></svg>',
)

function wayHtml({ value, kind, brand, name, marks, panel, button, saved }: Way, isAlone: boolean, first: boolean): Html {
  const id = `way-${value}`
  const head = html`<label class="head"><input type="radio" name="method" id="${id}" value="${value}"${first && html` checked`}><span class="name">${name}</span>${marks}</label>`
  return html`<div class="method${first && ' chosen'}" data-value="${value}" data-kind="${kind}" data-brand="${brand}" data-button="${button}"${saved !== undefined && html` data-saved="${saved}"`}>
${!isAlone && head}
<div class="panel"${!first && html` hidden`}>${panel}</div>
</div>`
}

function savedWay(view: FormView, { language: { texts, locale }, rows }: FormLook, details: SavedDetails): Way {
  const { id, brand, last4, expiryMonth, expiryYear, accountId } = details
  const row = rows.find(({ name }) => name === brand)
  const title = brandTitle(brand)
  const digits = row?.cvvLength ?? 3
  return {
    value: `saved-${id}`,
    kind: 'registration',
    saved: id,
    brand,
    name: html`${last4 === undefined ? html`${title}${accountId !== undefined && html` <bdi>${accountId}</bdi>`}` : fill(texts.savedCard, { brand: title, last4 })}
${expiryMonth !== undefined && html`<small>${fill(texts.savedExpiry, { expiry: `${expiryMonth}/${expiryYear?.slice(2)}` })}</small>`}`,
    marks: brandMark(brand),
    panel: row
      ? html`<div class="fields">${field(texts.cvv, { id: `cvv-${id}`, name: 'card.cvv', autocomplete: 'cc-csc', length: digits, hint: cvvHint(texts, digits), wide: true })}</div>`
      : html``,
    button: payText(view, texts, locale),
  }
}

const cvvHint = (texts: Texts, digits: number): string => fill(digits === 4 ? texts.cvvHintFront : texts.cvvHint, { digits: String(digits) })

/** The card first where one is taken, then what else there is, in the order of the shop's form. */
function otherWays(view: FormView, look: FormLook): Way[] {
  const { texts, locale } = look.language
  const cards = cardBrands(view, look)
  const named = offered(view, look).filter(({ method }) => method !== 'card')
  return [
    ...(cards.length === 0
      ? []
      : [
          {
            value: 'card',
            kind: 'card' as const,
            brand: '',
            name: html`${texts.card}`,
            marks: html``,
            panel: cardPanel(view, texts, cards),
            button: payText(view, texts, locale),
          },
        ]),
    ...named.map(({ name, method }): Way => {
      const title = brandTitle(name)
      return {
        value: name,
        kind: method,
        brand: name,
        name: html`${title}`,
        marks: brandMark(name),
        panel: html`<p class="redirect">${fill(texts.redirectHint, { brand: title })}</p>`,
        button: fill(texts.payWith, { brand: title }),
      }
    }),
  ]
}

const payText = ({ standalone, amount, currency }: FormView, texts: Texts, locale: string): string =>
  standalone
    ? texts.saveCardButton
    : amount === undefined || currency === undefined
      ? texts.pay
      : fill(texts.payNow, { amount: money(locale, amount, currency) })

const offered = ({ brands }: FormView, look: FormLook): FormView['brands'] =>
  look.brands === undefined ? brands : look.brands.flatMap(name => brands.find(brand => brand.name === name) ?? [])

const cardBrands = (view: FormView, look: FormLook): string[] =>
  offered(view, look).flatMap(({ name, method }) => (method === 'card' ? [name] : []))

function cardPanel({ offersRegistration, standalone, billingName }: FormView, texts: Texts, brands: readonly string[]): Html {
  return html`<div class="fields">
${field(texts.cardNumber, { id: 'cardNumber', name: 'card.number', autocomplete: 'cc-number', placeholder: '1234 5678 9012 3456', wide: true, after: html`<div id="marks">${brands.map((name, at) => brandMark(name, html` data-brand="${name}"${at > 3 && html` hidden`}`))}</div>` })}
<fieldset id="brandChoice" hidden><legend>${texts.brandHint}</legend><div class="chips">
${brands.map(name => html`<label class="chip"><input type="radio" name="brandChoice" value="${name}">${brandTitle(name)}</label>`)}
</div></fieldset>
${field(texts.expiry, { id: 'expiry', name: 'card.expiry', autocomplete: 'cc-exp', placeholder: texts.expiryPlaceholder })}
${field(texts.cvv, { id: 'cvv', name: 'card.cvv', autocomplete: 'cc-csc', hint: cvvHint(texts, 3) })}
${field(texts.cardHolder, { id: 'cardHolder', name: 'card.holder', autocomplete: 'cc-name', words: true, wide: true, value: billingName })}
${offersRegistration && !standalone && html`<label class="check wide"><input type="checkbox" id="createRegistration">${texts.saveMyCard}</label>`}
</div>`
}

type FieldLook = {
  readonly id: string
  readonly name: string
  readonly autocomplete: string
  readonly placeholder?: string
  readonly hint?: string
  readonly value?: string | undefined
  readonly length?: number
  /** Words are written as the page is, numbers from left to right in every language. */
  readonly words?: true
  readonly wide?: true
  readonly after?: Html
}

function field(label: string, look: FieldLook): Html {
  const { id, name, autocomplete, placeholder, hint, value, length, words, wide, after } = look
  const kind = words ? html` autocapitalize="words"` : html` inputmode="numeric" dir="ltr"`
  return html`<div class="field${wide ? ' wide' : ''}">
<label class="text" for="${id}" id="${id}-label">${label}</label>
<div class="control"><input class="text" id="${id}" name="${name}" autocomplete="${autocomplete}"${kind} spellcheck="false" required aria-describedby="${id}-error${hint !== undefined && ` ${id}-hint`}"${placeholder !== undefined && html` placeholder="${placeholder}"`}${length !== undefined && html` data-length="${length}"`}${value !== undefined && html` value="${value}"`}>${after}</div>
${hint !== undefined && html`<p class="hint" id="${id}-hint">${hint}</p>`}
<p class="error" id="${id}-error" hidden></p>
</div>`
}

// biome-ignore format: a list
const scriptTexts = [
  'cardNumberMissing', 'cardNumberIncomplete', 'cardNumberWrong', 'brandNotTaken', 'cardNotTaken', 'brandMissing', 'expiryMissing', 'expiryWrong',
  'expiryPast', 'cvvMissing', 'cvvWrong', 'cvvHint', 'cvvHintFront', 'holderMissing', 'holderWrong', 'checkFields', 'offline', 'connectionLost',
  'paying', 'saving', 'timeLeft', 'overTitle', 'overText', 'paidTitle', 'paidText', 'pendingTitle', 'waitForShop', 'savedDone', 'lookInShop',
  'tryAgainLater',
] as const satisfies readonly (keyof Texts)[]

function formDataOf(view: FormView, look: FormLook): FormData {
  const { language, door, rows, now, month } = look
  const taken = cardBrands(view, look)
  return {
    state: view.state,
    door,
    id: view.id,
    standalone: view.standalone,
    payPath: `/v1/checkouts/${view.id}/${view.standalone ? 'registration' : 'payment'}`,
    statePath: `/v1/form/${view.id}?locale=${language.code}`,
    rows: taken.length === 0 ? [] : rows.map(({ name, lengths, cvvLength, cvvRequired, ranges, also }) => ({ name, title: brandTitle(name), lengths, cvvLength, cvvRequired, ranges, also })),
    taken,
    month,
    secondsLeft: Math.max(0, Math.floor((view.expiresAt - now) / 1000)),
    origins: view.frameAncestors,
    ...(view.shopperResultUrl !== undefined && { shopperResultUrl: view.shopperResultUrl }),
    cvvAsked: view.requireCvv,
    texts: Object.fromEntries(scriptTexts.map(name => [name, fill(language.texts[name], { shop: view.shop.name })])),
  }
}
