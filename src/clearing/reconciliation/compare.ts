// What an acquirer says of a day beside what we have: a difference is a case with both sides, which closes by itself when there is none any more.

import type { Acquirer } from '../../connectors/cards/acquirer.ts'
import { type DayTotals, differencesOf } from '../../connectors/cards/iso8583/totals.ts'
import { nobody, openCase } from '../../payments/cases/cases.ts'
import { closeSettled } from '../../payments/cases/store.ts'
import type { Clock, Random } from '../../platform/clock.ts'
import { type Connection, type Database, inTransaction } from '../../platform/database/connect.ts'
import type { Log } from '../../platform/log.ts'
import { type Booking, bookingsOfDay, totalsAt, totalsOf } from './bookings.ts'
import { type DayRules, dayAfter, endOfDay } from './day.ts'
import { countUnsettled, type DayRow, findDay } from './store.ts'

export type ReconciliationParts = {
  readonly database: Pick<Database, 'work' | 'reports'>
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  /** By name. */
  readonly acquirers: ReadonlyMap<string, Acquirer>
}

export type ComparisonParts = Pick<ReconciliationParts, 'database' | 'clock' | 'random'>

/** A terminal's day as both sides have it; `differs` is empty where they agree or the acquirer has not spoken. */
export type ComparedDay = Pick<DayRow, 'day' | 'terminal' | 'currency' | 'theirs' | 'balance'> & {
  readonly ours: DayTotals
  readonly differs: readonly string[]
}

/** Ours are counted anew: what was answered since counts. */
export async function compareDay(parts: ComparisonParts, acquirer: string, rules: DayRules, day: string): Promise<ComparedDay[]> {
  const bookings = await bookingsOfDay(parts.database.reports, acquirer, day, rules)
  const groups = totalsOf(bookings)
  const stored = await findDay(parts.database.work, acquirer, day)
  const said = stored.map(row => compared(row, totalsAt(groups, row.terminal, row.currency)))
  await inTransaction(parts.database.work, async db => {
    for (const one of said) if (one.theirs) await settleDifference(db, parts, acquirer, one, bookings)
  })
  const unsaid = groups.filter(
    ({ terminal, currency }) => !stored.some(row => row.terminal === terminal && row.currency === currency),
  )
  return [
    ...said,
    ...unsaid.map(({ totals, ...group }) => ({ ...group, day, ours: totals, theirs: null, balance: null, differs: [] })),
  ]
}

/** A host that says "out of balance" to totals that have changed since, and says those that we have now, agrees with us after all. */
function compared({ day, terminal, currency, ours: sent, theirs, balance }: DayRow, ours: DayTotals): ComparedDay {
  const found = theirs ? differencesOf(ours, theirs) : []
  const refused = balance === 'out' && found.length === 0 && differencesOf(sent, theirs!).length === 0
  return { day, terminal, currency, ours, theirs, balance, differs: refused ? ['out of balance'] : found }
}

const linesMost = 100

async function settleDifference(
  db: Connection,
  parts: ComparisonParts,
  acquirer: string,
  { day, terminal, currency, ours, theirs, balance, differs }: ComparedDay,
  bookings: readonly Booking[],
): Promise<void> {
  const about = { merchantId: nobody, kind: 'totalsDiffer', subject: `${acquirer} ${day} ${terminal} ${currency}` } as const
  if (differs.length === 0) return closeSettled(db, about, parts.clock.real(), 'gateway', 'the totals agree')
  const lines = bookings
    .filter(one => one.terminal === terminal && one.currency === currency)
    .slice(0, linesMost)
    .map(({ kind, reference, trace, amount, paymentId }) => ({ kind, reference, trace, amount, paymentId }))
  await openCase(db, parts, { ...about, details: { differs, balance, ours, theirs, lines } })
}

/** How many payments of a day have no end yet: until then nobody can say what the day was. */
export const unsettledOf = (db: Connection, acquirer: string, rules: DayRules, day: string): Promise<number> =>
  countUnsettled(db, acquirer, endOfDay(dayAfter(day, -1), rules), endOfDay(day, rules))
