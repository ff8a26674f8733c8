// Payments as they pile up: made by the database itself, a portion at a time, with their answers, journal lines, events and the row by which the back office
// finds them. One in ten is declined, one in fifty is the refund of the one before. Everything that a search looks for is there often enough for a full
// page in the smallest database, so that a search finds as much in each.

import pg from 'pg'
import { systemClock } from '../../src/platform/clock.ts'
import { migrate } from '../../src/platform/database/migrate.ts'
import { emailHashes } from '../../src/reporting/search/found.ts'
import { makeKeys } from '../../src/vault/keys.ts'

export const merchantId = '6'.repeat(32)
export const channelId = '7'.repeat(32)
export const keys = makeKeys([Buffer.alloc(32, 1)], Buffer.alloc(32, 2))
export const email = 'jane@example.org'
export const document = 'x'.repeat(700)
export const begin = Date.UTC(2026, 0, 1)
export const dayMilliseconds = 86_400_000
/** Whatever the size: a list of one day is as long in the smallest database as in the largest. */
export const perDay = 20_000

/** The id of a payment by its number: time-ordered like real ones. */
export const idOf = (number: number): string => `${(begin + number).toString(16).padStart(12, '0')}7${'0'.repeat(19)}`
const idOfSql = (number: string) => `(lpad(to_hex($1::bigint + ${number}), 12, '0') || '7' || repeat('0', 19))::uuid`

export const amountOf = (number: number): number => 100 + (Math.floor(number / 2) % 40)
export const brands = ['VISA', 'MASTER', 'AMEX'] as const
export const lastFourOf = (number: number): string => String(number % 100).padStart(4, '0')
export const binOf = (number: number): string => String(420_000 + (number % 2))
export const referenceOf = (number: number): string => String(number).padStart(12, '0')

const portion = 50_000

const insertPortion = `
  with numbered as (
    select number, ${idOfSql('number')} as id, to_timestamp($1::bigint / 1000) + number * interval '1 day' / ${perDay} as at,
           case when number % 50 = 49 then ${idOfSql('number - 1')} end as root, case when number % 50 = 49 then 'RF' else 'DB' end as type,
           (array['${brands.join("','")}'])[1 + (number / 2) % 3] as brand, 100 + (number / 2) % 40 as amount, number % 10 <> 3 as approved
      from generate_series($2::bigint, $3::bigint - 1) as number),
  paid as (
    insert into payments (merchant_id, id, channel_id, root_id, reference_id, payment_type, brand, amount, currency, mode, connector,
                          merchant_transaction_id, received_at, recorded_at, record)
    select $4::uuid, id, $5::uuid, root, root, type, brand, amount, 'EUR', 'internal', 'simulator', 'growth-' || number, at, at,
           '{"ndc":"","fields":[["customer.givenName","' || $6::text || '"]]}'
      from numbered),
  answered as (
    insert into answers (merchant_id, payment_id, result, approved, reply, body, answered_at)
    select $4, id, case when approved then 'succeededInTestMode' else 'refusedByBank' end, approved, '{}', '{"x":"' || $6 || $6 || '"}', at from numbered),
  booked as (
    insert into journal (merchant_id, payment_id, line, mode, currency, debit, credit, amount, state, booked_at)
    select $4, id, line, 'internal', 'EUR', case type when 'DB' then 'acquirer' else 'merchant' end,
           case type when 'DB' then 'merchant' else 'acquirer' end, amount, case line when 0 then 'pending' else 'posted' end, at
      from numbered cross join (values (0), (1)) as lines (line) where approved and (line = 1 or type = 'RF')),
  told as (
    insert into events (merchant_id, payment_id, sequence, type, channel_id, root_id, occurred_at, recorded_at, notified, searched)
    select $4, id, 2, 'PAYMENT', $5, coalesce(root, id), at, at, 'done', 'done' from numbered)
  insert into searched_payments (merchant_id, payment_id, root_id, channel_id, received_at, mode, payment_type, brand, amount, currency, result, outcome,
                                 merchant_transaction_id, invoice, bin, last_four, email_hash, email_key, descriptor, reference)
  select $4, id, coalesce(root, id), $5, at, 'internal', type, brand, amount, 'EUR', case when approved then '000.100.110' else '800.100.100' end,
         case when approved then 'success' else 'rejected' end, 'growth-' || number, 'invoice-' || number, (420000 + number % 2)::text,
         lpad((number % 100)::text, 4, '0'), case when number % 100 = 7 then $7::bytea end, case when number % 100 = 7 then $8::text end,
         'shop ' || number, lpad(number::text, 12, '0')
    from numbered`

/** A new database with so many payments; returns its bytes. `told` hears how many there are so far. */
export async function fill(connection: pg.PoolConfig, size: number, told: (payments: number) => void): Promise<number> {
  const pool = new pg.Pool({ ...connection, max: 1 })
  try {
    await migrate(pool, new Date(systemClock.real()).toISOString())
    const same = [merchantId, channelId, document, emailHashes(keys, email)[0], keys.lookup[0]!.id]
    for (let at = 0; at < size; at += portion) {
      await pool.query(insertPortion, [begin, at, Math.min(at + portion, size), ...same])
      told(Math.min(at + portion, size))
    }
    await pool.query('vacuum analyze')
    await pool.query('checkpoint')
    const { rows } = await pool.query('select pg_database_size(current_database())::float8 as bytes')
    return rows[0].bytes
  } finally {
    await pool.end()
  }
}
