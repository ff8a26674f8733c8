// Records of fixed columns: a layout is a table with a row for each field, and is read and written by the same table. Pure.

import { isCalendarDay } from '../../contract/formats.ts'

/**
 * What stands in a field, and how it is given here: `n` digits, filled up with zeros · `x` text, filled up with blanks · `v` centavos · `d8` and `d6` DDMMYYYY
 * and DDMMYY, given as `yyyy-MM-dd`, or as '' where they are zeros or blanks.
 */
export type FieldKind = 'n' | 'x' | 'v' | 'd8' | 'd6'

/** First and last column, from 1; `fixed`: what always stands there. */
export type FieldPlace = readonly [name: string, first: number, last: number, kind: FieldKind, fixed?: string]

export type RecordLayout = { readonly width: number; readonly fields: readonly FieldPlace[] }

export type ColumnValues = Readonly<Record<string, string>>

/** Or a sentence about the first field that does not hold what it should. */
export function readRecord({ fields }: RecordLayout, row: string): ColumnValues | string {
  const values: Record<string, string> = Object.create(null)
  for (const [name, first, last, kind, fixed] of fields) {
    const text = row.slice(first - 1, last)
    const value = reads[kind](text)
    if (value === undefined || (fixed !== undefined && text.trim() !== fixed.trim()))
      return `columns ${first} to ${last} (${name}) hold no ${fixed === undefined ? kinds[kind] : `"${fixed}"`}`
    values[name] = value
  }
  return values
}

/** What is not given is zeros or blanks. A text that is too long is cut; anything else that does not fit is thrown. */
export function writeRecord({ width, fields }: RecordLayout, values: Readonly<Record<string, string | number>>): string {
  let row = ''
  for (const [name, first, last, kind, fixed] of fields) {
    const length = last - first + 1
    const text = writes[kind](fixed ?? String(values[name] ?? ''), length)
    if (text.length !== length) throw new Error(`${name} does not fit ${length} columns`)
    if (row.length >= first) throw new Error(`${name} stands where another field does`)
    row = row.padEnd(first - 1) + text
  }
  return row.padEnd(width)
}

const kinds: Readonly<Record<FieldKind, string>> = { n: 'digits', x: 'text', v: 'amount', d8: 'day', d6: 'day' }

/** Blanks behind digits are the mark of a row that was cut. */
const digits = (text: string): string | undefined => (/^ *\d*$/.test(text) ? text.trim() : undefined)

/** NaN where no digits stand, which is equal to nothing. */
export const numberIn = (text: string): number => (/^ *\d+$/.test(text) ? Number(text) : Number.NaN)

const reads: Readonly<Record<FieldKind, (text: string) => string | undefined>> = {
  n: digits,
  x: text => text.trim(),
  v: text => {
    const found = digits(text)
    return found === undefined ? undefined : String(Number(found))
  },
  d8: text => dayOfParts(text, text.slice(4)),
  d6: text => dayOfParts(text, `20${text.slice(4)}`),
}

function dayOfParts(text: string, year: string): string | undefined {
  if (/^[0 ]*$/.test(text)) return ''
  const day = `${year}-${text.slice(2, 4)}-${text.slice(0, 2)}`
  return /^\d+$/.test(text) && year !== '0000' && isCalendarDay(day) ? day : undefined // before the year 1 there is none that could be stored
}

const writes: Readonly<Record<FieldKind, (value: string, length: number) => string>> = {
  n: (value, length) => (/^\d*$/.test(value) ? value.padStart(length, '0') : ''),
  v: (value, length) => (/^\d*$/.test(value) ? value.padStart(length, '0') : ''),
  x: (value, length) => value.slice(0, length).padEnd(length),
  d8: (day, length) => (day === '' ? '0'.repeat(length) : day.slice(8) + day.slice(5, 7) + day.slice(0, 4)),
  d6: (day, length) => (day === '' ? '0'.repeat(length) : day.slice(8) + day.slice(5, 7) + day.slice(2, 4)),
}
