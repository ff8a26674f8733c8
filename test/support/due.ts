// Takes due work as a worker does, and says what was read for it.

import type pg from 'pg'
import type { Connection } from '../../src/platform/database/connect.ts'
import { type DueItem, type Rooms, type TakenWork, takeDue, type Wanted } from '../../src/platform/due/store.ts'

export const rooms = (most: number, ...named: [string, number][]): Rooms => ({ most, named: new Map(named) })
export const noShares: Pick<Wanted, 'ofMerchants' | 'ofLines' | 'behind'> = {
  ofMerchants: new Map(),
  ofLines: new Map(),
  behind: [],
}

/** As one that has room for all of it. */
export const takeAnyDue = async (
  db: Connection,
  now: number,
  limit: number,
  kinds: readonly string[],
): Promise<readonly DueItem[]> =>
  (await takeDue(db, now, { kinds, taking: 'all', limit, merchants: rooms(limit), sides: rooms(limit), ...noShares })).items

/** What a look finds, and how many rows of the table it reads: everything is free again behind it. */
export async function lookAtDue(pool: pg.Pool, now: number, wanted: Wanted): Promise<TakenWork & { readonly read: number }> {
  let read = 0
  const release = () => pool.query('update due_work set leased_until = null, attempts = 0 where leased_until is not null')
  const connection = {
    async query(asked: { text: string; values: unknown[] }) {
      const { rows } = await pool.query({ text: `explain (analyze, format json) ${asked.text}`, values: asked.values })
      read = rowsRead(rows[0]['QUERY PLAN'][0].Plan)
      await release()
      return pool.query({ text: asked.text, values: asked.values })
    },
  }
  const taken = await takeDue(connection as never, now, wanted)
  await release()
  await pool.query('vacuum due_work')
  return { ...taken, read }
}

/** Of all scans of the table, those that were thrown away too. */
function rowsRead(plan: Record<string, unknown>): number {
  const inner = ((plan.Plans ?? []) as Record<string, unknown>[]).reduce((sum, one) => sum + rowsRead(one), 0)
  if (plan['Relation Name'] !== 'due_work' || !/Scan/.test(String(plan['Node Type']))) return inner
  const removed = Number(plan['Rows Removed by Filter'] ?? 0) + Number(plan['Rows Removed by Index Recheck'] ?? 0)
  return inner + (Number(plan['Actual Rows']) + removed) * Number(plan['Actual Loops'])
}
