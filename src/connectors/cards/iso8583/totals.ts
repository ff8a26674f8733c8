// The totals of a day as messages carry them: 0500, and 0520 where it has to be said again. Pure.

import { currencies } from '../../../contract/currencies.ts'
import { currencyOfNumber } from '../../minorUnits.ts'
import { type BookingKind, bookingKinds } from './bookingKinds.ts'
import type { Message } from './codec.ts'
import type { Dialect } from './dialects.ts'
import type { AcquirerAccountData } from './forwarding.ts'
import { asProfiled } from './messages.ts'
import { namedDay, transmitted, versionOf } from './versions.ts'

/** Where the number and the amount of each stand, in both editions. The net amount is that of debits less credits; `D` says that it is above zero. */
const places: Readonly<Record<BookingKind, readonly [number: number, amount: number]>> = {
  credit: [74, 86],
  creditReversal: [75, 87],
  debit: [76, 88],
  debitReversal: [77, 89],
}
const net = 97

/** How many, and minor units. */
export type KindTotal = { readonly count: number; readonly amount: number }
export type DayTotals = Readonly<Record<BookingKind, KindTotal>>

/** As far as the other side says them. */
export type HostTotals = { readonly [Kind in BookingKind]?: Partial<KindTotal> } & { readonly net?: number }

export type DayOfTerminal = {
  /** `yyyy-MM-dd`. */
  readonly day: string
  readonly terminal: string
  readonly currency: string
}

/** What a host concludes; `unknown` when it does not say. */
export type HostBalance = 'in' | 'out' | 'unknown'

export const netOf = ({ debit, debitReversal, credit, creditReversal }: DayTotals): number =>
  debit.amount - debitReversal.amount - credit.amount + creditReversal.amount

/** 0500 the first time, then 0520 and 0521: a request that was lost is not asked again but told. */
export function totalsMessage(
  { day, terminal, currency }: DayOfTerminal,
  totals: DayTotals,
  { stan, at, attempt }: { readonly stan: string; readonly at: number; readonly attempt: number },
  account: AcquirerAccountData,
  dialect: Dialect,
): Message {
  const version = versionOf(dialect)
  const sum = netOf(totals)
  const fields = new Map<number, string>([
    [7, transmitted(at)],
    [11, stan],
    ...version.localTime(at, dialect.timeZone),
    ...version.reconciliation.day(day),
    [32, account.acquirerId],
    [41, terminal.padEnd(8)],
    [42, account.merchantId.padEnd(15)],
    [50, currencies.get(currency)!.number],
    ...bookingKinds.flatMap((kind): [number, string][] => [
      [places[kind][0], String(totals[kind].count).padStart(10, '0')],
      [places[kind][1], String(totals[kind].amount).padStart(16, '0')],
    ]),
    [net, `${sum < 0 ? 'C' : 'D'}${String(Math.abs(sum)).padStart(16, '0')}`],
  ])
  const type = ['500', '520', '521'][Math.min(attempt, 3) - 1]!
  return { type: `${version.digit}${type}`, fields: asProfiled('reconciliation', fields, dialect) }
}

/** What a host says of a day. */
export function readTotals({ fields }: Message, dialect: Dialect): { theirs: HostTotals; balance: HostBalance } {
  const { balance } = versionOf(dialect).reconciliation
  const number = (field: number) => (fields.has(field) ? Number(fields.get(field)) : undefined)
  const kinds = bookingKinds.flatMap(kind => {
    const [count, amount] = places[kind].map(number)
    const said = { ...(count !== undefined && { count }), ...(amount !== undefined && { amount }) }
    return Object.keys(said).length === 0 ? [] : [[kind, said] as const]
  })
  const [sign, digits] = [fields.get(net)?.[0], Number(fields.get(net)?.slice(1))]
  const [field, inBalance] = balance
  const word = fields.get(field)
  return {
    theirs: { ...Object.fromEntries(kinds), ...(sign !== undefined && { net: sign === 'C' ? -digits : digits }) },
    // Whatever it says but that it is in balance, for example that it could not tell.
    balance: word === inBalance ? 'in' : word !== undefined || fields.get(39) === reconcileError ? 'out' : 'unknown',
  }
}

/** A host that has heard and says neither its totals nor whether they agree has not spoken. */
export const saysNothing = ({ theirs, balance }: ReturnType<typeof readTotals>): boolean =>
  balance === 'unknown' && Object.keys(theirs).length === 0

/** DE39 of 1987 of a host that has no DE66. */
const reconcileError = '95'

/** Which day a host speaks of that asks for ours; undefined where it does not say it. */
export function readDay({ fields }: Message, dialect: Dialect, now: number): DayOfTerminal | undefined {
  const day = namedDay(fields.get(versionOf(dialect).reconciliation.dayField) ?? '', now)
  const currency = currencyOfNumber(fields.get(50) ?? fields.get(49) ?? '')
  const terminal = (fields.get(41) ?? '').trim()
  return day === undefined || currency === undefined || terminal === '' ? undefined : { day, terminal, currency }
}

/** Whether an answer ends the matter: a host that says 94 has heard it before. */
export const endsDay = ({ fields }: Message, { version }: Pick<Dialect, 'version'>): boolean =>
  version === '1993' ? fields.get(39)?.startsWith('5') === true : ['00', '94', reconcileError].includes(fields.get(39) ?? '')

/** Names of what the other side says otherwise; what it leaves out differs in nothing. */
export function differencesOf(ours: DayTotals, theirs: HostTotals): string[] {
  const differing = bookingKinds.flatMap(kind =>
    (['count', 'amount'] as const)
      .filter(what => theirs[kind]?.[what] !== undefined && theirs[kind][what] !== ours[kind][what])
      .map(what => `${kind} ${what}`),
  )
  return theirs.net === undefined || theirs.net === netOf(ours) ? differing : [...differing, 'net']
}
