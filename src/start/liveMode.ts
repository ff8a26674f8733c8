// What live mode refuses, each by name: a table, because each row was once somebody's accident.

import { existsSync } from 'node:fs'
import { bitsOfChance, tokenBits } from '../merchants/access/secretStrength.ts'
import { fileParameters, parametersOf, serverWithoutTls, socketFoldersOf } from '../platform/database/servers.ts'
import { othersMayRead, whoMayListen, whoMayPlace, whoMayReplace } from '../platform/files.ts'
import { decoded } from '../platform/network.ts'
import { addressesIn, isNetwork, isPublicAddress, networksMost, networksOf } from './networks.ts'

export type LiveSettings = {
  /** A setting of the environment; undefined when it is empty or absent. */
  setting(name: string): string | undefined
  readonly host: string
  readonly dataDir: string
  readonly tls: boolean
  /** What Node was started with, of the command line and of NODE_OPTIONS. */
  readonly options: readonly string[]
  /** Addresses of other servers that we call, by the place where they stand. */
  readonly partners: readonly (readonly [place: string, url: string])[]
  readonly metricsToken: string | undefined
}

/** A sentence for each refusal. */
export const liveRefusals = (given: LiveSettings): string[] => rules.flatMap(rule => rule(given))

const when = (holds: boolean, sentence: string): string[] => (holds ? [sentence] : [])

const rules: readonly ((given: LiveSettings) => string[])[] = [
  ({ setting, tls }) =>
    when(
      !tls && networksOf(setting('TRUSTED_PROXY')).length === 0,
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
  ({ setting }) => {
    const networks = networksOf(setting('TRUSTED_PROXY')).filter(isNetwork).slice(0, networksMost) // what else stands there is named before
    const wide = networks.filter(network => areTooWide([network]))
    return (wide.length > 0 || !areTooWide(networks) ? wide : [networks.join(' and ')]).map(
      network => `MODE=live: TRUSTED_PROXY trusts ${network}, which is nearly everybody: name your proxies.`,
    )
  },
  ({ setting, host }) =>
    when(
      setting('METRICS_PORT') !== undefined && setting('METRICS_TOKEN_FILE') === undefined && isPublicAddress(host),
      `MODE=live: METRICS_PORT is open to everybody on HOST ${host}: give METRICS_TOKEN_FILE.`,
    ),
  ({ metricsToken }) =>
    when(
      metricsToken !== undefined && bitsOfChance(metricsToken) < tokenBits,
      'MODE=live: METRICS_TOKEN_FILE holds a token that is too weak: it must hold 128 bits of chance (openssl rand -hex 24).',
    ),
  ({ setting, options }) =>
    secretFiles
      .flatMap((name): [string, string][] => (setting(name) === undefined ? [] : [[name, setting(name)!]]))
      .concat(filesOfUrls(setting).filter(([name]) => name.startsWith('sslkey ')))
      .concat(preloaded(options).filter(([name]) => name.startsWith('--env')))
      .filter(([, path]) => othersMayRead(path))
      .map(([name, path]) => `MODE=live: ${name} names ${path}, which others may read: set its mode to 0600.`),
  ({ setting, options }) =>
    [...secretFiles, ...keyNames.map(name => `${name}_FILE`), ...plainFiles]
      .flatMap((name): [string, string][] => (setting(name) === undefined ? [] : [[name, setting(name)!]]))
      .concat(filesOfUrls(setting), preloaded(options))
      .flatMap(([name, path]) => refusedOf(name, path, whoMayPut(path))),
  ({ setting }) => {
    // What stands there Node runs in the place of the program, and has made the folder by now.
    const folder = setting('NODE_COMPILE_CACHE')
    return folder === undefined ? [] : refusedOf('NODE_COMPILE_CACHE', folder, whoMayPlace(folder, { strict: false }))
  },
  ({ options }) =>
    packagesOf(options).map(
      ([name, what]) =>
        `MODE=live: ${name} names ${what}, which is no path: Node looks for packages in the working directory. Give the path of its file.`,
    ),
  ({ setting, dataDir }) =>
    [
      ...(setting('DATABASE_URL') === undefined ? [['DATA_DIR', dataDir] as const] : []),
      ...(setting('BACKUP_DIR') === undefined ? [] : [['BACKUP_DIR', setting('BACKUP_DIR')!] as const]),
      ...['NODE_PATH', 'SSL_CERT_DIR'].flatMap(name => foldersOf(setting(name)).map(path => [name, path] as const)),
    ].flatMap(([name, path]) => refusedOf(name, path, whoMayPlace(path, { strict: true }))),
  ({ options }) =>
    options
      .map(option => option.replaceAll('_', '-').replace(/^-(?=[a-z]{2})/, '--')) // V8 takes its own with one hyphen too
      .flatMap(option =>
        nodeOptions
          .filter(([pattern]) => pattern.test(option))
          .map(([, why]) => `MODE=live: Node is started with ${option}, which ${why}.`),
      ),
  ({ setting }) =>
    nodeSettings
      .filter(([name, pattern]) => pattern.test(setting(name) ?? ''))
      .map(([name, , why]) => `MODE=live: ${name} is set, which ${why}.`),
  ({ setting }) => databases.flatMap(place => databaseRefusals(place, setting(place) ?? '')),
  ({ partners }) =>
    partners
      .filter(([, url]) => url.startsWith('http:'))
      .map(([place]) => `MODE=live: ${place} is an address without TLS: it must begin with https://.`),
]

/** The driver tells the password to whoever answers. */
export const databaseRefusals = (place: string, url: string): string[] => {
  const host = serverWithoutTls(url)
  return [
    ...when(
      host !== undefined,
      `MODE=live: ${place} reaches ${host} without TLS, or whatever its certificate: add ?sslmode=verify-full, or ?sslmode=disable where only your own machines hear it.`,
    ),
    ...socketFoldersOf(url).flatMap(folder => {
      const who = whoMayListen(folder)
      return when(
        who !== undefined,
        `MODE=live: ${place} reaches a socket in ${folder}, which ${who}, and whoever listens there would be told the password: have the server make it in a folder of its own (unix_socket_directories).`,
      )
    }),
  ]
}

const refusedOf = (name: string, path: string, who: string | undefined): string[] =>
  when(who !== undefined, `MODE=live: ${name} names ${path}, which ${who}.`)

const keyNames = ['SEAL_KEY', 'LOOKUP_KEY']
// They hold keys, tokens or passwords. Those of keyNames are refused in a sandbox too.
const secretFiles = [
  'TLS_KEY',
  'SEED_FILE',
  'WALLET_FILE',
  'THREE_D_SECURE_FILE',
  'REDIRECT_METHODS_FILE',
  'SFTP_KEY_FILE',
  'METRICS_TOKEN_FILE',
]

// What they say decides where money and data go, and whom Node and its OpenSSL believe.
const plainFiles = [
  ...['TLS_CERT', 'ACQUIRERS_FILE', 'SLIPS_FILE', 'RISK_RULES_FILE', 'CARD_BRANDS_FILE'],
  ...['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'OPENSSL_CONF'],
]

const databases = ['DATABASE_URL', 'REPORTING_DATABASE_URL']

/** The files that decide with whom the connections to databases speak. */
const filesOfUrls = (setting: LiveSettings['setting']): [string, string][] =>
  databases.flatMap(place =>
    fileParameters.flatMap((name): [string, string][] => {
      const path = parametersOf(setting(place) ?? '').get(name)
      return path ? [[`${name} of ${place}`, path]] : []
    }),
  )

/** As Node reads NODE_OPTIONS: a space ends an option, but for those between quotation marks, where a backslash takes the next sign as it is. */
export const nodeOptionsIn = (text: string): string[] =>
  [...text.matchAll(/(?:[^ "]|"(?:\\[\s\S]|[^\\"])*"?)+/g)]
    .map(([option]) => option.replace(/"((?:\\[\s\S]|[^\\"])*)"?/g, (_, inside: string) => inside.replace(/\\([\s\S])/g, '$1')))
    .filter(option => option !== '')

/** Where Node looks for packages that it does not find beside the program, and OpenSSL, at each connection anew, for whom to believe. */
const foldersOf = (list = ''): string[] => list.split(':').filter(path => path !== '')

/** The files that Node runs before the gateway, or takes settings from, by their option. */
const preloaded = (options: readonly string[]): [string, string][] =>
  ranFirst(options)
    .filter(isPath)
    .map(([name, path]) => [name, /^file:/i.test(path) ? (decoded(URL.parse(path)?.pathname ?? '') ?? '') : path])

const isPath = ([name, path]: readonly [string, string]): boolean =>
  /^(file:|\.{0,2}\/)/i.test(path) || /^--(env|snapshot)/.test(name)

/** Of what is not there yet too: Node looks for `x.js` where `x` is none. */
const whoMayPut = (path: string): string | undefined =>
  existsSync(path) ? whoMayReplace(path) : whoMayPlace(path, { strict: true })

/** What is no path is a package, which Node looks for in the working directory and all folders above it, or code that may name one. */
const packagesOf = (options: readonly string[]): [string, string][] => ranFirst(options).filter(given => !isPath(given))

const ranFirst = (options: readonly string[]): [string, string][] =>
  options.flatMap((option, at, all): [string, string][] => {
    const [, name, path = all[at + 1] ?? ''] =
      /^(-r|--require|--import|--(?:experimental[-_])?loader|--env[-_]file(?:[-_]if[-_]exists)?|--snapshot[-_]blob)(?:=(.*))?$/.exec(
        option,
      ) ?? []
    return name === undefined ? [] : [[name, path]]
  })

const opensMemory = 'opens the memory of the process, or writes it to files'
const weakensTls = 'weakens TLS, or trusts what others say of it'
const passesAddresses = 'sends what goes out through another server, past the rules of EGRESS_ALLOW'
const writesOut = 'writes out what is sent and received'

const nodeOptions: readonly (readonly [option: RegExp, why: string])[] = [
  [/^--(inspect|debug|report|heap-?snapshot|heap-prof|cpu-prof|diagnostic-dir|abort-on-uncaught)/, opensMemory],
  [/^--(tls-keylog|trace-tls|trace-event|trace$)/, writesOut],
  [/^--(tls-min-v1\.[01]|tls-cipher-list|openssl-(legacy|shared|config)|security-revert)/, weakensTls],
  [/^--insecure-http-parser/, 'lets requests be read in two ways'],
  [/^--use-env-proxy/, passesAddresses],
  [/^--experimental-(default-)?config-file/, 'takes options from a file that nobody looks at here'],
]

const nodeSettings: readonly (readonly [name: string, value: RegExp, why: string])[] = [
  ['NODE_TLS_REJECT_UNAUTHORIZED', /^0$/, 'believes every certificate'],
  ['NODE_USE_ENV_PROXY', /^1$/, passesAddresses],
  ['NODE_DEBUG', /./, writesOut],
  ['NODE_DEBUG_NATIVE', /./, writesOut],
]

/** More than a /8 of IPv4 or a /32 of IPv6, all together: a single proxy beside them, and whatever is less than a 256th or a 65536th of them, is none too many. */
function areTooWide(networks: readonly string[]): boolean {
  const { four, six } = addressesIn(networks)
  return four >> 16n > 256n || six >> 80n > 65_536n
}
