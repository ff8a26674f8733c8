// What names the merchant at the end of every token that leaves us for a shopper, so that a call without entityId still finds its rows.

/** The merchant's id in base 36. */
export const merchantTail = (merchantId: string): string => BigInt(`0x${merchantId}`).toString(36)

/** The merchant's id of a tail; undefined when it is none. */
export function merchantOfTail(tail: string): string | undefined {
  if (!/^[0-9a-z]{1,25}$/.test(tail)) return undefined
  let id = 0n
  for (const digit of tail) id = id * 36n + BigInt(Number.parseInt(digit, 36))
  const hex = id.toString(16).padStart(32, '0')
  return hex.length === 32 && merchantTail(hex) === tail ? hex : undefined
}
