// Payments that an acquirer had booked without our approval, and took back when it was told.

import { type Connection, timeParameter } from '../../platform/database/connect.ts'

export async function insertTakenBack(
  db: Connection,
  merchantId: string,
  paymentId: string,
  acquirer: string,
  now: number,
): Promise<void> {
  await db.query(
    'insert into taken_back (merchant_id, payment_id, acquirer, heard_at) values ($1, $2, $3, $4) on conflict do nothing',
    [merchantId, paymentId, acquirer, timeParameter(now)],
  )
}
