// Keeps everybody from writing anything of a merchant who leaves: triggers for this merchant alone, on each of its tables. A process that has not heard of
// the move meets them. They wait for writers only for a moment each, so that others' writes do not queue behind them for long.

import { isUnavailable } from '../../platform/database/errors.ts'
import type { MoveSide } from './move.ts'
import { fencedTables, fenceTable, type Move, type MoveState, unfenceTable } from './store.ts'
import { erasedAnyway, type MovedTable } from './tables.ts'

/** Longer each time: the server ends its own maintenance of a table only for somebody who waits for a second. */
const waits = [50, 100, 200, 400, 800, 1600, 2000, 2000, 2000, 2000]

/** When it resolves, all that was written before is committed, and nothing is written after. */
export const fence = (side: MoveSide, tables: readonly MovedTable[], move: Move): Promise<void> =>
  onEach(
    side,
    tables.filter(({ name, owner }) => owner !== undefined && !erasedAnyway.has(name)),
    (table, milliseconds) => fenceTable(side.database.work, table, move, milliseconds),
  )

/** `state`: in which the move stays meanwhile. */
export const unfence = async (side: MoveSide, move: Move, state: MoveState): Promise<void> =>
  onEach(side, await fencedTables(side.database.work, move.merchantId), (name, milliseconds) =>
    unfenceTable(side.database.work, name, move, state, milliseconds),
  )

async function onEach<Table>(
  { clock }: MoveSide,
  tables: readonly Table[],
  work: (table: Table, milliseconds: number) => Promise<void>,
): Promise<void> {
  for (const table of tables)
    for (const [attempt, milliseconds] of waits.entries())
      try {
        await work(table, milliseconds)
        break
      } catch (error) {
        if (!isUnavailable(error) || attempt === waits.length - 1) throw error
        await clock.sleep(milliseconds)
      }
}
