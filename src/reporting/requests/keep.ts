// Keeps records of requests, behind their answers: a request waits for none of this, and when there are more than can be written, records are left out.

import { type Clock, type Random, timeOrderedId } from '../../platform/clock.ts'
import type { Database } from '../../platform/database/connect.ts'
import { repeat } from '../../platform/due/repeat.ts'
import type { Log } from '../../platform/log.ts'
import { maskedRequest, type RequestTrace } from './record.ts'
import { eraseBeyond, insertRequests, unknownMerchant } from './store.ts'

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

/** Of these some milliseconds are spent before other work comes again. */
const atOnce = 50
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
  const waiting: RequestTrace[] = []
  const grown = new Set<string>()
  let leftOut = 0
  let eraseAt = clock.elapsed()

  async function write(): Promise<number> {
    const taken = waiting.splice(0, atOnce)
    if (taken.length > 0) {
      const rows = taken.map(trace => ({ ...maskedRequest(trace, sandbox), id: timeOrderedId(trace.at, random) }))
      await insertRequests(db, rows)
      for (const { caller } of rows) grown.add(caller?.merchantId ?? unknownMerchant)
    }
    if (clock.elapsed() >= eraseAt) await erase()
    return taken.length
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
      if (waiting.length < waitingMost) waiting.push(trace)
      else leftOut++
    },
    async stop() {
      await writing.stop()
      while (waiting.length > 0) await write().catch(failed)
    },
  }
}

/** Requests of the interface; what browsers fetch is none, nor what only a sandbox has. `callers`: of the route, where there is one. */
export const isRecorded = (method: string, path: string, callers: string | undefined): boolean =>
  /^\/(v\d+|reports)\//.test(path) && (method === 'POST' || callers === undefined || callers === 'token')
