// Receipts by the key that a bank or a chain tells them apart by.

import type { Connection } from '../../platform/database/connect.ts'

export type ReceiptRow = {
  readonly merchantId: string
  readonly paymentId: string
  readonly slipId: string
  readonly account: string
  readonly key: string
  readonly paidOn: string
  readonly creditedOn?: string
}

/** The payment that was recorded under a key before. */
export async function findReceipt(db: Connection, merchantId: string, account: string, key: string): Promise<string | undefined> {
  const { rows } = await db.query<{ paymentId: string }>(
    'select payment_id as "paymentId" from receipts where merchant_id = $1 and account = $2 and key = $3',
    [merchantId, account, key],
  )
  return rows[0]?.paymentId
}

export async function insertReceipt(db: Connection, row: ReceiptRow): Promise<void> {
  await db.query(
    `insert into receipts (merchant_id, payment_id, slip_id, account, key, paid_on, credited_on)
     values ($1, $2, $3, $4, $5, $6, $7)`,
    [row.merchantId, row.paymentId, row.slipId, row.account, row.key, row.paidOn, row.creditedOn ?? null],
  )
}
