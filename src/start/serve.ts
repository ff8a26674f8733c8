// One gateway process: an assembled gateway with its due work, its other side in a sandbox, and its server.

import type pg from 'pg'
import { startAlerting } from '../alerts/alerts.ts'
import { startTelling } from '../audit/failures.ts'
import { startWatching } from '../audit/watch.ts'
import { beginCaptureFiles } from '../clearing/captures/write.ts'
import { beginPolling } from '../clearing/intake/poll.ts'
import { reconcileDays } from '../clearing/reconciliation/cutOver.ts'
import { beginOrderFiles } from '../clearing/remittance/write.ts'
import { beginReturnFolders } from '../clearing/returns/folder.ts'
import { beginTransferFiles } from '../clearing/transfers/write.ts'
import type { AcquirerOptions, Address } from '../connectors/cards/acquirer.ts'
import { figuresOfAcquirers } from '../connectors/cards/metrics.ts'
import { httpTransport } from '../connectors/transport.ts'
import type { Readiness } from '../http/health.ts'
import { allConnectionsMost } from '../http/places.ts'
import { router } from '../http/router.ts'
import { makeServer } from '../http/server.ts'
import { startDelivering } from '../notifications/deliveries/deliver.ts'
import { startSweeping } from '../payments/recover.ts'
import type { Clock, Random } from '../platform/clock.ts'
import { connect, type Database } from '../platform/database/connect.ts'
import { watchFollowing } from '../platform/database/following.ts'
import { readDatabaseIds } from '../platform/database/installation.ts'
import { isMigrated } from '../platform/database/migrate.ts'
import { releaseAllDue } from '../platform/due/store.ts'
import { startWorker } from '../platform/due/worker.ts'
import { caller } from '../platform/egress/call.ts'
import { resolver } from '../platform/egress/resolve.ts'
import { OperatorError } from '../platform/errors.ts'
import { openFilesMost } from '../platform/files.ts'
import type { Log } from '../platform/log.ts'
import { type Figure, gauge } from '../platform/metrics.ts'
import { startErasing } from '../platform/retention/erase.ts'
import { processSource, reader, serveMetrics } from '../platform/scrape.ts'
import { sftpOpener } from '../platform/sftp/open.ts'
import { beginReceiptFiles } from '../reporting/receiptFiles/deliver.ts'
import { keepRequests } from '../reporting/requests/keep.ts'
import { startProjecting } from '../reporting/search/search.ts'
import { acquirerHostProcess } from '../sandbox/acquirerHost/process.ts'
import { startSimulators } from '../sandbox/serve.ts'
import { compareKeys, type Keys, writerOf } from '../vault/keys.ts'
import { readProofs } from '../vault/store.ts'
import { startTellingWritten } from '../vault/written.ts'
import { readAcquirers, sandboxAcquirer, startAcquirers } from './acquirers.ts'
import { assemble, dueHandlers, duePlaces } from './assemble.ts'
import { unwatched, watchClock } from './clockWatch.ts'
import { type Config, followerOf, hostRules, publicUrlOf } from './config.ts'
import { credentialsOf, figureOfCredentials } from './credentials.ts'
import { measuresOf } from './measures.ts'
import { warnOfSharedNumbers } from './moves/contested.ts'
import { watchPutBack } from './moves/putBack.ts'
import { isPublicAddress } from './networks.ts'
import { routesOf } from './routes.ts'
import { tracesOf } from './traces.ts'

export type RunningGateway = {
  readonly port: number
  /** Resolves with a sentence when it cannot go on. */
  readonly failed: Promise<string>
  /** What it counts by itself. */
  readonly figures: readonly Figure[]
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
  /** Less memory than its process has: for tests. */
  readonly heapBytes?: number
  /** A sandbox of several processes shares the simulators of its first one. */
  readonly simulatorsUrl?: string
  /** A host that runs already, shared by the processes of one sandbox. */
  readonly sandboxHost?: Address
  /** The port that the system chose for the first worker, which the others share. */
  readonly port?: number
  /** One of several, whose metrics are served by their first process. */
  readonly isWorker?: true
}

/** Beside connections of callers: to databases, partners and receivers, files of our own. */
const filesBeside = 1024

export async function startGateway(parts: Parts): Promise<RunningGateway> {
  const onError = (error: Error) =>
    error instanceof OperatorError
      ? parts.log.error({ why: error.message }, 'an entity is refused until its settings are mended')
      : parts.log.warn({ why: error.message }, 'a database connection failed')
  const database = connect(parts.connection, parts.clock, onError, followerOf(parts.config), writerOf(parts.keys))
  return startOn(database, parts, onError).catch(async (error: Error) => {
    await database.close()
    throw error
  })
}

async function startOn(database: Database, parts: Parts, onError: (error: Error) => void): Promise<RunningGateway> {
  const { config, keys, random, log } = parts
  const clockWatch = parts.ownTime ? unwatched(parts.clock) : await watchClock(database.work, parts.clock, log)
  const { clock } = clockWatch // nobody below goes by the machine's
  const putBackWatch = await watchPutBack(database, clock, log)
  await warnOfSharedNumbers(database.work, config.redirectMethods, log)
  const filesMost = openFilesMost()
  if (filesMost !== undefined && filesMost < allConnectionsMost + filesBeside)
    log.warn(
      { why: `${filesMost} files may be open, and ${allConnectionsMost + filesBeside} are needed` },
      'more connections than files find nobody: raise ulimit -n or LimitNOFILE',
    )
  const stopping = new AbortController()
  let port = config.port
  const publicUrl = () => publicUrlOf(config, port)
  const simulatorPages = () => `${publicUrl()}/simulators`
  const hosts = hostRules(config)
  const home = () => ({ host: config.host, port, tls: config.tls !== undefined, hosts })
  const sandbox = config.mode === 'sandbox'
  const ownSimulators =
    sandbox && parts.simulatorsUrl === undefined ? await startSimulators(clock, random, simulatorPages, home) : undefined
  const simulatorsUrl = sandbox ? (parts.simulatorsUrl ?? ownSimulators?.url) : undefined
  const host = acquirersInUse(parts)
  const acquirers = await startAcquirers(host.options, { db: database.work, clock, random, log, alone: parts.alone })
  const traces = tracesOf(parts)
  const assembly = await assemble({
    config,
    keys,
    clock,
    random,
    database,
    log,
    publicUrl,
    onError,
    heapBytes: parts.heapBytes,
    ...(traces && { tracer: traces.tracer }),
    network: {
      call: caller(clock, config.egress, resolver(), stopping.signal),
      stopping: stopping.signal,
      sftp: sftpOpener(clock, config.sftpKey, config.egress, resolver()),
      transport: httpTransport,
      acquirers: acquirers.connectors,
      links: acquirers.acquirers,
      ...(simulatorsUrl !== undefined && { simulators: { url: simulatorsUrl, publicUrl: simulatorPages } }),
    },
  })
  const { gateway, deliver, sources } = assembly
  const readiness: Readiness = {
    checks: {
      migrations: () => isMigrated(database.work),
      keys: async () => compareKeys(await readProofs(database.work), keys) === undefined,
      clock: clockWatch.isTrusted,
    },
    says: async () => ({
      ...(await readDatabaseIds(database.work)),
      ...(database.reporting.follows && { reporting: database.reporting.follows.standing().state }),
    }),
    mayKnow: address => !isPublicAddress(address),
  }
  const requests = keepRequests(gateway, config.requestRecords)
  const server = makeServer(gateway, router(gateway, routesOf(gateway, sources, simulatorsUrl, readiness)), {
    ...(config.tls && { tls: config.tls }),
    trustedProxies: config.trustedProxies,
    hosts,
    requireForwardedTls: config.mode === 'live' && !config.tls,
    refusal: () => (clockWatch.isTrusted() ? undefined : 'clockWrong'),
    record: requests.record,
    ...(traces && { trace: traces.request }),
  })
  const close = async () => {
    putBackWatch.stop()
    await requests.stop()
    await assembly.stop()
    await ownSimulators?.stop()
    await acquirers.stop()
    await host.stop()
    await traces?.stop()
    await database.close()
  }
  const figures = [
    ...gateway.figures,
    ...(traces?.figures ?? []),
    ...figuresOfAcquirers(acquirers.metrics),
    ...(config.metricsPort === undefined ? [] : [figureOfCredentials(await credentialsOf(config, keys), clock)]),
    { ...gauge('tollgate_clock_trusted', clockHelp, () => (clockWatch.isTrusted() ? 1 : 0)), across: 'min' as const },
  ]
  const metrics = async (port: number) => {
    const sources = [await processSource(figures), ...measuresOf(database, clock, log, config)]
    return serveMetrics(
      reader(() => sources, clock, log),
      log,
      { port, host: config.host, token: config.metricsToken },
    )
  }
  const background: { stop(): Promise<void> }[] = [clockWatch]
  const stop = async () => {
    await server.close()
    stopping.abort()
    await Promise.all(background.map(one => one.stop()))
    await close()
  }
  try {
    // Before the first request and the first look for work: later there are leases of our own.
    if (parts.alone) await releaseAllDue(database.work)
    // Without them a password waits where it is guessed at; that is no reason to serve nobody.
    await gateway.failures
      .learn(clock.real())
      .catch(error => log.warn({ why: error.message }, 'from where passwords come is not known yet'))
    await reconcileDays(gateway)
    await beginCaptureFiles(gateway)
    await beginTransferFiles(gateway)
    await beginReceiptFiles(gateway)
    await beginPolling(gateway)
    await beginOrderFiles(gateway)
    await beginReturnFolders(gateway)
    background.push(await startSweeping(gateway, parts.alone, clockWatch.isTrusted))
    background.push(await watchFollowing(database, clock, random, log))
    background.push(await startAlerting(gateway, clockWatch.isTrusted))
    if (config.metricsPort !== undefined && !parts.isWorker) background.push(await metrics(config.metricsPort))
    port = await server.listen(parts.port ?? config.port, config.host) // the last thing that may fail: a start that is refused has served nobody
    background.push(
      ...duePlaces.map(places => startWorker(gateway, dueHandlers, places, clockWatch.isTrusted)),
      startErasing(gateway, clockWatch),
      startTelling(database.work, gateway.failures, gateway, error =>
        log.warn({ why: error.message }, 'failed log-ins wait for the audit'),
      ),
      startWatching(database.work, gateway, log),
      startTellingWritten(database.work, keys, clock, clockWatch.isTrusted, error =>
        log.warn({ why: error.message }, 'that the keys are written with could not be told'),
      ),
      startDelivering(gateway, deliver, parts.alone, clockWatch.isTrusted),
      startProjecting(gateway),
    )
    return { port, failed: new Promise(() => {}), figures, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

const clockHelp = 'Whether the clock is near enough to that of the database: with 0 nothing is taken.'

/** The acquirers of the file; in a sandbox without one, its own host, which starts with the first payment that goes there. */
function acquirersInUse({ config, sandboxHost }: Parts): { options: readonly AcquirerOptions[]; stop(): Promise<void> } {
  const none = async () => {}
  if (config.acquirersFile !== undefined) return { options: readAcquirers(config.acquirersFile, config.mode), stop: none }
  if (config.mode === 'live') return { options: [], stop: none }
  if (sandboxHost) return { options: [sandboxAcquirer(async () => sandboxHost)], stop: none }
  const host = acquirerHostProcess(config.dataDir)
  return { options: [sandboxAcquirer(host.address)], stop: host.stop }
}
