// What a database was made for: a sandbox or live mode, written once. A process or a command of another mode refuses it.

import { OperatorError } from '../errors.ts'
import { type Connection, timeParameter } from './connect.ts'

export type InstallationMode = 'sandbox' | 'live'

/** Undefined in a database that no gateway has used yet, and in one of the time before modes were written. */
export async function readMode(db: Connection): Promise<InstallationMode | undefined> {
  const { rows } = await db.query<{ there: boolean }>(`select to_regclass('installation') is not null as there`)
  if (!rows[0]!.there) return undefined
  return (await db.query<{ mode: InstallationMode }>('select mode from installation')).rows[0]?.mode
}

/** The first that is written stays. */
export async function keepMode(db: Connection, mode: InstallationMode, now: number): Promise<void> {
  await db.query('insert into installation (mode, made_at) values ($1, $2) on conflict do nothing', [mode, timeParameter(now)])
}

/** Throws an OperatorError unless both are the same. */
export function compareModes(mode: InstallationMode | undefined, ours: InstallationMode): void {
  if (mode === undefined || mode === ours) return
  throw new OperatorError(
    mode === 'live'
      ? 'This database belongs to live mode: set MODE=live, or give the sandbox a database of its own.'
      : 'This database belongs to a sandbox, whose credentials are public: live mode needs a database of its own.',
  )
}

/** `cluster database timeline`. Throws where the role may not ask. */
export async function standingOf(db: Connection): Promise<string> {
  const { rows } = await db.query<{ stands: string }>(
    `select concat_ws(' ', system_identifier, (select oid from pg_database where datname = current_database()), left(pg_walfile_name(pg_current_wal_lsn()), 8)) as stands
       from pg_control_system()`,
  )
  return rows[0]!.stands
}

export const clusterOf = (stands: string): string => stands.split(' ', 2).join(' ')

/** Where a gateway last saw the database. Null where none has looked yet; undefined in one that no gateway has prepared. */
export async function readStanding(db: Connection, lock = ''): Promise<string | null | undefined> {
  return (await db.query<{ stands: string | null }>(`select stands_on as stands from installation ${lock}`)).rows[0]?.stands
}

export async function writeStanding(db: Connection, stands: string): Promise<void> {
  await db.query('update installation set stands_on = $1', [stands])
}

/**
 * `database`: the same for all who work on it, another one for a copy beside it. `server`: the same until the server begins anew, another one for a copy of its files,
 * and for what was a standby. Neither gives anything away.
 */
export type DatabaseIds = { readonly database: string; readonly server: string }

export async function readDatabaseIds(db: Connection): Promise<DatabaseIds | undefined> {
  const { rows } = await db.query<DatabaseIds>(
    `select md5(concat_ws(' ', id, oid)) as database, md5(concat_ws(' ', id, oid, to_char(pg_postmaster_start_time() at time zone 'UTC', 'YYYYMMDDHH24MISSUS'))) as server
       from installation, pg_database where datname = current_database()`,
  )
  return rows[0]
}

/** Whether a map was made of it and of others. */
export async function readInCells(db: Connection): Promise<boolean | undefined> {
  return (await db.query<{ known: boolean }>('select in_cells as known from installation')).rows[0]?.known
}

export async function noteCell(db: Connection, inCells: boolean): Promise<void> {
  await db.query('update installation set in_cells = $1 where in_cells <> $1', [inCells])
}
