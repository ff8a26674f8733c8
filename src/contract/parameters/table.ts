// The parameter table: every wire name of a payment request, by group, and the look-up from a name as it was sent to its row.

import { matches } from '../formats.ts'
import { billing, shipping } from './address.ts'
import { airline } from './airline.ts'
import { browser } from './browser.ts'
import { card } from './card.ts'
import { cart } from './cart.ts'
import { checkout } from './checkout.ts'
import { asynchronous, authentication, common, giftCard, registration, risk, standingInstruction, virtualAccount } from './common.ts'
import { customer, shippingCustomer } from './customer.ts'
import { merchant } from './merchant.ts'
import type { Parameter, Parameters } from './parameter.ts'
import { query, reporting } from './query.ts'
import { threeDSecure } from './threeDSecure.ts'

export const groups = {
  common, authentication, card, standingInstruction, virtualAccount, customer, 'shipping.customer': shippingCustomer, billing, shipping, merchant, cart,
  airline, registration, giftCard, asynchronous, risk, browser, threeDSecure, checkout, reporting, query,
} as const satisfies Record<string, Parameters>

export type Group = keyof typeof groups

type RowName = { [Name in Group]: keyof (typeof groups)[Name] & string }[Group]
type SentName<Row extends string> = Row extends `${infer Before}[n]${infer Rest}`
  ? `${Before}[${number}]${SentName<Rest>}`
  : Row extends `${infer Before}[${string}]`
    ? `${Before}[${string}]`
    : Row

/** Every name that a request may carry: a mistyped one does not compile. */
export type ParameterName = SentName<RowName>
/** The values of a request by their names as sent. */
export type Values = Iterable<[string, string]> & {
  get(name: ParameterName): string | undefined
  has(name: ParameterName): boolean
  keys(): Iterable<string>
}

/** By a name that is data itself, as files of operators and tables of fields have it. */
export const valueNamed = (values: Values, name: string): string | undefined => values.get(name as ParameterName)

/** A name as sent, understood: its row, and the steps that unfold it (`cart`, `items`, 0, `name`). */
export type NamedParameter = {
  readonly name: string
  /** The name as it stands in the table, for example `cart.items[n].price`. */
  readonly row: string
  readonly parameter: Parameter
  readonly path: readonly (string | number)[]
  /** Set when the free key of the name is malformed. */
  readonly keyError?: string
}

/** Items of a list beyond this are refused; the bound keeps a hostile index from making a large array. */
export const indexMax = 999

/** Understands the names of some groups. The answer is remembered for names without a free part. */
export function lookup(names: readonly Group[]): (name: string) => NamedParameter | undefined {
  const rows = new Map<string, Parameter>()
  const keyed = new Map<string, string>() // `customParameters` → `customParameters[name]`
  for (const group of names) {
    for (const [name, row] of Object.entries(groups[group] as Parameters)) {
      rows.set(name, row)
      if (row.key) keyed.set(name.slice(0, name.indexOf('[')), name)
    }
  }
  const known = new Map<string, NamedParameter | undefined>()
  for (const [name, parameter] of rows) {
    if (!name.includes('[')) known.set(name, { name, row: name, parameter, path: name.split('.') })
  }
  return name => {
    const found = known.get(name)
    if (found || !name.includes('[')) return found
    const understood = withBrackets(name, rows, keyed)
    if (understood && !understood.parameter.key && known.size < 5000) known.set(name, understood)
    return understood
  }
}

function withBrackets(name: string, rows: ReadonlyMap<string, Parameter>, keyed: ReadonlyMap<string, string>): NamedParameter | undefined {
  const open = name.indexOf('[')
  const before = name.slice(0, open)
  const row = keyed.get(before)
  if (row !== undefined) {
    // The key is whatever stands between the first bracket and the last character: `123` and `__proto__` are keys like others.
    if (!name.endsWith(']')) return undefined
    const key = name.slice(open + 1, -1)
    const parameter = rows.get(row)!
    const keyError = matches(parameter.key!, key) ? undefined : `the name in brackets ${parameter.key!.rule}`
    return { name, row, parameter, path: [...before.split('.'), key], ...(keyError && { keyError }) }
  }
  const indexed = name.replace(/\[(0|[1-9]\d{0,8})\]/g, '[n]')
  const parameter = rows.get(indexed)
  if (!parameter) return undefined
  const path = name.split(/[.[\]]+/).map(step => (/^\d+$/.test(step) ? Number(step) : step))
  const tooFar = path.some(step => typeof step === 'number' && step > indexMax)
  return { name, row: indexed, parameter, path, ...(tooFar && { keyError: `an index is at most ${indexMax}` }) }
}
