// Card numbers where none belongs: runs of digits that pass the check digit and have the range and the length of a card brand.
// Dots, spaces, hyphens and invisible characters inside a run count as nothing; digits of other scripts count as digits.

import { cardBrand, detectBrand, hasLuhnDigit } from './brands.ts'

/** What becomes of a card number where none belongs. `keep` leaves it there with a warning. */
export const treatments = ['refuse', 'mask', 'keep'] as const
export type Treatment = (typeof treatments)[number]

/** Texts of people, and identifiers, which pass for card numbers by chance: one in ten order numbers of sixteen digits has a right check digit. */
export type CardNumberRules = { readonly inTexts: Treatment; readonly inIdentifiers: Treatment }

const [shortest, longest] = [12, 19]
const between = '[\\s\\p{Pd}\\p{Cf}.]{0,3}'
const longRun = new RegExp(`\\p{Nd}(?:${between}\\p{Nd}){${shortest - 1},}`, 'u')
const longRuns = new RegExp(longRun.source, 'gu')
const groupsOfDigits = /\p{Nd}+/gu
const digits = /\p{Nd}/gu

/** Twelve digits or more stand in it: what a card number may be. The one look at most values. */
export const hasLongRun = (text: string): boolean => text.length >= shortest && longRun.test(text)

/** May these digits be a card of a brand that we know? */
export function isCardNumber(number: string): boolean {
  const brand = hasLuhnDigit(number) ? cardBrand(detectBrand(number) ?? '') : undefined
  return brand !== undefined && [brand.name, ...brand.also].some(name => cardBrand(name)!.lengths.includes(number.length))
}

/** Of each card number only the last four digits are left, the others are `x`. */
export const maskCardNumbers = (text: string): string => replaceNumbers(text, isCardNumber, masked)

/** Replaces what begins and ends at the edge of a group of digits and is 12 to 19 digits that `is` recognizes; of overlapping ones the longest. */
export function replaceNumbers(text: string, is: (number: string) => boolean, instead: (found: string) => string): string {
  if (!hasLongRun(text)) return text
  return text.replace(longRuns, run => {
    const groups = [...run.matchAll(groupsOfDigits)].map(({ 0: group, index }) => ({ group, index, number: plain(group) }))
    let replaced = ''
    let copied = 0
    for (let first = 0; first < groups.length; first++) {
      const last = endOfNumber(groups, first, is)
      if (last === undefined) continue
      const end = groups[last]!.index + groups[last]!.group.length
      replaced += run.slice(copied, groups[first]!.index) + instead(run.slice(groups[first]!.index, end))
      copied = end
      first = last
    }
    return replaced + run.slice(copied)
  })
}

function endOfNumber(groups: readonly { number: string }[], first: number, is: (number: string) => boolean): number | undefined {
  let found: number | undefined
  let number = ''
  for (let last = first; last < groups.length; last++) {
    number += groups[last]!.number
    if (number.length > longest) break
    if (number.length >= shortest && is(number)) found = last
  }
  return found
}

function masked(found: string): string {
  let hidden = found.match(digits)!.length - 4
  return found.replace(digits, digit => (hidden-- > 0 ? 'x' : digit))
}

/** The digits of a group as 0 to 9: those of every script stand in blocks of ten. */
const plain = (group: string): string => (/^[0-9]+$/.test(group) ? group : group.replace(digits, digitOf))

function digitOf(digit: string): string {
  const point = digit.codePointAt(0)!
  let zero = point
  while (/\p{Nd}/u.test(String.fromCodePoint(zero - 1))) zero--
  return String((point - zero) % 10)
}
