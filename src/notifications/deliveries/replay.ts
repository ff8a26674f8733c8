// Tells an endpoint again what happened: one notification, a range, or what a filter finds. A replay is a delivery like any other,
// with the id and the sequence of the first one, so that a receiver can tell it from something new.

import { type Recorder, record } from '../../audit/chain.ts'
import { inTransaction } from '../../platform/database/connect.ts'
import type { EndpointRefusal } from '../endpoints/endpoint.ts'
import { lockEndpoint, setEmitted } from '../endpoints/store.ts'
import type { NotificationParts } from '../parts.ts'
import { notificationId } from './delivery.ts'
import { firstDueAt } from './fanOut.ts'
import { findToReplay, insertDeliveries, type NewDelivery, type ReplayFilter } from './store.ts'

export const replayMost = 10_000

/** Replays at most `replayMost`, oldest first. Events from before the activation of the endpoint are found by `since` and `until` too. */
export async function replay(
  parts: Pick<NotificationParts, 'database' | 'clock' | 'directory'> & Recorder,
  merchantId: string,
  endpointId: string,
  filter: ReplayFilter,
): Promise<{ replayed: number } | EndpointRefusal> {
  return inTransaction(parts.database.work, async db => {
    const endpoint = await lockEndpoint(db, merchantId, endpointId)
    if (endpoint?.state !== 'active') return { refused: 'There is no active endpoint with this id.' }
    const found = await findToReplay(db, endpoint, filter, replayMost)
    const rows = found.map(
      (one, at): NewDelivery => ({
        merchantId,
        endpointId,
        position: endpoint.emitted + at + 1,
        notificationId: notificationId(endpointId, one.paymentId, one.eventSequence),
        sequence: one.sequence ?? endpoint.emitted + at + 1,
        paymentId: one.paymentId,
        eventSequence: one.eventSequence,
        rootId: one.rootId,
        url: one.url,
        replay: true,
        emittedAt: parts.directory.businessTime(merchantId),
        dueAt: firstDueAt(parts, endpoint),
      }),
    )
    if (rows.length > 0) {
      await insertDeliveries(db, rows)
      await setEmitted(db, [{ merchantId, id: endpointId, emitted: endpoint.emitted + rows.length }])
      const entityId = endpoint.channelId ?? merchantId
      await record(db, parts, [
        { action: 'notificationsReplayed', entityId, subject: endpointId, details: { notifications: rows.length } },
      ])
    }
    return { replayed: rows.length }
  })
}
