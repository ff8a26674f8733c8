// Merchants whose rows are in this database, and who are served by another cell: they are on their way in or out, or have left. What one of them asks for is
// refused until it comes to the right cell, and whoever works through the rows of many merchants leaves theirs alone.

import pg from 'pg'
import { OperatorError } from '../errors.ts'
import type { Connection } from './connect.ts'
import { isUnavailable } from './errors.ts'

/** A condition on the column of merchants, for every statement that writes rows of merchants that it was not given, or counts them. */
export const servedHere = (column = 'merchant_id'): string =>
  `${column} <> all (array(select elsewhere.merchant_id from merchant_moves elsewhere where not elsewhere.here))`

/** The same asked of one merchant: one step of an index, however many have left. */
export const isServedHere = (id: string): string =>
  `not exists (select from merchant_moves elsewhere where elsewhere.merchant_id = ${id} and not elsewhere.here)`

/** Whether merchants are held until somebody has asked the other cells for them: whose a row is that names no merchant is not known either. */
export async function areHeld(db: Pick<Connection, 'query'>): Promise<boolean> {
  const { rows } = await db.query<{ held: boolean }>(
    'select exists (select from merchant_moves where put_back_at is not null) as held',
  )
  return rows[0]!.held
}

/**
 * Throws ServedElsewhere while some are held. Asked after the rows of merchants were looked for, in the transaction that writes what came of that: theirs were left
 * out, and are not gone.
 */
export async function refuseWhileHeld(db: Pick<Connection, 'query'>, what: string): Promise<void> {
  if (await areHeld(db))
    throw new ServedElsewhere(
      `${what} waits: merchants of this cell are held until \`tollgate cells restored\` has asked the others. Given again then, it goes on where it stopped.`,
    )
}

/** Throws ServedElsewhere for a merchant of whom a process that has not heard of a move finds nothing. */
export async function refuseElsewhere(db: Pick<Connection, 'query'>, merchantId: string): Promise<void> {
  if ((await findServedHere(db, [merchantId])).size === 0)
    throw new ServedElsewhere(`the merchant ${merchantId} is served elsewhere`)
}

/** Of some merchants, those who are served here. */
export async function findServedHere(
  db: Pick<Connection, 'query'>,
  merchantIds: readonly string[],
): Promise<ReadonlySet<string>> {
  const { rows } = await db.query<{ id: string }>(`select id from unnest($1::uuid[]) as one (id) where ${servedHere('id')}`, [
    merchantIds,
  ])
  return new Set(rows.map(({ id }) => id))
}

/** The merchant is served by another cell, or by none for some seconds: the same request is to be sent again. */
export class ServedElsewhere extends OperatorError {}

/** Also what the fence of the database said, see migration 0038. */
export const isElsewhere = (error: unknown): boolean =>
  error instanceof ServedElsewhere || (error instanceof pg.DatabaseError && error.code === 'TG503')

/** Whoever asks again in a moment finds what he asked for. */
export const isPassing = (error: unknown): boolean => isElsewhere(error) || isUnavailable(error)
