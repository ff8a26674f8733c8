// tollgate keys add, prefer: the steps of a change of a key that are changes of its file. Each can be given again when it was killed: what is done stays done.

import { existsSync } from 'node:fs'
import type { Command } from 'commander'
import { tellAndDo } from '../audit/act.ts'
import type { AuditAction } from '../audit/entry.ts'
import { findSubjects } from '../audit/store.ts'
import { readCells } from '../start/cells.ts'
import { isOneOfCells } from '../start/moves/putBack.ts'
import { type KeyKind, type KeyLine, keyLine, readKeyLines, retiredFile, writeKeyLines } from '../vault/keyFile.ts'
import { readProofs } from '../vault/store.ts'
import { argumentOf } from './choices.ts'
import { openCells, silentText } from './eachCell.ts'
import { type CommandParts, refuseCommand, runCommand, withOpened } from './open.ts'

const kinds: readonly KeyKind[] = ['seal', 'lookup']
const say = (sentence: string) => void process.stdout.write(`${sentence}\n`)

export function addFileCommands(keys: Command): void {
  const step = (verb: string, description: string, act: (databases: readonly CommandParts[], kind: KeyKind) => Promise<void>) =>
    keys
      .command(verb)
      .addArgument(argumentOf('kind', 'which key', kinds))
      .description(description)
      .option(
        '--cells <file>',
        'in the file that the cells of this file share: a new key is one with which none of them has written',
      )
      .action((kind: KeyKind, { cells }: { cells?: string }) =>
        cells === undefined
          ? withOpened(async opened => {
              await refuseOneOfCells(opened, 'know')
              await act([opened], kind)
            })
          : runCommand(() => overCells(cells, databases => act(databases, kind))),
      )
  step('add', 'make a new key, the second in its file: gateways open and find with it from their next start on', add)
  step('prefer', 'make the new key the first in its file: gateways write with it from their next start on', prefer)
}

/** Of key files that cells share one cell does not know enough. `what`: what others do with a key. */
export async function refuseOneOfCells({ database }: CommandParts, what: 'know' | 'need'): Promise<void> {
  if (await isOneOfCells(database.work))
    refuseCommand(`This is one of several cells, and others may ${what} the same key: give --cells FILE. Nothing was changed.`)
}

async function overCells(file: string, work: (databases: readonly CommandParts[]) => Promise<void>): Promise<void> {
  const { opened, silent } = await openCells(readCells(file))
  try {
    if (silent.length > 0)
      refuseCommand(`${silent.map(silentText).join('')}It may have written with a key of the file. Nothing was changed.`)
    await work(opened.map(({ parts }) => parts))
  } finally {
    for (const { parts } of opened) await parts.close()
  }
}

async function add(databases: readonly CommandParts[], kind: KeyKind): Promise<void> {
  const path = fileOf(databases, kind)
  const lines = readKeyLines(path, kind)
  const standing = await nextOf(databases, lines)
  if (!standing && kind === 'lookup' && lines.length > 1)
    refuseCommand('A change of the lookup key is under way: `keys retire` ends it first. Nothing was changed.')
  const next = standing ?? keyLine(kind, databases[0]!.random.bytes(32))
  await change(databases, 'keyAdded', next, () => {
    if (!standing) writeKeyLines(path, lines.toSpliced(1, 0, next))
  })
  say(
    `${next.name} is the second key in ${path}. Copy the file to all machines and restart all gateways, then: keys prefer ${kind}`,
  )
}

async function prefer(databases: readonly CommandParts[], kind: KeyKind): Promise<void> {
  const path = fileOf(databases, kind)
  const lines = readKeyLines(path, kind)
  const next = await nextOf(databases, lines)
  const isFirst = !next && !(await knownIn(databases)).has(lines[0]!.name)
  if (!next && !isFirst) refuseCommand(`There is no new key in ${path}: keys add ${kind} makes one. Nothing was changed.`)
  const first = next ?? lines[0]!
  await change(databases, 'keyPreferred', first, () => {
    if (next) writeKeyLines(path, [next, ...lines.filter(line => line !== next)])
  })
  say(
    `${first.name} is the first key in ${path}. Copy the file to all machines and restart all gateways; keys list says what needs the old one.`,
  )
}

/** Takes out of their files what one database has given up and none of them knows: a backup may need it, so it goes into a file beside it. */
export async function takeRetired(databases: readonly CommandParts[]): Promise<void> {
  for (const kind of kinds)
    for (const path of new Set(databases.map(({ config }) => config.keyFiles[kind])))
      if (path !== undefined && existsSync(path)) await takeOut(databases, kind, path)
}

async function takeOut(databases: readonly CommandParts[], kind: KeyKind, path: string): Promise<void> {
  const [first, ...older] = readKeyLines(path, kind)
  const [known, gone] = [await knownIn(databases), await retiredIn(databases)]
  const retired = older.filter(({ name }) => gone.has(name) && !known.has(name))
  if (retired.length === 0) return
  const kept = readKeyLines(retiredFile(path), kind)
  const isNew = ({ name }: KeyLine) => !kept.some(one => one.name === name)
  writeKeyLines(retiredFile(path), [...retired.filter(isNew), ...kept], path)
  writeKeyLines(path, [first!, ...older.filter(line => !retired.includes(line))])
  for (const { name } of retired) say(`${name} is in ${retiredFile(path)} now: keep it as long as a backup may need it.`)
}

function fileOf(databases: readonly CommandParts[], kind: KeyKind): string {
  const [path, ...others] = new Set(databases.map(({ config }) => config.keyFiles[kind]))
  if (others.length > 0)
    refuseCommand(`The cells have ${kind} key files of their own: name those alone that share one. Nothing was changed.`)
  return (
    path ??
    refuseCommand(
      `The ${kind} key stands in the environment: put it into a file, or change it there by hand. Nothing was changed.`,
    )
  )
}

/** The keys that one of them is written with. */
const knownIn = async (databases: readonly CommandParts[]): Promise<ReadonlySet<string>> =>
  new Set((await Promise.all(databases.map(({ database }) => readProofs(database.work)))).flat().map(({ name }) => name))

/** Those that one of them gave up, though it may be written with them again. */
const retiredIn = async (databases: readonly CommandParts[]): Promise<ReadonlySet<string>> =>
  new Set(
    (await Promise.all(databases.map(({ database }) => findSubjects(database.work, 'keyRetired')))).flatMap(found => [...found]),
  )

/** The key that no gateway has written with yet. */
async function nextOf(databases: readonly CommandParts[], [, ...others]: readonly KeyLine[]): Promise<KeyLine | undefined> {
  const [known, retired] = [await knownIn(databases), await retiredIn(databases)]
  return others.find(({ name }) => !known.has(name) && !retired.has(name))
}

/** Of cells that share the file the first one's audit tells of it. */
const change = ([opened]: readonly CommandParts[], action: AuditAction, { name }: KeyLine, write: () => void): Promise<void> =>
  tellAndDo(opened!.database.work, opened!, { action, subject: name }, async () => write())
