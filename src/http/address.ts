// Whose request it is, as far as trusted proxies tell.

import { type BlockList, isIP, isIPv6 } from 'node:net'

/** The nearest address that is no trusted proxy. What a proxy wrote there instead of an address tells nothing: then it is the proxy's own. */
export function addressOf(remote: string, forwardedFor: string | undefined, trusted: BlockList): string {
  if (!isListed(trusted, remote)) return plain(remote)
  const hops = (forwardedFor ?? '')
    .split(',')
    .map(part => part.trim())
    .filter(part => part !== '')
    .map(withoutPort)
  const nearest = hops.findLast(hop => isIP(hop) === 0 || !isListed(trusted, hop))
  return nearest !== undefined && isIP(nearest) !== 0 ? plain(nearest) : plain(remote)
}

export const isListed = (list: BlockList, address: string): boolean =>
  isIP(plain(address)) !== 0 && list.check(plain(address), isIPv6(plain(address)) ? 'ipv6' : 'ipv4')

/** `192.0.2.1:4711`, `[2001:db8::1]:80` and `[2001:db8::1]`, as some proxies write them. */
const withoutPort = (hop: string): string => /^\[([^\]]*)\](:\d+)?$/.exec(hop)?.[1] ?? hop.replace(/^([\d.]+):\d+$/, '$1')

/** Sockets of both families write an address of IPv4 as one of IPv6. */
const plain = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, '')
