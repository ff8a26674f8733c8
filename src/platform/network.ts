// Which addresses belong to one caller, and which to this machine.

import { BlockList, isIP, isIPv6 } from 'node:net'

/** Sockets of both families write an address of IPv4 as one of IPv6, proxies in all ways that there are. A zone behind `%` is a word of the machine that wrote it. */
export function plainAddress(address: string): string {
  if (!address.includes(':')) return address
  const bare = address.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '')
  if (!/ffff/i.test(bare) || !isIPv6(bare)) return bare
  const [, high, low] = /^\[::ffff:([0-9a-f]+):([0-9a-f]+)\]$/.exec(new URL(`http://[${bare}]`).hostname) ?? []
  return high === undefined ? bare : fourOf(Number.parseInt(high, 16), Number.parseInt(low!, 16))
}

/** An address of IPv4 in two groups of one of IPv6. */
const fourOf = (high: number, low: number): string => [high >> 8, high & 255, low >> 8, low & 255].join('.')

/** The eight groups of an address of IPv6 without a zone, without leading zeros. */
export function sixGroups(six: string): string[] {
  const groups = new URL(`http://[${six}]`).hostname.slice(1, -1).split('::')
  const [head, tail] = groups.map(part => (part === '' ? [] : part.split(':')))
  return tail === undefined ? head! : [...head!, ...Array<string>(8 - head!.length - tail.length).fill('0'), ...tail]
}

/** One line or household has a whole /64 of IPv6: it counts as one address. */
export const networkOf = (address: string): string => networksAround(address)[0]!

/** Whose guesses an address may be, the narrowest first: many are given a /56 or a /48, which are 256 and 65536 of /64. */
export function networksAround(written: string): readonly string[] {
  const address = plainAddress(written)
  if (!isIPv6(address)) return [address]
  const [head = '', tail] = address.toLowerCase().split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  const groups =
    tail === undefined ? left : [...left, ...Array<string>(Math.max(0, 8 - left.length - right.length)).fill('0'), ...right]
  const [a, b, c, d = '0'] = groups.map(group => group.replace(/^0+(?=.)/, ''))
  const d56 = (Number.parseInt(d, 16) & 0xff00).toString(16)
  return [`${a}:${b}:${c}:${d}::/64`, `${a}:${b}:${c}:${d56}::/56`, `${a}:${b}:${c}::/48`]
}

/** How many times as much a network may guess as an address: the wider it is, the more people sit in it. */
export const networkShare = (network: string): number => ({ '/56': 2, '/48': 4 })[network.slice(-3)] ?? 1

/** Does the caller sit at this machine, as far as its address tells? */
export const isThisMachine = (address: string): boolean => {
  const plain = plainAddress(address)
  return isIP(plain) !== 0 && loopback.check(plain, isIPv6(plain) ? 'ipv6' : 'ipv4')
}
const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

/** Where one goes to reach what listens on a host, as it stands in a URL: every address of a machine (0.0.0.0, ::) is none to go to. */
export function callable(host: string): string {
  const written = isIPv6(host) ? `[${host}]` : host
  const { hostname } = URL.parse(`http://${written}`) ?? { hostname: written }
  return isEveryAddress(hostname) ? everyAddress[hostname]! : hostname
}

/** As `hostname` of a URL has it. */
export const isEveryAddress = (hostname: string): boolean => Object.hasOwn(everyAddress, hostname)
const everyAddress: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '[::ffff:0:0]': '127.0.0.1', '[::]': '[::1]' }

/** Of a part of an address, percent-encoded; undefined when it is not. */
export function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
