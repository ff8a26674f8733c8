// What payments can be looked for by, and what somebody means who types or pastes something into one box. A word can be read in several ways: all are tried.

import { hundredths } from '../../contract/amounts.ts'
import { knownBrands, otherBrands, standardBrands } from '../../contract/brands.ts'
import { beginningOf, holdsCardData, shortenCards } from '../../contract/cardNumbers.ts'
import { currencies } from '../../contract/currencies.ts'
import { dayBegin } from '../../contract/formats.ts'

/** One condition on payments; those of a filter hold together. */
export type SearchTerms = {
  readonly id?: string
  /** What refers to the first payment of a chain. */
  readonly chain?: string
  readonly merchantTransactionId?: string
  readonly invoice?: string
  /** Hundredths. */
  readonly amount?: number
  readonly currency?: string
  readonly brand?: string
  readonly type?: string
  /** Code. */
  readonly result?: string
  readonly outcome?: string
  /** Any of these. */
  readonly outcomes?: readonly string[]
  /** Not what refers to another payment. */
  readonly first?: boolean
  readonly live?: boolean
  readonly bin?: string
  readonly lastFour?: string
  readonly email?: string
  readonly descriptor?: string
  readonly slipNumber?: string
  readonly reference?: string
  readonly channel?: string
  /** Business time, milliseconds: from inclusive, to exclusive. */
  readonly from?: number
  readonly to?: number
}

export const paymentTypes: ReadonlySet<string> = new Set(['PA', 'DB', 'CD', 'CP', 'RF', 'RV', 'RC', 'CB', 'CR', '3D'])
export const outcomes: ReadonlySet<string> = new Set(['success', 'review', 'pending', 'rejected', 'invalid', 'error'])
const brands: ReadonlySet<string> = new Set([...standardBrands.rows.map(({ name }) => name), ...otherBrands])

const dayMilliseconds = 86_400_000

type Reading = readonly [looks: RegExp, means: (word: string, ...parts: string[]) => SearchTerms | undefined, only?: true]

/** Each way in which a word can be read: what it looks like, and what it then means. `only`: nothing else does. */
const readings: readonly Reading[] = [
  [/^[0-9a-f]{32}$/i, word => ({ id: word.toLowerCase() })],
  [/^[0-9a-f]{32}$/i, word => ({ chain: word.toLowerCase() })],
  [/^[^@\s]+@[^@\s]+$/, word => ({ email: word }), true],
  [/^\d{3}\.\d{3}\.\d{3}$/, word => ({ result: word }), true],
  [/^(\d{4}-\d\d-\d\d)(?:\.\.(\d{4}-\d\d-\d\d))?$/, (_, first, last) => days(first!, last || first!), true],
  [/^(\d{6})\D{1,12}(\d{4})$/, (_, bin, lastFour) => ({ bin: bin!, lastFour: lastFour! }), true],
  [/^[*x•…]+(\d{4})$/i, (_, lastFour) => ({ lastFour: lastFour! }), true],
  [/^(\d{1,10})[.,](\d\d)$/, (_, whole, cents) => amountOf(`${whole}.${cents}`), true],
  [/^[A-Z]{3}$/, word => (currencies.has(word) ? { currency: word } : undefined)],
  [/^[A-Za-z0-9]{2}$/, word => (paymentTypes.has(word.toUpperCase()) ? { type: word.toUpperCase() } : undefined), true],
  [/^[A-Za-z]+$/, word => (outcomes.has(word.toLowerCase()) ? { outcome: word.toLowerCase() } : undefined)],
  [/^\w+$/, word => (brands.has(word.toUpperCase()) ? { brand: word.toUpperCase() } : undefined)],
  [/^\d{6}$/, word => ({ bin: word })],
  [/^\d{4}$/, word => ({ lastFour: word })],
  [/^\d{1,9}$/, word => amountOf(`${word}.00`)],
  [/^\d{8,20}$/, word => ({ slipNumber: word })],
  // With its wallet and its digit, as slips show it.
  [/^\d{1,3}\/(\d{8,17})-[\dP]$/i, (_, number) => ({ slipNumber: number! })],
  [/^[A-Za-z0-9]{12}$/, word => ({ reference: word })],
  [/^.{1,255}$/, word => ({ merchantTransactionId: word })],
  [/^.{1,255}$/, word => ({ invoice: word })],
  [/^.{1,127}$/, word => ({ descriptor: word })],
]

/** The most ways in which one text is read. */
export const readingsMost = 24

/** Names of merchants are no longer; and a sentence of many words is one name, or nothing. */
export const textMost = 255
const wordsMost = 8
const namesOf = (text: string): SearchTerms[] => [{ merchantTransactionId: text }, { invoice: text }, { descriptor: text }]

/** What names a payment and passes for a card number, or holds what passes for a CVV, is looked for as it is, and nothing else that is typed: no table has a card number there.
 * Nobody may keep these terms or put them into an address. None where nothing passes for either. */
export function namedExactly(text: string): SearchTerms[] {
  const exact = beginningOf(text.trim(), textMost)
  if (!holdsCardData(exact, knownBrands)) return []
  const numbers = /^\d{8,20}$/.test(exact) ? [{ reference: exact }, { slipNumber: exact }] : []
  return [{ merchantTransactionId: exact }, { invoice: exact }, ...numbers]
}

/** What somebody means by a text: any of these. Words hold together; a text of several words can also be one name. */
export function understand(text: string): SearchTerms[] {
  const whole = beginningOf(shortenCards(text.trim(), knownBrands), textMost)
  const words = whole.split(/\s+/).filter(word => word !== '')
  if (words.length === 0) return []
  if (words.length > wordsMost) return namesOf(whole)
  const split = words.reduce<SearchTerms[]>(
    (so, word) => so.flatMap(before => meaningsOf(word).map(means => ({ ...before, ...means }))).slice(0, readingsMost),
    [{}],
  )
  return words.length === 1 ? split : [...split, ...namesOf(whole)]
}

function meaningsOf(word: string): SearchTerms[] {
  const meanings: SearchTerms[] = []
  for (const [looks, means, only] of readings) {
    const parts = looks.exec(word)
    const meaning = parts && means(...(parts as unknown as [string]))
    if (meaning && only) return [meaning]
    if (meaning) meanings.push(meaning)
  }
  return meanings
}

/** Whole days of UTC, both ends inclusive. */
function days(first: string, last: string): SearchTerms | undefined {
  const [from, to] = [dayBegin(first), dayBegin(last) + dayMilliseconds]
  return from < to ? { from, to } : undefined
}

const amountOf = (text: string): SearchTerms => ({ amount: hundredths(text) })
