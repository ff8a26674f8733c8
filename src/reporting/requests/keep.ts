// Keeps records of requests, behind their answers: a request waits for none of this, and when there are more than can be written, records are left out.

import { type Clock, type Random, timeOrderedId } from '../../platform/clock.ts'
import type { Database } from '../../platform/database/connect.ts'
import { repeat } from '../../platform/due/repeat.ts'
import type { Log } from '../../platform/log.ts'
import { type MaskedRequest, maskedRequest, type RequestTrace } from './record.ts'
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

/** Written at once, and no more of them than are masked in this time: everybody waits meanwhile, and what somebody sends to be masked may cost much. */
const atOnce = 50
const maskingMilliseconds = 3
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
  /** Of each merchant, and of strangers together. */
  const waiting = new Map<string, RequestTrace[]>()
  let waitingCount = 0
  const grown = new Set<string>()
  let leftOut = 0
  let eraseAt = clock.elapsed()

  /** The oldest of each in turn. */
  function next(): RequestTrace | undefined {
    const [first] = waiting
    if (!first) return undefined
    const [merchantId, own] = first
    waiting.delete(merchantId)
    const trace = own.shift()!
    if (own.length > 0) waiting.set(merchantId, own)
    waitingCount--
    return trace
  }

  async function write(): Promise<number> {
    const rows: MaskedRequest[] = []
    for (const until = clock.elapsed() + maskingMilliseconds; rows.length < atOnce; ) {
      const trace = next()
      if (!trace) break
      rows.push(maskedRequest(trace, sandbox))
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
    return rows.length
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
      const own = waiting.get(merchantOf(trace)) ?? []
      // As much as is still free: one alone has half of all.
      if (own.length >= waitingMost - waitingCount) {
        leftOut++
        return
      }
      own.push(trace)
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
