// The end of an acquirer's day, as due work that any process may take: one row for each acquirer, which goes on from day to day, so that a day
// that ended while nothing ran is not left out.

import type { Acquirer, SaidOfDay } from '../../connectors/cards/acquirer.ts'
import { type DayOfTerminal, saysNothing } from '../../connectors/cards/iso8583/totals.ts'
import { nobody, openCase } from '../../payments/cases/cases.ts'
import { closeSettled } from '../../payments/cases/store.ts'
import type { Clock } from '../../platform/clock.ts'
import { addDue } from '../../platform/due/store.ts'
import { backOff, type DueHandler } from '../../platform/due/worker.ts'
import { bookingsOfDay, totalsAt, totalsOf } from './bookings.ts'
import { compareDay, type ReconciliationParts, unsettledOf } from './compare.ts'
import { type DayRules, dayAfter, dayOf, endOfDay } from './day.ts'
import { missLines } from './settlement.ts'
import { countTelling, type DayRow, findDay, insertDay, insertWaitingDay, storeTheirs, subjectOf } from './store.ts'

const minute = 60_000
/** So long the end of a day waits for payments that have none; then it is said as it is. */
const patienceMinutes = 60
/** So many times nobody listens, and somebody should know. */
const attemptsBeforeCase = 5

/** Called at every start: each acquirer that reconciles has a day that waits, and what hosts say by themselves is heard. */
export async function reconcileDays(parts: ReconciliationParts): Promise<void> {
  const { database, clock, acquirers, log } = parts
  for (const [name, acquirer] of acquirers) {
    const hear = oneByOne(clock, (day, said) =>
      hearDay(parts, acquirer, day, said).catch((error: Error) =>
        log.warn({ why: `${name}: its totals of ${day.day} could not be kept: ${error.message}` }, 'acquirer'),
      ),
    )
    // Nothing is kept of terminals that a host makes up.
    acquirer.hearDays((day, said) => acquirer.options.terminals.includes(day.terminal) && hear(day, said))
    const rules = acquirer.options.dialect.reconciliation
    if (rules.by === 'none') continue
    const day = dayOf(clock.real(), rules)
    await insertWaitingDay(database.work, name, day, endOfDay(day, rules) + rules.afterMinutes * minute)
  }
}

/** Days back of which a host may speak by itself. */
const daysBack = 40
const waitingMost = 100

type HearDay = (day: DayOfTerminal, said: SaidOfDay) => void

/** One word of a host after the other, of each terminal's day the last; days long gone and to come are none of ours. */
function oneByOne(clock: Clock, hear: (...heard: Parameters<HearDay>) => Promise<void>): HearDay {
  const waiting = new Map<string, Parameters<HearDay>>()
  let isHearing = false
  const end = () => {
    isHearing = false
  }
  const goOn = async (): Promise<void> => {
    for (const [key, heard] of waiting) {
      waiting.delete(key)
      await hear(...heard)
    }
  }
  return (day, said) => {
    const today = new Date(clock.real()).toISOString().slice(0, 10)
    if (day.day < dayAfter(today, -daysBack) || day.day > dayAfter(today, 2)) return
    const key = `${day.day} ${day.terminal} ${day.currency}`
    if (waiting.size >= waitingMost && !waiting.has(key)) return
    waiting.set(key, [day, said])
    if (isHearing) return
    isHearing = true
    goOn().then(end, end)
  }
}

/** Due work of kind `cutOver`: an acquirer's day has ended. */
export const cutOver: DueHandler<ReconciliationParts> = async (parts, { details }) => {
  const now = parts.clock.real()
  const { acquirer: name, day } = details as { acquirer: string; day: string }
  const acquirer = parts.acquirers.get(name)
  if (!acquirer) return { again: now + 60 * minute } // it has left the file, and may come back
  const rules = acquirer.options.dialect.reconciliation
  if (rules.by === 'none') return 'done'
  const due = endOfDay(day, rules) + rules.afterMinutes * minute
  if (now < due) return { again: due }
  const pause =
    rules.by === 'message' ? await sayTotals(parts, acquirer, day, now - due) : await missFile(parts, name, rules, day)
  const next = dayAfter(day)
  const nextDue = endOfDay(next, rules) + rules.afterMinutes * minute
  // A host that does not listen for a whole day keeps its case, and the next day is told.
  return pause > 0 && now + pause < nextDue ? { again: now + pause } : { again: nextDue, details: { day: next } }
}

/** The file of a day should be here, and should have all that we have. */
async function missFile(parts: ReconciliationParts, name: string, rules: DayRules, day: string): Promise<0> {
  const found = await missLines(parts, { name, rules }, day)
  const about = { merchantId: nobody, kind: 'settlementMissing', subject: `${name} ${day}` } as const
  if (found === undefined) await openCase(parts.database.work, parts, { ...about, details: { acquirer: name, day } })
  return 0
}

/** Says what we have of a day. How long to wait before more is said, milliseconds; 0 when all was heard. */
async function sayTotals(parts: ReconciliationParts, acquirer: Acquirer, day: string, late: number): Promise<number> {
  const { name, dialect } = acquirer.options
  const rules = dialect.reconciliation
  const db = parts.database.work
  if (late < patienceMinutes * minute && (await unsettledOf(db, name, rules, day)) > 0) return minute
  const before = await findDay(db, name, day)
  if (!before.some(({ attempts }) => attempts > 0)) {
    const groups = totalsOf(await bookingsOfDay(parts.database.reports, name, day, rules))
    const madeAt = Math.floor(parts.clock.real() / 1000) * 1000
    for (const [at, { terminal, currency, totals }] of groups.entries())
      await insertDay(db, name, { day, terminal, currency, ours: totals, trace: traceOfRow(before.length + at), madeAt })
  }
  const open = (await findDay(db, name, day)).filter(({ attempts, answeredAt }) => attempts === 0 || answeredAt === null)
  const heard = await Promise.all(open.map(row => sayTotal(parts, acquirer, row)))
  await compareDay(parts, name, rules, day)
  return heard.every(Boolean) ? 0 : Math.min(...open.map(({ attempts }) => backOff(attempts + 1)))
}

// Payments have numbers up to 999000.
const traceOfRow = (at: number): string => String(999_001 + (at % 999))

/** Whether the host has heard it. An attempt is counted before it is made, so that a process that comes after a dead one repeats what may have been heard. */
async function sayTotal(parts: ReconciliationParts, acquirer: Acquirer, row: DayRow): Promise<boolean> {
  const { name } = acquirer.options
  const db = parts.database.work
  if (!(await countTelling(db, name, row))) return false
  const attempt = row.attempts + 1
  const said = await acquirer.closeDay(row, row.ours, { stan: row.trace, at: row.madeAt, attempt })
  const subject = `${name} ${row.day} ${row.terminal} ${row.currency}`
  const about = { merchantId: nobody, kind: 'totalsUnheard', subject } as const
  if ('why' in said) {
    parts.log.warn({ why: `${name}: the totals of ${row.day}: ${said.why}`, attempt }, 'acquirer')
    if (attempt >= attemptsBeforeCase) await openCase(db, parts, { ...about, details: { why: said.why, ours: row.ours } })
    return false
  }
  await storeTheirs(db, name, row, said, parts.clock.real())
  await closeSettled(db, about, parts.clock.real(), 'gateway', 'it was acknowledged')
  return true
}

/** A host says by itself what it has: that is kept, and compared when nothing of the day is open. */
async function hearDay(parts: ReconciliationParts, acquirer: Acquirer, day: DayOfTerminal, said: SaidOfDay): Promise<void> {
  if (saysNothing(said)) return
  const { name, dialect } = acquirer.options
  const db = parts.database.work
  const now = parts.clock.real()
  const groups = totalsOf(await bookingsOfDay(parts.database.reports, name, day.day, dialect.reconciliation))
  const rows = await findDay(db, name, day.day)
  const ours = totalsAt(groups, day.terminal, day.currency)
  await insertDay(db, name, { ...day, ours, trace: traceOfRow(rows.length), madeAt: Math.floor(now / 1000) * 1000 })
  await storeTheirs(db, name, day, said, now)
  await addDue(db, 'compareDay', nobody, subjectOf(name, day.day), now, { acquirer: name, day: day.day })
}

/** Due work of kind `compareDay`. */
export const compareDue: DueHandler<ReconciliationParts> = async (parts, { details, attempts }) => {
  const { acquirer: name, day } = details as { acquirer: string; day: string }
  const acquirer = parts.acquirers.get(name)
  if (!acquirer) return 'done'
  const rules = acquirer.options.dialect.reconciliation
  const open = attempts < patienceMinutes && (await unsettledOf(parts.database.work, name, rules, day)) > 0
  if (open) return { again: parts.clock.real() + minute }
  await compareDay(parts, name, rules, day)
  return 'done'
}
