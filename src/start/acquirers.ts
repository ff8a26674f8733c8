// Acquirers: those of ACQUIRERS_FILE, and in a sandbox without one the sandbox's own host for testMode=EXTERNAL. docs/operating-acquirer.md describes the file.

import { dirname, resolve } from 'node:path'
import { type Acquirer, type AcquirerOptions, type Address, makeAcquirer } from '../connectors/cards/acquirer.ts'
import { dialectOf } from '../connectors/cards/iso8583/dialects.ts'
import { macKeyBytes } from '../connectors/cards/iso8583/mac.ts'
import { profileSchema } from '../connectors/cards/iso8583/profile.ts'
import type { AcquirerMetrics } from '../connectors/cards/metrics.ts'
import { cardRouting, type RouteCounters } from '../connectors/cards/routing.ts'
import { type Lease, leaseTraces } from '../connectors/cards/terminals/lease.ts'
import { releaseTerminals, type TraceNumbers } from '../connectors/cards/terminals/store.ts'
import type { Connector, Mode } from '../connectors/connector.ts'
import type { Clock, Random } from '../platform/clock.ts'
import type { Connection } from '../platform/database/connect.ts'
import type { InstallationMode } from '../platform/database/installation.ts'
import { OperatorError } from '../platform/errors.ts'
import { whoMayReplace } from '../platform/files.ts'
import type { Log } from '../platform/log.ts'
import {
  file,
  filled,
  filledListOf,
  flag,
  number,
  type Output,
  object,
  oneOf,
  optional,
  read,
  readJsonFile,
  text,
  where,
  whole,
} from '../platform/schema.ts'
import { type ClientTls, readTlsFiles, spokenTls, tlsFiles } from '../platform/tls.ts'
import { parseKey, readKeyFile } from '../vault/keys.ts'

export type AcquirersParts = {
  readonly db: Connection
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  /** No other process can be at work on this database: terminals that are leased were those of the dead. */
  readonly alone: boolean
}

/** What runs: connectors to hand to the gateway, and the acquirers themselves for metrics. */
export type Acquirers = {
  readonly connectors: readonly (Connector & { readonly counters: RouteCounters })[]
  readonly acquirers: readonly Acquirer[]
  metrics(): AcquirerMetrics
  stop(): Promise<void>
}

export async function startAcquirers(options: readonly AcquirerOptions[], parts: AcquirersParts): Promise<Acquirers> {
  const { db, clock, random, log, alone } = parts
  if (alone) await releaseTerminals(db)
  const leases: Lease[] = []
  const acquirers: Acquirer[] = []
  for (const one of options) {
    const warn = (error: Error) => log.warn({ why: error.message }, 'terminals')
    const shown = () => JSON.stringify(acquirer ? linesOf(acquirer) : [])
    let acquirer: Acquirer | undefined
    const lease = await leaseTraces({ db, clock, random, onError: warn, lines: shown }, one)
    leases.push(lease)
    acquirer = makeAcquirer(one, {
      traces: lease,
      clock,
      random: () => random.bytes(4).readUInt32BE() / 2 ** 32,
      say: text => log.warn({ why: text }, 'acquirer'),
      show: text => log.info({ wire: text }, 'message'),
    })
    acquirers.push(acquirer)
  }
  const modes: readonly Mode[] = ['external', 'live']
  const connectors = modes.flatMap(mode => {
    const ofMode = acquirers.filter(acquirer => acquirer.options.modes.includes(mode))
    return ofMode.length === 0 ? [] : [cardRouting(mode, ofMode)]
  })
  return {
    connectors,
    acquirers,
    metrics: () => ({
      routes: connectors.flatMap(({ name, counters }) =>
        Object.entries(counters).map(([acquirer, counts]) => ({ mode: name.replace('cards ', ''), acquirer, counts })),
      ),
      lines: acquirers.flatMap(({ options, link }) =>
        link.lines.map((line, at) => ({
          acquirer: options.name,
          line: at + 1,
          up: line.state() === 'up',
          inFlight: line.inFlight(),
          counts: { ...line.counters },
        })),
      ),
    }),
    async stop() {
      await Promise.all(acquirers.map(acquirer => acquirer.stop()))
      await Promise.all(leases.map(lease => lease.stop()))
    },
  }
}

/** What people may see of the lines of this process, in `bin/tollgate acquirers status`. */
const linesOf = ({ link }: Acquirer) =>
  link.lines.map(line => ({ name: line.name, state: line.state(), inFlight: line.inFlight(), ...line.counters }))

const seconds = (least: number, most: number) => number(least, most, `must be a number of seconds from ${least} to ${most}`)
const upTo = (length: number) => text(new RegExp(`^.{0,${length}}$`), `must be a text of at most ${length} characters`)

const acquirerSchema = object({
  name: text(/^[a-z0-9-]{1,32}$/, 'must be 1 to 32 lower-case letters, digits and hyphens'),
  institute: optional(upTo(100), 'Acquirer'),
  modes: filledListOf(oneOf(['external', 'live'])),
  lines: filledListOf(object({ host: text(/^[A-Za-z0-9.:-]+$/, 'must be an address or a host name'), port: whole(1, 65_535) })),
  /** File names are relative to the file that names them. */
  tls: optional(tlsFiles),
  /** Live mode takes lines without TLS only where this says so. */
  withoutTls: optional(flag, false),
  /** How its host speaks. */
  profile: optional(profileSchema, { like: '1987' }),
  /** A file of mode 0600, relative to the file that names it: 32 hex characters. */
  macKey: optional(filled),
  acquirerId: text(/^\d{1,11}$/, 'must be a text of 1 to 11 digits'),
  merchantId: text(/^[\x21-\x7e]{1,15}$/, 'must be 1 to 15 characters without spaces'),
  /** One for each gateway process. */
  terminals: filledListOf(text(/^[\x21-\x7e]{1,8}$/, 'must be 1 to 8 characters without spaces')),
  category: optional(text(/^\d{4}$/, 'must be a text of 4 digits'), '5999'),
  merchantName: optional(upTo(23), ''),
  merchantCity: optional(upTo(13), ''),
  merchantState: optional(upTo(2), ''),
  merchantCountry: optional(text(/^([A-Z]{2})?$/, 'must be 2 upper-case letters'), ''),
  statement: optional(oneOf(['descriptor', 'name']), 'descriptor'),
  facilitator: optional(flag, false),
  signOn: optional(flag, true),
  partialReversal: optional(flag, true),
  answerWithinSeconds: optional(seconds(0.05, 60), 20),
  recoverAfterSeconds: optional(seconds(0, 3600), 15),
  echoSeconds: optional(seconds(0.05, 3600), 60),
  echoAnswerSeconds: optional(seconds(0.05, 60), 10),
  inFlightMax: optional(whole(1, 100_000), 2000),
  breakerTimeouts: optional(whole(1, 100_000), 10),
  breakerSeconds: optional(seconds(0.05, 3600), 5),
  showMessages: optional(flag, false),
})

/** DE11 has six digits. */
const allTraceNumbers: TraceNumbers = { from: 1, to: 999_999 }

/** ACQUIRERS_FILE. */
export const acquirersSchema = file({
  acquirers: where(
    filledListOf(acquirerSchema),
    acquirers => new Set(acquirers.map(({ name }) => name)).size === acquirers.length,
    'holds two acquirers of the same name',
  ),
  /** Cells divide them, where an acquirer has one id for all. */
  traceNumbers: optional(
    where(
      object({ from: whole(1, 999_999), to: whole(1, 999_999) }),
      ({ from, to }) => to - from >= 299_999,
      'must be 300000 numbers or more',
    ),
    allTraceNumbers,
  ),
})

/** DE32 toward the sandbox's own acquirer. */
export const sandboxAcquirerId = '423935'

/** The sandbox's own acquirer. */
export function sandboxAcquirer(address: () => Promise<Address>): AcquirerOptions {
  const own = {
    name: 'sandbox',
    institute: 'Tollgate acquirer host',
    modes: ['external'],
    lines: [{ host: 'sandbox', port: 1 }],
    acquirerId: sandboxAcquirerId,
    merchantId: 'SANDBOX00000001',
    merchantName: 'SANDBOX',
    merchantCity: 'SAO PAULO',
    merchantState: 'SP',
    merchantCountry: 'BR',
    terminals: Array.from({ length: 32 }, (_, at) => `TOLL${String(at + 1).padStart(4, '0')}`),
    answerWithinSeconds: 10,
  }
  return optionsOf(read(acquirerSchema, own, 'the acquirer of the sandbox'), allTraceNumbers, [address])
}

/** Reads ACQUIRERS_FILE; every mistake is named with its place. */
export function readAcquirers(path: string, mode: InstallationMode = 'sandbox'): AcquirerOptions[] {
  const source = `ACQUIRERS_FILE ${path}`
  const { acquirers, traceNumbers } = read(acquirersSchema, readJsonFile(path, source), source)
  const wrong: string[] = []
  const options = acquirers.map((acquirer, at) => {
    const fail = (mistake: string) => wrong.push(`${source}: acquirers[${at}]${mistake}.`)
    if (mode === 'live' && !acquirer.tls && !acquirer.withoutTls)
      fail(' has lines without TLS: give tls, or say "withoutTls": true where the line itself is protected')
    const addresses = acquirer.lines.map(line => async () => line)
    const macKey = readMacKey(acquirer, dirname(resolve(path)), mode, fail)
    const tls =
      acquirer.tls && readTlsFiles(acquirer.tls, dirname(resolve(path)), mode === 'live', mistake => fail(`.${mistake}`))
    return optionsOf(acquirer, traceNumbers, addresses, tls, macKey)
  })
  if (wrong.length > 0) throw new OperatorError(wrong.join('\n'))
  return options
}

/** The key that messages are authenticated with, or that brings the working keys. */
function readMacKey(
  { profile, macKey }: Output<typeof acquirerSchema>,
  folder: string,
  mode: InstallationMode,
  fail: (mistake: string) => void,
): Buffer | undefined {
  const wanted = dialectOf(profile).mac !== undefined
  if (wanted !== (macKey !== undefined))
    fail(wanted ? '.macKey is missing: its profile has a mac' : '.macKey is of no use: its profile has no mac')
  if (!wanted || macKey === undefined) return undefined
  const path = resolve(folder, macKey)
  const who = mode === 'live' ? whoMayReplace(path) : undefined
  if (who !== undefined) fail(`.macKey names ${path}, which ${who}`)
  try {
    return parseKey(readKeyFile(path, 'macKey'), 'macKey', macKeyBytes)
  } catch (error) {
    fail(`.${(error as Error).message.replace(/\.$/, '')}`)
  }
}

function optionsOf(
  acquirer: Output<typeof acquirerSchema>,
  traceNumbers: TraceNumbers,
  addresses: AcquirerOptions['addresses'],
  tls?: ClientTls,
  macKey?: Buffer,
): AcquirerOptions {
  const {
    lines: _,
    tls: _files,
    withoutTls: _said,
    profile,
    macKey: _file,
    acquirerId,
    merchantId,
    category,
    statement,
    facilitator,
    ...rest
  } = acquirer
  const { merchantName, merchantCity, merchantState, merchantCountry, ...options } = rest
  const place = { name: merchantName, city: merchantCity, state: merchantState, country: merchantCountry }
  return {
    ...options,
    traceNumbers,
    addresses,
    account: { acquirerId, merchantId, category, ...place, statement, facilitator },
    dialect: dialectOf(profile),
    ...(macKey && { macKey }),
    ...(tls && { tls: { ...tls, ...spokenTls } }),
  }
}
