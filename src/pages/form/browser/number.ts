// A card number as people write and paste it: with spaces and hyphens, in digits of other scripts, with marks that nobody sees.

const digit = /\p{Nd}/u

/** The digits of a text as 0 to 9; what stands between them goes. */
export const digitsOf = (text: string): string =>
  [...text]
    .filter(one => digit.test(one))
    .map(digitValue)
    .join('')

/** Digits of every script stand in blocks of ten. */
function digitValue(one: string): number {
  const point = one.codePointAt(0)!
  let zero = point
  while (digit.test(String.fromCodePoint(zero - 1))) zero--
  return (point - zero) % 10
}

/** Groups as they are printed on cards; all others come in fours. */
const groups: Readonly<Record<string, readonly number[]>> = { AMEX: [4, 6, 5], DINERS: [4, 6, 4] }

/** `4200 0000 …`: with a space wherever a group is full and something follows. */
export function groupedNumber(digits: string, brand = ''): string {
  const sizes = digits.length > 14 && brand === 'DINERS' ? undefined : groups[brand]
  const parts: string[] = []
  for (let at = 0; at < digits.length; at += parts.at(-1)!.length) parts.push(digits.slice(at, at + (sizes?.[parts.length] ?? 4)))
  return parts.join(' ')
}

/** The place in a text behind as many digits: where the caret stays when spaces come and go. */
export function placeBehind(text: string, digits: number): number {
  let at = 0
  for (let seen = 0; at < text.length && seen < digits; at++) if (text[at] !== ' ') seen++
  return at
}
