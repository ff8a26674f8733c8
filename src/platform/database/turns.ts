// Work on one thing, one at a time or a few: who comes later waits here, in memory, and not with a connection of a pool at a lock of the database. So
// one chain that is locked or slow cannot take all connections.

import type { Clock } from '../clock.ts'
import { WriteTimeout } from './errors.ts'

export type Turns = <Value>(key: string, work: () => Promise<Value>) => Promise<Value>

/** `most` at a time. Throws WriteTimeout when the turn did not come in time, or too many wait already. */
export function takeTurns(clock: Clock, patienceSeconds: number, waitingMost: number, most = 1): Turns {
  type Turn = { comes(ours: boolean): void }
  const lines = new Map<string, Turn[]>()
  return async (key, work) => {
    const line = lines.get(key) ?? []
    if (line.length >= most + waitingMost) throw new WriteTimeout('too many requests wait for the same thing')
    lines.set(key, line)
    let turn: Turn
    const ours = await new Promise<boolean>(resolve => {
      const timer = clock.after(patienceSeconds * 1000, () => resolve(false))
      turn = {
        comes(ours) {
          timer.cancel()
          resolve(ours)
        },
      }
      line.push(turn)
      if (line.length <= most) turn.comes(true)
    })
    try {
      if (!ours) throw new WriteTimeout('an earlier request for the same thing has not ended in time')
      return await work()
    } finally {
      // Also a turn that gave up in the moment in which it came passes on.
      const at = line.indexOf(turn!)
      line.splice(at, 1)
      if (at < most) line[most - 1]?.comes(true)
      if (line.length === 0) lines.delete(key)
    }
  }
}

/** How what each has used is counted. `cost`: of one piece of work that took so long; `floor`: who has used no more than this is as good as who has used nothing. */
export type UseCount = { cost(milliseconds: number): number; readonly floor: number }

const byTime: UseCount = { cost: milliseconds => milliseconds, floor: 0 }

/**
 * `most` at a time of all together; next comes who has used least of late, so that whoever asks for little waits for one that is under way, and not for all who came
 * before. Of several who have used as little comes next who came first: a rush of many who each ask for some things is served in its order. Throws WriteTimeout when
 * the turn did not come in time.
 */
export function leastFirst(clock: Clock, patienceSeconds: number, most: number, { cost, floor }: UseCount = byTime): Turns {
  type Waiting = { readonly key: string; come(): void }
  /** Who has used no more than the floor when his turn comes, in the order in which they came; all others in lines of their own. */
  const light = new Set<Waiting>()
  const heavy = new Map<string, Set<Waiting>>()
  const used = new Map<string, number>()
  let running = 0
  let halvedAt = clock.elapsed()
  const halve = () => {
    for (; clock.elapsed() - halvedAt >= halfLifeMilliseconds && used.size > 0; halvedAt += halfLifeMilliseconds)
      for (const [key, much] of used) much < 1 ? used.delete(key) : used.set(key, much / 2)
    if (used.size === 0) halvedAt = clock.elapsed()
  }
  const usedBy = (key: string) => used.get(key) ?? 0
  const leave = (one: Waiting) => {
    const line = heavy.get(one.key)
    light.delete(one)
    line?.delete(one)
    if (line?.size === 0) heavy.delete(one.key)
  }
  const firstOf = (line: ReadonlySet<Waiting>): Waiting | undefined => line.values().next().value
  const first = (): Waiting | undefined => {
    for (let one = firstOf(light); one; one = firstOf(light)) {
      if (usedBy(one.key) <= floor) return one
      light.delete(one)
      heavy.set(one.key, (heavy.get(one.key) ?? new Set()).add(one))
    }
    const keys = [...heavy.keys()]
    return keys.length === 0
      ? undefined
      : firstOf(heavy.get(keys.reduce((one, other) => (usedBy(other) < usedBy(one) ? other : one)))!)
  }
  const next = () => {
    const one = first()
    if (!one) return
    leave(one)
    running++
    one.come()
  }
  const turn = (key: string) =>
    new Promise<void>((resolve, reject) => {
      const timer = clock.after(patienceSeconds * 1000, () => {
        leave(one)
        reject(new WriteTimeout('others have not ended in time'))
      })
      const one: Waiting = {
        key,
        come() {
          timer.cancel()
          resolve()
        },
      }
      light.add(one)
    })
  return async (key, work) => {
    halve()
    if (running < most) running++
    else await turn(key)
    const began = clock.elapsed()
    try {
      return await work()
    } finally {
      used.set(key, (used.get(key) ?? 0) + cost(clock.elapsed() - began))
      running--
      next()
    }
  }
}
const halfLifeMilliseconds = 5000

/** Of a caller and of its merchant one at a time, however many callers act for it, and of all as many as there are connections. For what may take long to read. */
export type ReadingTurns = <Value>(caller: string, merchantId: string, work: () => Promise<Value>) => Promise<Value>

export function readingTurns(clock: Clock, connections: number): ReadingTurns {
  const ofCaller = takeTurns(clock, readingSeconds, 20)
  const ofMerchant = takeTurns(clock, readingSeconds, 60)
  const ofAll = leastFirst(clock, readingSeconds, connections)
  return (caller, merchantId, work) => ofCaller(caller, () => ofMerchant(merchantId, () => ofAll(merchantId, work)))
}
const readingSeconds = 10
