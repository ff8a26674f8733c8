// What waiting payments were answered.

import type { Connection } from '../../platform/database/connect.ts'

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
