// Slips as they were issued: found by the number that a bank or a chain names, by their page, by their payment; and the numbers that are given out.

import { createHash } from 'node:crypto'
import type { Connection } from '../platform/database/connect.ts'
import { servedHere } from '../platform/database/elsewhere.ts'

/** Whose a number of an account is. */
export type SlipPlace = {
  readonly merchantId: string
  readonly paymentId: string
  /** Hundredths. */
  readonly amount: number
  readonly currency: string
  /** `yyyy-MM-dd`. */
  readonly dueOn: string
}

export type Slip = SlipPlace & {
  readonly account: string
  readonly number: string
  readonly document: string
  readonly barcode: string
  /** As people type it. */
  readonly line: string
  /** Business time, milliseconds. */
  readonly issuedAt: number
}

const placeColumns = 'merchant_id as "merchantId", payment_id as "paymentId", amount, currency, due_on as "dueOn"'
const slipColumns = `${placeColumns}, account, number, document, barcode, line, issued_at as "issuedAt"`

/** By what a bank or a chain calls it: neither names a merchant. */
export async function findSlip(db: Connection, account: string, number: string): Promise<SlipPlace | undefined> {
  const { rows } = await db.query<SlipPlace>({
    name: 'find slip',
    text: `select ${placeColumns} from slips where account = $1 and number = $2 and ${servedHere()}`,
    values: [account, number],
  })
  return rows[0]
}

export async function findSlipOf(db: Connection, merchantId: string, paymentId: string): Promise<Slip | undefined> {
  const { rows } = await db.query<Slip>(`select ${slipColumns} from slips where merchant_id = $1 and payment_id = $2`, [
    merchantId,
    paymentId,
  ])
  return rows[0]
}

/** By the token of its page. */
export async function findSlipByToken(db: Connection, merchantId: string, token: string): Promise<Slip | undefined> {
  const { rows } = await db.query<Slip>(`select ${slipColumns} from slips where merchant_id = $1 and link_hash = $2`, [
    merchantId,
    createHash('sha256').update(token).digest(),
  ])
  return rows[0]
}

/** The first of so many numbers, which nobody else gets; undefined when the account has no more below `end`, or another cell gives them out. */
export async function takeNumbers(db: Connection, account: string, count: number, end: number): Promise<number | undefined> {
  await db.query('insert into slip_numbers (account, next) values ($1, 1) on conflict do nothing', [account])
  const { rows } = await db.query<{ first: number }>(
    'update slip_numbers set next = next + $2 where account = $1 and next + $2 <= $3 and not elsewhere returning next - $2 as first',
    [account, count, end],
  )
  return rows[0]?.first
}
