// Work on one thing, one at a time or a few: who comes later waits here, in memory, and not with a connection of a pool at a lock of the database. So
// one chain that is locked or slow cannot take all connections.

import type { Clock } from '../clock.ts'
import { NoTurn } from './errors.ts'

export type Turns = <Value>(key: string, work: () => Promise<Value>) => Promise<Value>

/**
 * `most` at a time. `tries`: how often the same was tried before; who has tried less comes first, and takes the place of who has tried most where too many wait. Throws
 * NoTurn when the turn did not come in time, or too many wait already.
 */
export function takeTurns(
  clock: Clock,
  patienceSeconds: number,
  waitingMost: number,
  most = 1,
): <Value>(key: string, work: () => Promise<Value>, tries?: number) => Promise<Value> {
  type Turn = { readonly tries: number; comes(ours: boolean): void }
  const lines = new Map<string, Turn[]>()
  return async (key, work, tries = 0) => {
    const line = lines.get(key) ?? []
    if (line.length >= most + waitingMost) {
      if (line.at(-1)!.tries <= tries) throw new NoTurn('too many requests wait for the same thing')
      line.pop()!.comes(false)
    }
    lines.set(key, line)
    let turn: Turn
    const ours = await new Promise<boolean>(resolve => {
      const timer = clock.after(patienceSeconds * 1000, () => resolve(false))
      turn = {
        tries,
        comes(ours) {
          timer.cancel()
          resolve(ours)
        },
      }
      let at = line.length
      while (at > most && line[at - 1]!.tries > tries) at--
      line.splice(at, 0, turn)
      if (at < most) turn.comes(true)
    })
    try {
      if (!ours) throw new NoTurn('an earlier request for the same thing has not ended in time')
      return await work()
    } finally {
      // Also a turn that gave up in the moment in which it came passes on.
      const at = line.indexOf(turn!)
      if (at >= 0) line.splice(at, 1)
      if (at >= 0 && at < most) line[most - 1]?.comes(true)
      if (line.length === 0) lines.delete(key)
    }
  }
}

/**
 * How what each has used is counted. `cost`: of one piece of work that took so long and came to this, undefined where it failed; `floor`: who has used no more than this
 * is as good as who has used nothing; `abreast`: so many of each stand in the common line, the others of his behind them.
 */
export type UseCount = { cost(milliseconds: number, value: unknown): number; readonly floor: number; readonly abreast: number }

const byTime: UseCount = { cost: milliseconds => milliseconds, floor: 0, abreast: 1 }

type Waiting = { come(): void }

/** Until it comes. `stand`: in what line; what it gives leaves that. Throws NoTurn when it did not come in time. */
const comesInTime = (clock: Clock, patienceSeconds: number, stand: (one: Waiting) => () => void): Promise<void> =>
  new Promise((resolve, reject) => {
    const timer = clock.after(patienceSeconds * 1000, () => {
      leave()
      reject(new NoTurn('others have not ended in time'))
    })
    const leave = stand({
      come() {
        timer.cancel()
        resolve()
      },
    })
  })

/** What each has used of late: the longer ago, the less it counts. */
export function usesOfLate(clock: Clock) {
  const used = new Map<string, number>()
  let halvedAt = clock.elapsed()
  return {
    of: (key: string): number => used.get(key) ?? 0,
    count: (key: string, much: number) => used.set(key, (used.get(key) ?? 0) + much),
    /** Does anything count for less now than before? */
    halve(): boolean {
      const before = halvedAt
      for (; clock.elapsed() - halvedAt >= halfLifeMilliseconds && used.size > 0; halvedAt += halfLifeMilliseconds)
        for (const [key, much] of used) much < 1 ? used.delete(key) : used.set(key, much / 2)
      const isLess = halvedAt > before
      if (used.size === 0) halvedAt = clock.elapsed()
      return isLess
    },
  }
}
const halfLifeMilliseconds = 5000

/**
 * `most` at a time of all together; next comes who has used least of late, so that whoever asks for little waits for one that is under way, and not for all who came
 * before. Of several who have used as little comes next who came first: a rush of many who each ask for some things is served in its order, and who asks for hundreds
 * at once has a few places in it. Throws NoTurn when the turn did not come in time.
 */
export function leastFirst(
  clock: Clock,
  patienceSeconds: number,
  most: number,
  { cost, floor, abreast }: UseCount = byTime,
): Turns {
  /** All who wait, each behind those of his own. */
  const lines = new Map<string, Set<Waiting>>()
  /** Places in the common line, in its order: the first of that line takes it. */
  const places = new Set<{ readonly key: string }>()
  const placesOf = new Map<string, number>()
  const uses = usesOfLate(clock)
  let running = 0
  const leave = (key: string, one: Waiting) => {
    const line = lines.get(key)
    line?.delete(one)
    if (line?.size === 0) lines.delete(key)
  }
  const firstOf = <Value>(line: Iterable<Value>): Value | undefined => line[Symbol.iterator]().next().value
  const stand = (key: string) => {
    const has = placesOf.get(key) ?? 0
    if (has >= Math.min(abreast, lines.get(key)?.size ?? 0)) return
    placesOf.set(key, has + 1)
    places.add({ key })
  }
  /** Who is to come next: whoever has used more than the floor leaves his places to all others. */
  const nextKey = (): string | undefined => {
    for (let place = firstOf(places); place; place = firstOf(places)) {
      const { key } = place
      places.delete(place)
      const left = placesOf.get(key)! - 1
      left === 0 ? placesOf.delete(key) : placesOf.set(key, left)
      if (lines.has(key) && uses.of(key) <= floor) return key
    }
    const keys = [...lines.keys()]
    return keys.length === 0 ? undefined : keys.reduce((one, other) => (uses.of(other) < uses.of(one) ? other : one))
  }
  const next = () => {
    const key = nextKey()
    if (key === undefined) return
    const one = firstOf(lines.get(key)!)!
    leave(key, one)
    if (uses.of(key) <= floor) stand(key)
    running++
    one.come()
  }
  const turn = (key: string) =>
    comesInTime(clock, patienceSeconds, one => {
      lines.set(key, (lines.get(key) ?? new Set()).add(one))
      stand(key)
      return () => leave(key, one)
    })
  return async (key, work) => {
    if (uses.halve()) for (const waits of lines.keys()) if (uses.of(waits) <= floor) stand(waits)
    if (running < most) running++
    else await turn(key)
    const began = clock.elapsed()
    let value: Awaited<ReturnType<typeof work>> | undefined
    try {
      value = await work()
      return value
    } finally {
      uses.count(key, cost(clock.elapsed() - began, value))
      running--
      next()
    }
  }
}

/** Of a caller, somewhere, who has tried the same so often before. */
type Somewhere = { readonly caller: string; readonly place: string; readonly tries: number }

/**
 * `most` at a time of all together. In turn comes next who has tried least before, the caller who has used least time of late, wherever, and who waits at the place where least was
 * used, of several there the caller with the least. So who comes new waits neither for those who ask at many places nor, elsewhere, for the crowd at one; and who asks for more
 * than all others, as many do behind one address, not for those who try again and again, however many they are. Of equals comes next who has tried least, and of those who came
 * first. Throws NoTurn when the turn did not come in time.
 */
export function firstOrLeast(clock: Clock, patienceSeconds: number, most: number) {
  const waiting = new Set<Somewhere & Waiting>()
  const ofCallers = usesOfLate(clock)
  const atPlaces = usesOfLate(clock)
  const byTries = (one: Somewhere, other: Somewhere): number => one.tries - other.tries
  const byCaller = (one: Somewhere, other: Somewhere): number =>
    ofCallers.of(one.caller) - ofCallers.of(other.caller) || byTries(one, other)
  const byPlace = (one: Somewhere, other: Somewhere): number =>
    atPlaces.of(one.place) - atPlaces.of(other.place) || byCaller(one, other)
  const orders = [byTries, byCaller, byPlace]
  let [running, turns] = [0, 0]
  const next = () => {
    if (waiting.size === 0) return
    const order = orders[turns++ % orders.length]!
    const first = [...waiting].reduce((one, other) => (order(other, one) < 0 ? other : one))
    waiting.delete(first)
    running++
    first.come()
  }
  const turn = (at: Somewhere) =>
    comesInTime(clock, patienceSeconds, ({ come }) => {
      const one = { ...at, come }
      waiting.add(one)
      return () => waiting.delete(one)
    })
  return async <Value>(at: Somewhere, work: () => Promise<Value>): Promise<Value> => {
    ofCallers.halve()
    atPlaces.halve()
    if (running < most) running++
    else await turn(at)
    const began = clock.elapsed()
    try {
      return await work()
    } finally {
      const took = clock.elapsed() - began
      ofCallers.count(at.caller, took)
      atPlaces.count(at.place, took)
      running--
      next()
    }
  }
}

/** Of a caller and of its merchant one at a time, however many callers act for it, and of all as many as there are connections. For what may take long to read. */
export type ReadingTurns = <Value>(caller: string, merchantId: string, work: () => Promise<Value>) => Promise<Value>

export function readingTurns(clock: Clock, connections: number): ReadingTurns {
  const ofCaller = takeTurns(clock, readingSeconds, 20)
  const ofMerchant = takeTurns(clock, readingSeconds, 60)
  const ofAll = leastFirst(clock, readingSeconds, connections)
  return (caller, merchantId, work) => ofCaller(caller, () => ofMerchant(merchantId, () => ofAll(merchantId, work)))
}
const readingSeconds = 10
