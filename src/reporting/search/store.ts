// The projection in the database: written by the consumer of the outbox, read page by page with the newest first.

import { type Connection, timeParameter } from '../../platform/database/connect.ts'
import type { FoundPayment, SearchedPayment } from './found.ts'
import type { SearchTerms } from './terms.ts'

type Column = readonly [name: string, type: string, of: (payment: SearchedPayment) => unknown]

// biome-ignore format: one line a column
const columns: readonly Column[] = [
  ['merchant_id',             'uuid',        one => one.merchantId],
  ['payment_id',              'uuid',        one => one.paymentId],
  ['root_id',                 'uuid',        one => one.rootId],
  ['channel_id',              'uuid',        one => one.channelId],
  ['received_at',             'timestamptz', one => timeParameter(one.receivedAt)],
  ['mode',                    'text',        one => one.mode],
  ['payment_type',            'text',        one => one.type],
  ['brand',                   'text',        one => one.brand],
  ['amount',                  'bigint',      one => one.amount],
  ['currency',                'text',        one => one.currency],
  ['result',                  'text',        one => one.result],
  ['outcome',                 'text',        one => one.outcome],
  ['merchant_transaction_id', 'text',        one => one.merchantTransactionId],
  ['invoice',                 'text',        one => one.invoice],
  ['bin',                     'text',        one => one.bin],
  ['last_four',               'text',        one => one.lastFour],
  ['email_hash',              'bytea',       one => one.emailHash],
  ['email_key',               'text',        one => one.emailKey],
  ['descriptor',              'text',        one => one.descriptor],
  ['slip_number',             'text',        one => one.slipNumber],
  ['reference',               'text',        one => one.reference],
]
const names = columns.map(([name]) => name)

/** The state as it is now takes the place of an earlier one. Of one payment the time only grows, whatever the clocks of processes say: copies go by it. */
export async function putSearched(db: Connection, payments: readonly SearchedPayment[], now: number): Promise<void> {
  const changing = names.slice(2)
  await db.query({
    name: 'put searched payments',
    text: `insert into searched_payments (${names.join(', ')}, written_at)
           select *, $${columns.length + 1}::timestamptz from unnest(${columns.map(([, type], at) => `$${at + 1}::${type}[]`).join(', ')})
           on conflict (merchant_id, payment_id) do update set ${changing.map(name => `${name} = excluded.${name}`).join(', ')},
             written_at = greatest(excluded.written_at, searched_payments.written_at + interval '1 microsecond')`,
    values: [...columns.map(([, , of]) => payments.map(of)), timeParameter(now)],
  })
}

/** How many rows have an e-mail address hashed with each lookup key. */
export async function countEmailKeys(db: Connection): Promise<[keyId: string, count: number][]> {
  const { rows } = await db.query<{ key: string; count: number }>(
    'select email_key as key, count(*) from searched_payments where email_key is not null group by email_key',
  )
  return rows.map(({ key, count }) => [key, count])
}

/** A place between two payments of a list: behind this one. */
export type SearchPlace = { readonly receivedAt: number; readonly paymentId: string }

/** What a condition compares, and how. An e-mail address comes as its hashes. */
const conditions: Readonly<Record<Exclude<keyof SearchTerms, 'email'> | 'emailHashes', string>> = {
  id: 'payment_id = $',
  chain: 'root_id = $ and root_id <> payment_id',
  merchantTransactionId: 'merchant_transaction_id = $',
  invoice: 'invoice = $',
  amount: 'amount = $',
  currency: 'currency = $',
  brand: 'brand = $',
  type: 'payment_type = $',
  result: 'result = $',
  outcome: 'outcome = $',
  outcomes: 'outcome = any ($)',
  first: `(payment_type in ('PA', 'DB', 'CD')) = $`,
  live: `(mode = 'live') = $`,
  bin: 'bin = $',
  lastFour: 'last_four = $',
  emailHashes: 'email_hash = any ($)',
  descriptor: 'descriptor = $',
  slipNumber: 'slip_number = $',
  reference: 'reference = $',
  channel: 'channel_id = $',
  from: 'received_at >= $',
  to: 'received_at < $',
}

export type SearchCondition = Omit<SearchTerms, 'email'> & { readonly emailHashes?: readonly Buffer[] }

// A reporting copy is written by others. A time that is none, or that nobody could write, is shown as the end of all times or as their beginning.
const shown = `merchant_id as "merchantId", payment_id as "paymentId", root_id as "rootId", channel_id as "channelId",
  greatest(least(received_at, '9999-12-31T23:59:59.999Z'), '1970-01-01T00:00:00Z') as "receivedAt", mode,
  payment_type as type, brand, amount, currency, result, outcome, merchant_transaction_id as "merchantTransactionId", invoice, bin, last_four as "lastFour",
  descriptor, slip_number as "slipNumber", reference`

/**
 * The newest payments of some merchants that meet any of the conditions. Each condition of each merchant is a walk along one index, which ends when the
 * page is full: so it costs as much in a large table as in a small one.
 */
export async function findSearched(
  db: Connection,
  merchantIds: readonly string[],
  any: readonly SearchCondition[],
  limit: number,
  behind?: SearchPlace,
): Promise<FoundPayment[]> {
  if (any.length === 0) return []
  const { walks, values } = walksOf(merchantIds, '*', any, limit, behind)
  const { rows } = await db.query<FoundPayment>(
    `select ${shown} from ${walks} order by received_at desc, payment_id desc limit $2`,
    values,
  )
  return rows
}

/** Counts no further than `most`. */
export async function countSearched(
  db: Connection,
  merchantIds: readonly string[],
  any: readonly SearchCondition[],
  most: number,
): Promise<number> {
  if (any.length === 0) return 0
  const { walks, values } = walksOf(merchantIds, 'payment_id, received_at', any, most)
  const { rows } = await db.query<{ count: number }>(`select count(*) from (select 1 from ${walks} limit $2) counted`, values)
  return rows[0]!.count
}

function walksOf(
  merchantIds: readonly string[],
  columns: string,
  any: readonly SearchCondition[],
  limit: number,
  behind?: SearchPlace,
): { readonly walks: string; readonly values: unknown[] } {
  const values: unknown[] = [merchantIds, limit]
  const parameter = (value: unknown) => `$${values.push(value)}`
  const place =
    behind && `(received_at, payment_id) < (${parameter(timeParameter(behind.receivedAt))}, ${parameter(behind.paymentId)})`
  const walks = any.map(condition => {
    const tests = Object.entries(condition).map(([name, value]) =>
      conditions[name as keyof typeof conditions].replace(
        '$',
        parameter(typeof value === 'number' && name !== 'amount' ? timeParameter(value) : value),
      ),
    )
    return `(select ${columns} from searched_payments where merchant_id = merchant.id${[...tests, ...(place ? [place] : [])].map(test => ` and ${test}`).join('')}
              order by received_at desc, payment_id desc limit $2)`
  })
  return { walks: `unnest($1::uuid[]) as merchant (id) cross join lateral (${walks.join(' union ')}) found`, values }
}
