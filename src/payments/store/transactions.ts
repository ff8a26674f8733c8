// Which payment a transaction of a bank or a wallet belongs to.

import type { Connection } from '../../platform/database/connect.ts'
import type { Payment } from '../payment.ts'

/** True when the transaction is the payment's own, from now on or before; false when another payment has it. */
export async function claimTransaction(
  db: Connection,
  { connector, brand, merchantId, id }: Payment,
  transaction: string,
): Promise<boolean> {
  // The update changes nothing: unlike a reading it sees what was inserted a moment ago.
  const { rowCount } = await db.query(
    `insert into claimed_transactions as t (connector, brand, transaction_id, merchant_id, payment_id) values ($1, $2, $3, $4, $5)
     on conflict (connector, brand, transaction_id) do update set payment_id = excluded.payment_id
       where t.merchant_id = excluded.merchant_id and t.payment_id = excluded.payment_id`,
    [connector, brand ?? '', transaction, merchantId, id],
  )
  return rowCount === 1
}
