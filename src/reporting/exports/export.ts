// Files that take long, made as due work while somebody does something else. Each step is one transaction: its rows and how far they go, so that whoever was
// killed in between leaves nothing twice and nothing out. A file lives some days.

import { type Recorder, record } from '../../audit/chain.ts'
import type { Actor } from '../../audit/entry.ts'
import { nobody } from '../../payments/cases/cases.ts'
import { type Clock, type Random, timeOrderedId } from '../../platform/clock.ts'
import { type Connection, type Database, inTransaction } from '../../platform/database/connect.ts'
import { isTooSlow } from '../../platform/database/errors.ts'
import { lockCounted } from '../../platform/database/locks.ts'
import { addDue } from '../../platform/due/store.ts'
import type { DueHandler } from '../../platform/due/worker.ts'
import { dropPieces, insertPieces, readPieces } from '../owedFiles/store.ts'
import { type ExportSource, readingOf } from './source.ts'
import {
  advanceExport,
  countExports,
  deleteExport,
  type ExportRow,
  type ExportWork,
  findExport,
  insertExport,
  setTotal,
} from './store.ts'

export type ExportParts = {
  readonly clock: Clock
  readonly random: Random
  readonly database: Pick<Database, 'work' | 'reporting'>
}

/** A file with more records is made beside the page that asks for it. */
export const directRecordsMost = 10_000
export const exportDays = 3
export const exportsOfOneMost = 5
export const exportsTogetherMost = 20
export const exportBytesMost = 256 * 1024 * 1024
/** No further is counted, for the page that shows how far it is. */
const totalMost = 2_000_000

export const exportWork = 'export'
const recordsAtOnce = 1000
/** So long a step of the work is; then other work has its turn. */
const stepMilliseconds = 500

/** `colleagues`: who act for the same; what others ask for stops none of them. `tooMany`: of one's own, or of all of these. */
export const askExport = (
  parts: ExportParts & Recorder & { readonly by: Actor },
  colleagues: readonly string[],
  name: string,
  merchants: readonly string[],
  source: ExportSource,
  details: Readonly<Record<string, unknown>>,
): Promise<{ readonly id: string } | 'tooMany'> =>
  inTransaction(parts.database.work, async db => {
    const { clock, random, by } = parts
    // Colleagues have one line, here and in what is due: that of whoever came first of them.
    const line = [by.id, ...colleagues].sort()[0]!
    await lockCounted(db, 'exports', [line])
    const { own, together } = await countExports(db, by.id, colleagues)
    if (own >= exportsOfOneMost || together >= exportsTogetherMost) return 'tooMany'
    const now = clock.real()
    const id = timeOrderedId(now, random)
    await insertExport(db, { id, askedBy: by.id, askedAt: now, endsAt: now + exportDays * 86_400_000, merchants, name }, source)
    await addDue(db, exportWork, colleagues.length === 0 ? nobody : line, id, now)
    await record(db, parts, [
      { action: 'exportAsked', entityId: entityOf(merchants), subject: id, details: { name, ...details } },
    ])
    return { id }
  })

/** Due work of kind `export`: makes it, step by step, and takes it away when its days are over. */
export const makeExport: DueHandler<ExportParts> = async (parts, { subjectId: id }) => {
  const { clock, database } = parts
  const began = clock.elapsed()
  for (;;) {
    const work = await findExport(database.work, id)
    if (!work) return 'done'
    if (work.state !== 'making' || clock.real() >= work.endsAt) {
      if (clock.real() < work.endsAt) return { again: work.endsAt, well: true }
      await inTransaction(database.work, db => drop(db, id))
      return 'done'
    }
    if (work.total === null) await setTotal(database.work, id, await countRecords(parts, work))
    if (!(await makeStep(parts, work)) || clock.elapsed() - began >= stepMilliseconds) return { again: clock.real(), well: true }
  }
}

/** 0 when that takes too long: then nobody knows. */
const countRecords = ({ database }: ExportParts, { source }: ExportWork): Promise<number> =>
  readingOf(source)
    .count(database, source, totalMost)
    .catch((error: Error) => {
      if (isTooSlow(error)) return 0
      throw error
    })

async function drop(db: Connection, id: string): Promise<boolean> {
  const isGone = await deleteExport(db, id)
  await dropPieces(db, id)
  return isGone
}

/** False when it is not ours to go on with. */
async function makeStep({ database }: ExportParts, work: ExportWork, bytesMost = exportBytesMost): Promise<boolean> {
  const reading = readingOf(work.source)
  const { text, records, place } = await reading.rows(database, work.source, work.place ?? undefined, recordsAtOnce)
  const piece = Buffer.from(work.pieces === 0 ? reading.heading + text : text)
  const state = work.bytes + piece.length > bytesMost ? 'tooLarge' : records < recordsAtOnce ? 'made' : 'making'
  return inTransaction(database.work, async db => {
    if (!(await advanceExport(db, work, { place, records, bytes: piece.length, state }))) return false
    if (state === 'tooLarge') await dropPieces(db, work.id)
    else await insertPieces(db, work.id, work.pieces, [piece])
    return true
  })
}

/** Of whom an export is told: of a merchant whose it is alone. */
export const entityOf = (merchants: readonly string[]): string | undefined => (merchants.length === 1 ? merchants[0] : undefined)

/** Told of before the first byte leaves. */
export async function takeExport(parts: ExportParts & Recorder, one: ExportRow): Promise<AsyncIterable<string>> {
  const { id, merchants, name } = one
  await inTransaction(parts.database.work, db =>
    record(db, parts, [{ action: 'exportTaken', entityId: entityOf(merchants), subject: id, details: { name } }]),
  )
  return textsOf(parts, one)
}

async function* textsOf({ database }: ExportParts, { id, bytes }: Pick<ExportRow, 'id' | 'bytes'>): AsyncGenerator<string> {
  for await (const piece of readPieces(database.work, id, bytes)) yield piece.toString()
}

/** Ends it, made or not. Its work finds nothing to do any more, and ends too. */
export const endExport = (parts: ExportParts & Recorder, { id, merchants, name, state }: ExportRow): Promise<boolean> =>
  inTransaction(parts.database.work, async db => {
    if (!(await drop(db, id))) return false
    await record(db, parts, [{ action: 'exportEnded', entityId: entityOf(merchants), subject: id, details: { name, state } }])
    return true
  })
