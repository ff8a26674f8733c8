// What an export is made of: its heading, how many records it has, and its rows from a place on, some at a time.

import type { Database } from '../../platform/database/connect.ts'
import { csvOf, csvRow } from '../csv.ts'
import { paymentColumns } from '../search/file.ts'
import { countSearched, findSearched, type SearchCondition } from '../search/store.ts'
import { type AggregationKey, movementRecord } from '../settlement/aggregation.ts'
import { movementColumns } from '../settlement/files.ts'
import { spanOf } from '../settlement/reports.ts'
import { findMovements, type ReportScope } from '../settlement/store.ts'

/** Behind a record: its time and its id. */
export type ExportPlace = { readonly at: number; readonly id: string }

export type ExportSource =
  | { readonly kind: 'payments'; readonly merchants: readonly string[]; readonly any: readonly SearchCondition[] }
  | {
      readonly kind: 'movements'
      readonly scope: ReportScope
      readonly key: AggregationKey
      readonly type: string | undefined
      readonly count: number
    }

type ExportRows = { readonly text: string; readonly records: number; readonly place: ExportPlace | undefined }
type ExportDatabase = Pick<Database, 'reporting'>

type SourceOf<Kind> = Extract<ExportSource, { readonly kind: Kind }>
type ExportReading<Kind> = {
  readonly heading: string
  /** Counts no further than `most`. */
  count(database: ExportDatabase, source: SourceOf<Kind>, most: number): Promise<number>
  rows(database: ExportDatabase, source: SourceOf<Kind>, behind: ExportPlace | undefined, limit: number): Promise<ExportRows>
}

const readings: { readonly [Kind in ExportSource['kind']]: ExportReading<Kind> } = {
  payments: {
    heading: csvRow(Object.keys(paymentColumns)),
    count: ({ reporting }, { merchants, any }, most) => countSearched(reporting, merchants, any.map(withHashes), most),
    async rows({ reporting }, { merchants, any }, behind, limit) {
      const place = behind && { receivedAt: behind.at, paymentId: behind.id }
      const found = await findSearched(reporting, merchants, any.map(withHashes), limit, place)
      const last = found.at(-1)
      return {
        text: found.map(one => csvOf(paymentColumns, one)).join(''),
        records: found.length,
        place: last && { at: last.receivedAt, id: last.paymentId },
      }
    },
  },
  movements: {
    heading: csvRow(Object.keys(movementColumns)),
    count: async (_, { count }, most) => Math.min(count, most),
    async rows({ reporting }, { scope, key, type }, behind, limit) {
      const after = behind && { bookedAt: behind.at, id: behind.id }
      const found = await findMovements(reporting, scope, spanOf(key.day, key.day, key.currency), {
        type,
        newestFirst: false,
        limit,
        after,
      })
      const last = found.at(-1)
      return {
        text: found.map(one => csvOf(movementColumns, movementRecord(one))).join(''),
        records: found.length,
        place: last && { at: last.bookedAt, id: last.id },
      }
    },
  },
}

export const readingOf = ({ kind }: ExportSource): ExportReading<ExportSource['kind']> =>
  readings[kind] as ExportReading<ExportSource['kind']>

/** A source that was stored has hashes as JSON writes bytes. */
const withHashes = ({ emailHashes, ...condition }: SearchCondition): SearchCondition => ({
  ...condition,
  ...(emailHashes && { emailHashes: emailHashes.map(hash => Buffer.from(hash as Buffer)) }),
})
