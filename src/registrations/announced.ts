// What is told of a registration: as it reads now, at the time of what happened.

import type { PaymentParts } from '../payments/parts.ts'
import { registrationRecord } from './record.ts'
import { findRegistrations } from './store.ts'
import { ownersFor } from './use.ts'

/** JSON. An event names the registration in the place of a payment. */
export async function announcedRegistration(
  parts: PaymentParts,
  { merchantId, paymentId, occurredAt }: { readonly merchantId: string; readonly paymentId: string; readonly occurredAt: number },
): Promise<string> {
  const [found] = await findRegistrations(parts.database.work, ownersFor(parts, merchantId), [paymentId])
  if (!found) throw new Error(`an event names the registration ${paymentId}, which does not exist`)
  return JSON.stringify(registrationRecord(found, parts.build, occurredAt))
}
