// Networks as operators write them in settings: addresses, or addresses with a number of bits, separated by commas.

import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net'
import { sixGroups } from '../platform/network.ts'

/** Each request is compared with all of them. */
export const networksMost = 1000

/** Each as it is written; none in a text that names none. */
export const networksOf = (text = ''): string[] =>
  text
    .split(',')
    .map(part => part.trim())
    .filter(part => part !== '')

/** An address of either family, or one with a number of bits. */
export function isNetwork(text: string): boolean {
  const [address, bits, ...more] = text.split('/') as [string, string | undefined]
  return (
    more.length === 0 &&
    isIP(address) !== 0 &&
    (bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (isIPv6(address) ? 128 : 32)))
  )
}

/** `fail` is told the rule, for each that is none. */
export function networkList(text: string | undefined, fail: (rule: string) => void): BlockList {
  const list = new BlockList()
  const networks = networksOf(text)
  if (networks.length > networksMost) fail(`must be ${networksMost} addresses or networks at most, not ${networks.length}`)
  for (const part of networks.slice(0, networksMost)) {
    const [address, bits] = part.split('/') as [string, string | undefined]
    const family = isIPv6(address) ? 'ipv6' : 'ipv4'
    if (!isNetwork(part)) {
      fail(`must be addresses or networks separated by commas, for example 10.0.0.0/8, not ${JSON.stringify(part)}`)
    } else if (bits === undefined) list.addAddress(address, family)
    else list.addSubnet(address, Number(bits), family)
  }
  return list
}

/** From its first address to its last, as numbers. */
type AddressRange = readonly [from: bigint, to: bigint]

/** How many different addresses well-written networks hold: of IPv4, also where they are written as IPv6, and of IPv6. */
export function addressesIn(networks: readonly string[]): { readonly four: bigint; readonly six: bigint } {
  const fours = networks.filter(network => isIPv4(addressOf(network))).map(network => rangeOf(network))
  const sixes = networks.filter(network => isIPv6(addressOf(network))).map(network => rangeOf(network))
  return { four: sizeOf([...fours, ...sixes.flatMap(foursIn)]), six: sizeOf(sixes) }
}

const addressOf = (network: string): string => network.split('/')[0]!.replace(/%.*$/, '')

function rangeOf(network: string): AddressRange {
  const address = addressOf(network)
  const width = isIPv6(address) ? 128 : 32
  const groups = isIPv6(address) ? sixGroups(address).map(group => group.padStart(4, '0')) : address.split('.').map(hexOf)
  const free = BigInt(width - Number(network.split('/')[1] ?? width))
  const from = (BigInt(`0x${groups.join('')}`) >> free) << free
  return [from, from + (1n << free) - 1n]
}
const hexOf = (byte: string): string => Number(byte).toString(16).padStart(2, '0')

/** Where IPv4 stands in IPv6, in the last 32 bits: as sockets write it, and as translators do (RFC 2765, 6052, 8215). */
const foursInSix = ['::ffff:0:0/96', '::ffff:0:0:0/96', '64:ff9b::/96', '64:ff9b:1::/48'].map(rangeOf)
const lastFour = 0xffffffffn

/** Of two networks one is in the other, or they have nothing in common. */
const foursIn = ([from, to]: AddressRange): AddressRange[] =>
  foursInSix.flatMap(([first, last]): AddressRange[] => {
    if (to < first || from > last) return []
    return from <= first || to - from >= lastFour ? [[0n, lastFour]] : [[from & lastFour, to & lastFour]]
  })

/** Each address once, in however many of the ranges it is: a network that is not in the one before it has nothing in common with any before. */
function sizeOf(ranges: readonly AddressRange[]): bigint {
  const order = ([one, oneEnd]: AddressRange, [other, otherEnd]: AddressRange) => Number(one - other || otherEnd - oneEnd)
  let size = 0n
  let end = -1n // the last one that was counted
  for (const [from, to] of ranges.toSorted(order)) {
    if (to <= end) continue
    size += to - from + 1n
    end = to
  }
  return size
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
