// tollgate cells reporting: one database for the searches and reports of all cells. It is given again after an upgrade, when a cell is added, and after whatever
// went wrong: it puts right what is there.

import type { Command } from 'commander'
import type pg from 'pg'
import { tellAndDo } from '../audit/act.ts'
import { type AuditAction, thisProcess } from '../audit/entry.ts'
import { systemClock, systemRandom } from '../platform/clock.ts'
import { type Connection, makePool, timeParameter } from '../platform/database/connect.ts'
import { readSources } from '../platform/database/following.ts'
import { compareModes, keepMode, readDatabaseIds, readMode } from '../platform/database/installation.ts'
import { isMigrated, migrate } from '../platform/database/migrate.ts'
import { lagOf } from '../platform/database/reporting.ts'
import { addressRefusal } from '../platform/database/servers.ts'
import { errorText } from '../platform/errors.ts'
import { type Cell, environmentOf, readCells, worksLive } from '../start/cells.ts'
import { type Config, readConfig } from '../start/config.ts'
import { databaseOfCell, whyShared } from '../start/gatewayDatabase.ts'
import { databaseRefusals } from '../start/liveMode.ts'
import { findRole, grantReading, rightsBeyond } from '../start/reporting/roles.ts'
import {
  dropSlots,
  dropText,
  type FollowedCell,
  leftSlots,
  matchingSlots,
  placeRefusals,
  subscriptionName,
} from '../start/reporting/slots.ts'
import {
  type CellSums,
  dropSums,
  follow,
  forgetSource,
  prepareTables,
  publisherRefusals,
  readSubscriptions,
  readSums,
  type SubscriptionState,
  subscriberRefusals,
  unsubscribe,
} from '../start/reporting/subscribe.ts'
import { isReporting } from '../start/reporting/whose.ts'
import { keepProof, readProofs } from '../vault/store.ts'
import { keysOf, projectFolder, refuseCommand, runCommand, table } from './open.ts'

/** A server that says nothing for so long is given up. */
const silentMilliseconds = 60_000

type Options = { readonly cells: string; readonly end?: string; readonly reader: string }

export default (program: Command): void => {
  const cells =
    program.commands.find(one => one.name() === 'cells') ??
    program.command('cells').description('installations beside each other')
  cells
    .command('reporting')
    .description(
      'makes REPORTING_DATABASE_URL follow all cells for searches and reports, puts right what is there, and says how it stands',
    )
    .requiredOption('--cells <file>', 'the file of the cells')
    .option('--end <name>', 'follows this cell no longer; what was copied of it stays')
    .option('--reader <role>', 'as whom gateways read there: it is given what they read, and no more', 'tollgate_reader')
    .action((options: Options) => runCommand(() => reporting(options)))
}

async function reporting({ cells: file, end, reader }: Options): Promise<void> {
  const cells = readCells(file)
  const url = process.env.REPORTING_DATABASE_URL || refuseCommand('REPORTING_DATABASE_URL must name the reporting database.')
  refuseAddress('REPORTING_DATABASE_URL', url, worksLive(cells.cells))
  const pool = poolOf(url)
  try {
    const refused = await subscriberRefusals(pool, cells.cells.length).catch((error: Error) => [
      `It cannot be used: ${error.message}.`,
    ])
    if (refused.length > 0) refuseCommand(`REPORTING_DATABASE_URL:\n${refused.join('\n')}`)
    if (end !== undefined) return await endCell(pool, end, cells.cells)
    await migrate(pool, timeParameter(systemClock.real()))
    await prepareTables(pool)
    await letRead(pool, reader)
    const known = await readSums(pool)
    const sums: CellSums[] = []
    const databases = await readDatabases(cells.cells)
    for (const cell of cells.cells) await followCell(pool, cell, databases, sums)
    const states = await readSubscriptions(pool)
    const unnamed = states.filter(({ source }) => !cells.cells.some(({ name }) => name === source))
    for (const { source } of unnamed)
      tellWrong(
        `The reporting database follows ${source}, which the cells file does not name: name it there, or end that with --end ${source}.`,
      )
    if (sums.length === cells.cells.length && unnamed.length === 0) await dropSums(pool, known, sums)
    process.stdout.write(await standing(pool, states))
  } finally {
    await pool.end()
  }
}

/** Something is not as it should be, and the rest goes on. */
function tellWrong(sentence: string): void {
  process.stderr.write(`${sentence}\n`)
  process.exitCode = 1
}

/** Gives a role what gateways read. What it may do beyond that is told, and nothing is kept back for it. */
async function letRead(pool: pg.Pool, reader: string): Promise<void> {
  const role = await findRole(pool, reader)
  const told = role
    ? await rightsBeyond(pool, 'reader', role)
    : [`There is no role ${reader} for gateways to read as: make it, or name another with --reader.`]
  if (role) await grantReading(pool, role, 'reader')
  for (const one of told) tellWrong(`REPORTING_DATABASE_URL: ${one}`)
}

type Databases = ReadonlyMap<string, string | undefined>

/** Which database each cell has; one that cannot be asked is refused when its turn comes. */
async function readDatabases(cells: readonly Cell[]): Promise<Databases> {
  const found = cells.map(async cell => {
    const ids = await withCell(cell, ({ owner }) => readDatabaseIds(owner)).catch(() => undefined)
    return [cell.name, ids?.database] as const
  })
  return new Map(await Promise.all(found))
}

/** What is wrong with one cell keeps no other from being followed. */
async function followCell(pool: pg.Pool, cell: Cell, databases: Databases, sums: CellSums[]): Promise<void> {
  try {
    await withCell(cell, async (one, config, tell) => {
      await refuseCell(pool, one, config, cell.gateways, databases)
      const done = await tell('cellFollowed', () => follow(pool, one, systemClock.real(), systemRandom))
      sums.push(await readSums(one.owner))
      process.stdout.write(`${cell.name} ${done}.\n`)
      for (const left of await leftSlots(pool, one)) tellWrong(`${cell.name}: ${left}`)
    })
  } catch (error) {
    tellWrong(`${cell.name}: ${errorText(error)}`)
  }
}

async function refuseCell(
  pool: pg.Pool,
  cell: FollowedCell,
  config: Config,
  gateways: Cell['gateways'],
  databases: Databases,
): Promise<void> {
  const proofs = await readProofs(cell.owner).catch((error: Error) =>
    refuseCommand(`Its database cannot be reached: ${error.message}.`),
  )
  if (proofs.length === 0) refuseCommand('No gateway has used its database yet: start one on it first.')
  if (!(await isMigrated(cell.owner)))
    refuseCommand('Its database lacks migrations of this program: start a gateway of this version on it first.')
  const mode = (await readMode(cell.owner)) ?? config.mode
  compareModes(mode, config.mode)
  const ours = await readMode(pool)
  if (ours !== undefined && ours !== mode)
    refuseCommand(`It is of the mode ${mode}, and the reporting database of the mode ${ours}.`)
  const known = await readProofs(pool)
  const isLookup = ({ name }: { readonly name: string }) => name.startsWith('lookup')
  const isShared = known.filter(isLookup).some(({ proof }) => proofs.some(one => isLookup(one) && one.proof.equals(proof)))
  if (known.length > 0 && !isShared) refuseCommand('Its lookup key is another than that of the cells which are followed already.')
  const its = await databaseOfCell(cell.owner, gateways)
  const why = 'why' in its ? its.why : whyShared(cell.name, databases)
  if (why !== undefined) refuseCommand(`It is left as it is: ${why}.`)
  await cell.replicator.query('select').catch(refuseUnreached)
  const refused = [...(await placeRefusals(pool, cell)), ...(await publisherRefusals(cell))]
  if (refused.length > 0) refuseCommand(refused.join('\n'))
  await keepMode(pool, mode, systemClock.real())
  for (const { name, proof } of proofs.filter(isLookup)) await keepProof(pool, name, proof, systemClock.real())
}

/**
 * Also of a cell that is no more, or that the file does not name so; what was ended half-way goes on. Its slot is looked for in the cell of that name, then in the others,
 * where it stands when a name was misspelt.
 */
async function endCell(pool: pg.Pool, name: string, cells: readonly Cell[]): Promise<void> {
  const slots = await unsubscribe(pool, name)
  const wasFollowed = (await isReporting(pool)) && (await forgetSource(pool, name))
  if (wasFollowed) process.stdout.write(`${name} is followed no longer; what was copied of it stays.\n`)
  const named = cells.find(cell => cell.name === name)
  const failed = named ? [] : ['The file of the cells does not name it.']
  for (const cell of [...(named ? [named] : []), ...cells.filter(one => one !== named)])
    try {
      if (await withCell(cell, ({ replicator }, _, tell) => dropThere(replicator, slots, wasFollowed, tell))) {
        process.stdout.write(`Its slot ${subscriptionName(name)} in ${cell.name} is dropped.\n`)
        return
      }
    } catch (error) {
      if (cell === named || !named) failed.push(`${cell.name}: ${errorText(error)}`)
    }
  if (!wasFollowed) refuseCommand([`The reporting database does not follow ${name}.`, ...failed].join('\n'))
  if (failed.length > 0)
    refuseCommand(
      `${failed.join('\n')}\nIf its database still runs, drop there what it keeps: ${dropText(subscriptionName(name))}.`,
    )
}

/** False where the cell has none. */
async function dropThere(
  replicator: Connection,
  slots: readonly string[],
  wasFollowed: boolean,
  tell: TellInCell,
): Promise<boolean> {
  const found = await matchingSlots(replicator, slots).catch(refuseUnreached)
  if (found.length === 0) return false
  if (!wasFollowed && found.some(({ active }) => active)) refuseCommand('Another reporting database follows it.')
  await tell('cellUnfollowed', () => dropSlots(replicator, slots))
  return true
}

/** Has the cell's audit tell of what is done with it. */
type TellInCell = <Value>(action: AuditAction, work: () => Promise<Value>) => Promise<Value>

async function withCell<Value>(
  cell: Cell,
  work: (cell: FollowedCell, config: Config, tell: TellInCell) => Promise<Value>,
): Promise<Value> {
  const environment = environmentOf(cell)
  const config = readConfig(environment, projectFolder)
  if (config.databaseUrl === undefined)
    refuseCommand('It has an embedded database, which nobody else reaches: a cell that is followed names DATABASE_URL.')
  const url =
    environment.REPLICATION_URL ||
    refuseCommand(
      'Its environment must hold REPLICATION_URL: the reporting server keeps the password of the role that it names, which must not be that of the owner (docs/operating-reporting.md).',
    )
  refuseAddress('REPLICATION_URL', url, config.mode === 'live')
  const [owner, replicator] = [poolOf(config.databaseUrl), poolOf(url)]
  try {
    return await work({ name: cell.name, owner, replicator, url }, config, async (action, work) => {
      const recorder = { keys: keysOf(config, await readProofs(owner)), clock: systemClock, by: thisProcess('commandLine') }
      return tellAndDo(owner, recorder, { action, subject: cell.name }, work)
    })
  } finally {
    await Promise.all([owner.end(), replicator.end()])
  }
}

function refuseAddress(name: string, url: string, isLive: boolean): void {
  const refusal = addressRefusal(url)
  if (refusal !== undefined) refuseCommand(`${name} ${refusal}.`)
  const refusals = isLive ? databaseRefusals(name, url) : []
  if (refusals.length > 0) refuseCommand(refusals.join('\n'))
}

const refuseUnreached = (error: Error): never =>
  refuseCommand(`REPLICATION_URL: its database cannot be reached: ${error.message}.`)

const poolOf = (connectionString: string): pg.Pool =>
  makePool({ connectionString, application_name: 'tollgate cells', query_timeout: silentMilliseconds }, 2, () => {})

async function standing(pool: pg.Pool, states: readonly SubscriptionState[]): Promise<string> {
  const sources = new Map((await readSources(pool)).map(one => [one.source, one]))
  return table([
    ['cell', 'tables being copied', 'runs', 'stopped', 'seconds behind'],
    ...states.map(({ source, copying, runs, errors }) => {
      const found = sources.get(source)
      return [source, copying, runs ? 'yes' : 'no', errors, found ? lagOf(found, systemClock.real()) : null]
    }),
  ])
}
