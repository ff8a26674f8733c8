// Orders to transfer refunds, in the database.

import type { Mode } from '../../connectors/connector.ts'
import { type Connection, timeParameter } from '../../platform/database/connect.ts'
import { servedHere } from '../../platform/database/elsewhere.ts'
import { type LastFiles, lastFilesOf } from '../../platform/database/fileHold.ts'
import type { Payment } from '../payment.ts'

type TransferName = { readonly merchantId: string; readonly paymentId: string }

/** Stores the order with its refund, which is pending from now on and announced so; no recovery is to look at it. */
export async function insertTransfer(
  db: Connection,
  { merchantId, id, channelId, rootId, receivedAt }: Payment,
  row: { readonly account: string; readonly sealed?: Buffer; readonly answer: Buffer },
  now: number,
): Promise<void> {
  await db.query(
    `with ordered as (
       insert into refund_transfers (merchant_id, payment_id, account, sealed, ordered_at) values ($1, $2, $3, $4, $5)),
     passed_on as (
       delete from unanswered where merchant_id = $1 and payment_id = $2),
     given as (
       insert into pending_answers (merchant_id, payment_id, sealed) values ($1, $2, $6))
     insert into events (merchant_id, payment_id, sequence, type, channel_id, root_id, occurred_at, recorded_at)
     values ($1, $2, 1, 'PAYMENT', $7, $8, $9, $5)`,
    [
      merchantId,
      id,
      row.account,
      row.sealed ?? null,
      timeParameter(now),
      row.answer,
      channelId,
      rootId,
      timeParameter(receivedAt),
    ],
  )
}

export type TransferRow = TransferName & {
  readonly account: string
  readonly sealed: Buffer | null
  readonly orderedAt: number
  readonly sequence: number | null
  readonly line: number | null
  /** It has a place in a file that is not on disk yet. */
  readonly isUnwritten: boolean
  /** Hundredths. */
  readonly amount: number
  readonly currency: string
  readonly mode: Mode
  readonly result: string | null
}

const columns = `t.merchant_id as "merchantId", t.payment_id as "paymentId", t.account, t.sealed, t.ordered_at as "orderedAt", t.sequence, t.line,
  exists (select from transfer_files f where f.account = t.account and f.sequence = t.sequence and f.written_at is null) as "isUnwritten",
  p.amount, p.currency, p.mode, a.result`
const tables = `refund_transfers t join payments p on p.merchant_id = t.merchant_id and p.id = t.payment_id
  left join answers a on a.merchant_id = t.merchant_id and a.payment_id = t.payment_id`

/** The open ones, or all, the oldest first. */
export async function findTransfers(db: Connection, endedToo: boolean, limit: number): Promise<TransferRow[]> {
  const { rows } = await db.query<TransferRow>(
    `select ${columns} from ${tables} where a.result is null or $1 order by t.ordered_at, t.payment_id limit $2`,
    [endedToo, limit],
  )
  return rows
}

/** By the id of the refund alone, as operators name it. */
export async function findTransfer(db: Connection, paymentId: string): Promise<TransferRow | undefined> {
  const { rows } = await db.query<TransferRow>(
    `select ${columns} from entities m join ${tables} on t.merchant_id = m.id where m.kind = 'merchant' and t.payment_id = $1 and ${servedHere('m.id')}`,
    [paymentId],
  )
  return rows[0]
}

/** Those of some refunds of a merchant. */
export async function transfersAbout(db: Connection, merchantId: string, paymentIds: readonly string[]): Promise<TransferRow[]> {
  const { rows } = await db.query<TransferRow>(
    `select ${columns} from ${tables} where t.merchant_id = $1 and t.payment_id = any ($2)`,
    [merchantId, paymentIds],
  )
  return rows
}

/** False when it is in a file already, or has ended. */
export async function enterTransfer(db: Connection, { merchantId, paymentId }: TransferName, sealed: Buffer): Promise<boolean> {
  const { rowCount } = await db.query(
    `update refund_transfers t set sealed = $3 where merchant_id = $1 and payment_id = $2 and sequence is null
       and not exists (select from answers a where a.merchant_id = t.merchant_id and a.payment_id = t.payment_id)`,
    [merchantId, paymentId, sealed],
  )
  return rowCount === 1
}

/** Those of a mode in no file yet whose destination is known, the oldest first. Who comes at the same time waits, and finds none of them. */
export async function lockOrdered(db: Connection, account: string, mode: Mode, most: number): Promise<TransferName[]> {
  const { rows } = await db.query<TransferName>(
    `select t.merchant_id as "merchantId", t.payment_id as "paymentId" from refund_transfers t
        join payments p on p.merchant_id = t.merchant_id and p.id = t.payment_id and p.mode = $3
      where account = $1 and sequence is null and sealed is not null and ${servedHere('t.merchant_id')}
        and not exists (select from answers a where a.merchant_id = t.merchant_id and a.payment_id = t.payment_id)
      order by ordered_at, payment_id limit $2 for update of t`,
    [account, most, mode],
  )
  return rows
}

/** Its end and a file cannot both take it. */
export async function lockTransfer(db: Connection, { merchantId, paymentId }: TransferName): Promise<void> {
  await db.query('select 1 from refund_transfers where merchant_id = $1 and payment_id = $2 for update', [merchantId, paymentId])
}

/** Forgets where the money of ended refunds went that were ordered before `$1`, once no file has to be made of them any more. */
export const eraseDetails = `update refund_transfers set sealed = null where (merchant_id, payment_id) in (
  select t.merchant_id, t.payment_id from refund_transfers t join answers a on a.merchant_id = t.merchant_id and a.payment_id = t.payment_id
    left join transfer_files f on f.account = t.account and f.sequence = t.sequence
   where t.sealed is not null and t.ordered_at < $1 and ${servedHere('t.merchant_id')} and (t.sequence is null or f.written_at is not null) limit $2)`

/** The next number of the account with these orders; false when another process has taken it. */
export async function insertTransferFile(
  db: Connection,
  account: string,
  orders: readonly TransferName[],
  now: number,
): Promise<boolean> {
  const { rows } = await db.query<{ sequence: number }>(
    `insert into transfer_files (account, sequence, made_at, by_place)
     select $1, coalesce(max(sequence), 0) + 1, $2, false from transfer_files where account = $1 on conflict do nothing returning sequence`,
    [account, timeParameter(now)],
  )
  if (!rows[0]) return false
  await db.query(
    `update refund_transfers t set sequence = $2, line = one.line
       from unnest($3::uuid[], $4::uuid[]) with ordinality as one (merchant_id, payment_id, line)
      where t.merchant_id = one.merchant_id and t.payment_id = one.payment_id and t.account = $1`,
    [account, rows[0].sequence, orders.map(one => one.merchantId), orders.map(one => one.paymentId)],
  )
  return true
}

export type TransferFile = {
  readonly account: string
  readonly sequence: number
  readonly madeAt: number
  /** Its orders are named by their places in it: a gateway of before has given it its number. */
  readonly byPlace: boolean
}

/** Written down, and perhaps not on disk: the oldest first. */
export async function findUnwrittenTransfers(db: Connection, account: string): Promise<TransferFile[]> {
  const { rows } = await db.query<TransferFile>(
    `select account, sequence, made_at as "madeAt", by_place as "byPlace" from transfer_files
      where account = $1 and written_at is null order by sequence`,
    [account],
  )
  return rows
}

/** What a file holds, in the order of its lines. */
export async function findFiled(db: Connection, account: string, sequence: number): Promise<TransferRow[]> {
  const { rows } = await db.query<TransferRow>(
    `select ${columns} from ${tables} where t.account = $1 and t.sequence = $2 order by t.line`,
    [account, sequence],
  )
  return rows
}

/** By the beginning of its id, in a file or in none: the database may have been put back to before that. Undefined also where two begin so. */
export async function findByIdStart(db: Connection, account: string, start: string): Promise<TransferRow | undefined> {
  const { rows } = await db.query<TransferRow>(
    `select ${columns} from ${tables} where t.account = $1 and t.payment_id between $2 and $3 and ${servedHere('t.merchant_id')}`,
    [account, start.padEnd(32, '0'), start.padEnd(32, 'f')],
  )
  return rows.length === 1 ? rows[0] : undefined
}

/** By its place in a file, where the file names it so. */
export async function findFiledAt(
  db: Connection,
  account: string,
  sequence: number,
  line: number,
): Promise<TransferRow | undefined> {
  const { rows } = await db.query<TransferRow>(
    `select ${columns} from ${tables} join transfer_files f on f.account = t.account and f.sequence = t.sequence and f.by_place
      where t.account = $1 and t.sequence = $2 and t.line = $3 and ${servedHere('t.merchant_id')}`,
    [account, sequence, line],
  )
  return rows[0]
}

export async function markTransfersWritten(db: Connection, { account, sequence }: TransferFile, now: number): Promise<void> {
  await db.query('update transfer_files set written_at = $3 where account = $1 and sequence = $2 and written_at is null', [
    account,
    sequence,
    timeParameter(now),
  ])
}

/** Of each account. `here`: the last order is of a merchant who is served here. */
export const lastTransferFiles = (db: Connection): Promise<LastFiles> => lastFilesOf(db, 'transfer_files', 'refund_transfers')

/** The accounts from which transfers of a merchant are ordered that have not ended. */
export async function accountsWithTransfers(db: Connection, merchantId: string): Promise<string[]> {
  const { rows } = await db.query<{ account: string }>(
    `select distinct t.account from refund_transfers t where t.merchant_id = $1
        and not exists (select from answers a where a.merchant_id = t.merchant_id and a.payment_id = t.payment_id)`,
    [merchantId],
  )
  return rows.map(({ account }) => account)
}

/** The account goes on behind a number that the bank has had, and what was to be in files that were not on disk waits for the next. How many orders wait. */
export async function passTransferFiles(db: Connection, account: string, behind: number, now: number): Promise<number> {
  await db.query(
    `update refund_transfers set sequence = null, line = null where account = $1
        and sequence in (select sequence from transfer_files where account = $1 and written_at is null)`,
    [account],
  )
  await db.query('delete from transfer_files where account = $1 and written_at is null', [account])
  if (behind > 0)
    await db.query(
      `insert into transfer_files (account, sequence, made_at, written_at, by_place) values ($1, $2, $3, $3, false) on conflict do nothing`,
      [account, behind, timeParameter(now)],
    )
  const { rows } = await db.query<{ count: number }>(
    `select count(*) as count from refund_transfers t where account = $1 and sequence is null and sealed is not null
        and not exists (select from answers a where a.merchant_id = t.merchant_id and a.payment_id = t.payment_id)`,
    [account],
  )
  return rows[0]!.count
}
