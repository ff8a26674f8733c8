// The environment, checked at the start. Every bad value is named, all at once; nothing starts half configured.

import { existsSync, readFileSync } from 'node:fs'
import { type BlockList, isIP } from 'node:net'
import { availableParallelism } from 'node:os'
import { join, resolve } from 'node:path'
import { type RedirectMethod, readRedirectMethods } from '../connectors/bankTransfer/redirectMethods.ts'
import { readCardBrands } from '../connectors/cards/brandsFile.ts'
import { type Directories, readDirectoryFile, readWalletFile, type Wallets } from '../connectors/partners.ts'
import { readSlipsFile, type SlipAccounts } from '../connectors/slips/accounts.ts'
import { type CardBrands, knowBrands, otherBrands, standardBrands } from '../contract/brands.ts'
import { nearest } from '../contract/nearest.ts'
import type { HostRules } from '../http/host.ts'
import { bitsOfChance, tokenBits } from '../merchants/access/secretStrength.ts'
import { followingDatabase, type ReportingDatabase } from '../platform/database/reporting.ts'
import { addressRefusal, parametersOf, serversOf, sessionWish } from '../platform/database/servers.ts'
import type { Egress } from '../platform/egress/address.ts'
import { OperatorError } from '../platform/errors.ts'
import { isFile, readPlainFile, whyUnread } from '../platform/files.ts'
import { type LogLevel, logLevels } from '../platform/log.ts'
import { type MailServer, readMailServer } from '../platform/mail.ts'
import { callable, decoded, isThisMachine } from '../platform/network.ts'
import type { Collector } from '../platform/otlp.ts'
import { type Kept, withDays } from '../platform/retention/kept.ts'
import { looksLikeKey } from '../platform/sftp/server.ts'
import { isUsable } from '../platform/tls.ts'
import { type KeptRequests, keptRequests } from '../reporting/requests/keep.ts'
import type { KeyKind } from '../vault/keyFile.ts'
import { type Keys, makeKeys, parseKeys, readKeyFile, sandboxKey } from '../vault/keys.ts'
import { allKept } from './kept.ts'
import { liveRefusals, nodeOptionsIn } from './liveMode.ts'
import { isPublicAddress, isPublicName, networkList } from './networks.ts'

export type Config = {
  readonly mode: 'sandbox' | 'live'
  readonly port: number
  readonly host: string
  /** Where a sandbox's demo shop listens; absent = there is none. */
  readonly demoShopPort?: number
  readonly dataDir: string
  /** Absent = the embedded PostgreSQL in DATA_DIR. */
  readonly databaseUrl?: string
  /** A database that follows that one, for readings of many payments; absent = there is none. */
  readonly reportingUrl?: string
  /** Whom the embedded server runs as when root starts the gateway; absent = see chooseAccount. */
  readonly embeddedUser?: string
  /** Where backups of the embedded PostgreSQL stand, and what it writes ahead is kept; absent = it is not. */
  readonly backupDir?: string
  /** PUBLIC_URL, or the address of HOST and PORT. */
  readonly publicUrl: string
  /** A sandbox without PUBLIC_URL: addresses of ours follow the Host of a request. */
  readonly followsHost: boolean
  readonly tls?: { readonly cert: Buffer; readonly key: Buffer }
  readonly trustedProxies: BlockList
  /** Names under which a sandbox answers, beside localhost and the machine's addresses: those of the setting, of HOST and of PUBLIC_URL. */
  readonly sandboxHosts: ReadonlySet<string>
  readonly workers: number
  readonly logLevel: LogLevel
  /** Which addresses are called on a merchant's behalf. */
  readonly egress: Egress
  /** Absent = no metrics are served. */
  readonly metricsPort?: number
  /** Who reads metrics sends it as a bearer token; absent = nobody is asked. */
  readonly metricsToken?: string
  /** Whom mail of alerts goes to, by which server; absent = nobody is told. */
  readonly alertMail?: { readonly server: MailServer; readonly from: string; readonly to: readonly string[] }
  /** Where spans are sent, and of which share of the requests; absent = nothing is traced. */
  readonly traces?: { readonly collector: Collector; readonly share: number }
  readonly seedFile?: string
  /** Redirect methods of our own file and of REDIRECT_METHODS_FILE, which may replace them brand by brand. */
  readonly redirectMethods: readonly RedirectMethod[]
  /** Those of CARD_BRANDS_FILE in front of ours, which they replace brand by brand. */
  readonly cardBrands: CardBrands
  /** The brands that settings may name: of cards, of the interface, and of redirect methods. */
  readonly brandNames: ReadonlySet<string>
  readonly wallets: Wallets
  readonly directories: Directories
  /** The accounts that slips are issued for; those of a sandbox without SLIPS_FILE are for show. */
  readonly slips: SlipAccounts
  /** Our private key for SFTP. */
  readonly sftpKey?: string
  readonly acquirersFile?: string
  readonly riskRulesFile?: string
  /** Which requests of the interface leave a record. */
  readonly requestRecords: KeptRequests
  /** What is kept for a time, with the days that are set. */
  readonly retention: readonly Kept[]
  /** The files of the keys; absent: it stands in the environment. */
  readonly keyFiles: Readonly<Partial<Record<KeyKind, string>>>
  /** Reads the keys. Only who gives chance has a sandbox make those that are missing. */
  keys(random?: () => Buffer): Keys
}

// A sandbox calls receivers on the same machine or network. Link-local addresses, where clouds keep their credentials, are not among them.
const privateNetworks = '127.0.0.0/8,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,::1,fc00::/7'
const demoSlipsFile = new URL('../../seeds/slips.json', import.meta.url)
const ownMethodsFile = new URL('../connectors/bankTransfer/redirectMethods.json', import.meta.url)

export type Environment = Readonly<Record<string, string | undefined>>

/** Throws an OperatorError with all that is wrong with the environment, a line each. `options`: those that Node was started with. */
export function readConfig(environment: Environment, projectFolder: string, options: readonly string[] = []): Config {
  const wrong: string[] = []
  const known = new Set(keySettings)
  const setting = (name: string) => {
    known.add(name)
    return environment[name] === '' ? undefined : environment[name]
  }
  const fail = <Value>(name: string, rule: string, instead: Value): Value => {
    wrong.push(`${name} ${rule}.`)
    return instead
  }
  const oneOf = <Word extends string>(name: string, words: readonly Word[], otherwise: Word): Word => {
    const value = setting(name) ?? otherwise
    return words.includes(value as Word)
      ? (value as Word)
      : fail(name, `must be one of ${words.join(', ')}, not ${JSON.stringify(value)}`, otherwise)
  }
  const whole = (name: string, min: number, max: number, otherwise: number): number => {
    const value = setting(name) ?? String(otherwise)
    const number = Number(value)
    return /^\d+$/.test(value) && number >= min && number <= max
      ? number
      : fail(name, `must be a whole number from ${min} to ${max}, not ${JSON.stringify(value)}`, otherwise)
  }
  const file = (name: string): Buffer | undefined => {
    const path = setting(name)
    if (path === undefined) return undefined
    try {
      return readPlainFile(path)
    } catch {
      return fail(name, `names ${path}, which ${whyUnread(path)}`, undefined)
    }
  }

  const mode = oneOf('MODE', ['sandbox', 'live'], 'sandbox')
  const port = whole('PORT', 0, 65_535, 8080)
  const beside = port === 0 || port === 65_535 ? 0 : port + 1
  const demoShopPort = setting('DEMO_SHOP_PORT') === 'off' ? undefined : whole('DEMO_SHOP_PORT', 0, 65_535, beside)
  const host = setting('HOST') ?? '127.0.0.1'
  if (isIP(host) === 0 && !/^[a-zA-Z0-9.-]+$/.test(host)) fail('HOST', 'must be an address or a host name', undefined)
  const dataDir = resolve(setting('DATA_DIR') ?? join(projectFolder, 'data'))
  const database = (name: string): string | undefined => {
    const url = setting(name)
    const refusal = url === undefined ? undefined : addressRefusal(url)
    return refusal === undefined ? url : fail(name, refusal, undefined)
  }
  const databaseUrl = database('DATABASE_URL')
  const wish = sessionWish(databaseUrl ?? '')
  if (wish !== undefined && wish !== 'read-write' && wish !== 'primary')
    fail('DATABASE_URL', `asks for target_session_attrs=${wish}: the gateway writes, so it must be read-write`, undefined)
  // Sessions tell by it what they are, and with which keys they write.
  if (parametersOf(databaseUrl ?? '').has('application_name'))
    fail('DATABASE_URL', 'must not set application_name: the gateway names its sessions', undefined)
  const reportingUrl = database('REPORTING_DATABASE_URL')
  if (serversOf(reportingUrl ?? '').length > 1)
    fail('REPORTING_DATABASE_URL', 'must name one server: put a proxy before several', undefined)
  const embeddedUser = setting('EMBEDDED_USER')
  const backupDir = setting('BACKUP_DIR')
  if (backupDir !== undefined && databaseUrl !== undefined)
    fail(
      'BACKUP_DIR',
      'is for the embedded database: the server that DATABASE_URL names keeps an archive by its own settings',
      undefined,
    )
  const [cert, key] = [file('TLS_CERT'), file('TLS_KEY')]
  if ((setting('TLS_CERT') === undefined) !== (setting('TLS_KEY') === undefined))
    fail('TLS_CERT and TLS_KEY', 'are needed together', undefined)
  const tls = cert && key ? { cert, key } : undefined
  if (tls && !isUsable(tls)) fail('TLS_CERT and TLS_KEY', 'hold no certificate and the key that belongs to it', undefined)
  const scheme = tls ? 'https' : 'http'
  const publicUrl = setting('PUBLIC_URL') ?? `${scheme}://${callable(host)}:${port}`
  if (!/^https?:\/\/[^/?#\s@\\]+$/.test(publicUrl) || !/^(\[.+\]|[a-z0-9._-]+)$/.test(URL.parse(publicUrl)?.hostname ?? ''))
    fail('PUBLIC_URL', 'must be a scheme and a host, for example https://pay.example, without a path', undefined)
  // As browsers write it: in lower case, without the port that goes without saying.
  const publicOrigin = URL.parse(publicUrl)?.origin ?? publicUrl
  const proxies = setting('TRUSTED_PROXY')
  const trustedProxies = networkList(proxies, rule => fail('TRUSTED_PROXY', rule, undefined))
  const hostNames = (setting('SANDBOX_HOSTS') ?? '')
    .split(',')
    .map(name => name.trim())
    .filter(name => name !== '')
  for (const name of hostNames.filter(name => !/^[a-zA-Z0-9._-]+$/.test(name)))
    fail('SANDBOX_HOSTS', `must be host names separated by commas, without ports, not ${JSON.stringify(name)}`, undefined)
  const publicName = URL.parse(publicUrl)?.hostname.replace(/^\[|\]$/g, '') ?? ''
  if (mode === 'sandbox' && oneOf('SANDBOX_OPEN', ['yes', 'no'], 'no') === 'no') {
    const open = 'the credentials of a sandbox are public: give MODE=live, or say SANDBOX_OPEN=yes'
    if (isPublicAddress(host))
      fail('HOST', `${host} is open to more than the own machine and private networks, and ${open}`, undefined)
    if (setting('PUBLIC_URL')?.startsWith('https:') && isPublicName(publicName))
      fail('PUBLIC_URL', `is a public address with https, and ${open}`, undefined)
  }
  const sandboxHosts = new Set([...hostNames, host, publicName].map(name => name.toLowerCase()))
  const egressNetworks = setting('EGRESS_ALLOW') ?? (mode === 'sandbox' ? privateNetworks : '')
  const egress: Egress = {
    allow: networkList(egressNetworks, rule => fail('EGRESS_ALLOW', rule, undefined)),
    httpsOnly: mode === 'live',
    standardPortsOnly: mode === 'live',
  }
  const metricsPort = setting('METRICS_PORT') === undefined ? undefined : whole('METRICS_PORT', 0, 65_535, 0)
  const metricsToken = file('METRICS_TOKEN_FILE')?.toString('utf8').trim()
  if (metricsToken !== undefined && metricsToken.length < 16)
    fail('METRICS_TOKEN_FILE', 'must hold a token of at least 16 characters', undefined)
  const mailUrl = setting('SMTP_URL')
  const mailServer = mailUrl === undefined ? undefined : readMailServer(mailUrl)
  if (mailUrl !== undefined && !mailServer)
    fail('SMTP_URL', 'must be smtp:// or smtps:// with a host, for example smtps://user:password@mail.example', undefined)
  const alertTo = listOf(setting('ALERT_TO'))
  const alertFrom = listOf(setting('ALERT_FROM'))
  if (new Set([mailUrl === undefined, alertTo.length === 0, alertFrom.length === 0]).size > 1)
    fail('SMTP_URL, ALERT_TO and ALERT_FROM', 'are needed together', undefined)
  for (const [name, addresses, most] of [
    ['ALERT_TO', alertTo, 20],
    ['ALERT_FROM', alertFrom, 1],
  ] as const)
    if (addresses.length > most || !addresses.every(isMailAddress))
      fail(
        name,
        `must be ${most === 1 ? 'a mail address' : 'mail addresses, separated by commas'}, for example ops@shop.example`,
        undefined,
      )
  const collector = setting('OTEL_EXPORTER_OTLP_ENDPOINT')
  const collectorUrl = collector === undefined ? undefined : URL.parse(`${collector.replace(/\/+$/, '')}/v1/traces`)
  if (collectorUrl === null || !/^(https?:)?$/.test(collectorUrl?.protocol ?? ''))
    fail('OTEL_EXPORTER_OTLP_ENDPOINT', 'must be the address of a collector, for example http://localhost:4318', undefined)
  else if (collectorUrl && collectorUrl.origin + collectorUrl.pathname !== collectorUrl.href)
    fail(
      'OTEL_EXPORTER_OTLP_ENDPOINT',
      'must hold no user name, password or query: what the collector asks for goes into OTEL_EXPORTER_OTLP_HEADERS',
      undefined,
    )
  const collectorHeaders = listOf(setting('OTEL_EXPORTER_OTLP_HEADERS')).map(pair => headerOf(pair))
  if (collectorHeaders.includes(undefined))
    fail('OTEL_EXPORTER_OTLP_HEADERS', 'must be headers as name=value, percent-encoded, separated by commas', undefined)
  if (collectorHeaders.length > 0 && collectorUrl?.protocol === 'http:' && !isOwnName(collectorUrl.hostname))
    fail('OTEL_EXPORTER_OTLP_HEADERS', 'would be sent to another machine without TLS', undefined)
  const share = setting('OTEL_TRACES_SAMPLER_ARG') ?? '1'
  if (!/^(0(\.\d{1,9})?|1(\.0*)?)$/.test(share))
    fail('OTEL_TRACES_SAMPLER_ARG', `must be a share from 0 to 1, not ${JSON.stringify(share)}`, undefined)
  const seedFile = setting('SEED_FILE')
  const acquirersFile = setting('ACQUIRERS_FILE')
  const riskRulesFile = setting('RISK_RULES_FILE')
  // They are read later, when a start cannot wait for a pipe any more.
  for (const [name, path] of Object.entries({
    SEED_FILE: seedFile,
    ACQUIRERS_FILE: acquirersFile,
    RISK_RULES_FILE: riskRulesFile,
  }))
    if (path !== undefined && !isFile(path))
      fail(name, `names ${path}, which ${existsSync(path) ? 'is no file' : 'does not exist'}`, undefined)
  const workers = whole('WORKERS', 1, 4 * availableParallelism(), 1)
  const logLevel = oneOf('LOG_LEVEL', logLevels, 'warn')
  const requestRecords = oneOf('REQUEST_RECORDS', keptRequests, mode === 'sandbox' ? 'all' : 'failed')
  const retention = withDays(allKept, setting('RETENTION_DAYS') ?? '', rule => fail('RETENTION_DAYS', rule, undefined))
  const parsed = <Value>(
    name: string,
    read: (text: string, source: string, strict: boolean) => Value,
    otherwise: Value,
  ): Value => {
    const text = file(name)
    try {
      return text === undefined ? otherwise : read(text.toString('utf8'), setting(name)!, mode === 'live')
    } catch (error) {
      wrong.push((error as Error).message)
      return otherwise
    }
  }
  const ownMethods = readRedirectMethods(readFileSync(ownMethodsFile, 'utf8'), 'redirectMethods.json')
  const givenMethods = parsed('REDIRECT_METHODS_FILE', readRedirectMethods, [])
  const cardBrands = parsed('CARD_BRANDS_FILE', readCardBrands, standardBrands)
  knowBrands(cardBrands)
  const wallets = parsed('WALLET_FILE', readWalletFile, {})
  const directories = parsed('THREE_D_SECURE_FILE', readDirectoryFile, {})
  const sftpKey = file('SFTP_KEY_FILE')?.toString('utf8')
  if (sftpKey !== undefined && !looksLikeKey(sftpKey))
    fail('SFTP_KEY_FILE', 'must hold a private key as ssh-keygen makes it, without a passphrase', undefined)
  const demoSlips = mode === 'live' ? new Map() : readSlipsFile(readFileSync(demoSlipsFile, 'utf8'), 'slips.json')
  const slips = parsed<SlipAccounts>('SLIPS_FILE', readSlipsFile, demoSlips)
  if (mode === 'live')
    wrong.push(
      ...liveRefusals({
        setting,
        host,
        dataDir,
        tls: tls !== undefined,
        options: [...options, ...nodeOptionsIn(setting('NODE_OPTIONS') ?? '')],
        partners: partnersOf(wallets, directories, givenMethods),
        metricsToken,
      }),
    )
  wrong.push(...misspelt(environment, known))
  if (wrong.length > 0) throw new OperatorError(wrong.join('\n'))
  const keys = (random?: () => Buffer) => readKeys(setting, mode, dataDir, random)
  const keyFile = (name: string, sandboxName: string) =>
    setting(`${name}_FILE`) ?? (setting(name) === undefined ? join(dataDir, 'keys', sandboxName) : undefined)
  const [sealFile, lookupFile] = [keyFile('SEAL_KEY', 'seal.key'), keyFile('LOOKUP_KEY', 'lookup.key')]
  if (mode === 'live') keys() // what is wrong with them is told before a database is started
  const redirectMethods = [...new Map([...ownMethods, ...givenMethods].map(method => [method.brand, method])).values()]
  const brandsOf = [
    ...cardBrands.rows.map(({ name }) => name),
    ...otherBrands,
    ...[...redirectMethods, ...slips.values()].map(({ brand }) => brand),
  ]

  return {
    mode,
    port,
    ...(mode === 'sandbox' && demoShopPort !== undefined && { demoShopPort }),
    host,
    dataDir,
    publicUrl: publicOrigin,
    followsHost: mode === 'sandbox' && setting('PUBLIC_URL') === undefined,
    trustedProxies,
    sandboxHosts,
    workers,
    logLevel,
    requestRecords,
    retention,
    egress,
    redirectMethods,
    cardBrands,
    brandNames: new Set(brandsOf),
    wallets,
    directories,
    slips,
    ...(databaseUrl !== undefined && { databaseUrl }),
    ...(reportingUrl !== undefined && { reportingUrl }),
    ...(embeddedUser !== undefined && { embeddedUser }),
    ...(backupDir !== undefined && { backupDir: resolve(backupDir) }),
    ...(tls && { tls }),
    ...(metricsPort !== undefined && { metricsPort }),
    ...(metricsToken !== undefined && { metricsToken }),
    ...(collectorUrl && {
      traces: {
        collector: {
          url: collectorUrl.href,
          headers: Object.fromEntries(collectorHeaders as [string, string][]),
        },
        share: Number(share),
      },
    }),
    ...(mailServer && { alertMail: { server: mailServer, from: alertFrom[0]!, to: alertTo } }),
    ...(sftpKey !== undefined && { sftpKey }),
    ...(seedFile !== undefined && { seedFile: resolve(seedFile) }),
    ...(riskRulesFile !== undefined && { riskRulesFile: resolve(riskRulesFile) }),
    ...(acquirersFile !== undefined && { acquirersFile: resolve(acquirersFile) }),
    keyFiles: { ...(sealFile !== undefined && { seal: sealFile }), ...(lookupFile !== undefined && { lookup: lookupFile }) },
    keys,
  }
}

const listOf = (text = ''): string[] =>
  text
    .split(',')
    .map(one => one.trim())
    .filter(one => one !== '')

function headerOf(pair: string): [name: string, value: string] | undefined {
  const [, name, encoded = ''] = /^([\w-]+)=([!-~]+)$/.exec(pair) ?? []
  const value = decoded(encoded)
  return name !== undefined && value !== undefined && /^[ -~]+$/.test(value) ? [name, value] : undefined
}

const isOwnName = (host: string): boolean => host === 'localhost' || isThisMachine(host.replace(/^\[|\]$/g, ''))

/** Plain ones, which need no quotes. */
const isMailAddress = (text: string): boolean => /^[\w.+-]{1,64}@[a-zA-Z0-9-]+(\.[a-zA-Z0-9-]+)*$/.test(text)

const keySettings = ['SEAL_KEY', 'LOOKUP_KEY'].flatMap(name => [name, `${name}_FILE`])

/**
 * Names of the environment that were probably meant to be ours: one slip away, of short ones only the case differs, since other programs have names
 * that are like them. Where the setting itself is given too, it is clear what was meant.
 */
function misspelt(environment: Environment, known: ReadonlySet<string>): string[] {
  return Object.keys(environment).flatMap(name => {
    if (environment[name] === '' || known.has(name) || name.startsWith('npm_')) return []
    const near = nearest(name, known, name.length < 8 ? 0 : 1)
    return near === undefined || environment[near] ? [] : [`${name} is not known: did you mean ${near}?`]
  })
}

/** The addresses of those whom we call, with the place where each stands. */
function partnersOf(
  wallets: Wallets,
  directories: Directories,
  methods: readonly RedirectMethod[],
): [place: string, url: string][] {
  const given = { WALLET_FILE: wallets, THREE_D_SECURE_FILE: directories }
  return [
    ...Object.entries(given).flatMap(([name, file]) =>
      Object.entries(file).flatMap(([mode, parts]) =>
        Object.entries(parts).flatMap(([part, url]): [string, string][] =>
          typeof url === 'string' ? [[`${name}: ${mode}.${part}`, url]] : [],
        ),
      ),
    ),
    ...methods.flatMap(({ brand, endpoints }) =>
      (['external', 'live'] as const).flatMap(mode =>
        Object.entries(endpoints[mode] ?? {}).flatMap(([part, url]): [string, string][] =>
          typeof url === 'string' ? [[`REDIRECT_METHODS_FILE: ${brand}.${mode}.${part}`, url]] : [],
        ),
      ),
    ),
  ]
}

/** Each key from its file, from the environment, or, in a sandbox, made once in DATA_DIR. */
function readKeys(
  setting: (name: string) => string | undefined,
  mode: Config['mode'],
  dataDir: string,
  random: (() => Buffer) | undefined,
): Keys {
  const text = (name: string, sandboxName: string): { text: string; source: string } => {
    const path = setting(`${name}_FILE`)
    if (path !== undefined) return { text: readKeyFile(path, `${name}_FILE`), source: `${name}_FILE (${path})` }
    const given = setting(name)
    if (given !== undefined) return { text: given, source: name }
    if (mode === 'live') throw new OperatorError(`${name}_FILE is required in live mode.`)
    return { text: sandboxKey(dataDir, sandboxName, random), source: `the key file ${join(dataDir, 'keys', sandboxName)}` }
  }
  const seal = text('SEAL_KEY', 'seal.key')
  const lookup = text('LOOKUP_KEY', 'lookup.key')
  const sealKeys = parseKeys(seal.text, seal.source)
  if (sealKeys.length === 0) throw new OperatorError(`${seal.source} is empty.`)
  const lookupKeys = parseKeys(lookup.text, lookup.source)
  if (lookupKeys.length === 0) throw new OperatorError(`${lookup.source} is empty.`)
  if (mode === 'live') refuseGuessable(sealKeys[0]!, seal.source, lookupKeys[0]!, lookup.source)
  return makeKeys(sealKeys, ...lookupKeys)
}

/** Only the newest of each are judged: older ones must stay until nothing needs them. */
function refuseGuessable(seal: Buffer, sealSource: string, lookup: Buffer, lookupSource: string): void {
  for (const [key, source] of [
    [seal, sealSource],
    [lookup, lookupSource],
  ] as const)
    if (bitsOfChance(key.toString('hex')) < tokenBits)
      throw new OperatorError(`MODE=live: the first key of ${source} was not made by chance: make one with openssl rand -hex 32.`)
  if (seal.equals(lookup))
    throw new OperatorError(`MODE=live: ${sealSource} and ${lookupSource} begin with the same key: make two.`)
}

/** How long a stop is waited for: longer than the requests that run may take. */
export const stopSeconds = 60

/** The database that readings of many payments go to, where there is one of its own. */
export const followerOf = ({ reportingUrl }: Config): ReportingDatabase | undefined =>
  reportingUrl === undefined ? undefined : followingDatabase({ connectionString: reportingUrl })

/** PUBLIC_URL; where the port was chosen by the system, with that port. */
export const publicUrlOf = (config: Config, port: number): string =>
  config.port === port ? config.publicUrl : config.publicUrl.replace(/:\d+$/, `:${port}`)

/** To which Hosts it answers: live mode, behind proxies and load balancers, to any. */
export const hostRules = ({ mode, sandboxHosts, followsHost }: Config): HostRules =>
  mode === 'sandbox' ? { names: sandboxHosts, followed: followsHost } : {}
