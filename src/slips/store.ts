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

/** The first of so many numbers, which nobody else gets; undefined when the account has not so many below `end`, or another cell gives them out. */
export const takeNumbers = async (db: Connection, account: string, count: number, end: number): Promise<number | undefined> =>
  (await goOn(db, account, count, end, false))?.first

type Passed = { readonly first: number; readonly elsewhere: boolean }

/** Passes over so many numbers, also where another cell gives them out; undefined when the account has not so many below `end`. */
export const passOver = (db: Connection, account: string, count: number, end: number): Promise<Passed | undefined> =>
  goOn(db, account, count, end, true)

async function goOn(
  db: Connection,
  account: string,
  count: number,
  end: number,
  isElsewhereToo: boolean,
): Promise<Passed | undefined> {
  const { rows } = await db.query<Passed>({
    name: 'take numbers',
    text: `insert into slip_numbers as n (account, next) select $1, 1 + $2::bigint where 1 + $2 <= $3
           on conflict (account) do update set next = n.next + $2 where n.next + $2 <= $3 and (not n.elsewhere or $4)
           returning next - $2 as first, elsewhere`,
    values: [account, count, end, isElsewhereToo],
  })
  return rows[0]
}

/** Of those, the numbers that slips have. */
export async function findGivenNumbers(db: Connection, account: string, numbers: readonly string[]): Promise<Set<string>> {
  const { rows } = await db.query<{ number: string }>({
    name: 'given numbers',
    text: 'select number from slips where account = $1 and number = any ($2)',
    values: [account, numbers],
  })
  return new Set(rows.map(({ number }) => number))
}

export type NumberCounter = { readonly account: string; readonly next: number; readonly elsewhere: boolean }

export const readCounters = async (db: Connection): Promise<NumberCounter[]> =>
  (await db.query<NumberCounter>('select account, next, elsewhere from slip_numbers')).rows
