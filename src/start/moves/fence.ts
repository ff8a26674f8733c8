// Keeps everybody from writing anything of a merchant who leaves: triggers for this merchant alone, on each of its tables. A process that has not heard of
// the move meets them. They wait for writers only for a moment each, so that others' writes do not queue behind them for long.

import type pg from 'pg'
import { isId } from '../../platform/clock.ts'
import { type Connection, inTransaction } from '../../platform/database/connect.ts'
import { isUnavailable } from '../../platform/database/errors.ts'
import type { MoveSide } from './move.ts'
import { holdMove, type Move, type MoveState } from './store.ts'
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

const fenceOf = (merchantId: string) => `elsewhere_${merchantId}`

/** For so many milliseconds others' writes may wait behind us. */
async function fenceTable(pool: pg.Pool, { name, owner }: MovedTable, move: Move, milliseconds: number): Promise<void> {
  const { merchantId } = move
  if (!isId(merchantId)) throw new Error('no id of a merchant')
  const fence = fenceOf(merchantId)
  await inTransaction(pool, async db => {
    await holdMove(db, move, 'frozen')
    await db.query(`set local lock_timeout = ${milliseconds}`)
    await db.query(
      `create or replace trigger ${fence} before insert or update on ${name} for each row when (new.${owner} = '${merchantId}')
       execute function refuse_elsewhere('${merchantId}')`,
    )
    await db.query(
      `create or replace trigger ${fence}_taken before delete on ${name} for each row when (old.${owner} = '${merchantId}')
       execute function refuse_elsewhere('${merchantId}')`,
    )
  })
}

/** The tables with a fence around a merchant. */
async function fencedTables(db: Connection, merchantId: string): Promise<string[]> {
  const { rows } = await db.query<{ name: string }>(
    'select distinct c.relname as name from pg_trigger t join pg_class c on c.oid = t.tgrelid where t.tgname like $1 order by 1',
    [`${fenceOf(merchantId)}%`],
  )
  return rows.map(({ name }) => name)
}

/** Where the merchant is served again the fence is only switched off: to drop it would wait for whoever reads the table, a backup or the doctor. */
async function unfenceTable(pool: pg.Pool, name: string, move: Move, state: MoveState, milliseconds: number): Promise<void> {
  const fence = fenceOf(move.merchantId)
  await inTransaction(pool, async db => {
    await holdMove(db, move, state)
    await db.query(`set local lock_timeout = ${milliseconds}`)
    for (const trigger of [fence, `${fence}_taken`])
      await db.query(
        state === 'returning' ? `alter table ${name} disable trigger ${trigger}` : `drop trigger if exists ${trigger} on ${name}`,
      )
  })
}
