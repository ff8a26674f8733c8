// ISO 8583 messages to bytes and back, by the table of a dialect. Strict both ways: what does not fit is named with its field and never repaired.

import type { Dialect } from './dialects.ts'
import type { Content, Field } from './fields.ts'

/** Type indicator and fields. All values are texts; those of binary fields are upper-case hex. */
export type Message = { readonly type: string; readonly fields: ReadonlyMap<number, string> }

/** What is wrong, and where: `DE4`, `bitmap`, `type`. Never holds a value. */
export type MessageFault = { readonly path: string; readonly why: string }

export const isMalformed = (found: Message | Buffer | MessageFault): found is MessageFault => 'why' in found

export function encode({ type, fields }: Message, dialect: Dialect): Buffer | MessageFault {
  if (!/^\d{4}$/.test(type)) return { path: 'type', why: 'must be 4 digits' }
  const numbers = [...fields.keys()].sort((a, b) => a - b)
  const parts: Buffer[] = []
  for (const number of numbers) {
    const field = dialect.fields.get(number)
    if (!field) return unknownField(number)
    const written = writeField(field, fields.get(number)!)
    if (!Buffer.isBuffer(written)) return written
    parts.push(written)
  }
  const typeBytes = dialect.typeIndicator === 'bcd' ? Buffer.from(type, 'hex') : Buffer.from(type, 'latin1')
  const bitmap = bitmapOf(numbers)
  const bitmapBytes = dialect.bitmap === 'hex' ? Buffer.from(bitmap.toString('hex').toUpperCase(), 'latin1') : bitmap
  return Buffer.concat([typeBytes, bitmapBytes, ...parts])
}

export function decode(bytes: Buffer, dialect: Dialect): Message | MessageFault {
  const reader = { bytes, at: 0 }
  const type = readDigits(reader, 4, dialect.typeIndicator)
  if (type === undefined) return { path: 'type', why: 'must be 4 digits' }
  const numbers = readBitmap(reader, dialect)
  if (!Array.isArray(numbers)) return numbers
  const fields = new Map<number, string>()
  for (const number of numbers) {
    const field = dialect.fields.get(number)
    if (!field) return unknownField(number)
    const value = readField(reader, field)
    if (typeof value !== 'string') return value
    fields.set(number, value)
  }
  if (reader.at !== bytes.length) return { path: 'end', why: `${bytes.length - reader.at} bytes are left over` }
  return { type, fields }
}

type Reader = { readonly bytes: Buffer; at: number }

const unknownField = (number: number): MessageFault => ({ path: `DE${number}`, why: 'is not a field of this dialect' })

const allowed: Readonly<Record<Content, RegExp>> = {
  n: /^[0-9]*$/,
  an: /^[0-9A-Za-z ]*$/,
  ans: /^[\x20-\x7e]*$/,
  z: /^[0-9=DF]*$/,
  x: /^[CD][0-9]*$/,
  b: /^([0-9A-F]{2})*$/,
}

/** Whether a value may stand in a field; the sentence that says why not. */
function unfit(field: Field, value: string): string | undefined {
  if (!allowed[field.content].test(value)) return `holds characters that ${field.content} does not allow`
  const size = field.content === 'b' ? value.length / 2 : value.length
  if (field.prefix === 0 && size !== field.length) return `must be ${field.length} long, not ${size}`
  if (size > field.length) return `must be at most ${field.length} long, not ${size}`
  return undefined
}

function writeField(field: Field, value: string): Buffer | MessageFault {
  const why = unfit(field, value)
  if (why !== undefined) return { path: `DE${field.number}`, why }
  const size = field.content === 'b' ? value.length / 2 : value.length
  const body =
    field.encoding === 'bcd' ? packDigits(value, field) : Buffer.from(value, field.encoding === 'binary' ? 'hex' : 'latin1')
  return field.prefix === 0 ? body : Buffer.concat([writeLength(size, field), body])
}

function writeLength(size: number, { prefix, lengthEncoding }: Field): Buffer {
  const digits = String(size).padStart(prefix, '0')
  return lengthEncoding === 'bcd' ? Buffer.from(digits.padStart(evenly(prefix), '0'), 'hex') : Buffer.from(digits, 'latin1')
}

/** Numbers of fixed length get their filling nibble in front, those of variable length behind. */
function packDigits(value: string, { prefix }: Field): Buffer {
  const digits = value.replaceAll('=', 'D')
  return Buffer.from(
    prefix === 0 ? digits.padStart(evenly(digits.length), '0') : digits.padEnd(evenly(digits.length), 'F'),
    'hex',
  )
}

function readField(reader: Reader, field: Field): string | MessageFault {
  const path = `DE${field.number}`
  let size = field.length
  if (field.prefix > 0) {
    const digits = readDigits(reader, field.prefix, field.lengthEncoding)
    if (digits === undefined) return { path, why: 'has no readable length' }
    size = Number(digits)
    if (size > field.length) return { path, why: `must be at most ${field.length} long, not ${size}` }
  }
  const bytes = take(reader, field.encoding === 'bcd' ? evenly(size) / 2 : size)
  if (!bytes) return { path, why: 'is cut off' }
  const value = field.encoding === 'bcd' ? unpackDigits(bytes, size, field) : textOf(bytes, field)
  if (value === undefined) return { path, why: 'has a wrong filling' }
  const why = unfit(field, value)
  return why === undefined ? value : { path, why }
}

const textOf = (bytes: Buffer, { encoding }: Field) =>
  encoding === 'binary' ? bytes.toString('hex').toUpperCase() : bytes.toString('latin1')

function unpackDigits(bytes: Buffer, size: number, { prefix, content }: Field): string | undefined {
  const hex = bytes.toString('hex').toUpperCase()
  const filling = prefix === 0 ? hex.slice(0, hex.length - size) : hex.slice(size)
  if (filling !== '' && filling !== (prefix === 0 ? '0' : 'F')) return undefined
  const digits = prefix === 0 ? hex.slice(hex.length - size) : hex.slice(0, size)
  return content === 'z' ? digits.replaceAll('D', '=') : digits
}

function readDigits(reader: Reader, count: number, encoding: 'ascii' | 'bcd'): string | undefined {
  const bytes = take(reader, encoding === 'bcd' ? evenly(count) / 2 : count)
  const digits = encoding === 'bcd' ? bytes?.toString('hex').slice(-count) : bytes?.toString('latin1')
  return digits !== undefined && /^\d+$/.test(digits) ? digits : undefined
}

function take(reader: Reader, count: number): Buffer | undefined {
  if (reader.at + count > reader.bytes.length) return undefined
  const bytes = reader.bytes.subarray(reader.at, reader.at + count)
  reader.at += count
  return bytes
}

function bitmapOf(numbers: readonly number[]): Buffer {
  const bits = Buffer.alloc((numbers.at(-1) ?? 0) > 64 ? 16 : 8)
  const set = (number: number) => {
    bits[(number - 1) >> 3]! |= 0x80 >> ((number - 1) & 7)
  }
  if (bits.length === 16) set(1)
  for (const number of numbers) set(number)
  return bits
}

function readBitmap(reader: Reader, { bitmap }: Dialect): number[] | MessageFault {
  const half = (): Buffer | undefined => {
    if (bitmap === 'binary') return take(reader, 8)
    const hex = take(reader, 16)?.toString('latin1')
    return hex !== undefined && /^[0-9A-Fa-f]{16}$/.test(hex) ? Buffer.from(hex, 'hex') : undefined
  }
  const first = half()
  if (!first) return { path: 'bitmap', why: 'is cut off or unreadable' }
  const second = first[0]! & 0x80 ? half() : Buffer.alloc(0)
  if (!second) return { path: 'bitmap', why: 'its second half is cut off or unreadable' }
  const bits = Buffer.concat([first, second])
  const numbers: number[] = []
  for (let number = 2; number <= bits.length * 8; number++)
    if (bits[(number - 1) >> 3]! & (0x80 >> ((number - 1) & 7))) numbers.push(number)
  if (numbers.includes(65)) return { path: 'DE65', why: 'a third bitmap is not spoken' }
  return numbers
}

const evenly = (count: number) => count + (count % 2)
