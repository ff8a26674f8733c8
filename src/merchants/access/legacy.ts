// User id and password, which older clients send in place of a bearer token.

/** How a token made of user id and password is written; old clients send the two instead. */
export const legacyToken = (userId: string, password: string): string => Buffer.from(`${userId}|${password}`).toString('base64')

/** The two in a token that is made of them, in whichever alphabet of Base64 or as they are: it is no better than its password. */
export function legacyParts(sent: string): { readonly userId: string; readonly password: string } | undefined {
  for (const text of [sent, Buffer.from(sent, 'base64').toString()]) {
    // Bytes that were drawn are hardly ever a text.
    const [, userId, password] = /^([^|\p{C}\uFFFD]+)\|([^\p{C}\uFFFD]+)$/u.exec(text) ?? []
    if (userId !== undefined && password !== undefined) return { userId, password }
  }
  return undefined
}
