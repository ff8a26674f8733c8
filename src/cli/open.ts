// What the commands work with: the database of the gateway that runs (or the one that DATABASE_URL names) and its keys.
// Several processes may work on one database, so nothing needs to be stopped.

import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type Actor, thisProcess } from '../audit/entry.ts'
import { type Directory, openDirectory } from '../merchants/directory.ts'
import { type Clock, type Random, systemClock, systemRandom } from '../platform/clock.ts'
import { connect, type Database } from '../platform/database/connect.ts'
import { runningEmbedded } from '../platform/database/find.ts'
import { compareModes, readMode } from '../platform/database/installation.ts'
import type { Egress } from '../platform/egress/address.ts'
import { caller, type PlaceCall } from '../platform/egress/call.ts'
import { resolver } from '../platform/egress/resolve.ts'
import { errorText, OperatorError, visible } from '../platform/errors.ts'
import { type Config, readConfig } from '../start/config.ts'
import { compareKeys, type Keys } from '../vault/keys.ts'
import { readProofs } from '../vault/store.ts'

export type CommandParts = {
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
  readonly call: PlaceCall
  close(): Promise<void>
}

const projectFolder = fileURLToPath(new URL('../..', import.meta.url))

export async function open(): Promise<CommandParts> {
  const config = readConfig(process.env, projectFolder)
  const connection = config.databaseUrl !== undefined ? { connectionString: config.databaseUrl } : runningEmbedded(config.dataDir)
  if (!connection)
    throw new OperatorError(`No gateway is running on ${config.dataDir}: start it, or name its database in DATABASE_URL.`)
  const database = connect(connection, systemClock, () => {})
  try {
    const proofs = await readProofs(database.work).catch((error: Error) =>
      refuseCommand(`The database cannot be reached: ${error.message}.`),
    )
    compareModes(await readMode(database.work), config.mode)
    if (proofs.length === 0) refuseCommand('No gateway has used this database yet: start one on it first.')
    const keys = config.keys()
    compareKeys(proofs, keys)
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
      call: caller(systemClock, config.egress, resolver()),
      async close() {
        await directory.close()
        await database.close()
      },
    }
  } catch (error) {
    await database.close()
    throw error
  }
}

/** Opens, works, closes. */
export async function withOpened(work: (opened: CommandParts) => Promise<void>): Promise<void> {
  await runCommand(async () => {
    const opened = await open()
    try {
      await work(opened)
    } finally {
      await opened.close()
    }
  })
}

export async function runCommand(work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    process.stderr.write(`${errorText(error)}\n`)
    process.exitCode = error instanceof WrongUse ? 2 : 1
  }
}

/** A secret never stands in the arguments, which everybody on the machine sees: it is a file's content, or comes by standard input (`-`). */
export function readSecret(path: string, option: string): string {
  try {
    return readFileSync(path === '-' ? 0 : path, 'utf8').trim()
  } catch {
    return refuseCommand(`${option} names ${path}, which cannot be read.`)
  }
}

/** What stands in a file that was named on the command line. */
export function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    return refuseCommand(`${file} cannot be read: ${(error as Error).message}`)
  }
}

/** Ends the command with a sentence. */
export function refuseCommand(sentence: string): never {
  throw new OperatorError(sentence)
}

/** The words of the command say nothing that could be done. */
class WrongUse extends OperatorError {}

/** Ends the command with a sentence about its words. */
export function refuseWords(sentence: string): never {
  throw new WrongUse(sentence)
}

export const looksLikeId = (text: string): boolean => /^[0-9a-f]{32}$/.test(text)

/** A time of an option, in milliseconds: what the database can compare. */
export function readTime(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const milliseconds = Date.parse(text)
  if (milliseconds >= Date.UTC(1970) && milliseconds < Date.UTC(10_000)) return milliseconds
  return refuseWords(`${name} must be a time, for example 2026-01-31T12:00Z.`)
}

/** Rows in columns, the first row being the heading. */
export function table(rows: readonly (readonly (string | number | null)[])[]): string {
  const text = rows.map(row => row.map(cell => visible(String(cell ?? '-'))))
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
  milliseconds === null || Number.isNaN(milliseconds) ? '-' : new Date(milliseconds).toISOString().slice(0, 19).replace('T', ' ')
