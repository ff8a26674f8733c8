// Which tests a word on the command line means: a path, part of the name of a file, a scenario file with or without a line, or the heading of a
// scenario or the name of a test, or part of it.

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { readScenarios } from '../../test/support/scenario.ts'

/** A test file, whole or only the tests whose full names match. */
export type Choice = { readonly file: string; readonly pattern?: string }

/** The word means nothing, or too much; the message is a sentence. */
export class ChoiceError extends Error {}

type NamedChoice = { readonly name: string; readonly choice: Choice }

const scenarioFile = 'test/scenarios.test.ts'
const listedMost = 8

/** `project` is its folder, with a slash at the end. */
export function choose(word: string, project: string): Choice {
  if (word.endsWith('.ts') && existsSync(project + word)) return { file: word }
  const [, place, line] = /^(?:test\/scenarios\/)?(.+?)(?::(\d+))?$/.exec(word)!
  const tests = testFiles(project)
  const scenarios = scenarioFiles(project)
  if (line !== undefined) return scenarioAt(only(place!, scenarios) ?? unknown(place!, scenarios), Number(line), project)
  // What is found in one list is not looked for in the next: a file is meant before a heading is.
  for (const list of [tests, scenarios]) {
    const found = only(place!, list)
    if (found) return found.choice
  }
  const titled = titles(project, tests, scenarios)
  return (only(word, titled) ?? unknown(word, [...tests, ...scenarios, ...titled])).choice
}

export const testFiles = (project: string): NamedChoice[] =>
  filesIn(`${project}test`, '.test.ts').map(name => ({ name, choice: { file: `test/${name}` } }))

/** Most of a minute of a processor and more each: `npm test` leaves them out, `npm test -- --long` runs them and no others. */
export const longFiles: ReadonlySet<string> = new Set([
  'backup.test.ts',
  'cellCommands.test.ts',
  'cellsProof.test.ts',
  'ending.test.ts',
  'formLooks.test.ts',
  'keyCells.test.ts',
  'keyRotation.test.ts',
  'moveDatabases.test.ts',
  'moveKeys.test.ts',
  'moveShared.test.ts',
  'moveTransactions.test.ts',
  'moves.test.ts',
  'movesSeeds.test.ts',
  'officeLooks.test.ts',
  'putBack.test.ts',
  'reportingCells.test.ts',
  'reportingStandby.test.ts',
  'signInCrowds.test.ts',
  'upgradeDatabase.test.ts',
  'walArchive.test.ts',
])

const scenarioFiles = (project: string): NamedChoice[] =>
  filesIn(`${project}test/scenarios`, '.http').map(name => ({
    name,
    choice: { file: scenarioFile, pattern: `^${literally(`${name} `)}` },
  }))

const filesIn = (folder: string, ending: string) => readdirSync(folder).filter(name => name.endsWith(ending))

/** The only one of this name, or else with this in its name; several are an error, none is undefined. */
function only(word: string, list: readonly NamedChoice[]): NamedChoice | undefined {
  const sought = word.toLowerCase()
  const bare = (name: string) => name.replace(/(\.test\.ts|\.http)$/, '').toLowerCase()
  const exact = list.filter(({ name }) => [name.toLowerCase(), bare(name)].includes(sought))
  const found = exact.length > 0 ? exact : list.filter(({ name }) => name.toLowerCase().includes(sought))
  if (found.length > 1) throw new ChoiceError(`"${word}" may be ${listed(found)}: say more of the name.`)
  return found[0]
}

function unknown(word: string, list: readonly NamedChoice[]): never {
  const near = list
    .map(one => ({ ...one, likeness: likeness(word, one.name) }))
    .filter(one => one.likeness > 0.3)
    .sort((a, b) => b.likeness - a.likeness)
    .slice(0, 3)
  throw new ChoiceError(
    `No test file and no scenario is called "${word}"${near.length > 0 ? `; the nearest are ${listed(near)}` : ''}.`,
  )
}

const listed = (some: readonly NamedChoice[]) =>
  some
    .slice(0, listedMost)
    .map(({ name, choice }) => (/\.(ts|http)$/.test(name) ? name : `"${name}" (${choice.file})`))
    .join(', ') + (some.length > listedMost ? ` or ${some.length - listedMost} more` : '')

/** Which share of their pairs of letters two texts have in common, 0 to 1. */
function likeness(one: string, other: string): number {
  const [a, b] = [one, other].map(text => {
    const letters = text.replace(/(\.test\.ts|\.http)$/, '').toLowerCase()
    return new Set(Array.from({ length: letters.length - 1 }, (_, at) => letters.slice(at, at + 2)))
  }) as [Set<string>, Set<string>]
  return a.size + b.size === 0 ? 0 : (2 * [...a].filter(pair => b.has(pair)).length) / (a.size + b.size)
}

function scenarioAt({ name }: NamedChoice, line: number, project: string): Choice {
  const found = readScenarios(`${project}test/scenarios/${name}`).findLast(scenario => scenario.line <= line)
  if (!found) throw new ChoiceError(`No scenario of ${name} stands at line ${line}.`)
  return { file: scenarioFile, pattern: scenarioPattern(name, found.line) }
}

/** A pattern that is met by this text alone. */
const literally = (text: string) => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')

const scenarioPattern = (file: string, line: number) => literally(`(${file}:${line})`)

function titles(project: string, tests: readonly NamedChoice[], scenarios: readonly NamedChoice[]): NamedChoice[] {
  const headings = scenarios.flatMap(({ name: file }) =>
    readScenarios(`${project}test/scenarios/${file}`).map(({ title, line }) => ({
      name: title,
      choice: { file: scenarioFile, pattern: scenarioPattern(file, line) },
    })),
  )
  // Names that are put together while they run cannot be known without running them.
  const names = tests.flatMap(({ choice: { file } }) =>
    [...readFileSync(project + file, 'utf8').matchAll(/^\s*(?:test|it|describe)\(\s*(['"`])((?:(?!\1|\$\{).)+)\1,/gm)].map(
      ([, , name]) => ({ name: name!.replaceAll('\\', ''), choice: { file, pattern: `(^| )${literally(name!)}( |$)` } }),
    ),
  )
  return [...headings, ...names]
}
