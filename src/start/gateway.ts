// One gateway process: its parts, its due work and its server.

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type pg from 'pg'
import type { Clock, Random } from '../clock.ts'
import type { Config } from '../config.ts'
import type { AcquirerOptions, Address } from '../connectors/acquirer.ts'
import type { Connector } from '../connectors/connector.ts'
import type { Connectors } from '../connectors/index.ts'
import { connect } from '../database/connect.ts'
import { type DueHandlers, startWorker } from '../due/worker.ts'
import type { Gateway, Log } from '../gateway.ts'
import { router, routes } from '../http/routes.ts'
import { makeServer } from '../http/server.ts'
import { openDirectory } from '../merchants/directory.ts'
import { takeLateReply } from '../payments/carryOut.ts'
import { startErasing } from '../payments/erase.ts'
import { recover, release, reverse, startSweeping } from '../payments/recover.ts'
import { answerLane, paymentLane } from '../payments/store.ts'
import { readRiskRules } from '../risk/rules.ts'
import { cardSimulator } from '../simulators/cards.ts'
import type { Keys } from '../vault/keys.ts'
import { acquirerHostProcess } from './acquirerHost.ts'
import { readAcquirers, sandboxAcquirer, startAcquirers } from './acquirers.ts'

/** Rules to begin with; no channel uses them unless its settings say so. */
const standardRiskRules = fileURLToPath(new URL('../../seeds/risk-rules.json', import.meta.url))

export type Running = { readonly port: number; stop(): Promise<void> }

export type Parts = {
  readonly config: Config
  readonly keys: Keys
  readonly connection: pg.PoolConfig
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  /** No other process can be at work on this database: unanswered payments are orphans at once. */
  readonly alone: boolean
  /** A host that runs already, shared by the processes of one sandbox. */
  readonly sandboxHost?: Address
}

export const dueHandlers: DueHandlers = new Map([
  ['recover', recover],
  ['reverse', reverse],
  ['release', release],
])

export async function startGateway(parts: Parts): Promise<Running> {
  const { config, keys, clock, random, log } = parts
  const onError = (error: Error) => log.warn({ why: error.message }, 'a database connection failed')
  const database = connect(parts.connection, onError)
  const directory = await openDirectory(database, keys, clock, onError)
  const host = acquirersInUse(parts)
  const acquirers = await startAcquirers(host.options, { db: database.work, clock, random, log })
  const connectors: Connectors = new Map<string, Connector>([
    ['simulator', cardSimulator((milliseconds, signal) => wait(milliseconds, undefined, signal ? { signal } : {}))],
    ...acquirers.connectors.map((connector): [string, Connector] => [connector.name, connector]),
  ])
  const gateway: Gateway = {
    clock,
    random,
    keys,
    directory,
    database,
    connectors,
    riskRules: readRiskRules(config.riskRulesFile ?? standardRiskRules),
    log,
    payments: paymentLane(database.paymentLane),
    answers: answerLane(database.answerLane),
    build: buildNumber(),
    sandbox: config.mode === 'sandbox',
  }
  for (const connector of connectors.values())
    connector.start?.((merchantId, paymentId, reply) => takeLateReply(gateway, merchantId, paymentId, reply))
  const server = makeServer(gateway, router(gateway, routes(gateway, dueHandlers)), {
    ...(config.tls && { tls: config.tls }),
    trustedProxies: config.trustedProxies,
    requireForwardedTls: config.mode === 'live' && !config.tls,
  })
  const close = async () => {
    for (const connector of connectors.values()) await connector.stop?.()
    await acquirers.stop()
    await host.stop()
    await directory.close()
    await database.close()
  }
  try {
    const port = await server.listen(config.port, config.host)
    const background = [startWorker(gateway, dueHandlers), startSweeping(gateway, parts.alone), startErasing(gateway)]
    return {
      port,
      async stop() {
        await server.close()
        await Promise.all(background.map(one => one.stop()))
        await close()
      },
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** The acquirers of the file; in a sandbox without one, its own host, which starts with the first payment that goes there. */
function acquirersInUse({ config, sandboxHost }: Parts): { options: readonly AcquirerOptions[]; stop(): Promise<void> } {
  const none = async () => {}
  if (config.acquirersFile !== undefined) return { options: readAcquirers(config.acquirersFile), stop: none }
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
