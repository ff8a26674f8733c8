// The file of an operator's cells: whole installations beside each other, each with merchants of its own (docs/scale.md describes it).

import { dirname, resolve } from 'node:path'
import { OperatorError } from '../platform/errors.ts'
import { whoGetsAt, whoMayReplace } from '../platform/files.ts'
import { file, filled, filledListOf, mapOf, object, optional, read, readJsonFile, text, where } from '../platform/schema.ts'
import type { Environment } from './config.ts'

/** One installation: a database with its gateways and its due work. Merchants live in exactly one. */
export type Cell = {
  /** Lower-case letters, digits and hyphens; the proxy's backend has it too. */
  readonly name: string
  /** Settings that differ from those of the process: DATABASE_URL or DATA_DIR at least. See environmentOf. */
  readonly environment: Readonly<Record<string, string>>
  /** `host:port` of each gateway, as the proxy reaches it. */
  readonly gateways: readonly string[]
}

export type Cells = {
  /** The map that the proxy routes by: an absolute path. */
  readonly map: string
  /** A program with its arguments that makes the proxy read the map again; absent = nobody is told. */
  readonly reload?: readonly [string, ...string[]]
  readonly cells: readonly Cell[]
}

const cellSchema = object({
  name: text(/^[a-z0-9][a-z0-9-]{0,31}$/, 'must be 1 to 32 lower-case letters, digits and hyphens'),
  environment: where(
    mapOf(text(/^[A-Z][A-Z0-9_]*$/, 'must be the name of a setting'), filled),
    given => given.DATABASE_URL !== undefined || given.DATA_DIR !== undefined,
    'must name the database of the cell: DATABASE_URL, or DATA_DIR of an embedded one',
  ),
  gateways: filledListOf(text(/^([A-Za-z0-9.-]+|\[[0-9a-fA-F:.]+\]):[1-9]\d{0,4}$/, 'must be host:port')),
})

/** What no two cells may share. */
const own: readonly (readonly [what: string, of: (cell: Cell) => readonly string[]])[] = [
  ['name', cell => [cell.name]],
  ['database', ({ environment }) => [environment.DATABASE_URL ?? resolve(environment.DATA_DIR!)]],
  ['gateway', cell => cell.gateways],
]

const shared = (cells: readonly Cell[]): string[] =>
  own.filter(([, of]) => new Set(cells.flatMap(of)).size < cells.flatMap(of).length).map(([what]) => `holds a ${what} twice`)

export const cellsSchema = file({
  map: filled,
  reload: optional(filledListOf(filled)),
  cells: where(
    filledListOf(cellSchema),
    cells => shared(cells).length === 0,
    ({ input }) => shared(input).join(', and '),
  ),
})

/** Throws an OperatorError that names field and rule of each mistake. A relative `map` is beside the file. */
export function readCells(path: string, environment: Environment = process.env): Cells {
  const source = `The cells file ${path}`
  const { map, reload, cells } = read(cellsSchema, readJsonFile(path, source), source)
  // It names a program, and what Node starts with: whoever changes it decides what is run here, in whatever mode.
  const live = worksLive(cells, environment)
  const who = live ? whoGetsAt(path) : whoMayReplace(path)
  if (who !== undefined) throw new OperatorError(`${live ? 'MODE=live: ' : ''}--cells names ${path}, which ${who}.`)
  return { map: resolve(dirname(path), map), ...(reload && { reload: reload as [string, ...string[]] }), cells }
}

/** Whether a command, or a cell that it works on, is of live mode. */
export const worksLive = (cells: readonly Cell[], environment: Environment = process.env): boolean =>
  [environment, ...cells.map(cell => environmentOf(cell, environment))].some(({ MODE }) => MODE === 'live')

/** What a command for this cell is run with: the cell's own settings over those of the process, whose database is never meant. */
export const environmentOf = ({ environment }: Cell, around: Environment = process.env): Environment => ({
  ...around,
  DATABASE_URL: '',
  ...environment,
})

/** Throws an OperatorError that names those there are. */
export function cellOfName({ cells }: Cells, name: string): Cell {
  const cell = cells.find(one => one.name === name)
  if (cell) return cell
  throw new OperatorError(`There is no cell ${name}: the file names ${cells.map(one => one.name).join(', ')}.`)
}
