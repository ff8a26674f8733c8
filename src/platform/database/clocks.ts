// Our clock beside that of the database server. Leases, due times and ids are written with our clock: processes of one database must agree on it.

import type { Connection } from './connect.ts'

/** Half a lease of due work (due/store.ts), in seconds: two processes at the two ends still respect each other's. Clocks that are further apart are not trusted. */
export const refusedSeconds = 30

/** How far our clock is ahead of the server's, in milliseconds; negative = behind. The time that the question took is given the benefit of the doubt. */
export async function clockAhead(db: Connection, now: () => number): Promise<number> {
  const before = now()
  const { rows } = await db.query<{ at: number }>('select clock_timestamp() as at')
  const after = now()
  const { at } = rows[0]!
  return at < before ? before - at : at > after ? after - at : 0
}

/** The time that both clocks have reached, for what cannot be undone; undefined when they are too far apart. A clock that is set while it is asked makes nothing later. */
export async function sharedTime(db: Connection, now: () => number): Promise<number | undefined> {
  const before = now()
  const ahead = await clockAhead(db, now)
  return Math.abs(ahead) > refusedSeconds * 1000 ? undefined : before - Math.max(0, ahead)
}
