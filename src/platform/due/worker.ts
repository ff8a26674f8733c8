// The worker loop: takes due work and runs its handler; what takes long keeps one place of a few, and delays no other. Whoever is killed in the middle leaves a lease that runs out in a minute.

import type { Clock, Timer } from '../clock.ts'
import type { Database } from '../database/connect.ts'
import type { Log } from '../log.ts'
import { backOffMost, type DueItem, finishDue, leaseSeconds, postponeDue, renewDue, takeDue } from './store.ts'

/** `done`, or the real time in milliseconds at which to try again, with what the next attempt shall know. `well`: nothing failed, there is only more to do. */
export type DueHandler<Parts> = (
  parts: Parts,
  item: DueItem,
) => Promise<'done' | { readonly again: number; readonly details?: object; readonly well?: boolean }>
export type DueHandlers<Parts> = ReadonlyMap<string, DueHandler<Parts>>

export type WorkerParts = { readonly database: Pick<Database, 'work'>; readonly clock: Clock; readonly log: Log }

export type Worker = { stop(): Promise<void> }

const pauseMilliseconds = 250

/** Of which kinds a worker takes work, and how much of it at once: of all, and of one merchant, whose servers may say nothing for as long as they are asked. */
export type Places = { readonly kinds: readonly string[]; readonly most: number; readonly mostOfOne: number }

/** `mayTake`: asked before each look for work. */
export function startWorker<Parts extends WorkerParts>(
  parts: Parts,
  handlers: DueHandlers<Parts>,
  { kinds, most, mostOfOne }: Places,
  mayTake: () => boolean,
): Worker {
  let stopped = false
  let timer: Timer | undefined
  let looking: Promise<void> = Promise.resolve()
  let mayBeMore = false
  const running = new Set<Promise<void>>()
  const ofMerchant = new Map<string, number>()
  const look = async (): Promise<void> => {
    const busy = [...ofMerchant].flatMap(([merchantId, count]) => (count < mostOfOne ? [] : [merchantId]))
    // Whoever has the most under way, and not enough, may have all that is found now.
    const room = Math.min(
      most - running.size,
      mostOfOne - Math.max(0, ...[...ofMerchant.values()].filter(count => count < mostOfOne)),
    )
    try {
      const items = room > 0 && mayTake() ? await takeDue(parts.database.work, parts.clock.real(), room, kinds, busy) : []
      mayBeMore = items.length === room
      for (const item of items) run(item)
    } catch (error) {
      parts.log.warn({ why: (error as Error).message }, 'due work could not be taken')
    }
    if (!stopped) timer = parts.clock.after(pauseMilliseconds, next)
  }
  const next = () => {
    timer = undefined
    looking = look()
  }
  const count = ({ merchantId }: DueItem, by: number) => {
    const left = (ofMerchant.get(merchantId) ?? 0) + by
    if (left === 0) ofMerchant.delete(merchantId)
    else ofMerchant.set(merchantId, left)
  }
  const run = (item: DueItem): void => {
    count(item, 1)
    const one = runItem(parts, handlers, item).finally(() => {
      running.delete(one)
      count(item, -1)
      if (!mayBeMore || running.size > most / 2 || stopped || !timer) return
      timer.cancel()
      next()
    })
    running.add(one)
  }
  next()
  return {
    async stop() {
      stopped = true
      timer?.cancel()
      await looking
      await Promise.all(running)
    },
  }
}

/** Runs one item, and keeps its lease for as long as that takes; a handler that throws is tried again, later each time. */
export async function runItem<Parts extends WorkerParts>(
  parts: Parts,
  handlers: DueHandlers<Parts>,
  item: DueItem,
): Promise<void> {
  const db = parts.database.work
  const handler = handlers.get(item.kind)
  const lease = keepLease(parts, item)
  const failed = (error: Error) =>
    parts.log.error({ kind: item.kind, paymentId: item.subjectId, attempt: item.attempts, why: error.message }, 'due work failed')
  let ended: Awaited<ReturnType<DueHandler<Parts>>>
  try {
    if (!handler) throw new Error(`nothing handles ${item.kind}`)
    ended = await handler(parts, item)
  } catch (error) {
    failed(error as Error)
    ended = { again: parts.clock.real() + backOff(item.attempts) }
  }
  // Where the end cannot be stored the lease runs out by itself, and the work is done again.
  const held = await lease.end()
  await (ended === 'done' ? finishDue(db, held) : postponeDue(db, held, ended.again, ended.details, ended.well)).catch(failed)
}

/** Other processes must not take what is still running: its lease is renewed well before it runs out. */
function keepLease(parts: WorkerParts, item: DueItem): { end(): Promise<DueItem> } {
  let held = item
  let renewing: Promise<void> = Promise.resolve()
  const timer = parts.clock.every((leaseSeconds * 1000) / 3, () => {
    renewing = renewDue(parts.database.work, held, parts.clock.real()).then(
      renewed => {
        held = renewed ?? held
      },
      (error: Error) => parts.log.warn({ kind: item.kind, why: error.message }, 'a lease could not be renewed'),
    )
  })
  return {
    async end() {
      timer.cancel()
      await renewing
      return held
    },
  }
}

/** 2, 4, 8 … seconds, at most ten minutes. */
export const backOff = (attempts: number): number => Math.min(2 ** Math.min(attempts, 20) * 1000, backOffMost)
