// A file of orders to transfer, as text. Pure.

import type { BankSlipAccount } from '../../connectors/slips/accounts.ts'
import { bankText } from '../../connectors/slips/text.ts'
import { dateOf, nextWorkingDay } from '../../connectors/slips/workingDays.ts'
import type { BankDetails } from '../../payments/transfers/bankDetails.ts'
import { cnab240 } from '../cnab/cnab240.ts'
import { writeRecord } from '../cnab/layout.ts'
import { transferLayout } from './transferLayout.ts'

/** One transfer; `line`: its place in the file, from 1; amount in hundredths. */
export type TransferOrder = {
  readonly line: number
  readonly amount: number
  readonly to: Extract<BankDetails, { bank: string }>
}

/** What tells an order apart from all others of the account; returns repeat it. */
export const referenceText = (sequence: number, line: number): string => `RF${padded(sequence, 6)}${padded(line, 6)}`

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
      const details = orders.flatMap(({ line, amount, to }, index) => [
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
          own: referenceText(sequence, line),
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
