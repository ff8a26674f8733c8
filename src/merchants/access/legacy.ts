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

/** The text in UTF-8, UTF-16, Latin-1 or Windows-1252, or behind a user id of ASCII in any encoding; blank for bytes that were drawn, which are hardly ever one. */
function writtenIn(sent: string): string {
  const decoded = Buffer.from(sent, 'base64')
  const begins = /^(fffe|feff)/.test(decoded.toString('hex', 0, 2)) ? 2 : 0 // how UTF-16 may begin
  const written = withoutEnd(Buffer.from(decoded.subarray(begins).filter(byte => byte !== 0)))
  if (isUtf8(written)) return written.toString()
  const others = written.filter(byte => byte > 0x7f).length
  // Few of the letters of a text are no ASCII, half of what was drawn is none.
  const isText = others <= written.length / 5 && written.every(byte => byte > 0x1f && byte !== 0x7f)
  return isText || hasUserId(written) ? written.toString('latin1') : ''
}

/** What shells write ends in a newline. Blanks of other sets of characters may be bytes of a letter. */
function withoutEnd(written: Buffer): Buffer {
  let end = written.length
  while (end > 0 && isBlank(written[end - 1]!)) end--
  return written.subarray(0, end)
}

const blanks = Buffer.from('\t\n\r ')
const isBlank = (byte: number): boolean => blanks.includes(byte)

/** So many visible signs before the first bar: of a million tokens that were drawn two begin so. */
const userIdLeast = 8

function hasUserId(written: Buffer): boolean {
  const bar = written.indexOf('|')
  return bar >= userIdLeast && written.subarray(0, bar).every(byte => byte > 0x1f && byte < 0x7f)
}
