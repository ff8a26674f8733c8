// How else a text may be read than as it came: as it was meant before somebody escaped it, for a page, for JSON or for a URL, once too often; with the digits of all
// scripts as ours, and without marks of HTML or XML. What hides in a text is looked for there as well.

import { codeNamedBy } from './cardCodes.ts'

/** Raised, lowered, in circles or brackets, with a full stop behind them: numerals, though no digits by their class. */
export const numeral = /\p{No}/u
const numerals = /\p{No}/gu
/** Those of them that have no plain form in Unicode: the first of ten, and what it counts. Black, double, in the hands of type setters, and of scripts without a zero. */
const plainless: readonly (readonly [first: number, counts: number])[] = [
  [0x24eb, 11], [0x24f5, 1], [0x24ff, 0], [0x2776, 1], [0x2780, 1], [0x278a, 1], [0x1f10b, 0], [0x1f10c, 0],
  [0x1369, 1], [0x19da, 1], [0x10a40, 1], [0x10e60, 1], [0x11052, 1], [0x17f0, 0], [0x17f1, 1], [0x1d2c0, 0], [0x1d2c1, 1],
  [0x1d2e0, 0], [0x1d2e1, 1], [0x1d360, 1], [0x10107, 1], [0x111e1, 1], [0x1ec71, 1],
] // biome-ignore format: one list

/** As it was meant: `④` and `⁴` are a 4, `%34` is one, `%20` a space, so often as a caller has escaped a text, up to three times, by URLs or by JSON (`\\u0034`); `&#52;` is a 4, and
 * other references and marks of HTML are as good as a space, but for the name of a CVV in one. So is whatever no text may hold: nothing that was escaped comes back as a sign that the text had not. */
export const unescaped = (text: string): string => read(text, blankFor)

/**
 * How else a text may be read. `marked`: with marks that have some digits in them, where a number may stand with others between its digits, or a CVV; the text itself where
 * there are none. `between`: what it was before the last of several escapes was undone, where a sign that begins one stands before a row of digits.
 */
export type Readings = { readonly plain: string; readonly marked: string; readonly between: readonly string[] }

const signBeforeDigits = /[%\\][ux]?\p{Nd}/u

/** As many as a CVV has. */
const holdsDigits = /(?:[\p{Nd}\p{No}][^\p{Nd}\p{No}]*){3}/u

/** What stands behind a mark is looked at so far. */
const behindMost = 240

/** In the place of a mark. One that names a CVV is read as its name. */
function blankFor(mark: string, behind: string): string {
  const name = codeNamedBy(mark, behind)
  return name === '' ? ' ' : ` ${name} `
}

/** One that stays. The name is repeated behind it: within it others stand before what it names. */
function withName(mark: string, behind: string): string {
  const name = codeNamedBy(mark, behind)
  return name === '' ? mark : `${mark} ${name} `
}

export const isEscaped = (text: string): boolean => /[%\\&]/.test(text)

export function readingsOf(text: string): Readings {
  let areThere = false
  const between: string[] = []
  const plain = read(
    text,
    (mark, behind) => {
      areThere ||= holdsDigits.test(mark)
      return blankFor(mark, behind)
    },
    one => signBeforeDigits.test(one) && between.push(one),
  )
  if (!areThere) return { plain, marked: text, between }
  const marked = read(text, (mark, behind) => (holdsDigits.test(mark) ? withName(mark, behind) : blankFor(mark, behind)))
  return { plain, marked, between }
}

/** `sees`: is given what it is between. */
function read(text: string, instead: (mark: string, behind: string) => string, sees?: (between: string) => void): string {
  const insteadOf = (mark: string, at: number, whole: string) =>
    instead(mark, whole.slice(at + mark.length, at + mark.length + behindMost))
  let plain = text
  for (let times = 0; times < 3 && isEscaped(plain); times++) {
    if (times > 0) sees?.(plain)
    plain = plain.replaceAll('&amp;', '&').replaceAll('\\\\', '\\')
    if (plain.includes('%')) plain = plain.replace(percents, bytesText)
    if (plain.includes('\\'))
      plain = plain
        .replace(/(?:\\u[0-9a-f]{4})+/gi, run =>
          textOnly(Buffer.from(run.replaceAll(/\\u/gi, ''), 'hex').swap16().toString('utf16le')),
        )
        .replace(/\\u\{([0-9a-f]{1,5})\}/gi, (_, code: string) => textOnly(String.fromCodePoint(Number.parseInt(code, 16))))
        .replace(/(?:\\x[0-9a-f]{2})+/gi, run => textOnly(signsOf(Buffer.from(run.replaceAll(/\\x/gi, ''), 'hex'))))
        .replace(/\\[bfnrt]/g, ' ')
    // The mark first: of what was escaped no sign comes back.
    if (plain.includes('&'))
      plain = plain
        .replace(/&lt;(?:[^<>&]|&(?![lg]t;))+&gt;/gi, insteadOf)
        .replace(/&(?:#(x?)0{0,20}([0-9a-f]{1,7})(?:;|(?=&#))|[a-z][a-z0-9]{1,31};|nbsp)/gi, referenceText)
  }
  if (numeral.test(plain)) plain = plain.replace(numerals, plainNumeral)
  return plain.includes('<') ? plain.replace(/<[^<>]+>/g, insteadOf) : plain
}

/** What stands on a magnetic stripe begins with a percent sign, a B and the number. */
const percents = /(?:%(?!B[\d ]{12,23}(?:\^|%5e))[0-9a-f]{2})+/gi

/** Most stand alone: those of ASCII are looked up. */
function bytesText(run: string): string {
  const point = run.length === 3 ? Number.parseInt(run.slice(1), 16) : 128
  return point < 128 ? asciiTexts[point]! : textOnly(Buffer.from(run.replaceAll('%', ''), 'hex').toString())
}

/** Some write bytes of UTF-8 so, others signs. */
function signsOf(bytes: Buffer): string {
  const text = bytes.toString()
  return text.includes('\ufffd') ? bytes.toString('latin1') : text
}

const seenNumerals = new Map<string, string>()

function plainNumeral(one: string): string {
  const seen = seenNumerals.get(one)
  if (seen !== undefined) return seen
  const plain = numeralText(one)
  seenNumerals.set(one, plain)
  return plain
}

function numeralText(one: string): string {
  const point = one.codePointAt(0)!
  const row = plainless.find(([first, counts]) => point >= first && point < first + (counts === 0 ? 1 : 10))
  return row ? String(row[1] + point - row[0]) : one.normalize('NFKC')
}

/** A letter with something on it, without that. */
const lettersReference = /^&([a-z])(?:acute|caron|cedil|circ|grave|ring|slash|tilde|uml);$/i

const referenceText = (written: string, hex: string | undefined, number: string | undefined): string => {
  if (written === '&amp;') return '&'
  const letter = lettersReference.exec(written)?.[1]
  if (letter !== undefined) return letter
  const point = Number.parseInt(number ?? '20', hex === '' ? 10 : 16)
  return point <= 0x10ffff ? textOnly(String.fromCodePoint(point)) : ' ' // nor is what is no number one
}

/** Control characters and halves of surrogate pairs are as good as a space. */
const textOnly = (text: string): string => text.replace(/[\p{Cc}\p{Cs}]/gu, ' ')
const asciiTexts = Array.from({ length: 128 }, (_, point) => textOnly(String.fromCharCode(point)))
