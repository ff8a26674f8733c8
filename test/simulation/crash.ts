// A process that can die at any await: a view of the gateway whose every outside step is counted, and at a chosen one, before or after it takes
// effect, everything stops for good. What the database and the other side did stays done.

import type pg from 'pg'
import type { Connector } from '../../src/connectors/connector.ts'
import { type Database, lockedTransaction } from '../../src/platform/database/connect.ts'
import { takeTurns } from '../../src/platform/database/turns.ts'
import type { Gateway } from '../../src/start/assemble.ts'

export type Crash = {
  readonly gateway: Gateway
  /** Resolves when the process died. */
  readonly died: Promise<'died'>
  steps(): number
}

/** `at` counts steps from 1; 0 = never. `after`: the step still takes effect. */
export function crashing(gateway: Gateway, at: number, after: boolean): Crash {
  let steps = 0
  let dead = false
  let die: (died: 'died') => void = () => {}
  const died = new Promise<'died'>(resolve => {
    die = resolve
  })
  const never = new Promise<never>(() => {})
  const held = new Set<pg.PoolClient>()
  const end = () => {
    dead = true
    // The server rolls back what a lost connection had open.
    for (const connection of held) connection.release(true)
    held.clear()
    die('died')
    return never
  }
  async function step<Value>(run: () => Promise<Value>): Promise<Value> {
    if (dead) return never
    const mine = ++steps
    if (mine === at && !after) return end()
    const value = await run()
    if (dead || mine === at) return end()
    return value
  }
  /** The way out: whoever dies with the message on its way does not hear the answer, and what was being written beside it is lost. */
  async function leave<Value>(run: () => Promise<Value>): Promise<Value> {
    if (steps + 1 !== at || !after || dead) return step(run)
    steps++
    run().catch(() => {})
    return end()
  }
  const query = (on: Pick<pg.Pool, 'query'>) =>
    ((...given: unknown[]) => step(() => (on.query as (...given: unknown[]) => Promise<unknown>)(...given))) as pg.Pool['query']
  const viewOf = (pool: pg.Pool) =>
    ({
      query: query(pool),
      connect: async () => {
        const connection = await step(async () => {
          const opened = await pool.connect()
          held.add(opened)
          return opened
        })
        return {
          query: query(connection),
          release: (broken?: Error | boolean) => {
            if (held.delete(connection)) connection.release(broken)
          },
        }
      },
    }) as unknown as pg.Pool
  const { work, chains } = gateway.database
  const inTurn = takeTurns(gateway.clock, 10, 100) // a process that died leaves no turn behind
  const database: Database = {
    ...gateway.database,
    work: viewOf(work),
    inChain: (merchantId, rootId, lock, act) => inTurn(merchantId + rootId, () => lockedTransaction(viewOf(chains), lock, act)),
  }
  const connectors = new Map(
    [...gateway.connectors].map(([name, connector]): [string, Connector] => [
      name,
      { ...connector, perform: (operation, signal) => leave(() => connector.perform(operation, signal)) },
    ]),
  )
  return {
    died,
    steps: () => steps,
    gateway: {
      ...gateway,
      // Nothing is on disk in the moment in which it is asked for.
      insertPayment: row =>
        step(async () => {
          await new Promise(resolve => setImmediate(resolve))
          return dead ? never : gateway.insertPayment(row)
        }),
      insertAnswer: row => step(() => gateway.insertAnswer(row)),
      database,
      connectors,
    },
  }
}
