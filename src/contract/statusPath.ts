// Where a status can be read, in the query of an address of the merchant.

import { parseUrl } from './url.ts'

/** As the shopper's browser brings it, the old form of notifications, and the missed return. What is no address stays as it is. */
export function withStatusPath(text: string, id: string, resourcePath: string): string {
  const url = parseUrl(text)
  if (!url) return text
  url.searchParams.append('id', id)
  url.searchParams.append('resourcePath', resourcePath)
  return url.href
}
