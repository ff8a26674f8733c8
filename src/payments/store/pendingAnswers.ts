// What waiting payments were answered.

import type { Connection } from '../../platform/database/connect.ts'
import { servedHere } from '../../platform/database/elsewhere.ts'

/** Sealed, by payment id; of payments that were not answered as pending there is none. */
export async function findPendingAnswers(
  db: Connection,
  merchantId: string,
  paymentIds: readonly string[],
): Promise<ReadonlyMap<string, Buffer>> {
  const { rows } = await db.query<{ id: string; sealed: Buffer }>(
    'select payment_id as id, sealed from pending_answers where merchant_id = $1 and payment_id = any ($2)',
    [merchantId, paymentIds],
  )
  return new Map(rows.map(({ id, sealed }) => [id, sealed]))
}

/** Of payments that were made before the id `$1` and are answered. Ids begin with the time: of each merchant the first are the oldest. */
export const erasePendingAnswers = `delete from pending_answers where (merchant_id, payment_id) in (
  select p.merchant_id, p.payment_id from entities m
   cross join lateral (select merchant_id, payment_id from pending_answers where merchant_id = m.id and payment_id < $1 and ${servedHere()}) p
    join answers a on a.merchant_id = p.merchant_id and a.payment_id = p.payment_id limit $2)`
