// Acts that no transaction holds together with their row: files, another server, many steps. That one begins is told before anything is done, so that it has left
// a row wherever it is broken off.

import type pg from 'pg'
import { type Connection, inTransaction } from '../platform/database/connect.ts'
import { OperatorError } from '../platform/errors.ts'
import { type Recorder, record } from './chain.ts'
import { whoeverActed } from './dismissed.ts'
import type { AuditEntry } from './entry.ts'

export type ActUnderWay = {
  /** What comes of it, filled in as it goes on: one that fails has told what it did until then. */
  readonly came: Record<string, unknown>
  /** Tells its end inside the transaction of its last step; without it the end is told when all is done. */
  end(db: Connection): Promise<void>
}

/**
 * Tells that an act begins, carries it out, and tells what came of it in a row that names the first one (`begun`). What cannot be told of does not begin. Throws an
 * OperatorError that says so when it was carried out and its end could not be told.
 */
export async function tellAndDo<Value>(
  pool: pg.Pool,
  recorder: Recorder,
  act: Pick<AuditEntry, 'action' | 'entityId' | 'subject' | 'details'>,
  work: (underWay: ActUnderWay) => Promise<Value>,
): Promise<Value> {
  const { action, details } = act
  const beginning: AuditEntry = { ...act, action: 'actBegun', details: { act: action, ...details } }
  const begun = await inTransaction(pool, db => record(db, recorder, [beginning]))
  const came: Record<string, unknown> = {}
  const afterwards = { ...recorder, ...(recorder.by && { by: whoeverActed(recorder.by) }) }
  const tell = (db: Connection, result: 'done' | 'refused') =>
    record(db, afterwards, [{ ...act, result, details: { ...details, ...came, begun } }])
  let isEnding = false
  const end = async (db: Connection) => {
    isEnding = true
    await tell(db, 'done')
  }
  try {
    const value = await work({ came, end })
    if (!isEnding) await inTransaction(pool, end)
    return value
  } catch (error) {
    if (isEnding) throw endUntold(begun, error as Error)
    came.why = error instanceof OperatorError ? error.message : (error as Error).name
    // The row that it began stands, whatever becomes of this one.
    await inTransaction(pool, db => tell(db, 'refused')).catch(() => {})
    throw error
  }
}

const endUntold = (begun: number, error: Error): OperatorError =>
  new OperatorError(
    `It was carried out, but the audit tells only that it began, in row ${begun}: the row of its end ${
      error instanceof OperatorError ? 'was not kept' : `could not be written (${error.message})`
    }. Look at bin/tollgate audit verify.`,
  )
