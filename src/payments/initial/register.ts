// createRegistration: the payment details of a first payment are stored beside it, and can be used once it is approved.

import { agreementMode } from '../../connectors/cards/iso8583/forwarding.ts'
import type { Mode } from '../../connectors/connector.ts'
import type { Card } from '../../contract/card.ts'
import { lookup, type NamedParameter, type ParameterName, type Values } from '../../contract/parameters/table.ts'
import { requests } from '../../contract/requests.ts'
import type { Channel } from '../../merchants/directory.ts'
import { registeredUntil, sealCard } from '../../vault/cards.ts'
import type { PaymentParts } from '../parts.ts'
import type { Payment, PaymentRecord } from '../payment.ts'
import { maskedCard } from '../read/record.ts'
import type { NewRegistration } from '../store/registrations.ts'

/** What is kept of a registration as JSON. */
export type RegistrationRecord = Pick<PaymentRecord, 'ndc' | 'fields' | 'card'>

/** Who makes a registration, where and when. */
export type RegistrationOrigin = {
  readonly ownerId: string
  readonly id: string
  readonly channelId: string
  readonly mode: Mode
  readonly brand: string
  readonly tokenId?: string
  readonly paymentId?: string
  /** Business time, milliseconds. */
  readonly madeAt: number
  readonly record: RegistrationRecord
}

/** Until its payment is approved the card is kept no longer than any payment waits. */
const unconfirmedDays = 3

export function registrationOf(
  { keys, random }: Pick<PaymentParts, 'keys' | 'random'>,
  { record, ...origin }: RegistrationOrigin,
  card: Card | undefined,
): NewRegistration {
  const { ownerId, id, madeAt, paymentId } = origin
  if (!card) return { ...origin, record: JSON.stringify(record) }
  const until = registeredUntil(card, madeAt)
  const sealed = sealCard({ keys, random }, ownerId, id, card, madeAt, unconfirmedDays)
  return {
    ...origin,
    record: JSON.stringify({ ...record, card: maskedCard(card.number) }),
    card: { ...sealed, ...(paymentId === undefined && { eraseAfter: until }), registeredUntil: until },
  }
}

/** The registration that a payment makes; it belongs to the merchant. */
export const registrationWith = (
  parts: PaymentParts,
  { merchantId, channelId, id, mode, brand, tokenId, receivedAt, record }: Payment,
  registrationId: string,
  card: Card,
): NewRegistration =>
  registrationOf(
    parts,
    {
      ownerId: merchantId,
      id: registrationId,
      channelId,
      paymentId: id,
      mode,
      brand: brand!,
      ...(tokenId !== undefined && { tokenId }),
      madeAt: receivedAt,
      record: { ndc: record.ndc, fields: record.fields.filter(([name]) => isOfShopper(name)) },
    },
    card,
  )

/** What stays with a registration: whose it is, and how it is paid. */
export const isOfShopper = (name: string): boolean => /^(card|customer|billing|virtualAccount|customParameters)\b/.test(name)

type PaymentForm = { readonly channel: Channel; readonly values: Values; readonly known: ReadonlyMap<string, NamedParameter> }

const find = lookup(requests.payment.groups)

/** A request with further values; those that it has count. */
export function withDefaults<Request extends PaymentForm>(
  request: Request,
  defaults: readonly (readonly [ParameterName, string])[],
): Request {
  const missing = defaults.filter(([name]) => !request.values.has(name))
  return {
    ...request,
    values: new Map([...request.values, ...missing]),
    known: new Map([...request.known, ...missing.map(([name]) => [name, find(name)!] as const)]),
  }
}

/** Storing a card begins an agreement, of which the network is told; a request that says what it begins is left as it is. */
export const asInitial = <Request extends PaymentForm>(request: Request): Request =>
  agreementMode(request.values) !== undefined
    ? request
    : withDefaults(request, [
        ['standingInstruction.mode', 'INITIAL'],
        ['standingInstruction.type', 'UNSCHEDULED'],
        ['standingInstruction.source', 'CIT'],
      ])
