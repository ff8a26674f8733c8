// The movable clock of a sandbox: a merchant's time is moved forward, and all that falls due on the way happens in order, one thing at a time,
// whatever table it waits in.

import { setTimeout as wait } from 'node:timers/promises'
import { record } from '../audit/chain.ts'
import type { Actor } from '../audit/entry.ts'
import { type Connection, inTransaction } from '../database/connect.ts'
import type { Gateway } from '../gateway.ts'
import { announceChange } from '../merchants/store.ts'
import { firstDue, leaseDue, moveClock, moveDue } from './store.ts'
import { type DueHandlers, runItem } from './worker.ts'

/** Something that waits: when, whether another process holds it, and how to take it for ourselves. */
export type Waiting = {
  readonly dueAt: number
  readonly busy: boolean
  /** Inside the transaction that found it; what it returns is run outside. */
  take(db: Connection): Promise<() => Promise<void>>
}

/** One kind of table whose rows have a time. */
export type DueSource = {
  /** Brings in what has happened but does not wait in the table yet. */
  prepare?(): Promise<void>
  first(db: Connection, merchantId: string, until: number, now: number): Promise<Waiting | undefined>
  move(db: Connection, merchantId: string, milliseconds: number): Promise<void>
}

export const dueWork = (gateway: Gateway, handlers: DueHandlers): DueSource => ({
  async first(db, merchantId, until, now) {
    const item = await firstDue(db, merchantId, until, now)
    return (
      item && {
        dueAt: item.dueAt,
        busy: item.busy,
        async take(db) {
          const taken = await leaseDue(db, item, now)
          return () => runItem(gateway, handlers, taken)
        },
      }
    )
  },
  move: moveDue,
})

/** Moves a merchant's time by some milliseconds and returns the new business time. Never backwards. */
export async function advanceClock(
  gateway: Gateway,
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
  for (let busySince = 0; ; ) {
    for (const source of sources) await source.prepare?.()
    const now = gateway.clock.real()
    const step = await inTransaction(gateway.database.work, async db => {
      const found: Waiting[] = []
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
      await wait(50)
      continue
    }
    if (!step.run) break
    busySince = 0
    left -= step.moved
    await gateway.directory.reload()
    await step.run()
  }
  await inTransaction(gateway.database.work, async db => {
    await move(db, left)
    await announceChange(db)
    if (milliseconds > 0)
      await record(db, { ...gateway, ...(by && { by }) }, [
        { action: 'clockMoved', entityId: merchantId, details: { milliseconds } },
      ])
  })
  await gateway.directory.reload()
  return gateway.directory.businessTime(merchantId)
}
