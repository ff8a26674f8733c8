// A store chain: shoppers pay slips at its tills in cash, by the barcode or by the reference, and its daily file tells of them. Written from the description
// of the file, without a table of the gateway.

import { blanks, columns, longDay, zeros } from './slipBank/columns.ts'

export type TillPayment = {
  readonly reference: string
  /** Absent when the reference was typed. */
  readonly barcode?: string
  /** Hundredths. */
  readonly amount: number
  readonly store: string
  readonly till: string
  readonly folio: string
  /** `yyyy-MM-dd`. */
  readonly day: string
}

export function chainText(
  agreement: string,
  fileNumber: number,
  day: string,
  payments: readonly TillPayment[],
  currency = 'MXN',
): string {
  const sum = payments.reduce((total, { amount }) => total + amount, 0)
  const rows = [
    columns(128, [1, 'H'], [2, blanks(agreement, 20)], [22, longDay(day)], [30, zeros(fileNumber, 6)], [36, currency]),
    ...payments.map((one, at) =>
      columns(
        128,
        [1, `D${zeros(at + 1, 6)}`],
        [8, zeros(one.reference, 12)],
        [20, zeros(one.barcode ?? 0, 30)],
        [50, zeros(one.amount, 9)],
        [59, blanks(one.store, 10)],
        [69, blanks(one.till, 4)],
        [73, blanks(one.folio, 10)],
        [83, longDay(one.day)],
        [91, '143000'],
        [97, blanks(`A${one.folio}`, 12)],
      ),
    ),
    columns(128, [1, `T${zeros(payments.length, 6)}${zeros(sum, 12)}`]),
  ]
  return rows.map(row => `${row}\r\n`).join('')
}
