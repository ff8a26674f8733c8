// Connections to PostgreSQL. Three small pools: one connection for each lane of group commits, and one pool for everything else.

import pg from 'pg'

export type Database = {
  /** Reads, and captures, refunds and reversals with their row lock. */
  readonly work: pg.Pool
  /** Carries first payments. */
  readonly paymentLane: pg.Pool
  /** Carries answers. */
  readonly answerLane: pg.Pool
  close(): Promise<void>
}

/** A pool or one of its connections: what a statement needs. */
export type Connection = Pick<pg.Pool, 'query'>

// Ids travel as 32 hex characters, amounts and counts fit a number, times are milliseconds, days are text.
pg.types.setTypeParser(2950, text => text.replaceAll('-', ''))
pg.types.setTypeParser(20, text => Number(text))
pg.types.setTypeParser(1184, text => new Date(text).getTime())
pg.types.setTypeParser(1082, text => text)

export function connect(options: pg.PoolConfig, onError: (error: Error) => void): Database {
  let closed = false
  const pool = (name: string, max: number) => {
    const made = new pg.Pool({
      ...options,
      max,
      application_name: `tollgate ${name}`,
      connectionTimeoutMillis: 5000,
      idleTimeoutMillis: 0,
    })
    // A server that goes away must not end the process; when the pools are closed it may go before they have said goodbye.
    made.on('error', error => closed || onError(error))
    return made
  }
  const pools = { work: pool('work', 10), paymentLane: pool('payments', 1), answerLane: pool('answers', 1) }
  return {
    ...pools,
    async close() {
      closed = true
      await Promise.all(Object.values(pools).map(pool => pool.end()))
    },
  }
}

/** Resolves when the database answers, else throws. */
export async function isReachable({ work }: Database): Promise<void> {
  await work.query('select 1')
}

/** Runs a piece of work in one transaction; what it throws rolls back. */
export async function inTransaction<Value>(pool: pg.Pool, work: (connection: pg.PoolClient) => Promise<Value>): Promise<Value> {
  const connection = await pool.connect()
  let broken: Error | undefined
  try {
    await connection.query('begin')
    const value = await work(connection)
    await connection.query('commit')
    return value
  } catch (error) {
    await connection.query('rollback').catch((failed: Error) => {
      broken = failed
    })
    throw error
  } finally {
    connection.release(broken)
  }
}

/** Milliseconds → what a timestamptz parameter takes. */
export const timeParameter = (milliseconds: number): string => new Date(milliseconds).toISOString()
