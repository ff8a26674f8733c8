// Where a status can be read, in the query of an address of the merchant.

/** As the shopper's browser brings it, the old form of notifications, and the missed return. What is no address stays as it is. */
export function withStatusPath(text: string, id: string, resourcePath: string): string {
  if (!URL.canParse(text)) return text
  const url = new URL(text)
  url.searchParams.append('id', id)
  url.searchParams.append('resourcePath', resourcePath)
  return url.href
}
