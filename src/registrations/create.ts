// A registration on its own: payment details are stored, and nothing is asked of anybody.

import { modeOf } from '../connectors/registry.ts'
import { currentName } from '../contract/brands.ts'
import type { Card } from '../contract/card.ts'
import { isBodyOf, storeOnce } from '../payments/idempotency.ts'
import { brandOf, cardOf, isMode, keep, type Refusal } from '../payments/initial/choose.ts'
import { keptFields, type PaymentRequest } from '../payments/initial/pay.ts'
import { isOfShopper, type RegistrationOrigin, registrationOf } from '../payments/initial/register.ts'
import { keyHours } from '../payments/kept.ts'
import type { PaymentParts } from '../payments/parts.ts'
import { claimsOf, idOf, type RequestKey } from '../payments/store/keys.ts'
import { insertRegistration, type NewRegistration } from '../payments/store/registrations.ts'
import { findRegistrations, type Registration } from './store.ts'
import { merchantsOf } from './use.ts'

/** What a request wants to store, before it is stored; `ownerId`: a merchant, or a division. */
export function chooseRegistration(
  parts: PaymentParts,
  { channel, values, known, ndc, tokenId }: PaymentRequest,
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
    id,
    channelId: channel.id,
    mode,
    ...(tokenId !== undefined && { tokenId }),
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

/** Stores it, or finds what its twin has stored, which may be deleted by now. */
export async function storeRegistration(
  parts: PaymentParts,
  row: NewRegistration,
  key: RequestKey | undefined,
): Promise<Registration | Refusal> {
  const db = parts.database.work
  const earlier = key && (await madeBefore(parts, row, key))
  if (earlier) return earlier
  const told = merchantsOf(parts.directory, row.ownerId)
  const id = await storeOnce(parts, row.ownerId, row.id, key, connection =>
    insertRegistration(connection, row, parts.clock.real(), told),
  )
  if (typeof id !== 'string') return id
  const [stored] = await findRegistrations(db, [row.ownerId], [id])
  return stored!
}

/** What a gateway of an older release made with the key: it claimed none, and the id follows from the key. It is kept for as long as keys are. */
async function madeBefore(
  { database }: PaymentParts,
  { ownerId, madeAt }: NewRegistration,
  key: RequestKey,
): Promise<Registration | undefined> {
  const ids = claimsOf(key).map(idOf)
  const found = await findRegistrations(database.work, [ownerId], ids)
  return found.find(one => one.keyFingerprint && isBodyOf(key, one.keyFingerprint) && madeAt - one.madeAt < keyHours * 3_600_000)
}
