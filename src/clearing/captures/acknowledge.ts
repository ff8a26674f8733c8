// What an acquirer says of a capture file. What it rejects, leaves out, or makes up is a case with what both sides have.

import { openCase } from '../../payments/cases/cases.ts'
import { closeSettled } from '../../payments/cases/store.ts'
import { type Connection, inTransaction } from '../../platform/database/connect.ts'
import { findServedHere } from '../../platform/database/elsewhere.ts'
import { type FileFormat, type ImportParts, type ImportReport, importFile, type LineResult } from '../import.ts'
import { type AcknowledgedLine, type CaptureRules, readAcknowledgement } from './captureFile.ts'
import { findUnacknowledged, lockFiled, storeOutcome, type WaitingCapture } from './store.ts'

export type CapturingAcquirer = { readonly name: string; readonly acquirerId: string; readonly rules: CaptureRules }

/** Reads an acknowledgement to its end. Nothing of it counts when it is not whole, or another acquirer's. */
export async function importAcknowledgement(
  parts: ImportParts,
  { name: acquirer, acquirerId, rules }: CapturingAcquirer,
  name: string,
  text: string,
  tell: (at: number, result: LineResult) => void,
): Promise<(ImportReport & { readonly missing: number }) | { readonly broken: string }> {
  const file = readAcknowledgement(text, acquirerId, rules)
  if ('broken' in file) return file
  const { sequence } = file
  const format: FileFormat<ImportParts, AcknowledgedLine> = {
    kind: 'captureAcknowledgement',
    caseKind: 'captureLine',
    // The same line of a corrected file has the same subject, so that its case closes.
    read: () =>
      file.lines.map(line => ({ at: line.at, subject: `${acquirer} ${sequence} ${line.trace} ${line.reference}`, line })),
    settle: ({ database, clock }, line, store) =>
      inTransaction(database.work, async db => {
        const result = await settleLine(db, acquirer, sequence, line, clock.real())
        await store(db, result)
        return result
      }),
  }
  const report = (await importFile(parts, format, name, text, tell))!
  const missing = await findUnacknowledged(parts.database.work, acquirer, sequence)
  for (const capture of missing)
    await openCase(parts.database.work, parts, {
      ...unacknowledged(capture),
      details: { acquirer, sequence, ours: capture.said, theirs: null },
    })
  return { ...report, missing: missing.length }
}

const unacknowledged = ({ merchantId, paymentId }: WaitingCapture) =>
  ({ merchantId, kind: 'captureUnacknowledged', subject: paymentId }) as const

async function settleLine(
  db: Connection,
  acquirer: string,
  sequence: number,
  theirs: AcknowledgedLine,
  now: number,
): Promise<LineResult> {
  const ours = await lockFiled(db, acquirer, sequence, theirs.line)
  const refuse = (why: string): LineResult => ({
    kind: 'refused',
    why,
    details: { acquirer, sequence, theirs, ours: ours ? { paymentId: ours.paymentId, ...ours.said } : null },
  })
  if (!ours || ours.said.trace !== theirs.trace || ours.said.reference !== theirs.reference)
    return refuse('the file has no such capture')
  const { merchantId, paymentId, outcome } = ours
  if (theirs.outcome === 'rejected' && outcome === 'accepted') return refuse('it was accepted before')
  if (theirs.outcome !== outcome) {
    if (!(await findServedHere(db, [merchantId])).has(merchantId)) return refuse('its merchant is served by another cell')
    await storeOutcome(db, ours, theirs.outcome)
    await closeSettled(db, unacknowledged(ours), now, 'gateway', 'an acknowledgement names it')
  }
  if (theirs.outcome === 'rejected') return refuse(`the acquirer rejects it: ${theirs.reason}`)
  return { kind: outcome === 'accepted' ? 'known' : 'recorded', paymentId, text: paymentId }
}
