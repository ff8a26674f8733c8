// Searches that somebody wants to find again: each by its name, of nobody else.

import type { Connection } from '../../platform/database/connect.ts'
import { lockCounted } from '../../platform/database/locks.ts'

/** `query`: as the address of the page has it. */
export type SavedFilter = { readonly name: string; readonly query: string }

export const filtersMost = 30
export const filterNameMost = 60
export const filterQueryMost = 1000

export async function listFilters(db: Connection, staffId: string): Promise<SavedFilter[]> {
  const { rows } = await db.query<SavedFilter>(
    'select name, query from saved_filters where staff_id = $1 order by lower(name), name',
    [staffId],
  )
  return rows
}

/** One of the same name is replaced. False when there are too many. Inside a transaction. */
export async function saveFilter(db: Connection, staffId: string, { name, query }: SavedFilter): Promise<boolean> {
  await lockCounted(db, 'filters', [staffId])
  const { rowCount } = await db.query(
    `insert into saved_filters (staff_id, name, query)
     select $1, $2, $3 where (select count(*) from saved_filters where staff_id = $1 and name <> $2) < $4
     on conflict (staff_id, name) do update set query = excluded.query`,
    [staffId, name, query, filtersMost],
  )
  return rowCount === 1
}

export async function dropFilter(db: Connection, staffId: string, name: string): Promise<void> {
  await db.query('delete from saved_filters where staff_id = $1 and name = $2', [staffId, name])
}

export async function dropFiltersOf(db: Connection, staffId: string): Promise<void> {
  await db.query('delete from saved_filters where staff_id = $1', [staffId])
}
