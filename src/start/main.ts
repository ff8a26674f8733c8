// Puts the parts together: configuration, database, keys, directory, connectors, due work, HTTP. Everything that differs between a laptop
// and production is decided here and in config.ts.

import cluster from 'node:cluster'
import { fileURLToPath } from 'node:url'
import { readSeed, sandboxSeed } from '../merchants/seed.ts'
import { systemClock, systemRandom } from '../platform/clock.ts'
import { inTransaction, writingPool } from '../platform/database/connect.ts'
import { markRunning } from '../platform/database/running.ts'
import {
  endingSignals,
  errorText,
  OperatorError,
  onDefect,
  outliveReaders,
  refuseInspected,
  refuseInspector,
} from '../platform/errors.ts'
import { type Log, makeLog } from '../platform/log.ts'
import type { DemoShop } from '../sandbox/demoShop/shop.ts'
import { sandboxCredentials, writeWelcome } from '../sandbox/welcome.ts'
import { makeStaffLink } from '../staff/links.ts'
import { type Keys, writerOf } from '../vault/keys.ts'
import { readAcquirers } from './acquirers.ts'
import { type Config, hostRules, publicUrlOf, readConfig, stopSeconds } from './config.ts'
import { type OpenDatabase, openDatabase, prepareDatabase } from './database.ts'
import type { RunningGateway } from './serve.ts'

const projectFolder = fileURLToPath(new URL('../..', import.meta.url))

let hasEnded = false
process.once('exit', code => {
  // Where nothing is left to wait for, Node ends by itself, and with 0: as if it had been asked to.
  if (hasEnded || code !== 0) return
  process.stderr.write('Tollgate ends by a defect: it waited for what could not come any more.\n')
  process.exitCode = 1
})
outliveReaders()
refuseInspector()
try {
  if (!cluster.isPrimary && !process.connected)
    throw new OperatorError(
      'NODE_UNIQUE_ID is set, by which Node takes this process for a worker of another: start it without. WORKERS says how many processes there are.',
    )
  await (cluster.isPrimary ? main() : (await import('./workers.ts')).startWorkers.worker(projectFolder))
} catch (error) {
  process.stderr.write(`Tollgate cannot start.\n${errorText(error)}\n`)
  process.exitCode = 1
}
hasEnded = true
process.exit()

async function main(): Promise<void> {
  const began = systemClock.elapsed()
  const config = readConfig(process.env, projectFolder, process.execArgv)
  // Read again by every process; what is wrong with it is told before anything starts.
  if (config.acquirersFile !== undefined) readAcquirers(config.acquirersFile, config.mode)
  const log = makeLog(config.logLevel)
  const ending = endings(log)
  markRunning()
  // Most of the program is read while the database starts.
  const program = Promise.all([import('./serve.ts'), import('./workers.ts')])
  program.catch(() => {}) // told by whoever waits for it
  const opened = await openDatabase(config, say, ending.signal).catch(unlessEnding(ending))
  if (!opened) return
  try {
    const starting = start(config, opened, log, program)
    const running = await Promise.race([starting, ending.reason])
    const shop = typeof running === 'string' ? undefined : await openShop(config, running.port, log)
    if (typeof running !== 'string') {
      const officeUrl = await officeDoor(config, running, opened, log)
      welcome(config, running.port, opened, systemClock.elapsed() - began, shop?.url, officeUrl)
    }
    const why = await Promise.race([
      ending.reason,
      ...(typeof running === 'string' ? [] : [running.failed]),
      ...(opened.embedded ? [opened.embedded.exited.then(text => `The database server stopped:\n${text}`)] : []),
    ])
    const asked = why.startsWith('SIG')
    process.stdout.write(`\n${asked ? 'Stopping.' : why}\n`)
    if (!asked) process.exitCode = 1
    await shop?.stop()
    if (typeof running !== 'string') await Promise.race([running.stop(), systemClock.sleep(stopSeconds * 1000)])
  } finally {
    await opened.close()
  }
}

function welcome(
  config: Config,
  port: number,
  { embedded }: OpenDatabase,
  milliseconds: number,
  shopUrl?: string,
  officeUrl?: string,
): void {
  const baseUrl = publicUrlOf(config, port)
  const newDatabase = embedded?.created === true
  if (config.mode === 'live') say(`Tollgate is ready at ${baseUrl} (live).`)
  else
    writeWelcome({
      baseUrl,
      dataDir: config.dataDir,
      seed: readSeed(sandboxSeed),
      newDatabase,
      milliseconds,
      ...(shopUrl && { shopUrl }),
      ...(officeUrl && { officeUrl }),
    })
}

/** A link that signs the developer of a sandbox in; live mode has no such door (decisions, 64). */
async function officeDoor(
  config: Config,
  { port, keys }: StartedGateway,
  { connection }: OpenDatabase,
  log: Log,
): Promise<string | undefined> {
  if (config.mode === 'live') return undefined
  const pool = writingPool(connection, 1, writerOf(keys))
  const made = { keys, clock: systemClock, random: systemRandom }
  return inTransaction(pool, db => makeStaffLink(db, made, null))
    .then(token => `${publicUrlOf(config, port)}/office/enter/${token}`)
    .catch((error: Error) => {
      log.warn({ why: error.message }, 'the link into the back office could not be made')
      return undefined
    })
    .finally(() => pool.end())
}

/** A shop to try a sandbox with. A gateway runs as well without. */
async function openShop(config: Config, port: number, log: Log): Promise<DemoShop | undefined> {
  if (config.demoShopPort === undefined) return undefined
  const account = sandboxCredentials(publicUrlOf(config, port), readSeed(sandboxSeed))
  const { host, demoShopPort: shopPort } = config
  const parts = { account, host, hosts: hostRules(config), port: shopPort, clock: systemClock, random: systemRandom, log }
  const { startDemoShop } = await import('../sandbox/demoShop/shop.ts')
  return startDemoShop(parts).catch((error: Error) => {
    log.warn({ why: error.message }, 'the demo shop could not be opened')
    return undefined
  })
}

function say(text: string): void {
  process.stdout.write(`${text}\n`)
}

type Program = [typeof import('./serve.ts'), typeof import('./workers.ts')]

/** `keys`: those that it writes with, whatever the files of keys say by now. */
type StartedGateway = RunningGateway & { readonly keys: Keys }

async function start(config: Config, opened: OpenDatabase, log: Log, program: Promise<Program>): Promise<StartedGateway> {
  const { keys } = await prepareDatabase(config, opened, systemClock, systemRandom, say)
  const [{ startGateway }, { startWorkers }] = await program
  refuseInspected()
  if (config.workers > 1) return { ...(await startWorkers.primary(config, opened, keys, log)), keys }
  const { connection, embedded } = opened
  const parts = { config, keys, connection, clock: systemClock, random: systemRandom, log, alone: embedded !== undefined }
  return { ...(await startGateway(parts)), keys }
}

/** Why the process ends, from its first moment on: a signal, or a defect. */
type Ending = { readonly reason: Promise<string>; readonly signal: AbortSignal }

/** The first Ctrl-C or TERM stops cleanly; a later one at once, and the next start puts the database in order. */
function endings(log: Log): Ending {
  const onceMilliseconds = 2000 // npm passes on a Ctrl-C that the terminal has sent already: so long it is still the first
  const stopping = new AbortController()
  const reason = new Promise<string>(resolve => {
    let first: number | undefined
    for (const signal of endingSignals) {
      process.on(signal, () => {
        first ??= systemClock.real()
        if (systemClock.real() - first > onceMilliseconds) process.exit(1)
        stopping.abort()
        resolve(signal)
      })
    }
    onDefect(error => {
      log.error({ why: errorText(error) }, 'a defect: the gateway stops')
      stopping.abort()
      resolve('Stopping after a defect, which the log describes.')
    })
  })
  return { reason, signal: stopping.signal }
}

/** A start that was told to end does not fail: it has ended. */
function unlessEnding({ signal }: Ending): (error: unknown) => undefined {
  return error => {
    if (!signal.aborted) throw error
  }
}
