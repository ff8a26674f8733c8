// Files of acquirers on the command line: whose they are, and what became of each line.

import { type HandedInKind, tellRefused } from '../clearing/handedIn.ts'
import type { LineResult } from '../clearing/import.ts'
import { storedNameAt } from '../clearing/storedName.ts'
import type { AcquirerOptions } from '../connectors/cards/acquirer.ts'
import { visible } from '../platform/errors.ts'
import { readAcquirers, sandboxAcquirer } from '../start/acquirers.ts'
import type { Config } from '../start/config.ts'
import { type CommandParts, refuseCommand, refuseWords } from './open.ts'

export type FileLineText = { readonly line: number; readonly outcome: LineResult['kind']; readonly text: string }

/** What is told of each line, as it is settled. */
export function collectLines(say: (line: FileLineText) => void = () => {}) {
  const lines: FileLineText[] = []
  const tell = (line: number, result: LineResult): void => {
    const said = { line, outcome: result.kind, text: result.kind === 'refused' ? result.why : result.text }
    lines.push(said)
    say(said)
  }
  return { lines, tell }
}

/** Nothing of a file counts: the audit tells who brought it, as of one that counts. */
export async function refuseBroken(
  opened: CommandParts,
  { what, of, file, why }: Pick<HandedInKind, 'what' | 'of'> & { readonly file: string; readonly why: string },
): Promise<never> {
  await tellRefused(opened, { what, ...(of !== undefined && { of }), name: storedNameAt(file), why })
  return refuseCommand(`Nothing of ${file} was read: ${why}.`)
}

export const lineText = ({ line, outcome, text }: FileLineText): string => `line ${line}  ${outcome}  ${visible(text)}\n`

export const linesText = (lines: readonly FileLineText[]): string => lines.map(lineText).join('')

export function chosenAcquirers({ acquirersFile, mode }: Config, name: string | undefined): AcquirerOptions[] {
  const own = sandboxAcquirer(() => refuseCommand('The host is not called from here.'))
  const all = acquirersFile === undefined ? [own] : readAcquirers(acquirersFile, mode)
  return chosenOf('acquirer', all, name)
}

/** All where none is named. */
export function chosenOf<One extends { readonly name: string }>(
  what: string,
  all: readonly One[],
  name: string | undefined,
): One[] {
  const chosen = all.filter(one => name === undefined || one.name === name)
  return chosen.length > 0
    ? chosen
    : refuseCommand(`There is no ${what} ${name}. There are: ${all.map(one => one.name).join(', ')}.`)
}

export const onlyOne = (chosen: readonly AcquirerOptions[], file: string): AcquirerOptions =>
  chosen.length === 1
    ? chosen[0]!
    : refuseWords(`Say whose ${file} is: --acquirer ${chosen.map(({ name }) => name).join(' or ')}.`)
