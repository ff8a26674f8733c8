// Keeps records of requests, behind their answers: a request waits for none of this, and when there are more than can be written, records are left out.

import { type Clock, type Random, timeOrderedId } from '../../platform/clock.ts'
import type { Database } from '../../platform/database/connect.ts'
import { repeat } from '../../platform/due/repeat.ts'
import type { Log } from '../../platform/log.ts'
import { type MaskedRequest, maskingOf, type RequestTrace } from './record.ts'
import { eraseBeyond, insertRequests, merchantOf } from './store.ts'

export const keptRequests = ['all', 'failed', 'none'] as const
export type KeptRequests = (typeof keptRequests)[number]

export type RequestKeeper = {
  /** Given for every request; remembers it until it is written. */
  record(trace: RequestTrace): void
  /** Writes what waits. */
  stop(): Promise<void>
}

/** Of each merchant so many records are kept, and of strangers together as many as of a merchant. */
const requestsMost = 10_000

/** Written at once, and no more of them than are masked in this time, in which each merchant has his turns: everybody waits meanwhile, and what somebody sends to be masked may cost
 * much. */
const atOnce = 50
const [maskingMilliseconds, turnMilliseconds] = [3, 1]
const waitingMost = 2000
const standard = { most: requestsMost, eraseEveryMilliseconds: 60_000 }

type KeeperParts = {
  readonly clock: Clock
  readonly random: Random
  readonly database: Pick<Database, 'work'>
  readonly log: Log
  readonly sandbox: boolean
}

export function keepRequests(
  parts: KeeperParts,
  which: KeptRequests,
  { most, eraseEveryMilliseconds } = standard,
): RequestKeeper {
  const { clock, random, log, sandbox } = parts
  const db = parts.database.work
  type Waiting = { readonly traces: RequestTrace[]; masking?: ReturnType<typeof maskingOf> }
  /** Of each merchant, and of strangers together. */
  const waiting = new Map<string, Waiting>()
  let waitingCount = 0
  const grown = new Set<string>()
  let leftOut = 0
  let eraseAt = clock.elapsed()

  /** The oldest of whose turn it is. Undefined when it is not whole yet. */
  function maskOf(merchantId: string, own: Waiting): MaskedRequest | undefined {
    waiting.delete(merchantId)
    own.masking ??= maskingOf(own.traces[0]!, sandbox)
    const until = clock.elapsed() + turnMilliseconds
    let step = own.masking.next()
    while (!step.done && clock.elapsed() < until) step = own.masking.next()
    if (step.done) {
      own.traces.shift()
      delete own.masking
      waitingCount--
    }
    if (own.traces.length > 0) waiting.set(merchantId, own)
    return step.done ? step.value : undefined
  }

  async function write(): Promise<number> {
    const rows: MaskedRequest[] = []
    const until = clock.elapsed() + maskingMilliseconds
    for (let [first] = waiting; first && rows.length < atOnce; [first] = waiting) {
      const row = maskOf(...first)
      if (row) rows.push(row)
      if (clock.elapsed() >= until) break
    }
    if (rows.length > 0) {
      await insertRequests(
        db,
        rows.map(row => ({ ...row, id: timeOrderedId(row.at, random) })),
      )
      for (const row of rows) grown.add(merchantOf(row))
    }
    if (clock.elapsed() >= eraseAt) await erase()
    return rows.length + waitingCount
  }

  async function erase(): Promise<void> {
    eraseAt = clock.elapsed() + eraseEveryMilliseconds
    if (leftOut > 0) log.warn({ attempt: leftOut }, 'so many records of requests were left out')
    leftOut = 0
    for (const merchantId of grown) await eraseBeyond(db, merchantId, most)
    grown.clear()
  }

  const failed = (error: Error) => log.warn({ why: error.message }, 'records of requests could not be written')
  const writing = repeat(clock, write, failed)
  return {
    record(trace) {
      if (which === 'none' || (which === 'failed' && trace.status < 400)) return
      const own = waiting.get(merchantOf(trace)) ?? { traces: [] }
      // As much as is still free: one alone has half of all.
      if (own.traces.length >= waitingMost - waitingCount) {
        leftOut++
        return
      }
      own.traces.push(trace)
      waiting.set(merchantOf(trace), own)
      waitingCount++
    },
    async stop() {
      await writing.stop()
      while (waitingCount > 0) await write().catch(failed)
    },
  }
}

/** Requests of the interface; what browsers fetch is none, nor what only a sandbox has. `callers`: of the route, where there is one. */
export const isRecorded = (method: string, path: string, callers: string | undefined): boolean =>
  /^\/(v\d+|reports)\//.test(path) && (method === 'POST' || callers === undefined || callers === 'token')
