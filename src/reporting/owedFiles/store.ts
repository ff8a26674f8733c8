// Files that merchants and others are owed on their servers, and what became of each.

import { type Connection, timeParameter } from '../../platform/database/connect.ts'
import { servedHere } from '../../platform/database/elsewhere.ts'
import { storableText } from '../../platform/database/json.ts'
import type { OwedFile, OwedForm } from './deliver.ts'

/** The work of a source waits once, and goes on from the period that it has come to. */
export async function insertWaiting(
  db: Connection,
  kind: string,
  ownerId: string,
  subject: string,
  day: string,
  dueAt: number,
): Promise<void> {
  await db.query(
    `insert into due_work (kind, merchant_id, subject_id, due_at, details) values ($1, $2, $3, $4, $5) on conflict do nothing`,
    [kind, ownerId, subject, timeParameter(dueAt), JSON.stringify({ day })],
  )
}

/** Each is owed once, whoever says so. */
export async function insertOwed(
  db: Connection,
  ownerId: string,
  source: string,
  days: readonly string[],
  forms: readonly OwedForm[],
  now: number,
): Promise<void> {
  await db.query(
    `insert into owed_files (owner_id, source, day, form, made_at)
     select $1, $2, day, form, $5 from unnest($3::date[]) day cross join unnest($4::text[]) form on conflict do nothing`,
    [ownerId, source, days, forms, timeParameter(now)],
  )
}

/** The oldest first. */
export async function findOwed(db: Connection, ownerId: string, source: string): Promise<OwedFile[]> {
  const { rows } = await db.query<OwedFile>(
    `select owner_id as "ownerId", source, day, form, attempts, made_at as "madeAt", file_id as "fileId", records from owed_files
      where owner_id = $1 and source = $2 and outcome is null order by day, form`,
    [ownerId, source],
  )
  return rows
}

const one = 'owner_id = $1 and source = $2 and day = $3 and form = $4'
const keyOf = ({ ownerId, source, day, form }: OwedFile): unknown[] => [ownerId, source, day, form]

/** Its bytes are collected under this id; what somebody collected who did not come to an end is not needed. False when others were faster. */
export async function beginFile(db: Connection, file: OwedFile, fileId: string): Promise<boolean> {
  const { rowCount } = await db.query(
    `with begun as (select making_id from owed_files where ${one} and file_id is null and outcome is null for update),
          dropped as (delete from file_pieces where file_id in (select making_id from begun))
     update owed_files set making_id = $5 where ${one} and exists (select from begun)`,
    [...keyOf(file), fileId],
  )
  return rowCount === 1
}

/** False when it is made by another, or is not owed any more: nothing is left that nobody would take away. */
export async function addPiece(
  db: Connection,
  file: OwedFile,
  fileId: string,
  number: number,
  content: Buffer,
): Promise<boolean> {
  const { rowCount } = await db.query(
    `insert into file_pieces (file_id, number, content)
     select $5, $6, $7 from (select from owed_files where ${one} and making_id = $5 and outcome is null for share) still`,
    [...keyOf(file), fileId, number, content],
  )
  return rowCount === 1
}

/** All of it is there. False as above. */
export async function keepFile(db: Connection, file: OwedFile, fileId: string, records: number): Promise<boolean> {
  const { rowCount } = await db.query(
    `update owed_files set file_id = making_id, making_id = null, records = $6
      where ${one} and making_id = $5 and file_id is null and outcome is null`,
    [...keyOf(file), fileId, records],
  )
  return rowCount === 1
}

export async function dropMaking(db: Connection, file: OwedFile, fileId: string): Promise<void> {
  await db.query(
    `with ended as (update owed_files set making_id = null where ${one} and making_id = $5)
     delete from file_pieces where file_id = $5`,
    [...keyOf(file), fileId],
  )
}

/**
 * From now on this attempt puts it, and none before: what the last of those may have left on the server is named by `before`. Undefined when it is not owed any more.
 */
export async function beginPut(db: Connection, file: OwedFile, partId: string): Promise<{ before: string | null } | undefined> {
  const { rows } = await db.query<{ before: string | null }>(
    `with last as (select part_id from owed_files where ${one} and outcome is null for update)
     update owed_files set part_id = $5 from last where ${one} returning last.part_id as before`,
    [...keyOf(file), partId],
  )
  return rows[0]
}

/** Whether it is owed still, and no other attempt has begun. */
export async function isPutBy(db: Connection, file: OwedFile, partId: string): Promise<boolean> {
  const { rowCount } = await db.query(`select from owed_files where ${one} and part_id = $5 and outcome is null`, [
    ...keyOf(file),
    partId,
  ])
  return rowCount === 1
}

export async function keptBytes(db: Connection, fileId: string): Promise<number> {
  const { rows } = await db.query<{ bytes: number }>(
    'select coalesce(sum(octet_length(content)), 0)::bigint as bytes from file_pieces where file_id = $1',
    [fileId],
  )
  return rows[0]!.bytes
}

/** What was kept of it is not needed any more. */
export async function markDelivered(db: Connection, file: OwedFile, records: number, now: number): Promise<void> {
  await db.query(
    `with ended as (update owed_files set outcome = 'delivered', ended_at = $5, records = $6, failure = null, attempts = attempts + 1
                     where ${one} and outcome is null returning file_id)
     delete from file_pieces where file_id in (select file_id from ended)`,
    [...keyOf(file), timeParameter(now), records],
  )
}

/** One attempt more; `endedAt`: it was the last. False when it is not owed any more: another was faster. */
export async function markFailed(db: Connection, file: OwedFile, failure: string, endedAt: number | undefined): Promise<boolean> {
  const { rowCount } = await db.query(
    `update owed_files set attempts = attempts + 1, failure = $5, ended_at = $6, outcome = case when $6::timestamptz is null then null else 'givenUp' end
      where ${one} and outcome is null`,
    [...keyOf(file), storableText(failure.slice(0, 500)), endedAt === undefined ? null : timeParameter(endedAt)],
  )
  return rowCount === 1
}

/** What was given up is owed again, from a day on. How many that are. */
export async function oweAgain(db: Connection, ownerId: string, source: string, from: string, now: number): Promise<number> {
  const { rowCount } = await db.query(
    `update owed_files set outcome = null, ended_at = null, made_at = $4 where owner_id = $1 and source = $2 and day >= $3 and outcome = 'givenUp'`,
    [ownerId, source, from, timeParameter(now)],
  )
  return rowCount ?? 0
}

/** Nothing of a source is delivered any more: what is owed still is given up, and nothing is kept. */
export async function dropOwed(db: Connection, ownerId: string, source: string, why: string, now: number): Promise<void> {
  await db.query(
    `update owed_files set outcome = 'givenUp', failure = $3, ended_at = $4 where owner_id = $1 and source = $2 and outcome is null`,
    [ownerId, source, storableText(why), timeParameter(now)],
  )
  await db.query(
    'delete from file_pieces where file_id in (select unnest(array[file_id, making_id]) from owed_files where owner_id = $1 and source = $2)',
    [ownerId, source],
  )
}

export type CountedFiles = {
  readonly ownerId: string
  readonly source: string
  readonly made: number
  readonly delivered: number
  readonly scheduled: number
  readonly givenUp: number
  /** Of those that are scheduled, the oldest; and why the last attempt failed of those that are not delivered. */
  readonly oldest: string | null
  readonly failure: string | null
}

/** By owner and source: made = delivered + scheduled + given up. Of some owners, or of all for the operator. */
export async function countOwed(db: Connection, owners?: readonly string[]): Promise<CountedFiles[]> {
  const { rows } = await db.query<CountedFiles>(
    `select owner_id as "ownerId", source, count(*) as made, count(*) filter (where outcome = 'delivered') as delivered,
            count(*) filter (where outcome is null) as scheduled, count(*) filter (where outcome = 'givenUp') as "givenUp",
            min(day) filter (where outcome is null) as oldest,
            (array_agg(failure order by outcome is not null, day) filter (where failure is not null))[1] as failure
       from owed_files ${owners ? 'where owner_id = any ($1)' : ''} group by owner_id, source order by owner_id, source`,
    owners && [owners],
  )
  return rows
}

/** What ended before `$1`, with what was kept of it to be tried again. */
export const eraseOwed = `with old as (
    select owner_id, source, day, form, file_id, making_id from owed_files where ended_at < $1 and ${servedHere('owner_id')} limit $2 for update skip locked),
  dropped as (delete from file_pieces where file_id in (select unnest(array[file_id, making_id]) from old))
  delete from owed_files f using old where f.owner_id = old.owner_id and f.source = old.source and f.day = old.day and f.form = old.form`

export async function insertPieces(db: Connection, fileId: string, from: number, pieces: readonly Buffer[]): Promise<void> {
  await db.query(
    'insert into file_pieces (file_id, number, content) select $1, $2 + at - 1, content from unnest($3::bytea[]) with ordinality as piece (content, at)',
    [fileId, from, pieces],
  )
}

/** A file of so many bytes. Throws when it is ended meanwhile: what was read by then must not look whole. */
export async function* readPieces(db: Connection, fileId: string, bytes: number): AsyncGenerator<Buffer> {
  for (let number = 0, read = 0; read < bytes; number++) {
    const { rows } = await db.query<{ content: Buffer }>('select content from file_pieces where file_id = $1 and number = $2', [
      fileId,
      number,
    ])
    const [piece] = rows
    if (!piece) throw new Error('a file was ended while it was read')
    read += piece.content.length
    yield piece.content
  }
}

export async function dropPieces(db: Connection, fileId: string): Promise<void> {
  await db.query('delete from file_pieces where file_id = $1', [fileId])
}
