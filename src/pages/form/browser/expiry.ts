// The expiry of a card as people and browsers write it: 05/34, 5/2034, 0534, 2034-05.

import { digitsOf } from './number.ts'

export type Expiry = { readonly month: string; readonly year: string }

/** Month 01 to 12 with a year of four digits, or undefined while it is neither. */
export function expiryOf(text: string): Expiry | undefined {
  const parts = text
    .split(/[^\p{Nd}]+/u)
    .map(digitsOf)
    .filter(part => part !== '')
  const digits = parts.join('')
  const [first = '', second = ''] = parts.length === 2 ? parts : [digits.slice(0, 2), digits.slice(2)]
  const [month, year] = first.length === 4 ? [second, first] : [first, second]
  if (!/^(0?[1-9]|1[0-2])$/.test(month) || !/^(\d{2}|20\d{2})$/.test(year)) return undefined
  return { month: month.padStart(2, '0'), year: year.length === 2 ? `20${year}` : year }
}

/** What stands in the field while it is typed: `05 / 34`. Nothing is added while something is taken away. */
export function expiryText(text: string, adding: boolean): string {
  const whole = /\p{Nd}{4}/u.test(text) ? expiryOf(text) : undefined
  if (whole) return `${whole.month} / ${whole.year.slice(2)}`
  const [first = '', second = ''] = text
    .split(/[^\p{Nd}]+/u)
    .filter(part => part !== '')
    .map(digitsOf)
  const alone = /^[2-9]$/.test(first) || (first === '1' && /[/.-]\s*$/.test(text)) ? `0${first}` : first
  const month = alone.slice(0, 2)
  const year = `${alone.slice(2)}${second}`.slice(0, 4)
  if (year !== '') return `${month} / ${year}`
  return month.length === 2 && adding ? `${month} / ` : month
}

/** A card is good to the end of its month. `month`: the present one, `2026-11`. */
export const isPast = ({ month, year }: Expiry, present: string): boolean => `${year}-${month}` < present
