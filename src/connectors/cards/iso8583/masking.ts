// A message as people and logs may see it: what the table calls secret is masked, the card number to its first six and last four digits, also where a host writes it elsewhere.

import { crossed, shownDigits, withoutCodes, withoutNumber } from '../../../contract/cardNumbers.ts'
import type { Message } from './codec.ts'
import type { Dialect } from './dialects.ts'

/** `asked`: the card number of the message that it answers: a host need not say it again where it belongs, and may say it with its length or its end right beside it. Where neither is known,
 * as of what comes late, long rows of digits are hidden in what the host writes. */
export function masked({ type, fields }: Message, dialect: Dialect, asked?: string): string {
  const numbers = new Set([fields.get(2), asked].filter(number => number !== undefined))
  const hidden = (number: number, value: string) =>
    numbers.size > 0 || number < firstWritten
      ? [...numbers].reduce((text, one) => withoutCutNumber(withoutNumber(text, one), one), value)
      : withoutLongRows(value)
  const shown = [...fields].map(([number, value]) => {
    const secret = dialect.fields.get(number)?.secret ?? true
    return `DE${number}=${secret ? maskedValue(number, value) : hidden(number, value)}`
  })
  return [type, ...shown].join(' ')
}

/** From here on fields are private, or texts. */
const firstWritten = 44
const longRow = /\d{12,}/g

function withoutLongRows(text: string): string {
  const hidden = text.replace(longRow, crossed)
  return hidden === text ? text : withoutCodes(hidden, true, crossed)
}

/** Where the field ends in the number, the beginning that is left would say with the last four what lies between. */
function withoutCutNumber(text: string, number: string): string {
  const digits = [...text.matchAll(/\d/g)]
  const row = digits.join('')
  for (let length = number.length - 1; length >= cutShortest; length--) {
    if (!row.endsWith(number.slice(0, length))) continue
    const from = digits.at(shownDigits(number).first.length - length)!.index
    return text.slice(0, from) + crossed(text.slice(from))
  }
  return text
}
/** One more than the six that are shown where the number belongs. */
const cutShortest = 7

/** Of short numbers the digits that are shown would give the rest away. */
const maskedValue = (number: number, value: string): string =>
  number === 2 && value.length >= 15
    ? `${value.slice(0, 6)}${'*'.repeat(value.length - 10)}${value.slice(-4)}`
    : '*'.repeat(value.length)
