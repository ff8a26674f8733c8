// Work on one thing, one at a time or a few: who comes later waits here, in memory, and not with a connection of a pool at a lock of the database. So
// one chain that is locked or slow cannot take all connections.

import type { Clock } from '../clock.ts'
import { NoTurn } from './errors.ts'

/** What somebody asks for of his own. `weight`: how much counts what was asked for it of late. */
export type Named = { readonly name: string; readonly weight: number }
export type Turns = <Value>(key: string, work: () => Promise<Value>, named?: Named) => Promise<Value>

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
 * How what each has used is counted. `cost`: of one piece of work that took so long and came to this, undefined where it failed; `abreast`: so many of each stand in the common
 * line of who came first, the others of his behind them; there is none where it is 0.
 */
export type UseCount = { cost(milliseconds: number, value: unknown): number; readonly abreast: number }

const byTime: UseCount = { cost: milliseconds => milliseconds, abreast: 0 }

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
    halve(): void {
      for (; clock.elapsed() - halvedAt >= halfLifeMilliseconds && used.size > 0; halvedAt += halfLifeMilliseconds)
        for (const [key, much] of used) much < 1 ? used.delete(key) : used.set(key, much / 2)
      if (used.size === 0) halvedAt = clock.elapsed()
    },
  }
}
const halfLifeMilliseconds = 5000

/**
 * `most` at a time of all together. In turn comes next who came first, who has used least of late, and what was asked least for of late of what is named: whoever asks for little
 * waits for what is under way, and for no crowd that came before; who asks for more than others is served as well, in the order of a line in which each has a few places; and so
 * is whoever asks for something of his own where many share a key. Of equals comes next who came first. Throws NoTurn when the turn did not come in time.
 */
export function leastFirst(clock: Clock, patienceSeconds: number, most: number, { cost, abreast }: UseCount = byTime): Turns {
  type One = Waiting & { readonly key: string }
  /** All who wait, each behind those of his own. */
  const lines = new Map<string, Set<One>>()
  const named = new Map<One, Named>()
  /** Places in the common line, in its order: the first of that line takes it. */
  const places = new Set<{ readonly key: string }>()
  const placesOf = new Map<string, number>()
  const uses = usesOfLate(clock)
  const usesOfNamed = usesOfLate(clock)
  let running = 0
  const leave = (one: One) => {
    const line = lines.get(one.key)
    line?.delete(one)
    if (line?.size === 0) lines.delete(one.key)
    named.delete(one)
  }
  const firstOf = <Value>(line: Iterable<Value>): Value | undefined => line[Symbol.iterator]().next().value
  const stand = (key: string) => {
    const has = placesOf.get(key) ?? 0
    if (has >= Math.min(abreast, lines.get(key)?.size ?? 0)) return
    placesOf.set(key, has + 1)
    places.add({ key })
  }
  const firstInLine = (): One | undefined => {
    for (let place = firstOf(places); place; place = firstOf(places)) {
      const { key } = place
      places.delete(place)
      const left = placesOf.get(key)! - 1
      left === 0 ? placesOf.delete(key) : placesOf.set(key, left)
      const line = lines.get(key)
      if (line) return firstOf(line)
    }
    return undefined
  }
  const leastUsed = (): One | undefined => {
    let least: string | undefined
    for (const key of lines.keys()) if (least === undefined || uses.of(key) < uses.of(least)) least = key
    return least === undefined ? undefined : firstOf(lines.get(least)!)
  }
  const leastNamed = (): One | undefined => {
    let least: One | undefined
    let leastWeighs = Number.POSITIVE_INFINITY
    for (const [one, { name, weight }] of named) {
      const weighs = (1 + usesOfNamed.of(name)) * weight
      if (weighs >= leastWeighs) continue
      leastWeighs = weighs
      least = one
    }
    return least
  }
  const orders = [firstInLine, leastUsed, leastNamed]
  let turns = 0
  const next = () => {
    const one = orders[turns++ % orders.length]!() ?? leastUsed()
    if (!one) return
    leave(one)
    stand(one.key)
    running++
    one.come()
  }
  const turn = (key: string, what: Named | undefined) =>
    comesInTime(clock, patienceSeconds, ({ come }) => {
      const one = { key, come }
      lines.set(key, (lines.get(key) ?? new Set()).add(one))
      if (what) named.set(one, what)
      stand(key)
      return () => leave(one)
    })
  return async (key, work, what) => {
    uses.halve()
    usesOfNamed.halve()
    if (running < most) running++
    else await turn(key, what)
    const began = clock.elapsed()
    let value: Awaited<ReturnType<typeof work>> | undefined
    try {
      value = await work()
      return value
    } finally {
      const used = cost(clock.elapsed() - began, value)
      uses.count(key, used)
      if (what) usesOfNamed.count(what.name, used)
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
