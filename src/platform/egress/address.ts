// Which addresses we call on a merchant's behalf. A URL is judged by its text, a name by all addresses it resolves to, and the
// connection goes to an address that was judged: a name that resolves differently a moment later changes nothing.

import type { LookupAddress } from 'node:dns'
import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net'
import { parseUrl } from '../../contract/url.ts'
import { sixGroups } from '../network.ts'

export type Egress = {
  /** Networks that may be called although they are not public. */
  readonly allow: BlockList
  readonly httpsOnly: boolean
  /** Live: only 443. Otherwise 80, 443 and everything from 1024. */
  readonly standardPortsOnly: boolean
}

export type Resolve = (name: string) => Promise<readonly LookupAddress[]>

/** Where to connect: the URL, and the one address of its host that was checked. */
export type Target = { readonly url: URL; readonly address: string; readonly family: 4 | 6 }

// Networks that are not the public internet (IANA special-purpose registries).
const special = new BlockList()
for (const network of [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
])
  special.addSubnet(network.split('/')[0]!, Number(network.split('/')[1]), 'ipv4')
// Of IPv6 only 2000::/3 is in public use, and of that these are not.
for (const [network, bits] of [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['2620:4f:8000::', 48],
  ['3fff::', 20],
] as const)
  special.addSubnet(network, bits, 'ipv6')
const publicSix = new BlockList()
publicSix.addSubnet('2000::', 3, 'ipv6')

/** What keeps a URL from being called at all, before its name is resolved; undefined when nothing does. */
export function urlRefusal(text: string, egress: Egress): string | undefined {
  const url = parseUrl(text)
  if (!url) return 'is not a URL'
  if (url.protocol !== 'https:' && (egress.httpsOnly || url.protocol !== 'http:'))
    return egress.httpsOnly ? 'must begin with https://' : 'must begin with http:// or https://'
  if (url.username !== '' || url.password !== '') return 'must not hold a user name or password'
  const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80))
  if (egress.standardPortsOnly ? port !== 443 : port !== 80 && port !== 443 && port < 1024) return `must not use port ${port}`
  const host = bare(url.hostname)
  if (isIP(host) !== 0 && !mayCall(host, egress)) return 'must not name a private or special address'
  return undefined
}

/** Resolves once; the URL is refused by its text, or by its host. */
export async function findTarget(text: string, egress: Egress, resolve: Resolve): Promise<Target | { readonly refused: string }> {
  const refused = urlRefusal(text, egress)
  if (refused !== undefined) return { refused }
  const url = new URL(text)
  const found = await findAddress(url.hostname, egress, resolve)
  return 'refused' in found ? found : { url, ...found }
}

/** Of one name, each of which is looked at for every call; an answer over TCP has room for thousands. */
const addressesMost = 64

/** The address of a host, once every address that it has was checked; one that is not allowed refuses the whole name. */
export async function findAddress(
  name: string,
  egress: Egress,
  resolve: Resolve,
): Promise<Pick<Target, 'address' | 'family'> | { readonly refused: string }> {
  const host = bare(name)
  let found: readonly LookupAddress[]
  try {
    found = isIP(host) !== 0 ? [{ address: host, family: isIP(host) }] : await resolve(host)
  } catch (error) {
    return { refused: `cannot be resolved (${(error as { code?: string }).code ?? 'no answer'})` }
  }
  if (found.length === 0) return { refused: 'cannot be resolved (no address)' }
  if (found.length > addressesMost) return { refused: `resolves to more than ${addressesMost} addresses` }
  if (!found.every(({ address }) => mayCall(address, egress))) return { refused: 'resolves to a private or special address' }
  const first = found[0]!
  return { address: first.address, family: first.family === 6 ? 6 : 4 }
}

// Where clouds give out their machines' credentials: never called, whatever a setting allows.
const metadata = new BlockList()
for (const address of [
  '169.254.169.254',
  '169.254.170.2',
  '169.254.170.23',
  '100.100.100.200',
  '192.0.0.192',
  '168.63.129.16',
  '100.96.0.96',
  '169.254.0.23',
  '169.254.42.42',
])
  metadata.addAddress(address, 'ipv4')
for (const address of ['fd00:ec2::254', 'fd00:ec2::253', 'fd00:ec2::23', 'fd20:ce::254', 'fd00:42::42'])
  metadata.addAddress(address, 'ipv6')

/** Is this literal address public, or allowed by the setting? */
export function mayCall(address: string, { allow }: Egress): boolean {
  const unzoned = address.replace(/%.*/s, '') // `fe80::1%lo0`, as a machine's own file of hosts says it
  const plain = /^::ffff:\d+\.\d+\.\d+\.\d+$/i.test(unzoned) ? unzoned.slice(7) : unzoned
  if (isIP(plain) !== 0 && metadata.check(plain, isIPv6(plain) ? 'ipv6' : 'ipv4')) return false
  if (isIPv4(plain)) return allow.check(plain, 'ipv4') || !special.check(plain, 'ipv4')
  if (!isIPv6(plain)) return false
  if (isTunnelled(plain) || embeddedFours(plain).some(four => metadata.check(four, 'ipv4'))) return false
  return allow.check(plain, 'ipv6') || (publicSix.check(plain, 'ipv6') && !special.check(plain, 'ipv6'))
}

/** An address of IPv4 inside one of IPv6 (ISATAP, RFC 5214): where it leads is decided by a machine on the way. */
function isTunnelled(six: string): boolean {
  const all = sixGroups(six)
  return all[5] === '5efe' && (all[4] === '0' || all[4] === '200')
}

/** Where translators on the way find an address of IPv4: behind a prefix of 32 to 96 bits (RFC 6052, whose ninth byte is empty; also Oracle's metadata), behind 2002: (6to4). */
const embeddings = [
  [4, 5, 6, 7],
  [5, 6, 7, 9],
  [6, 7, 9, 10],
  [7, 9, 10, 11],
  [9, 10, 11, 12],
  [12, 13, 14, 15],
  [2, 3, 4, 5],
] as const

/** All addresses of IPv4 that one of IPv6 may lead to; of Teredo (RFC 4380) the last one is written inverted. */
function embeddedFours(six: string): string[] {
  const bytes = sixGroups(six).flatMap(group => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 255])
  const teredo = bytes.slice(12).map(byte => byte ^ 255)
  return [...embeddings.map(places => places.map(at => bytes[at]).join('.')), teredo.join('.')]
}

/** `[::1]` → `::1`; a dot at the end of a name means nothing here. */
const bare = (hostname: string): string => hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
