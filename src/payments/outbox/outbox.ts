// The outbox: what happened to payments, written with the answer that it tells of, and taken by every consumer for itself, once, in order. A new consumer
// is a column of events with two indexes over the rows that have none of its marks, by time and by merchant, and an entry here; it begins with all that ever happened, and begins
// anew when its marks are taken away.

import type pg from 'pg'
import { inTransaction } from '../../platform/database/connect.ts'
import { databaseLocks } from '../../platform/database/locks.ts'
import { markEvents, takeTurn, waitingEvents, waitingMerchants } from './store.ts'

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

/** What a consumer made of the events that it was given. */
export type Consumed = {
  /** It may leave some: they are the first of their merchants in a later round. */
  readonly done: readonly OutboxEvent[]
  /** It left some because all together would be too much. */
  readonly isFull: boolean
}

export type Round = {
  readonly taken: number
  readonly mayBeMore: boolean
  /** The last merchant who had anything of it: the next round begins behind. */
  readonly cameTo: string
}

/** Before all merchants. */
export const noRound: Round = { taken: 0, mayBeMore: false, cameTo: '0'.repeat(32) }

/** A step that is repeated: each round begins behind the one before. One that left some counts as a whole batch, however little it took. */
export function roundAfterRound(take: (behind: Round) => Promise<Round>, batch: number): () => Promise<number> {
  let round = noRound
  return async () => {
    round = await take(round)
    return round.taken > 0 && round.mayBeMore ? batch : round.taken
  }
}

/** Merchants of whom a round takes events. */
const merchantsMost = 100
/** So many times what it takes a round reads. */
const readTimes = 4

/**
 * Hands the next events to a consumer, in the transaction that marks them: what it writes there is written once. Events are found by their missing mark,
 * not by a position: it does not matter in which order their transactions commit. Of each merchant they come in the order in which they were recorded, and of
 * the merchants behind the last round's all have one before any has two: however many of one wait, they keep nobody else's waiting. None is taken also when
 * another process is at it and `wait` is not set.
 */
export async function consume(
  pool: pg.Pool,
  consumer: Consumer,
  limit: number,
  take: (db: pg.PoolClient, events: readonly OutboxEvent[]) => Promise<Consumed> | Promise<void>,
  { wait = false, behind = noRound }: { readonly wait?: boolean; readonly behind?: Round } = {},
): Promise<Round> {
  const none = { ...noRound, cameTo: behind.cameTo }
  const merchants = await waitingMerchants(pool, consumer, behind.cameTo, merchantsMost)
  if (merchants.length === 0) return none
  return inTransaction(pool, async db => {
    if (!(await takeTurn(db, consumer, wait))) return none
    const ofOne = Math.ceil((readTimes * limit) / merchants.length)
    const events = supersede(await waitingEvents(db, consumer, merchants, ofOne, limit))
    const { done, isFull } = (await take(db, events)) ?? { done: events, isFull: false }
    await markEvents(db, consumer, done)
    const served = new Set(done.map(({ merchantId }) => merchantId))
    const counts = [...Map.groupBy(events, ({ merchantId }) => merchantId).values()].map(({ length }) => length)
    return {
      taken: done.length,
      mayBeMore: isFull || events.length === limit || merchants.length === merchantsMost || counts.includes(ofOne),
      cameTo: merchants.findLast(id => served.has(id)) ?? merchants.at(-1)!,
    }
  })
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
