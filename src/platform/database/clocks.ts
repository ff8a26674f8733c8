// Our clock beside that of the database server. Leases, due times and ids are written with our clock: processes of one database must agree on it.

import type { Connection } from './connect.ts'

/** How far our clock is ahead of the server's, in milliseconds; negative = behind. The time that the question took is given the benefit of the doubt. */
export async function clockAhead(db: Connection, now: () => number): Promise<number> {
  const before = now()
  const { rows } = await db.query<{ at: number }>('select clock_timestamp() as at')
  const after = now()
  const { at } = rows[0]!
  return at < before ? before - at : at > after ? after - at : 0
}
