// A message as people and logs may see it: what the table calls secret is masked, the card number to its first six and last four digits, also where a host writes it elsewhere.

import { withoutNumber } from '../../../contract/cardNumbers.ts'
import type { Message } from './codec.ts'
import type { Dialect } from './dialects.ts'

/** `asked`: the card number of the message that it answers: a host need not say it again where it belongs, and may say it with its length or its end right beside it. */
export function masked({ type, fields }: Message, dialect: Dialect, asked?: string): string {
  const numbers = new Set([fields.get(2), asked].filter(number => number !== undefined))
  const shown = [...fields].map(([number, value]) => {
    const secret = dialect.fields.get(number)?.secret ?? true
    return `DE${number}=${secret ? maskedValue(number, value) : [...numbers].reduce(withoutNumber, value)}`
  })
  return [type, ...shown].join(' ')
}

/** Of short numbers the digits that are shown would give the rest away. */
const maskedValue = (number: number, value: string): string =>
  number === 2 && value.length >= 15
    ? `${value.slice(0, 6)}${'*'.repeat(value.length - 10)}${value.slice(-4)}`
    : '*'.repeat(value.length)
