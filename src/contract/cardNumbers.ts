// Card numbers where none belongs: runs of digits that pass the check digit and have the range and the length of a card brand.
// Dots, spaces, hyphens and invisible characters inside a run count as nothing; digits of other scripts count as digits. Other signs, and marks of HTML,
// stand inside a card number only where its digits are grouped as on a card, or each stands alone: dates, coordinates and lists are full of them.

import type { CardBrands } from './brands.ts'

/** What becomes of a card number where none belongs. `keep` leaves it there with a warning. */
export const treatments = ['refuse', 'mask', 'keep'] as const
export type Treatment = (typeof treatments)[number]

/** Texts of people, and identifiers, which pass for card numbers by chance: one in ten order numbers of sixteen digits has a right check digit. */
export type CardNumberRules = { readonly inTexts: Treatment; readonly inIdentifiers: Treatment }

const [shortest, longest] = [12, 19]
const ordinary = '[\\s\\p{Pd}\\p{Cf}.]{0,3}'
// A mark begins with a letter or a slash before it, so that no text can be read in two ways.
const any = '(?:[^\\p{L}\\p{Nd}]|</?\\p{L}[^<>\\p{Nd}]{0,16}>){0,8}'
const runWith = (gap: string, flags: string) => new RegExp(`\\p{Nd}(?:${gap}\\p{Nd}){${shortest - 1},}`, flags)
const ordinaryRun = runWith(ordinary, 'u')
const anyRun = runWith(any, 'u')
const anyRuns = runWith(any, 'gu')
const ordinaryGap = new RegExp(`^${ordinary}$`, 'u')
const cardGroups = /^(4 4 4 4( [1-3])?|4 6 [45]|1( 1)*)$/
const digit = /\p{Nd}/u
const digits = /\p{Nd}/gu

/** May a card number stand in it? The one look at most values. */
export function mayHoldCardNumber(text: string): boolean {
  if (text.length < shortest) return false
  const plain = unescaped(text)
  return anyRun.test(text) || (plain !== text && anyRun.test(plain))
}

/** May an error repeat it? Not twelve digits in a row, with a wrong check digit either: a card number is mistyped more often than sent to the wrong place. */
export const mayBeRepeated = (text: string): boolean => !ordinaryRun.test(text) && maskCardNumbers(text) === text

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
  if (!mayHoldCardNumber(text)) return text
  const plain = unescaped(text)
  if (plain === text) return replaceIn(text, lengthsOf, instead)
  // What was escaped once too often is looked at as it was meant, and stays as it came when there is nothing in it.
  const replaced = replaceIn(plain, lengthsOf, instead)
  return replaced === plain ? replaceIn(text, lengthsOf, instead) : replaced
}

/** `%34` is a 4, `%20` and `+` between digits a space: so often as a caller has escaped a text, up to three times. */
function unescaped(text: string): string {
  let plain = text
  for (let times = 0; times < 3 && plain.includes('%'); times++)
    plain = plain.replace(/%([2-7][0-9a-f])/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
  return plain
}

function replaceIn(
  text: string,
  lengthsOf: (beginning: string) => readonly number[],
  instead: (found: string) => string,
): string {
  return text.replace(anyRuns, run => {
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
  /** Of each digit: its value, where it stands in the text, how many units it takes there, and whether a group of digits begins with it. */
  readonly values: number[]
  readonly at: number[]
  readonly widths: number[]
  readonly begins: boolean[]
  /** How many gaps up to each digit hold other signs than the ordinary ones. */
  readonly strange: number[]
  /** Sums for the check digit up to each digit, with the digits at odd places doubled, and with those at even ones: any part is judged in one step. */
  readonly sums: readonly [oddDoubled: number[], evenDoubled: number[]]
}

function readRun(text: string): Run {
  const run: Run = { values: [], at: [], widths: [], begins: [], strange: [0], sums: [[0], [0]] }
  let position = 0
  let end = 0
  for (const sign of text) {
    const value = valueOfDigit(sign)
    if (value !== undefined) {
      const place = run.values.length
      const doubled = value > 4 ? value * 2 - 9 : value * 2
      run.sums[0].push(run.sums[0][place]! + (place % 2 === 1 ? doubled : value))
      run.sums[1].push(run.sums[1][place]! + (place % 2 === 0 ? doubled : value))
      run.values.push(value)
      run.at.push(position)
      run.widths.push(sign.length)
      const begins = place === 0 || end < position
      run.begins.push(begins)
      if (place > 0) run.strange.push(run.strange[place - 1]! + (begins && !ordinaryGap.test(text.slice(end, position)) ? 1 : 0))
      end = position + sign.length
    }
    position += sign.length
  }
  return run
}

function endOfNumber(run: Run, first: number, lengthsOf: (beginning: string) => readonly number[]): number | undefined {
  const { values, begins, sums } = run
  let lengths: readonly number[] | undefined
  for (let length = Math.min(longest, values.length - first); length >= shortest; length--) {
    const last = first + length - 1
    // The last digit is the check digit, the one before it counts twice.
    const sum = sums[last % 2 === 0 ? 0 : 1]
    if (begins[last + 1] === false || (sum[last + 1]! - sum[first]!) % 10 !== 0) continue
    lengths ??= lengthsOf(values.slice(first, first + shortest).join(''))
    if (lengths.includes(length) && isWritten(run, first, last)) return last
  }
  return undefined
}

function masked(found: string): string {
  let hidden = found.match(digits)!.length - 4
  return found.replace(digits, one => (hidden-- > 0 ? 'x' : one))
}

/** Is there nothing strange between its digits, or do they stand in groups as on a card? */
function isWritten({ begins, strange }: Run, first: number, last: number): boolean {
  if (strange[first] === strange[last]) return true
  const groups: number[] = []
  for (let place = first; place <= last; place++) {
    if (place === first || begins[place]) groups.push(0)
    groups[groups.length - 1]!++
  }
  return cardGroups.test(groups.join(' '))
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
