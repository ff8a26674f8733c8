// From the bytes of a form to names and values. Names stay flat, so that a hostile name is refused or stays data; nothing is judged, because what is lenient
// depends on the channel, and the channel stands in the form.

/** A form as it was sent: names and values decoded, nothing judged. */
export type Form = { readonly pairs: readonly (readonly [name: string, value: string])[]; readonly broken: ReadonlySet<string> }

export const parametersMax = 2000

/** In what the bytes of a form may be written. */
export type Charset = 'utf-8' | 'iso-8859-1' | 'windows-1252'

/** Splits `a=b&c=d`, one character a byte. A stray percent sign stays what it is; bytes that are not of the charset mark the name as broken. */
export function readForm(bytes: string, charset: Charset = 'utf-8'): Form | 'tooManyParameters' {
  const pairs: [string, string][] = []
  const brokenNames = new Set<string>()
  const plain = !/[\x80-\xff]/.test(bytes)
  const part = partsOf(bytes)
  let start = 0
  let equals = -1
  while (start <= bytes.length) {
    const end = indexOrEnd(bytes, '&', start)
    if (end > start) {
      // Looked for once and not by each name that has none: it may stand far away, or nowhere.
      if (equals < start) equals = indexOrEnd(bytes, '=', start)
      const split = Math.min(equals, end)
      const name = decode(part(start, split), charset, plain)
      const value = decode(split < end ? part(split + 1, end) : '', charset, plain)
      if (pairs.length === parametersMax) return 'tooManyParameters'
      pairs.push([name.text, value.text])
      if (name.broken || value.broken) brokenNames.add(name.text)
    }
    start = end + 1
  }
  return { pairs, broken: brokenNames }
}

function indexOrEnd(text: string, sign: string, from: number): number {
  const index = text.indexOf(sign, from)
  return index < 0 ? text.length : index
}

const shortForm = 8192
/** V8 copies shorter ones by itself. */
const sliceLeast = 13

/** Parts of a long form are copies: a slice would keep the whole of it for as long as one value is kept. */
function partsOf(bytes: string): (start: number, end: number) => string {
  if (bytes.length < shortForm) return (start, end) => bytes.slice(start, end)
  const whole = Buffer.from(bytes, 'latin1')
  return (start, end) => (end - start < sliceLeast ? bytes.slice(start, end) : whole.toString('latin1', start, end))
}

/** The last value sent under a name, blank counting as absent. For what must be known before the form can be judged. */
export function peek(form: Form, name: string): string | undefined {
  let last: string | undefined
  for (const pair of form.pairs) if (pair[0] === name && pair[1] !== '') last = pair[1]
  return last
}

type FormText = { readonly text: string; readonly broken: boolean }

function decode(raw: string, charset: Charset, plain: boolean): FormText {
  const spaced = raw.includes('+') ? raw.replaceAll('+', ' ') : raw
  if (plain && !spaced.includes('%')) return { text: spaced, broken: false }
  const bytes = bytesOf(spaced)
  if (charset !== 'utf-8') return { text: textBy(signs[charset], bytes), broken: false }
  return isUtf8(bytes) ? { text: bytes.toString('utf8'), broken: false } : { text: textBy(broken, bytes), broken: true }
}

/** By the table of RFC 3629, 4. */
function isUtf8(bytes: Buffer): boolean {
  for (let at = 0; at < bytes.length; ) {
    const first = bytes[at++]!
    if (first < 0x80) continue
    if (first < 0xc2 || first > 0xf4) return false
    const second = bytes[at++] ?? 0
    if (second < (first === 0xe0 ? 0xa0 : first === 0xf0 ? 0x90 : 0x80)) return false
    if (second > (first === 0xed ? 0x9f : first === 0xf4 ? 0x8f : 0xbf)) return false
    for (let left = first < 0xe0 ? 0 : first < 0xf0 ? 1 : 2; left > 0; left--) if ((bytes[at++] ?? 0) >> 6 !== 2) return false
  }
  return true
}

/** Of each byte its unit of UTF-16. */
type Units = Uint16Array

const everyByte = Uint8Array.from({ length: 256 }, (_, byte) => byte)
const signs: Readonly<Record<'iso-8859-1' | 'windows-1252', Units>> = {
  'iso-8859-1': Uint16Array.from(everyByte),
  'windows-1252': Uint16Array.from(new TextDecoder('windows-1252').decode(everyByte), sign => sign.charCodeAt(0)),
}
/** What is no UTF-8 keeps each byte as half of a surrogate pair: no good text is equal to it, and neither is other broken one. */
const broken: Units = Uint16Array.from(everyByte, byte => (byte < 0x80 ? byte : 0xdc00 + byte))

function textBy(units: Units, bytes: Buffer): string {
  if (bytes.length < sliceLeast) {
    let text = ''
    for (const byte of bytes) text += String.fromCharCode(units[byte]!)
    return text
  }
  const text = Buffer.allocUnsafe(2 * bytes.length)
  for (let at = 0; at < bytes.length; at++) {
    const unit = units[bytes[at]!]!
    text[2 * at] = unit & 0xff
    text[2 * at + 1] = unit >> 8
  }
  return text.toString('utf16le')
}

const hexDigits = new Int8Array(256).fill(-1)
for (let value = 0; value < 16; value++)
  for (const digit of [value.toString(16), value.toString(16).toUpperCase()]) hexDigits[digit.charCodeAt(0)] = value

/** One character a byte; a stray percent sign stays what it is. */
function bytesOf(text: string): Buffer {
  const bytes = Buffer.allocUnsafe(text.length)
  let length = 0
  for (let at = 0; at < text.length; at++) {
    const byte = text.charCodeAt(at)
    const high = byte === 0x25 ? (hexDigits[text.charCodeAt(at + 1)] ?? -1) : -1
    const low = high < 0 ? -1 : (hexDigits[text.charCodeAt(at + 2)] ?? -1)
    if (low >= 0) at += 2
    bytes[length++] = low < 0 ? byte : high * 16 + low
  }
  return bytes.subarray(0, length)
}
