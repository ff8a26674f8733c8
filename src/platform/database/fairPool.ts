// A pool in which a crowd waits for everybody else, and all others come in their order: of one network, as long as nobody knows who asks; then of one merchant, or of one of the
// staff.

import { AsyncLocalStorage } from 'node:async_hooks'
import type pg from 'pg'
import type { Clock } from '../clock.ts'
import { firstOrLeast, leastFirst, type Named, takeTurns, type UseCount, usesOfLate } from './turns.ts'

type Asking = { whom: string; among: string; named: Named | undefined; hasBegun: boolean; tries: number }
const asking = new AsyncLocalStorage<Asking>()
/** For whom the present work is done; no letter where nobody knows. */
const nobody: Asking = { whom: '', among: '', named: undefined, hasBegun: false, tries: 0 }

/** All that the work asks of such a pool is asked for them, until it has turned out who they are: of the networks around a caller for the last, the widest, among which he is of the first. */
export function askedBy<Value>(around: string | readonly string[], work: () => Value): Value {
  const networks = typeof around === 'string' ? [around] : around
  return asking.run({ ...nobody, whom: networks.at(-1)!, among: networks[0]! }, work)
}

/** It has turned out for whom the present work is done. */
export function turnedOutToBe(whom: string): void {
  const asked = asking.getStore()
  if (asked) Object.assign(asked, { whom, among: whom })
}

/** It has turned out that the present work is about something that we gave out: of a crowd behind one address each asks for his own. `weight`: less where fewer have one. */
export function asksFor(name: string, weight = 1): void {
  const asked = asking.getStore()
  if (asked) asked.named = { name, weight }
}
/** Who has begun goes on: of what one needs, a press of Pay asks twenty times as often as the look at a form. */
const begunWeight = 1 / 256
/** So does, before all who only look at forms, whoever presses Pay, and has pressed: presses wait for places of their own, so that few can ask for much by them. */
export const pressedWeight = 1 / 65_536

/** It has turned out that the same was tried so often before. */
export function triedBefore(tries: number): void {
  const asked = asking.getStore()
  if (asked) asked.tries = tries
}

/**
 * A shopper's payment takes some forty statements, with all its pages, a few at a time; and some shoppers share an address. How long a statement takes says more of
 * everybody than of him; how much it brings, what it costs here. Two of each stand in line: whoever comes waits for no more of a crowd that asks for little from many networks.
 */
const byStatement: UseCount = { cost: (_, value) => 1 + bytesOf(value) / bytesForOne, abreast: 2 }
const bytesForOne = 4096

/** Of texts and bytes in the rows of an answer. */
function bytesOf(value: unknown): number {
  let bytes = 0
  for (const row of (value as Partial<pg.QueryResult> | undefined)?.rows ?? [])
    for (const one of Object.values(row)) if (typeof one === 'string' || one instanceof Uint8Array) bytes += one.length
  return bytes
}

/** Does work when there is a place for it. */
export type InPlace = <Value>(work: () => Promise<Value>) => Promise<Value>

/**
 * Transactions in chains of merchants, `most` at a time of all, in turns of those for whom work is done and of merchants: whoever presses waits neither for those who press
 * elsewhere, however many they are, nor for a network that presses everywhere, of which a few stand in line; nor, among those of a wide one, for a narrow one that presses much;
 * nor anywhere for those who press again what was declined. A shop gives a checkout to a shopper, and gives no stranger hundreds in a second.
 */
export function transactionsAtMerchants(
  clock: Clock,
  patienceSeconds: number,
  most: number,
): (merchantId: string, rootId: string) => InPlace {
  const ofNarrow = takeTurns(clock, patienceSeconds, waitingMost.ofNarrow, abreast.ofNarrow)
  const ofWide = takeTurns(clock, patienceSeconds, waitingMost.ofWide, abreast.ofWide)
  const ofAll = firstOrLeast(clock, patienceSeconds, most)
  /** Of several tries at once none knows of the others what is stored. */
  const ofChains = usesOfLate(clock)
  return (place, rootId) => work => {
    const { whom: caller, among, tries: before } = asking.getStore() ?? nobody
    ofChains.halve()
    const chain = place + rootId
    const tries = before + ofChains.of(chain)
    ofChains.count(chain, 1)
    return ofNarrow(among, () => ofWide(caller, () => ofAll({ caller, place, tries }, work), tries), tries)
  }
}
const waitingMost = { ofNarrow: 200, ofWide: 1000 }
const abreast = { ofNarrow: 4, ofWide: 16 }

/** Who waits for a turn, by the pool that it is for. */
const waiting = new WeakMap<pg.Pool, number>()
export const waitingFor = (pool: pg.Pool): number => pool.waitingCount + (waiting.get(pool) ?? 0)

/** `most` of its connections at a time, each statement and each transaction in its turn. */
export function fairPool(pool: pg.Pool, clock: Clock, patienceSeconds: number, most: number): pg.Pool {
  const turns = leastFirst(clock, patienceSeconds, most, byStatement)
  const count = (more: number) => waiting.set(pool, (waiting.get(pool) ?? 0) + more)
  const inTurn = <Value>(work: () => Promise<Value>) => {
    let waits = true
    const goOn = () => {
      if (waits) count(-1)
      waits = false
    }
    count(1)
    const begin = () => {
      goOn()
      return work()
    }
    const asked = asking.getStore() ?? { ...nobody }
    const { whom, named, hasBegun } = asked
    asked.hasBegun = true
    const weighed = named && hasBegun ? { ...named, weight: named.weight * begunWeight } : named
    return turns(whom, begin, weighed).finally(goOn)
  }
  const connect = () =>
    new Promise<pg.PoolClient>((given, refused) => {
      const untilReleased = async () => {
        const client = await pool.connect()
        const { release } = client
        await new Promise<void>(released => {
          client.release = error => {
            client.release = release
            client.release(error)
            released()
          }
          given(client)
        })
      }
      inTurn(untilReleased).catch(refused)
    })
  // biome-ignore lint/suspicious/noExplicitAny: the many ways in which a pool is asked, passed on as they come
  const query = (...asked: any[]) => inTurn(() => pool.query(...(asked as [string])))
  return { query, connect } as unknown as pg.Pool
}
