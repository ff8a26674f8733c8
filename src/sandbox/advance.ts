// The movable clock of a sandbox: a merchant's time is moved forward, and all that falls due on the way happens in order, one thing at a time,
// whatever table it waits in.

import { record } from '../audit/chain.ts'
import { refuseDismissed, whoeverActed } from '../audit/dismissed.ts'
import type { Actor } from '../audit/entry.ts'
import { announceChange } from '../merchants/store.ts'
import { type Connection, inTransaction } from '../platform/database/connect.ts'
import type { DueEntry, DueSource } from '../platform/due/source.ts'
import { moveClock } from '../platform/due/store.ts'
import type { SandboxParts } from './parts.ts'

/** Moves a merchant's time by some milliseconds and returns the new business time. Never backwards. */
export async function advanceClock(
  parts: SandboxParts,
  sources: readonly DueSource[],
  merchantId: string,
  milliseconds: number,
  by?: Actor,
): Promise<number> {
  const move = async (db: Connection, by: number) => {
    await moveClock(db, merchantId, by)
    for (const source of sources) await source.move(db, merchantId, by)
  }
  let left = milliseconds
  /** Time that has moved is told of, whatever becomes of whoever moved it. */
  const mover = () => by && (left === milliseconds ? by : whoeverActed(by))
  for (let busySince = 0; ; ) {
    for (const source of sources) await source.prepare?.()
    const now = parts.clock.real()
    const step = await inTransaction(parts.database.work, async db => {
      await moveClock(db, merchantId, 0) // two that move it at once come one after the other, and each locks in this order
      await refuseDismissed(db, mover())
      const found: DueEntry[] = []
      for (const source of sources) {
        const first = await source.first(db, merchantId, now + left, now)
        if (first) found.push(first)
      }
      const first = found.sort((a, b) => a.dueAt - b.dueAt)[0]
      if (!first || first.busy) return { busy: first !== undefined, run: undefined, moved: 0 }
      const run = await first.take(db)
      const moved = Math.max(0, first.dueAt - now)
      await move(db, moved)
      return { busy: false, run, moved }
    })
    if (step.busy) {
      // Another process runs it right now: wait for it, so that the order holds.
      busySince ||= now
      if (now - busySince > 60_000) break
      await parts.clock.sleep(50)
      continue
    }
    if (!step.run) break
    busySince = 0
    left -= step.moved
    await parts.directory.reload()
    await step.run()
  }
  await inTransaction(parts.database.work, async db => {
    await move(db, left)
    await announceChange(db)
    const mine = mover()
    if (milliseconds > 0)
      await record(db, { ...parts, ...(mine && { by: mine }) }, [
        { action: 'clockMoved', entityId: merchantId, details: { milliseconds } },
      ])
  })
  await parts.directory.reload()
  return parts.directory.businessTime(merchantId)
}
