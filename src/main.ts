// Puts the parts together: configuration, database, keys, directory, connectors, due work, HTTP. Everything that differs between a laptop
// and production is decided here and in config.ts.

import cluster from 'node:cluster'
import { fileURLToPath } from 'node:url'
import { systemClock, systemRandom } from './clock.ts'
import { readConfig } from './config.ts'
import { markRunning } from './database/running.ts'
import { errorText } from './errors.ts'
import { makeLog } from './log.ts'
import { openDatabase, prepareDatabase } from './start/database.ts'
import { startGateway } from './start/gateway.ts'
import { writeWelcome } from './start/welcome.ts'
import { startWorkers } from './start/workers.ts'

const projectFolder = fileURLToPath(new URL('..', import.meta.url))

try {
  await (cluster.isPrimary ? main() : startWorkers.worker(projectFolder))
} catch (error) {
  process.stderr.write(`Tollgate cannot start.\n${errorText(error)}\n`)
  process.exitCode = 1
  setTimeout(() => process.exit(1), 500).unref()
}

async function main(): Promise<void> {
  const started = performance.now()
  const config = readConfig(process.env, projectFolder)
  const log = makeLog(config.logLevel)
  const unmark = markRunning()
  const opened = await openDatabase(config, text => process.stdout.write(`${text}\n`))
  try {
    const { keys } = await prepareDatabase(config, opened, systemClock, systemRandom)
    const running =
      config.workers > 1
        ? await startWorkers.primary(config, opened)
        : await startGateway({
            config,
            keys,
            connection: opened.connection,
            clock: systemClock,
            random: systemRandom,
            log,
            alone: opened.embedded !== undefined,
          })
    writeWelcome(config, running.port, opened, performance.now() - started)
    const why = await Promise.race([
      signalled(),
      ...(opened.embedded ? [opened.embedded.exited.then(text => `The database server stopped:\n${text}`)] : []),
    ])
    process.stdout.write(`\n${why.startsWith('SIG') ? 'Stopping.' : why}\n`)
    if (!why.startsWith('SIG')) process.exitCode = 1
    await running.stop()
  } finally {
    await opened.close()
    unmark()
  }
}

/** The first Ctrl-C or TERM stops cleanly; a later one at once, and the next start puts the database in order. */
function signalled(): Promise<string> {
  const onceMilliseconds = 2000 // npm passes on a Ctrl-C that the terminal has sent already: so long it is still the first
  return new Promise(resolve => {
    let first: number | undefined
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.on(signal, () => {
        first ??= systemClock.real()
        if (systemClock.real() - first > onceMilliseconds) process.exit(1)
        resolve(signal)
      })
    }
  })
}
