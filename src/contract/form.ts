// From the bytes of a form to checked parameters. Names stay flat, so that a hostile name is refused or stays data.
// Two steps, because what is lenient depends on the channel, and the channel stands in the form: `readForm` splits, `checkForm` judges.

import { type CardBrands, standardBrands } from './brands.ts'
import { type CardNumberRules, maskCardNumbers, mayBeRepeated, mayHoldCardNumber } from './cardNumbers.ts'
import { matches } from './formats.ts'
import { limits } from './limits.ts'
import { type Group, lookup, type NamedParameter } from './parameters/table.ts'
import type { RequestKind } from './requests.ts'

/** One wrong parameter, as an answer lists it. The value is left out where it is secret, missing, or may hold a card number. */
export type ParameterError = { readonly name: string; readonly value?: string; readonly message: string }

/** A form as it was sent: names and values decoded, nothing judged. */
export type Form = { readonly pairs: readonly (readonly [name: string, value: string])[]; readonly broken: ReadonlySet<string> }

/** What a form says once it is checked. Values are flat, by their names as sent. */
export type FormResult = {
  readonly values: ReadonlyMap<string, string>
  /** How to unfold each name that is echoed. */
  readonly known: ReadonlyMap<string, NamedParameter>
  readonly errors: readonly ParameterError[]
  /** Names of malformed descriptive parameters that a lenient channel did without. */
  readonly dropped: readonly string[]
  /** Rows of parameters with a card number, or what passes for one, that was masked or kept. */
  readonly numbered: readonly string[]
  /** Names that no row has. */
  readonly unknown: readonly string[]
}

/** A judge for one kind of request. With rules for card numbers they are looked for in every value that was accepted. */
export type FormCheck = (form: Form, lenient: boolean, cardNumbers?: CardNumberRules) => FormResult

export const parametersMax = 2000

/** In what the bytes of a form may be written. */
export type Charset = 'utf-8' | 'iso-8859-1' | 'windows-1252'

/** Splits `a=b&c=d`, one character a byte. A stray percent sign stays what it is; bytes that are not of the charset mark the name as broken. */
export function readForm(bytes: string, charset: Charset = 'utf-8'): Form | 'tooManyParameters' {
  const pairs: [string, string][] = []
  const broken = new Set<string>()
  const plain = !/[\x80-\xff]/.test(bytes)
  let start = 0
  while (start <= bytes.length) {
    let end = bytes.indexOf('&', start)
    if (end < 0) end = bytes.length
    if (end > start) {
      const equals = bytes.indexOf('=', start)
      const split = equals < 0 || equals > end ? end : equals
      const name = decode(bytes.slice(start, split), charset, plain)
      const value = decode(split < end ? bytes.slice(split + 1, end) : '', charset, plain)
      if (pairs.length === parametersMax) return 'tooManyParameters'
      pairs.push([name.text, value.text])
      if (name.broken || value.broken) broken.add(name.text)
    }
    start = end + 1
  }
  return { pairs, broken }
}

/** The last value sent under a name, blank counting as absent. For what must be known before the form can be judged. */
export function peek(form: Form, name: string): string | undefined {
  let last: string | undefined
  for (const pair of form.pairs) if (pair[0] === name && pair[1] !== '') last = pair[1]
  return last
}

/** Formats, conditions, required and refused parameters, all wrong ones named at once. */
export function formChecker(kind: RequestKind, brands: CardBrands = standardBrands): FormCheck {
  const find = lookup(kind.groups as readonly Group[])
  return (form, lenient, cardNumbers) => {
    const values = new Map<string, string>()
    const known = new Map<string, NamedParameter>()
    const errors: ParameterError[] = []
    const dropped: string[] = []
    const numbered: string[] = []
    const unknown: string[] = []
    const judge = { values, known, errors, dropped, numbered, lenient, cardNumbers, brands, broken: form.broken }
    for (const [name, value] of form.pairs) {
      const row = find(name)
      if (row) take(judge, row, value)
      else unknown.push(name)
    }
    for (const [row, message] of Object.entries(kind.refused ?? {})) {
      for (const [name, { row: sent }] of known) if (sent === row) errors.push({ name, message })
    }
    const needed = isElsewhere(kind, values) ? [] : [...kind.required, ...(kind.needed?.(values, brands) ?? [])]
    for (const name of needed) {
      if (!values.has(name) && !errors.some(error => error.name === name)) errors.push({ name, message: 'is required' })
    }
    checkIndexes(judge)
    checkConditions(judge)
    if (errors.length > 0) addRefusable(kind, judge)
    return { values, known, errors: errors.slice(0, limits.errorsMost), dropped, numbered, unknown }
  }
}

/** What such a request needs is asked for at its own path. */
const isElsewhere = ({ types }: RequestKind, values: ReadonlyMap<string, string>): boolean =>
  types?.[values.get('paymentType') ?? ''] === 'elsewhere'

/** What has a refusal of its own when nothing else is wrong is named together with what is. */
function addRefusable({ types }: RequestKind, { values, errors }: Judge): void {
  const type = values.get('paymentType')
  if (types && type !== undefined && types[type] !== 'here') {
    const here = Object.keys(types).filter(name => types[name] === 'here')
    errors.push({ name: 'paymentType', value: type, message: `must be one of ${here.join(', ')} here` })
  }
  if (types && Number(values.get('amount')) === 0) errors.push({ name: 'amount', message: 'must be above zero' })
}

type Judge = {
  readonly values: Map<string, string>
  readonly known: Map<string, NamedParameter>
  readonly errors: ParameterError[]
  readonly dropped: string[]
  readonly numbered: string[]
  readonly lenient: boolean
  readonly cardNumbers: CardNumberRules | undefined
  readonly brands: CardBrands
  readonly broken: ReadonlySet<string>
}

function take(judge: Judge, row: NamedParameter, sent: string): void {
  const { values, known, errors, dropped, lenient } = judge
  const { name, parameter } = row
  if (sent === '' && !parameter.blankCounts) return
  if (known.has(name) && !lenient) {
    if (!errors.some(error => error.name === name)) errors.push({ name, message: 'was sent more than once' })
    return
  }
  let value = lenient ? mended(row.row, sent) : sent
  const broken = judge.broken.has(name)
  const wrong = row.keyError ?? (broken ? 'must be UTF-8' : ruleBroken(row, value, lenient))
  if (wrong !== undefined) {
    if (lenient && parameter.descriptive) dropped.push(name)
    else errors.push(broken ? { name, message: wrong } : parameterError(row, sent, wrong))
    return
  }
  const kept = withoutCardNumber(judge, row, value)
  if (!kept) return
  value = kept.value
  if (parameter.truncate !== undefined && value.length > parameter.truncate)
    value = [...value].slice(0, parameter.truncate).join('')
  values.set(kept.row.name, value)
  known.set(kept.row.name, kept.row)
}

/** A card number where none belongs is refused by the parameter's name, masked, or kept, in the value as in a free key. */
function withoutCardNumber(
  { cardNumbers, brands, errors, numbered }: Judge,
  row: NamedParameter,
  value: string,
): { readonly row: NamedParameter; readonly value: string } | undefined {
  const asSent = { row, value }
  const { name, path, parameter } = row
  if (!cardNumbers || parameter.cardNumbers === 'belong' || parameter.format.quantity) return asSent
  if (!mayHoldCardNumber(value) && !mayHoldCardNumber(name)) return asSent
  const masked = { name: maskCardNumbers(name, brands), value: maskCardNumbers(value, brands) }
  if (masked.name === name && masked.value === value) return asSent
  const treatment = parameter.cardNumbers === 'byChance' ? cardNumbers.inIdentifiers : cardNumbers.inTexts
  if (treatment === 'refuse') {
    errors.push({ name: masked.name, message: 'must not hold a card number' })
    return undefined
  }
  numbered.push(row.row)
  if (treatment === 'keep') return asSent
  const maskedPath = parameter.key ? path.with(-1, maskCardNumbers(String(path.at(-1)), brands)) : path
  return { row: { ...row, name: masked.name, path: maskedPath }, value: masked.value }
}

function ruleBroken({ row, parameter }: NamedParameter, value: string, lenient: boolean): string | undefined {
  if (matches(parameter.format, value)) return undefined
  // A lenient channel keeps a short merchantTransactionId unchanged (decisions, 23).
  if (lenient && row === 'merchantTransactionId' && value.length <= 255 && !/\p{Cc}/u.test(value)) return undefined
  return parameter.format.why?.(value) ?? parameter.format.rule
}

// Booleans of other languages, and names of months without their zero, are common in old clients.
const booleans: Readonly<Record<string, string>> = {
  True: 'true',
  TRUE: 'true',
  '1': 'true',
  False: 'false',
  FALSE: 'false',
  '0': 'false',
}
const mended = (row: string, value: string) =>
  row === 'createRegistration' && Object.hasOwn(booleans, value) ? booleans[value]! : value

function parameterError({ name, row, parameter }: NamedParameter, value: string, message: string): ParameterError {
  const safe = !parameter.secret && !row.endsWith('[name]') && value.length <= 255 && mayBeRepeated(value)
  return safe ? { name, value, message } : { name, message }
}

/** Indexes begin at 0 and leave no gap; a lenient channel counts the items that came anew, outer and inner lists together. */
function checkIndexes({ known, errors, lenient }: Judge): void {
  const lists = new Map<string, Set<number>>()
  for (const { path, row } of known.values()) {
    if (!row.includes('[n]')) continue
    path.forEach((step, at) => {
      if (typeof step !== 'number') return
      const list = listAt(path, at)
      lists.set(list, (lists.get(list) ?? new Set()).add(step))
    })
  }
  const places = new Map<string, ReadonlyMap<number, number>>()
  for (const [list, indexes] of lists) {
    const sorted = [...indexes].sort((a, b) => a - b)
    if (sorted.at(-1) === sorted.length - 1) continue
    if (lenient) places.set(list, new Map(sorted.map((index, place) => [index, place])))
    else errors.push({ name: list.replace(/\.(\d+)(?=\.|$)/g, '[$1]'), message: 'indexes must begin at 0 and leave no gap' })
  }
  if (places.size === 0) return
  for (const [name, row] of known) {
    const path = row.path.map((step, at) =>
      typeof step === 'number' ? (places.get(listAt(row.path, at))?.get(step) ?? step) : step,
    )
    known.set(name, { ...row, path })
  }
}

/** The list, as it was sent, in which the step at a place of a path counts. */
const listAt = (path: NamedParameter['path'], at: number): string => path.slice(0, at).join('.')

// What one parameter asks of another. `waived`: a lenient channel does without.
type Condition = {
  readonly broken: (values: ReadonlyMap<string, string>) => boolean
  readonly name: string
  readonly message: string
  readonly waived?: true
}

const anyCustomerField = (values: ReadonlyMap<string, string>) => {
  for (const name of values.keys()) if (name.startsWith('customer.') && !name.startsWith('customer.browser.')) return true
  return false
}

const conditions: readonly Condition[] = [
  {
    name: 'customer.givenName',
    message: 'is required when any other customer field is sent',
    waived: true,
    broken: v => !v.has('customer.givenName') && anyCustomerField(v),
  },
  {
    name: 'customer.surname',
    message: 'is required when any other customer field is sent',
    waived: true,
    broken: v => !v.has('customer.surname') && anyCustomerField(v),
  },
  {
    name: 'customer.identificationDocType',
    message: 'is required together with customer.identificationDocId',
    waived: true,
    broken: v => v.has('customer.identificationDocId') && !v.has('customer.identificationDocType'),
  },
  {
    name: 'customer.identificationDocId',
    message: 'is required together with customer.identificationDocType',
    waived: true,
    broken: v => v.has('customer.identificationDocType') && !v.has('customer.identificationDocId'),
  },
  {
    name: 'billing.houseNumber1',
    message: 'is required together with billing.houseNumber2',
    waived: true,
    broken: v => v.has('billing.houseNumber2') && !v.has('billing.houseNumber1'),
  },
  {
    name: 'shipping.houseNumber1',
    message: 'is required together with shipping.houseNumber2',
    waived: true,
    broken: v => v.has('shipping.houseNumber2') && !v.has('shipping.houseNumber1'),
  },
]

function checkConditions({ values, known, errors, lenient }: Judge): void {
  for (const condition of conditions) {
    if (lenient && condition.waived) continue
    if (condition.broken(values) && !errors.some(error => error.name === condition.name)) {
      errors.push({ name: condition.name, message: condition.message })
    }
  }
  // With a house number, street1 holds only the street's name, and street2 is ignored: neither echoed nor forwarded.
  for (const address of ['billing', 'shipping']) {
    if (values.has(`${address}.houseNumber1`)) {
      values.delete(`${address}.street2`)
      known.delete(`${address}.street2`)
    }
  }
}

type FormText = { readonly text: string; readonly broken: boolean }

function decode(raw: string, charset: Charset, plain: boolean): FormText {
  const spaced = raw.includes('+') ? raw.replaceAll('+', ' ') : raw
  if (plain && !spaced.includes('%')) return { text: spaced, broken: false }
  const bytes = bytesOf(spaced)
  if (charset !== 'utf-8') return { text: decoders[charset](bytes), broken: false }
  const text = bytes.toString('utf8')
  // Whoever reads UTF-8 writes this sign for what is none, and somebody may have sent the sign itself.
  return text.includes('\ufffd') && !Buffer.from(text, 'utf8').equals(bytes)
    ? { text: brokenText(bytes), broken: true }
    : { text, broken: false }
}

const windows1252 = new TextDecoder('windows-1252')
const decoders = {
  'iso-8859-1': (bytes: Buffer) => bytes.toString('latin1'),
  'windows-1252': (bytes: Buffer) => windows1252.decode(bytes),
} as const

/** What is no UTF-8 keeps each byte as half of a surrogate pair: no good text is equal to it, and neither is other broken one. */
function brokenText(bytes: Buffer): string {
  const units = Buffer.alloc(bytes.length * 2)
  for (let at = 0; at < bytes.length; at++) units.writeUInt16LE(bytes[at]! < 0x80 ? bytes[at]! : 0xdc00 + bytes[at]!, at * 2)
  return units.toString('utf16le')
}

const hexDigits = new Int8Array(256).fill(-1)
for (let value = 0; value < 16; value++)
  for (const digit of [value.toString(16), value.toString(16).toUpperCase()]) hexDigits[digit.charCodeAt(0)] = value

/** One character a byte; a stray percent sign stays what it is. */
function bytesOf(text: string): Buffer {
  const bytes = Buffer.alloc(text.length)
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
