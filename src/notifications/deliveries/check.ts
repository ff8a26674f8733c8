// The law of conservation: of every endpoint, emitted = acknowledged + scheduled + given up. Emitted is counted where deliveries are made,
// the rest where they end; beside the sums stand the proofs: an answer for everything acknowledged, a delivery for every event owed.

import { consumers } from '../../payments/outbox/outbox.ts'
import { countWaiting } from '../../payments/outbox/store.ts'
import type { Connection } from '../../platform/database/connect.ts'
import { countDeliveries, type EndpointCounts } from './store.ts'

export type Balance = EndpointCounts & { readonly unaccounted: number; readonly balanced: boolean }

export type NotificationCheck = {
  readonly endpoints: readonly Balance[]
  /** Events that were not yet turned into deliveries. */
  readonly waiting: number
  readonly balanced: boolean
}

export async function checkNotifications(db: Connection, merchantId: string | null = null): Promise<NotificationCheck> {
  const endpoints = (await countDeliveries(db, merchantId)).map(counts => {
    const unaccounted = counts.emitted - counts.acknowledged - counts.scheduled - counts.givenUp
    return {
      ...counts,
      unaccounted,
      balanced: unaccounted === 0 && counts.withoutProof === 0 && counts.lost === 0 && counts.stranded === 0,
    }
  })
  return {
    endpoints,
    waiting: await countWaiting(db, consumers.notifications, merchantId),
    balanced: endpoints.every(({ balanced }) => balanced),
  }
}
