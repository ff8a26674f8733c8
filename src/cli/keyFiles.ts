// tollgate keys add, prefer: the steps of a change of a key that are changes of its file. Each can be given again when it was killed: what is done stays done.

import { existsSync } from 'node:fs'
import type { Command } from 'commander'
import { tellAndDo } from '../audit/act.ts'
import type { AuditAction } from '../audit/entry.ts'
import { findSubjects } from '../audit/store.ts'
import { type KeyKind, type KeyLine, keyLine, readKeyLines, retiredFile, writeKeyLines } from '../vault/keyFile.ts'
import { readProofs } from '../vault/store.ts'
import { argumentOf } from './choices.ts'
import { type CommandParts, refuseCommand, withOpened } from './open.ts'

const kinds: readonly KeyKind[] = ['seal', 'lookup']
const say = (sentence: string) => void process.stdout.write(`${sentence}\n`)

export function addFileCommands(keys: Command): void {
  const step = (verb: string, description: string, act: (opened: CommandParts, kind: KeyKind) => Promise<void>) =>
    keys
      .command(verb)
      .addArgument(argumentOf('kind', 'which key', kinds))
      .description(description)
      .action((kind: KeyKind) => withOpened(opened => act(opened, kind)))
  step('add', 'make a new key, the second in its file: gateways open and find with it from their next start on', add)
  step('prefer', 'make the new key the first in its file: gateways write with it from their next start on', prefer)
}

async function add(opened: CommandParts, kind: KeyKind): Promise<void> {
  const path = fileOf(opened, kind)
  const lines = readKeyLines(path, kind)
  const standing = await nextOf(opened, lines)
  if (!standing && kind === 'lookup' && lines.length > 1)
    refuseCommand('A change of the lookup key is under way: `keys retire` ends it first. Nothing was changed.')
  const next = standing ?? keyLine(kind, opened.random.bytes(32))
  await change(opened, 'keyAdded', next, () => {
    if (!standing) writeKeyLines(path, lines.toSpliced(1, 0, next))
  })
  say(
    `${next.name} is the second key in ${path}. Copy the file to all machines and restart all gateways, then: keys prefer ${kind}`,
  )
}

async function prefer(opened: CommandParts, kind: KeyKind): Promise<void> {
  const path = fileOf(opened, kind)
  const lines = readKeyLines(path, kind)
  const next = await nextOf(opened, lines)
  const isFirst = !next && !(await isProved(opened, lines[0]!))
  if (!next && !isFirst) refuseCommand(`There is no new key in ${path}: keys add ${kind} makes one. Nothing was changed.`)
  const first = next ?? lines[0]!
  await change(opened, 'keyPreferred', first, () => {
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
  const retired: KeyLine[] = []
  for (const line of older) {
    const isKnown = await Promise.all(databases.map(opened => isProved(opened, line)))
    const isRetired = await Promise.all(databases.map(async opened => (await retiredOf(opened, [line])).length > 0))
    if (!isKnown.includes(true) && isRetired.includes(true)) retired.push(line)
  }
  if (retired.length === 0) return
  const kept = readKeyLines(retiredFile(path), kind)
  const isNew = ({ name }: KeyLine) => !kept.some(one => one.name === name)
  writeKeyLines(retiredFile(path), [...retired.filter(isNew), ...kept], path)
  writeKeyLines(path, [first!, ...older.filter(line => !retired.includes(line))])
  for (const { name } of retired) say(`${name} is in ${retiredFile(path)} now: keep it as long as a backup may need it.`)
}

const fileOf = ({ config }: CommandParts, kind: KeyKind): string =>
  config.keyFiles[kind] ??
  refuseCommand(`The ${kind} key stands in the environment: put it into a file, or change it there by hand. Nothing was changed.`)

const isProved = async ({ database }: CommandParts, { name }: KeyLine): Promise<boolean> =>
  (await readProofs(database.work)).some(proof => proof.name === name)

/** Those that were given up and that nothing is written with again. */
async function retiredOf(opened: CommandParts, lines: readonly KeyLine[]): Promise<KeyLine[]> {
  const retired = await findSubjects(opened.database.work, 'keyRetired')
  const known = new Set((await readProofs(opened.database.work)).map(({ name }) => name))
  return lines.filter(({ name }) => retired.has(name) && !known.has(name))
}

/** The key that no gateway has written with yet. */
async function nextOf(opened: CommandParts, [, ...others]: readonly KeyLine[]): Promise<KeyLine | undefined> {
  const known = new Set((await readProofs(opened.database.work)).map(({ name }) => name))
  const retired = await retiredOf(opened, others)
  return others.find(line => !known.has(line.name) && !retired.includes(line))
}

const change = (opened: CommandParts, action: AuditAction, { name }: KeyLine, write: () => void): Promise<void> =>
  tellAndDo(opened.database.work, opened, { action, subject: name }, async () => write())
