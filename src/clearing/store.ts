// Files that came, and what became of their lines.

import { type Connection, timeParameter } from '../platform/database/connect.ts'
import { storableText } from '../platform/database/json.ts'
import type { LineResult } from './import.ts'
import { storedName } from './storedName.ts'

/** `again`: the same bytes were read to their end before; `isNew`: nobody began to. */
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
): Promise<{ readonly isNew: boolean; readonly again: boolean }> {
  const { rowCount } = await db.query(
    'insert into clearing_files (hash, kind, name, lines, received_at) values ($1, $2, $3, $4, $5) on conflict do nothing',
    [hash, kind, storedName(name), lines, timeParameter(receivedAt)],
  )
  const { rows } = await db.query<{ finished: boolean }>(
    'select finished_at is not null as finished from clearing_files where hash = $1',
    [hash],
  )
  return { isNew: rowCount === 1, again: rows[0]!.finished }
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
    [hash, line, result.kind, storableText(subjectOf(result)), timeParameter(settledAt)],
  )
}

export type CameBefore = {
  readonly hash: Buffer
  readonly name: string
  /** Null: nothing of it was read. */
  readonly kind: string | null
  readonly lines: number | null
  readonly receivedAt: number
  /** Null: its reading died, or it was refused whole. */
  readonly finishedAt: number | null
  readonly refused: string | null
  /** Lines by what became of them. */
  readonly outcomes: Readonly<Partial<Record<LineResult['kind'], number>>>
}

/** Files of all kinds that came before a moment, the latest first. */
export async function findImported(db: Connection, before: number, limit: number): Promise<CameBefore[]> {
  const { rows } = await db.query<CameBefore>(
    `select hash, name, kind, lines, came.at as "receivedAt", finished_at as "finishedAt", refused,
            (select coalesce(jsonb_object_agg(outcome, count), '{}')
               from (select outcome, count(*) from clearing_lines l where l.hash = came.hash group by outcome) as counted) as outcomes
       from (select coalesce(f.hash, r.hash) as hash, coalesce(f.name, r.name) as name, f.kind, f.lines, f.finished_at, r.refused,
                    coalesce(f.received_at, r.received_at) as at
               from clearing_files f full join return_files r on r.hash = f.hash) as came
      where came.at < $1 order by came.at desc, hash limit $2`,
    [timeParameter(before), limit],
  )
  return rows
}

export type SettledLine = { readonly line: number; readonly outcome: LineResult['kind']; readonly subject: string }

/** What became of the lines of a file behind one of them, in their order. */
export async function findLines(db: Connection, hash: Buffer, behind: number, limit: number): Promise<SettledLine[]> {
  const { rows } = await db.query<SettledLine>(
    'select line, outcome, subject from clearing_lines where hash = $1 and line > $2 order by line limit $3',
    [hash, behind, limit],
  )
  return rows
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
