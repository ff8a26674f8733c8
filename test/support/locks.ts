// What waits for a lock in the database of one test. The server is shared by the whole run: what waits in other databases is another test's.

import type pg from 'pg'
import { eventually } from './gateway.ts'

/** Of each connection that waits: the name of its pool, and its statement. */
export async function lockWaiters(pool: Pick<pg.Pool, 'query'>): Promise<{ name: string; query: string }[]> {
  const { rows } = await pool.query<{ name: string; query: string }>(
    `select substring(application_name from '^\\S+ \\S+') as name, query from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and pid <> pg_backend_pid() order by 1`,
  )
  return rows
}

/** Until as many statements with these words wait for a lock. */
export async function untilWaiting(pool: Pick<pg.Pool, 'query'>, words = '', least = 1): Promise<void> {
  const waiting = async () => (await lockWaiters(pool)).filter(({ query }) => query.includes(words)).length
  await eventually(async () => (await waiting()) >= least, `${least} waits for a lock ${words}`)
}
