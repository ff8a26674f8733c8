// A consumer of the outbox: turns events into deliveries, one for each endpoint that is owed the event.

import { type Consumed, consume, consumers, noRound, type OutboxEvent, type Round } from '../../payments/outbox/outbox.ts'
import { anyWaiting } from '../../payments/outbox/store.ts'
import type { Connection } from '../../platform/database/connect.ts'
import { type Endpoint, newEndpoint } from '../endpoints/endpoint.ts'
import { insertEndpoint, lockEndpoints, setEmitted } from '../endpoints/store.ts'
import type { NotificationParts } from '../parts.ts'
import { givenUpAfter } from '../retrySchedule.ts'
import { notificationId } from './delivery.ts'
import { insertDeliveries, type NewDelivery } from './store.ts'

export const fanOutBatch = 250

/** So much one makes: deliveries, and the marks of their events. Behind it nobody waits for longer because another has many endpoints. */
const madeMost = 1000

/** One batch, behind the merchants of the last one. It takes nothing also when another process is at it and `wait` is not set. */
export const fanOut = (
  parts: NotificationParts,
  how: { readonly wait?: boolean; readonly behind?: Round } = {},
): Promise<Round> =>
  consume(parts.database.work, consumers.notifications, fanOutBatch, (db, events) => deliver(parts, db, events), how)

/** All that waits, for whoever goes on only then: what is left because its endpoint was in use is looked for again, for a few seconds. */
export async function fanOutAll(parts: NotificationParts): Promise<void> {
  for (let pauses = 0, behind = noRound; pauses < 100; ) {
    behind = await fanOut(parts, { wait: true, behind })
    if (behind.taken > 0) continue
    if (!(await anyWaiting(parts.database.work, consumers.notifications))) return
    await parts.clock.sleep(50)
    pauses += 1
  }
}

/** What is made for a merchant. */
type MerchantPart = { readonly events: OutboxEvent[]; readonly endpoints: CountedEndpoint[]; made: number }

/**
 * Next comes an event of whoever has been made least for. Those of a merchant of whom somebody else has an endpoint are left: nobody's events wait for one of them,
 * and theirs stay in order, as none is taken before.
 */
async function deliver(parts: NotificationParts, db: Connection, events: readonly OutboxEvent[]): Promise<Consumed> {
  const ofMerchants = Map.groupBy(events, ({ merchantId }) => merchantId)
  const { locked, inUse } = await lockEndpoints(db, [...ofMerchants.keys()])
  const ofEndpoints = Map.groupBy(locked, ({ merchantId }) => merchantId)
  const shares: MerchantPart[] = [...ofMerchants]
    .filter(([id]) => !inUse.has(id))
    .map(([id, events]) => ({ events, endpoints: (ofEndpoints.get(id) ?? []).map(one => ({ ...one })), made: 0 }))
  const rows: NewDelivery[] = []
  const done: OutboxEvent[] = []
  let next = leastMade(shares)
  for (; next && rows.length + done.length < madeMost; next = leastMade(shares)) {
    const event = next.events.shift()!
    const made = event.superseded ? [] : await deliveriesOf(parts, db, next.endpoints, event)
    next.made += made.length + 1
    rows.push(...made)
    done.push(event)
  }
  if (rows.length > 0) {
    await insertDeliveries(db, rows)
    await setEmitted(
      db,
      shares.flatMap(({ endpoints }) => endpoints).filter(({ grew }) => grew),
    )
  }
  return { done, isFull: next !== undefined }
}

/** Of several the first, as they came: behind them goes on who begins with the last who had anything. */
function leastMade(shares: readonly MerchantPart[]): MerchantPart | undefined {
  let least: MerchantPart | undefined
  for (const one of shares) if (one.events.length > 0 && !(least && least.made <= one.made)) least = one
  return least
}

async function deliveriesOf(
  parts: NotificationParts,
  db: Connection,
  endpoints: CountedEndpoint[],
  event: OutboxEvent,
): Promise<NewDelivery[]> {
  const url = notificationUrlOf(event.record)
  if (url !== undefined && !endpoints.some(endpoint => isForRequests(endpoint, event.channelId))) {
    const { endpoint } = newEndpoint(parts, { merchantId: event.merchantId, kind: 'request', channelId: event.channelId })
    await insertEndpoint(db, endpoint)
    endpoints.push({ ...endpoint })
  }
  return endpoints.filter(endpoint => isOwed(endpoint, event, url)).map(endpoint => deliveryOf(parts, endpoint, event, url))
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
