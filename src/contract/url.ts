// Addresses that others wrote. What is not ASCII in the name of a host is prepared for DNS as it is parsed, at a cost that grows faster than its length.

/** No host with its port is longer. */
export const authorityMost = 255 + ':65535'.length

/** As `URL.parse`, but nothing whose host is longer than any is parsed. */
export function parseUrl(text: string, base?: string): URL | null {
  // A parser passes over these, and over as many slashes as there are.
  const written = text.replace(/^[\0-\x20]+|[\t\n\r]+/g, '')
  const authority = /^(?:[a-z][a-z0-9+.-]*:[/\\]*|[/\\]{2,})([^/\\?#]*)/i.exec(written)?.[1] ?? ''
  return authority.length > authorityMost ? null : URL.parse(text, base)
}

/** Other hosts may hold what ends a directive of a policy. */
export const hasPlainHost = ({ host }: URL): boolean => /^[A-Za-z0-9.:[\]-]*$/.test(host)
