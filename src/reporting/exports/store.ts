// Exports in the database: what each is made of, how far it has come, and whose it is.

import { type Connection, timeParameter } from '../../platform/database/connect.ts'
import type { ExportPlace, ExportSource } from './source.ts'

export type ExportRow = {
  readonly id: string
  readonly askedBy: string
  readonly askedAt: number
  readonly endsAt: number
  readonly merchants: readonly string[]
  readonly name: string
  readonly state: 'making' | 'made' | 'tooLarge'
  readonly records: number
  /** Absent until they are counted. */
  readonly total: number | null
  readonly pieces: number
  readonly bytes: number
}
export type ExportWork = ExportRow & { readonly source: ExportSource; readonly place: ExportPlace | null }

// Lists of ids are no type that the driver knows.
const columns = `id, asked_by as "askedBy", asked_at as "askedAt", ends_at as "endsAt", array(select replace(one::text, '-', '') from unnest(merchants) one) as merchants,
  name, state, records, total, pieces, bytes`

export async function insertExport(
  db: Connection,
  {
    id,
    askedBy,
    askedAt,
    endsAt,
    merchants,
    name,
  }: Pick<ExportRow, 'id' | 'askedBy' | 'askedAt' | 'endsAt' | 'merchants' | 'name'>,
  source: ExportSource,
): Promise<void> {
  await db.query(
    'insert into exports (id, asked_by, asked_at, ends_at, merchants, name, source) values ($1, $2, $3, $4, $5, $6, $7)',
    [id, askedBy, timeParameter(askedAt), timeParameter(endsAt), merchants, name, JSON.stringify(source)],
  )
}

/** How many there are of somebody, and of some people together. */
export async function countExports(
  db: Connection,
  askedBy: string,
  colleagues: readonly string[],
): Promise<{ readonly own: number; readonly together: number }> {
  const { rows } = await db.query<{ own: number; together: number }>(
    `select count(*) filter (where asked_by = $1) as own, count(*) filter (where asked_by = any ($2)) as together from exports`,
    [askedBy, colleagues],
  )
  return rows[0]!
}

/** Of somebody, or of all, about some merchants and no others; the newest first. */
export async function listExports(
  db: Connection,
  askedBy: string | null,
  merchants: readonly string[],
  limit: number,
): Promise<ExportRow[]> {
  const { rows } = await db.query<ExportRow>(
    `select ${columns} from exports where ($1::text is null or asked_by = $1) and merchants <@ $2::uuid[] order by asked_at desc, id limit $3`,
    [askedBy, merchants, limit],
  )
  return rows
}

export async function findExport(db: Connection, id: string): Promise<ExportWork | undefined> {
  const { rows } = await db.query<ExportWork>(`select ${columns}, source, place from exports where id = $1`, [id])
  return rows[0]
}

export async function setTotal(db: Connection, id: string, total: number): Promise<void> {
  await db.query('update exports set total = $2 where id = $1 and total is null', [id, total])
}

/** One step on from where it was found. False when it is not there any more, or another process was faster. */
export async function advanceExport(
  db: Connection,
  { id, pieces }: Pick<ExportRow, 'id' | 'pieces'>,
  step: {
    readonly place: ExportPlace | undefined
    readonly records: number
    readonly bytes: number
    readonly state: ExportRow['state']
  },
): Promise<boolean> {
  const { rowCount } = await db.query(
    `update exports set pieces = pieces + 1, place = coalesce($3::jsonb, place), records = records + $4, bytes = bytes + $5, state = $6
      where id = $1 and pieces = $2 and state = 'making'`,
    [id, pieces, step.place ? JSON.stringify(step.place) : null, step.records, step.bytes, step.state],
  )
  return rowCount === 1
}

/** Its pieces go behind it, in the same transaction: a step that was under way has ended then. */
export async function deleteExport(db: Connection, id: string): Promise<boolean> {
  const { rowCount } = await db.query('delete from exports where id = $1', [id])
  return rowCount === 1
}
