// What the commands work with: the database of the gateway that runs (or the one that DATABASE_URL names) and its keys.
// Several processes may work on one database, so nothing needs to be stopped.

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type pg from 'pg'
import { record } from '../audit/chain.ts'
import { type Actor, type AuditEntry, thisProcess } from '../audit/entry.ts'
import { dayBegin, momentOf } from '../contract/formats.ts'
import { type Directory, openDirectory } from '../merchants/directory.ts'
import type { ChannelRefusal } from '../merchants/refusals.ts'
import { type Clock, type Random, systemClock, systemRandom } from '../platform/clock.ts'
import { type Connection, connect, type Database, inTransaction, limited, makePool } from '../platform/database/connect.ts'
import { isElsewhere } from '../platform/database/elsewhere.ts'
import { isLost, isOfSchema } from '../platform/database/errors.ts'
import { connectionOf, isServerOf } from '../platform/database/find.ts'
import { lookAt } from '../platform/database/following.ts'
import { compareModes, readMode } from '../platform/database/installation.ts'
import { otherSchema } from '../platform/database/migrate.ts'
import { lagSeconds, toldLagSeconds } from '../platform/database/reporting.ts'
import type { Egress } from '../platform/egress/address.ts'
import { caller, type PlaceCall } from '../platform/egress/call.ts'
import { resolver } from '../platform/egress/resolve.ts'
import { endingSignals, errorText, OperatorError, visible } from '../platform/errors.ts'
import { readLongFile, readPlainFile, whoGetsAt } from '../platform/files.ts'
import { makeLog } from '../platform/log.ts'
import { channelRefusal } from '../start/channelRefusal.ts'
import { watchClock } from '../start/clockWatch.ts'
import { type Config, type Environment, followerOf, readConfig } from '../start/config.ts'
import { modeBefore, openDatabase } from '../start/database.ts'
import { refuseReporting } from '../start/reporting/whose.ts'
import { compareKeys, type Keys, writerOf, writingWithProved } from '../vault/keys.ts'
import { type Proof, readProofs } from '../vault/store.ts'

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
  /** Which channels gateways with this configuration do not serve. */
  readonly channelRefusal: ChannelRefusal
  /** A sentence, when another program has made the schema. */
  readonly otherSchema: string | undefined
  close(): Promise<void>
}

let mayBeOther = false

/** Said of the command that runs. */
export function openOtherSchemas(may: boolean): void {
  mayBeOther = may
}

export const projectFolder = fileURLToPath(new URL('../..', import.meta.url))

/** `environment`: the process's own, or that of a cell. `judge` may refuse the database before somebody listens there, which a standby lets nobody do. */
export async function open(
  environment: Environment = process.env,
  judge: (db: Connection) => Promise<void> = async () => {},
): Promise<CommandParts> {
  const config = readConfig(environment, projectFolder)
  const connection = connectionOf(config)
  if (!connection) return refuseCommand(noGatewayOn(config))
  const { keys, other } = await look(config, connection, judge)
  const database = connect(connection, systemClock, () => {}, followerOf(config), writerOf(keys))
  try {
    const watch = await watchClock(database.work, systemClock, makeLog('silent'), why =>
      process.stderr.write(`${why} What is done goes by the database's.\n`),
    )
    const { clock } = watch
    const directory = await openDirectory(database, keys, clock, () => {})
    return {
      config,
      keys,
      database,
      directory,
      otherSchema: other,
      by: thisProcess('commandLine'),
      clock,
      random: systemRandom,
      egress: config.egress,
      channelRefusal: channelRefusal(config),
      call: caller(clock, config.egress, resolver()),
      async close() {
        await watch.stop()
        await directory.close()
        await database.close()
      },
    }
  } catch (error) {
    await database.close()
    throw ofOtherSchema(error, other)
  }
}

/** Before anything is done: whether this is the database of the configuration, and with which keys is written there. `other`: a sentence, when another program has made the schema. */
async function look(
  config: Config,
  connection: pg.PoolConfig,
  judge: (db: Connection) => Promise<void>,
): Promise<{ keys: Keys; other: string | undefined }> {
  const pool = makePool(limited(connection, 'look', 30), 1, () => {})
  try {
    const proofs = await readProofs(pool).catch((error: Error) =>
      refuseCommand(error instanceof OperatorError ? error.message : `The database cannot be reached: ${error.message}.`),
    )
    if (config.databaseUrl === undefined && !(await isServerOf(pool, config.dataDir))) refuseCommand(noGatewayOn(config))
    const mode = await readMode(pool)
    compareModes(mode, config.mode)
    await refuseReporting(pool)
    if (proofs.length === 0) refuseCommand('No gateway has used this database yet: start one on it first.')
    const other = await otherSchema(pool)
    if (other !== undefined && !mayBeOther) refuseCommand(other)
    if (other !== undefined) process.stderr.write(`${other}\n`)
    const keys = keysOf(config, proofs)
    if (mode === undefined) compareModes(await modeBefore(pool, keys, systemClock.real()), config.mode)
    await judge(pool)
    return { keys, other }
  } finally {
    await pool.end()
  }
}

/** Those with which is written in a database of these proofs; refuses others. */
export function keysOf(config: Config, proofs: readonly Proof[]): Keys {
  const keys = config.keys()
  compareKeys(proofs, keys)
  return writingWithProved(keys, proofs)
}

const noGatewayOn = ({ dataDir }: Config): string =>
  `No gateway is running on ${dataDir}: start it, or name its database in DATABASE_URL.`

/** Tables and columns that are not there are no defect where another program has made the schema, which is said before. */
const ofOtherSchema = (error: unknown, other: string | undefined): unknown =>
  other !== undefined && isOfSchema(error)
    ? new OperatorError(`What the command needs is not in this database: ${(error as Error).message}.`)
    : error

/** For commands that read there: how the reporting database stands, and a word to people where that matters. */
export async function seeReporting({ database, clock }: CommandParts): Promise<void> {
  const { follows } = database.reporting
  if (!follows) return
  const standing = await lookAt(database.work, follows, clock)
  follows.set(standing)
  if (standing.state === 'away' || standing.state === 'unfit')
    refuseCommand(
      `The reporting database is ${standing.state}: ${standing.why}. Without REPORTING_DATABASE_URL this is read in the database itself.`,
    )
  const seconds = lagSeconds(database.reporting, clock.real()) ?? 0
  if (seconds > toldLagSeconds) process.stderr.write(`The reporting database is ${seconds} seconds behind.\n`)
}

/** Tells a database of its own making, before it takes its place: what it cannot be told of is not put there. */
export const tellOfDatabase = (pool: pg.Pool, keys: Keys, entry: AuditEntry): Promise<number> =>
  inTransaction(pool, db => record(db, { keys, clock: systemClock, by: thisProcess('commandLine') }, [entry]))

/** Opens, works, closes. */
export const withOpened = (work: (opened: CommandParts) => Promise<void>): Promise<void> => runCommand(() => workOpened(work))

/** The same for what has to be done before a gateway runs: the server of an embedded database that stands still runs as long as the work does, and keeps gateways out. */
export const withOwnServer = (work: (opened: CommandParts) => Promise<void>): Promise<void> =>
  runCommand(async () => {
    const config = readConfig(process.env, projectFolder)
    const isStill = connectionOf(config) === undefined && existsSync(join(config.dataDir, 'postgres', 'PG_VERSION'))
    // A signal ends it when the work is done, which is soon: a server that nobody stops would stay.
    await untilSignal(async interrupted => {
      const server = isStill ? await openDatabase(config, () => {}, interrupted) : undefined
      await workOpened(work).finally(() => server?.close())
    })
  })

/** Ctrl-C, or who ends the session, leaves nothing half done: the work is told, and comes to an end. A second one ends the command there and then. */
export async function untilSignal<Value>(work: (interrupted: AbortSignal) => Promise<Value>): Promise<Value> {
  const controller = new AbortController()
  const interrupt = () => controller.abort()
  for (const signal of endingSignals) process.once(signal, interrupt)
  return work(controller.signal).finally(() => {
    for (const signal of endingSignals) process.removeListener(signal, interrupt)
  })
}

async function workOpened(work: (opened: CommandParts) => Promise<void>): Promise<void> {
  const opened = await open()
  try {
    await work(opened).catch(error => Promise.reject(ofOtherSchema(error, opened.otherSchema)))
  } finally {
    await opened.close()
  }
}

export async function runCommand(work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    process.stderr.write(`${toldOf(error)}\n`)
    process.exitCode = error instanceof WrongUse ? 2 : 1
  }
}

function toldOf(error: unknown): string {
  if (error instanceof OperatorError) return errorText(error)
  // What the database says of a merchant, where nothing has asked before.
  if (isElsewhere(error)) return `${(error as Error).message}: nothing was changed there.`
  if (isLost(error))
    return `The database went away (${error.message}). Look at what is there before you do this again: the last step may be done or not.`
  return errorText(error)
}

/** A secret never stands in the arguments, which everybody on the machine sees: it is a file's content, or comes by standard input (`-`). */
export function readSecret(path: string, option: string): string {
  const who = process.env.MODE === 'live' && path !== '-' ? whoGetsAt(path) : undefined
  if (who !== undefined) refuseCommand(`MODE=live: ${option} names ${path}, which ${who}.`)
  try {
    return readFileSync(path === '-' ? 0 : path, 'utf8').trim()
  } catch {
    return refuseCommand(`${option} names ${path}, which cannot be read.`)
  }
}

/** What stands in a file that was named on the command line; what is a pipe or a device is not waited for. */
export function readText(file: string): string {
  try {
    return readPlainFile(file).toString()
  } catch (error) {
    return refuseUnread(file, error as Error)
  }
}

/** The same as its bytes. */
export async function readBytes(file: string, most: number): Promise<Buffer> {
  const bytes = await readLongFile(file, most).catch((error: Error) => refuseUnread(file, error))
  return typeof bytes === 'number' ? refuseCommand(`${file} has ${bytes} bytes, more than ${most}.`) : bytes
}

const refuseUnread = (file: string, { message }: Error): never => refuseCommand(`${file} cannot be read: ${message}`)

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

/** A moment of an option, in milliseconds: what the database can compare. */
export function readTime(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const milliseconds = momentOf(text)
  if (milliseconds >= 0) return milliseconds
  return refuseWords(`${name} must be a time, for example 2026-01-31T12:00Z, or a day, which begins in UTC.`)
}

/** A day of an option, yyyy-MM-dd, of the last century or this one. */
export function readDate(name: string, text: string): string {
  if (dayBegin(text) >= Date.UTC(1900) && text < '2100') return text
  return refuseWords(`${name} must be a day, for example 2026-01-31.`)
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
