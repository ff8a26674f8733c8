// The outbox: what happened to payments, written with the answer that it tells of, and taken by every consumer for itself, once, in order. A new consumer
// is a column of events with an index over the rows that have none of its marks, and an entry here; it begins with all that ever happened, and begins
// anew when its marks are taken away.

import type pg from 'pg'
import { inTransaction } from '../../platform/database/connect.ts'
import { databaseLocks } from '../../platform/database/locks.ts'
import { anyWaiting, markEvents, takeTurn, waitingEvents } from './store.ts'

export type Consumer = {
  /** Its column of events. */
  readonly mark: string
  /** Of the lock under which its processes take turns, so that each event is taken in the order in which it was recorded. */
  readonly lock: number
  /** It needs the requests of the payments, not only their names. */
  readonly readsRecords?: true
}

export const consumers = {
  notifications: { mark: 'notified', lock: databaseLocks.notifications, readsRecords: true },
  search: { mark: 'searched', lock: databaseLocks.search },
} as const satisfies Readonly<Record<string, Consumer>>

/** Something that happened: the first state of a payment is told with sequence 1 where it is pending, the final one with 2. */
export type OutboxEvent = {
  readonly merchantId: string
  readonly paymentId: string
  readonly sequence: number
  readonly type: string
  readonly channelId: string
  readonly rootId: string
  readonly recordedAt: number
  /** This consumer was told a later state of the payment, or is now. */
  readonly superseded: boolean
  /** JSON of the payment's request, for a consumer that reads them. */
  readonly record: string | null
}

/**
 * Hands the next events to a consumer, in the transaction that marks them: what it writes there is written once. Events are found by their missing mark,
 * not by a position: it does not matter in which order their transactions commit. Returns how many were taken; 0 also when another process is at it and
 * `wait` is not set. `take` may leave the events of some merchants as they are, and names these: theirs are the first of a later round, and hide nobody else's.
 */
export async function consume(
  pool: pg.Pool,
  consumer: Consumer,
  limit: number,
  take: (db: pg.PoolClient, events: readonly OutboxEvent[]) => Promise<ReadonlySet<string>> | Promise<void>,
  wait = false,
): Promise<number> {
  if (!(await anyWaiting(pool, consumer))) return 0
  return inTransaction(pool, async db => {
    if (!(await takeTurn(db, consumer, wait))) return 0
    const left = new Set<string>()
    for (let taken = 0; ; ) {
      const events = supersede(await nextEvents(db, consumer, limit - taken, [...left]))
      if (events.length === 0) return taken
      for (const merchantId of (await take(db, events)) ?? []) left.add(merchantId)
      const done = events.filter(({ merchantId }) => !left.has(merchantId))
      await markEvents(db, consumer, done)
      taken += done.length
      if (done.length === events.length) return taken
    }
  })
}

/** So far behind those of one merchant the events of others are looked for. */
const reach = 10_000

/** In the order in which they were recorded; but where one merchant's are more than half of them, half, and beside them those of others that wait behind. */
async function nextEvents(db: pg.PoolClient, consumer: Consumer, limit: number, left: readonly string[]): Promise<OutboxEvent[]> {
  const events = await waitingEvents(db, consumer, limit, left)
  const share = Math.ceil(limit / 2)
  const counts = Map.groupBy(events, ({ merchantId }) => merchantId)
  const [merchantId, own] = [...counts].find(([, { length }]) => length > share) ?? []
  if (events.length < limit || merchantId === undefined) return events
  const others = await waitingEvents(db, consumer, limit - share, [...left, merchantId], reach)
  return others.length === 0 ? events : [...own!.slice(0, share), ...others]
}

/** A pending state that is found only after the final one would contradict it. */
function supersede(events: readonly OutboxEvent[]): OutboxEvent[] {
  const newest = new Map<string, number>()
  return events.map(event => {
    const key = event.merchantId + event.paymentId
    const superseded = event.superseded || (newest.get(key) ?? 0) > event.sequence
    newest.set(key, Math.max(newest.get(key) ?? 0, event.sequence))
    return { ...event, superseded }
  })
}
