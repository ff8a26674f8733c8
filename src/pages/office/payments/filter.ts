// A filter over payments as an address says it: what somebody typed into the box and chose beside it, and what a figure narrows that leads here.

import { beginningOf } from '../../../contract/cardNumbers.ts'
import { currencies } from '../../../contract/currencies.ts'
import { dayBegin, momentOf } from '../../../contract/formats.ts'
import { resultOfCode } from '../../../contract/results/results.ts'
import { type Endings, endingOutcomes } from '../../../reporting/overview/overview.ts'
import type { FoundPayment } from '../../../reporting/search/found.ts'
import { outcomes, paymentTypes, type SearchTerms, textMost, understand } from '../../../reporting/search/terms.ts'
import { type Html, html } from '../../html.ts'

const dayMilliseconds = 86_400_000
const at = (name: 'from' | 'to', milliseconds: number): SearchTerms =>
  Number.isNaN(milliseconds) ? {} : { [name]: milliseconds }

/** By the name in the address, what each narrows; a value that says nothing narrows nothing. `merchant` narrows whose payments are looked at. */
const narrowing = {
  from: value => at('from', dayBegin(value)),
  to: value => at('to', dayBegin(value) + dayMilliseconds),
  type: value => (paymentTypes.has(value) ? { type: value } : {}),
  outcome: value => (outcomes.has(value) ? { outcome: value } : {}),
  since: value => at('from', momentOf(value)),
  until: value => at('to', momentOf(value)),
  first: value => (value === '1' ? { first: true } : {}),
  live: value => (value === '1' || value === '0' ? { live: value === '1' } : {}),
  ending: value => (Object.hasOwn(endingOutcomes, value) ? { outcomes: endingOutcomes[value as keyof Endings] } : {}),
  result: value => (resultOfCode.has(value) ? { result: value } : {}),
  currency: value => (currencies.has(value) ? { currency: value } : {}),
  merchant: () => ({}),
} as const satisfies Readonly<Record<string, (value: string) => SearchTerms>>
type Narrowing = keyof typeof narrowing

/** What somebody can see and change in the form. The others stand below it. */
export const chosenInForm: readonly Narrowing[] = ['from', 'to', 'type', 'outcome']
export const narrowed = (values: URLSearchParams): [Narrowing, string][] =>
  (Object.keys(narrowing) as Narrowing[])
    .filter(name => !chosenInForm.includes(name) && values.get(name))
    .map(name => [name, values.get(name)!])

/** What stands in the box, as far as it is read. */
export const boxText = (values: URLSearchParams): string => beginningOf((values.get('q') ?? '').trim(), textMost)
/** What narrows is a day, a word, an id. */
const valueMost = 64

/** What a filter says: the text of the box, and what narrows it. */
export function termsOf(values: URLSearchParams): SearchTerms[] {
  const terms: SearchTerms = Object.assign({}, ...Object.entries(narrowing).map(([name, of]) => of(values.get(name) ?? '')))
  const text = boxText(values)
  return (text === '' ? [{}] : understand(text)).map(meant => ({ ...meant, ...terms }))
}

/** Those within reach, or the one of them that a filter names. */
export const merchantsNamed = (values: URLSearchParams, merchants: readonly string[]): readonly string[] =>
  values.get('merchant') ? merchants.filter(id => id === values.get('merchant')) : merchants

/** What of it a form sends on: no more than is read. */
export const filterFields = (values: URLSearchParams): Readonly<Record<string, string>> =>
  Object.fromEntries(
    [
      ['q', boxText(values)],
      ...Object.keys(narrowing).map(name => [name, beginningOf(values.get(name) ?? '', valueMost)] as const),
    ].filter(([, value]) => value !== ''),
  )

/** As an address has it. */
export function queryOf(values: URLSearchParams, behind?: FoundPayment): string {
  const query = new URLSearchParams(filterFields(values))
  if (behind) query.set('behind', `${behind.receivedAt}-${behind.paymentId}`)
  return query.toString()
}

/** Where a figure leads: to the payments that it counts or adds up. */
export const paymentsLink = (text: string | number, filter: Readonly<Partial<Record<Narrowing | 'q', string>>>): Html =>
  html`<a href="/office/payments?${new URLSearchParams(filter).toString()}">${text}</a>`
