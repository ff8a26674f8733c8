// The settlement reports: days summed up, and the records behind each sum. A report reads some records at a time and keeps none; those of one caller, and those of one
// merchant, come one after the other, so that nobody's keep others waiting (decisions, 67).

import { limits } from '../../contract/limits.ts'
import { pageSize } from '../../contract/parameters/query.ts'
import type { ResultName } from '../../contract/results/results.ts'
import type { Database } from '../../platform/database/connect.ts'
import { isTooSlow, WriteTimeout } from '../../platform/database/errors.ts'
import { type Aggregation, type AggregationKey, aggregate } from './aggregation.ts'
import {
  findMovements,
  type ListedMovements,
  type MovementRow,
  type ReportScope,
  type ReportSpan,
  sumMovements,
} from './store.ts'

export type ReportRefusal = Extract<ResultName, 'tooManySearches' | 'reportTooLarge'>
export type ReportOrder = Pick<ListedMovements, 'type' | 'newestFirst'>

export type Reports = {
  aggregations(caller: string, scope: ReportScope, span: ReportSpan): Promise<readonly Aggregation[] | ReportRefusal>
  /** Page from 1 of the records of an aggregation. */
  page(
    caller: string,
    scope: ReportScope,
    key: AggregationKey,
    order: ReportOrder,
    pageNo: number,
  ): Promise<readonly MovementRow[] | ReportRefusal>
  /** All records of an aggregation, some at a time. */
  records(caller: string, scope: ReportScope, key: AggregationKey, order: ReportOrder): AsyncIterable<readonly MovementRow[]>
}

const dayMilliseconds = 86_400_000
const portion = 250

/** Whole days in UTC, both counted. */
export const spanOf = (from: string, to: string, currency?: string): ReportSpan => ({
  from: Date.parse(from),
  to: Date.parse(to) + dayMilliseconds,
  currency,
})

/** What is wrong with two days, by the name of the parameter. */
export function spanError(from: string, to: string): { readonly name: string; readonly message: string } | undefined {
  const days = (Date.parse(to) - Date.parse(from)) / dayMilliseconds + 1
  if (days < 1) return { name: 'date.from', message: 'must not be after date.to' }
  if (days > limits.reportDays)
    return { name: 'date.to', message: `must be at most ${limits.reportDays} days from date.from, both counted` }
  return undefined
}

export function makeReports({ database }: { readonly database: Pick<Database, 'reporting' | 'turns'> }): Reports {
  const inTurn = <Value>(
    caller: string,
    { merchantId }: ReportScope,
    work: () => Promise<Value>,
  ): Promise<Value | ReportRefusal> =>
    database.turns.searches(caller, merchantId, work).catch((error: Error) => {
      if (error instanceof WriteTimeout) return 'tooManySearches'
      if (isTooSlow(error)) return 'reportTooLarge'
      throw error
    })
  const ofDay = ({ day, currency }: AggregationKey) => spanOf(day, day, currency)
  return {
    aggregations: (caller, scope, span) =>
      inTurn(caller, scope, async () => aggregate(await sumMovements(database.reporting, scope, span))),
    page: (caller, scope, key, order, pageNo) =>
      inTurn(caller, scope, () =>
        findMovements(database.reporting, scope, ofDay(key), { ...order, limit: pageSize, skip: (pageNo - 1) * pageSize }),
      ),
    async *records(caller, scope, key, order) {
      for (let after: MovementRow | undefined; ; ) {
        const rows = await inTurn(caller, scope, () =>
          findMovements(database.reporting, scope, ofDay(key), { ...order, limit: portion, after }),
        )
        if (typeof rows === 'string') throw new Error(`the report cannot go on: ${rows}`)
        if (rows.length > 0) yield rows
        if (rows.length < portion) return
        after = rows.at(-1)
      }
    },
  }
}
