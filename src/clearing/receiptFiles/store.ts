// Files of receipts that merchants are owed, and what became of each.

import { type Connection, timeParameter } from '../../platform/database/connect.ts'
import type { ReceiptForm } from './content.ts'

/** The work of a merchant waits once, and goes on from the day that it has come to. */
export async function insertWaitingMerchant(db: Connection, merchantId: string, day: string, dueAt: number): Promise<void> {
  await db.query(
    `insert into due_work (kind, merchant_id, subject_id, due_at, details) values ('receiptFiles', $1, $1, $2, $3) on conflict do nothing`,
    [merchantId, timeParameter(dueAt), JSON.stringify({ day })],
  )
}

export async function insertReceiptFiles(
  db: Connection,
  merchantId: string,
  days: readonly string[],
  forms: readonly ReceiptForm[],
  now: number,
): Promise<void> {
  await db.query(
    `insert into receipt_files (merchant_id, day, form, made_at)
     select $1, day, form, $4 from unnest($2::date[]) day cross join unnest($3::text[]) form on conflict do nothing`,
    [merchantId, days, forms, timeParameter(now)],
  )
}

export type OwedFile = {
  readonly merchantId: string
  readonly day: string
  readonly form: ReceiptForm
  readonly attempts: number
  readonly madeAt: number
}

/** The oldest first. */
export async function findOwed(db: Connection, merchantId: string): Promise<OwedFile[]> {
  const { rows } = await db.query<OwedFile>(
    `select merchant_id as "merchantId", day, form, attempts, made_at as "madeAt" from receipt_files
      where merchant_id = $1 and outcome is null order by day, form`,
    [merchantId],
  )
  return rows
}

export async function markDelivered(
  db: Connection,
  { merchantId, day, form }: OwedFile,
  receipts: number,
  now: number,
): Promise<void> {
  await db.query(
    `update receipt_files set outcome = 'delivered', ended_at = $4, receipts = $5, failure = null, attempts = attempts + 1
      where merchant_id = $1 and day = $2 and form = $3 and outcome is null`,
    [merchantId, day, form, timeParameter(now), receipts],
  )
}

/** One attempt more; `endedAt`: it was the last. */
export async function markFailed(
  db: Connection,
  { merchantId, day, form }: OwedFile,
  failure: string,
  endedAt: number | undefined,
): Promise<void> {
  await db.query(
    `update receipt_files set attempts = attempts + 1, failure = $4, ended_at = $5, outcome = case when $5::timestamptz is null then null else 'givenUp' end
      where merchant_id = $1 and day = $2 and form = $3 and outcome is null`,
    [merchantId, day, form, failure.slice(0, 500), endedAt === undefined ? null : timeParameter(endedAt)],
  )
}

/** What was given up is owed again, from a day on. How many that are. */
export async function oweAgain(db: Connection, merchantId: string, from: string, now: number): Promise<number> {
  const { rowCount } = await db.query(
    `update receipt_files set outcome = null, ended_at = null, made_at = $3 where merchant_id = $1 and day >= $2 and outcome = 'givenUp'`,
    [merchantId, from, timeParameter(now)],
  )
  return rowCount ?? 0
}

export type CountedFiles = {
  readonly merchantId: string
  readonly made: number
  readonly delivered: number
  readonly scheduled: number
  readonly givenUp: number
  /** Of those that are scheduled, the oldest, and why its last attempt failed. */
  readonly oldest: string | null
  readonly failure: string | null
}

/** By merchant: made = delivered + scheduled + given up. */
export async function countReceiptFiles(db: Connection): Promise<CountedFiles[]> {
  const { rows } = await db.query<CountedFiles>(
    `select merchant_id as "merchantId", count(*) as made, count(*) filter (where outcome = 'delivered') as delivered,
            count(*) filter (where outcome is null) as scheduled, count(*) filter (where outcome = 'givenUp') as "givenUp",
            min(day) filter (where outcome is null) as oldest,
            (array_agg(failure order by day) filter (where outcome is null and failure is not null))[1] as failure
       from receipt_files group by merchant_id order by merchant_id`,
  )
  return rows
}
