// What settlement reports read: posted lines of the journal that moved a merchant's money, each with its payment and with what a settlement file of the
// acquirer said of it.

import type { Mode, OperationType } from '../../connectors/connector.ts'
import type { reconciliationTypes } from '../../contract/parameters/query.ts'
import { type Connection, timeParameter } from '../../platform/database/connect.ts'

/** Whose report it is: a merchant's, or that of one of its channels. */
export type ReportScope = { readonly merchantId: string; readonly channelId?: string | undefined; readonly mode: Mode }

/** Times are business times in milliseconds: from inclusive, to exclusive. */
export type ReportSpan = { readonly from: number; readonly to: number; readonly currency?: string | undefined }

export type ReconciliationType = (typeof reconciliationTypes)[number]

export type SumRow = {
  readonly day: string
  readonly currency: string
  readonly reconciliationType: ReconciliationType
  readonly count: number
  readonly matched: number
  /** How many of them are archived: no list has them. */
  readonly archived: number
  /** Hundredths: what the merchant received, and what it gave. */
  readonly credit: number
  readonly debit: number
}

export type MovementRow = {
  readonly id: string
  readonly referenceId: string | null
  readonly channelId: string
  readonly type: OperationType
  readonly reconciliationType: ReconciliationType
  readonly brand: string | null
  readonly merchantTransactionId: string | null
  /** Hundredths; below zero when the merchant gave it. */
  readonly amount: number
  readonly currency: string
  readonly bookedAt: number
  readonly matched: boolean
  readonly settledOn: string | null
  readonly acquirer: string | null
  readonly outcome: string | null
}

// Chargebacks were made of a line of the acquirer, and what banks moved counts when they said so; the simulator settles what it approves.
const matched = `(j.mode = 'internal' or p.payment_type in ('CB', 'CR') or 'bank' in (j.debit, j.credit) or s.outcome is not distinct from 'matched')`

const dayOf = `(j.booked_at at time zone 'UTC')::date`

const reconciliationType = `case p.payment_type when 'CB' then 'CHARGEBACK' when 'CR' then 'CHARGEBACK REVERSAL' else 'SETTLED' end`

const settled = `left join lateral (select acquirer, day, outcome from settled_bookings b
                      where b.merchant_id = j.merchant_id and b.payment_id = j.payment_id order by b.kind limit 1) s on true`

const movements = `journal j
  join payments p on p.merchant_id = j.merchant_id and p.id = j.payment_id
  ${settled}
 where j.merchant_id = $1 and j.state = 'posted' and 'merchant' in (j.debit, j.credit) and j.booked_at >= $2 and j.booked_at < $3
   and ($4::text is null or j.currency = $4) and j.mode = $5 and ($6::uuid is null or p.channel_id = $6)`

const values = ({ merchantId, channelId, mode }: ReportScope, { from, to, currency }: ReportSpan): unknown[] => [
  merchantId,
  timeParameter(from),
  timeParameter(to),
  currency ?? null,
  mode,
  channelId ?? null,
]

/** Sums by day in UTC, currency and reconciliation type, the oldest day first; with what was archived. */
export async function sumMovements(db: Connection, scope: ReportScope, span: ReportSpan): Promise<SumRow[]> {
  const { rows } = await db.query<SumRow>(
    `select day, currency, kind as "reconciliationType", sum(count)::bigint as count, sum(matched)::bigint as matched, sum(archived)::bigint as archived,
            coalesce(sum(amount) filter (where credit = 'merchant'), 0)::bigint as credit,
            coalesce(sum(amount) filter (where debit = 'merchant'), 0)::bigint as debit
       from (select ${dayOf} as day, j.currency, ${reconciliationType} as kind, j.debit, j.credit, count(*) as count,
                    count(*) filter (where ${matched}) as matched, 0 as archived, sum(j.amount)::bigint as amount
               from ${movements} group by 1, 2, 3, 4, 5
             union all
             select day, currency, kind, debit, credit, count, matched, count, amount from closing_sums
              where merchant_id = $1 and 'merchant' in (debit, credit) and day >= ($2 at time zone 'UTC')::date and day < ($3 at time zone 'UTC')::date
                and ($4::text is null or currency = $4) and mode = $5 and ($6::uuid is null or channel_id = $6)) one
      group by 1, 2, 3 order by 1, 2, 3 desc`,
    values(scope, span),
  )
  return rows
}

// What some payments booked, as their sums stay when they are archived. A line that only reserved has ended with another one.
const closing = `select j.merchant_id, $2::uuid as archive_id, p.channel_id, ${dayOf} as day, j.mode, j.currency, j.debit, j.credit, ${reconciliationType} as kind,
         count(*) as count, count(*) filter (where ${matched}) as matched, sum(j.amount)::bigint as amount
    from journal j join payments p on p.merchant_id = j.merchant_id and p.id = j.payment_id ${settled}
   where j.merchant_id = $1 and j.payment_id = any ($3) and j.state = 'posted' group by 1, 2, 3, 4, 5, 6, 7, 8, 9`

/** Adds up what payments booked that are about to be archived. → how many lines that are. */
export async function closeMovements(
  db: Connection,
  merchantId: string,
  archiveId: string,
  payments: readonly string[],
): Promise<number> {
  const { rows } = await db.query<{ lines: number }>(
    `with closing as (${closing}), added as (
       insert into closing_sums as c (merchant_id, archive_id, channel_id, day, mode, currency, debit, credit, kind, count, matched, amount) select * from closing
       on conflict (merchant_id, day, archive_id, channel_id, mode, currency, debit, credit, kind)
       do update set count = c.count + excluded.count, matched = c.matched + excluded.matched, amount = c.amount + excluded.amount)
     select coalesce(sum(count), 0)::bigint as lines from closing`,
    [merchantId, archiveId, payments],
  )
  return rows[0]!.lines
}

/** Takes from the sums of an archive what payments booked that are back. → how many lines that are. */
export async function reopenMovements(
  db: Connection,
  merchantId: string,
  archiveId: string,
  payments: readonly string[],
): Promise<number> {
  const same = ['merchant_id', 'day', 'archive_id', 'channel_id', 'mode', 'currency', 'debit', 'credit', 'kind']
    .map(column => `c.${column} = b.${column}`)
    .join(' and ')
  const { rows } = await db.query<{ lines: number }>(
    `with b as (${closing}), less as (
       update closing_sums c set count = c.count - b.count, matched = c.matched - b.matched, amount = c.amount - b.amount
         from b where ${same} and c.count > b.count),
     none as (delete from closing_sums c using b where ${same} and c.count = b.count)
     select coalesce(sum(count), 0)::bigint as lines from b`,
    [merchantId, archiveId, payments],
  )
  return rows[0]!.lines
}

/** Where in a list to go on: behind the last record taken. */
export type ReportPlace = { readonly bookedAt: number; readonly id: string }
export type ListedMovements = {
  readonly type?: string | undefined
  readonly newestFirst: boolean
  readonly limit: number
  readonly skip?: number
  readonly after?: ReportPlace | undefined
}

export async function findMovements(
  db: Connection,
  scope: ReportScope,
  span: ReportSpan,
  { type, newestFirst, limit, skip = 0, after }: ListedMovements,
): Promise<MovementRow[]> {
  const [sign, order] = newestFirst ? ['<', 'desc'] : ['>', 'asc']
  const { rows } = await db.query<MovementRow>(
    `select p.id, p.reference_id as "referenceId", p.channel_id as "channelId", p.payment_type as type, p.brand, ${reconciliationType} as "reconciliationType",
            p.merchant_transaction_id as "merchantTransactionId", case j.credit when 'merchant' then j.amount else -j.amount end as amount,
            j.currency, j.booked_at as "bookedAt", ${matched} as matched, s.day as "settledOn", s.acquirer, s.outcome
       from ${movements} and ($7::text is null or ${reconciliationType} = $7)
        and ($8::timestamptz is null or (j.booked_at, j.payment_id) ${sign} ($8, $9::uuid))
      order by j.booked_at ${order}, j.payment_id ${order} limit $10 offset $11`,
    [...values(scope, span), type ?? null, after ? timeParameter(after.bookedAt) : null, after?.id ?? null, limit, skip],
  )
  return rows
}
