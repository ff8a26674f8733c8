// One gateway process: its parts, its due work and its server.

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type pg from 'pg'
import { limitFailures, startTelling } from '../audit/failures.ts'
import type { Clock, Random } from '../clock.ts'
import type { Config } from '../config.ts'
import type { AcquirerOptions, Address } from '../connectors/acquirer.ts'
import { connect, type Database } from '../database/connect.ts'
import { dueWork } from '../due/advance.ts'
import { releaseAllDue } from '../due/store.ts'
import { type DueHandlers, startWorker } from '../due/worker.ts'
import { OperatorError } from '../errors.ts'
import { caller } from '../events/call.ts'
import { deliverer, startDelivering } from '../events/deliveries/deliver.ts'
import { dueDeliveries } from '../events/deliveries/due.ts'
import { attemptLane } from '../events/deliveries/store.ts'
import { missedReturn } from '../events/missedReturn.ts'
import { resolver } from '../events/resolve.ts'
import type { Gateway, Log } from '../gateway.ts'
import { forwardTo } from '../http/forward.ts'
import { routeNames, router, routes } from '../http/routes.ts'
import { makeServer } from '../http/server.ts'
import { type Directory, openDirectory } from '../merchants/directory.ts'
import { makeCount, serveMetrics } from '../metrics.ts'
import { announcedPending } from '../payments/announced.ts'
import { lateReplies } from '../payments/carryOut.ts'
import { startErasing } from '../payments/erase.ts'
import { capture, recover, release, reverse, startSweeping } from '../payments/recover.ts'
import { redirectExpiry } from '../payments/redirects/resume.ts'
import { answerLane, paymentLane } from '../payments/store/write.ts'
import { readRiskRules } from '../risk/rules.ts'
import type { Keys } from '../vault/keys.ts'
import { acquirerHostProcess } from './acquirerHost.ts'
import { readAcquirers, sandboxAcquirer, startAcquirers } from './acquirers.ts'
import { unwatched, watchClock } from './clockWatch.ts'
import { makeConnectors } from './connectors.ts'
import { startSimulators } from './simulators.ts'

/** Rules to begin with; no channel uses them unless its settings say so. */
const standardRiskRules = fileURLToPath(new URL('../../seeds/risk-rules.json', import.meta.url))

/** How long a stop is waited for: longer than the requests that run may take. */
export const stopSeconds = 60

export type Running = {
  readonly port: number
  /** Resolves with a sentence when it cannot go on. */
  readonly failed: Promise<string>
  stop(): Promise<void>
}

export type Parts = {
  readonly config: Config
  readonly keys: Keys
  readonly connection: pg.PoolConfig
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  /** No other process can be at work on this database: unanswered payments are orphans at once. */
  readonly alone: boolean
  /** The clock is none of this world and is not compared with that of the database: for tests. */
  readonly ownTime?: boolean
  /** A sandbox of several processes shares the simulators of its first one. */
  readonly simulatorsUrl?: string
  /** A host that runs already, shared by the processes of one sandbox. */
  readonly sandboxHost?: Address
  /** The port that the system chose for the first worker, which the others share. */
  readonly port?: number
}

export const dueHandlers: DueHandlers = new Map([
  ['recover', recover],
  ['reverse', reverse],
  ['release', release],
  ['capture', capture],
  ['missedReturn', missedReturn],
  ['redirectExpiry', redirectExpiry],
])

export async function startGateway(parts: Parts): Promise<Running> {
  const onError = (error: Error) =>
    error instanceof OperatorError
      ? parts.log.error({ why: error.message }, 'an entity is refused until its settings are mended')
      : parts.log.warn({ why: error.message }, 'a database connection failed')
  const database = connect(parts.connection, onError)
  return startOn(database, parts, onError).catch(async (error: Error) => {
    await database.close()
    throw error
  })
}

async function startOn(database: Database, parts: Parts, onError: (error: Error) => void): Promise<Running> {
  const { config, keys, clock, random, log } = parts
  const clockWatch = parts.ownTime ? unwatched : await watchClock(database.work, clock, log)
  const directory = await openDirectory(database, keys, clock, onError)
  if (config.mode === 'live') refuseUnauthenticated(directory, config)
  const stopping = new AbortController()
  let port = config.port
  const publicUrl = () => publicUrlOf(config, port)
  const simulatorPages = () => `${publicUrl()}/simulators`
  const home = () => ({ host: config.host, port, tls: config.tls !== undefined })
  const sandbox = config.mode === 'sandbox'
  const ownSimulators =
    sandbox && parts.simulatorsUrl === undefined ? await startSimulators(clock, random, simulatorPages, home) : undefined
  const simulatorsUrl = sandbox ? (parts.simulatorsUrl ?? ownSimulators?.url) : undefined
  const host = acquirersInUse(parts)
  const acquirers = await startAcquirers(host.options, { db: database.work, clock, random, log })
  const { connectors, methods } = makeConnectors(config, {
    clock,
    random,
    acquirers: acquirers.connectors,
    ...(simulatorsUrl !== undefined && { simulators: { url: simulatorsUrl, publicUrl: simulatorPages } }),
  })
  const gateway: Gateway = {
    clock,
    random,
    keys,
    directory,
    database,
    failures: limitFailures(database.work, onError),
    connectors,
    egress: config.egress,
    call: caller(config.egress, resolver(), stopping.signal),
    riskRules: readRiskRules(config.riskRulesFile ?? standardRiskRules),
    log,
    count: makeCount(),
    payments: paymentLane(database.paymentLane),
    answers: answerLane(database.answerLane),
    methods,
    cardBrands: config.cardBrands,
    build: buildNumber(),
    publicUrl,
    sandbox,
  }
  for (const connector of connectors.values()) connector.start?.(lateReplies(gateway))
  const pendingPayload = ({ merchantId, paymentId, occurredAt }: { merchantId: string; paymentId: string; occurredAt: number }) =>
    announcedPending(gateway, merchantId, paymentId, occurredAt)
  const deliver = deliverer(gateway, attemptLane(database.work), pendingPayload)
  const timers = [dueWork(gateway, dueHandlers), dueDeliveries(gateway, deliver)]
  const pages = simulatorsUrl === undefined ? undefined : forwardTo(simulatorsUrl)
  const table = routes(gateway, timers, pendingPayload)
  const server = makeServer(gateway, router(gateway, table, pages), {
    routeName: routeNames(table),
    ...(config.tls && { tls: config.tls }),
    trustedProxies: config.trustedProxies,
    hosts: sandbox ? { names: config.sandboxHosts } : {},
    requireForwardedTls: config.mode === 'live' && !config.tls,
    refusal: () => (clockWatch.isTrusted() ? undefined : 'clockWrong'),
  })
  const close = async () => {
    for (const connector of connectors.values()) await connector.stop?.()
    await ownSimulators?.stop()
    await acquirers.stop()
    await host.stop()
    await directory.close()
    await database.close()
  }
  // Before the first request and the first look for work: later there are leases of our own.
  if (parts.alone) await releaseAllDue(database.work)
  const sweeping = await startSweeping(gateway, parts.alone)
  try {
    port = await server.listen(parts.port ?? config.port, config.host)
    const background = [
      startWorker(gateway, dueHandlers, clockWatch.isTrusted),
      clockWatch,
      sweeping,
      startErasing(gateway),
      startTelling(database.work, gateway, error => log.warn({ why: error.message }, 'failed log-ins wait for the audit')),
      startDelivering(gateway, deliver, parts.alone),
      ...(config.metricsPort === undefined
        ? []
        : [await serveMetrics(gateway, config.metricsPort, config.host, acquirers.figures, config.metricsToken)]),
    ]
    return {
      port,
      failed: new Promise(() => {}),
      async stop() {
        await server.close()
        stopping.abort()
        await Promise.all(background.map(one => one.stop()))
        await close()
      },
    }
  } catch (error) {
    await sweeping.stop()
    await close()
    throw error
  }
}

/** A live channel that always authenticates cardholders needs somebody to ask, or its payments go through without, or not at all. */
function refuseUnauthenticated(directory: Directory, { directories }: Config): void {
  const without = directory
    .channels()
    .filter(({ settings }) => settings.mode === 'live' && settings.threeDSecure === 'always' && !directories.live)
  if (without.length === 0) return
  const names = without.map(({ id, name }) => `${name} (${id})`).join(', ')
  throw new OperatorError(
    `MODE=live: threeDSecure is always on ${names}, but THREE_D_SECURE_FILE names no directory server for live.`,
  )
}

/** PUBLIC_URL; where the port was chosen by the system, with that port. */
export const publicUrlOf = (config: Config, port: number): string =>
  config.port === port ? config.publicUrl : config.publicUrl.replace(/:\d+$/, `:${port}`)

/** The acquirers of the file; in a sandbox without one, its own host, which starts with the first payment that goes there. */
function acquirersInUse({ config, sandboxHost }: Parts): { options: readonly AcquirerOptions[]; stop(): Promise<void> } {
  const none = async () => {}
  if (config.acquirersFile !== undefined) return { options: readAcquirers(config.acquirersFile, config.mode), stop: none }
  if (config.mode === 'live') return { options: [], stop: none }
  if (sandboxHost) return { options: [sandboxAcquirer(async () => sandboxHost)], stop: none }
  const host = acquirerHostProcess(config.dataDir)
  return { options: [sandboxAcquirer(host.address)], stop: host.stop }
}

/** The same on every answer of one build: a hash of the program's version and lock file, and a date. */
export function buildNumber(): string {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  const lock = readFileSync(new URL('../../package-lock.json', import.meta.url))
  const hash = createHash('sha1').update(version).update(lock).digest('hex')
  return `${hash}@${version}`
}
