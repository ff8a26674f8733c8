// What an endpoint is told, as data: the envelope around the answer, what is left out of it, and how it is put on the wire. Pure.

import { results } from '../contract/results/results.ts'
import { encrypt } from './cipher.ts'
import { signature } from './signature.ts'

export type FieldChoice = 'all' | 'withoutCustomerData'
/** `none`: the encrypted body as hex · `json`: the same in {"encryptedBody"} · `plain`: readable JSON, trusted by its signature. */
export type Wrapper = 'none' | 'json' | 'plain'

export type NotificationEvent = {
  readonly type: string
  readonly action: string | null
  /** The answer as it was given, JSON text. */
  readonly payload: string
}

type JsonMap = Record<string, unknown>

/** The envelope as JSON text. The payload is the answer; amount and currency are shown once more, inside it and beside it (decisions, 38). */
export function envelope({ type, action, payload: text }: NotificationEvent, fields: FieldChoice): string {
  const answer = JSON.parse(text) as JsonMap
  const payload: JsonMap = Object.create(null)
  for (const [name, value] of Object.entries(fields === 'all' ? answer : withoutCustomerData(answer))) {
    payload[name] = value
    if (name === 'currency') Object.assign(payload, presented(answer))
  }
  return JSON.stringify({ type, ...(action !== null && { action }), payload, ...presented(answer) })
}

const presented = ({ amount, currency }: JsonMap): JsonMap =>
  amount === undefined || currency === undefined ? {} : { presentationAmount: amount, presentationCurrency: currency }

// What may be told where customer data may not. A list of what stays: a field that comes later is left out until it is put here.
const stays: Readonly<Record<string, true | readonly string[]>> = {
  id: true,
  referencedId: true,
  registrationId: true,
  paymentType: true,
  paymentBrand: true,
  amount: true,
  currency: true,
  descriptor: true,
  merchantTransactionId: true,
  merchantInvoiceId: true,
  transactionCategory: true,
  recurringType: true,
  standingInstruction: true,
  recurring: true,
  registration: ['id'],
  result: true,
  resultDetails: [
    'ExtendedDescription',
    'clearingInstituteName',
    'AcquirerResponse',
    'ConnectorTxID1',
    'ConnectorTxID2',
    'ConnectorTxID3',
  ],
  card: ['bin', 'last4Digits', 'expiryMonth', 'expiryYear'],
  risk: ['score'],
  threeDSecure: ['eci', 'version'],
  redirect: true,
  buildNumber: true,
  timestamp: true,
  ndc: true,
}

function withoutCustomerData(answer: JsonMap): JsonMap {
  const kept: [string, unknown][] = []
  for (const [name, value] of Object.entries(answer)) {
    const rule = Object.hasOwn(stays, name) ? stays[name] : undefined
    if (rule === true) kept.push([name, value])
    else if (rule !== undefined && value !== null && typeof value === 'object')
      kept.push([name, Object.fromEntries(Object.entries(value).filter(([inner]) => rule.includes(inner)))])
  }
  return Object.fromEntries(kept)
}

/** Sent on activation, before anything else: an endpoint that does not take it is not activated. */
export const testNotification = JSON.stringify({
  type: 'test',
  action: 'webhook activation',
  payload: { result: { code: results.succeededInTestMode.code, description: results.succeededInTestMode.description } },
})

export type SendingContext = {
  readonly id: string
  readonly sequence: number
  /** 1 for the first time. */
  readonly attempt: number
  /** Real time: receivers compare it with their own clock. */
  readonly seconds: number
  readonly wrapper: Wrapper
  /** One, or two while the receiver changes its secret. */
  readonly secrets: readonly Buffer[]
  /** Twelve fresh random bytes. */
  readonly iv: Buffer
}

export type HttpMessage = { readonly headers: Readonly<Record<string, string>>; readonly body: string }

/** Bytes and headers. While two secrets are valid every other attempt takes the other one: whichever the receiver knows, it hears. */
export function onTheWire(text: string, { id, sequence, attempt, seconds, wrapper, secrets, iv }: SendingContext): HttpMessage {
  const sealed = wrapper === 'plain' ? undefined : encrypt(secrets[(attempt - 1) % secrets.length]!, iv, text)
  const body = sealed === undefined ? text : wrapper === 'json' ? JSON.stringify({ encryptedBody: sealed.body }) : sealed.body
  return {
    body,
    headers: {
      'Content-Type': wrapper === 'none' ? 'text/plain; charset=UTF-8' : 'application/json; charset=UTF-8',
      ...(sealed && { 'X-Initialization-Vector': sealed.iv, 'X-Authentication-Tag': sealed.tag }),
      'webhook-id': id,
      'webhook-timestamp': String(seconds),
      'webhook-signature': signature(secrets, id, seconds, body),
      'X-Notification-Sequence': String(sequence),
      'X-Notification-Attempt': String(attempt),
    },
  }
}
