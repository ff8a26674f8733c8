// A return of CNAB 240: a header, lots of titles in two segments each, trailers that count. Pure.

import { cnab240 } from '../cnab/cnab240.ts'
import { numberIn, readRecord } from '../cnab/layout.ts'
import type { FileLine } from '../import.ts'
import type { Steps } from '../steps.ts'
import { type BankReturns, isOurs, type Movement, movementOf, type ReturnFile } from './movement.ts'
import { BrokenReturn, type FixedRow, fixedRows, wholeRecord } from './rows.ts'

/** Segment T, and the U that follows it. */
type Title = { readonly title: FixedRow; readonly money: FixedRow | undefined }

/** Throws BrokenReturn. The whole file is looked through before its first line counts. */
export function* read240(bytes: Buffer, account: BankReturns): Steps<ReturnFile> {
  const [first] = fixedRows(bytes, 240)
  const header = wholeRecord(cnab240.fileHeader, first!)
  if (header.bank !== account.bank.code) throw new BrokenReturn(`it is of bank ${header.bank}, not of ${account.bank.code}`)
  if (header.direction !== '2') throw new BrokenReturn('it is no return, but an order')
  // What stands in the field of the agreement is the bank's own, where an account has a number too.
  const fields = account.account === '' ? (['agency', 'agreement'] as const) : (['agency', 'account'] as const)
  if (!isOurs(account, header, fields)) throw new BrokenReturn('it is of another account')
  let length = 0
  for (const one of titlesOf(bytes, account.bank.code)) {
    if (one) length++
    yield
  }
  function* lines(): Generator<FileLine<Movement>> {
    for (const one of titlesOf(bytes, account.bank.code)) if (one) yield lineOf(account, one)
  }
  return {
    fileNumber: Number(header.fileNumber),
    madeOn: header.madeOn!,
    lines: { length, [Symbol.iterator]: lines },
  }
}

type Lot = { readonly number: number; records: number; sequence: number; titles: number; face: bigint }

/** Undefined after each row. */
function* titlesOf(bytes: Buffer, bank: string): Generator<Title | undefined> {
  let [records, lots] = [0, 0]
  let lot: Lot | undefined
  let title: FixedRow | undefined
  let isEnded = false
  for (const row of fixedRows(bytes, 240)) {
    const { at, text } = row
    const broken = (why: string) => new BrokenReturn(`line ${at}: ${why}`)
    records++
    yield
    if (isEnded) throw broken('it stands behind the end')
    if (text.slice(0, 3) !== bank) throw broken(`it is of bank ${text.slice(0, 3)}, not of ${bank}`)
    const type = text[7]!
    if (title && type !== '3') {
      yield { title, money: undefined }
      title = undefined
    }
    if (lot) lot.records++
    if (type === '1' && !lot) lot = { number: ++lots, records: 1, sequence: 0, titles: 0, face: 0n }
    else if (type === '3' && lot) {
      if (numberIn(text.slice(3, 7)) !== lot.number || numberIn(text.slice(8, 13)) !== ++lot.sequence)
        throw broken('it is out of order: lines are missing, or stand there twice')
      const segment = text[13]
      if (title) {
        const isPair = segment === 'U' && text.slice(15, 17) === title.text.slice(15, 17)
        yield { title, money: isPair ? row : undefined }
        title = undefined
        if (segment === 'U') continue
      }
      if (segment === 'T') {
        title = row
        lot.titles++
        lot.face += BigInt(numberIn(text.slice(81, 96)) || 0) // what is no amount is a question, or makes the sum another
      } else if (segment === 'U') throw broken('segment U without its T')
    } else if (type === '5' && lot) {
      checkLot(lot, row)
      lot = undefined
    } else if (type === '9' && !lot) {
      const end = wholeRecord(cnab240.fileTrailer, row)
      if (Number(end.records) !== records) throw broken(`the file has ${records} lines, its end says ${Number(end.records)}`)
      if (Number(end.lots) !== lots) throw broken(`the file has ${lots} lots, its end says ${Number(end.lots)}`)
      isEnded = true
    } else if (type !== '0' || at !== 1) {
      if ((type !== '2' && type !== '4') || !lot) throw broken(`a record of type ${type} has no place here`)
    }
  }
  if (!isEnded) throw new BrokenReturn('its end is missing')
}

const portfolios = ['simple', 'bound', 'pledged', 'discounted'] as const

/** Banks that do not count titles leave zeros. */
function checkLot({ records, titles, face }: Lot, row: FixedRow): void {
  const end = wholeRecord(cnab240.lotTrailer, row)
  const sum = (what: 'Count' | 'Sum') => portfolios.reduce((total, name) => total + BigInt(end[`${name}${what}`] || 0), 0n)
  const [count, money] = [sum('Count'), sum('Sum')]
  const differs = (ours: number | bigint, theirs: number | bigint, what: string) => {
    if (BigInt(ours) !== BigInt(theirs))
      throw new BrokenReturn(`line ${row.at}: the lot has ${what} ${ours}, its end says ${theirs}`)
  }
  differs(records, Number(end.records), 'lines:')
  if (count > 0n) differs(titles, count, 'titles:')
  if (money > 0n) differs(face, money, 'a sum of titles of')
}

function lineOf(account: BankReturns, { title, money }: Title): FileLine<Movement> {
  const { at } = title
  const told = readRecord(cnab240.title, title.text)
  if (typeof told === 'string') return { at, malformed: told }
  const paid = money && readRecord(cnab240.money, money.text)
  if (typeof paid === 'string') return { at, malformed: paid }
  return movementOf(account, at, { ...told, ...paid }, told.number!, () => (paid ? Number(paid.paid) : 0))
}
