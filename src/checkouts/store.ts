// Checkouts and their attempts in the database.

import { type Connection, timeParameter } from '../platform/database/connect.ts'

export type CheckoutName = Pick<CheckoutRow, 'merchantId' | 'id'>

export type CheckoutRow = {
  readonly merchantId: string
  readonly id: string
  readonly channelId: string
  readonly tokenId: string
  readonly sealed: Buffer
  readonly fingerprint: Buffer | null
  readonly scriptBuild: string | null
  /** Business time, milliseconds, like all times here. */
  readonly createdAt: number
  readonly expiresAt: number
  /** Its success was read, or it was deleted. */
  readonly endedAt: number | null
}

/** Somebody pressed pay. */
export type CheckoutAttempt = {
  readonly attempt: number
  /** The payment; the registration where nothing is paid. */
  readonly subjectId: string
  readonly form: Buffer
  readonly madeAt: number
}

const columns = `merchant_id as "merchantId", id, channel_id as "channelId", token_id as "tokenId", sealed, fingerprint, script_build as "scriptBuild",
  created_at as "createdAt", expires_at as "expiresAt", ended_at as "endedAt"`

/** False when there is one with this id. */
export async function insertCheckout(db: Connection, row: CheckoutRow): Promise<boolean> {
  const { rowCount } = await db.query(
    `insert into checkouts (merchant_id, id, channel_id, token_id, sealed, fingerprint, script_build, created_at, expires_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9) on conflict do nothing`,
    [
      row.merchantId,
      row.id,
      row.channelId,
      row.tokenId,
      row.sealed,
      row.fingerprint,
      row.scriptBuild,
      timeParameter(row.createdAt),
      timeParameter(row.expiresAt),
    ],
  )
  return rowCount === 1
}

export async function findCheckout(db: Connection, merchantId: string, id: string): Promise<CheckoutRow | undefined> {
  return (await findCheckouts(db, merchantId, [id]))[0]
}

export async function findCheckouts(db: Connection, merchantId: string, ids: readonly string[]): Promise<CheckoutRow[]> {
  const { rows } = await db.query<CheckoutRow>(
    `select ${columns} from checkouts where merchant_id = $1 and id = any ($2::uuid[])`,
    [merchantId, ids],
  )
  return rows
}

/** Until the transaction ends nobody else begins an attempt, changes the checkout or deletes it. */
export async function lockCheckout(db: Connection, merchantId: string, id: string): Promise<CheckoutRow | undefined> {
  const { rows } = await db.query<CheckoutRow>(`select ${columns} from checkouts where merchant_id = $1 and id = $2 for update`, [
    merchantId,
    id,
  ])
  return rows[0]
}

export async function changeCheckout(db: Connection, { merchantId, id }: CheckoutName, sealed: Buffer): Promise<void> {
  await db.query('update checkouts set sealed = $3 where merchant_id = $1 and id = $2', [merchantId, id, sealed])
}

/** False when it had ended already. */
export async function endCheckout(db: Connection, { merchantId, id }: CheckoutName, now: number): Promise<boolean> {
  const { rowCount } = await db.query(
    'update checkouts set ended_at = $3 where merchant_id = $1 and id = $2 and ended_at is null',
    [merchantId, id, timeParameter(now)],
  )
  return rowCount === 1
}

export async function eraseCheckout(db: Connection, merchantId: string, id: string): Promise<void> {
  await db.query(
    `with attempts as (delete from checkout_attempts where merchant_id = $1 and checkout_id = $2)
     delete from checkouts where merchant_id = $1 and id = $2`,
    [merchantId, id],
  )
}

export async function findLastAttempt(db: Connection, { merchantId, id }: CheckoutName): Promise<CheckoutAttempt | undefined> {
  const { rows } = await db.query<CheckoutAttempt>(
    `select attempt, subject_id as "subjectId", form, made_at as "madeAt" from checkout_attempts
      where merchant_id = $1 and checkout_id = $2 order by attempt desc limit 1`,
    [merchantId, id],
  )
  return rows[0]
}

/** Inside the transaction that holds the lock. */
export async function insertAttempt(
  db: Connection,
  { merchantId, id }: CheckoutName,
  { attempt, subjectId, form, madeAt }: CheckoutAttempt,
): Promise<void> {
  await db.query(
    'insert into checkout_attempts (merchant_id, checkout_id, attempt, subject_id, form, made_at) values ($1, $2, $3, $4, $5, $6)',
    [merchantId, id, attempt, subjectId, form, timeParameter(madeAt)],
  )
}
