// The metrics of several processes, served by the one that holds the others: it asks each worker for what it counts, and the database for the rest.

import type { Worker } from 'node:cluster'
import { type Clock, systemRandom } from '../platform/clock.ts'
import { connect } from '../platform/database/connect.ts'
import { watchFollowing } from '../platform/database/following.ts'
import type { Log } from '../platform/log.ts'
import { countBy, type Figure, gauge } from '../platform/metrics.ts'
import {
  type FigureReading,
  type FigureSource,
  type MetricsServer,
  processSource,
  reader,
  readFigure,
  serveMetrics,
  together,
} from '../platform/scrape.ts'
import { type Config, followerOf } from './config.ts'
import type { OpenDatabase } from './database.ts'
import { measuresOf } from './measures.ts'
import { tellFirst, tellWorker } from './workerMessages.ts'

export type WorkerMetrics = {
  /** From now on the worker is asked. What it had counted when it ends stays in the sums. */
  watch(worker: Worker): void
  stop(): Promise<void>
}

type Scrape = { readonly scrape: number }
type Scraped = Scrape & { readonly readings: readonly FigureReading[] }

/** Does nothing without METRICS_PORT. */
export async function serveWorkerMetrics(
  config: Config,
  { connection }: OpenDatabase,
  clock: Clock,
  log: Log,
): Promise<WorkerMetrics> {
  const { metricsPort, host, metricsToken: token } = config
  if (metricsPort === undefined) return { watch() {}, async stop() {} }
  const workers = new Map<Worker, FigureSource>()
  const own: Figure[] = [gauge('tollgate_workers', 'Worker processes that run.', () => workers.size)]
  const ended = countBy(own, 'tollgate_workers_ended_total', 'Worker processes that ended, by signal or exit code.', 'with')
  const onError = (error: Error) => log.warn({ why: error.message }, 'a database connection failed')
  const database = connect(connection, clock, onError, followerOf(config))
  // What those that are gone had counted, added up at each reading: it does not grow with their number.
  const gone: FigureReading[] = []
  const first: FigureSource = {
    name: 'first process',
    async read() {
      const sums = (await together([gone.splice(0)])).getMetricsAsJSON() as unknown as Promise<FigureReading[]>
      gone.push(...(await sums))
      return [...own.map(readFigure), ...(await sums)]
    },
  }
  const following = await watchFollowing(database, clock, systemRandom, log)
  const measures = measuresOf(database, clock, log, config)
  const read = reader(() => [first, ...workers.values(), ...measures], clock, log)
  const server: MetricsServer = await serveMetrics(read, log, { port: metricsPort, host, token })
  return {
    watch(worker) {
      const source = sourceOfWorker(worker)
      workers.set(worker, source)
      worker.once('exit', (code, signal) => {
        workers.delete(worker)
        ended(signal ?? `code ${code}`)
        gone.push(...source.last())
      })
    },
    async stop() {
      await server.stop()
      await following.stop()
      await database.close()
    },
  }
}

/** Of one that does not answer, what it counted the last time counts; what was only so at that moment does not. */
function sourceOfWorker(worker: Worker): FigureSource & { last(): readonly FigureReading[] } {
  let last: readonly FigureReading[] = []
  let asked = 0
  return {
    name: 'worker',
    last: () => last,
    read: () =>
      new Promise((resolve, reject) => {
        const scrape = ++asked
        const end = (): void => {
          worker.off('message', hear)
          worker.off('exit', fail)
        }
        const hear = (said: Partial<Scraped>): void => {
          if (said.scrape !== scrape) return
          end()
          last = said.readings!.filter(({ type }) => !isGauge(type))
          resolve(said.readings!)
        }
        const fail = (): void => {
          end()
          reject(new Error('it ended'))
        }
        worker.on('message', hear)
        worker.once('exit', fail)
        if (!tellWorker(worker, { scrape } satisfies Scrape)) fail()
      }),
  }
}

/** prom-client has names for the kinds where its types have numbers. */
const isGauge = (type: unknown): boolean => type === 'gauge'

/** In a worker: answers whoever holds it. */
export async function answerScrapes(figures: readonly Figure[]): Promise<void> {
  const source = await processSource(figures)
  process.on('message', ({ scrape }: Partial<Scrape>) => {
    if (scrape === undefined) return
    source
      .read()
      .then(readings => tellFirst({ scrape, readings } satisfies Scraped))
      .catch(() => {}) // whoever asked counts that it got no answer
  })
}
