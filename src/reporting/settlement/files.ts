// The settlement reports as files: which columns they have.

import type { Keys } from '../../vault/keys.ts'
import { type Columns, csvFile, type Portions } from '../csv.ts'
import { type Aggregation, type AggregationKey, aggregationRecord, movementRecord } from './aggregation.ts'
import type { MovementRow, ReportScope } from './store.ts'

/** A name, and the lines as they are taken. */
export type ReportFile = { readonly name: string; readonly lines: AsyncIterable<string> }

const aggregationColumns: Columns<ReturnType<typeof aggregationRecord>> = {
  id: one => one.id,
  date: one => one.date,
  currency: one => one.currency,
  testMode: one => one.testMode,
  count: one => one.count,
  matchedCount: one => one.matchedCount,
  credit: one => one.credit,
  debit: one => one.debit,
  amount: one => one.amount,
}

export const movementColumns: Columns<ReturnType<typeof movementRecord>> = {
  id: one => one.id,
  referencedId: one => one.referencedId,
  entityId: one => one.entityId,
  reconciliationType: one => one.reconciliationType,
  paymentType: one => one.paymentType,
  paymentBrand: one => one.paymentBrand,
  amount: one => one.amount,
  currency: one => one.currency,
  merchantTransactionId: one => one.merchantTransactionId,
  settlementTxDate: one => one.settlementTxDate,
  matched: one => one.matchedTransactions.status,
  settlementDate: one => one.settlement?.date,
  acquirer: one => one.settlement?.acquirer,
  outcome: one => one.settlement?.outcome,
}

export const aggregationsFile = (
  keys: Keys,
  scope: ReportScope,
  from: string,
  to: string,
  found: readonly Aggregation[],
): ReportFile => ({
  name: `settlement-${from}-${to}.csv`,
  lines: csvFile(aggregationColumns, [found.map(one => aggregationRecord(keys, scope, one))]),
})

export const movementsFile = ({ day, currency }: AggregationKey, rows: Portions<MovementRow>): ReportFile => ({
  name: `settlement-${day}-${currency}.csv`,
  lines: csvFile(movementColumns, recordsOf(rows)),
})

async function* recordsOf(portions: Portions<MovementRow>) {
  for await (const rows of portions) yield rows.map(movementRecord)
}
