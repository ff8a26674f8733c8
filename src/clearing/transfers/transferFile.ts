// A file of orders to transfer, as text. Pure.

import type { BankSlipAccount } from '../../connectors/slips/accounts.ts'
import { bankText } from '../../connectors/slips/text.ts'
import { dateOf, nextWorkingDay } from '../../connectors/slips/workingDays.ts'
import type { BankDetails } from '../../payments/transfers/bankDetails.ts'
import { cnab240 } from '../cnab/cnab240.ts'
import { writeRecord } from '../cnab/layout.ts'
import { transferLayout } from './transferLayout.ts'

/** One transfer; amount in hundredths. */
export type TransferOrder = {
  readonly reference: string
  readonly amount: number
  readonly to: Extract<BankDetails, { bank: string }>
}

/** Of 128 bits of an id as many as 18 letters and digits hold: its millisecond, and 38 of chance. */
const idDigits = 23

/** Tells an order apart from all others, by the id of its refund: numbers of files come again when a database is put back. Returns repeat it. */
export const transferReference = (paymentId: string): string =>
  `RF${BigInt(`0x${paymentId.slice(0, idDigits)}`)
    .toString(36)
    .toUpperCase()
    .padStart(18, '0')}`

/** How the id of the refund begins. */
export function idStartOf(reference: string): string | undefined {
  const [, text] = /^RF([0-9A-Z]{18})$/.exec(reference) ?? []
  if (text === undefined) return undefined
  const start = [...text].reduce((sum, digit) => sum * 36n + BigInt(Number.parseInt(digit, 36)), 0n).toString(16)
  return start.length > idDigits ? undefined : start.padStart(idDigits, '0')
}

/** As gateways of before have named orders. */
export const placeText = (sequence: number, line: number): string => `RF${padded(sequence, 6)}${padded(line, 6)}`

const padded = (value: number, length: number): string => String(value).padStart(length, '0')
const hour = 3_600_000

/** Within the bank money moves by itself, to others as TED; each in a lot of its own. */
const forms = [
  { form: '01', clearing: '000', isIn: (to: string, own: string) => to === own },
  { form: '41', clearing: '018', isIn: (to: string, own: string) => to !== own },
] as const

/** `madeAt`: real time, milliseconds. */
export function transferText(
  account: BankSlipAccount,
  sequence: number,
  madeAt: number,
  orders: readonly TransferOrder[],
): string {
  const { beneficiary } = account
  const bank = account.bank.code
  const local = madeAt + account.utcOffset * hour
  const today = dateOf(local)
  const payOn = nextWorkingDay(today, account.country, account.holidays)
  const company = {
    bank,
    ...taxIdOf(beneficiary.taxId.replace(/[./-]/g, '')),
    agreement: account.transfers?.agreement ?? account.agreement,
    agency: account.agency,
    account: account.account,
    accountDigit: account.accountDigit,
    company: bankText(beneficiary.name),
  }
  const time = new Date(local).toISOString().slice(11, 19).replaceAll(':', '')
  const lots = forms
    .map(one => ({ ...one, orders: orders.filter(({ to }) => one.isIn(to.bank, bank)) }))
    .filter(one => one.orders.length > 0)
  const rows = [
    writeRecord(cnab240.fileHeader, {
      ...company,
      bankName: bankText(account.bank.name),
      direction: 1,
      madeOn: today,
      madeAt: time,
      fileNumber: sequence,
      version: '103',
      density: '01600',
    }),
    ...lots.flatMap(({ form, clearing, orders }, at) => {
      const lot = at + 1
      const details = orders.flatMap(({ reference, amount, to }, index) => [
        writeRecord(transferLayout.transfer, {
          bank,
          lot,
          sequence: index * 2 + 1,
          clearing,
          toBank: to.bank,
          toAgency: to.agency,
          toAgencyDigit: to.agencyDigit,
          toAccount: to.account,
          toAccountDigit: to.accountDigit,
          holder: bankText(to.holder),
          own: reference,
          payOn,
          amount,
        }),
        writeRecord(transferLayout.receiver, { bank, lot, sequence: index * 2 + 2, ...taxIdOf(to.taxId), dueOn: payOn, amount }),
      ])
      const { street, city, postcode, state } = beneficiary
      const place = { street: bankText(street), city: bankText(city), postcode, state }
      const sum = orders.reduce((total, { amount }) => total + amount, 0)
      return [
        writeRecord(transferLayout.lotHeader, { ...company, lot, service: '20', form, ...place }),
        ...details,
        writeRecord(transferLayout.lotTrailer, { bank, lot, records: details.length + 2, sum }),
      ]
    }),
  ]
  const end = writeRecord(cnab240.fileTrailer, { bank, lots: lots.length, records: rows.length + 1 })
  return [...rows, end].map(row => `${row}\r\n`).join('')
}

/** 1 a person, 2 a company. The number goes to the right, zeros before it; that of a company may hold letters. */
const taxIdOf = (id: string) => ({ taxIdType: id.length === 11 ? 1 : 2, taxId: id.padStart(14, '0') })

/** As a bank wants it: its own names have no meaning for us. */
export const transferFileName = (account: string, sequence: number): string => `transfers-${account}-${padded(sequence, 6)}.rem`
