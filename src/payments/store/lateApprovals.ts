// Approvals that came after their payment had ended otherwise.

import type { ConnectorState } from '../../connectors/connector.ts'
import { type Connection, timeParameter } from '../../platform/database/connect.ts'
import { storableJson } from '../../platform/database/json.ts'
import { askedAgain } from '../../platform/due/store.ts'

export type LateApproval = { readonly kept: ConnectorState; readonly acknowledged: boolean }

export async function findLateApproval(db: Connection, merchantId: string, paymentId: string): Promise<LateApproval | undefined> {
  const { rows } = await db.query<{ reply: string; acknowledged: boolean }>(
    'select reply, acknowledged_at is not null as acknowledged from late_approvals where merchant_id = $1 and payment_id = $2',
    [merchantId, paymentId],
  )
  return rows[0] && { kept: JSON.parse(rows[0].reply), acknowledged: rows[0].acknowledged }
}

/** Remembers the approval and makes its reversal due, in one statement; false when it was heard of before. */
export async function addLateApproval(
  db: Connection,
  merchantId: string,
  paymentId: string,
  kept: ConnectorState,
  now: number,
): Promise<boolean> {
  const { rowCount } = await db.query(
    `with heard as (
       insert into late_approvals (merchant_id, payment_id, reply, heard_at) values ($1, $2, $3, $4)
       on conflict do nothing returning merchant_id, payment_id)
     insert into due_work (kind, merchant_id, subject_id, due_at) select 'reverse', merchant_id, payment_id, $4 from heard
     ${askedAgain}`,
    [merchantId, paymentId, storableJson(kept), timeParameter(now)],
  )
  return rowCount === 1
}

export async function acknowledgeLateApproval(db: Connection, merchantId: string, paymentId: string, now: number): Promise<void> {
  await db.query('update late_approvals set acknowledged_at = $3 where merchant_id = $1 and payment_id = $2', [
    merchantId,
    paymentId,
    timeParameter(now),
  ])
}
