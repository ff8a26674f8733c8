// Card numbers and CVVs where none belongs: found in texts however these are written, and hidden, shortened or left; and texts that are cut without showing one.

import type { CardLengths } from './brands.ts'
import { hideCodes, isCode, isCodeKey, passing, placesOfCodes } from './cardCodes.ts'
import { findRun, ordinaryRun, plainDigitsOf, replaceIn, shortestNumber, valueOfDigit } from './cardRuns.ts'
import { hasLuhnDigit } from './luhn.ts'
import { changeAround, type OwnNumber } from './ownNumbers.ts'
import { isEscaped, numeral, type Readings, readingsOf, unescaped } from './readings.ts'

/** What becomes of a card number where none belongs. `keep` leaves it there with a warning. */
export const treatments = ['refuse', 'mask', 'keep'] as const
export type Treatment = (typeof treatments)[number]

/** Texts of people, and identifiers, which pass for card numbers by chance: one in ten order numbers of sixteen digits has a right check digit. */
export type CardNumberRules = { readonly inTexts: Treatment; readonly inIdentifiers: Treatment }

/** May a card number stand in it? The one look at most values. */
export const mayHoldCardNumber = (text: string): boolean => isLong(text) && holdsRun(text, readingsOf(text))

/** A number in a circle can have two digits. */
const isLong = (text: string): boolean =>
  text.length >= shortestNumber || (text.length >= shortestNumber / 2 && numeral.test(text))

const holdsRun = (text: string, { plain, marked }: Readings): boolean =>
  [text, plain, marked].some((one, at) => (at === 0 || one !== text) && findRun(one, 0) !== undefined)

/** May an error repeat it? Not twelve digits in a row, with a wrong check digit either: a card number is mistyped more often than sent to the wrong place. */
export function mayBeRepeated(text: string): boolean {
  const { plain, marked } = readingsOf(text)
  return !ordinaryRun.test(plain) && !ordinaryRun.test(marked) && !holdsCardData(text)
}

/** Is there a card number of some brands in it, or a CVV? Without brands of any number that could be one. */
export const holdsCardData = (text: string, brands?: CardLengths): boolean => maskCardNumbers(text, brands) !== text

/** Of each card number of some brands only the last four digits are left, the others are `x`, as all of a CVV are; without brands of all that could be one.
 * `own`: what is left as it is, where the text is written without escapes. */
export function maskCardNumbers(text: string, brands?: CardLengths, own?: readonly OwnNumber[]): string {
  const meant = readingsOf(text)
  const numbersMasked = maskedAround(text, brands, own, masked, meant)
  if (numbersMasked === text) return withoutCodes(text, false, crossed, meant)
  const { places } = codesAmongNumbers(text, numbersMasked, meant)
  return withoutCodes(crossedAt(numbersMasked, places), true, crossed).replaceAll(passing, 'x')
}

/**
 * Where CVVs stand in the reading of a text in which its numbers were crossed out: with what passes for a number by chance goes the end of a card beside it, or its CVV, and that
 * would be known by nothing. `inRows`: what parts the digits of a number was crossed out with them.
 */
function codesAmongNumbers(
  text: string,
  numberless: string,
  { plain, marked }: Readings,
  inRows = false,
): { readonly read: string; readonly places: ReadonlySet<number> } {
  const isRead = (one: string): boolean => {
    if (one.length !== numberless.length) return false
    for (let at = 0; at < one.length; at++)
      if (numberless[at] !== one[at] && numberless[at] !== 'x' && numberless[at] !== passing) return false
    return true
  }
  const read = [text, plain, marked].find(isRead)
  return read === undefined
    ? { read: text, places: new Set() }
    : { read, places: placesOfCodes(read, at => numberless[at] !== read[at], inRows) }
}

/** As long as the text, sign by sign. */
const writeSigns = (text: string, signAt: (at: number) => string): string =>
  Array.from({ length: text.length }, (_, at) => signAt(at)).join('')

const crossedAt = (text: string, places: ReadonlySet<number>): string =>
  places.size === 0 ? text : writeSigns(text, at => (places.has(at) ? 'x' : text[at]!))

/** In digits of a script that is written by few, so that they are known again, and are digits still. */
const toldAt = (text: string, places: ReadonlySet<number>): string =>
  writeSigns(text, at => {
    const value = places.has(at) ? valueOfDigit(text.charCodeAt(at)) : undefined
    return value === undefined ? text[at]! : String.fromCharCode(0x7c0 + value)
  })
const toldDigit = /[\u07c0-\u07c9]/
const toldDigits = /[\u07c0-\u07c9]+/g

/** The same of the value of a free key, which is a CVV where the key says so. */
export const maskKeyed = (key: string | undefined, value: string, brands?: CardLengths, own?: readonly OwnNumber[]): string =>
  isKeyedCode(key, value) ? crossed(unescaped(value)) : maskCardNumbers(value, brands, own)

/** The same, with card numbers left as they are. */
export const maskKeyedCode = (
  key: string | undefined,
  value: string,
  brands?: CardLengths,
  own?: readonly OwnNumber[],
): string => (isKeyedCode(key, value) ? crossed(unescaped(value)) : withoutCodesBeside(value, brands, own))

/** A CVV stands beside a number, not in it: it is looked for where the numbers are crossed out, which are left where they stand as they came. */
function withoutCodesBeside(text: string, brands?: CardLengths, own: readonly OwnNumber[] = []): string {
  const crossOut = (one: string) => replaceIn(one, lengthsOf(brands), crossedCard)
  const meant = readingsOf(text)
  // Where they stand open, as written: in another reading marks are blank, and with them a CVV that stands in one.
  const written = isEscaped(text) ? crossOut(text) : changeAround(text, own, crossOut)
  const beside = written === text ? maskedAround(text, brands, own, crossedCard, meant) : written
  if (beside === text) return withoutCodes(text, false, crossed, meant)
  const { places: amongNumbers } = codesAmongNumbers(text, beside, meant, true)
  const changed = withoutCodes(crossedAt(beside, amongNumbers), true, crossed)
  // Of the marks that were blank one may hold it.
  const isBlanked = written === text && meant.marked !== text
  if (changed === beside && amongNumbers.size === 0) return isBlanked ? withoutCodes(text, true, crossed, meant) : text
  if (text.length !== beside.length || changed.length !== text.length) return changed
  const isCrossed = (at: number) => amongNumbers.has(at) || changed[at] !== beside[at]
  return writeSigns(text, at => (isCrossed(at) ? changed : text)[at]!)
}

const isKeyedCode = (key: string | undefined, value: string): boolean =>
  key !== undefined && isCodeKey(key) && isCode(unescaped(value))

const maskedAround = (
  text: string,
  brands: CardLengths | undefined,
  own: readonly OwnNumber[] = [],
  mask = masked,
  meant = readingsOf(text),
): string => {
  const maskNumbers = (one: string, meant: Readings) => replaceNumbers(one, lengthsOf(brands), mask, meant)
  return meant.plain === text
    ? changeAround(text, own, beside => maskNumbers(beside, { plain: beside, marked: beside, between: [] }))
    : maskNumbers(text, meant)
}

const lengthsOf = (brands: CardLengths | undefined) => (beginning: string) => (brands ? brands.lengthsOf(beginning) : cardLengths)

type Change = (text: string) => string

/** What was escaped once too often is looked at as it was meant, and stays as it came when there is nothing in it. */
function changeAsMeant(text: string, change: Change, meant = unescaped(text)): string {
  const changed = change(meant)
  return changed === meant ? text : changed
}

/** As it was meant, where its marks are blank, or else within marks. Undefined when there is nothing to change. */
function changeReading(text: string, change: Change, { plain, marked } = readingsOf(text)): string | undefined {
  const changed = plain === text ? text : change(plain)
  if (changed !== plain) return changed
  const within = marked === text ? text : change(marked)
  return within === marked ? undefined : within
}

export function withoutCodes(
  text: string,
  besideNumber: boolean,
  hide: (digits: string) => string,
  meant = readingsOf(text),
): string {
  const change: Change = one => hideCodes(one, besideNumber, hide)
  // As it was meant first where something is escaped, or stands in marks: digits of an escape would pass for the code.
  if (isEscaped(text) || meant.marked !== text) {
    const changed = changeReading(text, change, meant)
    if (changed !== undefined) return changed
  }
  const asWritten = change(text)
  return changeAsMeant(asWritten, change, asWritten === text ? meant.plain : undefined)
}

const digits = /\p{Nd}/gu
/** Each of its digits is an `x`. */
export const crossed = (text: string): string => text.replace(digits, 'x')

/** Of a number that is known all but the last four digits go, wherever they stand: whatever is between them, and whatever digits are beside; and so does a CVV in its text. */
export function withoutNumber(text: string, number: string): string {
  const change: Change = one => hideNumbers(one, [number])
  const asWritten = change(text)
  const numberless = changeReading(asWritten, change) ?? asWritten
  return numberless === text ? text : withoutCodes(numberless, true, crossed)
}

/** Several are looked for at once: what one hides is no part of another any more. */
function hideNumbers(text: string, numbers: readonly string[]): string {
  let all = ''
  const at: number[] = []
  for (let position = 0; position < text.length; position++) {
    const point = text.codePointAt(position)!
    const value = valueOfDigit(point)
    if (value !== undefined) {
      all += value
      at.push(position)
    }
    if (point > 0xffff) position++
  }
  const hidden = new Uint8Array(all.length)
  for (const number of numbers)
    for (let first = all.indexOf(number); first >= 0; first = all.indexOf(number, first + 1))
      hidden.fill(1, first, first + number.length - 4)
  let shown = ''
  let copied = 0
  for (let place = hidden.indexOf(1); place >= 0; place = hidden.indexOf(1, place + 1)) {
    shown += `${text.slice(copied, at[place])}x`
    copied = at[place]! + (text.codePointAt(at[place]!)! > 0xffff ? 2 : 1)
  }
  return shown + text.slice(copied)
}

/** The beginning of a longer text. Digits at its end are left out: a number that is cut has no right check digit, and would be shown. */
export function beginningOf(text: string, most: number): string {
  if (text.length <= most) return text
  const beginning = text.slice(0, most)
  const flat = beginning.replace(references, flattened)
  // Each of the two looks once along the text: one pattern for both would begin anew at every digit.
  const lettered = /^.*\p{L}/su.exec(flat)?.[0].length ?? 0
  const digits = flat.slice(lettered).search(/[\p{Nd}\p{No}]/u)
  return digits < 0 ? beginning : beginning.slice(0, lettered + digits)
}

/** What stands for a sign or a digit, or between them, and is written with letters; at the end also what was cut of one. */
const references =
  /&lt;(?:[^<>&]|&(?![lg]t;))+(?:&gt;|$)|&(?:#x?[0-9a-f]{1,25};?|[a-z][a-z0-9]{1,31};|nbsp)|<[^<>]+>|(?:%[0-9a-f]{2})+|\\(?:u[0-9a-f]{4}|x[0-9a-f]{2}|[bfnrt])|(?:&[#a-z0-9]{0,40}|<[^<>]*|%[0-9a-f]?|\\[ux]?[0-9a-f]{0,3})$/gi
/** As many signs, none of which is a letter. What stands for one sign may be a digit; digits within a mark are such, since what looks like one that is cut may be none. */
const flattened = (written: string): string =>
  /^[%\\](?![bfnrt])|^&#/.test(written)
    ? '0'.repeat(written.length)
    : written.replace(/[^\p{Nd}\p{No}]/gu, one => '.'.repeat(one.length))

/** What is kept of what another server wrote: masked, with so much more of it that a number is known which is cut. `isWhole`: nothing more would have come. */
export function writtenBeginning(text: string, most: number, isWhole = true): string {
  const read = isWhole ? text : `${text}…`
  return beginningOf(maskCardNumbers(beginningOf(read, Math.min(text.length, 4 * most))), most)
}

/** What may be shown of a card number: its first six digits, none of a short number, which they would give away, and its last four. */
export const shownDigits = (number: string): { first: string; last: string } => ({
  first: number.length < 15 ? '' : number.slice(0, 6),
  last: number.slice(-4),
})

/** As people speak of a card. */
export function shortNumber(number: string): string {
  const { first, last } = shownDigits(number)
  return `${first}…${last}`
}

/** Of each card number of some brands that is left which may be shown, and no CVV. */
export const shortenCards = (text: string, brands: CardLengths): string =>
  withoutCards(
    text,
    beginning => brands.lengthsOf(beginning),
    found => shortNumber(plainDigitsOf(found)),
    { number: '…', code: '…' },
  )

/** Others stand in the place of card numbers and CVVs. `instead`: of a number that is one for sure. */
export function withoutCards(
  text: string,
  lengthsOf: (beginning: string) => readonly number[],
  instead: (found: string) => string,
  { number, code }: { readonly number: string; readonly code: string },
): string {
  const rows = replaceNumbers(text, lengthsOf, found => 'x'.repeat(found.length))
  // Most texts hold none: nothing more is looked for in them.
  if (rows === text) return withoutCodes(text, false, () => code).replaceAll(passing, number)
  const { read, places } = codesAmongNumbers(text, rows, readingsOf(text), true)
  // Which digits of what passes for a number with one are the card cannot be known: none of them is shown.
  const told = places.size === 0 ? text : toldAt(read, places)
  const hide = (found: string) => (mayHoldMore(found) || toldDigit.test(found) ? passing : instead(found))
  const numberless = replaceNumbers(told, lengthsOf, hide).replace(toldDigits, code)
  return withoutCodes(numberless, numberless !== text, () => code).replaceAll(passing, number)
}

/** Lengths of card numbers, whatever their brand. */
export const cardLengths: readonly number[] = [12, 13, 14, 15, 16, 17, 18, 19]

/** Replaces what begins and ends at the edge of a group of digits, has a right check digit and one of the lengths that its first twelve digits allow;
 * those that overlap are one. `meant`: how else the text may be read, where that is known. */
export function replaceNumbers(
  text: string,
  lengthsOf: (beginning: string) => readonly number[],
  instead: (found: string) => string,
  meant?: Readings,
): string {
  if (!isLong(text)) return text
  const readings = meant ?? readingsOf(text)
  if (!holdsRun(text, readings)) return text
  // A number that stands open is one still where a digit that was escaped has come beside it.
  const written = new Set<string>()
  const numbersIn: Change = one =>
    replaceIn(one, lengthsOf, found => {
      written.add(plainDigitsOf(found))
      return instead(found)
    })
  const asWritten = numbersIn(text)
  let isOpenLater = false
  for (const one of readings.between) if (numbersIn(one) !== one) isOpenLater = true
  const replaced = changeReading(text, one => replaceIn(one, lengthsOf, instead, written), readings)
  // What was escaped stays as it came when there is nothing in it.
  if (replaced === undefined && !isOpenLater) return asWritten
  // A sign before one may have taken its first digits for the end of an escape (`%4539…`, `\\u4539…`).
  const behindEscapes = [...written].slice(0, writtenMost).map(one => one.slice(escapeDigits))
  return hideNumbers(replaced ?? readings.plain, behindEscapes)
}

/** So many that stand open are looked for where others were escaped, each once along the text. */
const writtenMost = 16
const escapeDigits = 4

/** All but the last four digits, where these are the number's for sure. */
function masked(found: string): string {
  if (mayHoldMore(found)) return found.replace(digits, passing)
  let from = found.length
  for (let left = 4; left > 0; ) if (valueOfDigit(found.codePointAt(--from)!) !== undefined) left--
  return crossed(found.slice(0, from)) + found.slice(from)
}

/** Of what may hold more the card alone, where it begins with one. What parts its digits, too: whatever its groups, it is one row. */
function crossedCard(found: string): string {
  const end = mayHoldMore(found) ? endOfCard(found) : found.length
  return 'x'.repeat(end) + found.slice(end)
}

/** Where the card ends with which it begins, if it begins with one. */
function endOfCard(found: string): number {
  let seen = ''
  /** By how many digits there are up to the end of each group: where it ends. */
  const ends = new Map<number, number>()
  for (const { 0: group, index } of found.matchAll(/\p{Nd}+/gu)) {
    seen += plainDigitsOf(group)
    ends.set(seen.length, index + group.length)
  }
  const length = usualLengths.find(length => ends.has(length) && hasLuhnDigit(seen.slice(0, length)))
  return length === undefined ? found.length : ends.get(length)!
}

/** Of card numbers, the most usual first: with what stands behind it one is a right number of another length by chance. */
const usualLengths = [16, 15, 14, 13, 19, 18, 17, 12]

/** Does a group of digits begin in it behind as many as a card may have, and is it not one in the groups of a card, or of digits that stand alone? Then it may be a card with its end
 * and CVV behind it, which pass for a number by chance, or overlap with one: which four are the last of the card cannot be known. */
function mayHoldMore(found: string): boolean {
  const groups = (found.match(/\p{Nd}+/gu) ?? []).map(group => [...group].length)
  const beforeLast = groups.slice(0, -1).reduce((sum, length) => sum + length, 0)
  return beforeLast >= shortestNumber && !/^(?:4,4,4,4|1(?:,1)+)$/.test(groups.join())
}
