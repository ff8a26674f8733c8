// Tables whose rows wait for a time, seen alike: what a movable clock goes through in order.

import type { Connection } from '../database/connect.ts'
import { firstDue, leaseDue, moveDue } from './store.ts'
import { type DueHandlers, runItem, type WorkerParts } from './worker.ts'

/** Something that waits: when, whether another process holds it, and how to take it for ourselves. */
export type DueEntry = {
  readonly dueAt: number
  readonly busy: boolean
  /** Inside the transaction that found it; what it returns is run outside. */
  take(db: Connection): Promise<() => Promise<void>>
}

/** One kind of table whose rows have a time. */
export type DueSource = {
  /** Brings in what has happened but does not wait in the table yet. */
  prepare?(): Promise<void>
  first(db: Connection, merchantId: string, until: number, now: number): Promise<DueEntry | undefined>
  move(db: Connection, merchantId: string, milliseconds: number): Promise<void>
}

export const dueWork = <Parts extends WorkerParts>(parts: Parts, handlers: DueHandlers<Parts>): DueSource => ({
  async first(db, merchantId, until, now) {
    const item = await firstDue(db, merchantId, until, now)
    return (
      item && {
        dueAt: item.dueAt,
        busy: item.busy,
        async take(db) {
          const taken = await leaseDue(db, item, now)
          return () => runItem(parts, handlers, taken)
        },
      }
    )
  },
  move: moveDue,
})
