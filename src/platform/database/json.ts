// JSON and words for the database, whoever wrote them.

/**
 * As every statement can read it: JSON can say a NUL and half of a pair of surrogates, no text of PostgreSQL can, and one such row would end a statement over all
 * rows. U+FFFD stands in their place.
 */
export function storableJson(value: unknown): string {
  const text = JSON.stringify(value)
  return text.includes('\\u')
    ? text.replace(/\\(?:u(?:0000|d[89a-f][0-9a-f]{2})|.)/g, found => (found.length > 2 ? '\ufffd' : found))
    : text
}

/** Words of others for a column of text, with the same in the place of what no text of PostgreSQL can say. */
export const storableText = (text: string): string => text.toWellFormed().replaceAll('\0', '\ufffd')
