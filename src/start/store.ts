// The credentials of files as each machine had them at its last start.

import { type Connection, timeParameter } from '../platform/database/connect.ts'

/** Name → fingerprint. */
export async function readCredentials(db: Connection, machine: string): Promise<ReadonlyMap<string, string>> {
  const { rows } = await db.query<{ name: string; fingerprint: string }>(
    'select name, fingerprint from credentials where machine = $1',
    [machine],
  )
  return new Map(rows.map(({ name, fingerprint }) => [name, fingerprint]))
}

export async function keepCredential(
  db: Connection,
  machine: string,
  name: string,
  fingerprint: string,
  now: number,
): Promise<void> {
  await db.query(
    `insert into credentials (machine, name, fingerprint, seen_at) values ($1, $2, $3, $4)
     on conflict (machine, name) do update set fingerprint = excluded.fingerprint, seen_at = excluded.seen_at`,
    [machine, name, fingerprint, timeParameter(now)],
  )
}
