// A day or a month at a glance: how many payments came hour by hour or day by day, how they ended and why, how long it took, what waits to be told.

import { type Outcome, type ResultName, results } from '../../contract/results/results.ts'
import type { Database } from '../../platform/database/connect.ts'
import {
  type Backlog,
  countBacklog,
  countOutcomes,
  type Latency,
  measureLatency,
  type OutcomeRow,
  type OverviewSpan,
} from './store.ts'

/** How payments ended, as a plot shows them. `other`: pending, or the request or a system was at fault. */
export type Endings = { readonly approved: number; readonly declined: number; readonly other: number }

export type Overview = {
  readonly all: Endings
  /** Hour by hour or day by day, those without payments too. */
  readonly slots: readonly (Endings & { readonly at: number })[]
  /** Hundredths by currency, the largest number of payments first. */
  readonly volume: ReadonlyMap<string, number>
  /** What was said instead of yes, the most frequent first. */
  readonly reasons: readonly { readonly result: ResultName; readonly count: number }[]
  readonly latency: Latency
  readonly backlog: Backlog
}

const hour = 3_600_000
export const slotMilliseconds = { hour, day: 24 * hour } as const
const slotCount = { hour: 24, day: 30 } as const

/** The last hours or days, the present one included. */
export function spanUntil(now: number, by: 'hour' | 'day'): Pick<OverviewSpan, 'from' | 'to' | 'by'> {
  const length = slotMilliseconds[by]
  const to = (Math.floor(now / length) + 1) * length
  return { from: to - slotCount[by] * length, to, by }
}

export async function overviewOf(
  { reporting, searches }: Pick<Database, 'reporting' | 'searches'>,
  span: OverviewSpan,
): Promise<Overview> {
  const rows = await countOutcomes(reporting, span)
  return {
    ...endingsOf(rows, span),
    latency: await measureLatency(reporting, span),
    backlog: await countBacklog(searches, span.merchants),
  }
}

const endings: Readonly<Record<Outcome, keyof Endings>> = {
  success: 'approved',
  review: 'approved',
  rejected: 'declined',
  pending: 'other',
  invalid: 'other',
  error: 'other',
}
export const endingOutcomes = Object.groupBy(Object.keys(endings) as Outcome[], one => endings[one]) as Readonly<
  Record<keyof Endings, readonly Outcome[]>
>
const endingOf = (result: ResultName | null): keyof Endings => (result === null ? 'other' : endings[results[result].outcome])
const none: Endings = { approved: 0, declined: 0, other: 0 }
const addTo = (sums: Endings, { result, count }: OutcomeRow): Endings => {
  const ending = endingOf(result)
  return { ...sums, [ending]: sums[ending] + count }
}

export function endingsOf(
  rows: readonly OutcomeRow[],
  { from, to, by }: Pick<OverviewSpan, 'from' | 'to' | 'by'>,
): Pick<Overview, 'all' | 'slots' | 'volume' | 'reasons'> {
  const bySlot = Map.groupBy(rows, ({ slot }) => slot)
  const length = slotMilliseconds[by]
  const slots = Array.from({ length: (to - from) / length }, (_, at) => from + at * length)
  const byCurrency = Map.groupBy(
    rows.filter(({ approved }) => approved > 0),
    ({ currency }) => currency ?? '?',
  )
  const counted = (of: readonly OutcomeRow[]) => of.reduce((sum, { count }) => sum + count, 0)
  const declined = rows.filter(({ result }) => result !== null && endingOf(result) !== 'approved')
  return {
    all: rows.reduce(addTo, none),
    slots: slots.map(at => ({ at, ...(bySlot.get(at) ?? []).reduce(addTo, none) })),
    volume: new Map(
      [...byCurrency]
        .sort(([, a], [, b]) => counted(b) - counted(a))
        .map(([currency, of]) => [currency, of.reduce((sum, { approved }) => sum + approved, 0)]),
    ),
    reasons: [...Map.groupBy(declined, ({ result }) => result!)]
      .map(([result, of]) => ({ result, count: counted(of) }))
      .sort((a, b) => b.count - a.count),
  }
}

/** Approved of those that somebody decided: approved or declined. Undefined where there were none. */
export const approvalRate = ({ approved, declined }: Endings): number | undefined =>
  approved + declined === 0 ? undefined : approved / (approved + declined)
