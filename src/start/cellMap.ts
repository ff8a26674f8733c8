// The map that a proxy before several cells routes by: a line for each thing that a request may be known by, with the cell that has its merchant. It is
// made of the cells' own directories, which alone say where a merchant is.

import { execFileSync } from 'node:child_process'
import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import type pg from 'pg'
import { merchantTail, shortTail } from '../merchants/merchantTail.ts'
import { readSeed, sandboxSeed } from '../merchants/seed.ts'
import { type EntityRow, isValidAt, readEntities, readTokens, type TokenRow } from '../merchants/store.ts'
import { childEnvironment } from '../platform/childEnvironment.ts'
import { isId, systemClock } from '../platform/clock.ts'
import { type Connection, makePool } from '../platform/database/connect.ts'
import { isOfSchema } from '../platform/database/errors.ts'
import { connectionOf } from '../platform/database/find.ts'
import { compareModes, noteCell, readInCells, readMode } from '../platform/database/installation.ts'
import { takeLock } from '../platform/database/lockFile.ts'
import { appliedMigrations, otherSchema } from '../platform/database/migrate.ts'
import { OperatorError } from '../platform/errors.ts'
import { readPlainFile, syncFolder, whyUnread } from '../platform/files.ts'
import { byAge, readProofs } from '../vault/store.ts'
import { type Cell, type Cells, environmentOf } from './cells.ts'
import { readConfig } from './config.ts'
import { databaseOfCell, whyShared } from './gatewayDatabase.ts'
import { claimOn, isAtHome, lostArrivals, lostText, mayServe } from './moves/claims.ts'
import { findAbandoned, inTheMidst, listMoves, type Move } from './moves/store.ts'

/** Who is in a cell. */
export type CellContents = {
  readonly entities: readonly Omit<EntityRow, 'clockOffset'>[]
  /** Merchants among them that are on their way out: requests are led here until another cell has them. */
  readonly leaving?: ReadonlySet<string>
  /** What has rows here and is served by another cell. */
  readonly passing?: readonly Omit<EntityRow, 'clockOffset'>[]
  /** Those that are valid. */
  readonly tokens: readonly Pick<TokenRow, 'routeHash' | 'merchantId' | 'entities'>[]
  /** All that ever were, of those who are served here. */
  readonly known?: readonly Pick<TokenRow, 'id' | 'hash' | 'routeHash' | 'label' | 'entities' | 'revokedAt'>[]
  /** Which one its database is. */
  readonly database?: string
  /** Why nobody says that its gateways work on it. */
  readonly unsure?: string
  /** Whether it knows by a map that it is one of several. */
  readonly inCells?: boolean
  /** What it says of moves. */
  readonly moves?: readonly Move[]
  /** Those of them that refuse their merchant, and that no command goes on with. */
  readonly abandoned?: readonly Move[]
  /** What has to be the same in all cells, by its name. */
  readonly alike: Readonly<Record<'mode' | 'keys' | 'schema', string>>
}

/** Cells by their names. One that does not answer has the sentence that says why. */
export type Surveyed = ReadonlyMap<string, CellContents | string>

export type CellMap = {
  /** Key → cell. */
  readonly lines: ReadonlyMap<string, string>
  /** What is in several cells, or leads to one that nobody names, a sentence each. It keeps the line that it has, or has none. */
  readonly wrong: readonly string[]
}

/**
 * `before`: the map as it stands. Cells that do not answer keep what they have in it, unless another one has taken it over. What is at home in several cells
 * gets no line: groups, and tokens that act for them. While a cell is silent nobody knows whether it is one of several, but for tokens of one merchant alone, which go
 * where he goes. One that was not surveyed though it has
 * lines was forgotten, or is misspelt, where the cells are named: it keeps them, whoever else has what they are of.
 */
export function cellMapOf(surveyed: Surveyed, before: ReadonlyMap<string, string> = new Map()): CellMap {
  const unnamed = unnamedIn(before, surveyed)
  const silent = new Set([...surveyed].flatMap(([name, one]) => (typeof one === 'string' ? [name] : [])).concat(unnamed))
  const answered = [...surveyed].flatMap(([name, one]) => (typeof one === 'string' ? [] : [[name, one] as const]))
  const homes = new Map<string, Set<string>>()
  const add = (id: string, cell: string) => homes.set(id, (homes.get(id) ?? new Set()).add(cell))
  /** Merchants and their channels, with all that they are known by. */
  const owned = new Map<string, readonly string[]>()
  const own = answered.flatMap(([name, { entities, leaving }]) =>
    entities.flatMap(({ id, kind, merchantId }) =>
      merchantId === null ? [] : [{ name, id, kind, isLeaving: leaving?.has(merchantId) === true }],
    ),
  )
  for (const { name, id, kind, isLeaving } of own.sort((one, other) => Number(one.isLeaving) - Number(other.isLeaving)))
    if (!(isLeaving && homes.has(id))) {
      add(id, name)
      owned.set(id, keysOf(id, kind))
    }
  // Its old cell was asked after a hand-over, and its new one before: whoever moves it writes the map next.
  for (const { id, kind } of answered.flatMap(([, { passing = [] }]) => passing))
    if (!homes.has(id) && before.has(id)) {
      add(id, before.get(id)!)
      owned.set(id, keysOf(id, kind))
    }
  for (const [key, cell] of before) if (silent.has(cell) && isId(key) && !homes.has(key)) add(key, cell)
  const wrong = unnamed.map(
    cell =>
      `The map leads to ${cell}, which the cells file does not name: its lines stay as they are. \`tollgate cells map --cells FILE --without ${cell}\` takes them out.`,
  )
  for (const id of owned.keys()) {
    const [cells, cell] = [homes.get(id)!, before.get(id)]
    if (cells.size > 1) wrong.push(`${id} is in several cells: ${[...cells].join(', ')}.`)
    if (cells.size > 1 && cell !== undefined && cells.has(cell)) homes.set(id, new Set([cell]))
  }
  for (const [name, { entities }] of answered) {
    const parents = new Map(entities.map(({ id, parentId }) => [id, parentId]))
    for (const { parentId, kind } of entities)
      if (kind === 'merchant') for (let above = parentId; above; above = parents.get(above) ?? null) add(above, name)
  }

  const lines = new Map([...before].filter(([, cell]) => silent.has(cell)))
  const only = (key: string, cells: ReadonlySet<string>, isSure = silent.size === 0) => {
    const [cell] = cells
    if (cells.size === 1 && (isSure || before.get(key) === cell)) lines.set(key, cell!)
    else lines.delete(key)
  }
  for (const [id, cells] of homes)
    if (!owned.has(id)) only(id, cells)
    else if (cells.size === 1) for (const key of owned.get(id)!) lines.set(key, [...cells][0]!)
  // A token stands in every cell that it acts in, and each row of it may know a part of its merchants.
  const rows = answered.flatMap(([, { tokens }]) => tokens)
  for (const [routeHash, same] of Map.groupBy(rows, ({ routeHash }) => routeHash)) {
    if (routeHash === null) continue
    const cells = new Set(same.flatMap(({ entities }) => entities.flatMap(id => [...(homes.get(id) ?? [])])))
    only(routeHash, cells, silent.size === 0 || same.every(({ merchantId }) => merchantId !== null))
  }
  for (const [key, cell] of before) if (unnamed.includes(cell)) lines.set(key, cell)
  return { lines, wrong }
}

const unnamedIn = (map: ReadonlyMap<string, string>, named: ReadonlyMap<string, unknown>): string[] => [
  ...new Set([...map.values()].filter(cell => !named.has(cell))),
]

const keysOf = (id: string, kind: EntityRow['kind']): string[] =>
  kind === 'merchant' ? [id, merchantTail(id), shortTail(id)] : [id]

/**
 * Asks each cell, all at once, for a few seconds; one whose gateways say that they work on another database, or that names the database of another cell, counts as
 * one that does not answer.
 */
export async function survey({ cells }: Cells): Promise<Surveyed> {
  const found = await Promise.all(cells.map(async cell => [cell.name, await surveyCell(cell, cell.gateways)] as const))
  const databases = new Map(found.map(([name, one]) => [name, typeof one === 'string' ? undefined : one.database]))
  return new Map(found.map(([name, one]) => [name, whyShared(name, databases) ?? one]))
}

/**
 * Cells that serve somebody who has left them by what another cell says, have nothing of who came, or refuse somebody because nobody knows that, or because a move was
 * left in its midst: a sentence each, with what mends it.
 */
export function moveFindings(surveyed: Surveyed): string[] {
  const answered = [...surveyed].flatMap(([cell, one]) => (typeof one === 'string' ? [] : [{ cell, ...one }]))
  return answered.flatMap(({ cell, entities, moves = [], abandoned = [] }) => {
    const own = new Map(moves.map(move => [move.merchantId, move]))
    const others = answered.flatMap(one => (one.cell === cell ? [] : (one.moves ?? []).map(move => ({ cell: one.cell, move }))))
    const claims = Map.groupBy(others, ({ move }) => move.merchantId)
    const mends = `\`tollgate cells restored --cells FILE --cell ${cell}\``
    const left = entities.flatMap(({ id, kind }) => {
      const claim = kind === 'merchant' && mayServe(own.get(id)) ? claimOn(own.get(id), claims.get(id) ?? []) : undefined
      return claim?.kind === 'has'
        ? [
            `The merchant ${id} has moved from ${cell} to ${claim.cell}, and ${cell} was put back to before that: ${mends} takes it away there.`,
          ]
        : []
    })
    const atHome = new Set(entities.map(({ id }) => id))
    const lost = lostArrivals(cell, moves, atHome, others).map(lostText)
    const midst = abandoned.map(
      ({ merchantId, state, other, changedAt }) =>
        `The merchant ${merchantId} is refused by ${cell} since ${new Date(changedAt).toISOString()}: its move from ${cell} to ${other} is ${state}, and no command is at it. ` +
        `\`tollgate merchants move ${merchantId} --cells FILE --to ${other}\` goes on, and with --back gives it up.`,
    )
    const held = moves.filter(({ putBackAt }) => putBackAt !== null).length
    const refused =
      held === 0 ? [] : [`${cell} was put back, and refuses ${held} merchants until the other cells were asked: ${mends}.`]
    return [...left, ...lost, ...midst, ...refused]
  })
}

const projectFolder = fileURLToPath(new URL('../..', import.meta.url))

/** What a cell says, or why it says nothing. */
export const surveyCell = (cell: Cell, gateways: Cell['gateways'] = []): Promise<CellContents | string> =>
  askCell(cell, async pool => {
    const its = await databaseOfCell(pool, gateways)
    return 'why' in its ? its.why : { ...(await readContents(pool)), ...its }
  })

/**
 * Tells each cell that it is one of several: whoever is put back later has to know it. A database of another mode or other keys than all others have is none of them,
 * whatever a file says; one that stands alone in its file, with no other in the map, is one of several no more. A cell that cannot be told counts as one that does not answer.
 */
async function noteCells({ cells }: Cells, surveyed: Surveyed, before: ReadonlyMap<string, string>): Promise<Surveyed> {
  const isSeveral = cells.length > 1 || unnamedIn(before, surveyed).length > 0
  const kindOf = (one: CellContents | string | undefined) =>
    typeof one === 'object' ? `${one.alike.mode} ${one.alike.keys}` : undefined
  const kinds = [...surveyed.values()].flatMap(one => kindOf(one) ?? [])
  const told = await Promise.all(
    cells.map(async (cell): Promise<[string, CellContents | string]> => {
      const found = surveyed.get(cell.name)!
      const isAlike = kinds.length === 1 || kinds.filter(kind => kind === kindOf(found)).length > 1
      if (typeof found === 'string' || !isAlike || found.inCells === isSeveral) return [cell.name, found]
      const note = (pool: pg.Pool) => noteCell(pool, isSeveral)
      return [cell.name, (await askCell(cell, note)) ?? found]
    }),
  )
  return new Map(told)
}

/** A sentence where the cell cannot be asked. */
async function askCell<Value>(cell: Cell, work: (pool: pg.Pool) => Promise<Value>): Promise<Value | string> {
  try {
    const config = readConfig(environmentOf(cell), projectFolder)
    const connection = connectionOf(config)
    if (!connection) return 'its embedded database does not run'
    const pool = makePool({ ...connection, query_timeout: 10_000 }, 1, () => {})
    return await readMode(pool)
      .then(mode => compareModes(mode, config.mode))
      .then(() => work(pool))
      .catch(
        async error =>
          (isOfSchema(error) && (await otherSchema(pool).catch(() => undefined))?.replace(/\.$/, '')) || Promise.reject(error),
      )
      .finally(() => pool.end())
  } catch (error) {
    return (error as Error).message
  }
}

async function readContents(pool: Connection): Promise<CellContents> {
  // Every sandbox has the same merchant of its own, which no proxy can tell apart.
  const everywhere = JSON.stringify(readSeed(sandboxSeed))
  const now = systemClock.real()
  const [entities, tokens] = [await readEntities(pool), await readTokens(pool)]
  const listed = await listMoves(pool)
  const moves = new Map(listed.map(move => [move.merchantId, move]))
  const isGone = (merchantId: string | null) => !isAtHome(moves.get(merchantId!))
  const [mode, proofs, schema] = [await readMode(pool), await readProofs(pool), await appliedMigrations(pool)]
  const inCells = await readInCells(pool)
  const newest = (kind: string) =>
    proofs
      .filter(({ name }) => name.startsWith(kind))
      .sort(byAge)
      .at(-1)
      ?.proof.toString('hex')
  return {
    entities: entities.filter(({ id, merchantId }) => !isGone(merchantId) && (mode === 'live' || !everywhere.includes(id))),
    ...(inCells !== undefined && { inCells }),
    moves: listed,
    abandoned: await findAbandoned(pool),
    passing: entities.filter(({ merchantId }) => merchantId !== null && isGone(merchantId)),
    leaving: new Set(listed.flatMap(({ merchantId, here, state }) => (!here && inTheMidst.includes(state) ? [merchantId] : []))),
    tokens: tokens.filter(token => isValidAt(token, now)),
    known: tokens.filter(
      token => !isGone(token.merchantId) && (mode === 'live' || !token.entities.every(id => everywhere.includes(id))),
    ),
    alike: { mode: String(mode), keys: `${newest('seal')} ${newest('lookup')}`, schema: [...schema].join(' ') },
  }
}

const heading = '# Written by `tollgate cells map`'

/** Empty when there is no map yet. Throws an OperatorError when something else stands there, over which nobody may write. */
export function readMap(path: string): Map<string, string> {
  const text = existsSync(path) ? readMapText(path) : ''
  if (text !== '' && !text.startsWith(heading))
    throw new OperatorError(`The cells file names ${path} as the map, which is none: \`tollgate cells map\` has not written it.`)
  return new Map(
    text
      .split(/\r?\n/)
      .filter(line => line !== '' && !line.startsWith('#'))
      .map(line => line.split(' ', 2) as [string, string]),
  )
}

function readMapText(path: string): string {
  try {
    return readPlainFile(path).toString()
  } catch {
    throw new OperatorError(`The cells file names ${path} as the map, which ${whyUnread(path)}.`)
  }
}

export type RenewedMap = {
  readonly lines: number
  readonly changed: boolean
  /** What is in several cells, or leads to one that nobody names, a sentence each. */
  readonly wrong: readonly string[]
  /** Cells whose lines were to go, and that had none: a name may be misspelt. */
  readonly absent: readonly string[]
  /** Cells that did not answer, with why; their lines stay as they were. */
  readonly silent: readonly { readonly cell: string; readonly why: string }[]
}

/**
 * Writes the map anew where it is not what the cells say, and has the proxy read it. Several may call it at once: they take turns. What is in
 * several cells keeps its line, and nobody else's. `without`: cells whose lines go though no file names them. Throws an OperatorError when the proxy could not be made to read it, which the next call tries again.
 */
export async function renewMap(cells: Cells, without: readonly string[] = []): Promise<RenewedMap> {
  const { map, reload } = cells
  const unlock = await lockMap(map)
  try {
    const written = readMap(map)
    const before = new Map([...written].filter(([, cell]) => !without.includes(cell)))
    const absent = without.filter(name => ![...written.values()].includes(name))
    const surveyed = await noteCells(cells, await survey(cells), before)
    const { lines, wrong } = cellMapOf(surveyed, before)
    const isAnswered = [...surveyed.values()].some(one => typeof one !== 'string')
    const changed =
      (isAnswered && !existsSync(map)) ||
      lines.size !== written.size ||
      [...lines].some(([key, cell]) => written.get(key) !== cell)
    const unread = `${map}.unread`
    if (changed) {
      if (reload) {
        rmSync(unread, { force: true }) // whatever somebody has put there, it is not followed
        closeSync(openSync(unread, 'wx', 0o644))
      }
      writeMap(map, lines)
    }
    if (reload && existsSync(unread)) {
      tellProxy(map, reload)
      rmSync(unread)
    }
    const silent = [...surveyed].flatMap(([cell, why]) => (typeof why === 'string' ? [{ cell, why }] : []))
    return { lines: lines.size, changed, wrong: [...wrong, ...moveFindings(surveyed)], absent, silent }
  } finally {
    unlock()
  }
}

/** A turn is a survey and a reload; who holds the lock and was killed is replaced at once. */
async function lockMap(map: string): Promise<() => void> {
  for (let waits = 0; ; waits++) {
    const lock = takeLock(`${map}.lock`)
    if (!('pid' in lock)) return lock.release
    if (waits === 1200)
      throw new OperatorError(
        `Another process (pid ${lock.pid}) has been writing ${map} for a minute.` +
          (lock.life === 'unknown' ? ` It is one of another container or machine: if it died, remove ${lock.lock}.` : ''),
      )
    await systemClock.sleep(50)
  }
}

/** A proxy that reads it in this moment finds the old one or the new one, whole. */
function writeMap(map: string, lines: ReadonlyMap<string, string>): void {
  const part = `${map}.part`
  rmSync(part, { force: true })
  const file = openSync(part, 'wx', 0o644)
  writeFileSync(
    file,
    [
      `${heading}: what a request is known by, and the cell that has it.`,
      ...[...lines].sort().map(line => line.join(' ')),
      '',
    ].join('\n'),
  )
  fsyncSync(file)
  closeSync(file)
  renameSync(part, map)
  syncFolder(dirname(map))
}

/** Who reloads it may be any program of the operator's. */
export function tellProxy(map: string, [program, ...words]: readonly [string, ...string[]]): void {
  try {
    const env = { ...childEnvironment(), HOME: process.env.HOME }
    execFileSync(program, words, { env, stdio: ['ignore', 'ignore', 'pipe'], timeout: 60_000 })
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: Buffer }
    const why = stderr?.toString().trim() || message
    throw new OperatorError(`${map} is written, and the proxy has not read it: ${[program, ...words].join(' ')} failed: ${why}`)
  }
}
