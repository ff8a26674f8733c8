// Orders to banks that wait for a file, and the files.

import { nobody } from '../../payments/cases/cases.ts'
import type { PaymentRecord } from '../../payments/payment.ts'
import { type Connection, timeParameter } from '../../platform/database/connect.ts'
import { servedHere } from '../../platform/database/elsewhere.ts'
import { type LastFiles, lastFilesOf } from '../../platform/database/fileHold.ts'
import { orderFileName, type SlipOrderLine } from './orderFile.ts'

export type WaitingOrder = Omit<SlipOrderLine, 'payer'> & {
  readonly merchantId: string
  readonly paymentId: string
  readonly fields: PaymentRecord['fields']
}

/** Those in no file yet, the oldest first. Who comes at the same time waits, and finds none of them. */
export async function lockOrders(db: Connection, account: string, most: number): Promise<WaitingOrder[]> {
  const { rows } = await db.query<Omit<WaitingOrder, 'fields'> & { record: string }>(
    `select o.merchant_id as "merchantId", o.payment_id as "paymentId", o.kind, s.number, s.document, s.due_on as "dueOn", s.amount, p.record
       from slip_orders o join slips s on s.merchant_id = o.merchant_id and s.payment_id = o.slip_id
            join payments p on p.merchant_id = o.merchant_id and p.id = o.slip_id
      where o.account = $1 and o.sequence is null and ${servedHere('o.merchant_id')} order by o.ordered_at, o.payment_id limit $2 for update of o`,
    [account, most],
  )
  return rows.map(({ record, ...row }) => ({ ...row, fields: (JSON.parse(record) as PaymentRecord).fields }))
}

export async function nextOrderFile(db: Connection, account: string): Promise<number> {
  const { rows } = await db.query<{ next: number }>(
    'select coalesce(max(sequence), 0) + 1 as next from order_files where account = $1',
    [account],
  )
  return rows[0]!.next
}

export type NumberedOrders = {
  readonly id: string
  readonly account: string
  readonly sequence: number
  readonly day: string
  readonly name: string
  readonly sealed: Buffer
}

/** False when the number is taken meanwhile. */
export async function insertOrderFile(
  db: Connection,
  { id, account, sequence, day, name, sealed }: NumberedOrders,
  orders: readonly WaitingOrder[],
  now: number,
): Promise<boolean> {
  const { rowCount } = await db.query(
    `insert into order_files (merchant_id, id, account, sequence, day, name, sealed, made_at) values ($1, $2, $3, $4, $5, $6, $7, $8)
     on conflict do nothing`,
    [nobody, id, account, sequence, day, name, sealed, timeParameter(now)],
  )
  if (rowCount !== 1) return false
  await db.query(
    `update slip_orders o set sequence = $1, line = one.line
       from unnest($2::uuid[], $3::uuid[]) with ordinality as one (merchant_id, payment_id, line)
      where o.merchant_id = one.merchant_id and o.payment_id = one.payment_id and o.sequence is null`,
    [sequence, orders.map(one => one.merchantId), orders.map(one => one.paymentId)],
  )
  return true
}

/** Written down, and perhaps not on disk: the oldest first. */
export async function findUnwrittenOrders(db: Connection, account: string): Promise<NumberedOrders[]> {
  const { rows } = await db.query<NumberedOrders>(
    'select id, account, sequence, day, name, sealed from order_files where account = $1 and written_at is null order by sequence',
    [account],
  )
  return rows
}

/** What it says of payers is not needed any more. */
export async function markOrdersWritten(db: Connection, { id }: NumberedOrders, now: number): Promise<void> {
  await db.query(
    'update order_files set written_at = $3, sealed = null where merchant_id = $1 and id = $2 and written_at is null',
    [nobody, id, timeParameter(now)],
  )
}

export type ShownOrders = Pick<NumberedOrders, 'account' | 'sequence' | 'day' | 'name'> & {
  readonly orders: number
  readonly writtenAt: number | null
}

/** The latest files of some accounts, the newest first. */
export async function findOrderFiles(db: Connection, accounts: readonly string[], limit: number): Promise<ShownOrders[]> {
  const { rows } = await db.query<ShownOrders>(
    `select f.account, f.sequence, f.day, f.name, f.written_at as "writtenAt",
            (select count(*) from slip_orders o where o.account = f.account and o.sequence = f.sequence) as orders
       from order_files f where f.account = any ($1) order by f.made_at desc, f.sequence desc limit $2`,
    [accounts, limit],
  )
  return rows
}

/** How many orders of some accounts are in no file. */
export async function countUnfiledOrders(
  db: Connection,
  accounts: readonly string[],
): Promise<{ account: string; orders: number }[]> {
  const { rows } = await db.query<{ account: string; orders: number }>(
    `select account, count(*) as orders from slip_orders where account = any ($1) and sequence is null and ${servedHere()}
      group by account order by account`,
    [accounts],
  )
  return rows
}

/** Of each account. `here`: the last order is of a merchant who is served here. */
export const lastOrderFiles = (db: Connection): Promise<LastFiles> => lastFilesOf(db, 'order_files', 'slip_orders')

/** The accounts whose banks are still to be told of slips of a merchant. */
export async function accountsWithOrders(db: Connection, merchantId: string): Promise<string[]> {
  const { rows } = await db.query<{ account: string }>(
    `select distinct o.account from slip_orders o where o.merchant_id = $1 and (o.sequence is null or exists (
       select from order_files f where f.account = o.account and f.sequence = o.sequence and f.written_at is null))`,
    [merchantId],
  )
  return rows.map(({ account }) => account)
}

/**
 * The account goes on behind a number that the bank has had, and what was to be in files that were not on disk waits for the next. `id`: of the file that the bank
 * has, if this database does not know it. How many orders wait.
 */
export async function passOrderFiles(db: Connection, account: string, behind: number, id: string, now: number): Promise<number> {
  await db.query(
    `update slip_orders set sequence = null, line = null where account = $1 and ${servedHere()}
        and sequence in (select sequence from order_files where account = $1 and written_at is null)`,
    [account],
  )
  await db.query('delete from order_files where account = $1 and written_at is null', [account])
  if (behind > 0)
    await db.query(
      `insert into order_files (merchant_id, id, account, sequence, day, name, made_at, written_at)
       values ($1, $2, $3, $4, ($5::timestamptz at time zone 'UTC')::date, $6, $5, $5)
       on conflict do nothing`,
      [nobody, id, account, behind, timeParameter(now), orderFileName(account, behind)],
    )
  return (await countUnfiledOrders(db, [account]))[0]?.orders ?? 0
}
