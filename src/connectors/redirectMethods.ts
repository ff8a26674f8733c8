// Redirect methods that are defined by configuration alone: a brand, what it needs, where a payment is begun and asked after, and what the other
// side's words mean. docs/reference/redirects.md describes the file; connectors/redirectMethods.json is the one that comes with the gateway.

import { resultOfCode } from '../contract/results/results.ts'
import {
  filled,
  filledListOf,
  listOf,
  mapOf,
  object,
  oneOf,
  optional,
  parseJson,
  type Read,
  read,
  text,
  where,
  whole,
} from '../schema.ts'
import type { Mode } from './connector.ts'

const address = text(/^(https?:\/\/|\{simulators\}\/)/, 'must be an address with http or https, or begin with {simulators}/')
const name = text(/^[^\s]+$/, 'must be a name')
const endpoints = object({
  start: address,
  status: address,
  refund: optional(address),
  /** Sent with every call, for example an API key. */
  headers: optional(mapOf(name, filled)),
})

const method = object({
  title: optional(filled),
  types: optional(filledListOf(oneOf(['PA', 'DB'])), ['DB']),
  /** Empty = all. */
  currencies: optional(listOf(text(/^[A-Z]{3}$/, 'must be a currency code')), []),
  needs: optional(listOf(text(/^[A-Za-z0-9_.[\]]+$/, 'must be the name of a parameter')), ['shopperResultUrl']),
  endsAfterSeconds: optional(whole(60, 86_400), 1800),
  internal: optional(endpoints),
  external: optional(endpoints),
  live: optional(endpoints),
  /** Fields of the start form, as templates. */
  fields: mapOf(filled, filled),
  /** Under which names the JSON answers carry what we look for. */
  answer: object({
    transactionId: filled,
    redirect: filled,
    status: filled,
    amount: optional(filled),
    currency: optional(filled),
    reason: optional(filled),
  }),
  /** The other side's statuses as result codes. */
  statuses: mapOf(
    filled,
    where(filled, code => resultOfCode.has(code), 'must be a code of the interface'),
  ),
})

/** REDIRECT_METHODS_FILE: methods by their brand. */
export const redirectMethodsSchema = mapOf(
  text(/^[A-Z][A-Z0-9_]{1,31}$/, 'must be named in capitals, digits and underscores'),
  method,
)

export type Endpoints = Read<typeof endpoints>
export type RedirectMethod = Omit<Read<typeof method>, 'title' | Mode> & {
  readonly brand: string
  readonly title: string
  readonly endpoints: Readonly<Partial<Record<Mode, Endpoints>>>
}

/** Reads the file's text; throws an OperatorError naming each brand and what is wrong with it. */
export function readRedirectMethods(text: string, source: string): RedirectMethod[] {
  const { $schema: _, ...methods } = Object(parseJson(text, source)) as Record<string, unknown>
  return Object.entries(read(redirectMethodsSchema, methods, source)).map(([brand, row]) => {
    const { internal, external, live, ...rest } = row
    const endpoints = { ...(internal && { internal }), ...(external && { external }), ...(live && { live }) }
    return { title: brand, ...rest, brand, endpoints }
  })
}
