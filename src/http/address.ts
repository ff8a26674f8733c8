// Whose request it is, as far as trusted proxies tell; and what they are told of that.

import { type BlockList, isIP, isIPv6 } from 'node:net'
import { plainAddress } from '../platform/network.ts'

/** Whose servers call, beside the answer to whoever has shown a token: a proxy before us is told it by nobody but us. */
export const callerHeader = 'X-Tollgate-Caller'
export const ofMerchant = 'merchant'

/** Proxies that stand one behind the other; of what a caller adds in front of them nothing is read. */
const hopsMost = 32

/** The nearest address that is no trusted proxy. What a proxy wrote there instead of an address tells nothing: then it is the proxy's own. */
export function addressOf(remote: string, forwardedFor: string | undefined, trusted: BlockList): string {
  if (!isListed(trusted, remote)) return plainAddress(remote)
  let rest = forwardedFor ?? ''
  for (let hop = 0; hop < hopsMost && rest !== ''; hop++) {
    const comma = rest.lastIndexOf(',')
    const nearest = withoutPort(rest.slice(comma + 1).trim())
    rest = rest.slice(0, Math.max(comma, 0))
    if (nearest === '' || isListed(trusted, nearest)) continue
    return plainAddress(isIP(nearest) === 0 ? remote : nearest)
  }
  return plainAddress(remote)
}

export const isListed = (list: BlockList, address: string): boolean =>
  isIP(address) !== 0 && list.check(plainAddress(address), isIPv6(plainAddress(address)) ? 'ipv6' : 'ipv4')

/** `192.0.2.1:4711`, `[2001:db8::1]:80` and `[2001:db8::1]`, as some proxies write them. */
const withoutPort = (hop: string): string => /^\[([^\]]*)\](:\d+)?$/.exec(hop)?.[1] ?? hop.replace(/^([\d.]+):\d+$/, '$1')
