// An acquirer's report of chargebacks as text: one line each, columns by name. docs/reference/chargeback-report.md describes it. Pure.

import { hundredths } from '../../contract/amounts.ts'
import { knownBrands } from '../../contract/brands.ts'
import { holdsCardData } from '../../contract/cardNumbers.ts'
import { isCalendarDay } from '../../contract/formats.ts'
import { isChargeback, type ResultName, resultOfCode } from '../../contract/results/results.ts'
import type { FileLine } from '../import.ts'
import { rowsOf, tooManyRows } from '../rows.ts'
import type { Steps } from '../steps.ts'

export type ReportLine = {
  readonly report: string
  readonly line: number
  readonly type: 'CB' | 'CR'
  /** Absent: the reference is an id of ours. Else it is a retrieval reference (DE37) at this acquirer. */
  readonly acquirer?: string
  readonly reference: string
  /** Hundredths, above zero. */
  readonly amount: number
  readonly currency: string
  readonly reason: string
  /** yyyy-MM-dd: when the acquirer booked it. */
  readonly date: string
}

const columns: Readonly<Record<string, readonly [form: { test(text: string): boolean }, rule: string]>> = {
  report: [/^[A-Za-z0-9._-]{1,64}$/, 'must be 1 to 64 letters, digits, dots, hyphens or underscores'],
  line: [/^[1-9]\d{0,8}$/, 'must be a number from 1'],
  type: [/^C[BR]$/, 'must be CB or CR'],
  acquirer: [/^([a-z0-9-]{1,64})?$/, 'must be the name of an acquirer, or empty'],
  reference: [
    /^([0-9a-f]{32}|[0-9A-Za-z]{1,12})$/,
    'must be a payment id, or with an acquirer a retrieval reference of at most 12 letters and digits',
  ],
  amount: [/^(?=.*[1-9])\d{1,10}(\.\d{2})?$/, 'must be above zero, with no or two decimals'],
  currency: [/^[A-Z]{3}$/, 'must be 3 upper-case letters'],
  reason: [/^[A-Za-z0-9.]{0,16}$/, 'must be at most 16 letters, digits or dots'],
  date: [{ test: isDay }, 'must be yyyy-MM-dd, a day that there is, from 2000 on'],
}

/** What others chose, and is kept and told in clear. */
const texts = ['report', 'acquirer', 'reason']

function isDay(text: string): boolean {
  return /^[2-9]\d{3}-\d\d-\d\d$/.test(text) && isCalendarDay(text)
}

/** Undefined when the first line is not the heading. */
export function* readReport(text: string): Steps<FileLine<ReportLine>[] | undefined> {
  const rows = rowsOf(text)
  if (!rows) return [{ at: 1, malformed: tooManyRows }]
  const names = (rows[0] ?? '').split(',')
  if (names.length !== Object.keys(columns).length || !Object.keys(columns).every(name => names.includes(name))) return undefined
  const read: FileLine<ReportLine>[] = []
  for (let at = 2; at <= rows.length; at++) {
    const row = rows[at - 1]!
    if (row.trim() !== '') read.push({ at, ...readLine(row, names) })
    yield
  }
  return read
}

function readLine(text: string, names: readonly string[]): { subject: string; line: ReportLine } | { malformed: string } {
  const cells = text.split(',')
  if (cells.length !== names.length) return { malformed: `has ${cells.length} columns, the heading has ${names.length}` }
  const given = new Map(names.map((name, at) => [name, cells[at]!.trim()]))
  const value = (name: string) => given.get(name)!
  const wrong = Object.entries(columns).find(([name, [form]]) => !form.test(value(name)))
  if (wrong) return { malformed: `${wrong[0]} ${wrong[1][1]}` }
  const numbered = texts.find(name => holdsCardData(value(name), knownBrands))
  if (numbered) return { malformed: `${numbered} must not hold a card number` }
  if ((value('acquirer') === '') !== (value('reference').length === 32))
    return { malformed: `reference ${columns.reference![1]}` }
  return {
    subject: `${value('report')} line ${Number(value('line'))}`,
    line: {
      report: value('report'),
      line: Number(value('line')),
      type: value('type') as 'CB' | 'CR',
      ...(value('acquirer') !== '' && { acquirer: value('acquirer') }),
      reference: value('reference'),
      amount: hundredths(value('amount')),
      currency: value('currency'),
      reason: value('reason'),
      date: value('date'),
    },
  }
}

// Codes of the card schemes whose meaning the interface has a word for. The schemes have many more, and rename them.
const reasons: Readonly<Record<string, ResultName>> = {
  '10.4': 'chargebackFraud',
  '11.3': 'chargebackAuthorizationProblem',
  '12.6': 'chargebackProcessedTwice',
  '13.1': 'chargebackGoodsNotReceived',
  '13.2': 'chargebackMandateCancelled',
  '13.6': 'chargebackCreditNotProcessed',
  '4808': 'chargebackAuthorizationProblem',
  '4834': 'chargebackProcessedTwice',
  '4837': 'chargebackNotAuthorized',
  '4853': 'chargebackRevokedOrDisputed',
  '4863': 'chargebackPaymentNotRecognized',
}

/** The interface's own code, or one of a scheme; anything else has no reason that we could name. */
export function resultOfReason(reason: string): ResultName {
  const own = resultOfCode.get(reason)
  return own && isChargeback(own) ? own.name : (Object.hasOwn(reasons, reason) && reasons[reason]) || 'chargebackWithoutReason'
}

/** The hour that a retrieval reference names (DE37: digit of the year, day of the year, hour), the last one before a date ends; milliseconds. */
export function hourOf(retrievalReference: string, date: string): number {
  const year = Number(date.slice(0, 4))
  const latest = year - ((((year - Number(retrievalReference[0])) % 10) + 10) % 10)
  return Date.UTC(latest, 0, Number(retrievalReference.slice(1, 4)), Number(retrievalReference.slice(4, 6)))
}
