// Captures that wait for a file, and the files.

import type { CollectedLine } from '../../connectors/cards/iso8583/collected.ts'
import { type Connection, timeParameter } from '../../platform/database/connect.ts'
import { servedHere } from '../../platform/database/elsewhere.ts'
import type { LastFile, LastFiles } from '../../platform/database/fileHold.ts'

export type WaitingCapture = { readonly merchantId: string; readonly paymentId: string; readonly said: CollectedLine }
type WaitingRow = Omit<WaitingCapture, 'said'> & { readonly said: string }

const key = 'merchant_id as "merchantId", payment_id as "paymentId"'

/** Those in no file yet, the oldest first; what has an outcome is in one that this database does not know. Who comes at the same time waits, and finds none of them. */
export async function lockWaiting(db: Connection, acquirer: string, most: number): Promise<WaitingCapture[]> {
  const { rows } = await db.query<WaitingRow>(
    `select ${key}, said from collected_captures where acquirer = $1 and sequence is null and outcome is null and ${servedHere()}
      order by collected_at, payment_id limit $2 for update`,
    [acquirer, most],
  )
  return rows.map(({ said, ...row }) => ({ ...row, said: JSON.parse(said) }))
}

export async function nextSequence(db: Connection, acquirer: string): Promise<number> {
  const { rows } = await db.query<{ next: number }>(
    'select coalesce(max(sequence), 0) + 1 as next from capture_files where acquirer = $1',
    [acquirer],
  )
  return rows[0]!.next
}

export type CaptureFile = {
  readonly acquirer: string
  readonly sequence: number
  readonly day: string
  readonly name: string
  readonly content: string
}

/** False when the number is taken meanwhile. */
export async function insertFileOfCaptures(
  db: Connection,
  { acquirer, sequence, day, name, content }: CaptureFile,
  captures: readonly WaitingCapture[],
  now: number,
): Promise<boolean> {
  const { rowCount } = await db.query(
    `insert into capture_files (acquirer, sequence, day, name, content, made_at) values ($1, $2, $3, $4, $5, $6) on conflict do nothing`,
    [acquirer, sequence, day, name, content, timeParameter(now)],
  )
  if (rowCount !== 1) return false
  await db.query(
    `update collected_captures c set sequence = $1, line = one.line
       from unnest($2::uuid[], $3::uuid[]) with ordinality as one (merchant_id, payment_id, line)
      where c.merchant_id = one.merchant_id and c.payment_id = one.payment_id and c.sequence is null`,
    [sequence, captures.map(one => one.merchantId), captures.map(one => one.paymentId)],
  )
  return true
}

/** Written down, and perhaps not on disk: the oldest first. */
export async function findUnwritten(db: Connection, acquirer: string): Promise<CaptureFile[]> {
  const { rows } = await db.query<CaptureFile>(
    `select acquirer, sequence, day, name, content from capture_files where acquirer = $1 and written_at is null order by sequence`,
    [acquirer],
  )
  return rows
}

export async function markWritten(db: Connection, { acquirer, sequence }: CaptureFile, now: number): Promise<void> {
  await db.query('update capture_files set written_at = $3 where acquirer = $1 and sequence = $2 and written_at is null', [
    acquirer,
    sequence,
    timeParameter(now),
  ])
}

export type FiledCapture = WaitingCapture & { readonly outcome: 'accepted' | 'rejected' | null }

/** The capture at a place of a file, locked. */
export async function lockFiled(
  db: Connection,
  acquirer: string,
  sequence: number,
  line: number,
): Promise<FiledCapture | undefined> {
  const { rows } = await db.query<WaitingRow & Pick<FiledCapture, 'outcome'>>(
    `select ${key}, said, outcome from collected_captures where acquirer = $1 and sequence = $2 and line = $3 for update`,
    [acquirer, sequence, line],
  )
  return rows.map(({ said, ...row }) => ({ ...row, said: JSON.parse(said) }))[0]
}

export async function storeOutcome(
  db: Connection,
  { merchantId, paymentId }: WaitingCapture,
  outcome: 'accepted' | 'rejected',
): Promise<void> {
  await db.query('update collected_captures set outcome = $3 where merchant_id = $1 and payment_id = $2', [
    merchantId,
    paymentId,
    outcome,
  ])
}

export async function findUnacknowledged(db: Connection, acquirer: string, sequence: number): Promise<WaitingCapture[]> {
  const { rows } = await db.query<WaitingRow>(
    `select ${key}, said from collected_captures where acquirer = $1 and sequence = $2 and outcome is null order by line`,
    [acquirer, sequence],
  )
  return rows.map(({ said, ...row }) => ({ ...row, said: JSON.parse(said) }))
}

export type ShownFile = Omit<CaptureFile, 'content'> & {
  readonly captures: number
  readonly accepted: number
  readonly rejected: number
  readonly madeAt: number
  readonly writtenAt: number | null
}

/** The latest files of some acquirers, the newest first. */
export async function findFiles(db: Connection, acquirers: readonly string[], limit: number): Promise<ShownFile[]> {
  const { rows } = await db.query<ShownFile>(
    `select f.acquirer, f.sequence, f.day, f.name, f.made_at as "madeAt", f.written_at as "writtenAt", count(*) as captures,
            count(*) filter (where c.outcome = 'accepted') as accepted, count(*) filter (where c.outcome = 'rejected') as rejected
       from capture_files f join collected_captures c on c.acquirer = f.acquirer and c.sequence = f.sequence
      where f.acquirer = any ($1) group by f.acquirer, f.sequence order by f.made_at desc, f.sequence desc limit $2`,
    [acquirers, limit],
  )
  return rows
}

/** How many captures of some acquirers wait for a file, and since when. */
export async function countUnfiled(
  db: Connection,
  acquirers: readonly string[],
): Promise<{ acquirer: string; captures: number; oldestAt: number }[]> {
  const { rows } = await db.query<{ acquirer: string; captures: number; oldestAt: number }>(
    `select acquirer, count(*) as captures, min(collected_at) as "oldestAt" from collected_captures
      where acquirer = any ($1) and sequence is null and outcome is null and ${servedHere()} group by acquirer order by acquirer`,
    [acquirers],
  )
  return rows
}

/** In no file, or in one that is not on disk: where the database was put back, the acquirer may have it in another. */
const outOfFiles = `(c.sequence is null or exists (select from capture_files f
  where f.acquirer = c.acquirer and f.sequence = c.sequence and f.written_at is null))`

/** Those of an acquirer that are on disk in no file, whatever is known of them. */
export async function findOutOfFiles(db: Connection, acquirer: string): Promise<WaitingCapture[]> {
  const { rows } = await db.query<WaitingRow>(
    `select ${key}, said from collected_captures where acquirer = $1 and sequence is null and ${servedHere()}
     union all
     select ${key}, said from capture_files f join collected_captures c on c.acquirer = f.acquirer and c.sequence = f.sequence
      where f.acquirer = $1 and f.written_at is null and ${servedHere()}`,
    [acquirer],
  )
  return rows.map(({ said, ...row }) => ({ ...row, said: JSON.parse(said) }))
}

/** One of these, locked; undefined when it is on disk in a file by now. */
export async function lockOutOfFiles(
  db: Connection,
  { merchantId, paymentId }: Pick<WaitingCapture, 'merchantId' | 'paymentId'>,
): Promise<FiledCapture | undefined> {
  const { rows } = await db.query<WaitingRow & Pick<FiledCapture, 'outcome'>>(
    `select ${key}, said, outcome from collected_captures c where merchant_id = $1 and payment_id = $2 and ${outOfFiles} for update of c`,
    [merchantId, paymentId],
  )
  return rows.map(({ said, ...row }) => ({ ...row, said: JSON.parse(said) }))[0]
}

export type ShownCapture = WaitingCapture & {
  readonly acquirer: string
  readonly collectedAt: number
  /** Of a file that is not on disk yet. */
  readonly sequence: number | null
  /** Hundredths. */
  readonly amount: number
  readonly currency: string
}

const shownColumns = `c.merchant_id as "merchantId", c.payment_id as "paymentId", c.acquirer, c.said, c.collected_at as "collectedAt", c.sequence,
  p.amount, p.currency`
const shownTables = 'collected_captures c join payments p on p.merchant_id = c.merchant_id and p.id = c.payment_id'

/** What waits for a file, or for its file to be on disk, the oldest first. */
export async function findWaitingCaptures(db: Connection, acquirers: readonly string[], limit: number): Promise<ShownCapture[]> {
  const { rows } = await db.query<Omit<ShownCapture, 'said'> & { said: string }>(
    `select ${shownColumns} from ${shownTables}
      where c.acquirer = any ($1) and c.outcome is null and ${outOfFiles} and ${servedHere('c.merchant_id')}
      order by c.collected_at, c.payment_id limit $2`,
    [acquirers, limit],
  )
  return rows.map(({ said, ...row }) => ({ ...row, said: JSON.parse(said) }))
}

/** By the id of the capture alone, as operators name it. */
export async function findCollected(db: Connection, paymentId: string): Promise<ShownCapture | undefined> {
  const { rows } = await db.query<Omit<ShownCapture, 'said'> & { said: string }>(
    `select ${shownColumns} from entities m join ${shownTables} on c.merchant_id = m.id
      where m.kind = 'merchant' and c.payment_id = $1 and ${servedHere('m.id')}`,
    [paymentId],
  )
  return rows.map(({ said, ...row }) => ({ ...row, said: JSON.parse(said) }))[0]
}

/** Of each acquirer. These files stay in the cell, whoever leaves it. */
export async function lastCaptureFiles(db: Connection): Promise<LastFiles> {
  const { rows } = await db.query<LastFile & { name: string }>(
    'select acquirer as name, max(sequence) as last, true as here from capture_files group by acquirer',
  )
  return new Map(rows.map(({ name, ...last }) => [name, last]))
}

/** The acquirers that a merchant's captures wait for a file to, or for one that is not on disk. */
export async function acquirersWithCaptures(db: Connection, merchantId: string): Promise<string[]> {
  const { rows } = await db.query<{ acquirer: string }>(
    `select distinct c.acquirer from collected_captures c where c.merchant_id = $1 and c.outcome is null and ${outOfFiles}`,
    [merchantId],
  )
  return rows.map(({ acquirer }) => acquirer)
}

/**
 * The acquirer goes on behind a number that it has had, and what was to be in files that were not on disk waits for the next. What is of merchants who are served
 * elsewhere stays as it is: nobody writes these files any more. How many captures wait.
 */
export async function passCaptureFiles(db: Connection, acquirer: string, behind: number, now: number): Promise<number> {
  await db.query(
    `update collected_captures set sequence = null, line = null where acquirer = $1 and ${servedHere()}
        and sequence in (select sequence from capture_files where acquirer = $1 and written_at is null)`,
    [acquirer],
  )
  await db.query('update capture_files set written_at = $2 where acquirer = $1 and written_at is null', [
    acquirer,
    timeParameter(now),
  ])
  if (behind > 0)
    // What stood in it, and in which day, the acquirer knows.
    await db.query(
      `insert into capture_files (acquirer, sequence, day, name, content, made_at, written_at) values ($1, $2, ($3::timestamptz at time zone 'UTC')::date, '', '', $3, $3)
       on conflict do nothing`,
      [acquirer, behind, timeParameter(now)],
    )
  return (await countUnfiled(db, [acquirer]))[0]?.captures ?? 0
}
