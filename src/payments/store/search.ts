// What searches read: first the keys of a page and how much their records weigh, then the records, some at a time.

import type { Mode } from '../../connectors/connector.ts'
import { type Connection, timeParameter } from '../../platform/database/connect.ts'
import type { PaymentState } from '../payment.ts'
import { answeredColumns, answeredOf, answeredTables, type PaymentRow } from './read.ts'

export type Search = {
  readonly merchantId: string
  readonly channelId?: string
  /** What is linked to what was found must be of this channel too. */
  readonly keptTo?: string
  readonly id?: string
  readonly mode?: Mode
  readonly merchantTransactionId?: string
  readonly types?: readonly string[]
  readonly brands?: readonly string[]
  /** Business time, milliseconds: from inclusive, to exclusive. */
  readonly from?: number
  readonly to?: number
}

/** A record that a search found: its key, the first payment of its chain, and about how many bytes it has. */
export type SearchHit = { readonly id: string; readonly rootId: string; readonly bytes: number }

const searched = `
  p.merchant_id = $1 and ($2::uuid is null or p.channel_id = $2) and ($3::text is null or p.merchant_transaction_id = $3)
  and ($4::text[] is null or p.payment_type = any ($4)) and ($5::timestamptz is null or p.received_at >= $5) and ($6::timestamptz is null or p.received_at < $6)
  and ($7::text[] is null or p.brand = any ($7)) and ($8::text is null or p.mode = $8) and ($9::uuid is null or p.id = $9)`

const searchValues = ({ merchantId, channelId, merchantTransactionId, types, brands, from, to, mode, id }: Search) => [
  merchantId,
  channelId ?? null,
  merchantTransactionId ?? null,
  types ?? null,
  from === undefined ? null : timeParameter(from),
  to === undefined ? null : timeParameter(to),
  brands ?? null,
  mode ?? null,
  id ?? null,
]

// A payment without an answer is rendered from its row.
const foundColumns = `p.id, coalesce(p.root_id, p.id) as "rootId", coalesce(octet_length(a.body), octet_length(p.record)) as bytes`

/** What is skipped is counted in the table of payments alone; only what is found is looked up in others. */
export async function findPage(db: Connection, search: Search, limit: number, skip: number): Promise<SearchHit[]> {
  const { rows } = await db.query<SearchHit>(
    `select ${foundColumns}
       from (select * from payments p where ${searched} order by p.received_at, p.id limit $10 offset $11) p
       left join answers a on a.merchant_id = p.merchant_id and a.payment_id = p.id
      order by p.received_at, p.id`,
    [...searchValues(search), limit, skip],
  )
  return rows
}

/** Counts no further than `most`. */
export async function countUpTo(db: Connection, search: Search, most: number): Promise<number> {
  const { rows } = await db.query<{ count: number }>(
    `select count(*) from (select 1 from payments p where ${searched} limit $10) found`,
    [...searchValues(search), most],
  )
  return rows[0]!.count
}

/** All of some chains, oldest first, but no more than `most`. */
export async function findChains(
  db: Connection,
  { merchantId, types, brands, keptTo }: Pick<Search, 'merchantId' | 'types' | 'brands' | 'keptTo'>,
  rootIds: readonly string[],
  most: number,
): Promise<SearchHit[]> {
  const { rows } = await db.query<SearchHit>(
    `select ${foundColumns} from ${answeredTables}
      where p.merchant_id = $1 and (p.id = any ($2::uuid[]) or p.root_id = any ($2::uuid[]))
        and ($3::text[] is null or p.payment_type = any ($3)) and ($4::text[] is null or p.brand = any ($4)) and ($6::uuid is null or p.channel_id = $6)
      order by p.recorded_at, p.id limit $5`,
    [merchantId, rootIds, types ?? null, brands ?? null, most, keptTo ?? null],
  )
  return rows
}

export async function findPayments(db: Connection, merchantId: string, ids: readonly string[]): Promise<PaymentState[]> {
  const { rows } = await db.query<PaymentRow>({
    name: 'find payments',
    text: `select ${answeredColumns} from ${answeredTables} where p.merchant_id = $1 and p.id = any ($2::uuid[])`,
    values: [merchantId, ids],
  })
  return rows.map(answeredOf)
}
