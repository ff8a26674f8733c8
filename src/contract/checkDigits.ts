// Check digits of slips: weighted sums over digits, as the manuals of banks and store chains tell them. Pure.

/** The sum of each character's value times its weight; the weights begin at the last character and begin again when they end. Letters are ASCII − 48. */
export function weightedSum(text: string, weights: readonly number[]): number {
  let sum = 0
  for (let at = 0; at < text.length; at++) sum += (text.charCodeAt(text.length - 1 - at) - 48) * weights[at % weights.length]!
  return sum
}

/** 2, 3 … last. */
export const weightsTo = (last: number): readonly number[] => Array.from({ length: last - 1 }, (_, at) => at + 2)

/** Modulo 10: weights 2, 1 from the last digit, each product by its own digits ("base 10" of store chains, Luhn). */
export function tenDigit(digits: string): string {
  let sum = 0
  for (let at = 0; at < digits.length; at++) {
    const digit = digits.charCodeAt(digits.length - 1 - at) - 48
    sum += at % 2 === 0 ? (digit > 4 ? digit * 2 - 9 : digit * 2) : digit
  }
  return String((10 - (sum % 10)) % 10)
}

/** 11 − the remainder of modulo 11 with weights 2 to `last`: 1 to 11, of which each bank makes its digit. */
export const elevenRest = (digits: string, last = 9): number => 11 - (weightedSum(digits, weightsTo(last)) % 11)

/** Modulo 11 where 10 and 11 are 0. */
export const elevenDigit = (digits: string, last?: number): string => String((elevenRest(digits, last) % 11) % 10)
