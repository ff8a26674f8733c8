// A first payment: PA, DB, CD or PA.CP.

import type { OperationRequest } from '../../connectors/connector.ts'
import { hundredths } from '../../contract/amounts.ts'
import type { NamedParameter, Values } from '../../contract/parameters/table.ts'
import type { Channel } from '../../merchants/directory.ts'
import { timeOrderedId } from '../../platform/clock.ts'
import { sealCard } from '../../vault/cards.ts'
import { execute, operationOf, type PaymentResponse, storeRefusal } from '../execute.ts'
import { captureAtOnce } from '../followUps/followUp.ts'
import { awaitTwin } from '../idempotency.ts'
import type { PaymentParts } from '../parts.ts'
import type { Payment } from '../payment.ts'
import { maskedCard } from '../read/record.ts'
import { makeAddresses } from '../redirects/tokens.ts'
import { type Screen, screen } from '../risk/screen.ts'
import type { NewPayment, RequestKey } from '../store/payments.ts'
import { endUnsent, isTooLate, settleUnsent } from '../unsent.ts'
import { type Choice, choose, type Refusal } from './choose.ts'
import { descriptorFor } from './descriptor.ts'

export type PaymentRequest = {
  readonly channel: Channel
  readonly values: Values
  readonly known: ReadonlyMap<string, NamedParameter>
  readonly ndc: string
  readonly key?: RequestKey
  readonly tokenId?: string
}

/** Decides what a request is to be: a payment, or an authentication alone. */
export type Choose = typeof choose

export async function pay(
  parts: PaymentParts,
  request: PaymentRequest,
  decide: Choose = choose,
): Promise<PaymentResponse | Refusal> {
  const { channel, key } = request
  const began = parts.clock.elapsed()
  const now = parts.directory.businessTime(channel.merchantId)
  const choice = decide(request.values, channel, parts, now)
  if ('refused' in choice && !choice.stored) return choice
  const id = timeOrderedId(parts.clock.real(), parts.random)
  const screened = 'refused' in choice ? undefined : await screenChosen(parts, request, choice, id, now)
  const payment = paymentOf(parts, request, choice, id, now, screened)
  const refused = 'refused' in choice ? choice : screened && 'refused' in screened ? screened : undefined
  const row: NewPayment = {
    payment,
    ...(key && { key }),
    ...(!('refused' in choice) &&
      !refused &&
      choice.card && {
        sealedCard: sealCard(parts, payment.merchantId, payment.id, choice.card, payment.receivedAt),
      }),
  }
  const unsent = { payment, rootType: payment.type }
  const stored = await parts.insertPayment(row).catch((error: Error) => {
    endUnsent(parts, unsent)
    throw error
  })
  if (!stored) {
    const twin = await awaitTwin(parts, payment, key!)
    if (twin !== 'ours') return twin
  }
  if (refused) return storeRefusal(parts, payment, refused.refused, true, refused.parameterErrors)
  if (isTooLate(parts, began)) return settleUnsent(parts, unsent)
  const { connector, card, capture, redirects } = choice as Choice
  const addresses = redirects ? makeAddresses(parts, payment.merchantId) : undefined
  const operation = operationOf(parts, payment, { attempt: 1, ...(addresses && { addresses }) }, card)
  const said = await execute(parts, { payment, rootType: payment.type, connector, operation })
  return capture && said.outcome !== 'pending' ? captureAtOnce(parts, channel, payment, said) : said
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
      fields: [...keptFields(values, known), ['descriptor', descriptorFor(channel, id, values.get('descriptor'))]],
      ...(number !== undefined && number.length > 8 && { card: maskedCard(number) }),
      ...(chosen?.capture && { captureAtOnce: true as const }),
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
