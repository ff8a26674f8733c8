// Tokens that act in several cells stand in each of them: what is done to one here alone makes the cells differ.

import { readEntities, readTokens } from '../merchants/store.ts'
import type { Connection } from '../platform/database/connect.ts'
import { listMoves } from '../start/moves/store.ts'

/** Whether other cells may have a token for these, as far as a cell can know: a merchant left it or came, or a token here acts for somebody who is not. */
export async function maySpanCells(db: Connection, entities: readonly string[]): Promise<boolean> {
  const [owners, moves, tokens] = [
    new Map((await readEntities(db)).map(({ id, merchantId }) => [id, merchantId])),
    await listMoves(db),
    await readTokens(db),
  ]
  const away = new Set(moves.flatMap(({ merchantId, here }) => (here ? [] : [merchantId])))
  const isCell = moves.length > 0 || tokens.some(token => token.entities.some(id => !owners.has(id)))
  return isCell && entities.some(id => (owners.get(id) ?? null) === null || away.has(owners.get(id)!))
}
