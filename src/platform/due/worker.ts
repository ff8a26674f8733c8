// The worker loop: takes due work and runs its handler; what takes long keeps one place of a few, and delays no other. Whoever is killed in the middle leaves a lease that runs out in a minute.

import type { Clock, Timer } from '../clock.ts'
import type { Database } from '../database/connect.ts'
import type { Log } from '../log.ts'
import { countShares, type DueShares } from './shares.ts'
import type { Silences } from './silence.ts'
import {
  backOffMost,
  type DueItem,
  finishDue,
  leaseSeconds,
  lineOf,
  postponeDue,
  type Rooms,
  renewDue,
  setSides,
  type Taking,
  takeDue,
  type WalkedPlace,
} from './store.ts'

/** `done`, or the real time in milliseconds at which to try again, with what the next attempt shall know. `well`: nothing failed, there is only more to do. */
export type DueHandler<Parts> = (
  parts: Parts,
  item: DueItem,
) => Promise<'done' | { readonly again: number; readonly details?: object; readonly well?: boolean }>
export type DueHandlers<Parts> = ReadonlyMap<string, DueHandler<Parts>>

export type WorkerParts = {
  readonly database: Pick<Database, 'work'>
  readonly clock: Clock
  readonly log: Log
  readonly silences: Silences
}

export type Worker = { stop(): Promise<void> }

const pauseMilliseconds = 250

/** Of which kinds a worker takes work, and how much of it at once: of all, of one merchant and of one side, whose servers may say nothing for as long as they are asked. */
export type Places<Parts> = {
  readonly kinds: readonly string[]
  readonly taking: Taking
  readonly most: number
  readonly mostOfOne: number
  readonly mostOfSide: number
  readonly findSides?: DueSides<Parts>
  /** Merchants whose work waits because their servers say nothing. */
  readonly silentMerchants?: (parts: Parts) => Silences
}

/** Of work that does not say which side it calls: those that call one. */
export type DueSides<Parts> = (parts: Parts, items: readonly DueItem[]) => Promise<ReadonlyMap<DueItem, string>>

/** `mayTake`: asked before each look for work. */
export function startWorker<Parts extends WorkerParts>(
  parts: Parts,
  handlers: DueHandlers<Parts>,
  { kinds, taking, most, mostOfOne, mostOfSide, findSides, silentMerchants }: Places<Parts>,
  mayTake: () => boolean,
): Worker {
  let stopped = false
  let timer: Timer | undefined
  let looking: Promise<void> = Promise.resolve()
  let mayBeMore = false
  const running = new Set<Promise<void>>()
  const ofMerchants = countShares()
  const ofSides = countShares()
  const ofLines = countShares()
  let behind: readonly WalkedPlace[] = []
  const look = async (): Promise<void> => {
    const limit = most - running.size
    let isMoving = false
    mayBeMore = limit <= 0
    try {
      if (limit > 0 && mayTake()) {
        const { items, cameTo } = await takeDue(parts.database.work, parts.clock.real(), {
          kinds,
          taking,
          limit,
          merchants: roomsOf(ofMerchants.shares, mostOfOne, silentMerchants?.(parts)),
          sides: roomsOf(ofSides.shares, mostOfSide, parts.silences),
          ofMerchants: ofMerchants.shares,
          ofLines: ofLines.shares,
          behind,
        })
        behind = cameTo
        const found = await putAside(items)
        isMoving = found.length < items.length
        for (const item of found) run(item)
        // Others may have been left because those that came first are many of one, or stand behind those that were looked at.
        mayBeMore = items.length === limit || isMoving || cameTo.length > 0 || found.some(isFull)
      }
    } catch (error) {
      parts.log.warn({ why: (error as Error).message }, 'due work could not be taken')
    }
    if (!stopped) timer = parts.clock.after(isMoving ? 0 : pauseMilliseconds, next)
  }
  /** What calls a side that has places of its own goes there. */
  const putAside = async (items: readonly DueItem[]): Promise<readonly DueItem[]> => {
    const unknown = items.filter(({ side }) => side === '')
    if (unknown.length === 0 || !findSides) return items
    try {
      const sides = await findSides(parts, unknown)
      const known = [...sides].map(([item, side]) => ({ ...item, side }))
      if (known.length > 0) await setSides(parts.database.work, known)
      return items.filter(item => !sides.has(item))
    } catch (error) {
      // It is taken already: better done here than left until its lease runs out.
      parts.log.warn({ why: (error as Error).message }, 'whom due work calls could not be found')
      return items
    }
  }
  const isFull = ({ merchantId, side }: DueItem) =>
    ofMerchants.shares.get(merchantId)!.running >= mostOfOne || (side !== '' && ofSides.shares.get(side)!.running >= mostOfSide)
  const next = () => {
    timer = undefined
    looking = look()
  }
  const count = (item: DueItem, how: 'begin' | 'end') => {
    ofMerchants[how](item.merchantId)
    ofLines[how](lineOf(item))
    if (item.side !== '') ofSides[how](item.side)
  }
  const run = (item: DueItem): void => {
    count(item, 'begin')
    const one = runItem(parts, handlers, item).finally(() => {
      running.delete(one)
      count(item, 'end')
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

/** What is left of each. */
function roomsOf(shares: DueShares, most: number, silences: Silences | undefined): Rooms {
  const named = new Map([...shares].map(([name, { running }]) => [name, most - running]))
  for (const [name, room] of silences?.rooms() ?? []) named.set(name, room - (shares.get(name)?.running ?? 0))
  return { most, named }
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
