// Puts the parts together: configuration, database, keys, directory, connectors, due work, HTTP. Everything that differs between a laptop
// and production is decided here and in config.ts.

import cluster from 'node:cluster'
import { fileURLToPath } from 'node:url'
import { systemClock, systemRandom } from './clock.ts'
import { ConfigError, readConfig } from './config.ts'
import { FolderError } from './database/folder.ts'
import { MigrationError } from './database/migrate.ts'
import { markRunning } from './database/running.ts'
import { makeLog } from './log.ts'
import { SeedError } from './merchants/seed.ts'
import { RiskRulesError } from './risk/rules.ts'
import { openDatabase, prepareDatabase } from './start/database.ts'
import { startGateway } from './start/gateway.ts'
import { writeWelcome } from './start/welcome.ts'
import { startWorkers } from './start/workers.ts'
import { KeyError } from './vault/keys.ts'

const projectFolder = fileURLToPath(new URL('..', import.meta.url))

/** Mistakes that people can mend are told in a sentence; everything else with its stack. */
const expected = [ConfigError, FolderError, MigrationError, SeedError, KeyError, RiskRulesError]

try {
  await (cluster.isPrimary ? main() : startWorkers.worker(projectFolder))
} catch (error) {
  const known = expected.some(kind => error instanceof kind) || isPortError(error)
  process.stderr.write(`${known ? `Tollgate cannot start.\n${sentence(error as Error)}` : (error as Error).stack}\n`)
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

function isPortError(error: unknown): boolean {
  return ['EADDRINUSE', 'EACCES', 'EADDRNOTAVAIL'].includes(String((error as { code?: string }).code))
}

function sentence(error: Error & { code?: string; port?: number; address?: string }): string {
  if (error.code === 'EADDRINUSE')
    return `Port ${error.port} is taken on ${error.address}: stop what uses it, or choose another with PORT.`
  if (error.code === 'EACCES') return `Port ${error.port} may not be used by this user: choose one above 1023 with PORT.`
  if (error.code === 'EADDRNOTAVAIL') return `HOST ${error.address} is not an address of this machine.`
  return error.message
}
