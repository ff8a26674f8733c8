// tollgate keys: which keys the database needs, making one and writing with it, sealing anew under the newest, and retiring what nothing needs any more. And what
// else a gateway proves itself with.

import type { Command } from 'commander'
import { tellAndDo } from '../audit/act.ts'
import { record } from '../audit/chain.ts'
import { findSubjects } from '../audit/store.ts'
import { mayBeOneOf } from '../merchants/access/tokens.ts'
import { announceChange, isValidAt, readElsewhere, readTokens, revokeToken, type TokenRow } from '../merchants/store.ts'
import { keyHours } from '../payments/kept.ts'
import { countListedCards } from '../payments/risk/lists/store.ts'
import { type Connection, inTransaction } from '../platform/database/connect.ts'
import { countEmailKeys } from '../reporting/search/store.ts'
import { readCells } from '../start/cells.ts'
import { credentialsOf } from '../start/credentials.ts'
import { sealedPlaces } from '../start/sealed.ts'
import { readKeysInUse, writtenWith } from '../vault/keys.ts'
import { rewrap } from '../vault/rewrap.ts'
import { countSealed, dropProof, lockKey, readProofs } from '../vault/store.ts'
import { toldEveryMilliseconds } from '../vault/written.ts'
import { openCells, silentText } from './eachCell.ts'
import { addFileCommands, refuseOneOfCells, takeRetired } from './keyFiles.ts'
import { type CommandParts, refuseCommand, runCommand, table, timeText, withOpened } from './open.ts'
import { runOverCells, withoutCells } from './overCells.ts'
import { type ReadOptions, reads, show, timeField } from './reads.ts'

export default (program: Command): void => {
  const keys = program.command('keys').description('the keys of the installation')
  reads(keys.command('list').description('list the keys that are given or known, and what needs each'), {
    'keys[]': 'kind key given since needs',
    'credentials[]': 'name fingerprint ends',
  }).action((options: ReadOptions) =>
    withOpened(async opened => {
      const { reports } = opened.database
      const all = (await standing(opened, reports, await namesInUse(reports))).map(({ name, proved: _, ...one }) => {
        const [kind, key] = name.split(' ') as [string, string]
        return { kind, key, ...one }
      })
      const credentials = (await credentialsOf(opened.config, opened.keys)).map(
        ({ name, fingerprints: [fingerprint], endsAt }) => ({
          name,
          fingerprint,
          ends: timeField(endsAt),
        }),
      )
      show(options, { keys: all.map(({ since, ...one }) => ({ ...one, since: timeField(since) })), credentials }, () =>
        [
          table([
            ['kind', 'key', 'given', 'written with since', 'needed by'],
            ...all.map(({ kind, key, given, since, needs }) => [kind, key, given, timeText(since), needs.join(', ')]),
          ]),
          ...(credentials.length === 0
            ? []
            : [table([['credential', 'fingerprint', 'ends'], ...credentials.map(one => [one.name, one.fingerprint, one.ends])])]),
        ].join('\n'),
      )
    }),
  )

  addFileCommands(keys)

  keys
    .command('rewrap')
    .description('seal every record anew under the newest seal key; may be stopped and begun again while gateways run')
    .option('--cells <file>', 'in each cell of this file')
    .action(({ cells }: { cells?: string }) => {
      if (cells !== undefined) return runCommand(() => runOverCells(readCells(cells), withoutCells(process.argv.slice(2))))
      return withOpened(async opened => {
        const { config, database, keys, random } = opened
        const newest = `seal ${keys.seal[0]!.id}`
        const first = `seal ${config.keys().seal[0]!.id}`
        if (first !== newest)
          refuseCommand(
            `No gateway has written with the key ${first} yet: start all of them with it first, or they cannot open what is sealed anew.`,
          )
        await tellAndDo(database.work, opened, { action: 'sealedAnew', subject: newest }, async ({ came }) => {
          const elsewhere = (await readElsewhere(database.work)).length > 0
          for (const place of sealedPlaces) {
            const { renewed, broken } = await rewrap(database.reports, keys, random, place)
            const counts = elsewhere ? await countSealed(database.reports, place) : []
            const left =
              [...counts].reduce((sum, [id, count]) => (`seal ${id}` === newest ? sum : sum + count), 0) - broken.length
            process.stdout.write(`${place.what}: ${renewed} sealed anew.\n`)
            if (left > 0)
              process.stdout.write(
                `${place.what}: ${left} are of merchants who are served elsewhere: they were left, until \`tollgate merchants forget\`.\n`,
              )
            for (const row of broken) process.stdout.write(`${place.what}: the record of ${row} does not open and was left.\n`)
            if (broken.length > 0) process.exitCode = 1
            if (renewed > 0) came[place.what] = renewed
          }
        })
      })
    })

  keys
    .command('retire')
    .description('give up the older keys that nothing needs any more: then they are taken out of their files')
    .option('--revoke-tokens', 'revoke the access tokens that were not used since the lookup key was changed')
    .option('--cells <file>', 'in each cell of this file: the key files of cells lose what no cell needs')
    .action(({ revokeTokens, cells }: { revokeTokens?: true; cells?: string }) =>
      cells === undefined
        ? withOpened(async opened => {
            await refuseOneOfCells(opened, 'need')
            await retire(opened, revokeTokens === true)
            await takeRetired([opened])
          })
        : runCommand(() => retireOverCells(cells, revokeTokens === true)),
    )
}

/** Each cell gives up by itself what it does not need; the files that cells share only what none needs, and nothing while one cannot be asked. */
async function retireOverCells(file: string, revokeTokens: boolean): Promise<void> {
  const { opened, silent } = await openCells(readCells(file))
  try {
    for (const { cell, parts } of opened) {
      process.stdout.write(`${cell.name}:\n`)
      await retire(parts, revokeTokens)
    }
    for (const one of silent) process.stderr.write(silentText(one))
    if (silent.length === 0) return await takeRetired(opened.map(({ parts }) => parts))
    refuseCommand('Nothing is taken out of the key files: a cell that does not answer may need it.')
  } finally {
    for (const { parts } of opened) await parts.close()
  }
}

type KeyStanding = {
  /** `seal 0a1b2c3d` */
  readonly name: string
  /** `next`: no gateway has written with it yet; `retired`: nothing needs it. */
  readonly given: 'newest' | 'older' | 'next' | 'retired' | 'no'
  readonly since: number | null
  /** True when a gateway asks for it at its start. */
  readonly proved: boolean
  readonly needs: readonly string[]
}

/** The names of the keys that processes which run write with. */
const namesInUse = async (db: Connection): Promise<ReadonlySet<string>> =>
  new Set((await readKeysInUse(db)).flatMap(({ lookup, seal }) => [`lookup ${lookup[0]}`, `seal ${seal[0]}`]))

/** `inUse` was read before: one who writes may do so until then, and be gone. `db`: one on which a count may take its time. */
async function standing({ keys, clock }: CommandParts, db: Connection, inUse: ReadonlySet<string>): Promise<KeyStanding[]> {
  const needs = new Map<string, string[]>()
  const need = (name: string, what: string) => needs.set(name, [...(needs.get(name) ?? []), what])
  for (const name of inUse)
    if (!writtenWith(keys).includes(name)) need(name, 'a gateway or a command that runs and writes with it')
  for (const place of sealedPlaces)
    for (const [id, count] of await countSealed(db, place)) need(`seal ${id}`, `${count} ${place.what}`)
  const all = await readTokens(db)
  const isValid = (token: TokenRow) => isValidAt(token, clock.real())
  const byKey = (tokens: readonly TokenRow[]) => Map.groupBy(tokens, ({ lookupKey }) => `lookup ${lookupKey}`)
  for (const [name, { length }] of byKey(all.filter(isValid))) need(name, `${length} access tokens`)
  // A row that nobody finds any more ends no other of the same credential.
  for (const [name, tokens] of byKey(all.filter(token => !isValid(token))))
    for (const token of mayBeOneOf(all, tokens, clock.real()))
      need(
        name,
        `what was revoked under it and token ${token.id} (${token.label}) may be: revoke that too, or let another follow it`,
      )
  for (const [id, count] of await countListedCards(db)) need(`lookup ${id}`, `${count} cards of risk lists`)
  const known = await readProofs(db)
  const proofs = new Map(known.map(proof => [proof.name, proof.made_at ?? null]))
  const newest = writtenWith(keys)
  // An idempotency key from before the change is found under the older key only. Where no gateway has begun with the newest one here, the change is still to come;
  // and of a gateway that is restarted late, what it made last counts.
  const changed = proofs.get(newest[0]!) ?? clock.real()
  const written = new Map(known.map(({ name, written_at }) => [name, written_at ? written_at + toldEveryMilliseconds : 0]))
  const keptUntil = (name: string) => Math.max(changed, written.get(name) ?? 0) + keyHours * 3_600_000
  const retired = await findSubjects(db, 'keyRetired')
  const given = new Set([...keys.lookup.map(({ id }) => `lookup ${id}`), ...keys.seal.map(({ id }) => `seal ${id}`)])
  for (const name of new Set([...proofs.keys(), ...given]))
    if (name.startsWith('lookup ') && name !== newest[0] && clock.real() < keptUntil(name))
      need(name, `idempotency keys until ${timeText(keptUntil(name))}`)
  for (const [id, count] of await countEmailKeys(db))
    need(`lookup ${id}`, `${count} e-mail addresses of the search (search rebuild hashes them anew)`)
  return [...new Set([...given, ...proofs.keys(), ...needs.keys()])].sort().map(name => ({
    name,
    given: newest.includes(name)
      ? 'newest'
      : !given.has(name)
        ? 'no'
        : proofs.has(name)
          ? 'older'
          : retired.has(name)
            ? 'retired'
            : 'next',
    since: proofs.get(name) ?? null,
    proved: proofs.has(name),
    needs: needs.get(name) ?? [],
  }))
}

/**
 * What is needed is counted while nobody can begin to write with the key, and its proof stays until that is known: a command that is killed leaves all as it was. Who
 * writes with it already decides at once that it stays, and is kept waiting by no count.
 */
async function retire(opened: CommandParts, revokeTokens: boolean): Promise<void> {
  const { database, keys, clock } = opened
  const say = (sentence: string) => void process.stdout.write(`${sentence}\n`)
  if (revokeTokens) {
    const elsewhere = new Set<string | null>(await readElsewhere(database.work))
    const tokens = await readTokens(database.work)
    const newest = tokens.filter(({ lookupKey }) => lookupKey === keys.lookup[0]!.id)
    const older: TokenRow[] = []
    for (const token of tokens) {
      if (!isValidAt(token, clock.real()) || newest.includes(token)) continue
      const left = elsewhere.has(token.merchantId)
        ? 'is of a merchant who is served elsewhere: it was left, until `tollgate merchants forget`.'
        : mayBeOneOf(newest, [token], clock.real()).length > 0
          ? 'may be one that was used under the newest key: it was left. Its next use here makes it one.'
          : undefined
      if (left !== undefined) say(`Token ${token.id} (${token.label}) ${left}`)
      else older.push(token)
    }
    await inTransaction(database.work, async db => {
      for (const { id, label } of older) {
        const entityId = await revokeToken(db, id, clock.real())
        if (entityId === undefined) continue
        await record(db, opened, [{ action: 'tokenRevoked', entityId, subject: id }])
        say(`Token ${id} (${label}) is revoked.`)
      }
      await announceChange(db)
    })
  }
  // All on one connection, without a limit to a statement: it does not stand still while there is something to count.
  await inTransaction(database.reports, async db => {
    const names = (await readProofs(db)).map(({ name }) => name).filter(name => !writtenWith(keys).includes(name))
    const inUse = new Set<string>()
    for (const name of names) if (!(await lockUnused(db, name))) inUse.add(name)
    const older =
      names.length === 0 ? [] : (await standing(opened, db, inUse)).filter(({ name, proved }) => proved && names.includes(name))
    if (older.length === 0) say('No older key is left.')
    for (const { name, needs } of older) {
      if (needs.length > 0) say(`${name} is needed by ${needs.join(', ')}.`)
      else {
        await dropProof(db, name)
        await record(db, opened, [{ action: 'keyRetired', subject: name }])
        say(`${name} is retired: take it away from all gateways, and keep it as long as a backup may need it.`)
      }
    }
    if (older.some(({ needs }) => needs.length > 0)) process.exitCode = 1
  })
}

/** Until the transaction ends nobody begins to write with the key; false when one who runs writes with it, and then it is not locked. */
async function lockUnused(db: Connection, name: string): Promise<boolean> {
  await db.query('savepoint unlocked')
  await lockKey(db, name)
  if (!(await namesInUse(db)).has(name)) return true
  await db.query('rollback to savepoint unlocked')
  return false
}
