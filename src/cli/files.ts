// Files of acquirers on the command line: whose they are, and what became of each line.

import type { LineResult } from '../clearing/import.ts'
import type { AcquirerOptions } from '../connectors/cards/acquirer.ts'
import { visible } from '../platform/errors.ts'
import { readAcquirers, sandboxAcquirer } from '../start/acquirers.ts'
import type { Config } from '../start/config.ts'
import { refuseCommand, refuseWords } from './open.ts'

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

export const lineText = ({ line, outcome, text }: FileLineText): string => `line ${line}  ${outcome}  ${visible(text)}\n`

export const linesText = (lines: readonly FileLineText[]): string => lines.map(lineText).join('')

export function chosenAcquirers({ acquirersFile, mode }: Config, name: string | undefined): AcquirerOptions[] {
  const own = sandboxAcquirer(() => refuseCommand('The host is not called from here.'))
  const all = acquirersFile === undefined ? [own] : readAcquirers(acquirersFile, mode)
  const chosen = all.filter(one => name === undefined || one.name === name)
  return chosen.length > 0
    ? chosen
    : refuseCommand(`There is no acquirer ${name}. There are: ${all.map(one => one.name).join(', ')}.`)
}

export const onlyOne = (chosen: readonly AcquirerOptions[], file: string): AcquirerOptions =>
  chosen.length === 1
    ? chosen[0]!
    : refuseWords(`Say whose ${file} is: --acquirer ${chosen.map(({ name }) => name).join(' or ')}.`)
