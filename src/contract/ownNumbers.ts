// Numbers that belong into a text and have check digits of their own, though some of them pass for card numbers by chance: one in ten accounts at the Mexican
// institutions 6xx, one in a hundred companies of Brazil. Pure.

import { isClabe } from './clabe.ts'
import { isTaxNumber } from './taxId.ts'

/** As people write each: only what can be taken for no card number in groups, as 4 4 4 4 2 could. */
const kinds = {
  taxId: { written: '\\d{3}\\.?\\d{3}\\.?\\d{3}-?\\d{2}|\\d{2}\\.?\\d{3}\\.?\\d{3}/?\\d{4}-?\\d{2}', is: isTaxNumber },
  clabe: { written: '\\d{18}|\\d{3} \\d{3} \\d{11} \\d', is: (text: string) => isClabe(text.replaceAll(' ', '')) },
} as const

export type OwnNumber = keyof typeof kinds

/** Changes what stands around numbers of these kinds, and leaves them as they are. */
export function changeAround(text: string, own: readonly OwnNumber[], change: (beside: string) => string): string {
  if (own.length === 0) return change(text)
  const written = own.map(kind => kinds[kind].written).join('|')
  let changed = ''
  let end = 0
  for (const { 0: found, index } of text.matchAll(new RegExp(`(?<!\\p{Nd})(?:${written})(?!\\p{Nd})`, 'gu'))) {
    if (!own.some(kind => kinds[kind].is(found))) continue
    changed += change(text.slice(end, index)) + found
    end = index + found.length
  }
  return changed + change(text.slice(end))
}
