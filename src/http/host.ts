// Whom a request is meant for, and from which site's page it comes. A web page that a developer visits can send requests to a sandbox on the
// same machine, also under a name of its own that suddenly leads to 127.0.0.1; neither gets an answer (decisions, 68).

import type { IncomingMessage } from 'node:http'
import { BlockList, isIP, isIPv6 } from 'node:net'
import { networkInterfaces } from 'node:os'
import type { ResultName } from '../contract/results/results.ts'
import { isThisMachine } from '../platform/network.ts'

export type HostRules = {
  /** Absent = every well-formed Host is ours: behind proxies and load balancers it can be any. */
  readonly names?: ReadonlySet<string>
}

const authority = /^([a-z0-9._~-]+|\[[0-9a-f:.]+\])(?::\d{0,5})?$/i

/** What is wrong with the Host of a request (RFC 9112, 3.2); undefined when nothing is. */
export function hostRefusal(
  { httpVersion, rawHeaders, headers, url }: IncomingMessage,
  { names }: HostRules,
): ResultName | undefined {
  let sent = 0
  for (let at = 0; at < rawHeaders.length; at += 2)
    if (rawHeaders[at]!.length === 4 && rawHeaders[at]!.toLowerCase() === 'host') sent++
  if (sent === 0 && httpVersion !== '1.1') return undefined
  const host = authority.exec(headers.host ?? '')?.[1]
  if (sent !== 1 || host === undefined) return 'malformedRequest'
  // A target that is a whole address names the host itself.
  const target = /^https?:\/\/([^/?#]*)/i.exec(url ?? '')?.[1]
  const asked = target === undefined ? host : authority.exec(target)?.[1]
  if (asked === undefined) return 'malformedRequest'
  return names === undefined || isOurs(asked.toLowerCase(), names) ? undefined : 'hostNotOurs'
}

function isOurs(host: string, names: ReadonlySet<string>): boolean {
  const address = host.replace(/^\[|\]$/g, '')
  if (isIP(address) === 0) return host === 'localhost' || names.has(host)
  if (isThisMachine(address) || names.has(address)) return true
  const own = new BlockList()
  for (const one of Object.values(networkInterfaces()).flat())
    if (one) own.addAddress(one.address, one.family === 'IPv6' ? 'ipv6' : 'ipv4')
  return own.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')
}

/** Does a page of another site send this? Browsers say so; others send no Origin. */
export function isForeign(origin: string | undefined, host: string | undefined, publicUrl: string): boolean {
  if (origin === undefined) return false
  return origin !== publicUrl && !(host !== undefined && (origin === `http://${host}` || origin === `https://${host}`))
}
