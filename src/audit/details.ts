// What a row of the audit says of an act: bounded, and with nothing left out that a longer value beside it would hide.

import { createHash } from 'node:crypto'
import { knownBrands } from '../contract/brands.ts'
import { shortenCards } from '../contract/cardNumbers.ts'
import { isId } from '../platform/clock.ts'

/** Characters of the details of one row. */
const detailsMax = 4000
/** Rows of one act. What needs more is told by its names and its hash. */
const partsMost = 20
/** Characters of one value, beyond which it is told by its beginning, its length and its hash. */
const valueMax = 256
const beginningMax = 64

/**
 * The details of an act as JSON, of one row or of several in a row. Card numbers are shortened, since people write what they like, and a row stays for ever; so are
 * long values.
 */
export function textsOf(details: object): string[] {
  const whole = JSON.stringify(details, withoutCards)
  if (whole.length <= detailsMax) return [whole]
  const short = JSON.parse(JSON.stringify(details, shortened)) as Members
  const parts = partsOf(short, detailsMax - marginForNumbers)
  if (parts.length > partsMost) return [JSON.stringify({ names: digest(Object.keys(details)), ...digest(short) })]
  if (parts.length === 1) return [JSON.stringify(parts[0])]
  return parts.map((part, at) => JSON.stringify({ ...part, part: `${at + 1} of ${parts.length}` }))
}

type Members = Readonly<Record<string, unknown>>

const marginForNumbers = 32

/** A copy of what others wrote, with card numbers shortened in every text of it. */
export const shortenedCards = (details: object): object => JSON.parse(JSON.stringify(details, withoutCards))

/** Of texts, and of names that people gave to what they set. */
function withoutCards(_: string, value: unknown): unknown {
  if (typeof value === 'string') return shortenedText(value)
  const isNamed = typeof value === 'object' && value !== null && !Array.isArray(value)
  if (!isNamed || Object.keys(value).every(name => shortenedText(name) === name)) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [shortenedText(name), inner]))
}

/** Ids are full of digits. */
const shortenedText = (text: string): string => (isId(text) ? text : shortenCards(text, knownBrands))

/** Looked for first: half a card number is not seen. */
function shortened(name: string, value: unknown): unknown {
  const plain = withoutCards(name, value)
  return typeof plain === 'string' && plain.length > valueMax ? `${plain.slice(0, beginningMax)}… ${measure(plain)}` : plain
}

const measure = (text: string): string =>
  `(${text.length} characters, SHA-256 ${createHash('sha256').update(text).digest('hex').slice(0, 32)})`

/** What is too long whole: how it begins, and what proves the rest. */
const digest = (value: unknown): { readonly begins: string; readonly tooLong: string } => {
  const text = JSON.stringify(value)
  return { begins: text.slice(0, detailsMax / 4), tooLong: measure(text) }
}

/** The members of an object, in their order, in as few objects as have no more characters than `most`. */
function partsOf(members: Members, most: number): Members[] {
  const parts: Members[] = []
  for (const [name, value] of Object.entries(members))
    for (const piece of piecesOf(value, most - name.length - 8)) {
      const last = parts.at(-1)
      const joined = { ...last, [name]: piece }
      if (last && !Object.hasOwn(last, name) && JSON.stringify(joined).length <= most) parts[parts.length - 1] = joined
      else parts.push({ [name]: piece })
    }
  return parts
}

function piecesOf(value: unknown, most: number): unknown[] {
  if (JSON.stringify(value).length <= most) return [value]
  return typeof value === 'object' && value !== null && !Array.isArray(value) && most > detailsMax / 2
    ? partsOf(value as Members, most)
    : [digest(value)]
}
