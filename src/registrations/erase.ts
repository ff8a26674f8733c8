// A registration is ended: its card is erased at once, what is known of it stays for whoever looks back.

import { type Recorder, record } from '../audit/chain.ts'
import type { ResultName } from '../contract/results/results.ts'
import type { PaymentParts } from '../payments/parts.ts'
import { inTransaction } from '../platform/database/connect.ts'
import { dropCard } from '../vault/cardStore.ts'
import { endRegistration, type Registration } from './store.ts'
import { merchantsOf } from './use.ts'

/** `by`, in the parts: who may store registrations for its owner. One that is used by many is no one's of them to end. */
export async function deleteRegistration(
  { database, directory, ...recorder }: Pick<PaymentParts, 'database' | 'directory'> & Recorder,
  registration: Registration,
): Promise<Extract<ResultName, 'registrationDeleted' | 'cannotDeregister'> | undefined> {
  if (!registration.usable) return 'cannotDeregister'
  const { ownerId, id, channelId } = registration
  return inTransaction(database.work, async db => {
    await dropCard(db, ownerId, id)
    const ended = await endRegistration(
      db,
      registration,
      merchantsOf(directory, ownerId),
      directory.businessTime(ownerId),
      recorder.clock.real(),
    )
    if (!ended) return 'registrationDeleted'
    await record(db, recorder, [{ action: 'registrationDeleted', entityId: channelId, subject: id }])
    return undefined
  })
}
