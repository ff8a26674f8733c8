// Settlement files: each line is found among our bookings by what the acquirer knows it by, and never by its amount. A booking is settled once. What
// does not fit is a case with both sides, and so is what a file should have and has not.

import { nobody, openCase } from '../../payments/cases/cases.ts'
import { closeSettled } from '../../payments/cases/store.ts'
import { type Connection, inTransaction } from '../../platform/database/connect.ts'
import { findServedHere, refuseWhileHeld } from '../../platform/database/elsewhere.ts'
import { hourOf } from '../chargebacks/report.ts'
import { type FileFormat, type ImportParts, type ImportReport, importFile, type LineResult } from '../import.ts'
import { fileHash, inTurns } from '../steps.ts'
import { type Booking, bookingsOf, bookingsOfDay } from './bookings.ts'
import type { ComparisonParts } from './compare.ts'
import { type DayRules, dayAfter, endOfDay } from './day.ts'
import { readSettlement, type SettlementLayout, type SettlementLine } from './settlementFile.ts'
import {
  findMoved,
  findMovedByReference,
  findSettled,
  findSettledOf,
  insertSettled,
  insertSettledDay,
  isSettledDay,
} from './store.ts'

/** An acquirer as its files know it. */
export type SettlingAcquirer = {
  readonly name: string
  readonly acquirerId: string
  readonly rules: DayRules
  readonly layout: SettlementLayout
}

/** Why a line is not settled. */
export const settlementMismatches = {
  notOurs: 'we have no such booking',
  elsewhere: 'the merchant of the booking is served by another cell: hand the file in there too',
  several: 'several bookings of ours fit it',
  twice: 'the booking is settled already, by another line',
  otherAmount: 'the booking is of another amount or currency',
} as const
type SettlementMismatch = keyof typeof settlementMismatches

/** Reads a file to its end. Nothing of it counts when it is not whole, or another acquirer's. */
export async function importSettlement(
  parts: ImportParts,
  acquirer: SettlingAcquirer,
  name: string,
  text: string,
  tell: (at: number, result: LineResult) => void,
): Promise<(ImportReport & { readonly day: string; readonly missing: number | undefined }) | { readonly broken: string }> {
  const file = await inTurns(readSettlement(text, acquirer.layout, acquirer.acquirerId))
  if ('broken' in file) return file
  const hash = await fileHash(Buffer.from(text))
  const lines = file.lines.map(line => ({ at: line.at, subject: subjectOf(acquirer, line), line }))
  const atHour = bookingsByHour(parts, acquirer)
  const format: FileFormat<ImportParts, SettlementLine> = {
    kind: 'settlementFile',
    caseKind: 'settlementLine',
    read: () => lines,
    async settle({ database, clock }, line, store) {
      const candidates = await candidatesOf(parts, acquirer, line, atHour)
      return inTransaction(database.work, async db => {
        const result = await settleLine(db, acquirer, hash, line, candidates, clock.real())
        await store(db, result)
        return result
      })
    },
  }
  const report = (await importFile(parts, format, name, text, tell))!
  await insertSettledDay(parts.database.work, acquirer.name, file.day, hash, parts.clock.real())
  return { ...report, day: file.day, missing: await missLines(parts, acquirer, file.day) }
}

/** The same line of a corrected file has the same subject, so that its case closes. */
const subjectOf = ({ name }: SettlingAcquirer, { day, kind, reference, trace, occurrence }: SettlementLine): string =>
  `${name} ${day} ${kind} ${reference}${trace === undefined ? '' : ` ${trace}`}${occurrence > 1 ? ` (${occurrence})` : ''}`

const hour = 3_600_000

type ByHour = (from: number) => Promise<ReadonlyMap<string, readonly Booking[]>>

/** Our own references name an hour: the bookings of each are read once for a file. */
function bookingsByHour({ database }: ImportParts, { name, rules }: SettlingAcquirer): ByHour {
  const known = new Map<number, ReturnType<ByHour>>()
  const read: ByHour = async from => {
    const found = new Map<string, Booking[]>()
    for (const moved of await findMoved(database.reports, name, from, from + hour))
      for (const booking of bookingsOf(moved, name, rules)) {
        const same = found.get(booking.reference)
        if (same) same.push(booking)
        else found.set(booking.reference, [booking])
      }
    return found
  }
  return from => {
    if (!known.has(from)) known.set(from, read(from))
    return known.get(from)!
  }
}

/** Those of our bookings that have all that the line says but its amount. */
async function candidatesOf(
  { database }: ImportParts,
  { name, rules }: SettlingAcquirer,
  line: SettlementLine,
  atHour: ByHour,
): Promise<Booking[]> {
  const theirs = await findMovedByReference(database.work, name, line.reference)
  // A message that is made at midnight may be of the next day.
  const ours = /^\d{12}$/.test(line.reference)
    ? ((await atHour(hourOf(line.reference, dayAfter(line.day)))).get(line.reference) ?? [])
    : []
  const all = theirs.length > 0 ? theirs.flatMap(moved => bookingsOf(moved, name, rules)) : ours
  return all.filter(
    ({ kind, reference, trace, terminal }) =>
      kind === line.kind &&
      reference === line.reference &&
      (line.trace ?? trace) === trace &&
      (line.terminal ?? terminal) === terminal,
  )
}

async function settleLine(
  db: Connection,
  { name }: SettlingAcquirer,
  hash: Buffer,
  line: SettlementLine,
  candidates: readonly Booking[],
  now: number,
): Promise<LineResult> {
  const here = await findServedHere(
    db,
    candidates.map(({ merchantId }) => merchantId),
  )
  const [booking, ...others] = candidates
  const refuse = (why: SettlementMismatch): LineResult => ({
    kind: 'refused',
    why: settlementMismatches[why],
    details: { theirs: line, ours: candidates },
  })
  if (!booking || others.length > 0) return refuse(booking ? 'several' : 'notOurs')
  if (!here.has(booking.merchantId)) return refuse('elsewhere')
  const { merchantId, paymentId, kind } = booking
  const agrees = booking.amount === line.amount && booking.currency === line.currency
  const outcome = agrees ? 'matched' : 'otherAmount'
  const place = { merchantId, paymentId, kind, acquirer: name, day: line.day, outcome, hash, line: line.at } as const
  if (!(await insertSettled(db, place, now))) {
    const before = (await findSettled(db, place))!
    const isSame = before.hash.equals(hash) ? before.line === line.at : before.day === line.day && line.occurrence === 1
    return isSame && agrees ? { kind: 'known', paymentId, text: paymentId } : refuse(isSame ? 'otherAmount' : 'twice')
  }
  await closeSettled(db, missingCase(booking), now, 'gateway', 'a settlement file has it')
  return agrees ? { kind: 'recorded', paymentId, text: `${kind} ${paymentId}` } : refuse('otherAmount')
}

const missingCase = ({ merchantId, paymentId, kind }: Booking) =>
  ({ merchantId, kind: 'lineMissing', subject: `${paymentId} ${kind}` }) as const

/**
 * Opens a case for each booking of a day that is over that no file has; those of merchants who have left are asked for where they are served. How many there are;
 * undefined while the day is open or no file has come.
 */
export async function missLines(
  parts: ComparisonParts,
  { name, rules }: Pick<SettlingAcquirer, 'name' | 'rules'>,
  day: string,
): Promise<number | undefined> {
  const { database, clock } = parts
  const about = { merchantId: nobody, kind: 'settlementMissing', subject: `${name} ${day}` }
  if (!(await isSettledDay(database.work, name, day))) return undefined
  await closeSettled(database.work, about, clock.real(), 'gateway', 'the file has come')
  if (clock.real() < endOfDay(day, rules)) return undefined
  const bookings = await bookingsOfDay(database.reports, name, day, rules)
  const [merchants, payments] = [bookings.map(one => one.merchantId), bookings.map(one => one.paymentId)]
  const settled = await findSettledOf(database.reports, [...new Set(merchants)], payments)
  const here = await findServedHere(database.work, merchants)
  await refuseWhileHeld(database.work, `The look at the files of ${name} for ${day}`)
  const missing = bookings.filter(
    ({ merchantId, paymentId, kind }) => here.has(merchantId) && !settled.has(`${paymentId} ${kind}`),
  )
  for (const booking of missing)
    await openCase(database.work, parts, { ...missingCase(booking), details: { acquirer: name, ours: booking, theirs: null } })
  return missing.length
}
