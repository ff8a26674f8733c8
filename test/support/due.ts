// Takes due work as a worker does that has room for all of it.

import type { Connection } from '../../src/platform/database/connect.ts'
import { type DueItem, takeDue } from '../../src/platform/due/store.ts'

export function takeAnyDue(db: Connection, now: number, limit: number, kinds: readonly string[]): Promise<DueItem[]> {
  const rooms = { most: limit, named: new Map<string, number>() }
  return takeDue(db, now, { kinds, taking: 'all', limit, merchants: rooms, sides: rooms })
}
