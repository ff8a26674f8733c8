// Files of acquirers and banks: one import for all formats. A file is known by its bytes and counted once; each line is settled in a transaction of its own, so
// that an import that died goes on where it stopped; what cannot be settled is a case for an operator. Nothing is guessed.

import { type ActUnderWay, tellAndDo } from '../audit/act.ts'
import { type Recorder, record } from '../audit/chain.ts'
import { whoeverActed } from '../audit/dismissed.ts'
import { type CaseKind, nobody, openCase } from '../payments/cases/cases.ts'
import { closeSettled } from '../payments/cases/store.ts'
import type { Clock, Random } from '../platform/clock.ts'
import { type Connection, type Database, inTransaction } from '../platform/database/connect.ts'
import { refuseWhileHeld } from '../platform/database/elsewhere.ts'
import { fileHash, inTurns, othersTurn, type Steps } from './steps.ts'
import { finishFile, insertFile, insertLine, settledLines } from './store.ts'

/** What became of a line: the payment that it is now or was before, or why it fits none. */
export type LineResult =
  | { readonly kind: 'recorded' | 'known'; readonly paymentId: string; readonly text: string }
  /** Nothing moved. */
  | { readonly kind: 'noted'; readonly text: string }
  /** `details`: what both sides have, for whoever decides. */
  | { readonly kind: 'refused'; readonly why: string; readonly details?: Readonly<Record<string, unknown>> }

/** A line as its format reads it, or why it cannot be read. `at` is the line of the file, from 1; `subject` tells it apart from those of all files. */
export type FileLine<Line> = { readonly at: number } & (
  | { readonly subject: string; readonly line: Line }
  | { readonly malformed: string }
)

/** Those of a long file are read one by one. */
type FileLines<Line> = Iterable<FileLine<Line>> & { readonly length: number }

/** A kind of file. A new one is an entry of its own, as `chargebackReports` is. */
export type FileFormat<Parts, Line, Content = string> = {
  readonly kind: string
  /** What a line that is not settled becomes. */
  readonly caseKind: CaseKind
  /** Lines that cannot be read are one case for all of the file; without it each is one. */
  readonly unreadable?: 'together'
  /** Undefined when it is no such file. */
  read(content: Content): Promise<FileLines<Line> | undefined> | FileLines<Line>
  /** Lines of one name are settled one after another, others beside them; without it each waits for the one before. */
  apart?(line: Line): string
  /** Settles a line; `store` writes what became of it, in the same transaction. */
  settle(parts: Parts, line: Line, store: (db: Connection, result: LineResult) => Promise<void>): Promise<LineResult>
}

export type ImportParts = Recorder & { readonly database: Database; readonly clock: Clock; readonly random: Random }

/** Lines by what became of them. */
type Counts = Readonly<Record<LineResult['kind'], number>>

export type ImportReport = Counts & {
  /** The same bytes were read to their end before. */
  readonly again: boolean
}

/** Undefined when it is no file of this format. `tell` hears of each line. Whoever hands it in is told of in the audit before any line is recorded. */
export async function importFile<Parts extends ImportParts, Line, Content extends string | Buffer>(
  parts: Parts,
  format: FileFormat<Parts, Line, Content>,
  name: string,
  content: Content,
  tell: (at: number, result: LineResult) => void,
): Promise<ImportReport | undefined> {
  const lines = await format.read(content)
  if (!lines) return undefined
  const db = parts.database.work
  await refuseWhileHeld(db, name)
  const hash = await fileHash(typeof content === 'string' ? Buffer.from(content) : content)
  const { isNew, again } = await insertFile(db, {
    hash,
    kind: format.kind,
    name,
    lines: lines.length,
    receivedAt: parts.clock.real(),
  })
  const settled = await settledLines(db, hash)
  // What a file says has happened, whatever becomes of whoever handed it in: one that was begun is read to its end.
  const begun: Parts = { ...parts, ...(parts.by && { by: whoeverActed(parts.by) }) }
  const unreadable = format.unreadable && (await inTurns(unreadableOf(lines)))
  const settle = (one: FileLine<Line>): Promise<LineResult> => {
    const before = settled.get(one.at)
    // What was refused may fit by now; what was recorded is asked about again, so that the same is said of it.
    const isSettled = before !== undefined && before !== 'refused'
    const store = async (connection: Connection, result: LineResult): Promise<void> => {
      await refuseWhileHeld(connection, name) // since this line was begun, too
      if (isSettled) return
      await insertLine(connection, { hash, line: one.at, result, settledAt: parts.clock.real() })
      const together = 'malformed' in one ? unreadable : undefined
      if (together && one.at !== together.first) return // told of with the first
      const subject = 'malformed' in one ? `${hash.toString('hex').slice(0, 16)} line ${one.at}` : one.subject
      const about = { merchantId: nobody, kind: format.caseKind, subject } as const
      if (result.kind !== 'refused')
        return closeSettled(connection, about, parts.clock.real(), 'gateway', 'the line came again and was recorded')
      const details = {
        file: name,
        line: one.at,
        why: result.why,
        ...result.details,
        ...(together && { unreadable: together.count }),
      }
      await openCase(connection, parts, { ...about, details })
    }
    return 'malformed' in one
      ? refuseLine(parts, { kind: 'refused', why: one.malformed }, before === undefined ? store : undefined)
      : format.settle(begun, one.line, store)
  }
  const settleAll = async (came: ActUnderWay['came']): Promise<Counts> => {
    const counts = { recorded: 0, known: 0, noted: 0, refused: 0 }
    Object.assign(came, counts)
    for (const set of sideBySide(lines, format)) {
      await othersTurn() // lines that were settled before may ask nobody
      const ended = await Promise.allSettled(set.map(settle))
      for (const one of ended) if (one.status === 'fulfilled') counts[one.value.kind]++
      Object.assign(came, counts)
      for (const [at, one] of ended.entries()) {
        if (one.status === 'rejected') throw one.reason
        tell(set[at]!.at, one.value)
      }
    }
    return counts
  }
  const act = { action: 'fileImported', subject: hash.toString('hex'), details: { kind: format.kind, name } } as const
  const finish = (end: (db: Connection, isFirst: boolean) => Promise<unknown>) =>
    inTransaction(db, async connection => end(connection, await finishFile(connection, hash, parts.clock.real())))
  if (parts.by || isNew)
    return tellAndDo(db, parts, act, async ({ came, end }) => {
      const counts = await settleAll(came)
      await finish(end)
      return { again, ...counts }
    })
  // What a gateway cannot move away it reads every minute: it tells of that when something comes of it.
  const counts = await settleAll({})
  const told = { ...act, details: { ...act.details, ...counts } }
  await finish(async (connection, isFirst) => (isFirst || counts.recorded > 0) && record(connection, parts, [told]))
  return { again, ...counts }
}

/** How many lines cannot be read, and the first of them. Undefined when all can. */
function* unreadableOf<Line>(lines: FileLines<Line>): Steps<{ readonly first: number; readonly count: number } | undefined> {
  let first: number | undefined
  let count = 0
  for (const one of lines) {
    if ('malformed' in one) {
      first ??= one.at
      count++
    }
    yield
  }
  return first === undefined ? undefined : { first, count }
}

/** Fewer than a pool has connections for chains. */
const atOnce = 4

/** Lines next to each other that have nothing to do with each other. */
function* sideBySide<Parts, Line, Content>(
  lines: Iterable<FileLine<Line>>,
  { apart }: FileFormat<Parts, Line, Content>,
): Generator<FileLine<Line>[]> {
  let set: FileLine<Line>[] = []
  const names = new Set<string>()
  for (const one of lines) {
    const name = 'malformed' in one ? '' : (apart?.(one.line) ?? '')
    if (set.length === atOnce || names.has(name)) {
      yield set
      set = []
      names.clear()
    }
    set.push(one)
    names.add(name)
  }
  if (set.length > 0) yield set
}

async function refuseLine(
  { database }: ImportParts,
  result: LineResult,
  store: ((db: Connection, result: LineResult) => Promise<void>) | undefined,
): Promise<LineResult> {
  if (store) await inTransaction(database.work, db => store(db, result))
  return result
}
