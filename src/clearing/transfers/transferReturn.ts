// What a bank says of transfers: a return of CNAB 240 with segments A. Nothing of it counts when it is not whole, or another account's. The refund of a transfer
// ends by what the bank says of it; what can mean two things, or fits no order of ours, waits for an operator.

import type { BankSlipAccount } from '../../connectors/slips/accounts.ts'
import { findByIdStart, findFiledAt, type TransferRow } from '../../payments/transfers/store.ts'
import { settleTransfer, type TransferParts } from '../../payments/transfers/transfer.ts'
import { type Connection, inTransaction } from '../../platform/database/connect.ts'
import { cnab240 } from '../cnab/cnab240.ts'
import { type ColumnValues, numberIn, readRecord } from '../cnab/layout.ts'
import { type FileFormat, type FileLine, type ImportParts, importFile, type LineResult } from '../import.ts'
import { keepReturn, type ReturnReport } from '../returns/importReturn.ts'
import { BrokenReturn, fixedRows, wholeRecord } from '../returns/rows.ts'
import { fileHash, inTurns, type Steps } from '../steps.ts'
import { idStartOf } from './transferFile.ts'
import { transferLayout, transferMeaningOf } from './transferLayout.ts'

/** As the bank says it; amounts in hundredths. */
export type TransferLine = {
  readonly reference: string
  readonly amount: number
  readonly paid: number
  readonly paidOn: string
  readonly occurrences: readonly string[]
}

/** A file of payments and no other: its first lot is of that service. */
export const isTransferReturn = (bytes: Buffer): boolean => /^[^\n]{8,}\n.{8}C20/s.test(bytes.toString('latin1', 0, 500))

export async function importTransferReturn(
  parts: TransferParts & ImportParts,
  account: BankSlipAccount,
  name: string,
  bytes: Buffer,
  tell: (at: number, result: LineResult) => void,
  { sameNumber = false } = {},
): Promise<ReturnReport | { readonly broken: string }> {
  const text = Buffer.from(bytes.toString('latin1')) // such files have always been known by the hash of their text
  const hash = await fileHash(text)
  let file: TransferReturn
  try {
    file = await inTurns(readTransferReturn(bytes, account, hash.toString('hex').slice(0, 16)))
  } catch (error) {
    if (error instanceof BrokenReturn) return { broken: error.message }
    throw error
  }
  const format: FileFormat<TransferParts & ImportParts, TransferLine, Buffer> = {
    kind: 'transferReturn',
    caseKind: 'transferLine',
    read: () => file.lines,
    settle: (parts, line, store) =>
      inTransaction(parts.database.work, async db => {
        const result = await settleLine(parts, db, account.name, line)
        await store(db, result)
        return result
      }),
  }
  const number = sameNumber ? 0 : file.fileNumber
  const kept = await keepReturn(
    parts,
    { account: account.name, series: 'transfers', name, hash, number, madeOn: file.madeOn },
    bytes,
  )
  if ('broken' in kept) return kept
  const report = (await importFile(parts, format, name, text, tell))!
  return { ...report, fileNumber: file.fileNumber, ...kept }
}

async function settleLine(parts: TransferParts, db: Connection, account: string, line: TransferLine): Promise<LineResult> {
  const { reference, amount, paid, paidOn, occurrences } = line
  const ours = await findNamed(db, account, reference)
  const refuse = (why: string): LineResult => ({
    kind: 'refused',
    why,
    details: { account, theirs: line, ours: ours ? { paymentId: ours.paymentId, amount: ours.amount } : null },
  })
  if (!ours) return refuse('we have ordered no such transfer')
  if (amount !== ours.amount) return refuse('the transfer is of another amount')
  const meanings = new Set(occurrences.map(transferMeaningOf))
  const [meaning] = meanings
  if (meanings.size !== 1 || meaning === undefined) return refuse('what the bank says of it can mean more than one thing')
  const { paymentId } = ours
  if (meaning === 'underWay' && (ours.sequence === null || ours.isUnwritten))
    return refuse('it is in a file that this database knows nothing of: release no files of transfers before it has ended')
  if (meaning === 'underWay') return { kind: 'known', paymentId, text: `under way: ${paymentId}` }
  if (meaning === 'paid' && paid !== 0 && paid !== amount) return refuse('another amount was paid than was ordered')
  const text = meaning === 'paid' ? `Transferred${paidOn === '' ? '' : ` on ${paidOn}`}` : 'The bank refuses the transfer'
  const before = ours.result !== null
  const settled = await settleTransfer(parts, db, ours, { paid: meaning === 'paid', code: occurrences.join(' '), text })
  if (!settled) return refuse('the refund has ended otherwise before')
  return { kind: before ? 'known' : 'recorded', paymentId, text: `${text}: ${paymentId}` }
}

const placeForm = /^RF(\d{6})(\d{6})$/

/** Whether we may have named an order so. */
const hasOurForm = (reference: string): boolean => idStartOf(reference) !== undefined || placeForm.test(reference)

/** The order that a bank means. */
async function findNamed(db: Connection, account: string, reference: string): Promise<TransferRow | undefined> {
  const start = idStartOf(reference)
  if (start !== undefined) return findByIdStart(db, account, start)
  const [, sequence, place] = placeForm.exec(reference) ?? []
  return sequence === undefined ? undefined : findFiledAt(db, account, Number(sequence), Number(place))
}

export type TransferReturn = {
  readonly fileNumber: number
  /** `yyyy-MM-dd`. */
  readonly madeOn: string
  readonly lines: Iterable<FileLine<TransferLine>> & { readonly length: number }
}

/** Throws BrokenReturn. The whole file is looked through before its first line counts. `id`: tells its lines apart from those of other files. */
export function* readTransferReturn(bytes: Buffer, account: BankSlipAccount, id: string): Steps<TransferReturn> {
  const [first] = fixedRows(bytes, 240)
  const header = wholeRecord(cnab240.fileHeader, first!)
  const bank = account.bank.code
  if (header.bank !== bank) throw new BrokenReturn(`it is of bank ${header.bank}, not of ${bank}`)
  if (header.direction !== '2') throw new BrokenReturn('it is no return, but an order')
  const same = (ours: string, theirs = '') => Number(ours) === Number(theirs)
  if (!same(account.agency, header.agency) || !same(account.account, header.account))
    throw new BrokenReturn('it is of another account')
  let length = 0
  for (const one of transfersOf(bytes, account, id)) {
    if (one) length++
    yield
  }
  function* lines(): Generator<FileLine<TransferLine>> {
    for (const one of transfersOf(bytes, account, id)) if (one) yield one
  }
  return { fileNumber: Number(header.fileNumber), madeOn: header.madeOn ?? '', lines: { length, [Symbol.iterator]: lines } }
}

/** Undefined for a row that tells of none. */
function* transfersOf(
  bytes: Buffer,
  { name, bank: { code: bank } }: BankSlipAccount,
  id: string,
): Generator<FileLine<TransferLine> | undefined> {
  let lot: { readonly number: number; records: number; sequence: number; sum: number } | undefined
  let [records, lots, isReadable, isEnded] = [0, 0, true, false]
  for (const row of fixedRows(bytes, 240)) {
    const { at, text } = row
    const broken = (why: string) => new BrokenReturn(`line ${at}: ${why}`)
    let line: FileLine<TransferLine> | undefined
    records++
    if (isEnded) throw broken('it stands behind the end')
    if (text.slice(0, 3) !== bank) throw broken(`it is of bank ${text.slice(0, 3)}, not of ${bank}`)
    const type = text[7]
    if (lot) lot.records++
    if (type === '1' && !lot) {
      const { service } = wholeRecord(transferLayout.lotHeader, row)
      if (service !== '20') throw broken(`a lot of service ${service} tells of no transfers`)
      lot = { number: ++lots, records: 1, sequence: 0, sum: 0 }
    } else if (type === '3' && lot) {
      if (numberIn(text.slice(3, 7)) !== lot.number || numberIn(text.slice(8, 13)) !== ++lot.sequence)
        throw broken('it is out of order: lines are missing, or stand there twice')
      if (text[13] === 'A') {
        line = lineOf(name, id, at, readRecord(transferLayout.transfer, text))
        if ('line' in line) lot.sum += line.line.amount
        else isReadable = false
      }
    } else if (type === '5' && lot) {
      const end = wholeRecord(transferLayout.lotTrailer, row)
      if (Number(end.records) !== lot.records)
        throw broken(`the lot has ${lot.records} lines, its end says ${Number(end.records)}`)
      if (Number(end.sum) !== 0 && Number(end.sum) !== lot.sum && isReadable)
        throw broken(`the transfers of the lot add up to ${lot.sum}, its end says ${Number(end.sum)}`)
      lot = undefined
    } else if (type === '9' && !lot) {
      const end = wholeRecord(cnab240.fileTrailer, row)
      if (Number(end.records) !== records)
        throw new BrokenReturn(`the file has ${records} lines, its end says ${Number(end.records)}`)
      if (Number(end.lots) !== lots) throw new BrokenReturn(`the file has ${lots} lots, its end says ${Number(end.lots)}`)
      isEnded = true
    } else if (at !== 1) throw broken(`a record of type ${type} has no place here`)
    yield line
  }
  if (!isEnded) throw new BrokenReturn('its end is missing')
}

function lineOf(account: string, id: string, at: number, values: ColumnValues | string): FileLine<TransferLine> {
  if (typeof values === 'string') return { at, malformed: values }
  const occurrences = values.occurrences!.replaceAll(' ', '').match(/.{1,2}/g) ?? []
  const { own: reference = '', paidOn = '' } = values
  const line = { reference, amount: Number(values.amount), paid: Number(values.paid), paidOn, occurrences }
  // A later word about the same order closes what an earlier one has opened; what another has ordered may have any name.
  return { at, subject: `${account} ${hasOurForm(reference) ? reference : `${id} line ${at}`}`, line }
}
