// The interface as an OpenAPI 3.1 document, made of the tables: operations, requests, parameters and their formats.

import type { Format } from './formats.ts'
import { limits } from './limits.ts'
import { type ApiOperation, always, authenticated, operations, posted } from './operations.ts'
import { describe } from './parameters/describe.ts'
import type { Parameter, Parameters } from './parameters/parameter.ts'
import { reconciliationTypes } from './parameters/query.ts'
import { type Group, groups } from './parameters/table.ts'
import { type RequestKind, requests } from './requests.ts'

export type JsonSchema = { [name: string]: unknown }

/** The whole document. */
export function openApi(): JsonSchema {
  const used = [...new Set(operations.flatMap(({ form }) => form?.groups ?? []))]
  return {
    openapi: '3.1.0',
    info: {
      title: 'Tollgate',
      version: 'v1',
      summary: 'A payment gateway that speaks the Open Payment Platform REST interface',
      description:
        'Requests are form-encoded in UTF-8, answers are JSON. Formats are those of a strict channel; a lenient channel drops a malformed ' +
        'descriptive parameter instead of failing the payment. Blank means absent, except where a parameter says otherwise. ' +
        'A repeated request with the same Idempotency-Key header gets the answer of the first.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: 'http://127.0.0.1:8080', description: 'The sandbox that npm start runs' }],
    paths: paths(),
    components: {
      schemas: {
        ...Object.fromEntries(used.map(group => [`parameters.${group}`, groupSchema(group)])),
        ...answerSchemas(),
      },
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'The access token of a merchant.' },
        userId: { type: 'apiKey', in: 'query', name: 'authentication.userId', description: legacy },
        password: { type: 'apiKey', in: 'query', name: 'authentication.password', description: legacy },
      },
    },
  }
}

const legacy =
  'Older clients send user id and password, in the query of a GET or in the body of a POST, and no Authorization header. ' +
  'Accepted where the settings of the merchant allow it.'

function paths(): JsonSchema {
  const made: Record<string, JsonSchema> = {}
  for (const operation of operations)
    made[operation.path] = { ...made[operation.path], [operation.method]: operationSchema(operation) }
  return made
}

function operationSchema(operation: ApiOperation): JsonSchema {
  const { method, id, says, more, form, fields, query, pathId, answers } = operation
  const open = operation.open ?? operation.byBrowser
  const all = { ...always, ...(open ? {} : authenticated), ...(method === 'post' ? posted : {}), ...answers }
  const parameters = [
    ...(pathId === undefined
      ? []
      : [{ name: 'id', in: 'path', required: true, description: pathId, schema: { type: 'string' } }]),
    ...(form && !open ? [idempotencyKey] : []),
    ...(query ?? []).map(asked => queryParameter(asked, operation.queryGroup ?? 'query')),
  ]
  return {
    operationId: id,
    summary: says,
    ...(more !== undefined && { description: more }),
    security: open ? [] : [{ bearer: [] }, ...(method === 'post' ? [] : [{ userId: [], password: [] }])],
    ...(parameters.length > 0 && { parameters }),
    ...(method === 'post' && {
      requestBody: {
        required: true,
        content: { 'application/x-www-form-urlencoded': { schema: form ? formSchema(form) : fieldsSchema(fields!) } },
      },
    }),
    responses: Object.fromEntries(
      Object.entries(all).map(([status, [description, schema, contentType = 'application/json']]) => [
        status,
        { description, content: { [contentType]: { schema: reference(schema) } } },
      ]),
    ),
  }
}

const idempotencyKey = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description: `The same key and body give the same answer for ${limits.idempotencyKeyHours} hours, executed once; the same key with another body is refused.`,
  schema: { type: 'string', pattern: '^[\\x21-\\x7e]{1,255}$', minLength: 1, maxLength: 255 },
}

const reference = (name: string): JsonSchema => ({ $ref: `#/components/schemas/${name}` })

// ---- Requests

function queryParameter(asked: string, group: 'query' | 'reporting'): JsonSchema {
  const name = asked.replace('!', '')
  const rows: Parameters = { ...groups.common, ...groups.authentication, ...groups[group] }
  const parameter = rows[name]!
  return {
    name,
    in: 'query',
    required: asked.endsWith('!'),
    description: describe(parameter),
    schema: formatSchema(parameter.format),
  }
}

const formSchema = ({ required, groups }: RequestKind): JsonSchema => ({
  type: 'object',
  required: [...required],
  allOf: groups.map(group => reference(`parameters.${group}`)),
})

const fieldsSchema = (fields: Readonly<Record<string, string>>): JsonSchema => ({
  type: 'object',
  properties: Object.fromEntries(Object.entries(fields).map(([name, pattern]) => [name, { type: 'string', pattern }])),
})

/** Plain names are properties; names with an index or a free key are patterns. */
function groupSchema(group: Group): JsonSchema {
  const properties: Record<string, JsonSchema> = {}
  const patternProperties: Record<string, JsonSchema> = {}
  for (const [name, parameter] of Object.entries(groups[group] as Parameters)) {
    if (name.includes('[')) patternProperties[namePattern(name, parameter)] = { title: name, ...parameterSchema(parameter) }
    else properties[name] = parameterSchema(parameter)
  }
  return {
    type: 'object',
    ...(Object.keys(properties).length > 0 && { properties }),
    ...(Object.keys(patternProperties).length > 0 && { patternProperties }),
  }
}

function parameterSchema(parameter: Parameter): JsonSchema {
  return {
    ...formatSchema(parameter.format, parameter.truncate === undefined),
    description: describe(parameter),
    ...(!parameter.echo && { writeOnly: true }),
    ...(parameter.secret && { format: 'password' }),
  }
}

function formatSchema({ pattern, lengths, words }: Format, bounded = true): JsonSchema {
  if (words) return { type: 'string', enum: [...words] }
  return {
    type: 'string',
    pattern: pattern.source,
    ...(lengths && { minLength: lengths[0], ...(bounded && { maxLength: lengths[1] }) }),
  }
}

/** `cart.items[n].price` → `^cart\.items\[(0|[1-9][0-9]{0,2})\]\.price$`; a free key takes the place of its word. */
function namePattern(name: string, { key }: Parameter): string {
  const inside = key ? key.pattern.source.slice(1, -1) : '(0|[1-9][0-9]{0,2})'
  const parts = name.split(/\[[a-z]+\]/).map(part => part.replaceAll('.', '\\.'))
  return `^${parts.join(`\\[${inside}\\]`)}$`
}

// ---- Answers

const text: JsonSchema = { type: 'string' }
const texts = (...names: string[]): Record<string, JsonSchema> => Object.fromEntries(names.map(name => [name, text]))
const footer = texts('buildNumber', 'timestamp', 'ndc')
const footerNames = ['buildNumber', 'timestamp', 'ndc']

const answerOf = (properties: Record<string, JsonSchema>, ...required: string[]): JsonSchema => ({
  type: 'object',
  required: [...required, 'result', ...footerNames],
  properties: { ...properties, result: reference('Result'), ...footer },
})

function answerSchemas(): Record<string, JsonSchema> {
  const list = (items: JsonSchema): JsonSchema => ({ type: 'array', items })
  return {
    Payment: paymentSchema('id', 'paymentType'),
    Error: answerOf({ id: text, paymentType: text, paymentBrand: text }),
    PaymentOrError: paymentSchema(),
    PaymentList: answerOf({ payments: list(reference('Payment')) }, 'payments'),
    RecordPage: answerOf(
      { records: list(reference('Payment')), pages: { type: 'string', description: 'How many pages there are.' } },
      'records',
    ),
    Aggregation: aggregation,
    AggregationList: answerOf({ aggregations: list(reference('Aggregation')) }, 'aggregations'),
    ReconciliationRecord: reconciliationRecord,
    ReconciliationPage: answerOf(
      {
        aggregation: reference('Aggregation'),
        records: list(reference('ReconciliationRecord')),
        pages: { type: 'string', description: 'How many pages there are; on v2.' },
      },
      'aggregation',
      'records',
    ),
    ResultCodeList: answerOf(
      { resultCodes: list({ type: 'object', required: ['code', 'description'], properties: texts('code', 'description') }) },
      'resultCodes',
    ),
    ResultOnly: answerOf({}),
    Checkout: answerOf({ id: text, integrity: text, link: text }, 'id'),
    Registration: registrationSchema(),
    FormAnswer: answerOf({ shopperResultUrl: text, redirect: { type: 'object', properties: texts('url') } }),
    Xml: { type: 'string', description: 'An XML document.' },
    ClockMoved: answerOf(texts('merchantId', 'now'), 'merchantId', 'now'),
    NotificationsRead: answerOf(
      {
        secret: text,
        notifications: list({
          type: 'object',
          required: ['position', 'sequence', 'id', 'headers', 'body'],
          properties: {
            ...texts('position', 'sequence', 'id', 'body'),
            headers: { type: 'object', additionalProperties: text },
          },
        }),
      },
      'secret',
      'notifications',
    ),
    Result: {
      type: 'object',
      required: ['code', 'description'],
      properties: {
        code: { type: 'string', pattern: '^[0-9.]{2,11}$', description: 'One of GET /v1/resultcodes.' },
        description: { type: 'string', maxLength: 255 },
        avsResponse: { type: 'string', enum: ['A', 'Z', 'N', 'U', 'F'] },
        cvvResponse: { type: 'string', minLength: 1, maxLength: 1 },
        parameterErrors: list({
          type: 'object',
          required: ['name', 'message'],
          properties: { name: text, value: { ...text, description: 'Left out where it may be secret.' }, message: text },
        }),
      },
    },
  }
}

const signed: JsonSchema = { type: 'string', pattern: '^-?[0-9]{1,16}\\.[0-9]{2}$' }
const day: JsonSchema = { type: 'string', pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}$' }
const kindOfRecord: JsonSchema = { type: 'string', enum: [...reconciliationTypes] }
const strict = (properties: Record<string, JsonSchema>, others: Record<string, JsonSchema> = {}): JsonSchema => ({
  type: 'object',
  required: Object.keys(properties),
  properties: { ...properties, ...others },
})
const sums: Record<string, JsonSchema> = { ...texts('count', 'matchedCount'), credit: signed, debit: signed, amount: signed }

/** A day of a currency; `amount` is `credit` less `debit`. */
const aggregation = strict(
  {
    id: { type: 'string', pattern: '^[0-9a-f]{32}$' },
    date: day,
    currency: text,
    ...sums,
    totals: { type: 'array', items: strict({ reconciliationType: kindOfRecord, ...sums }) },
  },
  { testMode: { type: 'string', enum: ['INTERNAL', 'EXTERNAL'], description: 'Absent where the payments are live.' } },
)

const reconciliationRecord = strict(
  {
    ...texts('id', 'entityId', 'paymentType', 'currency', 'settlementTxDate'),
    reconciliationType: kindOfRecord,
    amount: signed,
    matchedTransactions: strict({
      status: { type: 'string', enum: ['NOT_MATCHED', 'MATCHED', 'MULTIPLE_MATCHES'] },
      transactions: { type: 'array', items: text },
    }),
  },
  {
    ...texts('referencedId', 'paymentBrand', 'merchantTransactionId'),
    settlement: strict({ date: day, ...texts('acquirer', 'outcome') }),
  },
)

/** What the gateway adds to what it echoes. */
const added: Readonly<Record<string, JsonSchema>> = {
  id: { type: 'string', pattern: '^[0-9a-f]{32}$' },
  referencedId: {
    type: 'string',
    pattern: '^[0-9a-f]{32}$',
    description: 'On a capture, refund or reversal: the payment that the request named.',
  },
  amount: { type: 'string', pattern: '^[0-9]{1,10}\\.[0-9]{2}$' },
  resultDetails: { type: 'object', additionalProperties: { type: 'string', maxLength: 2048 } },
  'card.bin': { type: 'string', pattern: '^[0-9]{6}$', description: 'Absent for numbers below 15 digits.' },
  'card.last4Digits': { type: 'string', pattern: '^[0-9]{4}$' },
  'redirect.url': { type: 'string', description: 'Only while the payment is pending: where the shopper must be sent.' },
  'redirect.method': { type: 'string', enum: ['POST'], description: 'Stands there when there are parameters.' },
  'redirect.parameters[n].name': { type: 'string', maxLength: 255 },
  'redirect.parameters[n].value': { type: 'string', maxLength: 255 },
  'redirect.preconditions[n].origin': text,
  'redirect.preconditions[n].waitUntil': text,
  'redirect.preconditions[n].description': text,
  'redirect.preconditions[n].method': text,
  'redirect.preconditions[n].url': text,
  'redirect.preconditions[n].parameters[n].name': text,
  'redirect.preconditions[n].parameters[n].value': text,
  registrationId: {
    type: 'string',
    pattern: '^[0-9a-f]{32}$',
    description: 'The registration that was made with the payment, or that pays.',
  },
  'registration.id': { type: 'string', pattern: '^[0-9a-f]{32}$', description: 'The same.' },
  'threeDSecure.authenticationType': text,
  'threeDSecure.cardHolderInfo': text,
  'threeDSecure.errorCode': text,
  'threeDSecure.errorDescription': text,
  'threeDSecure.errorSource': text,
  'virtualAccount.holder': text,
  'merchant.bankAccount.holder': { type: 'string', minLength: 4, maxLength: 128 },
  'merchant.bankAccount.number': { type: 'string', minLength: 3, maxLength: 64 },
  'merchant.bankAccount.bic': text,
  'merchant.bankAccount.country': text,
  'risk.score': { type: 'string', pattern: '^[+\\-]?[0-9]{1,5}$' },
}

/** Rows that are echoed as they came, unfolded into structures, and what the gateway adds. */
function paymentSchema(...promised: string[]): JsonSchema {
  const schema = answerOf({}, ...promised) as { properties: Record<string, JsonSchema> }
  for (const [name, one] of Object.entries(added)) place(schema, name, one)
  for (const group of requests.payment.groups) {
    for (const [name, parameter] of Object.entries(groups[group] as Parameters)) {
      if (parameter.echo) place(schema, name, text)
    }
  }
  return schema
}

/** What of a payment a registration shows. */
function registrationSchema(): JsonSchema {
  const { properties } = paymentSchema() as { properties: Record<string, JsonSchema> }
  const shown = [
    'paymentType',
    'paymentBrand',
    'card',
    'virtualAccount',
    'customer',
    'billing',
    'customParameters',
    'standingInstruction',
  ]
  return answerOf({ id: text, ...Object.fromEntries(shown.map(name => [name, properties[name]!])) }, 'id')
}

/** Puts the schema of a wire name where the name unfolds to. */
function place(root: JsonSchema, name: string, leaf: JsonSchema): void {
  let here = root
  for (const step of name.split('.')) {
    const [plain, bracket] = step.split(/[[\]]/) as [string, string | undefined]
    here = child(here, plain)
    if (bracket === 'n') here = items(here)
    else if (bracket !== undefined) return void Object.assign(here, { type: 'object', additionalProperties: leaf })
  }
  Object.assign(here, leaf)
}

function child(of: JsonSchema, name: string): JsonSchema {
  const properties = (of.properties ?? {}) as Record<string, JsonSchema>
  const found = properties[name] ?? {}
  properties[name] = found
  Object.assign(of, { type: 'object', properties })
  return found
}

function items(of: JsonSchema): JsonSchema {
  const found = (of.items ?? {}) as JsonSchema
  Object.assign(of, { type: 'array', items: found })
  return found
}
