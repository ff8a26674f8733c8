// The number of a store slip, 30 digits: prefix of the chain 2, reference 12, due date 6, centavos 9, check digit 1. The reference has a digit of its own,
// because it is as good for paying when it is typed. Pure.

import { tenDigit } from '../../contract/checkDigits.ts'

export type StoreSlip = {
  readonly prefix: string
  /** With its digit. */
  readonly reference: string
  /** `yyyy-MM-dd`. */
  readonly dueOn: string
  /** Hundredths. */
  readonly amount: number
}

export const storeAmountMost = 999_999_999

/** A serial of at most 11 digits, with its check digit. */
export function storeReference(serial: string): string {
  const digits = serial.padStart(11, '0')
  return digits + tenDigit(digits)
}

export const isStoreReference = (text: string): boolean => /^\d{12}$/.test(text) && tenDigit(text.slice(0, -1)) === text.at(-1)

export function storeNumber({ prefix, reference, dueOn, amount }: StoreSlip): string {
  const digits = `${prefix}${reference}${dueOn.slice(2).replaceAll('-', '')}${String(amount).padStart(9, '0')}`
  if (!/^\d{29}$/.test(digits) || !isStoreReference(reference)) throw new Error('a store slip does not fit its number')
  return digits + tenDigit(digits)
}

/** Undefined when it is none: every single wrong digit is seen. */
export function readStoreNumber(text: string): StoreSlip | undefined {
  const parts = /^(\d\d)(\d{12})(\d\d)(\d\d)(\d\d)(\d{9})\d$/.exec(text)
  if (!parts || tenDigit(text.slice(0, -1)) !== text.at(-1)) return undefined
  const [prefix, reference, year, month, day, amount] = parts.slice(1) as [string, string, string, string, string, string]
  return { prefix, reference, dueOn: `20${year}-${month}-${day}`, amount: Number(amount) }
}
