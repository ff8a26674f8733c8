// How an acquirer's report finds the payments that it means.

import { slackMilliseconds } from '../../payments/store/sweep.ts'
import { idAt } from '../../platform/clock.ts'
import type { Connection } from '../../platform/database/connect.ts'
import { servedHere } from '../../platform/database/elsewhere.ts'

/** `isHere`: its merchant is served here; else the payment may be another cell's to find. */
export type PaymentPlace = { readonly merchantId: string; readonly id: string; readonly isHere: boolean }

const placeOf = `p.merchant_id as "merchantId", p.id, ${servedHere('m.id')} as "isHere"`

/** The merchant that a payment belongs to, where it is served here: an acquirer's report does not name it. Each merchant's own index is asked. */
export async function findOwners(db: Connection, id: string): Promise<PaymentPlace[]> {
  const { rows } = await db.query<PaymentPlace>(
    `select ${placeOf} from entities m join payments p on p.merchant_id = m.id and p.id = $1
      where m.kind = 'merchant' and ${servedHere('m.id')}`,
    [id],
  )
  return rows
}

/**
 * Payments recorded within some time that an acquirer knows by a retrieval reference. Ids begin with the time, so that their answers are read and no others: an index of references would be
 * written with every answer, for the few that are ever charged back.
 */
export async function findByRetrievalReference(
  db: Connection,
  acquirer: string,
  reference: string,
  from: number,
  to: number,
): Promise<PaymentPlace[]> {
  const { rows } = await db.query<PaymentPlace>(
    `select a.merchant_id as "merchantId", a.payment_id as id, ${servedHere('m.id')} as "isHere"
       from entities m
       join answers a on a.merchant_id = m.id and a.payment_id >= $3 and a.payment_id < $4
      where m.kind = 'merchant' and a.reply::json ->> 'rrn' = $2 and a.reply::json ->> 'acquirer' = $1`,
    [acquirer, reference, idAt(Math.max(0, from - slackMilliseconds)), idAt(to + slackMilliseconds)],
  )
  return rows
}

/** Payments that an acquirer knows by a number of its own (DE37), each chain once: what follows a payment may go by its number. */
export async function findByHostReference(db: Connection, acquirer: string, reference: string): Promise<PaymentPlace[]> {
  const { rows } = await db.query<PaymentPlace>(
    `select distinct on (p.merchant_id, coalesce(p.root_id, p.id)) ${placeOf}
       from entities m
       join answers a on a.merchant_id = m.id and a.reply like '%"hostReference"%'
        and substring(a.reply from '"hostReference":"([^"]+)"') = $2
       join payments p on p.merchant_id = a.merchant_id and p.id = a.payment_id
      where m.kind = 'merchant' and a.reply::json ->> 'acquirer' = $1
      order by p.merchant_id, coalesce(p.root_id, p.id), p.id`,
    [acquirer, reference],
  )
  return rows
}

/** Names a line of an acquirer's report. */
export type ChargebackLine = { readonly report: string; readonly line: number }

/** The payment that a line became when it was imported before; of another merchant only where none of this one has it. */
export async function findChargebackLine(
  db: Connection,
  merchantId: string,
  { report, line }: ChargebackLine,
): Promise<string | undefined> {
  const { rows } = await db.query<{ paymentId: string }>(
    `select l.payment_id as "paymentId" from entities m join chargeback_lines l on l.merchant_id = m.id and l.report = $2 and l.line = $3
      where m.kind = 'merchant' order by m.id <> $1 limit 1`,
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
