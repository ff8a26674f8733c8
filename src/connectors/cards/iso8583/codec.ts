// ISO 8583 messages to bytes and back, by the table of a dialect. Strict both ways: what does not fit is named with its field and never repaired.

import { bytesOfText, textOfBytes } from './characters.ts'
import type { Dialect, Encoding, SpokenField } from './dialects.ts'
import type { Content } from './fields.ts'
import { type Mac, macBytes } from './mac.ts'

/** Type indicator and fields. All values are texts; those of binary fields are upper-case hex. */
export type Message = { readonly type: string; readonly fields: ReadonlyMap<number, string> }

/** What is wrong, and where: `DE4`, `bitmap`, `type`. Never holds a value. */
export type MessageFault = { readonly path: string; readonly why: string }

export const isMalformed = (found: Message | Buffer | MessageFault): found is MessageFault => 'why' in found

/** With a MAC as the last field of all but network messages. */
export function encode({ type, fields }: Message, dialect: Dialect, mac?: Mac): Buffer | MessageFault {
  if (!/^\d{4}$/.test(type)) return { path: 'type', why: 'must be 4 digits' }
  const numbers = [...fields.keys()].sort((a, b) => a - b)
  const parts: Buffer[] = []
  for (const number of numbers) {
    const field = dialect.fields.get(number)
    if (!field || field.dropped) return unknownField(number)
    const written = writeField(field, fields.get(number)!)
    if (!Buffer.isBuffer(written)) return written
    parts.push(written)
  }
  const sealed = mac && carriesMac(type) ? mac : undefined
  const bitmap = bitmapOf(sealed ? [...numbers, (numbers.at(-1) ?? 0) > 64 ? 128 : 64] : numbers)
  const said = Buffer.concat([
    writeDigits(type, dialect.typeIndicator),
    dialect.bitmap === 'hex' ? bytesOfText(bitmap.toString('hex').toUpperCase(), dialect.characters) : bitmap,
    ...parts,
  ])
  return Buffer.concat([dialect.header.sent, said, ...(sealed ? [sealed.of(said)] : [])])
}

export function decode(bytes: Buffer, dialect: Dialect, mac?: Mac): Message | MessageFault {
  const { sent, answered } = dialect.header
  const header = bytes.subarray(0, sent.length)
  if (header.length < sent.length) return { path: 'header', why: 'is cut off' }
  if (answered && !header.equals(answered)) return { path: 'header', why: 'is not that of an answer to us' }
  const reader = { bytes, at: sent.length }
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
    if (!field.dropped) fields.set(number, value)
  }
  if (reader.at !== bytes.length) return { path: 'end', why: `${bytes.length - reader.at} bytes are left over` }
  if (mac && carriesMac(type)) {
    const last = numbers.at(-1)
    if (last !== 64 && last !== 128) return { path: 'DE64', why: 'is missing' }
    if (!mac.agrees(bytes.subarray(sent.length, -macBytes), bytes.subarray(-macBytes)))
      return { path: `DE${last}`, why: 'does not agree with the message' }
    fields.delete(last)
  }
  return { type, fields }
}

/** Network messages come before there is a key to work with. */
const carriesMac = (type: string): boolean => type[1] !== '8'

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
function unfit(field: SpokenField, value: string): string | undefined {
  if (!allowed[field.content].test(value)) return `holds characters that ${field.content} does not allow`
  const size = sizeIn(field, value)
  if (field.prefix === 0 && size !== field.length) return `must be ${field.length} long, not ${size}`
  if (size > field.length) return `must be at most ${field.length} long, not ${size}`
  return undefined
}

const sizeIn = ({ encoding }: SpokenField, value: string) => (encoding === 'binary' ? value.length / 2 : value.length)

function writeField(field: SpokenField, value: string): Buffer | MessageFault {
  const why = unfit(field, value)
  if (why !== undefined) return { path: `DE${field.number}`, why }
  const { encoding, prefix, lengthEncoding } = field
  const body =
    encoding === 'bcd'
      ? packDigits(value, field)
      : encoding === 'binary'
        ? Buffer.from(value, 'hex')
        : bytesOfText(value, encoding)
  return prefix === 0
    ? body
    : Buffer.concat([writeDigits(String(sizeIn(field, value)).padStart(prefix, '0'), lengthEncoding), body])
}

const writeDigits = (digits: string, encoding: Digits): Buffer =>
  encoding === 'bcd' ? Buffer.from(digits.padStart(evenly(digits.length), '0'), 'hex') : bytesOfText(digits, encoding)

/** How digits of a type indicator, or of a length, are written. */
type Digits = Exclude<Encoding, 'binary'>

/** Numbers of fixed length get their filling nibble in front, those of variable length where the profile says. */
function packDigits(value: string, { prefix, filling }: SpokenField): Buffer {
  const digits = value.replaceAll('=', 'D')
  const even = evenly(digits.length)
  return Buffer.from(prefix === 0 || filling === 'zeroBefore' ? digits.padStart(even, '0') : digits.padEnd(even, 'F'), 'hex')
}

function readField(reader: Reader, field: SpokenField): string | MessageFault {
  const path = `DE${field.number}`
  const { encoding } = field
  let size = field.length
  if (field.prefix > 0) {
    const digits = readDigits(reader, field.prefix, field.lengthEncoding)
    if (digits === undefined) return { path, why: 'has no readable length' }
    size = Number(digits)
    if (size > field.length) return { path, why: `must be at most ${field.length} long, not ${size}` }
  }
  const bytes = take(reader, encoding === 'bcd' ? evenly(size) / 2 : size)
  if (!bytes) return { path, why: 'is cut off' }
  const value =
    encoding === 'bcd'
      ? unpackDigits(bytes, size, field)
      : encoding === 'binary'
        ? bytes.toString('hex').toUpperCase()
        : textOfBytes(bytes, encoding)
  if (value === undefined) return { path, why: 'has a wrong filling' }
  const why = field.dropped ? undefined : unfit(field, value)
  return why === undefined ? value : { path, why }
}

function unpackDigits(bytes: Buffer, size: number, { prefix, content, filling }: SpokenField): string | undefined {
  const hex = bytes.toString('hex').toUpperCase()
  const before = prefix === 0 || filling === 'zeroBefore'
  const filler = before ? hex.slice(0, hex.length - size) : hex.slice(size)
  if (filler !== '' && filler !== (before ? '0' : 'F')) return undefined
  const digits = before ? hex.slice(hex.length - size) : hex.slice(0, size)
  return content === 'z' ? digits.replaceAll('D', '=') : digits
}

function readDigits(reader: Reader, count: number, encoding: Digits): string | undefined {
  const bytes = take(reader, encoding === 'bcd' ? evenly(count) / 2 : count)
  const digits = bytes && (encoding === 'bcd' ? bytes.toString('hex') : textOfBytes(bytes, encoding))
  // A filling nibble in front is zero.
  return digits !== undefined && /^\d+$/.test(digits) && Number(digits) < 10 ** count ? digits.slice(-count) : undefined
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

function readBitmap(reader: Reader, { bitmap, characters }: Dialect): number[] | MessageFault {
  const half = (): Buffer | undefined => {
    if (bitmap === 'binary') return take(reader, 8)
    const bytes = take(reader, 16)
    const hex = bytes && textOfBytes(bytes, characters)
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
