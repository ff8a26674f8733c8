// What the host has booked of a day, out of its own books: totals for 0510, and the settlement file that it sends. It reads messages and writes
// files by itself, as another house would, and can get both wrong.

import type { Ledger } from './ledger.ts'

export type HostBooking = {
  readonly kind: 'D' | 'DR' | 'C' | 'CR'
  readonly day: string
  readonly terminal: string
  readonly trace: string
  readonly reference: string
  readonly amount: bigint
  /** Three digits. */
  readonly currency: string
}

/** When its day ends, as it was agreed. */
export type HostDay = { readonly cutOver: string; readonly timeZone: string }

/** What can be wrong with a day or its file. */
export const settlementFaults = ['missing', 'doubled', 'otherAmount', 'foreign', 'truncated', 'wrongTrailer', 'bom'] as const
export type SettlementFault = (typeof settlementFaults)[number]

/** The day of MMDDhhmmss in UTC, of the year that is nearest to now. */
function dayOfTransmission(transmission: string, now: number, { cutOver, timeZone }: HostDay): string {
  const [month, day, hour, minute, second] = transmission.match(/\d\d/g)!.map(Number) as [number, number, number, number, number]
  const thisYear = new Date(now).getUTCFullYear()
  const moments = [thisYear - 1, thisYear, thisYear + 1].map(year => Date.UTC(year, month - 1, day, hour, minute, second))
  const at = moments.sort((a, b) => Math.abs(a - now) - Math.abs(b - now))[0]!
  const [date, time] = new Date(at).toLocaleString('sv-SE', { timeZone }).split(' ') as [string, string]
  if (time.slice(0, 5) < cutOver) return date
  return new Date(Date.parse(date) + 86_400_000).toISOString().slice(0, 10)
}

/** Everything that moved cleared money, in the order in which it was booked. */
export function hostBookings(ledger: Ledger, rules: HostDay, now: number, fault?: SettlementFault): HostBooking[] {
  /** By name and card: what of a purchase, capture or credit still stands. */
  const standing = new Map<string, { kind: 'D' | 'C'; amount: bigint }>()
  const bookings: HostBooking[] = []
  for (const { line } of ledger.entries()) {
    const [, trace, transmission, terminal] = line.key.split(' ') as [string, string, string, string]
    const book = (kind: HostBooking['kind'], amount: bigint) => {
      const reference = line.rrn === '' ? `H${trace}${transmission.slice(-5)}` : line.rrn
      const day = line.day ?? dayOfTransmission(transmission, now, rules)
      bookings.push({ kind, day, terminal, trace, reference, amount, currency: line.currency })
    }
    if (line.kind === 'purchase' || line.kind === 'capture' || line.kind === 'credit') {
      const kind = line.kind === 'credit' ? 'C' : 'D'
      standing.set(`${line.name} ${line.card}`, { kind, amount: BigInt(line.amount) })
      book(kind, BigInt(line.amount))
    }
    const original = line.kind === 'reversal' ? standing.get(`${line.original} ${line.card}`) : undefined
    const stays = BigInt(line.remaining ?? 0)
    if (!original || stays >= original.amount) continue
    book(`${original.kind}R`, original.amount - stays)
    original.amount = stays
  }
  const last = bookings.at(-1)
  if (!last) return bookings
  if (fault === 'missing') return bookings.slice(0, -1)
  if (fault === 'doubled') return [...bookings, last]
  if (fault === 'otherAmount') return [...bookings.slice(0, -1), { ...last, amount: last.amount + 1n }]
  if (fault === 'foreign') return [...bookings, { ...last, trace: '424242', reference: 'NOBODYS00001' }]
  return bookings
}

const sums = (bookings: readonly HostBooking[], kind: HostBooking['kind']) => {
  const amounts = bookings.filter(one => one.kind === kind).map(({ amount }) => amount)
  return { count: BigInt(amounts.length), amount: amounts.reduce((total, one) => total + one, 0n) }
}

/** The answer to 0500 in the words of 1987: its own totals, and whether they are those that it was told. */
export function answerTotals(
  asked: ReadonlyMap<number, string>,
  all: readonly HostBooking[],
): { code: string; more: [number, string][] } {
  const terminal = (asked.get(41) ?? '').trim()
  const bookings = all.filter(
    one => one.day.slice(5).replace('-', '') === asked.get(15) && one.terminal === terminal && one.currency === asked.get(50),
  )
  const [debit, debitReversal, credit, creditReversal] = (['D', 'DR', 'C', 'CR'] as const).map(kind => sums(bookings, kind)) as [
    ReturnType<typeof sums>,
    ReturnType<typeof sums>,
    ReturnType<typeof sums>,
    ReturnType<typeof sums>,
  ]
  const net = debit.amount - debitReversal.amount - credit.amount + creditReversal.amount
  const digits = (amount: bigint, length: number) => String(amount).padStart(length, '0')
  const totals: [number, string][] = [
    [74, digits(credit.count, 10)],
    [75, digits(creditReversal.count, 10)],
    [76, digits(debit.count, 10)],
    [77, digits(debitReversal.count, 10)],
    [86, digits(credit.amount, 16)],
    [87, digits(creditReversal.amount, 16)],
    [88, digits(debit.amount, 16)],
    [89, digits(debitReversal.amount, 16)],
    [97, `${net < 0n ? 'C' : 'D'}${digits(net < 0n ? -net : net, 16)}`],
  ]
  const agrees = totals.every(([field, value]) => asked.get(field) === value)
  return { code: agrees ? '00' : '95', more: [[66, agrees ? '1' : '2'], ...totals] }
}

export const hostFileLayouts = ['csv', 'fixed'] as const
export type HostFileLayout = (typeof hostFileLayouts)[number]

/** The settlement file of a day: as columns with a heading and a last line, or in fixed places with records H, D and T. */
export function settlementText(
  all: readonly HostBooking[],
  day: string,
  acquirerId: string,
  layout: HostFileLayout,
  fault?: SettlementFault,
): string {
  const bookings = all.filter(one => one.day === day)
  const total = bookings.reduce((sum, { amount }) => sum + amount, 0n)
  const sum = fault === 'wrongTrailer' ? total + 1n : total
  const digits = (value: bigint | number | string, length: number) => String(value).padStart(length, '0')
  const lines =
    layout === 'csv'
      ? [
          'DATE,ACQUIRER,TERMINAL,STAN,RRN,TYPE,AMOUNT,CURRENCY',
          ...bookings.map(one =>
            [day, acquirerId, one.terminal, one.trace, one.reference, one.kind, one.amount, one.currency].join(','),
          ),
          `TOTAL,${bookings.length},${sum}`,
        ]
      : [
          `H${day.replaceAll('-', '')}${digits(acquirerId, 11)}`.padEnd(60),
          ...bookings.map(one =>
            [
              `D${one.terminal.padEnd(8)}${one.trace}${one.reference.padEnd(12)}${one.kind.padEnd(2)}`,
              `${digits(one.amount, 12)}${one.currency}`,
            ]
              .join('')
              .padEnd(60),
          ),
          `T${digits(bookings.length, 9)}${digits(sum, 18)}`.padEnd(60),
        ]
  const text = `${lines.join('\r\n')}\r\n`
  if (fault === 'truncated') return text.slice(0, Math.floor(text.length * 0.7))
  return fault === 'bom' ? `\uFEFF${text}` : text
}
