// How an acquirer's report finds the payments that it means.

import { slackMilliseconds } from '../../payments/store/sweep.ts'
import { idAt } from '../../platform/clock.ts'
import type { Connection } from '../../platform/database/connect.ts'
import { servedHere } from '../../platform/database/elsewhere.ts'

export type PaymentPlace = { readonly merchantId: string; readonly id: string }

/** The merchant that a payment belongs to: an acquirer's report does not name it. Each merchant's own index is asked. */
export async function findOwners(db: Connection, id: string): Promise<PaymentPlace[]> {
  const { rows } = await db.query<PaymentPlace>(
    `select p.merchant_id as "merchantId", p.id from entities m join payments p on p.merchant_id = m.id and p.id = $1
      where m.kind = 'merchant' and ${servedHere('m.id')}`,
    [id],
  )
  return rows
}

/** Payments recorded within some time that an acquirer knows by a retrieval reference. Ids begin with the time: no index of references is needed. */
export async function findByRetrievalReference(
  db: Connection,
  acquirer: string,
  reference: string,
  from: number,
  to: number,
): Promise<PaymentPlace[]> {
  const { rows } = await db.query<PaymentPlace>(
    `select p.merchant_id as "merchantId", p.id
       from entities m
       join payments p on p.merchant_id = m.id and p.id >= $3 and p.id < $4
       join answers a on a.merchant_id = p.merchant_id and a.payment_id = p.id
      where m.kind = 'merchant' and ${servedHere('m.id')} and a.reply::json ->> 'rrn' = $2 and a.reply::json ->> 'acquirer' = $1`,
    [acquirer, reference, idAt(Math.max(0, from - slackMilliseconds)), idAt(to + slackMilliseconds)],
  )
  return rows
}

/** Payments that an acquirer knows by a number of its own (DE37), each chain once: what follows a payment may go by its number. */
export async function findByHostReference(db: Connection, acquirer: string, reference: string): Promise<PaymentPlace[]> {
  const { rows } = await db.query<PaymentPlace>(
    `select distinct on (p.merchant_id, coalesce(p.root_id, p.id)) p.merchant_id as "merchantId", p.id
       from entities m
       join answers a on a.merchant_id = m.id and a.reply like '%"hostReference"%'
        and substring(a.reply from '"hostReference":"([^"]+)"') = $2
       join payments p on p.merchant_id = a.merchant_id and p.id = a.payment_id
      where m.kind = 'merchant' and ${servedHere('m.id')} and a.reply::json ->> 'acquirer' = $1
      order by p.merchant_id, coalesce(p.root_id, p.id), p.id`,
    [acquirer, reference],
  )
  return rows
}

/** Names a line of an acquirer's report. */
export type ChargebackLine = { readonly report: string; readonly line: number }

/** The payment that a line became when it was imported before. */
export async function findChargebackLine(
  db: Connection,
  merchantId: string,
  { report, line }: ChargebackLine,
): Promise<string | undefined> {
  const { rows } = await db.query<{ paymentId: string }>(
    'select payment_id as "paymentId" from chargeback_lines where merchant_id = $1 and report = $2 and line = $3',
    [merchantId, report, line],
  )
  return rows[0]?.paymentId
}

/** The payment that a line became, inside the transaction that writes it. */
export async function insertChargebackLine(
  db: Connection,
  merchantId: string,
  { report, line }: ChargebackLine,
  paymentId: string,
): Promise<void> {
  await db.query('insert into chargeback_lines (merchant_id, report, line, payment_id) values ($1, $2, $3, $4)', [
    merchantId,
    report,
    line,
    paymentId,
  ])
}
