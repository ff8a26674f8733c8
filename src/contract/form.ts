// From the bytes of a form to checked parameters. Names stay flat, so that a hostile name is refused or stays data.
// Two steps, because what is lenient depends on the channel, and the channel stands in the form: `readForm` splits, `checkForm` judges.

import { type CardNumberRules, hasLongRun, maskCardNumbers } from './cardNumbers.ts'
import { matches } from './formats.ts'
import { type Group, type Known, lookup } from './parameters/table.ts'
import type { RequestKind } from './requests.ts'

/** One wrong parameter, as an answer lists it. The value is left out where it is secret, missing, or may hold a card number. */
export type ParameterError = { readonly name: string; readonly value?: string; readonly message: string }

/** A form as it was sent: names and values decoded, nothing judged. */
export type Form = { readonly pairs: readonly (readonly [name: string, value: string])[]; readonly broken: ReadonlySet<string> }

/** What a form says once it is checked. Values are flat, by their names as sent. */
export type Checked = {
  readonly values: ReadonlyMap<string, string>
  /** How to unfold each name that is echoed. */
  readonly known: ReadonlyMap<string, Known>
  readonly errors: readonly ParameterError[]
  /** Names of malformed descriptive parameters that a lenient channel did without. */
  readonly dropped: readonly string[]
  /** Names of parameters with a card number, or what passes for one, that was masked or kept. */
  readonly numbered: readonly string[]
}

export const parametersMax = 2000

/** Splits `a=b&c=d`. A stray percent sign stays what it is; bytes that are no UTF-8 mark the name as broken. */
export function readForm(text: string): Form | 'tooManyParameters' {
  const pairs: [string, string][] = []
  const broken = new Set<string>()
  let start = 0
  while (start <= text.length) {
    let end = text.indexOf('&', start)
    if (end < 0) end = text.length
    if (end > start) {
      const equals = text.indexOf('=', start)
      const split = equals < 0 || equals > end ? end : equals
      const name = decode(text.slice(start, split))
      const value = decode(split < end ? text.slice(split + 1, end) : '')
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

/** Judges a form. With rules for card numbers they are looked for in every value that was accepted. */
export type CheckForm = (form: Form, lenient: boolean, cardNumbers?: CardNumberRules) => Checked

/** A judge for one kind of request: formats, conditions, required and refused parameters, all wrong ones named at once. */
export function formChecker(kind: RequestKind): CheckForm {
  const find = lookup(kind.groups as readonly Group[])
  return (form, lenient, cardNumbers) => {
    const values = new Map<string, string>()
    const known = new Map<string, Known>()
    const errors: ParameterError[] = []
    const dropped: string[] = []
    const numbered: string[] = []
    const judge = { values, known, errors, dropped, numbered, lenient, cardNumbers, broken: form.broken }
    for (const [name, value] of form.pairs) {
      const row = find(name)
      if (row) take(judge, row, value)
    }
    for (const [row, message] of Object.entries(kind.refused ?? {})) {
      for (const [name, { row: sent }] of known) if (sent === row) errors.push({ name, message })
    }
    for (const name of [...kind.required, ...(kind.needed?.(values) ?? [])]) {
      if (!values.has(name) && !errors.some(error => error.name === name)) errors.push({ name, message: 'is required' })
    }
    checkIndexes(judge)
    checkConditions(judge)
    return { values, known, errors, dropped, numbered }
  }
}

type Judge = {
  readonly values: Map<string, string>
  readonly known: Map<string, Known>
  readonly errors: ParameterError[]
  readonly dropped: string[]
  readonly numbered: string[]
  readonly lenient: boolean
  readonly cardNumbers: CardNumberRules | undefined
  readonly broken: ReadonlySet<string>
}

function take(judge: Judge, row: Known, sent: string): void {
  const { values, known, errors, dropped, lenient } = judge
  const { name, parameter } = row
  if (sent === '' && !parameter.blankCounts) return
  if (known.has(name) && !lenient) {
    if (!errors.some(error => error.name === name)) errors.push({ name, message: 'was sent more than once' })
    return
  }
  let value = lenient ? mended(row.row, sent) : sent
  const wrong = row.keyError ?? (judge.broken.has(name) ? 'must be UTF-8' : ruleBroken(row, value, lenient))
  if (wrong !== undefined) {
    if (lenient && parameter.descriptive) dropped.push(name)
    else errors.push(parameterError(row, sent, wrong))
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
  { cardNumbers, errors, numbered }: Judge,
  row: Known,
  value: string,
): { readonly row: Known; readonly value: string } | undefined {
  const asSent = { row, value }
  const { name, path, parameter } = row
  if (!cardNumbers || parameter.cardNumbers === 'belong' || parameter.format.quantity) return asSent
  if (!hasLongRun(value) && !hasLongRun(name)) return asSent
  const masked = { name: maskCardNumbers(name), value: maskCardNumbers(value) }
  if (masked.name === name && masked.value === value) return asSent
  const treatment = parameter.cardNumbers === 'byChance' ? cardNumbers.inIdentifiers : cardNumbers.inTexts
  if (treatment === 'refuse') {
    errors.push({ name: masked.name, message: 'must not hold a card number' })
    return undefined
  }
  numbered.push(masked.name)
  if (treatment === 'keep') return asSent
  const maskedPath = parameter.key ? path.with(-1, maskCardNumbers(String(path.at(-1)))) : path
  return { row: { ...row, name: masked.name, path: maskedPath }, value: masked.value }
}

function ruleBroken({ row, parameter }: Known, value: string, lenient: boolean): string | undefined {
  if (matches(parameter.format, value)) return undefined
  // A lenient channel keeps a short merchantTransactionId unchanged (decisions, 23).
  if (lenient && row === 'merchantTransactionId' && value.length <= 255 && !/\p{Cc}/u.test(value)) return undefined
  return parameter.format.rule
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

function parameterError({ name, row, parameter }: Known, value: string, message: string): ParameterError {
  const safe = !parameter.secret && !row.endsWith('[name]') && !hasLongRun(value) && value.length <= 255
  return safe ? { name, value, message } : { name, message }
}

/** Indexes begin at 0 and leave no gap; a lenient channel keeps the items that came. */
function checkIndexes({ known, errors, lenient }: Judge): void {
  const lists = new Map<string, Set<number>>()
  for (const { path, row } of known.values()) {
    if (!row.includes('[n]')) continue
    path.forEach((step, at) => {
      if (typeof step !== 'number') return
      const list = path.slice(0, at).join('.')
      const seen = lists.get(list) ?? new Set()
      lists.set(list, seen.add(step))
    })
  }
  for (const [list, indexes] of lists) {
    if (indexes.size === Math.max(...indexes) + 1) continue
    if (lenient)
      compact(
        known,
        list,
        [...indexes].sort((a, b) => a - b),
      )
    else errors.push({ name: list.replace(/\.(\d+)(?=\.|$)/g, '[$1]'), message: 'indexes must begin at 0 and leave no gap' })
  }
}

function compact(known: Map<string, Known>, list: string, indexes: readonly number[]): void {
  const depth = list.split('.').length
  for (const [name, row] of known) {
    if (row.path.length > depth && row.path.slice(0, depth).join('.') === list && typeof row.path[depth] === 'number') {
      known.set(name, { ...row, path: row.path.with(depth, indexes.indexOf(row.path[depth])) })
    }
  }
}

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

function decode(raw: string): { text: string; broken: boolean } {
  const spaced = raw.includes('+') ? raw.replaceAll('+', ' ') : raw
  if (!spaced.includes('%')) return { text: spaced, broken: false }
  try {
    return { text: decodeURIComponent(spaced), broken: false }
  } catch {
    return decodeBytes(spaced)
  }
}

// Slow and rare: a stray percent sign, or bytes that are no UTF-8.
const utf8 = new TextDecoder('utf-8', { fatal: true })
function decodeBytes(text: string): { text: string; broken: boolean } {
  const bytes = Buffer.from(text, 'utf8')
  const decoded: number[] = []
  for (let at = 0; at < bytes.length; at++) {
    const hex = bytes[at] === 0x25 ? bytes.toString('latin1', at + 1, at + 3) : ''
    if (/^[0-9a-fA-F]{2}$/.test(hex)) {
      decoded.push(Number.parseInt(hex, 16))
      at += 2
    } else decoded.push(bytes[at]!)
  }
  try {
    return { text: utf8.decode(Uint8Array.from(decoded)), broken: false }
  } catch {
    return { text: Buffer.from(decoded).toString('utf8'), broken: true }
  }
}
