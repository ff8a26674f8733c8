// A consumer of the outbox: turns events into deliveries, one for each endpoint that is owed the event.

import { consume, consumers, type OutboxEvent } from '../../payments/outbox/outbox.ts'
import { anyWaiting } from '../../payments/outbox/store.ts'
import type { Connection } from '../../platform/database/connect.ts'
import { type Endpoint, newEndpoint } from '../endpoints/endpoint.ts'
import { insertEndpoint, lockEndpoints, setEmitted } from '../endpoints/store.ts'
import type { NotificationParts } from '../parts.ts'
import { givenUpAfter } from '../retrySchedule.ts'
import { notificationId } from './delivery.ts'
import { insertDeliveries, type NewDelivery } from './store.ts'

export const fanOutBatch = 250

/** One batch. Returns how many events it took; 0 also when another process is at it and `wait` is not set. */
export const fanOut = (parts: NotificationParts, wait = false): Promise<number> =>
  consume(parts.database.work, consumers.notifications, fanOutBatch, (db, events) => deliver(parts, db, events), wait)

/** All that waits, for whoever goes on only then: what is left because its endpoint was in use is looked for again, for a few seconds. */
export async function fanOutAll(parts: NotificationParts): Promise<void> {
  for (let pauses = 0; pauses < 100; ) {
    if ((await fanOut(parts, true)) > 0) continue
    if (!(await anyWaiting(parts.database.work, consumers.notifications))) return
    await parts.clock.sleep(50)
    pauses += 1
  }
}

/** Returns the merchants of whom somebody else has an endpoint: nobody's events wait for one of them, and theirs stay in order, as none is taken before. */
async function deliver(parts: NotificationParts, db: Connection, events: readonly OutboxEvent[]): Promise<ReadonlySet<string>> {
  const merchants = [...new Set(events.map(({ merchantId }) => merchantId))]
  const endpoints = new Map(merchants.map(id => [id, [] as CountedEndpoint[]]))
  const { locked, inUse } = await lockEndpoints(db, merchants)
  for (const endpoint of locked) endpoints.get(endpoint.merchantId)!.push({ ...endpoint })
  const rows: NewDelivery[] = []
  for (const event of events) {
    if (event.superseded || inUse.has(event.merchantId)) continue
    const own = endpoints.get(event.merchantId)!
    const url = notificationUrlOf(event.record)
    if (url !== undefined && !own.some(endpoint => isForRequests(endpoint, event.channelId))) {
      const { endpoint } = newEndpoint(parts, { merchantId: event.merchantId, kind: 'request', channelId: event.channelId })
      await insertEndpoint(db, endpoint)
      own.push({ ...endpoint })
    }
    for (const endpoint of own) if (isOwed(endpoint, event, url)) rows.push(deliveryOf(parts, endpoint, event, url))
  }
  if (rows.length > 0) {
    await insertDeliveries(db, rows)
    await setEmitted(
      db,
      [...endpoints.values()].flat().filter(({ grew }) => grew),
    )
  }
  return inUse
}

type CountedEndpoint = Endpoint & { emitted: number; grew?: boolean }

function deliveryOf(
  parts: NotificationParts,
  endpoint: CountedEndpoint,
  event: OutboxEvent,
  url: string | undefined,
): NewDelivery {
  endpoint.emitted += 1
  endpoint.grew = true
  const { merchantId, paymentId, sequence, rootId } = event
  return {
    merchantId,
    endpointId: endpoint.id,
    position: endpoint.emitted,
    notificationId: notificationId(endpoint.id, paymentId, sequence),
    sequence: endpoint.emitted,
    paymentId,
    eventSequence: sequence,
    rootId,
    url: endpoint.kind === 'request' ? url! : null,
    emittedAt: parts.directory.businessTime(merchantId),
    dueAt: firstDueAt(parts, endpoint),
  }
}

/** At once; what is read by a cursor is due only when it is given up. */
export const firstDueAt = ({ clock }: Pick<NotificationParts, 'clock'>, { kind }: Pick<Endpoint, 'kind'>): number =>
  clock.real() + (kind === 'cursor' ? givenUpAfter : 0)

/** An endpoint is owed what was recorded after its activation, of its channel and types; a notificationUrl what its request asked for. */
function isOwed(endpoint: Endpoint, { channelId, type, recordedAt }: OutboxEvent, url: string | undefined): boolean {
  return (
    endpoint.state === 'active' &&
    (endpoint.channelId === null || endpoint.channelId === channelId) &&
    endpoint.types.includes(type) &&
    (endpoint.kind === 'request' ? url !== undefined : recordedAt >= endpoint.activatedAt!)
  )
}

const isForRequests = (endpoint: Endpoint, channelId: string) => endpoint.kind === 'request' && endpoint.channelId === channelId

function notificationUrlOf(record: string | null): string | undefined {
  if (!record?.includes('"notificationUrl"')) return undefined
  const { fields } = JSON.parse(record) as { fields: [string, string][] }
  return fields.find(([name]) => name === 'notificationUrl')?.[1]
}
