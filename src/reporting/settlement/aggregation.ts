// Aggregations: the movements of a day in a currency, summed up. Their ids are not stored: an id says which day, currency and mode it is of, and proves
// that it was made for the entity that asks.

import { timingSafeEqual } from 'node:crypto'
import type { Mode } from '../../connectors/connector.ts'
import { signedAmountText } from '../../contract/amounts.ts'
import { isId } from '../../platform/clock.ts'
import { type Keys, keyedHashes } from '../../vault/keys.ts'
import type { MovementRow, ReconciliationType, ReportScope, SumRow } from './store.ts'

export type AggregationKey = { readonly day: string; readonly currency: string }

const modes: readonly Mode[] = ['internal', 'external', 'live']
const dayMilliseconds = 86_400_000

/** Bytes: day (3), currency (3), mode (1), and a proof (9). */
export function aggregationId(keys: Keys, scope: ReportScope, { day, currency }: AggregationKey): string {
  const head = Buffer.alloc(7)
  head.writeUIntBE(Date.parse(day) / dayMilliseconds, 0, 3)
  head.write(currency, 3, 'latin1')
  head[6] = modes.indexOf(scope.mode)
  return Buffer.concat([head, proofs(keys, scope, head)[0]!]).toString('hex')
}

/** What an id is of; undefined when it was not made for this entity. */
export function readAggregationId(
  keys: Keys,
  entity: Omit<ReportScope, 'mode'>,
  id: string,
): { readonly scope: ReportScope; readonly key: AggregationKey } | undefined {
  if (!isId(id)) return undefined
  const bytes = Buffer.from(id, 'hex')
  const head = bytes.subarray(0, 7)
  const mode = modes[head[6]!]
  if (mode === undefined) return undefined
  const scope = { ...entity, mode }
  if (!proofs(keys, scope, head).some(proof => timingSafeEqual(proof, bytes.subarray(7)))) return undefined
  const day = new Date(head.readUIntBE(0, 3) * dayMilliseconds).toISOString().slice(0, 10)
  return { scope, key: { day, currency: head.toString('latin1', 3, 6) } }
}

const proofs = (keys: Keys, { merchantId, channelId = '' }: ReportScope, head: Buffer): Buffer[] =>
  keyedHashes(keys, 'settlement report', `${merchantId} ${channelId} ${head.toString('hex')}`).map(hash => hash.subarray(0, 9))

type MovementSums = Pick<SumRow, 'count' | 'matched' | 'archived' | 'credit' | 'debit'>
export type Aggregation = AggregationKey & {
  readonly sums: MovementSums
  readonly byType: ReadonlyMap<ReconciliationType, MovementSums>
}

const nothing: MovementSums = { count: 0, matched: 0, archived: 0, credit: 0, debit: 0 }
const plus = (a: MovementSums, b: MovementSums): MovementSums => ({
  count: a.count + b.count,
  matched: a.matched + b.matched,
  archived: a.archived + b.archived,
  credit: a.credit + b.credit,
  debit: a.debit + b.debit,
})

/** Sums of types become aggregations, in their order. */
export const aggregate = (rows: readonly SumRow[]): Aggregation[] =>
  [...Map.groupBy(rows, ({ day, currency }) => `${day} ${currency}`).values()].map(ofOne => ({
    day: ofOne[0]!.day,
    currency: ofOne[0]!.currency,
    sums: ofOne.reduce(plus, nothing),
    byType: new Map(ofOne.map(row => [row.reconciliationType, row])),
  }))

export const sumsRecord = ({ count, matched, credit, debit }: MovementSums) => ({
  count: String(count),
  matchedCount: String(matched),
  credit: signedAmountText(credit),
  debit: signedAmountText(debit),
  amount: signedAmountText(credit - debit),
})

export const aggregationRecord = (keys: Keys, scope: ReportScope, { sums, byType, ...key }: Aggregation) => ({
  id: aggregationId(keys, scope, key),
  date: key.day,
  currency: key.currency,
  ...(scope.mode !== 'live' && { testMode: scope.mode.toUpperCase() }),
  ...sumsRecord(sums),
  totals: [...byType].map(([reconciliationType, ofType]) => ({ reconciliationType, ...sumsRecord(ofType) })),
})

export const movementRecord = (row: MovementRow) => ({
  id: row.id,
  ...(row.referenceId !== null && { referencedId: row.referenceId }),
  entityId: row.channelId,
  reconciliationType: row.reconciliationType,
  paymentType: row.type,
  ...(row.brand !== null && { paymentBrand: row.brand }),
  amount: signedAmountText(row.amount),
  currency: row.currency,
  ...(row.merchantTransactionId !== null && { merchantTransactionId: row.merchantTransactionId }),
  settlementTxDate: new Date(row.bookedAt).toISOString().replace('T', ' ').slice(0, 19),
  matchedTransactions: { status: row.matched ? 'MATCHED' : 'NOT_MATCHED', transactions: [row.id] },
  ...(row.settledOn !== null && { settlement: { date: row.settledOn, acquirer: row.acquirer!, outcome: row.outcome! } }),
})
