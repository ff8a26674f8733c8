// An order file (remessa) as text: which slips a bank shall take for, and which it shall end. Pure.

import type { BankSlipAccount } from '../../connectors/slips/accounts.ts'
import type { Payer } from '../../connectors/slips/request.ts'
import { bankText } from '../../connectors/slips/text.ts'
import { readTaxId } from '../../contract/taxId.ts'
import { cnab240 } from '../cnab/cnab240.ts'
import { cnab400 } from '../cnab/cnab400.ts'
import { type RecordLayout, writeRecord } from '../cnab/layout.ts'

export type SlipOrderLine = {
  readonly kind: 'entry' | 'writeOff'
  /** The digits that are ours. */
  readonly number: string
  readonly document: string
  /** `yyyy-MM-dd`. */
  readonly dueOn: string
  /** Hundredths. */
  readonly amount: number
  readonly payer: Payer
}

type OrderValues = Readonly<Record<string, string | number>>

/** With CR LF, in ASCII. */
export function orderText(account: BankSlipAccount, sequence: number, day: string, orders: readonly SlipOrderLine[]): string {
  const rows =
    account.remittance!.layout === 'cnab240' ? rows240(account, sequence, day, orders) : rows400(account, sequence, day, orders)
  return rows.map(row => `${row}\r\n`).join('')
}

export const orderFileName = (account: string, sequence: number): string => `${account}-${String(sequence).padStart(6, '0')}.rem`

const codes240 = { entry: '01', writeOff: '02' } as const

/** What a person and what a company has. */
const taxIdType = { cpf: '1', cnpj: '2' } as const

function holderOf({ bank, agency, account, accountDigit, agreement, beneficiary }: BankSlipAccount): OrderValues {
  const { kind, id } = readTaxId(beneficiary.taxId)!
  return {
    bank: bank.code,
    agency,
    account,
    accountDigit,
    agreement,
    taxIdType: taxIdType[kind],
    taxId: id,
    company: bankText(beneficiary.name),
    bankName: bankText(bank.name),
  }
}

function payerValues({ name, taxId, street, city, state, postcode }: Payer): OrderValues {
  return {
    payerIdType: taxId ? taxIdType[taxId.kind] : '0',
    payerId: taxId?.id ?? '',
    payerName: bankText(name),
    payerStreet: bankText(street),
    payerPostcode: postcode,
    payerCity: bankText(city),
    payerState: bankText(state),
  }
}

/** Tax ids are filled up with zeros, although they may hold letters. */
const filledUp = (layout: RecordLayout, values: OrderValues): OrderValues => {
  const filled = layout.fields.flatMap(([name, first, last]) =>
    name === 'taxId' || name === 'payerId' ? [[name, String(values[name] ?? '').padStart(last - first + 1, '0')]] : [],
  )
  return { ...values, ...Object.fromEntries(filled) }
}

const write = (layout: RecordLayout, values: OrderValues): string => writeRecord(layout, filledUp(layout, values))

function rows240(account: BankSlipAccount, sequence: number, day: string, orders: readonly SlipOrderLine[]): string[] {
  const { bank } = account
  const holder = { ...holderOf(account), lot: '1' }
  const { before, withDigit } = bank.inFile(account)
  const titles = orders.flatMap((order, at) => {
    const common = { ...holder, occurrence: codes240[order.kind] }
    const title = {
      number: before + order.number + (withDigit ? bank.numberDigit(account, order.number) : ''),
      wallet: 1,
      document: order.document,
      own: order.document,
      dueOn: order.dueOn,
      face: order.amount,
      madeOn: day,
      writeOff: 1,
      writeOffDays: account.writeOffAfterDays,
    }
    return [
      write(cnab240.order, { ...common, ...title, sequence: 2 * at + 1 }),
      write(cnab240.payer, { ...common, ...payerValues(order.payer), sequence: 2 * at + 2 }),
    ]
  })
  const head = { ...holder, madeOn: day }
  return [
    write(cnab240.fileHeader, { ...head, lot: '', direction: 1, fileNumber: sequence, version: 103 }),
    write(cnab240.lotHeader, { ...head, operation: 'R', service: 1, version: '060', orderNumber: sequence }),
    ...titles,
    write(cnab240.lotTrailer, { ...holder, records: titles.length + 2 }),
    write(cnab240.fileTrailer, { bank: bank.code, lots: 1, records: titles.length + 4 }),
  ]
}

const codes400 = codes240

function rows400(account: BankSlipAccount, sequence: number, day: string, orders: readonly SlipOrderLine[]): string[] {
  const { bank, wallet } = account
  const layout = cnab400.get(bank.code)!
  const holder = holderOf(account)
  const titles = orders.map((order, at) =>
    write(layout.order, {
      ...holder,
      ...payerValues(order.payer),
      taxIdType: `0${holder.taxIdType}`,
      occurrence: codes400[order.kind],
      number: bank.fullNumber(account, order.number),
      numberDigit: bank.numberDigit(account, order.number),
      wallet,
      document: order.document.slice(-10),
      own: order.document,
      dueOn: order.dueOn,
      face: order.amount,
      madeOn: day,
      sequence: at + 2,
    }),
  )
  return [
    write(layout.orderHeader, { ...holder, madeOn: day, fileNumber: sequence, sequence: 1 }),
    ...titles,
    write(layout.orderTrailer, { sequence: titles.length + 2 }),
  ]
}
