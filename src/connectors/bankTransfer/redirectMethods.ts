// Redirect methods that are defined by configuration alone: a brand, what it needs, where a payment is begun and asked after, and what the other
// side's words mean. docs/reference/redirects.md describes the file; connectors/redirectMethods.json is the one that comes with the gateway.

import { dirname, resolve } from 'node:path'
import { lookup } from '../../contract/parameters/table.ts'
import { requests } from '../../contract/requests.ts'
import { resultOfCode } from '../../contract/results/results.ts'
import { OperatorError } from '../../platform/errors.ts'
import {
  filled,
  filledListOf,
  listOf,
  mapOf,
  type Output,
  object,
  oneOf,
  optional,
  parseJson,
  read,
  type TextSchema,
  text,
  where,
  whole,
} from '../../platform/schema.ts'
import { type ClientTls, readTlsFiles, tlsFiles } from '../../platform/tls.ts'
import type { Mode } from '../connector.ts'

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

/** A text whose placeholders are all known. */
function template(schema: TextSchema, isWord: (word: string) => boolean) {
  const stray = (text: string) => [...text.matchAll(/\{([^{}]*)\}/g)].map(([, word]) => word!).filter(word => !isWord(word))
  return where(
    schema,
    text => stray(text).length === 0,
    ({ input }) =>
      `has the unknown placeholder ${stray(input)
        .map(word => `{${word}}`)
        .join(', ')}`,
  )
}

const address = (isWord: (word: string) => boolean) =>
  template(
    text(
      /^(https?:\/\/(?![^/?#\\]*@)|\{simulators\}\/)/,
      'must be an address with http or https and no user name or password, or begin with {simulators}/',
    ),
    word => word === 'simulators' || isWord(word),
  )
const addressOfOne = address(word => word === 'transactionId')
const name = text(/^[^\s]+$/, 'must be a name')
const endpoints = object({
  start: address(isStartWord),
  status: addressOfOne,
  refund: optional(addressOfOne),
  /** Sent with every call, for example an API key. */
  headers: optional(mapOf(name, filled)),
  tls: optional(tlsFiles),
})

const method = object({
  title: optional(filled),
  /** A preauthorization could neither be captured nor given back: there are no addresses for that. */
  types: optional(filledListOf(oneOf(['DB'])), ['DB']),
  /** Empty = all. */
  currencies: optional(listOf(text(/^[A-Z]{3}$/, 'must be a currency code')), []),
  needs: optional(listOf(text(/^[A-Za-z0-9_.[\]]+$/, 'must be the name of a parameter')), ['shopperResultUrl']),
  endsAfterSeconds: optional(whole(60, 86_400), 1800),
  internal: optional(endpoints),
  external: optional(endpoints),
  live: optional(endpoints),
  /** Fields of the start form, as templates. */
  fields: mapOf(filled, template(filled, isStartWord)),
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

export type Endpoints = Omit<Output<typeof endpoints>, 'tls'> & { readonly tls?: ClientTls }
export type RedirectMethod = Omit<Output<typeof method>, 'title' | Mode> & {
  readonly brand: string
  readonly title: string
  readonly endpoints: Readonly<Partial<Record<Mode, Endpoints>>>
}

/** Reads the file's text; throws an OperatorError naming each brand and what is wrong with it. `strict`: nobody else may replace files that it names. */
export function readRedirectMethods(text: string, source: string, strict = false): RedirectMethod[] {
  const { $schema: _, ...methods } = Object(parseJson(text, source)) as Record<string, unknown>
  const wrong: string[] = []
  const made = Object.entries(read(redirectMethodsSchema, methods, source)).map(([brand, row]) => {
    const { internal, external, live, ...rest } = row
    const endpoints = Object.entries({ internal, external, live }).flatMap(([mode, given]) => {
      if (!given) return []
      const { tls, ...addresses } = given
      const fail = (mistake: string) => wrong.push(`${source}: ${brand}.${mode}.${mistake}.`)
      const own = tls && readTlsFiles(tls, dirname(resolve(source)), strict, fail)
      return [[mode, { ...addresses, ...(own && { tls: own }) }] as const]
    })
    return { title: brand, ...rest, brand, endpoints: Object.fromEntries(endpoints) }
  })
  if (wrong.length > 0) throw new OperatorError(wrong.join('\n'))
  return made
}
