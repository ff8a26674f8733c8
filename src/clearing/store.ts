// Files that came, and what became of their lines.

import { type Connection, timeParameter } from '../platform/database/connect.ts'
import type { LineResult } from './import.ts'

/** True when the same bytes were read to their end before. */
export async function insertFile(
  db: Connection,
  {
    hash,
    kind,
    name,
    lines,
    receivedAt,
  }: {
    readonly hash: Buffer
    readonly kind: string
    readonly name: string
    readonly lines: number
    readonly receivedAt: number
  },
): Promise<boolean> {
  await db.query(
    'insert into clearing_files (hash, kind, name, lines, received_at) values ($1, $2, $3, $4, $5) on conflict do nothing',
    [hash, kind, name, lines, timeParameter(receivedAt)],
  )
  const { rows } = await db.query<{ finished: boolean }>(
    'select finished_at is not null as finished from clearing_files where hash = $1',
    [hash],
  )
  return rows[0]!.finished
}

export async function settledLines(db: Connection, hash: Buffer): Promise<ReadonlyMap<number, LineResult['kind']>> {
  const { rows } = await db.query<{ line: number; outcome: LineResult['kind'] }>(
    'select line, outcome from clearing_lines where hash = $1',
    [hash],
  )
  return new Map(rows.map(({ line, outcome }) => [line, outcome]))
}

/** What was refused may be settled later; nothing else changes. */
export async function insertLine(
  db: Connection,
  {
    hash,
    line,
    result,
    settledAt,
  }: { readonly hash: Buffer; readonly line: number; readonly result: LineResult; readonly settledAt: number },
): Promise<void> {
  await db.query(
    `insert into clearing_lines (hash, line, outcome, subject, settled_at) values ($1, $2, $3, $4, $5)
     on conflict (hash, line) do update set outcome = excluded.outcome, subject = excluded.subject, settled_at = excluded.settled_at
      where clearing_lines.outcome = 'refused'`,
    [hash, line, result.kind, subjectOf(result), timeParameter(settledAt)],
  )
}

/** True for whoever finished it. */
export async function finishFile(db: Connection, hash: Buffer, now: number): Promise<boolean> {
  const { rowCount } = await db.query('update clearing_files set finished_at = $2 where hash = $1 and finished_at is null', [
    hash,
    timeParameter(now),
  ])
  return rowCount === 1
}

const subjectOf = (result: LineResult): string =>
  result.kind === 'refused' ? result.why : result.kind === 'noted' ? result.text : result.paymentId
