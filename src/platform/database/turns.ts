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

/**
 * `most` at a time of all together; next comes who has used least of late, so that whoever asks for little waits for one that is under way, and not for all who came
 * before. Throws WriteTimeout when the turn did not come in time.
 */
export function leastFirst(clock: Clock, patienceSeconds: number, most: number): Turns {
  type Waiting = { come(): void }
  const lines = new Map<string, Set<Waiting>>()
  const used = new Map<string, number>()
  let running = 0
  let halvedAt = clock.elapsed()
  const halve = () => {
    for (; clock.elapsed() - halvedAt >= halfLifeMilliseconds && used.size > 0; halvedAt += halfLifeMilliseconds)
      for (const [key, milliseconds] of used) milliseconds < 1 ? used.delete(key) : used.set(key, milliseconds / 2)
    if (used.size === 0) halvedAt = clock.elapsed()
  }
  const usedBy = (key: string) => used.get(key) ?? 0
  const leave = (key: string, one: Waiting) => {
    const line = lines.get(key)!
    line.delete(one)
    if (line.size === 0) lines.delete(key)
  }
  const next = () => {
    if (lines.size === 0) return
    const key = [...lines.keys()].reduce((one, other) => (usedBy(other) < usedBy(one) ? other : one))
    const [first] = lines.get(key)!
    leave(key, first!)
    running++
    first!.come()
  }
  const turn = (key: string) =>
    new Promise<void>((resolve, reject) => {
      const timer = clock.after(patienceSeconds * 1000, () => {
        leave(key, one)
        reject(new WriteTimeout('others have not ended in time'))
      })
      const one: Waiting = {
        come() {
          timer.cancel()
          resolve()
        },
      }
      lines.set(key, (lines.get(key) ?? new Set()).add(one))
    })
  return async (key, work) => {
    halve()
    if (running < most) running++
    else await turn(key)
    const began = clock.elapsed()
    try {
      return await work()
    } finally {
      used.set(key, (used.get(key) ?? 0) + clock.elapsed() - began)
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
