// The bank accounts of a merchant: numbers of slips and files to and from the bank go with them, and belong to one cell.

import type { Connection } from '../../platform/database/connect.ts'
import { ownAccounts } from './tables.ts'

/** Of those, accounts whose numbers this cell gives out. */
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

/** From here on this cell gives out the numbers of these accounts, or another one does. */
export async function giveNumbers(db: Connection, accounts: readonly string[], giver: 'here' | 'elsewhere'): Promise<void> {
  await db.query('update slip_numbers set elsewhere = $2 where account = any ($1) and elsewhere <> $2', [
    accounts,
    giver === 'elsewhere',
  ])
}

/** No number of these accounts is given out here that another cell may have given out, also of one that is not known here. */
export async function passNumbers(db: Connection, there: Connection, accounts: readonly string[]): Promise<void> {
  const { rows } = await there.query<{ account: string; next: number }>(
    'select account, next from slip_numbers where account = any ($1)',
    [accounts],
  )
  await db.query(
    `insert into slip_numbers as n (account, next) select * from unnest($1::text[], $2::bigint[])
       on conflict (account) do update set next = greatest(n.next, excluded.next)`,
    [rows.map(({ account }) => account), rows.map(({ next }) => next)],
  )
}

/** Of a cell that was put back and one that has had the merchant since, which may have forgotten all but the names. */
export async function accountsOfBoth(db: Connection, there: Connection, merchantId: string): Promise<string[]> {
  const { rows } = await there.query<{ account: string }>(
    'select distinct unnest(accounts) as account from merchant_moves where merchant_id = $1',
    [merchantId],
  )
  const [ours, theirs] = [await accountsOf(db, merchantId), await accountsOf(there, merchantId)]
  return [...new Set([...ours, ...theirs, ...rows.map(({ account }) => account)])]
}

export async function accountsOf(db: Connection, merchantId: string): Promise<string[]> {
  const { rows } = await db.query<{ account: string }>(`${ownAccounts} order by account`, [merchantId])
  return rows.map(({ account }) => account)
}
