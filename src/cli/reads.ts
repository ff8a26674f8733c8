// Commands that read: with --json they print one document, whose fields are named here once for the help, the reference page and the tests.

import { writeFileSync } from 'node:fs'
import type { Command } from 'commander'

/** Fields by the place where they stand, in the order in which they come: '' is the document itself, `rows[]` each item of a list. */
export type DocumentShape = Readonly<Record<string, string>>
export type ReadOptions = { readonly json?: true }

const shapes = new WeakMap<Command, DocumentShape>()

/** The fields of a command's document; undefined for one that does not only read. */
export const shapeOf = (command: Command): DocumentShape | undefined => shapes.get(command)

/** What a command also writes, by its options. */
type Writes = (options: Readonly<Record<string, unknown>>) => boolean
const writes = new WeakMap<Command, Writes>()

/** Whether it works on a database of another build as far as it can: it is told of, and neither side is harmed. All others refuse such a one. */
export const takesOtherSchemas = (command: Command): boolean =>
  (shapes.has(command) || writes.has(command)) && !writes.get(command)?.(command.opts())

/** For a command that does not read, and is wanted before an upgrade. */
export function takeOtherSchemas(command: Command): Command {
  writes.set(command, () => false)
  return command
}

export function reads(command: Command, shape: DocumentShape, alsoWrites?: Writes): Command {
  shapes.set(command, shape)
  if (alsoWrites) writes.set(command, alsoWrites)
  const lines = Object.entries(shape).map(([place, fields]) => `  ${place === '' ? '(document)' : place}: ${fields}`)
  return command
    .option('--json', 'one JSON document instead of a text')
    .addHelpText('after', `\nFields of the document that --json prints:\n${lines.join('\n')}\n`)
}

/** Whoever runs this command in each cell adds the documents up: it names a file that it has opened. */
export function show({ json }: ReadOptions, document: object, text: () => string): void {
  const file = process.env.TOLLGATE_DOCUMENT
  if (file) writeFileSync(Number(file), JSON.stringify(document))
  process.stdout.write(json ? `${JSON.stringify(document, null, 2)}\n` : text())
}

/** As times stand in documents. */
export const timeField = (milliseconds: number | null): string | null =>
  milliseconds === null || Number.isNaN(milliseconds) ? null : new Date(milliseconds).toISOString()
