// Operator cases in the database.

import { type Connection, timeParameter } from '../../platform/database/connect.ts'
import { storableText } from '../../platform/database/json.ts'
import type { CaseKind } from './cases.ts'

export type OperatorCase = {
  readonly id: string
  readonly merchantId: string
  readonly kind: string
  readonly subject: string
  /** JSON text. */
  readonly details: string
  readonly openedAt: number
  readonly closedAt: number | null
  readonly closedBy: string | null
  readonly reason: string | null
  /** By name: whoever of the staff looks after it. */
  readonly owner: string | null
}

const columns = `id, merchant_id as "merchantId", kind, subject, details, opened_at as "openedAt", closed_at as "closedAt",
  closed_by as "closedBy", reason, owner`

export async function insertCase(
  db: Connection,
  { id, merchantId, kind, subject, details, openedAt }: Omit<OperatorCase, 'closedAt' | 'closedBy' | 'reason' | 'owner'>,
): Promise<boolean> {
  const { rowCount } = await db.query(
    `insert into operator_cases (merchant_id, id, kind, subject, details, opened_at) values ($1, $2, $3, $4, $5, $6)
     on conflict (merchant_id, kind, subject) where closed_at is null do nothing`,
    [merchantId, id, kind, storableText(subject), details, timeParameter(openedAt)],
  )
  return rowCount === 1
}

/** The open ones, or all, the oldest first. */
export async function findCases(db: Connection, closedToo: boolean, limit: number): Promise<OperatorCase[]> {
  const { rows } = await db.query<OperatorCase>(
    `select ${columns} from operator_cases where closed_at is null or $1 order by opened_at, id limit $2`,
    [closedToo, limit],
  )
  return rows
}

/** Those of some merchants. */
export async function findCasesOf(
  db: Connection,
  merchantIds: readonly string[],
  closedToo: boolean,
  limit: number,
  skip: number,
): Promise<OperatorCase[]> {
  const { rows } = await db.query<OperatorCase>(
    `select ${columns} from operator_cases where merchant_id = any ($1) and (closed_at is null or $2) order by opened_at, id limit $3 offset $4`,
    [merchantIds, closedToo, limit, skip],
  )
  return rows
}

export async function findCase(db: Connection, merchantId: string, id: string): Promise<OperatorCase | undefined> {
  const { rows } = await db.query<OperatorCase>(`select ${columns} from operator_cases where merchant_id = $1 and id = $2`, [
    merchantId,
    id,
  ])
  return rows[0]
}

export async function setOwner(db: Connection, merchantId: string, id: string, owner: string | null): Promise<void> {
  await db.query('update operator_cases set owner = $3 where merchant_id = $1 and id = $2 and closed_at is null', [
    merchantId,
    id,
    owner,
  ])
}

export type CaseNote = {
  readonly merchantId: string
  readonly caseId: string
  readonly id: string
  readonly writtenAt: number
  readonly writtenBy: string
  readonly kind: 'taken' | 'released' | 'note'
  readonly text: string
}

/** Locks a case that is open, and says how much has been written about it. Undefined when it is closed. */
export async function lockHistory(db: Connection, merchantId: string, caseId: string): Promise<number | undefined> {
  const { rowCount } = await db.query(
    'select 1 from operator_cases where merchant_id = $1 and id = $2 and closed_at is null for update',
    [merchantId, caseId],
  )
  if (rowCount === 0) return undefined
  const { rows } = await db.query<{ count: number }>('select count(*) from case_notes where merchant_id = $1 and case_id = $2', [
    merchantId,
    caseId,
  ])
  return rows[0]!.count
}

export async function insertNote(db: Connection, note: CaseNote): Promise<void> {
  const { merchantId, caseId, id, writtenAt, writtenBy, kind, text } = note
  await db.query(
    'insert into case_notes (merchant_id, case_id, id, written_at, written_by, kind, text) values ($1, $2, $3, $4, $5, $6, $7)',
    [merchantId, caseId, id, timeParameter(writtenAt), writtenBy, kind, text],
  )
}

export async function listNotes(db: Connection, merchantId: string, caseId: string): Promise<CaseNote[]> {
  const { rows } = await db.query<CaseNote>(
    `select merchant_id as "merchantId", case_id as "caseId", id, written_at as "writtenAt", written_by as "writtenBy", kind, text
       from case_notes where merchant_id = $1 and case_id = $2 order by written_at, id`,
    [merchantId, caseId],
  )
  return rows
}

export async function closeRow(
  db: Connection,
  id: string,
  now: number,
  by: string,
  reason: string,
): Promise<OperatorCase | undefined> {
  const { rows } = await db.query<OperatorCase>(
    `update operator_cases set closed_at = $2, closed_by = $3, reason = $4 where id = $1 and closed_at is null returning ${columns}`,
    [id, timeParameter(now), by, reason],
  )
  return rows[0]
}

/** Closes what was about something that has been settled otherwise. */
export async function closeSettled(
  db: Connection,
  { merchantId, kind, subject }: Pick<OperatorCase, 'merchantId' | 'kind' | 'subject'>,
  now: number,
  by: string,
  reason: string,
): Promise<void> {
  await db.query(
    `update operator_cases set closed_at = $4, closed_by = $5, reason = $6
     where merchant_id = $1 and kind = $2 and subject = $3 and closed_at is null`,
    [merchantId, kind, storableText(subject), timeParameter(now), by, reason],
  )
}

export async function hasOpenCase(db: Connection, merchantId: string, kind: string, subject: string): Promise<boolean> {
  const { rowCount } = await db.query(
    'select 1 from operator_cases where merchant_id = $1 and kind = $2 and subject = $3 and closed_at is null',
    [merchantId, kind, storableText(subject)],
  )
  return rowCount === 1
}

/** How many of some kinds are open, and since when the oldest is (milliseconds). */
export async function countOpenCases(
  db: Connection,
  kinds: readonly string[],
): Promise<{ readonly count: number; readonly since: number | null }> {
  const { rows } = await db.query<{ count: number; since: number | null }>(
    'select count(*), min(opened_at) as since from operator_cases where kind = any ($1) and closed_at is null',
    [kinds],
  )
  return rows[0]!
}

/** The open ones by kind: how many, and when the last was opened (milliseconds). */
export async function countCasesByKind(
  db: Connection,
): Promise<{ readonly kind: CaseKind; readonly count: number; readonly newest: number }[]> {
  const { rows } = await db.query<{ kind: CaseKind; count: number; newest: number }>(
    'select kind, count(*), max(opened_at) as newest from operator_cases where closed_at is null group by kind order by kind',
  )
  return rows
}

/** Those about some subjects of a merchant, the oldest first. */
export async function casesAbout(db: Connection, merchantId: string, subjects: readonly string[]): Promise<OperatorCase[]> {
  const { rows } = await db.query<OperatorCase>(
    `select ${columns} from operator_cases where merchant_id = $1 and subject = any ($2) order by opened_at, id`,
    [merchantId, subjects],
  )
  return rows
}
