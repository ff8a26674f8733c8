// Redirect methods that are defined by configuration alone: a brand, what it needs, where a payment is begun and asked after, and what the other
// side's words mean. docs/reference/redirects.md describes the file; connectors/redirectMethods.json is the one that comes with the gateway.

import { lookup } from '../contract/parameters/table.ts'
import { requests } from '../contract/requests.ts'
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
    const stray = strayWords(row)
    if (stray.length > 0) throw new OperatorError(`${source}: ${brand} has ${stray.join(', ')}.`)
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

const findParameter = lookup(requests.payment.groups)

/** Words of the gateway itself that the start form may use; beside them every parameter that stays with a payment. */
export const startWords: ReadonlySet<string> = new Set([
  'paymentId',
  'amount',
  'currency',
  'back',
  'cancel',
  'notice',
  'merchantAccount.holder',
  'merchantAccount.number',
])

/** Nothing is put where such a word stands: secrets, and merchantInvoiceId, which is never passed onward (decisions, 46). */
function isStartWord(word: string): boolean {
  const parameter = findParameter(word)?.parameter
  const stays = parameter !== undefined && !parameter.secret && (parameter.echo === true || parameter.keep === true)
  return startWords.has(word) || (stays && word !== 'merchantInvoiceId')
}

/** The placeholders for which there is no word, each with its place. */
function strayWords(row: Readonly<Record<string, unknown>>): string[] {
  const wordsIn = (text: unknown) => [...String(text ?? '').matchAll(/\{([^{}]*)\}/g)].map(([, word]) => word!)
  const modes = (['internal', 'external', 'live'] as const).flatMap(mode =>
    row[mode] ? [[mode, row[mode] as Endpoints] as const] : [],
  )
  const fields = Object.entries(row.fields as Record<string, string>)
  const places: (readonly [place: string, text: unknown, fits: (word: string) => boolean])[] = [
    ...fields.map(([name, template]) => [`fields.${name}`, template, isStartWord] as const),
    ...modes.flatMap(([mode, { start, status, refund }]) => [
      [`${mode}.start`, start, (word: string) => word === 'simulators' || isStartWord(word)] as const,
      ...Object.entries({ status, refund }).map(
        ([name, text]) => [`${mode}.${name}`, text, (word: string) => word === 'simulators' || word === 'transactionId'] as const,
      ),
    ]),
  ]
  return places.flatMap(([place, text, fits]) =>
    wordsIn(text)
      .filter(word => !fits(word))
      .map(word => `the unknown placeholder {${word}} in ${place}`),
  )
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
  // A preauthorization that can neither be captured nor given back would be held for ever.
  types: { fits: optional(listOf(/^DB$/)), rule: 'must be a list of DB: there are no addresses for captures and reversals' },
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
