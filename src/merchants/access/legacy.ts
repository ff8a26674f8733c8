// User id and password, which older clients send in place of a bearer token.

import { isUtf8 } from 'node:buffer'

/** How a token made of user id and password is written; old clients send the two instead. */
export const legacyToken = (userId: string, password: string): string => Buffer.from(`${userId}|${password}`).toString('base64')

/**
 * The two in a token that is made of them, of whatever characters, in whichever alphabet of Base64 or as they are: it is no better than its
 * password. The user id ends at the first bar, so that guesses at one token count as one user's, wherever the caller had put the bar.
 */
export function legacyParts(sent: string): { readonly userId: string; readonly password: string } | undefined {
  const decoded = Buffer.from(sent, 'base64')
  const text = sent.includes('|') || !isUtf8(decoded) ? sent : decoded.toString() // bytes that were drawn are hardly ever a text
  const bar = text.indexOf('|')
  return bar < 0 ? undefined : { userId: text.slice(0, bar), password: text.slice(bar + 1) }
}
