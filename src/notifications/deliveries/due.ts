// Deliveries as the movable clock sees them: when a merchant's time is moved, attempts happen in order with everything else that falls due.

import type { DueSource } from '../../platform/due/source.ts'
import type { NotificationParts } from '../parts.ts'
import type { Deliver } from './deliver.ts'
import { fanOutAll } from './fanOut.ts'
import { firstDelivery, moveDeliveries, takeDelivery } from './store.ts'

export const dueDeliveries = (parts: NotificationParts, deliver: Deliver): DueSource => ({
  async prepare() {
    await fanOutAll(parts)
  },
  async first(db, merchantId, until, now) {
    const found = await firstDelivery(db, merchantId, until, now)
    return (
      found && {
        ...found,
        async take(db) {
          const taken = await takeDelivery(db, found, now)
          return async () => void (await deliver(taken))
        },
      }
    )
  },
  move: moveDeliveries,
})
