// Whom a request is meant for, and from which site's page it comes. A web page that a developer visits can send requests to a sandbox on the
// same machine, also under a name of its own that suddenly leads to 127.0.0.1; neither gets an answer (decisions, 68).

import type { IncomingMessage } from 'node:http'
import { BlockList, isIP, isIPv6 } from 'node:net'
import { networkInterfaces } from 'node:os'
import type { ResultName } from '../contract/results/results.ts'
import { authorityMost } from '../contract/url.ts'
import { isEveryAddress, isThisMachine } from '../platform/network.ts'
import type { Request } from './answer.ts'

export type HostRules = {
  /** Absent = every well-formed Host is ours: behind proxies and load balancers it can be any. */
  readonly names?: ReadonlySet<string>
  /** Addresses of ours begin as the caller's way to us; else with the public one. */
  readonly followed?: boolean
}

/** The host of a well-formed authority; undefined for what is none. */
const hostIn = (authority: string): string | undefined =>
  authority.length > authorityMost ? undefined : /^([a-z0-9._~-]+|\[[0-9a-f:.]+\])(?::\d{0,5})?$/i.exec(authority)?.[1]

/** What is wrong with the Host of a request (RFC 9112, 3.2); undefined when nothing is. */
export function hostRefusal(incoming: IncomingMessage, { names }: HostRules): ResultName | undefined {
  const { httpVersion, rawHeaders, headers } = incoming
  let sent = 0
  for (let at = 0; at < rawHeaders.length; at += 2)
    if (rawHeaders[at]!.length === 4 && rawHeaders[at]!.toLowerCase() === 'host') sent++
  if (sent === 0 && httpVersion !== '1.1') return undefined
  if (sent !== 1 || hostIn(headers.host ?? '') === undefined) return 'malformedRequest'
  const asked = hostIn(authorityOf(incoming))
  if (asked === undefined) return 'malformedRequest'
  return names === undefined || isOwnHost(asked.toLowerCase(), names) ? undefined : 'hostNotOurs'
}

/** The host and port that are asked for: a target that is a whole address names them itself. */
const authorityOf = ({ url, headers }: IncomingMessage): string =>
  /^https?:\/\/([^/?#]*)/i.exec(url ?? '')?.[1] ?? headers.host ?? ''

/** Under which address a caller reached us; undefined when it named none that others could go to. */
export function reachedAt(scheme: 'http' | 'https', incoming: IncomingMessage): string | undefined {
  const authority = authorityOf(incoming)
  const reached = hostIn(authority) === undefined ? null : URL.parse(`${scheme}://${authority}`)
  return reached?.host && !isEveryAddress(reached.hostname) ? reached.origin : undefined
}

export function isOwnHost(host: string, names: ReadonlySet<string>): boolean {
  const address = host.replace(/^\[|\]$/g, '')
  if (isIP(address) === 0) return host === 'localhost' || names.has(host)
  if (isThisMachine(address) || names.has(address)) return true
  const own = new BlockList()
  for (const one of Object.values(networkInterfaces()).flat())
    if (one) own.addAddress(one.address, one.family === 'IPv6' ? 'ipv6' : 'ipv4')
  return own.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')
}

/**
 * Does a page of another site send this? Browsers say so: of a GET that a page only shows (an image, a link) without its Origin. Others say nothing.
 * A page of ours has the whole origin that was asked: one that came over http can be anybody's on the way, whatever its host.
 */
export function isForeign({ headers, reachedAt }: Pick<Request, 'headers' | 'reachedAt'>, publicUrl: string): boolean {
  const { origin, 'sec-fetch-site': site } = headers
  if (origin === undefined) return site === 'cross-site'
  return origin !== publicUrl && origin !== reachedAt
}
