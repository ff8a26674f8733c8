// The audit and the failed attempts to authenticate in the database.

import type pg from 'pg'
import { type Connection, timeParameter } from '../platform/database/connect.ts'
import { padded, perSize, quantised, valuesList } from '../platform/database/groupCommit.ts'
import { OperatorError } from '../platform/errors.ts'
import type { AuditRow } from './entry.ts'

/** How far the chain goes, as its seal says. */
export type Head = { readonly sequence: number; readonly proof: Buffer | null }
/** Where the next row is written. No hash before the first row, or when the row is gone. */
export type End = { readonly sequence: number; readonly hash: Buffer | null }

/** The head, locked until the transaction ends, with the hash of its row. One that is gone begins again. */
export async function lockHead(db: Connection): Promise<Head & End> {
  const lock = async () => (await db.query<Head>('select sequence, proof from audit_head for update')).rows[0]
  let head = await lock()
  if (!head) {
    await db.query('insert into audit_head (sequence) values (0) on conflict do nothing')
    head = await lock()
    if (!head) throw notKept()
  }
  // Read after the lock is had: the row of whoever held it before is committed now.
  const { rows } = await db.query<{ hash: Buffer }>('select hash from audit where sequence = $1', [head.sequence])
  return { ...head, hash: rows[0]?.hash ?? null }
}

/** The place of the last row, wherever it stands. */
export async function findEnd(db: Connection): Promise<End | undefined> {
  return (await db.query<End>('select sequence, hash from audit order by sequence desc limit 1')).rows[0]
}

/** Makes all that the transaction reads stand as at its first statement. */
export async function readOneMoment(db: Connection): Promise<void> {
  await db.query('set transaction isolation level repeatable read, read only')
}

export async function insertRow(db: Connection, row: AuditRow): Promise<void> {
  await db.query(
    `insert into audit (sequence, recorded_at, actor_kind, actor, address, action, entity_id, subject, result, details, hash)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
    [
      row.sequence,
      timeParameter(row.recordedAt),
      row.actorKind,
      row.actor,
      row.address,
      row.action,
      row.entityId,
      row.subject,
      row.result,
      row.details,
      row.hash,
    ],
  )
}

export async function moveHead(db: Connection, sequence: number, proof: Buffer): Promise<void> {
  await db.query('update audit_head set sequence = $1, proof = $2', [sequence, proof])
}

/** What waits for the commit acts now, where it is still looked at. */
export async function actBeforeCommit(db: Connection): Promise<void> {
  await db.query('set constraints all immediate')
}

/** What cannot be told of is not done either. */
export const notKept = (): OperatorError =>
  new OperatorError(
    'The database did not keep the audit as it was written, so nothing was done: look at bin/tollgate audit verify.',
  )

export async function readHead(db: Connection): Promise<Head | undefined> {
  const { rows } = await db.query<Head>('select sequence, proof from audit_head')
  return rows[0]
}

/** The time as it stands there, with what is below a millisecond: nothing writes that, and whoever changes it is found out. */
const columns = `sequence, case when isfinite(recorded_at) then (extract(epoch from recorded_at) * 1000)::float8 else 'NaN' end as "recordedAt", actor_kind as "actorKind", actor, address, action, entity_id as "entityId", subject, result,
  details, hash`

export async function readRowsAfter(db: Connection, sequence: number, limit: number): Promise<AuditRow[]> {
  const { rows } = await db.query<AuditRow>(`select ${columns} from audit where sequence > $1 order by sequence limit $2`, [
    sequence,
    limit,
  ])
  return rows
}

export type FailureKind = 'all' | 'address' | 'user' | 'credential'
export type LogInFailure = {
  readonly kind: FailureKind
  readonly subject: string
  readonly minute: number
  readonly failures: number
}

const addFailures = perSize(
  size => `
  insert into log_in_failures as counted (minute, kind, subject, failures, proof)
  select minute, kind, subject, failures, proof from (values ${valuesList(['timestamptz', 'text', 'text', 'integer', 'bytea'], size)})
      as given (minute, kind, subject, failures, proof)
   where kind is not null order by minute, kind, subject
  on conflict (minute, kind, subject) do update set failures = counted.failures + excluded.failures
  returning minute, kind, subject, failures`,
)

/** Shows that this installation wrote the row, whoever else may write to the table. */
export type ProvenFailure = LogInFailure & { readonly proof: Buffer }

/** Adds to what all processes counted and returns the sums. Each kind and subject of a minute once. */
export async function countFailures(pool: pg.Pool, added: readonly ProvenFailure[]): Promise<LogInFailure[]> {
  const size = quantised(added.length)
  const values = padded(
    added.flatMap(({ minute, kind, subject, failures, proof }) => [timeParameter(minute), kind, subject, failures, proof]),
    size * 5,
  )
  const { rows } = await pool.query<LogInFailure>({ name: `failures ${size}`, text: addFailures(size), values })
  return rows
}

export type KnownPlace = { readonly tokenId: string; readonly hash: Buffer }

/** From where a right password has come, each once; a later time is written once a day. */
export async function keepPlaces(pool: pg.Pool, places: readonly KnownPlace[], now: number, most: number): Promise<void> {
  await pool.query({
    name: 'keep known places',
    text: `insert into known_places as known (token_id, hash, seen_at)
           select token_id, hash, $3 from unnest($1::uuid[], $2::bytea[]) as given (token_id, hash) order by hash
           on conflict (hash) do update set seen_at = excluded.seen_at, token_id = excluded.token_id
             where known.seen_at < excluded.seen_at - interval '1 day' or known.token_id is null`,
    values: [places.map(({ tokenId }) => tokenId), places.map(({ hash }) => hash), timeParameter(now)],
  })
  await pool.query({
    name: 'forget older places',
    text: `delete from known_places known using (
             select token_id, (select seen_at from known_places own where own.token_id = given.token_id order by seen_at desc offset $2 limit 1) as until
               from (select distinct token_id from unnest($1::uuid[]) as of_batch (token_id)) given) old
            where known.token_id = old.token_id and known.seen_at <= old.until`,
    values: [places.map(({ tokenId }) => tokenId), most],
  })
}

/** Of each token the newest, of those that were written from a time on; the oldest of them first. */
export async function findPlaces(pool: pg.Pool, since: number, most: number): Promise<KnownPlace[]> {
  const { rows } = await pool.query<KnownPlace>({
    name: 'find known places',
    text: `select token_id as "tokenId", hash from (
             select token_id, hash, seen_at, row_number() over (partition by token_id order by seen_at desc) as place
               from known_places where seen_at >= $1 and token_id is not null) of_token
            where place <= $2 order by seen_at`,
    values: [timeParameter(since), most],
  })
  return rows
}

/** Those of a minute that have come so often, of each kind. */
export async function findUsedUp(
  pool: pg.Pool,
  minute: number,
  most: Readonly<Record<FailureKind, number>>,
): Promise<ProvenFailure[]> {
  const { rows } = await pool.query<ProvenFailure>({
    name: 'find failures that are used up',
    text: `select minute, kind, subject, failures, proof from log_in_failures
            where minute = $1 and failures >= ($2::jsonb ->> kind)::integer order by failures desc limit 10000`,
    values: [timeParameter(minute), most],
  })
  return rows
}

/** Takes out what was counted in minutes that are over. */
export async function takeFailures(db: Connection, before: number): Promise<ProvenFailure[]> {
  const { rows } = await db.query<ProvenFailure>(
    `with over as (
       select minute, kind, subject from log_in_failures where minute < $1 order by minute, kind, subject for update skip locked)
     delete from log_in_failures f using over
      where f.minute = over.minute and f.kind = over.kind and f.subject = over.subject
     returning f.minute, f.kind, f.subject, f.failures, f.proof`,
    [timeParameter(before)],
  )
  return rows
}

/** The subjects that something was done to. */
export async function findSubjects(db: Connection, action: string): Promise<ReadonlySet<string>> {
  const { rows } = await db.query<{ subject: string }>('select distinct subject from audit where action = $1', [action])
  return new Set(rows.map(({ subject }) => subject))
}
