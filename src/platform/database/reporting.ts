// The database that readings of many payments go to: the gateway's own, or one that follows it and others (docs/operating-reporting.md). One that follows lags, and may
// be away: whoever reads there is refused at once then, and nobody who pays notices.

import type pg from 'pg'
import { boundedClient, TooMuch } from './bounded.ts'
import { type Connection, limited, makePool, sizes, timeLimits } from './connect.ts'
import { isLost } from './errors.ts'

/** What is read there cannot be had at present, in words for the operator. */
export class ReportingAway extends Error {}

/** `ready`: what it knows is seconds old. `unfit`: it belongs to another mode or other keys, or lacks migrations. */
export const reportingStates = ['ready', 'behind', 'unfit', 'away'] as const

/** A database that it follows, and when that told last that it lives, milliseconds. */
export type FollowedSource = { readonly source: string; readonly beatAt: number }

export type Standing = {
  readonly state: (typeof reportingStates)[number]
  readonly why?: string
  readonly sources: readonly FollowedSource[]
}

export type ReportingDatabase = Connection & {
  /** Absent = there is none: the gateway's own is read. */
  readonly follows?: Following
}

export type Following = {
  /** To look at it, beside those who read. */
  readonly pool: pg.Pool
  /** As it was seen last. */
  standing(): Standing
  /** From now on it stands so. */
  set(standing: Standing): void
  close(): Promise<void>
}

const neverSeen: Standing = { state: 'away', why: 'nobody has looked at it yet', sources: [] }
/** Nothing is ever written there, whatever the role may do. */
const readOnly = '; set default_transaction_read_only = on'

/** Bytes of an answer, for those who read and for who looks whether it is there: lists and reports have pages. */
const answerMost = { reading: 32 * 1024 * 1024, look: 256 * 1024 }

export function followingDatabase(options: pg.PoolConfig): ReportingDatabase & { readonly follows: Following } {
  const { max, statementSeconds } = sizes.searches
  const quiet = () => {} // whoever reads, or looks, is told
  const poolOf = (name: string, most: number, seconds: number, bytes: number) =>
    makePool(
      { ...limited(options, name, seconds), Client: boundedClient(options, bytes) },
      most,
      quiet,
      timeLimits(seconds) + readOnly,
    )
  const pools = [
    poolOf('reporting', max, statementSeconds, answerMost.reading),
    poolOf('reporting watch', 1, 2, answerMost.look),
  ] as const
  let seen = neverSeen
  // biome-ignore lint/suspicious/noExplicitAny: the many ways in which a pool is asked, passed on as they come
  const query = async (...asked: any[]): Promise<any> => {
    if (seen.state === 'away' || seen.state === 'unfit') throw new ReportingAway(seen.why)
    return pools[0].query(...(asked as [string])).catch((error: Error) => {
      // It is not asked again before somebody has looked at it.
      if (error instanceof TooMuch) seen = { ...seen, state: 'away', why: error.message }
      throw isLost(error) ? new ReportingAway(error.message) : error
    })
  }
  return {
    query: query as pg.Pool['query'],
    follows: {
      pool: pools[1],
      standing: () => seen,
      set: standing => {
        seen = standing
      },
      close: async () => {
        await Promise.all(pools.map(pool => pool.end()))
      },
    },
  }
}

/** How old the oldest of what is read there may be, in whole seconds; undefined where the gateway's own database is read, or nothing is known. */
export function lagSeconds({ follows }: ReportingDatabase, now: number): number | undefined {
  const sources = follows?.standing().sources ?? []
  return sources.length === 0 ? undefined : Math.max(...sources.map(one => lagOf(one, now)))
}

/** In whole seconds. */
export const lagOf = ({ beatAt }: FollowedSource, now: number): number => Math.max(0, Math.floor((now - beatAt) / 1000))

/** From here on a page says how old it is: a source tells every two seconds that it lives. */
export const toldLagSeconds = 10
