// User id and password, which older clients send in place of a bearer token.

import { isUtf8 } from 'node:buffer'

/** How a token made of user id and password is written; old clients send the two instead. */
export const legacyToken = (userId: string, password: string): string => Buffer.from(`${userId}|${password}`).toString('base64')

/**
 * The two in a token that is made of them, of whatever characters, in whichever alphabet of Base64 or as they are: it is no better than its
 * password. The user id ends at the first bar, so that guesses at one token count as one user's, wherever the caller had put the bar.
 */
export function legacyParts(sent: string): { readonly userId: string; readonly password: string } | undefined {
  const text = sent.includes('|') ? sent : writtenIn(sent)
  const bar = text.indexOf('|')
  return bar < 0 ? undefined : { userId: text.slice(0, bar), password: text.slice(bar + 1) }
}

/** The text in UTF-8, UTF-16, Latin-1 or Windows-1252; blank for bytes that were drawn, which are hardly ever one. */
function writtenIn(sent: string): string {
  const written = Buffer.from(Buffer.from(sent, 'base64').filter(byte => byte !== 0))
  if (isUtf8(written)) return written.toString()
  const others = written.filter(byte => byte > 0x7f).length
  // Few of the letters of a text are no ASCII, half of what was drawn is none.
  return others <= written.length / 5 && written.every(byte => byte > 0x1f && byte !== 0x7f) ? written.toString('latin1') : ''
}
