// What names the merchant at the end of every token that leaves us for a shopper, so that a call without entityId still finds its rows.

import { hash } from 'node:crypto'

/** The merchant's id in base 36. */
export const merchantTail = (merchantId: string): string => BigInt(`0x${merchantId}`).toString(36)

/** At most 14 characters, because a checkout's id has room for no more: 72 bits of a hash. The directory knows whose it is. */
export const shortTail = (merchantId: string): string =>
  BigInt(`0x${hash('sha256', `merchant ${merchantId}`).slice(0, 18)}`).toString(36)

/** The merchant's id of a tail; undefined when it is none. */
export function merchantOfTail(tail: string): string | undefined {
  if (!/^[0-9a-z]{1,25}$/.test(tail)) return undefined
  let id = 0n
  for (const digit of tail) id = id * 36n + BigInt(Number.parseInt(digit, 36))
  const hex = id.toString(16).padStart(32, '0')
  return hex.length === 32 && merchantTail(hex) === tail ? hex : undefined
}
