// The barcode of a Brazilian bank slip, 44 digits, and its digitable line, 47: the same in groups that people type, each with a digit of its own. Pure.
// Source: the banks' manuals, after Banco Central's circular letters on slips.

import { elevenRest, tenDigit } from '../../../contract/checkDigits.ts'
import { dueDayOf, dueFactor } from './dueFactor.ts'

export type SlipContent = {
  /** Its code in clearing: `341`. */
  readonly bank: string
  /** `yyyy-MM-dd`; without one it is due when it is shown. An amount of more than ten digits leaves no place for it. */
  readonly dueOn?: string
  /** Centavos; 0: whoever pays says how much. */
  readonly amount: number
  /** 25 digits, which mean what the bank says. */
  readonly freeField: string
}

type Refused = { readonly broken: string }

const tenDigits = 9_999_999_999

export function slipBarcode({ bank, dueOn, amount, freeField }: SlipContent): string {
  const value =
    amount > tenDigits
      ? String(amount).padStart(14, '0')
      : (dueOn === undefined ? '0000' : dueFactor(dueOn)) + String(amount).padStart(10, '0')
  const [head, tail] = [`${bank}9`, value + freeField]
  if (head.length !== 4 || tail.length !== 39 || !/^\d+$/.test(head + tail)) throw new Error('a slip does not fit its barcode')
  return head + generalDigit(head + tail) + tail
}

/** The fifth of the 44, over the 43 others: 0, 10 and 11 are 1. */
export function generalDigit(others: string): string {
  const rest = elevenRest(others)
  return String(rest > 9 ? 1 : rest)
}

export const hasGeneralDigit = (barcode: string): boolean => generalDigit(barcode.slice(0, 4) + barcode.slice(5)) === barcode[4]

/** `today` decides which day a factor means. */
export function readBarcode(barcode: string, today: string): SlipContent | Refused {
  if (!/^\d{44}$/.test(barcode)) return { broken: 'a barcode of a slip has 44 digits' }
  if (barcode[3] !== '9') return { broken: 'its fourth digit is not 9, which stands for reais' }
  if (!hasGeneralDigit(barcode)) return { broken: 'its check digit, the fifth, is wrong' }
  const factor = barcode.slice(5, 9)
  const isLong = factor !== '0000' && factor < '1000'
  const dueOn = isLong ? undefined : dueDayOf(factor, today)
  return {
    bank: barcode.slice(0, 3),
    ...(dueOn !== undefined && { dueOn }),
    amount: Number(barcode.slice(isLong ? 5 : 9, 19)),
    freeField: barcode.slice(19),
  }
}

/** `34191.10121 34567.880058 71234.570001 6 16670000012345`. */
export function digitableLine(barcode: string): string {
  const groups = [barcode.slice(0, 4) + barcode.slice(19, 24), barcode.slice(24, 34), barcode.slice(34)]
  const typed = groups.map(group => group + tenDigit(group)).map(group => `${group.slice(0, 5)}.${group.slice(5)}`)
  return `${typed.join(' ')} ${barcode[4]} ${barcode.slice(5, 19)}`
}

/** With or without its dots and blanks. */
export function readLine(text: string): { readonly barcode: string } | Refused {
  const digits = text.replace(/[ .]/g, '')
  if (!/^\d{47}$/.test(digits)) return { broken: 'a digitable line has 47 digits' }
  const groups = [digits.slice(0, 10), digits.slice(10, 21), digits.slice(21, 32)]
  const wrong = groups.findIndex(group => tenDigit(group.slice(0, -1)) !== group.at(-1))
  if (wrong >= 0) return { broken: `the check digit of its group ${wrong + 1} is wrong` }
  const [first, second, third] = groups.map(group => group.slice(0, -1)) as [string, string, string]
  const barcode = first.slice(0, 4) + digits.slice(32) + first.slice(4) + second + third
  return hasGeneralDigit(barcode) ? { barcode } : { broken: 'its check digit, the fourth group, is wrong' }
}
