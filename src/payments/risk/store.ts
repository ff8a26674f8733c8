// Attempts, counted so that twenty at once are twenty: whoever counts a subject holds its lock until the attempt is written.

import { createHash } from 'node:crypto'
import type pg from 'pg'
import { inTransaction, timeParameter } from '../../platform/database/connect.ts'
import type { Subject, Velocity } from './facts.ts'

export type RiskAttempt = {
  readonly merchantId: string
  readonly paymentId: string
  readonly at: number
  readonly amount: number
  readonly currency: string
  /** Keyed hashes, the newest first: it is written, attempts under older ones are counted with it. */
  readonly subjects: ReadonlyMap<Subject, readonly Buffer[]>
}

/** Attempts older than the longest window mean nothing any more. */
export const attemptDays = 8

/** Writes an attempt under each of its subjects and returns the counts that were asked for, this attempt included. */
export async function countAttempt(
  pool: pg.Pool,
  attempt: RiskAttempt,
  asked: readonly Velocity[],
): Promise<Map<string, number>> {
  const { merchantId, paymentId, at, amount, currency, subjects } = attempt
  const counted = asked.flatMap(velocity => (subjects.get(velocity.subject) ?? []).map(hash => ({ ...velocity, hash })))
  const kinds = [...new Set(counted.map(({ subject }) => subject))]
  if (kinds.length === 0) return new Map()
  const hashes = kinds.map(kind => subjects.get(kind)![0]!)
  const locks = kinds
    .flatMap(kind => subjects.get(kind)!.map(hash => lockOf(merchantId, kind, hash)))
    .sort((a, b) => (a < b ? -1 : 1))
  return inTransaction(pool, async db => {
    await db.query('select pg_advisory_xact_lock(one) from unnest($1::bigint[]) as one', [locks.map(String)])
    await db.query(
      `insert into risk_attempts (merchant_id, kind, subject, attempted_at, payment_id, amount, currency)
       select $1, kind, subject, $4, $5, $6, $7 from unnest($2::text[], $3::bytea[]) as given (kind, subject)`,
      [merchantId, kinds, hashes, timeParameter(at), paymentId, amount, currency],
    )
    const { rows } = await db.query<{ fact: string; value: string }>(
      `select fact, case what
                when 'attempts' then count(r.payment_id)
                when 'sum' then coalesce(sum(r.amount) filter (where r.currency = $7), 0)
                else count(a.payment_id) filter (where not a.approved) end as value
         from unnest($2::text[], $3::text[], $4::text[], $5::bytea[], $6::int[]) as given (fact, what, kind, subject, seconds)
         left join risk_attempts r on r.merchant_id = $1 and r.kind = given.kind and r.subject = given.subject
               and r.attempted_at > $8::timestamptz - given.seconds * interval '1 second' -- no upper end: who waited longer for the lock sees later ones too
         left join answers a on a.merchant_id = $1 and a.payment_id = r.payment_id
        group by fact, what`,
      [
        merchantId,
        counted.map(({ fact }) => fact),
        counted.map(({ what }) => what),
        counted.map(({ subject }) => subject),
        counted.map(({ hash }) => hash),
        counted.map(({ seconds }) => seconds),
        currency,
        timeParameter(at),
      ],
    )
    return new Map(rows.map(({ fact, value }) => [fact, fact.startsWith('sum.') ? Number(value) / 100 : Number(value)]))
  })
}

/** The number of a subject's lock. */
const lockOf = (merchantId: string, kind: string, subject: Buffer): bigint =>
  createHash('sha256').update(merchantId).update(kind).update(subject).digest().readBigInt64BE()
