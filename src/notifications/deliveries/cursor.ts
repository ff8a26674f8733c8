// Reading an endpoint instead of being called: what is behind a position is acknowledged, what comes next is handed out.

import { type Endpoint, secretsOf } from '../endpoints/endpoint.ts'
import { envelope, type HttpMessage, onTheWire } from '../notification.ts'
import type { NotificationParts } from '../parts.ts'
import { acknowledgeUpTo, readAhead } from './store.ts'

export type CursorNotification = HttpMessage & { readonly position: number; readonly id: string; readonly sequence: number }

/** Acknowledges everything up to `after` and returns what follows, oldest first, as it would be sent to a webhook. */
export async function readCursor(
  parts: NotificationParts,
  endpoint: Endpoint,
  after: number,
  limit: number,
): Promise<CursorNotification[]> {
  const db = parts.database.work
  const { merchantId, id } = endpoint
  if (after > 0) await acknowledgeUpTo(db, merchantId, id, after, parts.directory.businessTime(merchantId))
  const secrets = secretsOf(parts.keys, endpoint).map(secret => Buffer.from(secret, 'hex'))
  const read: CursorNotification[] = []
  for (const delivery of await readAhead(db, merchantId, id, limit, parts.clock.real())) {
    const { type, action, fields, wrapper } = delivery
    const text = envelope({ type, action, payload: delivery.body ?? (await parts.pendingPayload(delivery)) }, fields)
    const wired = onTheWire(text, {
      id: delivery.notificationId,
      sequence: delivery.sequence,
      attempt: 1,
      seconds: Math.floor(parts.clock.real() / 1000),
      wrapper,
      secrets,
      iv: parts.random.bytes(12),
    })
    read.push({ ...wired, position: delivery.position, id: delivery.notificationId, sequence: delivery.sequence })
  }
  return read
}
