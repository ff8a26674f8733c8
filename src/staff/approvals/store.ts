// Orders that wait for a colleague, in the database.

import { type Connection, timeParameter } from '../../platform/database/connect.ts'

export type Approval = {
  readonly merchantId: string
  readonly id: string
  readonly paymentId: string
  readonly channelId: string
  readonly type: 'CP' | 'RF' | 'RV'
  /** Hundredths. */
  readonly amount: number
  readonly currency: string
  readonly reason: string
  /** As the audit names people. */
  readonly askedBy: string
  readonly askedAt: number
  readonly decision: 'approved' | 'refused' | null
  readonly decidedBy: string | null
  readonly decidedAt: number | null
  /** What became of it, in words. */
  readonly outcome: string | null
}
export type NewApproval = Omit<Approval, 'decision' | 'decidedBy' | 'decidedAt' | 'outcome'>

const columns = `merchant_id as "merchantId", id, payment_id as "paymentId", channel_id as "channelId", type, amount, currency, reason,
  asked_by as "askedBy", asked_at as "askedAt", decision, decided_by as "decidedBy", decided_at as "decidedAt", outcome`

export async function insertApproval(db: Connection, one: NewApproval): Promise<void> {
  await db.query(
    `insert into approvals (merchant_id, id, payment_id, channel_id, type, amount, currency, reason, asked_by, asked_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
    [
      one.merchantId,
      one.id,
      one.paymentId,
      one.channelId,
      one.type,
      one.amount,
      one.currency,
      one.reason,
      one.askedBy,
      timeParameter(one.askedAt),
    ],
  )
}

/** Those that were asked for since, of some merchants, the newest first. */
export async function listApprovals(
  db: Connection,
  merchantIds: readonly string[],
  since: number,
  limit: number,
): Promise<Approval[]> {
  const { rows } = await db.query<Approval>(
    `select ${columns} from approvals where merchant_id = any ($1) and asked_at >= $2 order by asked_at desc, id desc limit $3`,
    [merchantIds, timeParameter(since), limit],
  )
  return rows
}

export async function lockApproval(db: Connection, merchantId: string, id: string): Promise<Approval | undefined> {
  const { rows } = await db.query<Approval>(`select ${columns} from approvals where merchant_id = $1 and id = $2 for update`, [
    merchantId,
    id,
  ])
  return rows[0]
}

export async function decideRow(
  db: Connection,
  { merchantId, id }: Approval,
  decision: 'approved' | 'refused',
  by: string,
  now: number,
): Promise<void> {
  await db.query(
    'update approvals set decision = $3, decided_by = $4, decided_at = $5 where merchant_id = $1 and id = $2 and decision is null',
    [merchantId, id, decision, by, timeParameter(now)],
  )
}

/** The first that is heard of stays. */
export async function setOutcome(db: Connection, { merchantId, id }: Approval, outcome: string): Promise<void> {
  await db.query('update approvals set outcome = $3 where merchant_id = $1 and id = $2 and outcome is null', [
    merchantId,
    id,
    outcome,
  ])
}
