// A return of CNAB 400, by the table of its bank. Pure.

import { cnab400 } from '../cnab/cnab400.ts'
import { type ColumnValues, numberIn, readRecord } from '../cnab/layout.ts'
import type { FileLine } from '../import.ts'
import type { Steps } from '../steps.ts'
import { type BankReturns, isOurs, type Movement, movementOf, type ReturnFile } from './movement.ts'
import { BrokenReturn, type FixedRow, fixedRows, wholeRecord } from './rows.ts'

type BankRules = {
  /** What a header names an account by. */
  readonly named: readonly ('agency' | 'account' | 'agreement')[]
  /** The number as `Bank.inFile` says. */
  number(values: ColumnValues, account: BankReturns): string
  /** What the shopper paid. */
  paid(values: ColumnValues): number | { readonly broken: string }
}

const gross = ({ moved }: ColumnValues): number => Number(moved)

const rules: ReadonlyMap<string, BankRules> = new Map([
  [
    '341',
    {
      named: ['agency', 'account'],
      number: ({ wallet, number, numberDigit }: ColumnValues) => `${wallet}${number}${numberDigit}`,
      paid: paidAtItau,
    },
  ],
  [
    '237',
    {
      named: ['agreement'],
      number: ({ number, numberDigit }: ColumnValues, one: BankReturns) =>
        `${one.bank.inFile(one).before}${number}${numberDigit}`,
      paid: gross,
    },
  ],
  ['001', { named: ['agency', 'account', 'agreement'], number: ({ number }: ColumnValues) => number!, paid: gross }],
])

/** Itaú tells what it credits, which may be less its fee: what was paid is that and the fee, and it is the title with all that changes it. Both must agree. */
function paidAtItau({ face, discount, rebate, interest, otherCredit, moved, fee }: ColumnValues) {
  const paid = Number(face) - Number(discount) - Number(rebate) + Number(interest) + Number(otherCredit)
  return paid === Number(moved) + Number(fee) || paid === Number(moved)
    ? paid
    : { broken: `what is credited and the fee are ${Number(moved) + Number(fee)}, the title with its changes is ${paid}` }
}

/** Throws BrokenReturn. The whole file is looked through before its first line counts. */
export function* read400(bytes: Buffer, account: BankReturns): Steps<ReturnFile> {
  const { code } = account.bank
  const [layout, rule] = [cnab400.get(code), rules.get(code)]
  if (!layout || !rule) throw new BrokenReturn(`bank ${code} is read by its files of CNAB 240 alone`)
  const [first] = fixedRows(bytes, 400)
  const bank = first!.text.slice(76, 79)
  if (/^\d+$/.test(bank) && bank !== code) throw new BrokenReturn(`it is of bank ${bank}, not of ${code}`)
  const header = wholeRecord(layout.header, first!)
  if (!isOurs(account, header, rule.named)) throw new BrokenReturn('it is of another account')
  const type = layout.title.fields[0]![4]!
  let length = 0
  let last = first!
  for (const row of orderedRows(bytes)) {
    if (row.text[0] === type) length++
    last = row
    yield
  }
  const end = wholeRecord(layout.trailer, last)
  if (Number(end.titles) > 0 && Number(end.titles) !== length)
    throw new BrokenReturn(`it has ${length} titles, its end says ${Number(end.titles)}`)
  function* lines(): Generator<FileLine<Movement>> {
    for (const { at, text } of orderedRows(bytes)) {
      if (text[0] !== type) continue
      const values = readRecord(layout!.title, text)
      if (typeof values === 'string') yield { at, malformed: values }
      else yield movementOf(account, at, values, rule!.number(values, account), () => rule!.paid(values))
    }
  }
  return {
    fileNumber: Number(header.fileNumber ?? 0),
    madeOn: header.madeOn!,
    lines: { length, [Symbol.iterator]: lines },
  }
}

/** Every record has its number, so that none is missing or there twice. Records of other types tell nothing that is used here. */
function* orderedRows(bytes: Buffer): Generator<FixedRow> {
  let last = ''
  for (const row of fixedRows(bytes, 400)) {
    if (last === '9') throw new BrokenReturn(`line ${row.at} stands behind the end`)
    if (numberIn(row.text.slice(394)) !== row.at)
      throw new BrokenReturn(`line ${row.at} is out of order: lines are missing, or stand there twice`)
    last = row.text[0]!
    yield row
  }
  if (last !== '9') throw new BrokenReturn('its end is missing')
}
