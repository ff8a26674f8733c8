// A first payment: PA, DB, CD or PA.CP.

import type { OperationRequest } from '../../connectors/connector.ts'
import { hundredths } from '../../contract/amounts.ts'
import type { NamedParameter, Values } from '../../contract/parameters/table.ts'
import type { Channel } from '../../merchants/directory.ts'
import { timeOrderedId } from '../../platform/clock.ts'
import { sealCard } from '../../vault/cards.ts'
import { execute, operationOf, type PaymentResponse, storeRefusal } from '../execute.ts'
import { captureAtOnce } from '../followUps/followUp.ts'
import { answeredBefore, awaitTwin } from '../idempotency.ts'
import { rootTypeOf } from '../ledger/journal.ts'
import type { PaymentParts } from '../parts.ts'
import type { Payment } from '../payment.ts'
import { maskedCard } from '../read/record.ts'
import { makeAddresses } from '../redirects/tokens.ts'
import { type Screen, screen } from '../risk/screen.ts'
import type { RequestKey } from '../store/keys.ts'
import type { NewPayment } from '../store/payments.ts'
import { insertRegistration } from '../store/registrations.ts'
import { endUnsent, isTooLate, settleUnsent } from '../unsent.ts'
import { type Choice, choose, type Refusal, registers } from './choose.ts'
import { descriptorFor } from './descriptor.ts'
import { asInitial, registrationWith } from './register.ts'

export type PaymentRequest = {
  readonly channel: Channel
  readonly values: Values
  readonly known: ReadonlyMap<string, NamedParameter>
  readonly ndc: string
  /** Where the caller reached us: its shopper's addresses begin so. */
  readonly publicUrl: string
  readonly key?: RequestKey
  readonly tokenId?: string
  /** The registration that pays; its card stands among the values. */
  readonly registration?: { readonly ownerId: string; readonly id: string }
  /** The checkout that it is made in. */
  readonly checkout?: string
  /** As its record keeps it. */
  readonly shopSaidBy?: 'shopper'
  /** Stores the payment in a way of its own. */
  readonly claim?: PaymentClaim
}

/** Stores a payment, in whichever way: it is ours to carry out, or somebody else's is the answer. */
export type PaymentClaim = (row: NewPayment) => Promise<'ours' | PaymentResponse | Refusal>

/** Decides what a request is to be: a payment, or an authentication alone. */
export type Choose = typeof choose

export async function pay(
  parts: PaymentParts,
  asked: PaymentRequest,
  decide: Choose = choose,
): Promise<PaymentResponse | Refusal> {
  const request = registers(asked.values) ? asInitial(asked) : asked
  const { channel, key } = request
  const began = parts.clock.elapsed()
  const now = parts.directory.businessTime(channel.merchantId)
  const choice = decide(request.values, channel, parts, now)
  // What was carried out before the channel's settings changed is answered as it was.
  if ('refused' in choice && !choice.stored) return (key && (await answeredBefore(parts, channel.merchantId, key))) ?? choice
  const id = timeOrderedId(parts.clock.real(), parts.random)
  const screened = 'refused' in choice ? undefined : await screenChosen(parts, request, choice, id, now)
  const carried = 'refused' in choice || (screened && 'refused' in screened) ? undefined : choice
  const registrationId = carried && registers(request.values) ? timeOrderedId(parts.clock.real(), parts.random) : undefined
  const payment = paymentOf(parts, request, choice, id, now, screened, registrationId)
  const refused = 'refused' in choice ? choice : screened && 'refused' in screened ? screened : undefined
  const row: NewPayment = {
    payment,
    ...(key && { key }),
    ...(carried?.card && {
      sealedCard: sealCard(parts, payment.merchantId, payment.id, carried.card, payment.receivedAt),
    }),
    ...(registrationId !== undefined && {
      registration: registrationWith(parts, payment, registrationId, carried!.card!),
    }),
  }
  const unsent = { payment, rootType: rootTypeOf(payment) }
  const stored = await (request.claim ?? claim(parts))(row).catch((error: Error) => {
    endUnsent(parts, unsent)
    throw error
  })
  if (stored !== 'ours') return stored
  if (refused) return storeRefusal(parts, payment, refused.refused, true, refused.parameterErrors)
  if (isTooLate(parts, began)) return settleUnsent(parts, unsent)
  const { connector, card, capture, redirects } = choice as Choice
  const addresses = redirects ? makeAddresses(parts, request.publicUrl, payment.merchantId) : undefined
  const { publicUrl } = request
  const operation = operationOf(parts, payment, { attempt: 1, publicUrl, ...(addresses && { addresses }) }, card)
  const said = await execute(parts, { payment, rootType: rootTypeOf(payment), connector, operation })
  return capture && said.outcome !== 'pending' ? captureAtOnce(parts, channel, payment, said) : said
}

/** A registration that is left without its payment is never confirmed, and loses its card. */
const claim =
  (parts: PaymentParts): PaymentClaim =>
  async row => {
    if (row.registration) await insertRegistration(parts.database.work, row.registration, parts.clock.real())
    return (await parts.insertPayment(row)) ? 'ours' : awaitTwin(parts, row.payment, row.key!)
  }

/** Cards are screened when money is to come; money that leaves, other methods and authentications alone are not. */
async function screenChosen(
  parts: PaymentParts,
  { channel, values }: PaymentRequest,
  { type, brand, card, amount, currency }: Choice,
  id: string,
  now: number,
): Promise<Screen | undefined> {
  if ((type !== 'PA' && type !== 'DB') || !card) return undefined
  return screen(parts, channel, id, { fields: values, brand, cardNumber: card.number, amount, currency, now })
}

function paymentOf(
  parts: PaymentParts,
  request: PaymentRequest,
  choice: Choice | Refusal,
  id: string,
  now: number,
  screened: Screen | undefined,
  registrationId: string | undefined,
): Payment {
  const { channel, values, known, ndc } = request
  const chosen = 'refused' in choice ? undefined : choice
  // A payment that the risk check refused has no connector: recovery must not send it.
  const sent = screened && 'refused' in screened ? undefined : chosen
  const risk = screened && ('refused' in screened ? screened.screening : screened.passed)
  const number = values.get('card.number')
  const merchantTransactionId = values.get('merchantTransactionId')
  const brand = chosen?.brand ?? values.get('paymentBrand')
  return {
    merchantId: channel.merchantId,
    id,
    channelId: channel.id,
    type:
      chosen?.type ?? ((values.get('paymentType') === 'PA.CP' ? 'PA' : (values.get('paymentType') ?? '3D')) as Payment['type']),
    ...(brand !== undefined && { brand }),
    amount: hundredths(values.get('amount')!),
    currency: values.get('currency')!,
    mode: chosen?.mode ?? 'internal',
    connector: sent?.connector.name ?? '',
    ...(merchantTransactionId !== undefined && { merchantTransactionId }),
    ...(request.tokenId !== undefined && { tokenId: request.tokenId }),
    receivedAt: now,
    recordedAt: parts.clock.real(),
    record: {
      ndc,
      ...(request.checkout !== undefined && { checkout: request.checkout }),
      ...(request.shopSaidBy && { shopSaidBy: request.shopSaidBy }),
      ...(request.registration && { registration: request.registration }),
      ...(registrationId !== undefined && {
        registration: { ownerId: channel.merchantId, id: registrationId, made: true as const },
      }),
      fields: [...keptFields(values, known), ['descriptor', descriptorFor(channel, id, values.get('descriptor'))]],
      ...(number !== undefined && number.length > 8 && { card: maskedCard(number) }),
      ...(chosen?.capture && { captureAtOnce: true as const }),
      ...(chosen?.slip && { slip: true as const }),
      ...(sent?.connector.prepare && { prepared: sent.connector.prepare(askedOf(sent, channel, now)) }),
      ...(risk && { risk }),
    },
  }
}

const askedOf = ({ type, mode, brand, amount, currency, card }: Choice, channel: Channel, now: number): OperationRequest => ({
  type,
  channel,
  mode,
  brand,
  amount,
  currency,
  ...(card && { bin: card.number.slice(0, 8) }),
  now,
})

// These stand in columns of their own, or are replaced.
const elsewhere: ReadonlySet<string> = new Set(['paymentType', 'paymentBrand', 'amount', 'currency', 'descriptor'])

/** The parameters that stay with a payment: echoed or kept for connectors, and never secret. */
export function keptFields(values: Values, known: ReadonlyMap<string, NamedParameter>): (readonly [string, string])[] {
  const fields: (readonly [string, string])[] = []
  for (const [name, value] of values) {
    if (elsewhere.has(name)) continue
    const { parameter, row, path } = known.get(name)!
    if (parameter.secret || !(parameter.echo || parameter.keep)) continue
    // Items of a lenient channel may have been counted anew.
    fields.push([row.includes('[n]') ? wireName(path) : name, value])
  }
  return fields
}

const wireName = (path: readonly (string | number)[]) =>
  path.reduce<string>(
    (name, step) => (typeof step === 'number' ? `${name}[${step}]` : name === '' ? step : `${name}.${step}`),
    '',
  )
