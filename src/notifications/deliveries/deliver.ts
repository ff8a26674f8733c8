// Tells endpoints what they are owed. Any number of processes may do it: each takes deliveries with a lease, of each endpoint only as many
// as it has room for, and an endpoint that does not answer gets less room. So a dead or slow one delays nobody else, nor does a merchant with many.

import { withStatusPath } from '../../contract/statusPath.ts'
import { roundAfterRound } from '../../payments/outbox/outbox.ts'
import { addTo } from '../../platform/counts.ts'
import { type Repetition, repeat } from '../../platform/due/repeat.ts'
import { type Call, type CallResult, isAcknowledged } from '../../platform/egress/call.ts'
import { closeEndpoint, giveUpOwed, secretsOf } from '../endpoints/endpoint.ts'
import { listClosedOwed } from '../endpoints/store.ts'
import { envelope, onTheWire } from '../notification.ts'
import type { NotificationParts } from '../parts.ts'
import { givenUpAfter, nextAttempt } from '../retrySchedule.ts'
import type { LeasedDelivery } from './delivery.ts'
import { fanOut, fanOutBatch } from './fanOut.ts'
import {
  type AttemptLane,
  type ChainKey,
  firstChain,
  releaseAll,
  releaseDelivery,
  takeDeliveries,
  wakeStranded,
} from './store.ts'

// Where a dead endpoint has a longer backlog than it has room for, some wait in vain: they end here, a day after their last attempt could be.
const outdatedAfter = givenUpAfter + 86_400_000

export type Deliver = (delivery: LeasedDelivery) => Promise<CallResult | undefined>

/** Makes one attempt and stores how it ended. */
export function deliverer(parts: NotificationParts, attempts: AttemptLane): Deliver {
  return async delivery => {
    const { merchantId, endpointId, position } = delivery
    const outdated = parts.directory.businessTime(merchantId) - delivery.emittedAt > outdatedAfter
    const called = delivery.kind === 'cursor' || outdated ? undefined : await attempt(parts, delivery)
    if (called?.brokenOff) {
      await releaseDelivery(parts.database.work, delivery)
      return called
    }
    const now = parts.directory.businessTime(merchantId)
    const acknowledged = called !== undefined && isAcknowledged(called)
    const gone = called?.status === 410
    const inVain = gone || (called?.forbidden === true && delivery.kind === 'request')
    const asked = called?.status === 429 || called?.status === 503 ? called.retryAfter : undefined
    const wait = called === undefined || inVain ? undefined : nextAttempt(delivery.attempts, now - delivery.emittedAt, asked)
    await attempts({
      merchantId,
      endpointId,
      position,
      attempt: delivery.attempts,
      attemptedAt: now,
      milliseconds: called?.milliseconds ?? 0,
      status: called?.status ?? null,
      failure: called === undefined ? 'not taken in 30 days' : (called.failure ?? null),
      answer: called?.answer ?? '',
      acknowledged,
      state: acknowledged ? 'acknowledged' : wait === undefined ? 'given up' : 'scheduled',
      dueAt: acknowledged || wait === undefined ? null : parts.clock.real() + wait,
    })
    parts.count.attempt(acknowledged ? 'acknowledged' : wait === undefined ? 'given up' : 'failed')
    if (gone && delivery.kind === 'webhook') {
      parts.log.warn({ entityId: merchantId, status: 410 }, 'a webhook answered 410 and is disabled')
      await closeEndpoint(parts, merchantId, endpointId, 'disabled', now)
    }
    return called
  }
}

/** What cannot even be put together is a failed attempt too: it is seen in the log, and it holds nobody up for longer than the others. */
async function attempt(parts: NotificationParts, delivery: LeasedDelivery): Promise<CallResult> {
  let call: Call
  try {
    call = await callOf(parts, delivery)
  } catch (error) {
    parts.log.error(
      { kind: 'delivery', paymentId: delivery.paymentId, why: (error as Error).message },
      'a notification cannot be made',
    )
    return { failure: 'the notification cannot be made', answer: '', milliseconds: 0 }
  }
  return parts.call(call)
}

async function callOf(parts: NotificationParts, delivery: LeasedDelivery): Promise<Call> {
  const { merchantId: owner, kind, type, action, fields, wrapper, channelId, paymentId } = delivery
  const url = (kind === 'request' ? delivery.url : delivery.endpointUrl)!
  const channel = parts.directory.entity(channelId!)
  if (kind === 'request' && channel?.kind === 'channel' && channel.settings.notificationUrlForm === 'get')
    return { owner, method: 'GET', url: withStatusPath(url, paymentId, `/v1/payments/${paymentId}`), headers: {} }
  const payload = delivery.body ?? (await parts.pendingPayload(delivery))
  const wired = onTheWire(envelope({ type, action, payload }, fields), {
    id: delivery.notificationId,
    sequence: delivery.sequence,
    attempt: delivery.attempts,
    seconds: Math.floor(parts.clock.real() / 1000),
    wrapper,
    secrets: secretsOf(parts.keys, { ...delivery, id: delivery.endpointId }).map(secret => Buffer.from(secret, 'hex')),
    iv: parts.random.bytes(12),
  })
  return { owner, method: 'POST', url, ...wired }
}

/** Under way at once: of one endpoint, of one merchant, which may have a hundred endpoints, and of all. Where so many are under way that others may soon wait, a merchant has few. */
const roomMost = 16
const roomOfMerchant = 48
const roomTogether = 2048
const crowded = { from: 1024, roomOfMerchant: 12 }
/** An answer that takes longer leaves little room for more of them, one that does not come still less. */
const slowMilliseconds = 5000
const roomOfSlow = 4
/** Endpoints of one merchant that do not answer are tried so many at once, and each rests after it: what they do instead of answering may cost more than an answer. */
const roomOfSilent = 8
const restMilliseconds = 1000

// Events gather so long between two fan-outs: under load one transaction then serves many payments instead of a few.
const gatherMilliseconds = 100

// So many chains are looked at, so often, for what was set aside and never woken, and so many closed endpoints for what they are still owed.
const chainsLooked = 1000
const closedLooked = 100
const lookMilliseconds = 10_000

/** What is under way to an endpoint. */
type EndpointLane = { readonly merchantId: string; running: number; most: number; restsUntil: number }

/** How many more each endpoint may have. Of those of a merchant that do not answer the next in the line may be tried, and stand at its end then, owed anything or not. */
function roomsOf(lanes: Map<string, EndpointLane>, now: number): [endpointId: string, room: number][] {
  const tried = new Map<string, number>()
  for (const { merchantId, running, most } of lanes.values()) if (most === 1 && running > 0) addTo(tried, merchantId, 1)
  return [...lanes].map(([id, lane]) => {
    const { merchantId, running, most, restsUntil } = lane
    if (most > 1 || running > 0) return [id, Math.max(0, most - running)]
    if (now < restsUntil || (tried.get(merchantId) ?? 0) >= roomOfSilent) return [id, 0]
    addTo(tried, merchantId, 1)
    lanes.delete(id)
    lanes.set(id, lane)
    return [id, 1]
  })
}

/** Fans out and delivers until it is stopped, while it may. `alone`: leases found at the start belong to nobody. */
export function startDelivering(
  parts: NotificationParts,
  deliver: Deliver,
  alone: boolean,
  mayTake: () => boolean,
): { stop(): Promise<void> } {
  const db = parts.database.work
  const lanes = new Map<string, EndpointLane>()
  const ofMerchants = new Map<string, number>()
  const running = new Set<Promise<void>>()
  let stopped = false
  let delivering: Repetition | undefined
  let fanning: Repetition | undefined
  let tending: Repetition | undefined

  async function send(delivery: LeasedDelivery): Promise<void> {
    const { merchantId } = delivery
    const lane = lanes.get(delivery.endpointId) ?? { merchantId, running: 0, most: roomMost, restsUntil: 0 }
    lanes.set(delivery.endpointId, lane)
    lane.running += 1
    // The one call that tries a silent endpoint takes no place of the others of its merchant.
    const by = lane.most > 1 ? 1 : 0
    addTo(ofMerchants, merchantId, by)
    try {
      const called = await deliver(delivery)
      // No answer at all halves the room, down to one call at a time, a slow one down to a few; answers open it again.
      const least = called?.status === undefined ? 1 : called.milliseconds > slowMilliseconds ? roomOfSlow : undefined
      lane.most = least === undefined ? Math.min(roomMost, lane.most + 1) : Math.max(least, lane.most >> 1)
      if (least === 1) lane.restsUntil = parts.clock.elapsed() + restMilliseconds
    } catch (error) {
      if (!stopped)
        parts.log.error({ kind: 'delivery', paymentId: delivery.paymentId, why: (error as Error).message }, 'a delivery failed')
    } finally {
      lane.running -= 1
      addTo(ofMerchants, merchantId, -by)
      delivering?.hurry() // there is room again
      if (lane.running === 0 && lane.most === roomMost) lanes.delete(delivery.endpointId)
    }
  }

  async function deliverDue(): Promise<number> {
    if (!mayTake()) return 0
    if (running.size >= roomTogether) return 0
    const ofMerchant = running.size < crowded.from ? roomOfMerchant : crowded.roomOfMerchant
    const { taken, setAside } = await takeDeliveries(db, parts.clock.real(), {
      ofEndpoints: Object.fromEntries(roomsOf(lanes, parts.clock.elapsed())),
      ofEndpoint: roomMost,
      ofMerchants: Object.fromEntries([...ofMerchants].map(([id, running]) => [id, ofMerchant - running])),
      ofMerchant,
      together: roomTogether - running.size,
    })
    for (const delivery of taken) {
      if (stopped) await releaseDelivery(db, delivery)
      else {
        const sent = send(delivery).finally(() => running.delete(sent))
        running.add(sent)
      }
    }
    return taken.length + setAside
  }

  let lookAt = 0
  let looked: ChainKey | undefined
  async function tend(): Promise<number> {
    if (parts.clock.elapsed() < lookAt || !mayTake()) return 0
    lookAt = parts.clock.elapsed() + lookMilliseconds
    const { last, woken } = await wakeStranded(db, looked ?? firstChain, parts.clock.real(), chainsLooked)
    looked = last
    if (woken > 0) {
      parts.log.warn({ why: `${woken} were woken by nobody` }, 'notifications that waited for nothing are sent')
      delivering?.hurry()
    }
    const mayGoOn = () => !stopped && parts.clock.elapsed() < lookAt
    for (const { merchantId, id } of await listClosedOwed(db, closedLooked))
      await giveUpOwed(parts, merchantId, id, parts.directory.businessTime(merchantId), mayGoOn)
    return 0
  }

  const fanOutRound = roundAfterRound(behind => fanOut(parts, { behind }), fanOutBatch)
  async function fanOutNext(): Promise<number> {
    if (!mayTake()) return 0
    const taken = await fanOutRound()
    if (taken > 0) delivering?.hurry()
    return taken
  }

  const failed = (error: Error) => parts.log.warn({ why: error.message }, 'notifications wait')
  const started = (alone ? releaseAll(db).catch(failed) : Promise.resolve()).then(() => {
    delivering = repeat(parts.clock, deliverDue, failed)
    tending = repeat(parts.clock, tend, failed)
    fanning = repeat(parts.clock, fanOutNext, failed, { batch: fanOutBatch, milliseconds: gatherMilliseconds })
  })
  return {
    /** What is under way is broken off (the calls by `gateway.call`): it is sent again, by whoever is alive then. */
    async stop() {
      stopped = true
      await started
      await Promise.all([delivering?.stop(), fanning?.stop(), tending?.stop()])
      await Promise.all(running)
    },
  }
}
