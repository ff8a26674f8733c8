// Redirect methods that are defined by configuration alone: a brand, what it needs, where a payment is begun and asked after, and what the other
// side's words mean. docs/reference/redirects.md describes the file; connectors/redirectMethods.json is the one that comes with the gateway.

import { resultOfCode } from '../contract/results/results.ts'
import { OperatorError } from '../errors.ts'
import type { Mode, OperationType } from './connector.ts'

export type Endpoints = {
  readonly start: string
  readonly status: string
  readonly refund?: string
  /** Sent with every call, for example an API key. */
  readonly headers?: Readonly<Record<string, string>>
}

export type RedirectMethod = {
  readonly brand: string
  readonly title: string
  readonly types: readonly OperationType[]
  readonly currencies: readonly string[]
  readonly needs: readonly string[]
  readonly endsAfterSeconds: number
  readonly endpoints: Readonly<Partial<Record<Mode, Endpoints>>>
  /** Fields of the start form, as templates. */
  readonly fields: Readonly<Record<string, string>>
  /** Under which names the JSON answers carry what we look for. */
  readonly answer: Readonly<Record<'transactionId' | 'redirect' | 'status' | 'amount' | 'currency' | 'reason', string>>
  /** The other side's statuses as result codes. */
  readonly statuses: Readonly<Record<string, string>>
}

/** Reads the file's text; throws OperatorError naming the brand and what is wrong with it. */
export function readRedirectMethods(text: string, source: string): RedirectMethod[] {
  let given: Record<string, Record<string, unknown>>
  try {
    given = JSON.parse(text)
  } catch (error) {
    throw new OperatorError(`${source} is not JSON: ${(error as Error).message}`)
  }
  return Object.entries(given).map(([brand, row]) => {
    for (const [name, { fits, rule }] of Object.entries(rules))
      if (!fits(name === 'brand' ? brand : row[name])) throw new OperatorError(`${source}: ${brand}.${name} ${rule}.`)
    const unknown = Object.keys(row).filter(name => !(name in rules))
    if (unknown.length > 0) throw new OperatorError(`${source}: ${brand} has no setting ${unknown.join(', ')}.`)
    const { internal, external, live, ...rest } = row
    const endpoints = { ...(internal ? { internal } : {}), ...(external ? { external } : {}), ...(live ? { live } : {}) }
    return {
      title: brand,
      currencies: [],
      types: ['DB'],
      needs: ['shopperResultUrl'],
      endsAfterSeconds: 1800,
      ...rest,
      brand,
      endpoints,
    } as unknown as RedirectMethod
  })
}

type Rule = { readonly fits: (value: unknown) => boolean; readonly rule: string }
const optional = (fits: (value: unknown) => boolean) => (value: unknown) => value === undefined || fits(value)
const isText = (value: unknown) => typeof value === 'string' && value !== ''
const isMap = (value: unknown) => typeof value === 'object' && value !== null && Object.values(value).every(isText)
const listOf = (pattern: RegExp) => (value: unknown) => Array.isArray(value) && value.every(word => pattern.test(String(word)))
const isEndpoints = (value: unknown) => {
  const endpoints = value as Record<string, unknown> | null
  return (
    typeof endpoints === 'object' &&
    endpoints !== null &&
    Object.keys(endpoints).every(name => ['start', 'status', 'refund', 'headers'].includes(name)) &&
    [endpoints.start, endpoints.status].every(url => /^(https?:\/\/|\{simulators\}\/)/.test(String(url))) &&
    optional(isText)(endpoints.refund) &&
    optional(isMap)(endpoints.headers)
  )
}

const rules: Readonly<Record<string, Rule>> = {
  brand: { fits: brand => /^[A-Z][A-Z0-9_]{1,31}$/.test(String(brand)), rule: 'must be capitals, digits and underscores' },
  title: { fits: optional(isText), rule: 'must be a text' },
  types: { fits: optional(listOf(/^(PA|DB)$/)), rule: 'must be a list of PA and DB' },
  currencies: { fits: optional(listOf(/^[A-Z]{3}$/)), rule: 'must be a list of currency codes; empty for all' },
  needs: { fits: optional(listOf(/^[A-Za-z0-9_.[\]]+$/)), rule: 'must be a list of parameter names' },
  endsAfterSeconds: {
    fits: optional(value => Number.isInteger(value) && (value as number) >= 60 && (value as number) <= 86_400),
    rule: 'must be 60 to 86400',
  },
  internal: { fits: optional(isEndpoints), rule: 'must be {start, status, refund, headers} with http addresses' },
  external: { fits: optional(isEndpoints), rule: 'must be {start, status, refund, headers} with http addresses' },
  live: { fits: optional(isEndpoints), rule: 'must be {start, status, refund, headers} with http addresses' },
  fields: { fits: isMap, rule: 'must be a map of templates' },
  answer: {
    fits: value => isMap(value) && ['transactionId', 'redirect', 'status'].every(name => name in (value as object)),
    rule: 'must name transactionId, redirect and status',
  },
  statuses: {
    fits: value => isMap(value) && Object.values(value as Record<string, string>).every(code => resultOfCode.has(code)),
    rule: 'must map each status to a code of the interface',
  },
}
