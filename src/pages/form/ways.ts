// The ways to pay as the page shows them: saved details, a card, other brands; and the fields of each.

import type { FormMethod, FormView, SavedDetails } from '../../checkouts/view.ts'
import type { MethodQuestions } from '../../connectors/registry.ts'
import { hundredths } from '../../contract/amounts.ts'
import { type Html, html, trusted } from '../html.ts'
import { type Language, moneyText } from '../languages/languages.ts'
import { fill, type Texts } from '../languages/texts.ts'
import { type SlipTexts, slipLanguage } from '../slip/texts.ts'
import { besideName, brandMark, brandPlace, brandTitle } from './brandNames.ts'
import type { FormLook } from './page.ts'

/** A way to pay, as a row of the list or, where it is the only one, without a choice. */
type PaymentWay = {
  readonly value: string
  readonly kind: FormMethod | 'registration'
  readonly brand: string
  readonly name: Html
  readonly marks: Html
  readonly panel: Html
  readonly button: string
  readonly saved?: string
}

/** Everything that the shopper chooses, types and presses. */
export function openForm(view: FormView, look: FormLook): Html {
  const { texts } = look.language
  const saved = view.registrations.map(details => savedWay(view, look, details))
  const others = otherWays(view, look)
  // None of the brands that the shop's form names is taken here: the shop has to know, and its shopper has to hear something.
  if (saved.length + others.length === 0) return html`<p role="alert">${texts.askShop}</p>`
  const alone = saved.length + others.length === 1
  const list = (ways: readonly PaymentWay[], from: number) => ways.map((way, at) => wayHtml(way, alone, from + at === 0))
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
<p class="secure" id="secure">${lock}<span>${texts.secureHint}</span></p>
</form>`
}

const lock = trusted(
  '<svg viewBox="0 0 16 16" aria-hidden="true"><path fill="currentColor" d="M4 7V5a4 4 0 0 1 8 0v2h.5A1.5 1.5 0 0 1 14 8.5v5a1.5 1.5 0 0 1-1.5 1.5h-9A1.5 1.5 0 0 1 2 13.500v-5A1.5 1.5 0 0 1 3.500 7zm1.600 0h4.800V5a2.400 2.400 0 0 0-4.800 0z"/></svg>',
)

function wayHtml({ value, kind, brand, name, marks, panel, button, saved }: PaymentWay, isAlone: boolean, first: boolean): Html {
  const id = `way-${value}`
  const head = html`<label class="head"><input type="radio" name="method" id="${id}" value="${value}"${first && html` checked`}><span class="name">${name}</span>${marks}</label>`
  return html`<div class="method${first && ' chosen'}" data-value="${value}" data-kind="${kind}" data-brand="${brand}" data-button="${button}"${saved !== undefined && html` data-saved="${saved}"`}>
${!isAlone && head}
<div class="panel"${!first && html` hidden`}>${panel}</div>
</div>`
}

function savedWay(view: FormView, { language: { texts, locale }, rows }: FormLook, details: SavedDetails): PaymentWay {
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
    marks: besideName(brand),
    panel: row
      ? html`<div class="fields">${field(texts.cvv, { id: `cvv-${id}`, name: 'card.cvv', autocomplete: 'cc-csc', length: digits, hint: cvvHint(texts, digits), wide: true })}</div>`
      : html``,
    button: payText(view, texts, locale),
  }
}

const cvvHint = (texts: Texts, digits: number): string =>
  fill(digits === 4 ? texts.cvvHintFront : texts.cvvHint, { digits: String(digits) })

/** The card first where one is taken, then what else there is, in the order of the shop's form. */
function otherWays(view: FormView, look: FormLook): PaymentWay[] {
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
            marks: html`<span class="taken">${cards.slice(0, 4).map(besideName)}</span>`,
            panel: cardPanel(view, texts, cards),
            button: payText(view, texts, locale),
          },
        ]),
    ...named.map(({ name, method, asks }): PaymentWay => {
      const title = brandTitle(name)
      return {
        value: name,
        kind: method,
        brand: name,
        name: html`${title}`,
        marks: besideName(name),
        panel: asks
          ? slipPanel(asks, name, look.language)
          : html`<p class="redirect">${fill(texts.redirectHint, { brand: title })}</p>`,
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

/** What the shop's form names, in its order. Where neither form nor channel names any, only brands with numbers of their own: national brands on
 * other brands' cards are a choice that somebody has to want. */
function offered({ brands }: FormView, { brands: named, rows }: FormLook): FormView['brands'] {
  if (named) return named.flatMap(name => brands.find(brand => brand.name === name) ?? [])
  const all = rows.every(({ name }) => brands.some(brand => brand.name === name))
  const own = new Set(rows.flatMap(({ name, ranges }) => (ranges.length > 0 ? [name] : [])))
  return all
    ? [...brands]
        .filter(({ name, method }) => method !== 'card' || own.has(name))
        .sort((a, b) => brandPlace(a.name) - brandPlace(b.name))
    : brands
}

/** Names of the card brands that are taken here, in the order of the shop's form. */
export const cardBrands = (view: FormView, look: FormLook): string[] =>
  offered(view, look).flatMap(({ name, method }) => (method === 'card' ? [name] : []))

function cardPanel({ offersRegistration, standalone, billingName }: FormView, texts: Texts, brands: readonly string[]): Html {
  return html`<div class="fields">
${field(texts.cardNumber, { id: 'cardNumber', name: 'card.number', autocomplete: 'cc-number', placeholder: '1234 5678 9012 3456', wide: true, after: html`<div id="marks">${brands.map((name, at) => brandMark(name, html` data-brand="${name}"${at > 3 && html` hidden`}`))}</div>` })}
<fieldset id="brandChoice" hidden><legend>${texts.brandHint}</legend><div class="chips">
${brands.map(name => html`<label class="chip"><input type="radio" name="brandChoice" value="${name}">${brandTitle(name)}</label>`)}
</div></fieldset>
${field(texts.expiry, { id: 'expiry', name: 'card.expiry', autocomplete: 'cc-exp', placeholder: leftToRight(texts.expiryPlaceholder) })}
${field(texts.cvv, { id: 'cvv', name: 'card.cvv', autocomplete: 'cc-csc', hint: cvvHint(texts, 3) })}
${field(texts.cardHolder, { id: 'cardHolder', name: 'card.holder', autocomplete: 'cc-name', words: true, wide: true, value: billingName })}
${offersRegistration && !standalone && html`<label class="check wide"><input type="checkbox" id="createRegistration" checked>${texts.saveMyCard}</label>`}
</div>`
}

/** The month stays at the left where its word is Arabic: the mark keeps both words from being read as one. */
const leftToRight = (text: string): string => text.replace(' / ', '\u200e / \u200e')

/** What a slip needs of its payer. */
function slipPanel({ fields, along, country }: MethodQuestions, brand: string, language: Language): Html {
  const { texts } = slipLanguage(language, country)
  return html`<p class="redirect">${texts.formHint}</p>
${fields.length > 0 && html`<div class="fields">${fields.map(name => field(texts[labels[name]!], { id: `${brand}-${name}`, name, autocomplete: autocompleteOf[name] ?? 'off', wide: true, ...(codes.has(name) ? { code: true } : { words: true }) }))}</div>`}
${Object.entries(along).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}`
}

const labels: Readonly<Record<string, keyof SlipTexts>> = {
  'customer.givenName': 'givenName',
  'customer.surname': 'surname',
  'customer.email': 'email',
  'customer.identificationDocId': 'taxId',
  'billing.street1': 'street',
  'billing.city': 'city',
  'billing.state': 'state',
  'billing.postcode': 'postcode',
}

const codes: ReadonlySet<string> = new Set([
  'customer.email',
  'customer.identificationDocId',
  'billing.state',
  'billing.postcode',
])

const autocompleteOf: Readonly<Record<string, string>> = {
  'customer.givenName': 'given-name',
  'customer.surname': 'family-name',
  'customer.email': 'email',
  'billing.street1': 'street-address',
  'billing.city': 'address-level2',
  'billing.state': 'address-level1',
  'billing.postcode': 'postal-code',
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
  /** Neither: addresses of mail, and codes that have letters too. */
  readonly code?: true
  readonly wide?: true
  readonly after?: Html
}

function field(label: string, look: FieldLook): Html {
  const { id, name, autocomplete, placeholder, hint, value, length, words, code, wide, after } = look
  const kind = words
    ? html` autocapitalize="words"`
    : code
      ? html` autocapitalize="off" dir="ltr"`
      : html` inputmode="numeric" dir="ltr"`
  return html`<div class="field${wide ? ' wide' : ''}">
<label class="text" for="${id}" id="${id}-label">${label}</label>
<div class="control"><input class="text" id="${id}" name="${name}" autocomplete="${autocomplete}"${kind} spellcheck="false" required aria-describedby="${id}-error${hint !== undefined && ` ${id}-hint`}"${placeholder !== undefined && html` placeholder="${placeholder}"`}${length !== undefined && html` data-length="${length}"`}${value !== undefined && html` value="${value}"`}>${after}</div>
${hint !== undefined && html`<p class="hint" id="${id}-hint">${hint}</p>`}
<p class="error" id="${id}-error" hidden></p>
</div>`
}

export const money = (locale: string, amount: string, currency: string): string => moneyText(locale, hundredths(amount), currency)
