// The movable clock of a sandbox: a merchant's time is moved forward, and all that falls due on the way happens in order, one thing at a time.

import { setTimeout as wait } from 'node:timers/promises'
import { inTransaction } from '../database/connect.ts'
import type { Gateway } from '../gateway.ts'
import { announceChange } from '../merchants/store.ts'
import { moveClock, takeFirst } from './store.ts'
import { type DueHandlers, runItem } from './worker.ts'

/** Moves a merchant's time by some milliseconds and returns the new business time. Never backwards. */
export async function advanceClock(
  gateway: Gateway,
  handlers: DueHandlers,
  merchantId: string,
  milliseconds: number,
): Promise<number> {
  let left = milliseconds
  for (let busySince = 0; ; ) {
    const now = gateway.clock.real()
    const step = await inTransaction(gateway.database.work, async db => {
      const item = await takeFirst(db, merchantId, now + left, now)
      if (item === undefined || item === 'busy') return { item, moved: 0 }
      const moved = Math.max(0, item.dueAt - now)
      await moveClock(db, merchantId, moved)
      return { item, moved }
    })
    if (step.item === undefined) break
    if (step.item === 'busy') {
      // Another process runs it right now: wait for it, so that the order holds.
      busySince ||= now
      if (now - busySince > 60_000) break
      await wait(50)
      continue
    }
    busySince = 0
    left -= step.moved
    await gateway.directory.reload()
    await runItem(gateway, handlers, step.item)
  }
  await inTransaction(gateway.database.work, async db => {
    await moveClock(db, merchantId, left)
    await announceChange(db)
  })
  await gateway.directory.reload()
  return gateway.directory.businessTime(merchantId)
}
