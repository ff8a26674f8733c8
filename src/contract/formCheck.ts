// From names and values to checked parameters: every wrong one is named, all at once.

import { type CardBrands, standardBrands } from './brands.ts'
import {
  beginningOf,
  type CardNumberRules,
  maskCardNumbers,
  maskKeyed,
  maskKeyedCode,
  mayBeRepeated,
  mayHoldCardNumber,
} from './cardNumbers.ts'
import type { Form } from './form.ts'
import { matches } from './formats.ts'
import { limits } from './limits.ts'
import type { ParameterName, Values } from './parameters/table.ts'
import { type Group, lookup, type NamedParameter } from './parameters/table.ts'
import type { RequestKind } from './requests.ts'

/** One wrong parameter, as an answer lists it. The value is left out where it is secret, missing, or may hold a card number. */
export type ParameterError = { readonly name: string; readonly value?: string; readonly message: string }

/** What a form says once it is checked. Values are flat, by their names as sent. */
export type FormResult = {
  readonly values: Values
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

/** A judge for one kind of request. With rules for card numbers they are looked for in every value that was accepted, but for those in which they were before. */
export type FormCheck = (form: Form, lenient: boolean, cardNumbers?: CardNumberRules, before?: Values) => FormResult

/** Formats, conditions, required and refused parameters, all wrong ones named at once. */
export function formChecker(kind: RequestKind, brands: CardBrands = standardBrands): FormCheck {
  const find = lookup(kind.groups as readonly Group[])
  return (form, lenient, cardNumbers, before) => {
    const values = new Map<string, string>()
    const known = new Map<string, NamedParameter>()
    const errors: ParameterError[] = []
    const dropped: string[] = []
    const numbered: string[] = []
    const unknown: string[] = []
    const judge = { values, known, errors, dropped, numbered, lenient, cardNumbers, before, brands, broken: form.broken }
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
const isElsewhere = ({ types }: RequestKind, values: Values): boolean => types?.[values.get('paymentType') ?? ''] === 'elsewhere'

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
  readonly before: Values | undefined
  readonly brands: CardBrands
  readonly broken: ReadonlySet<string>
}

function take(judge: Judge, row: NamedParameter, sent: string): void {
  const { values, known, errors, dropped, lenient } = judge
  if (errors.length >= limits.errorsMost) return // an answer names no more, and the request is refused
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
  const { truncate } = parameter
  // What is cut off anyway is not looked at; of a number that is cut nothing may be left.
  if (truncate !== undefined) value = beginningOf(value, lookedAtTimes * truncate)
  const kept = withoutCardNumber(judge, row, value)
  if (!kept) return
  value = kept.value
  if (truncate !== undefined && value.length > truncate) value = [...value].slice(0, truncate).join('')
  values.set(kept.row.name, value)
  known.set(kept.row.name, kept.row)
}

/** Of a text that is cut so many times as much is looked at: what is kept of a number is known by what stands behind it. */
const lookedAtTimes = 64

/** A card number where none belongs is refused by the parameter's name, masked, or kept, in the value as in a free key; a CVV too, but that none is kept. */
function withoutCardNumber(
  { cardNumbers, before, brands, errors, numbered, lenient }: Judge,
  row: NamedParameter,
  value: string,
): { readonly row: NamedParameter; readonly value: string } | undefined {
  const asSent = { row, value }
  const { name, path, parameter } = row
  if (!cardNumbers || parameter.cardNumbers === 'belong' || parameter.format.quantity) return asSent
  if (before?.get(name as ParameterName) === value) return asSent
  const key = parameter.key && String(path.at(-1))
  const own = key === parameter.ownNumbers?.at ? parameter.ownNumbers?.kinds : undefined
  const masked = { name: maskCardNumbers(name, brands), value: maskKeyed(key, value, brands, own) }
  if (masked.name === name && masked.value === value) return asSent
  const refuse = (what: string): undefined => {
    errors.push({ name: masked.name, message: `must not hold a ${what}` })
  }
  const isIdentifier = parameter.cardNumbers === 'byChance'
  const treatment = isIdentifier ? cardNumbers.inIdentifiers : cardNumbers.inTexts
  if (treatment === 'refuse') return refuse(mayHoldCardNumber(name) || mayHoldCardNumber(value) ? 'card number' : 'CVV')
  if (treatment === 'keep') {
    const withoutCode = (text: string) => maskKeyedCode(undefined, text, brands)
    const kept = { row: renamed(row, withoutCode), value: maskKeyedCode(key, value, brands, own) }
    // Nobody finds anything by an identifier or a free key that was changed: only a lenient channel changes one.
    if (!lenient && (kept.row.name !== name || (isIdentifier && kept.value !== value))) return refuse('CVV')
    numbered.push(row.row)
    return kept
  }
  numbered.push(row.row)
  return { row: renamed(row, text => maskCardNumbers(text, brands)), value: masked.value }
}

function renamed(row: NamedParameter, mask: (text: string) => string): NamedParameter {
  const { name, path, parameter } = row
  return { ...row, name: mask(name), path: parameter.key ? path.with(-1, mask(String(path.at(-1)))) : path }
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
const mended = (row: string, value: string) => {
  if (row === 'billing.postcode') return value.replace(/^(\d{5})-(\d{3})$/, '$1$2') // a CEP, as people write it (decisions, 53)
  return row === 'createRegistration' && Object.hasOwn(booleans, value) ? booleans[value]! : value
}

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
  readonly broken: (values: Values) => boolean
  readonly name: string
  readonly message: string
  readonly waived?: true
}

const anyCustomerField = (values: Values) => {
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
    name: 'recurringType',
    message: 'must say the same as standingInstruction.mode',
    waived: true,
    broken: v =>
      v.has('recurringType') && (v.get('standingInstruction.mode') ?? v.get('recurringType')) !== v.get('recurringType'),
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
