// WORKERS above 1: one primary process holds DATA_DIR and the database, so many gateway processes share its port.

import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import { freePort } from '../http/listening.ts'
import { systemClock, systemRandom } from '../platform/clock.ts'
import { connect } from '../platform/database/connect.ts'
import { endingSignals, errorText, OperatorError, onDefect, refuseInspected } from '../platform/errors.ts'
import { type Log, makeLog } from '../platform/log.ts'
import { acquirerHostProcess } from '../sandbox/acquirerHost/process.ts'
import { startSimulators } from '../sandbox/serve.ts'
import { type Keys, writerOf, writingWith, writtenWith } from '../vault/keys.ts'
import { type Config, hostRules, publicUrlOf, readConfig, stopSeconds } from './config.ts'
import type { OpenDatabase } from './database.ts'
import { type Parts, type RunningGateway, startGateway } from './serve.ts'
import { tellFirst, tellWorker } from './workerMessages.ts'
import { answerScrapes, serveWorkerMetrics } from './workerMetrics.ts'
import { answerPulse, watchPulse } from './workerPulse.ts'

/** What a worker cannot find out by itself. */
type Order = Pick<Parts, 'connection' | 'simulatorsUrl' | 'sandboxHost' | 'port'> & {
  /** Names of the keys with which all of them write, whatever the files of keys say by now. */
  readonly writtenWith: readonly string[]
}

// A worker that dies is replaced after 1, 2, 4 … quarters of a second. So many deaths within a minute, and all of them end: what
// starts them again may see more than we do. One that cannot begin ends nobody who serves: a file of the settings may be half renewed.
const deathsMax = 6
const deathsWithinMilliseconds = 60_000
const firstPauseMilliseconds = 250
const longestPauseMilliseconds = 8000

export const startWorkers = {
  /** Starts the workers and replaces one that dies. */
  async primary(config: Config, opened: OpenDatabase, keys: Keys, log: Log): Promise<RunningGateway> {
    const { connection } = opened
    let stopping = false
    // It tells with which keys those write that it will start, also while all have died.
    const lost = (error: Error) => log.warn({ why: error.message }, 'a database connection failed')
    const told = connect(connection, systemClock, lost, undefined, writerOf(keys))
    await told.listen('keys', () => {})
    // One set of simulators for all, because a shopper's requests reach any of the workers.
    // Known before they begin: a worker that takes the place of a dead one listens where the others do, also when all have died.
    const port = await freePort(config.host, config.port)
    const pages = () => `${publicUrlOf(config, port)}/simulators`
    const home = () => ({ host: config.host, port, tls: config.tls !== undefined, hosts: hostRules(config) })
    const simulators = config.mode === 'sandbox' ? await startSimulators(systemClock, systemRandom, pages, home) : undefined
    // One acquirer host too: it keeps one set of books.
    const host = config.mode === 'sandbox' && config.acquirersFile === undefined ? acquirerHostProcess(config.dataDir) : undefined
    const order: Order = {
      connection,
      port,
      writtenWith: writtenWith(keys),
      ...(simulators && { simulatorsUrl: simulators.url }),
      ...(host && { sandboxHost: await host.address() }),
    }
    const first = await Promise.all(Array.from({ length: config.workers }, () => fork(order)))
    const metrics = await serveWorkerMetrics(config, opened, systemClock, log)
    const failed = new Promise<string>(resolve => {
      let deaths: number[] = []
      const serving = new Set<Worker>()
      const replace = async (why: string): Promise<void> => {
        if (stopping) return
        const now = systemClock.elapsed()
        deaths = [...deaths.filter(at => now - at < deathsWithinMilliseconds), now]
        log.error({ why, attempt: deaths.length }, 'a worker died')
        if (deaths.length >= deathsMax)
          return resolve(`${deathsMax} workers died within a minute, the last one with ${why}: the log says more.`)
        await systemClock.sleep(firstPauseMilliseconds * 2 ** (deaths.length - 1))
        if (!stopping) await fork(order).then(watch)
      }
      const watch = (worker: Worker) => {
        metrics.watch(worker)
        watchPulse(worker, systemClock, log)
        serving.add(worker)
        worker.once('exit', (code, signal) => {
          serving.delete(worker)
          replace(signal ?? `code ${code}`).catch(again)
        })
      }
      // One that ended before it was ready has said why itself.
      const again = async (error: Error): Promise<void> => {
        const why = error instanceof EndedAtStart ? error.with : error.message
        if (serving.size === 0) return replace(why).catch(again)
        if (stopping) return
        log.error({ why }, 'a worker could not begin: the others serve, and it is tried again')
        await systemClock.sleep(longestPauseMilliseconds)
        if (!stopping) await fork(order).then(watch).catch(again)
      }
      for (const one of first) watch(one)
    })
    return {
      port,
      failed,
      figures: [],
      async stop() {
        stopping = true
        await metrics.stop()
        await simulators?.stop()
        const workers = Object.values(cluster.workers ?? {}).filter(worker => worker !== undefined)
        await Promise.all(
          workers.map(worker => {
            const gone = once(worker, 'exit') // one that hangs is ended: its pulse is watched
            tellWorker(worker, 'stop')
            return gone
          }),
        )
        await host?.stop()
        await told.close()
      },
    }
  },

  async worker(projectFolder: string): Promise<void> {
    const config = readConfig(process.env, projectFolder)
    const log = makeLog(config.logLevel)
    for (const signal of endingSignals) process.on(signal, () => {}) // the primary tells when to stop
    const ended = new Promise<void>(resolve => {
      process.on('message', message => message === 'stop' && resolve())
      process.once('disconnect', resolve) // the primary died
      onDefect(error => {
        log.error({ why: errorText(error) }, 'a defect: the worker stops')
        process.exitCode = 1
        resolve()
      })
    })
    const ordered = await Promise.race([ended, once(process, 'message') as Promise<[Order]>])
    if (!ordered) return
    const [{ writtenWith, ...order }] = ordered
    refuseInspected()
    const running = await Promise.race([
      ended,
      startGateway({
        config,
        keys: writingWith(config.keys(), writtenWith),
        clock: systemClock,
        random: systemRandom,
        log,
        alone: false,
        isWorker: true,
        ...order,
      }),
    ])
    if (!running) return
    if (config.metricsPort !== undefined) await answerScrapes(running.figures)
    answerPulse()
    tellFirst('ready')
    await ended
    await Promise.race([running.stop(), systemClock.sleep(stopSeconds * 1000)])
  },
}

/** `with`: its signal or exit code. */
class EndedAtStart extends OperatorError {
  readonly with: string
  constructor(why: string) {
    super(`A worker ended at its start with ${why}; it has told why.`)
    this.with = why
  }
}

/** A worker that is ready, or an error when it ended before. */
function fork(order: Order): Promise<Worker> {
  return new Promise((resolve, reject) => {
    const worker = cluster.fork()
    worker.once('online', () => tellWorker(worker, order))
    worker.once('message', () => resolve(worker))
    worker.once('exit', (code, signal) => reject(new EndedAtStart(signal ?? `code ${code}`)))
  })
}
