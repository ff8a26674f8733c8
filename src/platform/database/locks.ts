// The numbers of the locks that a whole database has one of, so that none is taken for another. Locks of one thing among many are hashes of its name.

import type pg from 'pg'
import type { Connection } from './connect.ts'

export const databaseLocks = {
  /** One process migrates at a time. */
  migrations: 7_065_111,
  /** Processes take turns with the events of each consumer. */
  notifications: 7_065_112,
  search: 7_065_113,
  /** One backup is made at a time. */
  backup: 7_065_114,
  /** One archive is worked on at a time. */
  archive: 7_065_115,
} as const

/**
 * For what is counted before one more of it is written: of two who add to the same, the second counts what the first has written. Others do not wait. Until
 * the transaction ends; always in the same order.
 */
export async function lockCounted(db: Connection, what: string, owners: readonly string[]): Promise<void> {
  for (const owner of [...new Set(owners)].sort())
    await db.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [`${what} of ${owner}`])
}

/** Does what only one may do at a time, across transactions: others wait. Whoever dies lets it go with its connection. */
export async function alone<Value>(pool: pg.Pool, what: string, work: () => Promise<Value>): Promise<Value> {
  const own = await pool.connect()
  try {
    await own.query('select pg_advisory_lock(hashtextextended($1, 0))', [what])
    return await work()
  } finally {
    own.release(true)
  }
}
