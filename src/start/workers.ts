// WORKERS above 1: one primary process holds DATA_DIR and the database, so many gateway processes share its port.

import cluster, { type Worker } from 'node:cluster'
import { systemClock, systemRandom } from '../clock.ts'
import { type Config, readConfig } from '../config.ts'
import type { Address } from '../connectors/acquirer.ts'
import { makeLog } from '../log.ts'
import { acquirerHostProcess } from './acquirerHost.ts'
import type { Opened } from './database.ts'
import { publicUrlOf, type Running, startGateway } from './gateway.ts'
import { startSimulators } from './simulators.ts'

/** What a worker cannot find out by itself. */
type Order = { readonly connection: Opened['connection']; readonly simulatorsUrl?: string; readonly sandboxHost?: Address }

export const startWorkers = {
  /** Starts the workers and replaces one that dies. */
  async primary(config: Config, { connection }: Opened): Promise<Running> {
    let stopping = false
    // One set of simulators for all, because a shopper's requests reach any of the workers.
    let port = config.port
    const pages = () => `${publicUrlOf(config, port)}/simulators`
    const home = () => ({ host: config.host, port, tls: config.tls !== undefined })
    const simulators = config.mode === 'sandbox' ? await startSimulators(systemClock, systemRandom, pages, home) : undefined
    // One acquirer host too: it keeps one set of books.
    const host = config.mode === 'sandbox' && config.acquirersFile === undefined ? acquirerHostProcess(config.dataDir) : undefined
    const order: Order = {
      connection,
      ...(simulators && { simulatorsUrl: simulators.url }),
      ...(host && { sandboxHost: await host.address() }),
    }
    const fork = () =>
      new Promise<{ worker: Worker; port: number }>((resolve, reject) => {
        const worker = cluster.fork()
        worker.once('online', () => worker.send(order))
        worker.once('message', ({ port }: { port: number }) => resolve({ worker, port }))
        worker.once('exit', code => reject(new Error(`a worker ended with code ${code}`)))
      })
    const first = await Promise.all(Array.from({ length: config.workers }, fork))
    cluster.on('exit', () => {
      if (!stopping) void fork().catch(() => {})
    })
    port = first[0]!.port
    return {
      port,
      async stop() {
        stopping = true
        await simulators?.stop()
        const workers = Object.values(cluster.workers ?? {}).filter(worker => worker !== undefined)
        await Promise.all(
          workers.map(worker => {
            const gone = new Promise<void>(resolve => worker.once('exit', () => resolve()))
            worker.send('stop')
            return gone
          }),
        )
        await host?.stop()
      },
    }
  },

  async worker(projectFolder: string): Promise<void> {
    const config = readConfig(process.env, projectFolder)
    const order = await new Promise<Order>(resolve => process.once('message', resolve as (message: unknown) => void))
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {}) // the primary tells when to stop
    const keys = config.keys()
    const running = await startGateway({
      config,
      keys,
      connection: order.connection,
      clock: systemClock,
      random: systemRandom,
      log: makeLog(config.logLevel),
      alone: false,
      ...(order.simulatorsUrl !== undefined && { simulatorsUrl: order.simulatorsUrl }),
      ...(order.sandboxHost && { sandboxHost: order.sandboxHost }),
    })
    const stop = () => running.stop().then(() => process.exit(0))
    process.once('message', stop)
    process.once('disconnect', stop) // the primary died
    process.send!({ port: running.port })
  },
}
