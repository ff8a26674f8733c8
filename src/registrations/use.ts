// Paying with a registration: who may use it, and what it brings into a payment.

import { agreementMode } from '../connectors/cards/iso8583/forwarding.ts'
import { modeOf } from '../connectors/registry.ts'
import type { ParameterName } from '../contract/parameters/table.ts'
import type { ResultName } from '../contract/results/results.ts'
import type { PaymentRequest } from '../payments/initial/pay.ts'
import { withDefaults } from '../payments/initial/register.ts'
import type { PaymentParts } from '../payments/parts.ts'
import { isId } from '../platform/clock.ts'
import { openCard } from '../vault/cards.ts'
import { detailsOf } from './record.ts'
import { findRegistrations, type Registration } from './store.ts'

/** Whose registrations an entity may use: its merchant's, and those of the divisions above it. */
export const ownersFor = ({ directory }: Pick<PaymentParts, 'directory'>, entityId: string): readonly string[] =>
  directory.lineage(entityId).filter(id => ['merchant', 'division'].includes(directory.entity(id)?.kind ?? ''))

/** Who is told of an owner's registrations: a merchant, or those of a division. */
export const merchantsOf = (directory: PaymentParts['directory'], ownerId: string): readonly string[] => [
  ...new Set(directory.below([ownerId]).flatMap(one => (one.kind === 'channel' ? [one.merchantId] : []))),
]

/** Those that there are for an entity: one that is kept to its channel has none of other channels. */
export async function registrationsFor(
  parts: Pick<PaymentParts, 'directory' | 'database'>,
  entityId: string,
  ids: readonly string[],
): Promise<Registration[]> {
  const { directory, database } = parts
  const found = await findRegistrations(database.work, ownersFor(parts, entityId), ids)
  const entity = directory.entity(entityId)
  if (entity?.kind !== 'channel' || !entity.settings.ownChannelOnly) return found
  return found.filter(({ channelId }) => channelId === entityId || directory.entity(channelId)?.kind !== 'channel')
}

/** A registration that can be paid with, or what keeps it from that. */
export async function usableRegistration(
  parts: PaymentParts,
  entityId: string,
  id: string,
): Promise<Registration | Extract<ResultName, UnusableResult>> {
  if (!isId(id)) return 'registrationIdFormat'
  const [found] = await registrationsFor(parts, entityId, [id])
  if (!found) return 'registrationDoesNotExist'
  if (found.deletedAt !== null) return 'registrationDeleted'
  return found.usable ? found : 'registrationInvalid'
}
type UnusableResult = 'registrationIdFormat' | 'registrationDoesNotExist' | 'registrationDeleted' | 'registrationInvalid'

/** The request with what the registration has: its card or account, and what the network knows its agreement by. */
export async function withRegistration(
  parts: PaymentParts,
  request: PaymentRequest,
  registration: Registration,
): Promise<PaymentRequest | Extract<ResultName, 'registrationRetentionEnded'>> {
  const { ownerId, id, brand, networkTransactionId } = registration
  const card = await openCard(parts.database.work, parts.keys, ownerId, id)
  const account = detailsOf(registration).get('virtualAccount.accountId')
  if (!card && account === undefined) return 'registrationRetentionEnded'
  const sameMode = modeOf(request.channel.settings, request.values.get('testMode')) === registration.mode
  const brought: (readonly [ParameterName, string])[] = [
    ['paymentBrand', brand],
    ...(card
      ? ([
          ['card.number', card.number],
          ['card.expiryMonth', card.expiryMonth],
          ['card.expiryYear', card.expiryYear],
          ...(card.holder === undefined ? [] : [['card.holder', card.holder] as const]),
        ] as const)
      : [['virtualAccount.accountId', account!] as const]),
    ...(networkTransactionId !== null && agreementMode(request.values) === 'REPEATED' && sameMode
      ? [['standingInstruction.initialTransactionId', networkTransactionId] as const]
      : []),
  ]
  const { settings } = request.channel
  return {
    ...withDefaults(request, brought),
    // The shopper showed the CVV when the card was stored.
    channel: { ...request.channel, settings: { ...settings, requireCvv: settings.requireCvvForRegistrations } },
    registration: { ownerId, id },
  }
}
