// What an acquirer must have in its books of a day, out of what was sent to it and how that was answered: the same whenever it is asked again.
// The acquirer's own day counts where its answer names it (DE15), else the day in which the message was made (DE7).

import type { BookingKind } from '../../connectors/cards/iso8583/bookingKinds.ts'
import type { DayTotals } from '../../connectors/cards/iso8583/totals.ts'
import { retrievalReference } from '../../connectors/cards/iso8583/versions.ts'
import type { ConnectorState, OperationType, PreparedStates } from '../../connectors/connector.ts'
import { minorUnits } from '../../connectors/minorUnits.ts'
import type { Connection } from '../../platform/database/connect.ts'
import { type DayRules, dayAfter, dayOf, endOfDay } from './day.ts'
import { findFiledOn, findMoved, findSettledOn } from './store.ts'

export type Booking = {
  readonly merchantId: string
  readonly paymentId: string
  readonly kind: BookingKind
  readonly day: string
  readonly terminal: string
  readonly trace: string
  /** DE37: the host's own, or ours. */
  readonly reference: string
  /** Minor units. */
  readonly amount: number
  readonly currency: string
}

/** A payment that moved cleared money at an acquirer, as it is stored. */
export type Moved = {
  readonly merchantId: string
  readonly id: string
  readonly type: OperationType
  /** Of the first payment of the chain. */
  readonly rootType: OperationType
  /** Hundredths. */
  readonly amount: number
  readonly currency: string
  readonly prepared: PreparedStates | null
  readonly kept: ConnectorState
  /** It is not approved: the acquirer had booked it and took it back. */
  readonly takenBack: boolean
  /** A capture for a file; the day of the file, once it is in one: before, the acquirer has not got it. Not one that it has in a file that is not known here. */
  readonly collected: boolean
  readonly filedOn: string | null
}

const ofType: Readonly<Partial<Record<OperationType, BookingKind>>> = {
  DB: 'debit',
  CP: 'debit',
  RF: 'credit',
  CD: 'credit',
}
const ofReversed: Readonly<Partial<Record<OperationType, BookingKind>>> = { DB: 'debitReversal', CD: 'creditReversal' }

/** A reversal of a hold moves no cleared money. */
function kindsOf({ type, rootType, takenBack }: Moved): BookingKind[] {
  const kinds = takenBack ? [ofType[type], ofReversed[type]] : [type === 'RV' ? ofReversed[rootType] : ofType[type]]
  return kinds.filter(kind => kind !== undefined)
}

/** What an acquirer was sent of a payment becomes bookings. */
export function bookingsOf(moved: Moved, acquirer: string, rules: DayRules): Booking[] {
  const { kept, prepared } = moved
  const trace = kept.acquirer === acquirer && kept.stan !== undefined ? kept : prepared?.find(one => one.acquirer === acquirer)
  const amount = minorUnits(kept.approvedAmount === undefined ? moved.amount : Number(kept.approvedAmount), moved.currency)
  if (moved.collected && moved.filedOn === null) return []
  if (!trace || typeof amount === 'string') return []
  const [terminal, stan, at] = [trace.terminal!, trace.stan!, Number(trace.at)]
  return kindsOf(moved).map(kind => ({
    merchantId: moved.merchantId,
    paymentId: moved.id,
    kind,
    day: moved.filedOn ?? kept.settledOn ?? dayOf(at, rules),
    terminal,
    trace: stan,
    reference: kept.hostReference ?? retrievalReference(at, stan),
    amount: Number(amount),
    currency: moved.currency,
  }))
}

/** All of a day, the oldest first. */
export async function bookingsOfDay(db: Connection, acquirer: string, day: string, rules: DayRules): Promise<Booking[]> {
  const [from, to] = [endOfDay(dayAfter(day, -1), rules), endOfDay(day, rules)]
  const named = [...(await findSettledOn(db, acquirer, day)), ...(await findFiledOn(db, acquirer, day))]
  const known = new Set(named.map(({ id }) => id))
  const made = await findMoved(db, acquirer, from, to)
  return [...made.filter(({ id }) => !known.has(id)), ...named]
    .flatMap(moved => bookingsOf(moved, acquirer, rules))
    .filter(booking => booking.day === day)
}

const nothing: DayTotals = {
  debit: { count: 0, amount: 0 },
  debitReversal: { count: 0, amount: 0 },
  credit: { count: 0, amount: 0 },
  creditReversal: { count: 0, amount: 0 },
}

export type TerminalTotals = { readonly terminal: string; readonly currency: string; readonly totals: DayTotals }

/** Bookings as totals of each terminal and currency, in the order of their names. */
export function totalsOf(bookings: readonly Booking[]): TerminalTotals[] {
  const groups = new Map<string, TerminalTotals>()
  for (const { terminal, currency, kind, amount } of bookings) {
    const key = `${terminal} ${currency}`
    const { totals } = groups.get(key) ?? { totals: nothing }
    const { count, amount: sum } = totals[kind]
    groups.set(key, { terminal, currency, totals: { ...totals, [kind]: { count: count + 1, amount: sum + amount } } })
  }
  return [...groups].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, group]) => group)
}

/** Totals of a terminal of which we have nothing are zeros. */
export const totalsAt = (groups: readonly TerminalTotals[], terminal: string, currency: string): DayTotals =>
  groups.find(one => one.terminal === terminal && one.currency === currency)?.totals ?? nothing
