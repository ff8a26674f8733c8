// A settlement file as text, by the layout of its acquirer's profile. What is not whole is refused as a whole. Pure.

import type { BookingKind } from '../../connectors/cards/iso8583/bookingKinds.ts'
import type { Dialect } from '../../connectors/cards/iso8583/dialects.ts'
import { currencyOfNumber } from '../../connectors/minorUnits.ts'
import { currencies } from '../../contract/currencies.ts'
import { isCalendarDay } from '../../contract/formats.ts'
import { rowsOf, tooManyRows } from '../rows.ts'
import type { Steps } from '../steps.ts'

export type SettlementLayout = NonNullable<Dialect['settlementFile']>

export type SettlementLine = {
  /** The line of the file, from 1. */
  readonly at: number
  readonly day: string
  readonly kind: BookingKind
  /** DE37. */
  readonly reference: string
  /** DE11 and DE41, where the file has them. */
  readonly trace?: string
  readonly terminal?: string
  /** Minor units. */
  readonly amount: number
  readonly currency: string
  /** 1, or how often the file has said the same already, and one more. */
  readonly occurrence: number
}

export type SettlementFile = { readonly day: string; readonly lines: readonly SettlementLine[] }

type What = SettlementLayout['line']['parts'][number]['what']
type RecordValues = ReadonlyMap<What, string>

const forms: Readonly<Partial<Record<What, RegExp>>> = {
  acquirerId: /^\d{1,11}$/,
  terminal: /^[\x21-\x7e]{1,8}$/,
  trace: /^\d{1,6}$/,
  reference: /^[0-9A-Za-z]{1,12}$/,
  count: /^\d{1,12}$/,
  sum: /^\d{1,18}([.,]\d{1,3})?$/,
}

class Broken extends Error {}

export function* readSettlement(
  text: string,
  layout: SettlementLayout,
  acquirerId: string,
): Steps<SettlementFile | { readonly broken: string }> {
  try {
    return yield* readWhole(text, layout, acquirerId)
  } catch (error) {
    if (error instanceof Broken) return { broken: error.message }
    throw error
  }
}

function* readWhole(text: string, layout: SettlementLayout, acquirerId: string): Steps<SettlementFile> {
  const rows = rowsOf(text)
  if (!rows) throw new Broken(tooManyRows)
  if (rows.length === 0) throw new Broken('it is empty')
  const heading = layout.layout === 'csv' ? cellsOf(rows[0] ?? '', layout) : undefined
  if (heading && new Set(heading).size < heading.length) throw new Broken('a column stands there twice')
  const [first, last] = [heading ? 1 : 0, layout.trailer ? rows.length - 1 : rows.length]
  const header = layout.header ? recordOf(rows[0] ?? '', 1, layout.header, layout) : undefined
  const trailer = layout.trailer ? recordOf(rows[last] ?? '', last + 1, layout.trailer, layout) : undefined
  const occurrences = new Map<string, number>()
  const lines: SettlementLine[] = []
  let total = 0n
  for (let at = (header ? 1 : first) + 1; at <= last; at++) {
    const values = new Map([...(header ?? []), ...recordOf(rows[at - 1]!, at, layout.line, layout, heading)])
    const line = lineOf(values, at, layout, acquirerId)
    const same = `${line.kind} ${line.reference} ${line.trace} ${line.terminal}`
    occurrences.set(same, (occurrences.get(same) ?? 0) + 1)
    lines.push({ ...line, occurrence: occurrences.get(same)! })
    total += BigInt(line.amount)
    yield
  }
  if (trailer?.has('count') && Number(trailer.get('count')) !== lines.length)
    throw new Broken(`it has ${lines.length} lines, its end says ${trailer.get('count')}`)
  const said = trailer?.get('sum')?.replace(/[.,]/, '')
  if (said !== undefined && BigInt(said) !== total)
    throw new Broken(`its lines are ${total} together, its end says ${BigInt(said)}`)
  if (header) checkAcquirer(header, 1, acquirerId)
  const days = new Set([...(header ? [dayIn(header, 1, layout)] : []), ...lines.map(({ day }) => day)])
  if (days.size !== 1) throw new Broken(days.size === 0 ? 'it has no line that names its day' : 'its lines are of several days')
  return { day: [...days][0]!, lines }
}

function recordOf(
  row: string,
  at: number,
  { mark, parts }: SettlementLayout['line'],
  layout: SettlementLayout,
  heading?: readonly string[],
): RecordValues {
  const begins = mark === undefined || (layout.layout === 'csv' ? cellsOf(row, layout)[0] === mark : row.startsWith(mark))
  if (!begins) throw new Broken(`line ${at} does not begin with ${mark}: the file is cut off, or is another`)
  const values = layout.layout === 'csv' ? cellValues(row, at, parts, mark, layout, heading) : placeValues(row, at, parts, mark!)
  for (const [what, value] of values)
    if (forms[what] && !forms[what].test(value)) throw new Broken(`line ${at} has no readable ${what}`)
  return values
}

function cellsOf(row: string, { separator }: SettlementLayout): string[] {
  return row.split(separator).map(cell => cell.trim().replace(/^"([^"]*)"$/, '$1'))
}

function cellValues(
  row: string,
  at: number,
  parts: SettlementLayout['line']['parts'],
  mark: string | undefined,
  layout: SettlementLayout,
  heading: readonly string[] | undefined,
): RecordValues {
  const cells = cellsOf(row, layout)
  if (heading && cells.length !== heading.length)
    throw new Broken(`line ${at} has ${cells.length} columns, the heading has ${heading.length}`)
  return new Map(
    parts.map(({ what, column }, place) => {
      const index = column === undefined ? place + (mark === undefined ? 0 : 1) : (heading ?? []).indexOf(column)
      if (cells[index] === undefined) throw new Broken(`line ${at} has no column ${column ?? what}`)
      return [what, cells[index]]
    }),
  )
}

/** Blanks at the end of a line may have been cut on the way; some host systems fill up with NUL. */
function placeValues(row: string, at: number, parts: SettlementLayout['line']['parts'], mark: string): RecordValues {
  const length = parts.reduce((total, part) => total + part.length!, mark.length)
  if (row.length > length) throw new Broken(`line ${at} is ${row.length} long, not ${length}`)
  const padded = row.replaceAll('\0', ' ').padEnd(length)
  let from = mark.length
  return new Map(
    parts.map(({ what, length }) => {
      const value = padded.slice(from, from + length!).trim()
      from += length!
      return [what, value]
    }),
  )
}

function lineOf(
  values: RecordValues,
  at: number,
  layout: SettlementLayout,
  acquirerId: string,
): Omit<SettlementLine, 'occurrence'> {
  checkAcquirer(values, at, acquirerId)
  const word = values.get('kind')!
  const kind = Object.hasOwn(layout.kinds, word) ? layout.kinds[word] : undefined
  if (!kind) throw new Broken(`line ${at} is of a kind that its layout does not name`)
  const money = values.get('currency')!
  const currency = /^\d{1,3}$/.test(money) ? currencyOfNumber(money.padStart(3, '0')) : currencies.get(money)?.code
  if (currency === undefined) throw new Broken(`line ${at} has no readable currency`)
  const [trace, terminal] = [values.get('trace'), values.get('terminal')]
  return {
    at,
    day: dayIn(values, at, layout),
    kind,
    reference: values.get('reference')!,
    ...(trace !== undefined && { trace: trace.padStart(6, '0') }),
    ...(terminal !== undefined && { terminal }),
    amount: amountIn(values.get('amount')!, at, layout, currencies.get(currency)!.exponent),
    currency,
  }
}

function checkAcquirer(values: RecordValues, at: number, acquirerId: string): void {
  if (BigInt(values.get('acquirerId')!) !== BigInt(acquirerId))
    throw new Broken(`line ${at} is of the acquirer ${values.get('acquirerId')}, not of ${acquirerId}`)
}

function amountIn(text: string, at: number, { amounts }: SettlementLayout, exponent: number): number {
  const form = amounts === 'minorUnits' || exponent === 0 ? /^\d{1,15}$/ : new RegExp(`^\\d{1,12}[.,]\\d{${exponent}}$`)
  if (!form.test(text)) throw new Broken(`line ${at} has no readable amount`)
  return Number(text.replace(/[.,]/, ''))
}

/** A day of this century that there is: others are slips, and no payment is of one. */
export const isBusinessDay = (day: string): boolean => /^20\d\d-\d\d-\d\d$/.test(day) && isCalendarDay(day)

/** Two digits of a year are those of this century. */
function dayIn(values: RecordValues, at: number, { days }: SettlementLayout): string {
  const text = values.get('day') ?? ''
  const digit = (letter: string) => [...days].map((one, index) => (one === letter ? text[index] : '')).join('')
  const year = digit('y')
  const day = `${year.length === 2 ? `20${year}` : year}-${digit('M')}-${digit('d')}`
  const isRight = text.length === days.length && [...days].every((one, index) => /[yMd]/.test(one) || one === text[index])
  if (!isRight || !isBusinessDay(day)) throw new Broken(`line ${at} has no readable day`)
  return day
}
