// Acquirers: those of ACQUIRERS_FILE, and in a sandbox without one the sandbox's own host for testMode=EXTERNAL. docs/operating-acquirer.md describes the file.

import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { ConnectionOptions } from 'node:tls'
import type { Clock, Random } from '../clock.ts'
import { type Acquirer, type AcquirerOptions, type Address, makeAcquirer } from '../connectors/acquirer.ts'
import type { Connector, Mode } from '../connectors/connector.ts'
import { dialects } from '../connectors/iso8583/dialects.ts'
import { cardRouting, type RouteCounters } from '../connectors/routing.ts'
import type { Connection } from '../database/connect.ts'
import { OperatorError } from '../errors.ts'
import type { Log } from '../gateway.ts'
import type { AcquirerFigures } from '../metrics.ts'
import {
  file,
  filled,
  filledListOf,
  flag,
  number,
  object,
  oneOf,
  optional,
  type Read,
  read,
  readJsonFile,
  text,
  where,
  whole,
} from '../schema.ts'
import { type Lease, leaseTraces } from '../terminals/lease.ts'

export type AcquirerParts = { readonly db: Connection; readonly clock: Clock; readonly random: Random; readonly log: Log }

/** What runs: connectors to hand to the gateway, and the acquirers themselves for metrics. */
export type Acquirers = {
  readonly connectors: readonly (Connector & { readonly counters: RouteCounters })[]
  readonly acquirers: readonly Acquirer[]
  figures(): AcquirerFigures
  stop(): Promise<void>
}

export async function startAcquirers(options: readonly AcquirerOptions[], parts: AcquirerParts): Promise<Acquirers> {
  const { db, clock, random, log } = parts
  const leases: Lease[] = []
  const acquirers: Acquirer[] = []
  for (const one of options) {
    const lease = await leaseTraces(db, clock, random, one.name, one.terminals, error =>
      log.warn({ why: error.message }, 'terminals'),
    )
    leases.push(lease)
    acquirers.push(
      makeAcquirer(one, {
        traces: lease,
        time: () => clock.real(),
        random: () => random.bytes(4).readUInt32BE() / 2 ** 32,
        say: text => log.info({ why: text }, 'acquirer'),
      }),
    )
  }
  const modes: readonly Mode[] = ['external', 'live']
  const connectors = modes.flatMap(mode => {
    const ofMode = acquirers.filter(acquirer => acquirer.options.modes.includes(mode))
    return ofMode.length === 0 ? [] : [cardRouting(mode, ofMode)]
  })
  return {
    connectors,
    acquirers,
    figures: () => ({
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

const seconds = (least: number, most: number) => number(least, most, `must be a number of seconds from ${least} to ${most}`)
const upTo = (length: number) => text(new RegExp(`^.{0,${length}}$`), `must be a text of at most ${length} characters`)

const acquirerSchema = object({
  name: text(/^[a-z0-9-]{1,32}$/, 'must be 1 to 32 lower-case letters, digits and hyphens'),
  institute: optional(upTo(100), 'Acquirer'),
  modes: filledListOf(oneOf(['external', 'live'])),
  lines: filledListOf(object({ host: text(/^[A-Za-z0-9.:-]+$/, 'must be an address or a host name'), port: whole(1, 65_535) })),
  /** File names are relative to the file that names them. */
  tls: optional(object({ ca: optional(filled), cert: optional(filled), key: optional(filled), serverName: optional(filled) })),
  dialect: optional(oneOf(Object.keys(dialects)), '1987'),
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
})

/** ACQUIRERS_FILE. */
export const acquirersSchema = file({
  acquirers: where(
    filledListOf(acquirerSchema),
    acquirers => new Set(acquirers.map(({ name }) => name)).size === acquirers.length,
    'holds two acquirers of the same name',
  ),
})

/** The sandbox's own acquirer. */
export function sandboxAcquirer(address: () => Promise<Address>): AcquirerOptions {
  const own = {
    name: 'sandbox',
    institute: 'Tollgate acquirer host',
    modes: ['external'],
    lines: [{ host: 'sandbox', port: 1 }],
    acquirerId: '423935',
    merchantId: 'SANDBOX00000001',
    merchantName: 'SANDBOX',
    merchantCity: 'SAO PAULO',
    merchantState: 'SP',
    merchantCountry: 'BR',
    terminals: Array.from({ length: 32 }, (_, at) => `TOLL${String(at + 1).padStart(4, '0')}`),
    answerWithinSeconds: 10,
  }
  return optionsOf(read(acquirerSchema, own, 'the acquirer of the sandbox'), [address])
}

/** Reads ACQUIRERS_FILE; every mistake is named with its place. */
export function readAcquirers(path: string): AcquirerOptions[] {
  const source = `ACQUIRERS_FILE ${path}`
  const { acquirers } = read(acquirersSchema, readJsonFile(path, source), source)
  const unreadable: string[] = []
  const options = acquirers.map((acquirer, at) => {
    const tls =
      acquirer.tls && readTls(acquirer.tls, dirname(resolve(path)), name => unreadable.push(`acquirers[${at}].tls.${name}`))
    return optionsOf(
      acquirer,
      acquirer.lines.map(line => async () => line),
      tls,
    )
  })
  if (unreadable.length > 0)
    throw new OperatorError(unreadable.map(place => `${source}: ${place} names a file that cannot be read.`).join('\n'))
  return options
}

function optionsOf(
  acquirer: Read<typeof acquirerSchema>,
  addresses: AcquirerOptions['addresses'],
  tls?: ConnectionOptions,
): AcquirerOptions {
  const { lines: _, tls: _files, acquirerId, merchantId, category, statement, facilitator, ...rest } = acquirer
  const { merchantName, merchantCity, merchantState, merchantCountry, ...options } = rest
  const place = { name: merchantName, city: merchantCity, state: merchantState, country: merchantCountry }
  return {
    ...options,
    addresses,
    account: { acquirerId, merchantId, category, ...place, statement, facilitator },
    ...(tls && { tls }),
  }
}

function readTls(
  tls: NonNullable<Read<typeof acquirerSchema>['tls']>,
  folder: string,
  fail: (name: string) => void,
): ConnectionOptions {
  const file = (name: 'ca' | 'cert' | 'key'): { [name: string]: Buffer } => {
    const path = tls[name]
    if (path === undefined) return {}
    try {
      return { [name]: readFileSync(resolve(folder, path)) }
    } catch {
      fail(name)
      return {}
    }
  }
  return {
    ...file('ca'),
    ...file('cert'),
    ...file('key'),
    ...(tls.serverName !== undefined && { servername: tls.serverName }),
    minVersion: 'TLSv1.2',
  }
}
