// Tells an endpoint again what happened: one notification, a range, or what a filter finds. A replay is a delivery like any other,
// with the id and the sequence of the first one, so that a receiver can tell it from something new.

import { type Recorder, record } from '../../audit/chain.ts'
import { type Connection, inTransaction } from '../../platform/database/connect.ts'
import { notificationId } from '../deliveries/delivery.ts'
import { firstDueAt } from '../deliveries/fanOut.ts'
import { insertDeliveries, type NewDelivery } from '../deliveries/store.ts'
import type { Endpoint, EndpointRefusal } from '../endpoints/endpoint.ts'
import { findEndpoint, lockEndpoint, setEmitted } from '../endpoints/store.ts'
import type { NotificationParts } from '../parts.ts'
import { findEvents, findTold, type ReplayFilter, type ReplayPlace, type ReplayTarget } from './store.ts'

/** So many are read at once, and written at once: the endpoint is held for no longer than these take. */
export const replayStep = 1000

type ReplayParts = Pick<NotificationParts, 'database' | 'clock' | 'directory'> & Recorder

/**
 * Replays whatever is found, in steps, oldest first: what the endpoint was never told, then what it was. Events from before its activation are found by `since`,
 * `until` and their payment too. Who is killed in between has sent again the older ones.
 */
export async function replay(
  parts: ReplayParts,
  merchantId: string,
  endpointId: string,
  filter: ReplayFilter,
): Promise<{ replayed: number } | EndpointRefusal> {
  const endpoint = await findEndpoint(parts.database.work, merchantId, endpointId)
  if (endpoint?.state !== 'active') return noneActive
  let gathered: ReplayTarget[] = []
  let replayed = 0
  const write = async (): Promise<EndpointRefusal | undefined> => {
    const step = gathered
    gathered = []
    if (step.length === 0 || (await tellAgain(parts, endpoint, step))) {
      replayed += step.length
      return undefined
    }
    return replayed === 0 ? noneActive : { refused: 'The endpoint was closed meanwhile.' }
  }
  for await (const found of stepsOf(parts.database.work, endpoint, filter)) {
    gathered.push(...found)
    const refusal = gathered.length < replayStep ? undefined : await write()
    if (refusal) return refusal
  }
  return (await write()) ?? { replayed }
}

const noneActive: EndpointRefusal = { refused: 'There is no active endpoint with this id.' }

/** What is to be sent again, read without any lock. */
async function* stepsOf(db: Connection, endpoint: Endpoint, filter: ReplayFilter): AsyncGenerator<readonly ReplayTarget[]> {
  const { paymentId, notificationId, state, from, to } = filter
  if (paymentId !== undefined) {
    yield (await findEvents(db, endpoint, filter, { paymentId, sequence: -1 }, replayStep)).found
    return
  }
  const isToldOnly = endpoint.kind === 'request' || [notificationId, state, from, to].some(one => one !== undefined)
  let place: ReplayPlace | undefined = isToldOnly ? undefined : beforeAll
  while (place) {
    const { found, cameTo } = await findEvents(db, endpoint, filter, place, replayStep)
    yield found
    place = cameTo
  }
  // What we make meanwhile stands behind this one.
  const upTo = Math.min(to ?? endpoint.emitted, endpoint.emitted)
  let position: number | undefined = Math.max(0, (from ?? 1) - 1)
  while (position !== undefined) {
    const { found, cameTo } = await findTold(db, endpoint, filter, position, upTo, replayStep)
    yield found
    if (notificationId !== undefined && found.length > 0) return // there is one with this id
    position = cameTo
  }
}

const beforeAll: ReplayPlace = { paymentId: '0'.repeat(32), sequence: -1 }

/** False when the endpoint is active no more. */
const tellAgain = (
  parts: ReplayParts,
  { merchantId, id }: Pick<Endpoint, 'merchantId' | 'id'>,
  targets: readonly ReplayTarget[],
): Promise<boolean> =>
  inTransaction(parts.database.work, async db => {
    const endpoint = await lockEndpoint(db, merchantId, id)
    if (endpoint?.state !== 'active') return false
    const rows = targets.map(
      (one, at): NewDelivery => ({
        merchantId,
        endpointId: id,
        position: endpoint.emitted + at + 1,
        notificationId: notificationId(id, one.paymentId, one.eventSequence),
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
    await insertDeliveries(db, rows)
    await setEmitted(db, [{ merchantId, id, emitted: endpoint.emitted + rows.length }])
    await record(db, parts, [
      {
        action: 'notificationsReplayed',
        entityId: endpoint.channelId ?? merchantId,
        subject: id,
        details: { notifications: rows.length },
      },
    ])
    return true
  })
