// What a scheduled report holds: rows of all merchants below its owner, read some at a time, merchant by merchant, the oldest first.

import type { Mode } from '../../connectors/connector.ts'
import type { PaymentParts } from '../../payments/parts.ts'
import { findPage, findPayments } from '../../payments/store/search.ts'
import { SftpError } from '../../platform/sftp/sftp.ts'
import type { Keys } from '../../vault/keys.ts'
import { type Columns, csvOf, csvRow } from '../csv.ts'
import type { FileContent } from '../owedFiles/deliver.ts'
import { periodAfter, type ReportPeriod } from '../owedFiles/period.ts'
import { paymentColumns } from '../search/file.ts'
import { searchedPayment } from '../search/found.ts'
import { type Aggregation, aggregate, movementRecord, sumsRecord } from '../settlement/aggregation.ts'
import { movementColumns } from '../settlement/files.ts'
import { findMovements, type MovementRow, type ReconciliationType, sumMovements } from '../settlement/store.ts'
import type { scheduledForms, scheduledReports } from './schedule.ts'

export type ScheduledContentParts = Pick<PaymentParts, 'database' | 'directory'> & { readonly keys: Keys }

/** One merchant's part of a report. Times are business times in milliseconds: from inclusive, to exclusive. */
type Share = { readonly merchantId: string; readonly mode: Mode; readonly from: number; readonly to: number }

type ScheduledReport = {
  readonly heading: readonly string[]
  rows(parts: ScheduledContentParts, share: Share): AsyncIterable<readonly ReportRow[]>
}
/** A row as both forms write it. */
type ReportRow = { readonly csv: string; readonly json: object }

const report = <Item>(
  columns: Columns<Item>,
  items: (parts: ScheduledContentParts, share: Share) => AsyncIterable<readonly Item[]>,
): ScheduledReport => ({
  heading: Object.keys(columns),
  async *rows(parts, share) {
    for await (const portion of items(parts, share))
      yield portion.map(item => ({
        csv: csvOf(columns, item),
        json: Object.fromEntries(Object.entries(columns).map(([name, take]) => [name, take(item)])),
      }))
  },
})

type MerchantSums = {
  readonly merchantId: string
  readonly day: string
  readonly currency: string
  readonly type: ReconciliationType
} & ReturnType<typeof sumsRecord>
type MerchantMovement = ReturnType<typeof movementRecord> & { readonly merchantId: string }

const reports: Readonly<Record<(typeof scheduledReports)[number], ScheduledReport>> = {
  transactions: report(paymentColumns, paymentsOf),
  settlement: report<MerchantSums>(
    {
      merchantId: one => one.merchantId,
      date: one => one.day,
      currency: one => one.currency,
      reconciliationType: one => one.type,
      count: one => one.count,
      matchedCount: one => one.matchedCount,
      credit: one => one.credit,
      debit: one => one.debit,
      amount: one => one.amount,
    },
    sumsOf,
  ),
  chargebacks: report<MerchantMovement>({ merchantId: one => one.merchantId, ...movementColumns }, chargebacksOf),
}

const hour = 3_600_000
const atOnce = 500
/** More than a merchant has in an hour. */
const paymentsMost = 1_000_000

/** From the payments themselves: a projection may be behind. */
async function* paymentsOf({ database, keys }: ScheduledContentParts, { merchantId, mode, from, to }: Share) {
  for (let at = from; at < to; at += hour) {
    const found = await findPage(database.reports, { merchantId, mode, from: at, to: at + hour }, paymentsMost, 0)
    for (let first = 0; first < found.length; first += atOnce) {
      const ids = found.slice(first, first + atOnce).map(({ id }) => id)
      const payments = new Map((await findPayments(database.reports, merchantId, ids)).map(payment => [payment.id, payment]))
      yield ids.map(id => searchedPayment(keys, payments.get(id)!))
    }
  }
}

async function* sumsOf({ database }: ScheduledContentParts, { merchantId, mode, from, to }: Share) {
  const days: readonly Aggregation[] = aggregate(await sumMovements(database.reports, { merchantId, mode }, { from, to }))
  yield days.flatMap(({ day, currency, byType }) =>
    [...byType].map(([type, sums]) => ({ merchantId, day, currency, type, ...sumsRecord(sums) })),
  )
}

async function* chargebacksOf({ database }: ScheduledContentParts, { merchantId, mode, from, to }: Share) {
  for (const type of ['CHARGEBACK', 'CHARGEBACK REVERSAL'] as const)
    for (let after: MovementRow | undefined; ; ) {
      const order = { type, newestFirst: false, limit: atOnce, after }
      const rows: MovementRow[] = await findMovements(database.reports, { merchantId, mode }, { from, to }, order)
      yield rows.map(row => ({ merchantId, ...movementRecord(row) }))
      if (rows.length < atOnce) break
      after = rows.at(-1)
    }
}

export type ReportOf = {
  readonly ownerId: string
  readonly report: (typeof scheduledReports)[number]
  readonly form: (typeof scheduledForms)[number]
  readonly mode: Mode
  readonly every: ReportPeriod
  /** The first of its period. */
  readonly day: string
}

/** It stands in the database until its server has it. */
export const reportBytesMost = 64 * 1024 * 1024

/** Rejects with an SftpError, which is told like any other that keeps it from its server, when it is larger than a file may be. */
export async function* reportContent(
  parts: ScheduledContentParts,
  { ownerId, report: name, form, mode, every, day }: ReportOf,
  bytesMost = reportBytesMost,
): FileContent {
  const { heading, rows } = reports[name]
  const { directory } = parts
  const merchants = directory.below([ownerId]).filter(({ kind }) => kind === 'merchant')
  let [all, bytes] = [0, 0]
  const part = (text: string, records = 0) => {
    bytes += Buffer.byteLength(text)
    if (bytes > bytesMost)
      throw new SftpError(`the report has more than ${bytesMost} bytes: schedule it for shorter periods or fewer merchants`)
    all += records
    return { text, records }
  }
  yield part(form === 'csv' ? csvRow(heading) : '[')
  const span = { from: Date.parse(day), to: Date.parse(periodAfter(every, day)) }
  for (const { id: merchantId } of merchants)
    for await (const portion of rows(parts, { merchantId, mode, ...span })) {
      if (portion.length === 0) continue
      const text =
        form === 'csv'
          ? portion.map(({ csv }) => csv).join('')
          : `${all > 0 ? ',' : ''}\n${portion.map(({ json }) => JSON.stringify(json)).join(',\n')}`
      yield part(text, portion.length)
    }
  if (form === 'json') yield part('\n]\n')
}
