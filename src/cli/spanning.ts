// Tokens that act in several cells stand in each of them: what is done to one here alone makes the cells differ.

import { hasTokensForOthers, readEntities } from '../merchants/store.ts'
import type { Connection } from '../platform/database/connect.ts'
import { listMoves } from '../start/moves/store.ts'

/** Whether other cells may have a token for these, as far as a cell can know: a merchant left it or came, or a token here acts for somebody who is not. */
export async function maySpanCells(db: Connection, entities: readonly string[]): Promise<boolean> {
  const moves = await listMoves(db)
  if (moves.length === 0 && !(await hasTokensForOthers(db))) return false
  const owners = new Map((await readEntities(db, entities)).map(({ id, merchantId }) => [id, merchantId]))
  const away = new Set(moves.flatMap(({ merchantId, here }) => (here ? [] : [merchantId])))
  return entities.some(id => (owners.get(id) ?? null) === null || away.has(owners.get(id)!))
}
