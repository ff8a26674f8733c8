// What is wrong with a field, as the name of the text that says so beside it and what goes into the text's slots.

import { hasLuhnDigit } from '../../../contract/luhn.ts'
import { type BrandRow, brandOfNumber, brandsToPayAs } from './brands.ts'
import { type Expiry, expiryOf, isPast } from './expiry.ts'
import { digitsOf } from './number.ts'

export type Problem = { readonly text: string; readonly slots?: Readonly<Record<string, string>> }

/** `taken`: the names of the brands that are taken here. */
export function numberProblem(rows: readonly BrandRow[], taken: readonly string[], digits: string): Problem | undefined {
  if (digits === '') return { text: 'cardNumberMissing' }
  const own = brandOfNumber(rows, digits)
  if (!own) return { text: digits.length < 4 ? 'cardNumberIncomplete' : 'cardNotTaken' }
  const [first] = brandsToPayAs(rows, taken, digits)
  if (!first) return { text: 'brandNotTaken', slots: { brand: own.title } }
  if (digits.length < Math.min(...first.lengths)) return { text: 'cardNumberIncomplete' }
  if (first.lengths.includes(digits.length) && hasLuhnDigit(digits)) return undefined
  return { text: digits.length < usualLength(first) ? 'cardNumberIncomplete' : 'cardNumberWrong' }
}

/** What may be said before the field is left: a brand that is not taken, and a number that has all its digits and is wrong. */
export function numberProblemSoon(rows: readonly BrandRow[], taken: readonly string[], digits: string): Problem | undefined {
  const own = brandOfNumber(rows, digits)
  const [first = own] = brandsToPayAs(rows, taken, digits)
  const whole = first ? digits.length === usualLength(first) : digits.length > 5
  const problem = whole || digits.length > 5 ? numberProblem(rows, taken, digits) : undefined
  return problem?.text === 'cardNumberIncomplete' || (problem?.text === 'cardNumberWrong' && !whole) ? undefined : problem
}

const usualLength = ({ lengths }: BrandRow): number => (lengths.includes(16) ? 16 : lengths[0]!)

/** `present`: this month, `2026-11`; absent = a card that is past is taken too. */
export function expiryProblem(text: string, present: string | undefined, example: string): Problem | undefined {
  if (digitsOf(text) === '') return { text: 'expiryMissing' }
  const expiry: Expiry | undefined = expiryOf(text)
  if (!expiry) return { text: 'expiryWrong', slots: { example } }
  return present !== undefined && isPast(expiry, present) ? { text: 'expiryPast' } : undefined
}

export function cvvProblem(digits: string, length: number, optional: boolean): Problem | undefined {
  if (digits === '') return optional ? undefined : { text: 'cvvMissing' }
  return digits.length === length ? undefined : { text: 'cvvWrong', slots: { digits: String(length) } }
}

/** A number in the name's place was meant for another field. */
export function holderProblem(text: string, optional: boolean): Problem | undefined {
  if (text.trim() === '') return optional ? undefined : { text: 'holderMissing' }
  return text.trim().length < 3 || text.trim().length > 128 || digitsOf(text).length > 7 ? { text: 'holderWrong' } : undefined
}
