// Commands over all cells: the same command is run once for each, as a process with that cell's settings, all at the same time. What each said is shown under
// its name, and what can be added is added up. A cell that cannot be reached, or falls silent, is named and keeps nobody waiting.

import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type Command, CommanderError } from 'commander'
import { systemClock } from '../platform/clock.ts'
import { moveFindings, readMap, survey, surveyCell } from '../start/cellMap.ts'
import { type Cell, type Cells, environmentOf, readCells } from '../start/cells.ts'
import { runCommand } from './open.ts'
import { shapeOf } from './reads.ts'

/** Of each command that reads what a whole installation has. */
export function offerCells(command: Command): void {
  if (command.parent?.name() === 'cells') return
  for (const one of command.commands) offerCells(one)
  const names = pathOf(command)
  if (!shapeOf(command) || (command.registeredArguments.length > 0 && names !== 'search find')) return
  command.option('--cells <file>', 'run it in each cell of this file, and add up').hook('preAction', async (_, action) => {
    const { cells, entity, json } = action.opts<{ cells?: string; entity?: string; json?: true }>()
    if (cells === undefined || action !== command) return
    await runCommand(() => runOverCells(readCells(cells), withoutCells(process.argv.slice(2)), entity, json))
    throw new CommanderError(0, 'tollgate.cells', 'It was run in each cell.') // and not here
  })
}

const pathOf = (command: Command): string => (command.parent ? `${pathOf(command.parent)} ${command.name()}`.trim() : '')

/** `doctor --cells file --json` → `doctor --json` */
export const withoutCells = (words: readonly string[]): string[] =>
  words.filter((word, at) => word !== '--cells' && words[at - 1] !== '--cells' && !word.startsWith('--cells='))

type Merged = Readonly<Record<string, unknown>>
/** How a command ended in a cell. `document`: what it would have printed with --json. */
type Ended = { readonly cell: string; readonly code: number; readonly text: string; readonly document?: Merged }

/** Runs a command in each cell, and adds up. */
export async function runOverCells(given: Cells, words: readonly string[], entity?: string, json?: true): Promise<void> {
  const home = entity === undefined ? undefined : readMap(given.map).get(entity)
  const meant = given.cells.filter(({ name }) => home === undefined || name === home)
  const ended = await Promise.all(meant.map(cell => runIn(cell, words)))
  const moves = words[0] === 'doctor' ? moveFindings(await survey(given)) : []
  const merged = mergedOf(ended.flatMap(({ cell, document }) => (document ? [{ cell, document }] : [])))
  if (json) {
    const cells = ended.map(({ cell, code, document, text }) => ({ cell, code, ...(!document && { why: text.trim() }) }))
    process.stdout.write(`${JSON.stringify({ ...merged, ...(moves.length > 0 && { moves }), cells }, null, 2)}\n`)
  } else {
    for (const { cell, text } of ended) process.stdout.write(`${cell}:\n${text}\n`)
    for (const finding of moves) process.stdout.write(`${finding}\n`)
    process.stdout.write(`All cells: ${sumsText(merged)}.\n`)
  }
  process.exitCode = Math.max(...ended.map(({ code }) => code), Math.min(moves.length, 1))
}

const main = fileURLToPath(new URL('main.ts', import.meta.url))
const patienceSeconds = 15

async function runIn(cell: Cell, words: readonly string[]): Promise<Ended> {
  const named = { cell: cell.name, code: 1 }
  const unreachable = async (): Promise<string | undefined> => {
    const found = await surveyCell(cell)
    return typeof found === 'string' ? `The cell ${cell.name} does not answer: ${found}.\n` : undefined
  }
  const why = await unreachable()
  if (why !== undefined) return { ...named, text: why }
  const child = spawn(process.execPath, [...process.execArgv, main, ...words], {
    env: { ...environmentOf(cell), TOLLGATE_DOCUMENT: '3' },
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  })
  let silence: string | undefined
  const look = async () => {
    silence ??= await unreachable()
    if (silence !== undefined) child.kill('SIGKILL')
  }
  const watch = systemClock.every(patienceSeconds * 1000, () => {
    look().catch(() => {}) // what is wrong is what it tells, and it throws nothing
  })
  const [out, complaint, document, code] = await Promise.all([textOf(child, 1), textOf(child, 2), textOf(child, 3), endOf(child)])
  watch.cancel()
  if (silence !== undefined) return { ...named, text: out + complaint + silence }
  const said = words.includes('--json') && document !== '' ? complaint : out + complaint
  return { cell: cell.name, code: code ?? 1, text: said, ...(document !== '' && { document: JSON.parse(document) }) }
}

const endOf = (child: ChildProcess): Promise<number | null> => new Promise(resolve => child.once('close', resolve))

async function textOf(child: ChildProcess, stream: 1 | 2 | 3): Promise<string> {
  const pieces: Buffer[] = []
  for await (const piece of child.stdio[stream] as AsyncIterable<Buffer>) pieces.push(piece)
  return Buffer.concat(pieces).toString()
}

/** Numbers are added, lists stand one behind the other with the cell of each row, what must hold must hold in all. */
export function mergedOf(documents: readonly { readonly cell: string; readonly document: Merged }[]): Merged {
  const names = new Set(documents.flatMap(({ document }) => Object.keys(document)))
  return Object.fromEntries(
    [...names].map(name => {
      const values = documents.flatMap(({ cell, document }) => (name in document ? [{ cell, value: document[name] }] : []))
      if (values.every(({ value }) => typeof value === 'number'))
        return [name, values.reduce((sum, { value }) => sum + (value as number), 0)]
      if (values.every(({ value }) => typeof value === 'boolean')) return [name, values.every(({ value }) => value)]
      if (values.every(({ value }) => Array.isArray(value)))
        return [name, values.flatMap(({ cell, value }) => (value as unknown[]).map(row => withCell(cell, row)))]
      const [first] = values
      return [
        name,
        values.every(({ value }) => value === first!.value)
          ? first!.value
          : Object.fromEntries(values.map(({ cell, value }) => [cell, value])),
      ]
    }),
  )
}

const withCell = (cell: string, row: unknown): unknown =>
  typeof row === 'object' && row !== null ? { cell, ...row } : `${cell}: ${row}`

const sumsText = (document: Merged): string =>
  Object.entries(document)
    .filter(([, value]) => value !== null)
    .map(
      ([name, value]) =>
        `${name} ${Array.isArray(value) ? value.length : typeof value === 'object' ? JSON.stringify(value) : value}`,
    )
    .join(', ')
