// A message as people and logs may see it: what the table calls secret is masked, the card number to its first six and last four digits.

import type { Message } from './codec.ts'
import type { Dialect } from './dialects.ts'

export function masked({ type, fields }: Message, dialect: Dialect): string {
  const shown = [...fields].map(([number, value]) => {
    const secret = dialect.fields.get(number)?.secret ?? true
    return `DE${number}=${secret ? maskedValue(number, value) : value}`
  })
  return [type, ...shown].join(' ')
}

/** Of short numbers the digits that are shown would give the rest away. */
const maskedValue = (number: number, value: string): string =>
  number === 2 && value.length >= 15
    ? `${value.slice(0, 6)}${'*'.repeat(value.length - 10)}${value.slice(-4)}`
    : '*'.repeat(value.length)
