// A registration on its own: payment details are stored, and nothing is asked of anybody.

import { timingSafeEqual } from 'node:crypto'
import { modeOf } from '../connectors/registry.ts'
import { currentName } from '../contract/brands.ts'
import type { Card } from '../contract/card.ts'
import { keyReused } from '../payments/idempotency.ts'
import { brandOf, cardOf, isMode, keep, type Refusal } from '../payments/initial/choose.ts'
import { keptFields, type PaymentRequest } from '../payments/initial/pay.ts'
import { isOfShopper, type RegistrationOrigin, registrationOf } from '../payments/initial/register.ts'
import type { PaymentParts } from '../payments/parts.ts'
import { insertRegistration, type NewRegistration } from '../payments/store/registrations.ts'
import { inTransaction } from '../platform/database/connect.ts'
import { findRegistrations, type Registration } from './store.ts'
import { merchantsOf } from './use.ts'

/** What a request wants to store, before it is stored; `ownerId`: a merchant, or a division. */
export function chooseRegistration(
  parts: PaymentParts,
  { channel, values, known, ndc, key, tokenId }: PaymentRequest,
  ownerId: string,
  id: string,
): NewRegistration | Refusal {
  const { settings, merchantId } = channel
  if (settings.disabled) return keep('channelDisabled')
  const mode = modeOf(settings, values.get('testMode'))
  if (!isMode(mode)) return keep(mode)
  const now = parts.directory.businessTime(merchantId)
  const origin: Omit<RegistrationOrigin, 'brand'> = {
    ownerId,
    id: key ? key.hash.toString('hex', 0, 16) : id,
    channelId: channel.id,
    mode,
    ...(tokenId !== undefined && { tokenId }),
    ...(key && { keyFingerprint: key.fingerprint }),
    madeAt: now,
    record: { ndc, fields: keptFields(values, known).filter(([name]) => isOfShopper(name)) },
  }
  const method = parts.methods.get(currentName(values.get('paymentBrand') ?? ''))
  if (method) {
    if (settings.brands.length > 0 && !settings.brands.includes(method.brand)) return keep('brandNotOnChannel', 'paymentBrand')
    return method.code === 'VA' && values.has('virtualAccount.accountId')
      ? registrationOf(parts, { ...origin, brand: method.brand }, undefined)
      : keep('registrationNotHere', 'virtualAccount.accountId', `is what can be stored of ${method.brand}`)
  }
  const brand = brandOf(values, channel, parts.cardBrands)
  if ('refused' in brand) return brand
  // Nothing is authorized, so that no CVV is needed.
  const card: Card | Refusal = cardOf(new Map([...values, ['paymentType', 'CD']]), brand, channel, parts.cardBrands, now)
  return 'refused' in card ? card : registrationOf(parts, { ...origin, brand: brand.name }, card)
}

/** Stores it, or finds that its twin has been stored. */
export async function storeRegistration(parts: PaymentParts, row: NewRegistration): Promise<Registration | Refusal> {
  const db = parts.database.work
  const told = merchantsOf(parts.directory, row.ownerId)
  await inTransaction(db, connection => insertRegistration(connection, row, parts.clock.real(), told))
  const [stored] = await findRegistrations(db, [row.ownerId], [row.id])
  const same =
    row.keyFingerprint === undefined ||
    (stored!.keyFingerprint !== null && timingSafeEqual(stored!.keyFingerprint, row.keyFingerprint))
  return same ? stored! : keyReused
}
