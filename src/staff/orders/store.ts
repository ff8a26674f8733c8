// Orders of the staff in the database.

import { type Connection, timeParameter } from '../../platform/database/connect.ts'

/** `transfer`: where the money of a refund goes. */
export type OrderType = 'CP' | 'RF' | 'RV' | 'transfer'

export type StaffOrder = {
  readonly merchantId: string
  readonly id: string
  readonly paymentId: string
  /** First of the payment's chain. */
  readonly rootId: string
  readonly channelId: string
  readonly type: OrderType
  /** Hundredths. */
  readonly amount: number
  readonly currency: string
  readonly reason: string
  /** Details of a transfer, while it waits. */
  readonly sealed: Buffer | null
  /** Of the form in which it was given: 32 hex digits by chance. */
  readonly once: string
  /** As the audit names people. */
  readonly askedBy: string
  readonly askedAt: number
  /** For a colleague; else it was begun at once. */
  readonly waits: boolean
  readonly decision: 'approved' | 'refused' | null
  readonly decidedBy: string | null
  readonly decidedAt: number | null
  /** What became of what waited, in words. */
  readonly outcome: string | null
}
export type NewOrder = Omit<StaffOrder, 'decision' | 'decidedBy' | 'decidedAt' | 'outcome'>

const columns = `merchant_id as "merchantId", id, payment_id as "paymentId", root_id as "rootId", channel_id as "channelId", type, amount, currency, reason, sealed,
  once, asked_by as "askedBy", asked_at as "askedAt", waits, decision, decided_by as "decidedBy", decided_at as "decidedAt", outcome`

/** Orders about one chain are written one after the other: of two at a time the second counts the first. Until the transaction ends. */
export async function lockChain(db: Connection, merchantId: string, rootId: string): Promise<void> {
  await db.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [`staff order ${merchantId} ${rootId}`])
}

export async function insertOrder(db: Connection, one: NewOrder): Promise<void> {
  await db.query(
    `insert into staff_orders (merchant_id, id, payment_id, root_id, channel_id, type, amount, currency, reason, once, asked_by, asked_at, waits, sealed)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
    [
      one.merchantId,
      one.id,
      one.paymentId,
      one.rootId,
      one.channelId,
      one.type,
      one.amount,
      one.currency,
      one.reason,
      one.once,
      one.askedBy,
      timeParameter(one.askedAt),
      one.waits,
      one.sealed,
    ],
  )
}

/** What was ordered by the same form before. */
export async function findOnce(
  db: Connection,
  merchantId: string,
  paymentId: string,
  once: string,
): Promise<StaffOrder | undefined> {
  const { rows } = await db.query<StaffOrder>(
    `select ${columns} from staff_orders where merchant_id = $1 and payment_id = $2 and once = $3`,
    [merchantId, paymentId, once],
  )
  return rows[0]
}

/** The sum of what was ordered about a chain and not refused; hundredths. */
export async function orderedSince(
  db: Connection,
  merchantId: string,
  rootId: string,
  types: readonly OrderType[],
  since: number,
): Promise<number> {
  const { rows } = await db.query<{ sum: number }>(
    `select coalesce(sum(amount), 0)::bigint as sum from staff_orders
      where merchant_id = $1 and root_id = $2 and type = any ($3) and asked_at > $4 and decision is distinct from 'refused'`,
    [merchantId, rootId, types, timeParameter(since)],
  )
  return rows[0]!.sum
}

/** How many orders about a chain wait for a colleague that were asked for since. */
export async function countOpen(db: Connection, merchantId: string, rootId: string, since: number): Promise<number> {
  const { rows } = await db.query<{ count: number }>(
    'select count(*) as count from staff_orders where merchant_id = $1 and root_id = $2 and asked_at >= $3 and waits and decision is null',
    [merchantId, rootId, timeParameter(since)],
  )
  return rows[0]!.count
}

/** Those that wait or waited for a colleague, asked for since, of some merchants: those that may still be approved first (asked for since `open`), of both the newest. */
export async function listWaiting(
  db: Connection,
  merchantIds: readonly string[],
  { since, open, limit, skip }: { readonly since: number; readonly open: number; readonly limit: number; readonly skip: number },
): Promise<StaffOrder[]> {
  const { rows } = await db.query<StaffOrder>(
    `select ${columns} from staff_orders where merchant_id = any ($1) and asked_at >= $2 and waits
      order by (outcome is null and asked_at >= $3) desc, asked_at desc, id desc limit $4 offset $5`,
    [merchantIds, timeParameter(since), timeParameter(open), limit, skip],
  )
  return rows
}

export async function lockOrder(db: Connection, merchantId: string, id: string): Promise<StaffOrder | undefined> {
  const { rows } = await db.query<StaffOrder>(
    `select ${columns} from staff_orders where merchant_id = $1 and id = $2 for update`,
    [merchantId, id],
  )
  return rows[0]
}

export async function decideRow(
  db: Connection,
  { merchantId, id }: StaffOrder,
  decision: 'approved' | 'refused',
  by: string,
  now: number,
): Promise<void> {
  await db.query(
    'update staff_orders set decision = $3, decided_by = $4, decided_at = $5 where merchant_id = $1 and id = $2 and decision is null',
    [merchantId, id, decision, by, timeParameter(now)],
  )
}

/** The first that is heard of stays. */
export async function setOutcome(db: Connection, { merchantId, id }: StaffOrder, outcome: string): Promise<void> {
  await db.query('update staff_orders set outcome = $3, sealed = null where merchant_id = $1 and id = $2 and outcome is null', [
    merchantId,
    id,
    outcome,
  ])
}
