// The bank accounts of a merchant: numbers of slips and files to and from the bank go with them, and belong to one cell.

import type { Connection } from '../../platform/database/connect.ts'
import { ownAccounts } from './tables.ts'

/** Of those, accounts whose numbers this cell gives out: they may be in the memory of its processes. */
export async function takenAccounts(db: Connection, accounts: readonly string[]): Promise<string[]> {
  const { rows } = await db.query<{ account: string }>(
    'select account from slip_numbers where account = any ($1) and not elsewhere order by account',
    [accounts],
  )
  return rows.map(({ account }) => account)
}

/** Of those, what other merchants of the other cell have come to use meanwhile. */
export async function accountsOfOthers(db: Connection, accounts: readonly string[], merchantId: string): Promise<string[]> {
  const { rows } = await db.query<{ account: string }>(
    `select account from slips where account = any ($1) and merchant_id <> $2
      union select account from refund_transfers where account = any ($1) and merchant_id <> $2 order by account`,
    [accounts, merchantId],
  )
  return rows.map(({ account }) => account)
}

/** Names of files that came of a merchant's accounts, and that another cell has not taken. */
export async function filesMissing(db: Connection, there: Connection, merchantId: string): Promise<string[]> {
  const { rows } = await db.query<{ name: string; hash: string }>(
    `select name, encode(hash, 'hex') as hash from return_files where account = any ($1) and refused is null order by received_at`,
    [await accountsOf(db, merchantId)],
  )
  const { rows: known } = await there.query<{ hash: string }>(
    `select encode(hash, 'hex') as hash from return_files where hash = any (select decode(one, 'hex') from unnest($1::text[]) one) and refused is null`,
    [rows.map(({ hash }) => hash)],
  )
  const taken = new Set(known.map(({ hash }) => hash))
  return rows.filter(({ hash }) => !taken.has(hash)).map(({ name }) => name)
}

/** From here on this cell gives out the numbers of a merchant's accounts, or another one does. What is in the memory of processes is given by nobody else. */
export async function giveNumbers(db: Connection, merchantId: string, giver: 'here' | 'elsewhere'): Promise<void> {
  await db.query(`update slip_numbers set elsewhere = $2 where account in (${ownAccounts}) and elsewhere <> $2`, [
    merchantId,
    giver === 'elsewhere',
  ])
}

/** No number of a merchant's accounts is given out here that another cell may have given out. */
export async function passNumbersOf(db: Connection, there: Connection, merchantId: string): Promise<void> {
  const { rows } = await there.query<{ account: string; next: number }>(
    'select account, next from slip_numbers where account = any ($1)',
    [await accountsOf(db, merchantId)],
  )
  await db.query(
    `update slip_numbers n set next = greatest(n.next, theirs.next)
       from unnest($1::text[], $2::bigint[]) as theirs (account, next) where n.account = theirs.account`,
    [rows.map(({ account }) => account), rows.map(({ next }) => next)],
  )
}

export async function accountsOf(db: Connection, merchantId: string): Promise<string[]> {
  const { rows } = await db.query<{ account: string }>(`${ownAccounts} order by account`, [merchantId])
  return rows.map(({ account }) => account)
}
