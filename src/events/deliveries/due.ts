// Deliveries as the movable clock sees them: when a merchant's time is moved, attempts happen in order with everything else that falls due.

import type { DueSource } from '../../due/advance.ts'
import type { Gateway } from '../../gateway.ts'
import { type Deliver, leaseMilliseconds } from './deliver.ts'
import { fanOut } from './fanOut.ts'
import { firstDelivery, moveDeliveries, takeDelivery } from './store.ts'

export const dueDeliveries = (gateway: Gateway, deliver: Deliver): DueSource => ({
  async prepare() {
    while ((await fanOut(gateway, true)) > 0);
  },
  async first(db, merchantId, until, now) {
    const found = await firstDelivery(db, merchantId, until, now)
    return (
      found && {
        ...found,
        async take(db) {
          const taken = await takeDelivery(db, found, now + leaseMilliseconds)
          return async () => void (await deliver(taken))
        },
      }
    )
  },
  move: moveDeliveries,
})
