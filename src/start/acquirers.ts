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

const defaults = {
  institute: 'Acquirer',
  dialect: '1987',
  signOn: true,
  answerWithinSeconds: 20,
  recoverAfterSeconds: 15,
  echoSeconds: 60,
  echoAnswerSeconds: 10,
  inFlightMax: 2000,
  breakerTimeouts: 10,
  breakerSeconds: 5,
  partialReversal: true,
} as const

const accountDefaults = {
  category: '5999',
  name: '',
  city: '',
  state: '',
  country: '',
  statement: 'descriptor',
  facilitator: false,
} as const

/** The sandbox's own acquirer. */
export function sandboxAcquirer(address: () => Promise<Address>): AcquirerOptions {
  return {
    ...defaults,
    name: 'sandbox',
    institute: 'Tollgate acquirer host',
    modes: ['external'],
    addresses: [address],
    account: {
      ...accountDefaults,
      acquirerId: '423935',
      merchantId: 'SANDBOX00000001',
      name: 'SANDBOX',
      city: 'SAO PAULO',
      state: 'SP',
      country: 'BR',
    },
    terminals: Array.from({ length: 32 }, (_, at) => `TOLL${String(at + 1).padStart(4, '0')}`),
    answerWithinSeconds: 10,
  }
}

/** Reads ACQUIRERS_FILE; every mistake is named with its place. */
export function readAcquirers(path: string): AcquirerOptions[] {
  const wrong: string[] = []
  let file: { acquirers?: unknown }
  try {
    file = JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    throw new OperatorError(`ACQUIRERS_FILE names ${path}: ${(error as Error).message}.`)
  }
  const rows = Array.isArray(file.acquirers) ? (file.acquirers as Record<string, unknown>[]) : []
  if (rows.length === 0) wrong.push('acquirers must be a list of at least one acquirer')
  const read = rows.map((row, at) => acquirerOf(row, `acquirers[${at}]`, dirname(resolve(path)), rule => wrong.push(rule)))
  const names = read.map(({ name }) => name)
  if (new Set(names).size !== names.length) wrong.push('two acquirers have the same name')
  if (wrong.length > 0) throw new OperatorError(wrong.map(rule => `ACQUIRERS_FILE ${path}: ${rule}.`).join('\n'))
  return read
}

type Check = (value: unknown) => boolean
const isText =
  (pattern: RegExp): Check =>
  value =>
    typeof value === 'string' && pattern.test(value)
const isNumber =
  (from: number, to: number): Check =>
  value =>
    typeof value === 'number' && value >= from && value <= to
const isFlag: Check = value => typeof value === 'boolean'
const isListOf =
  (check: Check): Check =>
  value =>
    Array.isArray(value) && value.length > 0 && value.every(check)

/** The keys of an acquirer: whether they must be there, what they may be, and the rule in words. */
const keys: Readonly<Record<string, readonly [must: boolean, check: Check, rule: string]>> = {
  name: [true, isText(/^[a-z0-9-]{1,32}$/), 'must be 1 to 32 lower-case letters, digits and hyphens'],
  institute: [false, isText(/^.{1,100}$/), 'must be a text'],
  modes: [true, isListOf(isText(/^(external|live)$/)), 'must be a list of external and live'],
  dialect: [false, value => typeof value === 'string' && value in dialects, `must be one of ${Object.keys(dialects).join(', ')}`],
  lines: [
    true,
    isListOf(value => {
      const { host, port } = value as Address
      return isText(/^[A-Za-z0-9.:-]+$/)(host) && isNumber(1, 65_535)(port)
    }),
    'must be a list of {host, port}',
  ],
  tls: [false, value => value !== null && typeof value === 'object', 'must hold ca, cert, key (file names) and serverName'],
  acquirerId: [true, isText(/^\d{1,11}$/), 'must be 1 to 11 digits'],
  merchantId: [true, isText(/^[\x21-\x7e]{1,15}$/), 'must be 1 to 15 characters'],
  terminals: [
    true,
    isListOf(isText(/^[\x21-\x7e]{1,8}$/)),
    'must be a list of terminals of 1 to 8 characters, one for each gateway process',
  ],
  category: [false, isText(/^\d{4}$/), 'must be 4 digits'],
  merchantName: [false, isText(/^.{1,23}$/), 'must be a text of at most 23 characters'],
  merchantCity: [false, isText(/^.{1,13}$/), 'must be a text of at most 13 characters'],
  merchantState: [false, isText(/^.{1,2}$/), 'must be a text of at most 2 characters'],
  merchantCountry: [false, isText(/^[A-Z]{2}$/), 'must be 2 upper-case letters'],
  statement: [false, isText(/^(descriptor|name)$/), 'must be descriptor or name'],
  facilitator: [false, isFlag, 'must be true or false'],
  signOn: [false, isFlag, 'must be true or false'],
  partialReversal: [false, isFlag, 'must be true or false'],
  answerWithinSeconds: [false, isNumber(0.05, 60), 'must be a number of seconds, at most 60'],
  recoverAfterSeconds: [false, isNumber(0, 3600), 'must be a number of seconds'],
  echoSeconds: [false, isNumber(0.05, 3600), 'must be a number of seconds'],
  echoAnswerSeconds: [false, isNumber(0.05, 60), 'must be a number of seconds'],
  inFlightMax: [false, isNumber(1, 100_000), 'must be a number'],
  breakerTimeouts: [false, isNumber(1, 100_000), 'must be a number'],
  breakerSeconds: [false, isNumber(0.05, 3600), 'must be a number of seconds'],
}

function acquirerOf(row: Record<string, unknown>, place: string, folder: string, fail: (rule: string) => void): AcquirerOptions {
  for (const [name, [must, check, rule]] of Object.entries(keys)) {
    if (row[name] === undefined ? must : !check(row[name]))
      fail(`${place}.${name} ${row[name] === undefined ? 'is missing' : rule}`)
  }
  for (const name of Object.keys(row)) if (!Object.hasOwn(keys, name)) fail(`${place}.${name} is not a setting`)
  const given = Object.fromEntries(Object.keys(defaults).flatMap(name => (row[name] === undefined ? [] : [[name, row[name]]])))
  const tls = row.tls === undefined ? undefined : readTls(row.tls as Record<string, string>, place, folder, fail)
  const text = (name: string, otherwise: string) => (typeof row[name] === 'string' ? (row[name] as string) : otherwise)
  return {
    ...defaults,
    ...given,
    name: text('name', ''),
    modes: (row.modes ?? []) as Mode[],
    addresses: (Array.isArray(row.lines) ? (row.lines as Address[]) : []).map(line => async () => line),
    ...(tls && { tls }),
    terminals: (row.terminals ?? []) as string[],
    account: {
      acquirerId: text('acquirerId', ''),
      merchantId: text('merchantId', ''),
      category: text('category', accountDefaults.category),
      name: text('merchantName', ''),
      city: text('merchantCity', ''),
      state: text('merchantState', ''),
      country: text('merchantCountry', ''),
      statement: row.statement === 'name' ? 'name' : 'descriptor',
      facilitator: row.facilitator === true,
    },
  }
}

/** File names are relative to the file that names them. */
function readTls(tls: Record<string, string>, place: string, folder: string, fail: (rule: string) => void): ConnectionOptions {
  const file = (name: string): Buffer | undefined => {
    if (tls[name] === undefined) return undefined
    try {
      return readFileSync(resolve(folder, tls[name]))
    } catch {
      fail(`${place}.tls.${name} names a file that cannot be read`)
      return undefined
    }
  }
  const [ca, cert, key] = [file('ca'), file('cert'), file('key')]
  return {
    ...(ca && { ca }),
    ...(cert && { cert }),
    ...(key && { key }),
    ...(tls.serverName !== undefined && { servername: tls.serverName }),
    minVersion: 'TLSv1.2',
  }
}
