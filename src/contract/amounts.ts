// Amounts. On the wire they are texts with a dot; inside they are whole hundredths, safe integers up to 10^12 - 1.
// Never a float: no amount is ever parsed as a decimal number.

export const amountMax = 999_999_999_999

/** `92`, `92.00` → 9200. The text must have the amount format. */
export function hundredths(text: string): number {
  const dot = text.indexOf('.')
  return dot < 0 ? Number(text) * 100 : Number(text.slice(0, dot)) * 100 + Number(text.slice(dot + 1))
}

/** 9200 → `92.00`. */
export function amountText(hundredths: number): string {
  const digits = String(hundredths).padStart(3, '0')
  return `${digits.slice(0, -2)}.${digits.slice(-2)}`
}

/** The same, also below zero. */
export const signedAmountText = (hundredths: number): string =>
  hundredths < 0 ? `-${amountText(-hundredths)}` : amountText(hundredths)
