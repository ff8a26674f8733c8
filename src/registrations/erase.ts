// A registration is ended: its card is erased at once, what is known of it stays for whoever looks back.

import type { ResultName } from '../contract/results/results.ts'
import type { PaymentParts } from '../payments/parts.ts'
import { inTransaction } from '../platform/database/connect.ts'
import { dropCard } from '../vault/cardStore.ts'
import { endRegistration, type Registration } from './store.ts'
import { merchantsOf } from './use.ts'

export async function deleteRegistration(
  { database, directory, clock }: PaymentParts,
  registration: Registration,
): Promise<Extract<ResultName, 'registrationDeleted' | 'cannotDeregister'> | undefined> {
  if (!registration.usable) return 'cannotDeregister'
  const { ownerId, id } = registration
  return inTransaction(database.work, async db => {
    await dropCard(db, ownerId, id)
    const ended = await endRegistration(
      db,
      registration,
      merchantsOf(directory, ownerId),
      directory.businessTime(ownerId),
      clock.real(),
    )
    return ended ? undefined : 'registrationDeleted'
  })
}
