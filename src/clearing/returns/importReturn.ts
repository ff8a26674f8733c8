// Files of banks and store chains about slips: kept as they came, refused whole when they are not whole, counted by their numbers, and then settled line by
// line. Money becomes a receipt of the slip whose number the line has, and of no other; what fits none waits for an operator. Nothing is guessed.

import type { SlipAccount } from '../../connectors/slips/accounts.ts'
import { nobody, openCase } from '../../payments/cases/cases.ts'
import { closeSettled } from '../../payments/cases/store.ts'
import { timeOrderedId } from '../../platform/clock.ts'
import { inTransaction } from '../../platform/database/connect.ts'
import { type SealedPlace, sealedColumn } from '../../vault/store.ts'
import { type FileFormat, type FileLine, type ImportParts, type ImportReport, importFile, type LineResult } from '../import.ts'
import { type ReceiptParts, type ReceiptResult, receiptMismatches, recordReceipt } from '../receipts/receipts.ts'
import { fileHash, inTurns, sealFile } from '../steps.ts'
import { type Movement, movementKey, type ReturnFile, type ReturnsAccount } from './movement.ts'
import { isMoney } from './occurrences.ts'
import { readReturn } from './readReturn.ts'
import { type CameFile, insertCame, numberBefore } from './store.ts'

export type ReturnParts = ImportParts & ReceiptParts

export type ReturnReport = ImportReport & {
  readonly fileNumber: number
  /** Numbers between this file and the one before it that no file has had. */
  readonly missing: readonly number[]
}

export const returnFilePlace = (_: string, id: string): string => `return file ${id}`

export const sealedReturns: SealedPlace = {
  what: 'files of banks',
  table: 'return_files',
  id: 'id',
  bound: returnFilePlace,
  ...sealedColumn('sealed'),
}

/** An account as its files know it. */
export const returnsOf = (account: SlipAccount): ReturnsAccount =>
  account.kind === 'chain' ? account : { ...account, layout: (account.returns ?? account.remittance)?.layout ?? 'cnab240' }

/**
 * Reads a file to its end. The same bytes change nothing when they come again, but for lines that fit by now. `sameNumber`: somebody has seen that the bank
 * gave its number twice. `tell` hears of each line.
 */
export async function importReturn(
  parts: ReturnParts,
  account: ReturnsAccount,
  name: string,
  bytes: Buffer,
  tell: (at: number, result: LineResult) => void,
  { sameNumber = false } = {},
): Promise<ReturnReport | { readonly broken: string }> {
  const { database, clock, random } = parts
  const db = database.work
  const read = await inTurns(readReturn(bytes, account))
  const hash = await fileHash(bytes)
  const refuse = async (why: string): Promise<{ readonly broken: string }> => {
    const subject = `${account.name} ${hash.toString('hex').slice(0, 16)}`
    await inTransaction(db, async connection => {
      const id = timeOrderedId(clock.real(), random)
      const came = { id, hash, account: account.name, series: 'slips', name, number: 0, sealed: null } as const
      await insertCame(connection, { ...came, receivedAt: clock.real(), refused: why })
      await openCase(connection, parts, { merchantId: nobody, kind: 'returnFile', subject, details: { file: name, why } })
    })
    return { broken: why }
  }
  if ('broken' in read) return refuse(read.broken)
  const number = sameNumber ? 0 : read.fileNumber
  const kept = await keepReturn(parts, { account: account.name, series: 'slips', name, hash, number, madeOn: read.madeOn }, bytes)
  if ('broken' in kept) return refuse(kept.broken)
  const report = await importFile(parts, formatOf(account, read), name, bytes, tell)
  return { ...report!, fileNumber: read.fileNumber, ...kept }
}

/** Keeps a file that is whole, sealed, and says which numbers are left out between it and the one before. `number`: 0 = it is not counted. */
export async function keepReturn(
  parts: ImportParts,
  file: Omit<CameFile, 'id' | 'sealed' | 'receivedAt' | 'refused'>,
  bytes: Buffer,
): Promise<{ readonly missing: readonly number[] } | { readonly broken: string }> {
  const { database, clock, random, keys } = parts
  const id = timeOrderedId(clock.real(), random)
  const sealed = await sealFile(keys, random, returnFilePlace(nobody, id), bytes)
  const { numberOf } = await insertCame(database.work, { ...file, id, sealed, receivedAt: clock.real() })
  if (numberOf !== undefined) return { broken: `its number, ${file.number}, is that of ${numberOf}, which has other bytes` }
  return { missing: file.number === 0 ? [] : await countFile(parts, file) }
}

/** More than these are another count, and one case. */
const missingMost = 20

/** Which numbers are left out between a file and the one before it. */
async function countFile(
  parts: ImportParts,
  { account, series, name, number }: Pick<CameFile, 'account' | 'series' | 'name' | 'number'>,
): Promise<number[]> {
  const db = parts.database.work
  const counted = series === 'slips' ? account : `${account} ${series}`
  const about = (missing: number) => ({ merchantId: nobody, kind: 'returnMissing', subject: `${counted} ${missing}` }) as const
  await closeSettled(db, about(number), parts.clock.real(), 'gateway', 'the file has come')
  const last = await numberBefore(db, account, series, number)
  const count = last === undefined ? 0 : number - last - 1
  const missing = Array.from({ length: Math.min(count, missingMost) }, (_, at) => number - 1 - at).reverse()
  for (const one of missing) await openCase(db, parts, { ...about(one), details: { account, before: name, left: count } })
  return missing
}

const formatOf = (account: ReturnsAccount, { lines }: ReturnFile): FileFormat<ReturnParts, Movement, Buffer> => ({
  kind: account.kind === 'chain' ? 'chainReturn' : account.layout,
  caseKind: 'returnLine',
  apart: ({ theirs }) => theirs,
  read: () => ({ length: lines.length, [Symbol.iterator]: () => onceEach(lines) }),
  settle: (parts, movement, store) =>
    isMoney(movement.meaning) ? receive(parts, account, movement, store) : note(parts, movement, store),
})

/** Somebody may have paid twice, or the bank may have written twice: the second line is a question. */
function* onceEach(lines: ReturnFile['lines']): Generator<FileLine<Movement>> {
  const seen = new Map<string, number>()
  for (const one of lines) {
    if ('malformed' in one || !isMoney(one.line.meaning)) {
      yield one
      continue
    }
    const before = seen.get(one.subject)
    if (before === undefined) {
      seen.set(one.subject, one.at)
      yield one
    } else yield { at: one.at, malformed: `line ${before} says the same and counts once: ask the bank whether it was paid twice` }
  }
}

async function receive(
  parts: ReturnParts,
  account: ReturnsAccount,
  movement: Movement,
  store: Parameters<FileFormat<ReturnParts, Movement>['settle']>[2],
): Promise<LineResult> {
  const { number, paid, occurredOn, creditedOn, meaning, occurrence, receiver } = movement
  const resultOf = (result: ReceiptResult): LineResult =>
    result.kind === 'recorded'
      ? { kind: 'recorded', paymentId: result.payment.id, text: `RC ${result.payment.id}` }
      : result.kind === 'known'
        ? { ...result, text: result.paymentId }
        : { kind: 'refused', why: receiptMismatches[result.why], details: { theirs: movement } }
  const receipt = {
    account: account.name,
    number: number ?? '',
    key: movementKey(movement),
    amount: paid,
    currency: account.currency,
    paidOn: occurredOn,
    ...(creditedOn !== '' && { creditedOn }),
    flags: { ...(meaning === 'paidLate' && { late: true as const }) },
    details: { ...(occurrence !== '' && { acquirerReturnCode: occurrence }), ...(receiver !== '' && { receivedBy: receiver }) },
  }
  return resultOf(await recordReceipt(parts, receipt, (db, result) => store(db, resultOf(result))))
}

const questions = {
  undone: 'a payment that was told before is none: its receipt stands until somebody decides',
  refused: 'the bank does not do what it was told of the slip',
} as const

async function note(
  { database }: ReturnParts,
  movement: Movement,
  store: Parameters<FileFormat<ReturnParts, Movement>['settle']>[2],
): Promise<LineResult> {
  const { meaning, theirs } = movement
  const result: LineResult =
    meaning === 'undone' || meaning === 'refused'
      ? { kind: 'refused', why: questions[meaning], details: { theirs: movement } }
      : { kind: 'noted', text: `${meaning} ${theirs}` }
  await inTransaction(database.work, db => store(db, result))
  return result
}
