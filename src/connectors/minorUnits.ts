// Hundredths, as amounts travel on our wire, to the minor units of a currency, as they travel to the other side, and back.

import { currencies } from '../contract/currencies.ts'
import type { ResultName } from '../contract/results/results.ts'

const digits = 12

/** JPY 92.00 → 92, KWD 1.23 → 1230. An amount that the currency or twelve digits cannot hold is refused by name. */
export function minorUnits(hundredths: number, currency: string): bigint | ResultName {
  const { exponent } = currencies.get(currency)!
  const amount = BigInt(hundredths)
  if (exponent >= 2) {
    const units = amount * 10n ** BigInt(exponent - 2)
    return units < 10n ** BigInt(digits) ? units : 'amountTooLargeForAcquirer'
  }
  const divisor = 10n ** BigInt(2 - exponent)
  return amount % divisor === 0n ? amount / divisor : 'amountFinerThanCurrency'
}

/** Undefined when the amount is none that we could have sent. */
export function hundredthsOf(units: bigint, currency: string): number | undefined {
  const { exponent } = currencies.get(currency)!
  if (exponent < 2) return Number(units * 10n ** BigInt(2 - exponent))
  const divisor = 10n ** BigInt(exponent - 2)
  return units % divisor === 0n ? Number(units / divisor) : undefined
}

/** Minor units as they leave; only for amounts that minorUnits accepts. */
export function unitsText(hundredths: number, currency: string): string {
  const units = minorUnits(hundredths, currency)
  if (typeof units === 'string') throw new Error(`an amount went out that does not fit: ${units}`)
  return String(units)
}

/** The twelve digits of DE4. */
export const amountDigits = (hundredths: number, currency: string): string =>
  unitsText(hundredths, currency).padStart(digits, '0')

const currencyByNumber: ReadonlyMap<string, string> = new Map([...currencies.values()].map(({ code, number }) => [number, code]))
export const currencyOfNumber = (number: string): string | undefined => currencyByNumber.get(number)
