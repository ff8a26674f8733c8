// Networks as operators write them in settings: addresses, or addresses with a number of bits, separated by commas.

import { BlockList, isIP, isIPv6 } from 'node:net'

/** Each as it is written; none in a text that names none. */
export const networksOf = (text = ''): string[] =>
  text
    .split(',')
    .map(part => part.trim())
    .filter(part => part !== '')

/** `fail` is told the rule, for each that is none. */
export function networkList(text: string | undefined, fail: (rule: string) => void): BlockList {
  const list = new BlockList()
  for (const part of networksOf(text)) {
    const [address, bits] = part.split('/') as [string, string | undefined]
    const family = isIPv6(address) ? 'ipv6' : 'ipv4'
    const most = family === 'ipv6' ? 128 : 32
    if (isIP(address) === 0 || (bits !== undefined && !(/^\d{1,3}$/.test(bits) && Number(bits) <= most))) {
      fail(`must be addresses or networks separated by commas, for example 10.0.0.0/8, not ${JSON.stringify(part)}`)
    } else if (bits === undefined) list.addAddress(address, family)
    else list.addSubnet(address, Number(bits), family)
  }
  return list
}

const ownNetworks = networkList('127.0.0.0/8,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,::1,fc00::/7', () => {})

/** An address to listen on that others than the own machine and network may reach; of a name nobody knows. */
export const isPublicAddress = (host: string): boolean =>
  host !== 'localhost' && (isIP(host) === 0 || !ownNetworks.check(host, isIP(host) === 6 ? 'ipv6' : 'ipv4'))

/** A name or address of the public net: none of the own machine or network, and none that is kept for examples. */
export const isPublicName = (name: string): boolean =>
  isIP(name) === 0
    ? name.includes('.') && !/\.(localhost|local|internal|test|example|invalid|home\.arpa)\.?$/i.test(name)
    : isPublicAddress(name)
