// Redirects and continuations in the database.

import type pg from 'pg'
import { type Connection, inTransaction, timeParameter } from '../../platform/database/connect.ts'
import type { Payment } from '../payment.ts'

export type NewContinuation = {
  readonly step: string
  readonly sealed: Buffer
  readonly secret?: Buffer
  /** What the merchant is answered, sealed. */
  readonly answer: Buffer
  /** Business time, milliseconds; `endsAt` is the same moment in real time. */
  readonly deadline: number
  readonly endsAt: number
  readonly pageHash: Buffer
  readonly noticeHash: Buffer
  /** Whose server is asked at its end. */
  readonly side: string
}

export type Continuation = {
  readonly step: string
  readonly sealed: Buffer
  readonly mark: string | null
  readonly deadline: number
}

/** What was taken away, and its CVV: absent when none was kept, or when the server crashed in between. */
export type LeasedContinuation = Continuation & { readonly secret: Buffer | null }

/** Stores the next step with its end, and announces the pending payment in the words of its first answer. Recovery, if it had been called, stands back. */
export async function insertContinuation(db: Connection, payment: Payment, row: NewContinuation, now: number): Promise<void> {
  await db.query(
    `with addressed as (
       insert into redirects (merchant_id, payment_id, page_hash, notice_hash, made_at) values ($1, $2, $5, $6, $10) on conflict do nothing),
     held as (
       insert into continuations (merchant_id, payment_id, step, sealed, deadline) values ($1, $2, $3, $4, $8) on conflict do nothing),
     secret as (
       insert into challenge_secrets (merchant_id, payment_id, sealed, erase_after)
       select $1, $2, $7, $9 where $7::bytea is not null on conflict do nothing),
     ends as (
       insert into due_work (kind, merchant_id, subject_id, due_at, side) values ('redirectExpiry', $1, $2, $9, $15)
       on conflict (kind, merchant_id, subject_id) do update
         set due_at = excluded.due_at, side = excluded.side, leased_until = null, generation = due_work.generation + 1),
     passed_on as (
       delete from unanswered where merchant_id = $1 and payment_id = $2),
     given as (
       insert into pending_answers (merchant_id, payment_id, sealed) values ($1, $2, $14) on conflict do nothing),
     stands_back as (
       delete from due_work where kind = 'recover' and merchant_id = $1 and subject_id = $2)
     insert into events (merchant_id, payment_id, sequence, type, channel_id, root_id, occurred_at, recorded_at)
     values ($1, $2, 1, 'PAYMENT', $11, $12, $13, $10) on conflict do nothing`,
    [
      payment.merchantId,
      payment.id,
      row.step,
      row.sealed,
      row.pageHash,
      row.noticeHash,
      row.secret ?? null,
      timeParameter(row.deadline),
      timeParameter(row.endsAt),
      timeParameter(now),
      payment.channelId,
      payment.rootId ?? payment.id,
      timeParameter(payment.receivedAt),
      row.answer,
      row.side,
    ],
  )
}

const columns = 'step, sealed, mark, deadline'

export async function findContinuation(db: Connection, merchantId: string, paymentId: string): Promise<Continuation | undefined> {
  const { rows } = await db.query<Continuation>(
    `select ${columns} from continuations where merchant_id = $1 and payment_id = $2`,
    [merchantId, paymentId],
  )
  return rows[0]
}

/** Takes the step away: whoever gets the row goes on, nobody else. Recovery is told in the same statement, so that a crash leaves no orphan;
 * it inherits what was sealed, but never the CVV. `taker`: by which it is known who has it. `ended`: takes what is past its deadline instead. `side`: whom
 * recovery asks. */
export async function takeContinuation(
  db: Connection,
  merchantId: string,
  paymentId: string,
  taker: string,
  step: string,
  now: number,
  recoverAt: number,
  ended: boolean,
  side: string,
): Promise<LeasedContinuation | undefined> {
  const { rows } = await db.query<LeasedContinuation>(
    `with taken as (
       delete from continuations where merchant_id = $1 and payment_id = $2 and step = $3 and (deadline <= $4) = $6
       returning merchant_id, payment_id, ${columns}),
     told as (
       insert into due_work (kind, merchant_id, subject_id, due_at, details, side)
       select 'recover', merchant_id, payment_id, $5, jsonb_build_object('sealed', encode(sealed, 'base64'), 'taker', $7::text, 'mark', mark), $8 from taken
       on conflict (kind, merchant_id, subject_id) do update
         set due_at = excluded.due_at, details = excluded.details, side = excluded.side, leased_until = null, generation = due_work.generation + 1),
     secret as (
       delete from challenge_secrets using taken
        where challenge_secrets.merchant_id = taken.merchant_id and challenge_secrets.payment_id = taken.payment_id
       returning challenge_secrets.sealed)
     select ${columns}, (select sealed from secret) as secret from taken`,
    [merchantId, paymentId, step, timeParameter(now), timeParameter(recoverAt), ended, taker, side],
  )
  return rows[0]
}

/** What somebody has taken who did not hear of it: the connection was cut in between. The CVV went with it. */
export async function findTaken(
  db: Connection,
  merchantId: string,
  paymentId: string,
  taker: string,
): Promise<Pick<LeasedContinuation, 'sealed' | 'mark' | 'secret'> | undefined> {
  const { rows } = await db.query<{ sealed: string; mark: string | null }>(
    `select details->>'sealed' as sealed, details->>'mark' as mark from due_work
      where kind = 'recover' and merchant_id = $1 and subject_id = $2 and details->>'taker' = $3`,
    [merchantId, paymentId, taker],
  )
  return rows[0] && { sealed: Buffer.from(rows[0].sealed, 'base64'), mark: rows[0].mark, secret: null }
}

/** Erases what is left of a payment that was answered otherwise. */
export async function dropContinuation(db: Connection, merchantId: string, paymentId: string): Promise<void> {
  await db.query(
    `with secret as (delete from challenge_secrets where merchant_id = $1 and payment_id = $2)
     delete from continuations where merchant_id = $1 and payment_id = $2`,
    [merchantId, paymentId],
  )
}

/** Erases secrets whose time is over. As long as the table's file holds anything the table begins anew: a deleted row would stay in it. */
export async function eraseSecrets(pool: pg.Pool, now: number): Promise<number> {
  const { rowCount } = await pool.query('delete from challenge_secrets where erase_after < $1', [timeParameter(now)])
  const { rows } = await pool.query<{ bytes: number }>(`select pg_relation_size('challenge_secrets') as bytes`)
  if (rows[0]!.bytes > 0) await beginAnew(pool)
  return rowCount ?? 0
}

/**
 * The table gets an empty file, and the rows of challenges that go on. VACUUM FULL would write what was deleted into the new file too, as long as there is a transaction anywhere in the
 * database that began before and could still see it. To a truncation that does not matter: such a transaction finds the table empty afterwards, and none that looks at one moment only
 * (the doctor, the verification of the audit) asks for a CVV. All others wait for the lock before they look, and find what goes on.
 */
async function beginAnew(pool: pg.Pool): Promise<void> {
  try {
    await inTransaction(pool, async db => {
      // Whoever reads the table for long, a dump for example, is not waited for: payments would wait behind us.
      await db.query('set local lock_timeout = 250')
      await db.query(`do $$
        declare
          going_on challenge_secrets[];
        begin
          lock table challenge_secrets in access exclusive mode;
          going_on := array(select s from challenge_secrets s);
          truncate challenge_secrets;
          insert into challenge_secrets select * from unnest(going_on);
        end $$`)
    })
  } catch (error) {
    if ((error as { code?: string }).code !== lockNotAvailable) throw error
  }
}
const lockNotAvailable = '55P03'

export async function markContinuation(db: Connection, merchantId: string, paymentId: string, mark: string): Promise<void> {
  await db.query('update continuations set mark = $3 where merchant_id = $1 and payment_id = $2', [merchantId, paymentId, mark])
}

export type RedirectRow = { readonly paymentId: string; readonly sessionHash: Buffer | null }

export async function findRedirect(
  db: Connection,
  kind: 'page' | 'notice',
  merchantId: string,
  hashes: readonly Buffer[],
): Promise<RedirectRow | undefined> {
  const { rows } = await db.query<RedirectRow>(
    `select payment_id as "paymentId", session_hash as "sessionHash" from redirects where merchant_id = $1 and ${kind}_hash = any ($2)`,
    [merchantId, hashes],
  )
  return rows[0]
}

/** The browser that began last is the one that may come back. `onlyFirst`: where none has begun; of several that come at the same moment the one for whom this is true. */
export async function bindSession(
  db: Connection,
  merchantId: string,
  paymentId: string,
  sessionHash: Buffer,
  onlyFirst: boolean,
): Promise<boolean> {
  const { rowCount } = await db.query(
    'update redirects set session_hash = $3 where merchant_id = $1 and payment_id = $2 and (session_hash is null or not $4)',
    [merchantId, paymentId, sessionHash, onlyFirst],
  )
  return rowCount === 1
}
