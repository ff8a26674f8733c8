// What an acquirer says of a capture file. What it rejects, leaves out, or makes up is a case with what both sides have.

import { type Recorder, record } from '../../audit/chain.ts'
import { openCase } from '../../payments/cases/cases.ts'
import { closeSettled } from '../../payments/cases/store.ts'
import { type Connection, inTransaction } from '../../platform/database/connect.ts'
import { findServedHere } from '../../platform/database/elsewhere.ts'
import { isHeld, readFileHold } from '../../platform/database/fileHold.ts'
import { type FileFormat, type ImportParts, type ImportReport, importFile, type LineResult } from '../import.ts'
import { subjectOf } from '../reconciliation/store.ts'
import { inTurns } from '../steps.ts'
import { type AcknowledgedLine, type CaptureRules, readAcknowledgement } from './captureFile.ts'
import {
  type FiledCapture,
  findCollected,
  findOutOfFiles,
  findUnacknowledged,
  lockFiled,
  lockOutOfFiles,
  storeOutcome,
  type WaitingCapture,
} from './store.ts'

export type CapturingAcquirer = { readonly name: string; readonly acquirerId: string; readonly rules: CaptureRules }

/** Reads an acknowledgement to its end. Nothing of it counts when it is not whole, or another acquirer's. */
export async function importAcknowledgement(
  parts: ImportParts,
  { name: acquirer, acquirerId, rules }: CapturingAcquirer,
  name: string,
  text: string,
  tell: (at: number, result: LineResult) => void,
): Promise<(ImportReport & { readonly missing: number }) | { readonly broken: string }> {
  const file = await inTurns(readAcknowledgement(text, acquirerId, rules))
  if ('broken' in file) return file
  const { sequence } = file
  const findBehind = behindPutBack(acquirer)
  const format: FileFormat<ImportParts, AcknowledgedLine> = {
    kind: 'captureAcknowledgement',
    caseKind: 'captureLine',
    // The same line of a corrected file has the same subject, so that its case closes.
    read: () =>
      file.lines.map(line => ({ at: line.at, subject: `${acquirer} ${sequence} ${line.trace} ${line.reference}`, line })),
    settle: ({ database, clock }, line, store) =>
      inTransaction(database.work, async db => {
        const result = await settleLine(db, acquirer, sequence, line, findBehind, clock.real())
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
  findBehind: FindBehind,
  now: number,
): Promise<LineResult> {
  const filed = await lockFiled(db, acquirer, sequence, theirs.line)
  const isIt = filed?.said.trace === theirs.trace && filed.said.reference === theirs.reference
  const found = isIt ? filed : await findBehind(db, theirs)
  const ours = found ?? filed
  const refuse = (why: string): LineResult => ({
    kind: 'refused',
    why,
    details: { acquirer, sequence, theirs, ours: ours ? { paymentId: ours.paymentId, ...ours.said } : null },
  })
  if (!found) return refuse('the file has no such capture')
  const { merchantId, paymentId, outcome } = found
  if (theirs.outcome === 'rejected' && outcome === 'accepted') return refuse('it was accepted before')
  if (theirs.outcome !== outcome) {
    if (!(await findServedHere(db, [merchantId])).has(merchantId)) return refuse('its merchant is served by another cell')
    await storeOutcome(db, found, theirs.outcome)
    await closeSettled(db, unacknowledged(found), now, 'gateway', 'an acknowledgement names it')
  }
  if (theirs.outcome === 'rejected') return refuse(`the acquirer rejects it: ${theirs.reason}`)
  return { kind: outcome === 'accepted' ? 'known' : 'recorded', paymentId, text: paymentId }
}

type FindBehind = (db: Connection, theirs: AcknowledgedLine) => Promise<FiledCapture | undefined>

/**
 * A capture that the acquirer has in a file of which a database that was put back knows nothing, or has it at another place: while files wait, it is known by its
 * numbers, where no two have the same. What was found so once is found again.
 */
function behindPutBack(acquirer: string): FindBehind {
  let known: Map<string, WaitingCapture[]> | undefined // read once for a file
  return async (db, { trace, reference }) => {
    known ??= Map.groupBy(await findOutOfFiles(db, acquirer), ({ said }) => `${said.trace} ${said.reference}`)
    const [one, ...others] = known.get(`${trace} ${reference}`) ?? []
    const capture = one && others.length === 0 ? await lockOutOfFiles(db, one) : undefined
    return capture && (capture.outcome !== null || (await areCapturesHeld(db, acquirer))) ? capture : undefined
  }
}

const areCapturesHeld = async (db: Connection, acquirer: string): Promise<boolean> =>
  isHeld(await readFileHold(db), subjectOf('captures', acquirer))

/** Somebody has heard of the acquirer that it has a capture, of which no acknowledgement tells: no later file carries it. */
export const acceptByHand = (
  parts: Recorder & Pick<ImportParts, 'database'>,
  paymentId: string,
  reason: string,
): Promise<'accepted' | 'unknown' | 'notHeld' | 'notWaiting'> =>
  inTransaction(parts.database.work, async db => {
    const collected = await findCollected(db, paymentId)
    if (!collected) return 'unknown'
    const { merchantId, acquirer } = collected
    const capture = await lockOutOfFiles(db, collected)
    if (!capture || capture.outcome !== null) return 'notWaiting'
    if (!(await areCapturesHeld(db, acquirer))) return 'notHeld'
    await storeOutcome(db, capture, 'accepted')
    await record(db, parts, [
      { action: 'captureAccepted', entityId: merchantId, subject: paymentId, details: { acquirer, reason } },
    ])
    return 'accepted'
  })
