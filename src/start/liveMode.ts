// What live mode refuses, each by name: a table, because each row was once somebody's accident.

import { BlockList, isIP } from 'node:net'
import { othersMayRead } from '../platform/files.ts'

export type LiveSettings = {
  /** A setting of the environment; undefined when it is empty or absent. */
  setting(name: string): string | undefined
  readonly host: string
  readonly tls: boolean
  /** Addresses of other servers that we call, by the place where they stand. */
  readonly partners: readonly (readonly [place: string, url: string])[]
}

/** A sentence for each refusal. */
export const liveRefusals = (given: LiveSettings): string[] => rules.flatMap(rule => rule(given))

const when = (holds: boolean, sentence: string): string[] => (holds ? [sentence] : [])

const rules: readonly ((given: LiveSettings) => string[])[] = [
  ({ setting, tls }) =>
    when(
      !tls && setting('TRUSTED_PROXY') === undefined,
      'MODE=live refuses plain HTTP: give TLS_CERT and TLS_KEY, or name the proxy that ends TLS in TRUSTED_PROXY.',
    ),
  ({ setting }) =>
    keyNames
      .filter(name => setting(name) === undefined && setting(`${name}_FILE`) === undefined)
      .map(name => `MODE=live: ${name}_FILE (or ${name}) is required.`),
  ({ setting }) =>
    when(
      !setting('PUBLIC_URL')?.startsWith('https://'),
      'MODE=live: PUBLIC_URL is required, and must begin with https://: shoppers are sent there.',
    ),
  ({ setting }) =>
    (setting('TRUSTED_PROXY') ?? '')
      .split(',')
      .map(part => part.trim())
      .filter(isTooWide)
      .map(network => `MODE=live: TRUSTED_PROXY trusts ${network}, which is nearly everybody: name your proxies.`),
  ({ setting, host }) =>
    when(
      setting('METRICS_PORT') !== undefined && setting('METRICS_TOKEN_FILE') === undefined && isPublic(host),
      `MODE=live: METRICS_PORT is open to everybody on HOST ${host}: give METRICS_TOKEN_FILE.`,
    ),
  ({ setting }) =>
    secretFiles
      .flatMap(name => (setting(name) === undefined ? [] : [[name, setting(name)!] as const]))
      .filter(([, path]) => othersMayRead(path))
      .map(([name, path]) => `MODE=live: ${name} names ${path}, which others may read: set its mode to 0600.`),
  ({ partners }) =>
    partners
      .filter(([, url]) => url.startsWith('http:'))
      .map(([place]) => `MODE=live: ${place} is an address without TLS: it must begin with https://.`),
]

const keyNames = ['SEAL_KEY', 'LOOKUP_KEY']
// They hold keys, tokens or passwords. Those of keyNames are refused in a sandbox too.
const secretFiles = ['TLS_KEY', 'SEED_FILE', 'WALLET_FILE', 'THREE_D_SECURE_FILE', 'REDIRECT_METHODS_FILE', 'METRICS_TOKEN_FILE']

/** Networks of more than sixteen million addresses, as `0.0.0.0/0` and what comes near it. */
function isTooWide(network: string): boolean {
  const [address, bits] = network.split('/') as [string, string | undefined]
  return bits !== undefined && Number(bits) < (isIP(address) === 6 ? 32 : 8)
}

const ownNetworks = new BlockList()
for (const [network, bits] of [
  ['127.0.0.0', 8],
  ['10.0.0.0', 8],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
] as const)
  ownNetworks.addSubnet(network, bits)
ownNetworks.addAddress('::1', 'ipv6')
ownNetworks.addSubnet('fc00::', 7, 'ipv6')

/** An address that others than the own machine and network may reach; of a name nobody knows. */
const isPublic = (host: string): boolean =>
  host !== 'localhost' && (isIP(host) === 0 || !ownNetworks.check(host, isIP(host) === 6 ? 'ipv6' : 'ipv4'))
