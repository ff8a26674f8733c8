// Private data, DE48 and its likes: what each part means, and the layouts in which acquirers want them. Meanings go in and come out; a profile says
// in which field, under which tag or at which place.

import type { Profile } from './profile.ts'

/** What private data can tell → its longest value. */
export const meanings = {
  /** Agreement and who starts it, see forwarding.ts. */
  cardOnFile: 4,
  instalments: 3,
  airlineTicket: 99,
  airlineReference: 99,
  submerchant: 99,
  electronicCommerce: 2, // ECI
  cryptogram: 28, // authentication value of 3-D Secure
  networkTransaction: 40,
  authenticationTransaction: 36, // directory server's transaction id
  /** Postcode and street for the address check; cut to its place. */
  address: 0,
  cvv: 4,
} as const

export type Meaning = keyof typeof meanings
export type PrivateValues = ReadonlyMap<Meaning, string>
export type Layout = Profile['privateData'][number]

const valueMax = 99

/** What may stand in each field of private data; fields without anything to say are left out. */
export function writePrivateData(values: PrivateValues, layouts: readonly Layout[]): [field: number, text: string][] {
  return layouts
    .map((layout): [number, string] => [layout.field, written(values, layout)])
    .filter(([, text]) => text.trim() !== '')
}

function written(values: PrivateValues, { layout, parts, lengthDigits }: Layout): string {
  if (layout === 'fixed')
    return parts.map(({ what, length = 0 }) => (values.get(what) ?? '').slice(0, length).padEnd(length)).join('')
  return parts
    .filter(({ what }) => values.has(what))
    .map(({ what, tag = '', length = valueMax }) => {
      const value = values.get(what)!.slice(0, length)
      const size = (count: number) => String(count).padStart(lengthDigits, '0')
      return layout === 'tagLengthValue'
        ? `${tag}${size(value.length)}${value}`
        : `${size(tag.length + value.length)}${tag}${value}`
    })
    .join('')
}

/** What the fields of a message tell. A field that is not made of whole parts tells nothing. */
export function readPrivateData(fields: ReadonlyMap<number, string>, layouts: readonly Layout[]): PrivateValues {
  return new Map(layouts.flatMap(layout => [...(readField(fields.get(layout.field) ?? '', layout) ?? [])]))
}

function readField(text: string, { layout, parts, lengthDigits }: Layout): PrivateValues | undefined {
  const values = new Map<Meaning, string>()
  if (layout === 'fixed') {
    let at = 0
    for (const { what, length = 0 } of parts) {
      const value = text.slice(at, at + length).trimEnd()
      if (value !== '') values.set(what, value)
      at += length
    }
    return values
  }
  const tagLength = parts[0]!.tag!.length
  const before = layout === 'tagLengthValue' ? tagLength : 0
  for (let at = 0; at < text.length; ) {
    const digits = text.slice(at + before, at + before + lengthDigits)
    const begins = at + tagLength + lengthDigits
    const size = Number(digits) - (tagLength - before)
    const tag = layout === 'tagLengthValue' ? text.slice(at, at + tagLength) : text.slice(begins - tagLength, begins)
    const value = text.slice(begins, begins + size)
    if (!/^\d+$/.test(digits) || digits.length < lengthDigits || size < 0 || value.length !== size) return undefined
    const part = parts.find(one => one.tag === tag)
    if (part) values.set(part.what, value)
    at = begins + size
  }
  return values
}

/** What a private value may hold: printable ASCII, marks folded away, at most 99 characters. */
export const privateText = (text: string): string => asciiText(text).slice(0, valueMax)

/** Letters without their marks, everything beyond printable ASCII as a space. */
export const asciiText = (text: string): string =>
  text
    .normalize('NFD')
    .replace(/\p{M}/gu, '')
    .replace(/[^\x20-\x7e]/g, ' ')
