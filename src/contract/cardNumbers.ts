// Card numbers where none belongs: runs of digits that pass the check digit and have the range and the length of a card brand.
// Dots, spaces, hyphens and invisible characters inside a run count as nothing; digits of other scripts count as digits.

import type { CardBrands } from './brands.ts'

/** What becomes of a card number where none belongs. `keep` leaves it there with a warning. */
export const treatments = ['refuse', 'mask', 'keep'] as const
export type Treatment = (typeof treatments)[number]

/** Texts of people, and identifiers, which pass for card numbers by chance: one in ten order numbers of sixteen digits has a right check digit. */
export type CardNumberRules = { readonly inTexts: Treatment; readonly inIdentifiers: Treatment }

const [shortest, longest] = [12, 19]
const between = '[\\s\\p{Pd}\\p{Cf}.]{0,3}'
const longRun = new RegExp(`\\p{Nd}(?:${between}\\p{Nd}){${shortest - 1},}`, 'u')
const longRuns = new RegExp(longRun.source, 'gu')
const digit = /\p{Nd}/u
const digits = /\p{Nd}/gu

/** Twelve digits or more stand in it: what a card number may be. The one look at most values. */
export const hasLongRun = (text: string): boolean => text.length >= shortest && longRun.test(text)

/** Of each card number of some brands only the last four digits are left, the others are `x`; without brands of all that could be one. */
export const maskCardNumbers = (text: string, brands?: CardBrands): string =>
  replaceNumbers(text, beginning => (brands ? lengthsOf(brands, beginning) : cardLengths), masked)

/** Lengths of card numbers, whatever their brand. */
export const cardLengths: readonly number[] = [12, 13, 14, 15, 16, 17, 18, 19]

/** Lengths that numbers of the brands have that begin with these digits. */
function lengthsOf(brands: CardBrands, beginning: string): readonly number[] {
  const brand = brands.detect(beginning)
  return brand ? [brand.name, ...brand.also].flatMap(name => brands.named(name)?.lengths ?? []) : []
}

/** Replaces what begins and ends at the edge of a group of digits, has a right check digit and one of the lengths that its first twelve digits allow;
 * of overlapping numbers the first, and of those the longest. */
export function replaceNumbers(
  text: string,
  lengthsOf: (beginning: string) => readonly number[],
  instead: (found: string) => string,
): string {
  if (!hasLongRun(text)) return text
  return text.replace(longRuns, run => {
    const read = readRun(run)
    let replaced = ''
    let copied = 0
    for (let first = 0; first + shortest <= read.values.length; first++) {
      const last = read.begins[first] ? endOfNumber(read, first, lengthsOf) : undefined
      if (last === undefined) continue
      replaced += run.slice(copied, read.at[first]) + instead(run.slice(read.at[first], read.at[last]! + read.widths[last]!))
      copied = read.at[last]! + read.widths[last]!
      first = last
    }
    return replaced + run.slice(copied)
  })
}

type Run = {
  /** Of each digit: its value, where it stands in the text, how many units it takes there, and whether a group of digits begins or ends with it. */
  readonly values: number[]
  readonly at: number[]
  readonly widths: number[]
  readonly begins: boolean[]
  readonly ends: boolean[]
  /** Sums for the check digit up to each digit, with the digits at odd places doubled, and with those at even ones: any part is judged in one step. */
  readonly sums: readonly [oddDoubled: number[], evenDoubled: number[]]
}

function readRun(text: string): Run {
  const run: Run = { values: [], at: [], widths: [], begins: [], ends: [], sums: [[0], [0]] }
  let inGroup = false
  let position = 0
  for (const sign of text) {
    const value = valueOfDigit(sign)
    if (value === undefined) {
      if (inGroup) run.ends[run.values.length - 1] = true
    } else {
      const place = run.values.length
      const doubled = value > 4 ? value * 2 - 9 : value * 2
      run.sums[0].push(run.sums[0][place]! + (place % 2 === 1 ? doubled : value))
      run.sums[1].push(run.sums[1][place]! + (place % 2 === 0 ? doubled : value))
      run.values.push(value)
      run.at.push(position)
      run.widths.push(sign.length)
      run.begins.push(!inGroup)
      run.ends.push(false)
    }
    inGroup = value !== undefined
    position += sign.length
  }
  run.ends[run.values.length - 1] = true
  return run
}

function endOfNumber(
  { values, ends, sums }: Run,
  first: number,
  lengthsOf: (beginning: string) => readonly number[],
): number | undefined {
  let lengths: readonly number[] | undefined
  for (let length = Math.min(longest, values.length - first); length >= shortest; length--) {
    const last = first + length - 1
    // The last digit is the check digit, the one before it counts twice.
    const sum = sums[last % 2 === 0 ? 0 : 1]
    if (!ends[last] || (sum[last + 1]! - sum[first]!) % 10 !== 0) continue
    lengths ??= lengthsOf(values.slice(first, first + shortest).join(''))
    if (lengths.includes(length)) return last
  }
  return undefined
}

function masked(found: string): string {
  let hidden = found.match(digits)!.length - 4
  return found.replace(digits, one => (hidden-- > 0 ? 'x' : one))
}

/** 0 to 9, in every script: digits stand in blocks of ten. */
function valueOfDigit(sign: string): number | undefined {
  const point = sign.codePointAt(0)!
  if (point < 128) return point >= 48 && point <= 57 ? point - 48 : undefined
  if (!digit.test(sign)) return undefined
  let zero = point
  while (digit.test(String.fromCodePoint(zero - 1))) zero--
  return (point - zero) % 10
}
