// What the overview reads: first payments of some merchants by the time at which they came, with how they ended, and what waits to be told.

import { type ResultName, results } from '../../contract/results/results.ts'
import { type Connection, timeParameter } from '../../platform/database/connect.ts'

export type OverviewSpan = {
  readonly merchants: readonly string[]
  /** Live payments, or those of both test modes. */
  readonly live: boolean
  /** Business time, milliseconds: from inclusive, to exclusive. */
  readonly from: number
  readonly to: number
  readonly by: 'hour' | 'day'
}

/** `slot`: the begin of its hour or day in UTC, milliseconds. `result` is null while a payment is pending; `approved`: hundredths. */
export type OutcomeRow = {
  readonly slot: number
  readonly currency: string | null
  readonly result: ResultName | null
  readonly count: number
  readonly approved: number
}

const firstPayments = `p.merchant_id = any ($1::uuid[]) and p.received_at >= $2 and p.received_at < $3 and (p.mode = 'live') = $4
  and p.payment_type in ('PA', 'DB', 'CD')`

const values = ({ merchants, live, from, to }: OverviewSpan): unknown[] => [
  merchants,
  timeParameter(from),
  timeParameter(to),
  live,
]

export async function countOutcomes(db: Connection, span: OverviewSpan): Promise<OutcomeRow[]> {
  const { rows } = await db.query<OutcomeRow>(
    `select (extract(epoch from date_trunc($5, p.received_at, 'UTC')) * 1000)::bigint as slot, p.currency, a.result, count(*) as count,
            least(greatest(coalesce(sum(p.amount) filter (where a.approved), 0), -${Number.MAX_SAFE_INTEGER}), ${Number.MAX_SAFE_INTEGER})::bigint as approved
       from payments p left join answers a on a.merchant_id = p.merchant_id and a.payment_id = p.id
      where ${firstPayments} group by 1, 2, 3 order by 1, 2, 3`,
    [...values(span), span.by],
  )
  // A reporting copy is written by others: a result that there is not is none of which anything is known.
  return rows.map(row => (row.result !== null && !Object.hasOwn(results, row.result) ? { ...row, result: null } : row))
}

/** Milliseconds from a payment's coming to its answer, of those that nobody was sent away for: the median, and what one in twenty exceeds. */
export type Latency = { readonly median: number | null; readonly slow: number | null }

export async function measureLatency(db: Connection, span: OverviewSpan): Promise<Latency> {
  const { rows } = await db.query<Latency>(
    `select percentile_disc(0.5) within group (order by took) as median, percentile_disc(0.95) within group (order by took) as slow
       from (select (extract(epoch from a.answered_at - p.received_at) * 1000)::bigint as took
               from payments p join answers a on a.merchant_id = p.merchant_id and a.payment_id = p.id
              where ${firstPayments} and isfinite(a.answered_at)
                and not exists (select from redirects r where r.merchant_id = p.merchant_id and r.payment_id = p.id)) answered`,
    values(span),
  )
  return rows[0]!
}

/** Notifications that are not acknowledged, and those of them that failed before. */
export type Backlog = { readonly waiting: number; readonly failing: number }

export async function countBacklog(db: Connection, merchants: readonly string[]): Promise<Backlog> {
  const { rows } = await db.query<Backlog>(
    `select count(*) as waiting, count(*) filter (where attempts > 0) as failing
       from deliveries where merchant_id = any ($1::uuid[]) and state = 'scheduled'`,
    [merchants],
  )
  return rows[0]!
}
