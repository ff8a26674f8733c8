// Schedules of reports in the database.

import { type Connection, timeParameter } from '../../platform/database/connect.ts'
import type { ReportSchedule } from './schedule.ts'

const columns = `owner_id as "ownerId", id, settings, made_at as "madeAt", made_by as "madeBy", ended_at as "endedAt"`

export async function insertSchedule(db: Connection, { ownerId, id, settings, madeAt, madeBy }: ReportSchedule): Promise<void> {
  await db.query('insert into report_schedules (owner_id, id, settings, made_at, made_by) values ($1, $2, $3, $4, $5)', [
    ownerId,
    id,
    JSON.stringify(settings),
    timeParameter(madeAt),
    madeBy,
  ])
}

export async function findSchedule(db: Connection, ownerId: string, id: string): Promise<ReportSchedule | undefined> {
  const { rows } = await db.query<ReportSchedule>(`select ${columns} from report_schedules where owner_id = $1 and id = $2`, [
    ownerId,
    id,
  ])
  return rows[0]
}

/** The hosts of the servers of some. */
export async function findHosts(
  db: Connection,
  schedules: readonly { readonly merchantId: string; readonly subjectId: string }[],
): Promise<ReadonlyMap<string, string>> {
  const { rows } = await db.query<{ id: string; host: string }>(
    `select s.id, s.settings ->> 'host' as host from unnest($1::uuid[], $2::uuid[]) as wanted (owner_id, id)
       join report_schedules s on s.owner_id = wanted.owner_id and s.id = wanted.id`,
    [schedules.map(({ merchantId }) => merchantId), schedules.map(({ subjectId }) => subjectId)],
  )
  return new Map(rows.map(({ id, host }) => [id, host]))
}

/** Those that run, the oldest first; of some owners, or of all for the operator. */
export async function listSchedules(db: Connection, owners?: readonly string[]): Promise<ReportSchedule[]> {
  const { rows } = await db.query<ReportSchedule>(
    `select ${columns} from report_schedules where ended_at is null ${owners ? 'and owner_id = any ($1)' : ''} order by owner_id, made_at, id`,
    owners && [owners],
  )
  return rows
}

export async function countSchedules(db: Connection, ownerId: string): Promise<number> {
  const { rows } = await db.query<{ count: number }>(
    'select count(*) from report_schedules where owner_id = $1 and ended_at is null',
    [ownerId],
  )
  return rows[0]!.count
}

export async function endSchedule(db: Connection, ownerId: string, id: string, now: number): Promise<boolean> {
  const { rowCount } = await db.query(
    'update report_schedules set ended_at = $3 where owner_id = $1 and id = $2 and ended_at is null',
    [ownerId, id, timeParameter(now)],
  )
  return rowCount === 1
}
