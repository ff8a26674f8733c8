// What the commands work with: the database of the gateway that runs (or the one that DATABASE_URL names) and its keys.
// Several processes may work on one database, so nothing needs to be stopped.

import { lookup } from 'node:dns/promises'
import { fileURLToPath } from 'node:url'
import { type Actor, thisProcess } from '../audit/entry.ts'
import { type Clock, type Random, systemClock, systemRandom } from '../clock.ts'
import { type Config, ConfigError, readConfig } from '../config.ts'
import { connect, type Database } from '../database/connect.ts'
import { runningEmbedded } from '../database/find.ts'
import type { Egress } from '../events/address.ts'
import { type Caller, caller } from '../events/call.ts'
import { type Directory, openDirectory } from '../merchants/directory.ts'
import { SeedError } from '../merchants/seed.ts'
import { checkKeys, KeyError, type Keys } from '../vault/keys.ts'

export type Opened = {
  readonly config: Config
  readonly database: Database
  readonly keys: Keys
  readonly clock: Clock
  readonly random: Random
  readonly directory: Directory
  /** Who works here: what is done is told of with this name. */
  readonly by: Actor
  /** Calls to merchants' servers, guarded as the gateway guards them. */
  readonly egress: Egress
  readonly call: Caller
  close(): Promise<void>
}

const projectFolder = fileURLToPath(new URL('../..', import.meta.url))

export async function open(): Promise<Opened> {
  const config = readConfig(process.env, projectFolder)
  const connection = config.databaseUrl !== undefined ? { connectionString: config.databaseUrl } : runningEmbedded(config.dataDir)
  if (!connection)
    throw new ConfigError(`No gateway is running on ${config.dataDir}: start it, or name its database in DATABASE_URL.`)
  const keys = config.keys(() => systemRandom.bytes(32))
  const database = connect(connection, () => {})
  await checkKeys(database.work, keys)
  const directory = await openDirectory(database, keys, systemClock, () => {})
  return {
    config,
    keys,
    database,
    directory,
    by: thisProcess('commandLine'),
    clock: systemClock,
    random: systemRandom,
    egress: config.egress,
    call: caller(config.egress, name => lookup(name, { all: true })),
    async close() {
      await directory.close()
      await database.close()
    },
  }
}

// What people can mend is told in its sentence, without a stack.
const expected = [ConfigError, SeedError, KeyError]

/** Opens, works, closes. */
export async function withOpened(work: (opened: Opened) => Promise<void>): Promise<void> {
  await told(async () => {
    const opened = await open()
    try {
      await work(opened)
    } finally {
      await opened.close()
    }
  })
}

export async function told(work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!expected.some(kind => error instanceof kind)) throw error
    process.stderr.write(`${(error as Error).message}\n`)
    process.exitCode = 1
  }
}

/** Ends the command with a sentence. */
export function refuse(sentence: string): never {
  throw new ConfigError(sentence)
}

/** Rows in columns, the first row being the heading. */
export function table(rows: readonly (readonly (string | number | null)[])[]): string {
  const text = rows.map(row => row.map(cell => String(cell ?? '-')))
  const widths = text[0]!.map((_, column) => Math.max(...text.map(row => row[column]!.length)))
  return text
    .map(row =>
      row
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join('  ')
        .trimEnd(),
    )
    .map(line => `${line}\n`)
    .join('')
}

export const timeText = (milliseconds: number | null): string =>
  milliseconds === null ? '-' : new Date(milliseconds).toISOString().slice(0, 19).replace('T', ' ')
