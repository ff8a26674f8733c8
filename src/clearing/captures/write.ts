// Capture files, as due work that any process may take: one row for each acquirer. What is collected gets a number and is written down with its bytes in one
// transaction, then put on disk, then marked. Whoever comes after a dead process goes on where it stopped.

import type { Acquirer } from '../../connectors/cards/acquirer.ts'
import { nobody } from '../../payments/cases/cases.ts'
import { inTransaction } from '../../platform/database/connect.ts'
import { addDue } from '../../platform/due/store.ts'
import type { DueHandler } from '../../platform/due/worker.ts'
import { fileSeries, waitsForRelease, whileHeld } from '../fileSeries.ts'
import { putFile } from '../putFile.ts'
import type { ReconciliationParts } from '../reconciliation/compare.ts'
import { dayOf } from '../reconciliation/day.ts'
import { subjectOf } from '../reconciliation/store.ts'
import { captureName, captureText } from './captureFile.ts'
import { findUnwritten, insertFileOfCaptures, lockWaiting, markWritten, nextSequence } from './store.ts'

export type CaptureParts = Pick<ReconciliationParts, 'clock' | 'random' | 'log'> & {
  readonly database: Pick<ReconciliationParts['database'], 'work'>
  readonly acquirers: ReadonlyMap<string, Pick<Acquirer, 'options'>>
}

const minute = 60_000
const linesMost = 50_000

/** Called at every start. A folder alone is enough: what was collected before a profile went back to messages is still written. */
export async function beginCaptureFiles(parts: CaptureParts): Promise<void> {
  const { database, clock, acquirers } = parts
  for (const [name, { options }] of acquirers) {
    const { folder, everyMinutes } = options.dialect.captures
    if (folder === undefined) continue
    await waitsForRelease(parts, fileSeries.captures, name)
    const due = clock.real() + everyMinutes * minute
    await addDue(database.work, 'captureFile', nobody, subjectOf('captures', name), due, { acquirer: name })
  }
}

/** Due work of kind `captureFile`. Files go out in the order of their numbers. */
export const captureFile: DueHandler<CaptureParts> = async (parts, { details }) => {
  const acquirer = parts.acquirers.get((details as { acquirer: string }).acquirer)
  const { folder, everyMinutes = 60 } = acquirer?.options.dialect.captures ?? {}
  const again = { again: parts.clock.real() + everyMinutes * minute }
  if (!acquirer || folder === undefined) return again // it may come back
  const { name } = acquirer.options
  const db = parts.database.work
  const held = await whileHeld(parts, fileSeries.captures, name, again)
  if (held) return held
  do {
    for (const file of await findUnwritten(db, name)) {
      putFile(parts, folder, file.name, file.content)
      await markWritten(db, file, parts.clock.real())
      parts.log.info({ why: `${name}: ${file.name}` }, 'a capture file was written')
    }
  } while (await assign(parts, acquirer))
  return again
}

/** Gives what waits the next number; false when nothing waits, or another process was first. */
function assign({ database, clock }: CaptureParts, { options }: Pick<Acquirer, 'options'>): Promise<boolean> {
  const { name: acquirer, account, dialect } = options
  return inTransaction(database.work, async db => {
    const captures = await lockWaiting(db, acquirer, linesMost)
    if (captures.length === 0) return false
    const sequence = await nextSequence(db, acquirer)
    const day = dayOf(clock.real(), dialect.reconciliation)
    const lines = captures.map(({ said }) => said)
    const content = captureText(account.acquirerId, sequence, day, lines, dialect.captures)
    const name = captureName(dialect.captures, acquirer, sequence, day)
    return insertFileOfCaptures(db, { acquirer, sequence, day, name, content }, captures, clock.real())
  })
}
