// The two keys of an installation. The seal key encrypts card data; the lookup key makes keyed hashes of tokens and request bodies. Both can be
// changed while the old one stands beside the new one. Each comes from a file, from the environment, or, in a sandbox, from DATA_DIR.

import { createHmac, createSecretKey, hkdfSync, type KeyObject, timingSafeEqual } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Connection, readTold, type Writer } from '../platform/database/connect.ts'
import { OperatorError } from '../platform/errors.ts'
import { othersMayRead, readPlainFile, whyUnread } from '../platform/files.ts'
import {
  awaitProofs,
  bringProof,
  byAge,
  keepProof,
  lockProofs,
  nameLookupProof,
  type Proof,
  readProofs,
  shareKey,
} from './store.ts'

/** As key objects: Node spends ten microseconds on preparing a key that it is given as bytes, each time. */
export type Key = { readonly id: string; readonly key: KeyObject }
export type Keys = {
  /** Newest first: the first seals, all of them open. */
  readonly seal: readonly Key[]
  /** Newest first: the first makes what is stored, all find it. Two at most. */
  readonly lookup: readonly Key[]
  /** Lookup keys that nothing is written with any more, for a command that reads an old audit: somebody else may have them by now. */
  readonly retired?: readonly Key[]
}

const lookupKeysMax = 2
/** So many ids of each kind have room in what a session tells. */
const toldMax = 2

/** One key, in hex. */
export function parseKey(text: string, source: string, bytes = 32): Buffer {
  if (!/^[0-9a-fA-F]+$/.test(text.trim()) || text.trim().length !== bytes * 2)
    throw new OperatorError(`${source} must hold ${bytes * 2} hex characters (${bytes} bytes).`)
  return Buffer.from(text.trim(), 'hex')
}

/** Several keys, one a line, the newest first. */
export const parseKeys = (text: string, source: string): Buffer[] =>
  text
    .split(/[\s,]+/)
    .filter(line => line !== '')
    .map(line => parseKey(line, source))

/** A key file must not be readable by others. */
export function readKeyFile(path: string, setting: string): string {
  if (othersMayRead(path)) throw new OperatorError(`${setting} names ${path}, which others may read: set its mode to 0600.`)
  try {
    return readPlainFile(path).toString('utf8')
  } catch {
    throw new OperatorError(`${setting} names ${path}, which ${whyUnread(path)}.`)
  }
}

/** The key that a sandbox makes for itself, once: for a new database, never for one that was written with another. */
export function sandboxKey(dataDir: string, name: string, random: (() => Buffer) | undefined): string {
  const folder = join(dataDir, 'keys')
  const path = join(folder, name)
  if (!existsSync(path)) {
    if (!random)
      throw new OperatorError(`The key file ${path} is missing: bring back the one that this database was written with.`)
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    writeFileSync(path, `${random().toString('hex')}\n`, { mode: 0o600, flag: 'wx' })
  }
  return readFileSync(path, 'utf8')
}

export function makeKeys(sealKeys: readonly Buffer[], ...lookupKeys: readonly Buffer[]): Keys {
  const named = (purpose: string) => (key: Buffer) => ({
    id: derive(key, `${purpose} key id`, 4).toString('hex'),
    key: createSecretKey(derive(key, purpose, 32)),
  })
  return { seal: sealKeys.map(named('seal')), lookup: lookupKeys.map(named('lookup')) }
}

/** A keyed hash, for looking up what is not stored in clear. */
export const keyedHash = (keys: Keys, purpose: string, text: string): Buffer => hashUnder(keys.lookup[0]!, purpose, text)

/** The same under every lookup key, the newest first: what was stored before the key was changed is found under an older one. */
export const keyedHashes = (keys: Keys, purpose: string, text: string): readonly [newest: Buffer, ...older: Buffer[]] => {
  const [newest, ...older] = keys.lookup
  return [hashUnder(newest!, purpose, text), ...older.map(key => hashUnder(key, purpose, text))]
}

const hashUnder = ({ key }: Key, purpose: string, text: string): Buffer =>
  createHmac('sha256', key).update(`${purpose}\u0000${text}`).digest()

/** Refuses keys other than those that the database was written with. It changes nothing. */
export function compareKeys(known: readonly Proof[], keys: Keys): void {
  const own = proofsOf(keys)
  for (const { name, proof } of known) {
    if (provedBy(own, name, proof) !== undefined) continue
    const [kind, id] = name.split(' ')
    throw new OperatorError(
      kind === 'lookup'
        ? `The lookup key is not the one that this database was written with${id === undefined ? '' : ` (${id})`}.`
        : `Card data in this database is sealed with the key ${id}, which is not among the seal keys given.`,
    )
  }
}

/** Compares, then keeps the proofs of the keys that are written with from now on. Inside a transaction: of two processes that begin at
 *  once with different keys, one is refused and leaves nothing. */
export async function keepKeys(db: Connection, keys: Keys, now: number): Promise<void> {
  if (keys.lookup.length > lookupKeysMax)
    throw new OperatorError('A gateway takes one lookup key, or two while it is changed: the new one first.')
  await lockProofs(db)
  const known = await readProofs(db)
  compareKeys(known, keys)
  const own = proofsOf(keys)
  const begun = writtenWith(keys).map(name => ({ name, proof: own.get(name)! }))
  const lacking = known.length === 0 ? [] : await namesLacking(db, begun)
  if (lacking.length > 0)
    throw new OperatorError(
      `A gateway or a command that runs does not hold the ${keyText(lacking)}: give it to all of them as the second first, and restart them (keys add). Nothing was changed.`,
    )
  for (const { name, proof } of known) if (name === 'lookup') await nameLookupProof(db, provedBy(own, name, proof)!)
  for (const { name, proof } of begun) await keepProof(db, name, proof, now)
}

/**
 * Takes over what proves the keys of another database whose rows come here: written with them, they are needed here as there, by whoever retires a key and by every
 * gateway that starts. Inside a transaction. Returns the names of those that a process which runs does not hold; then nothing is taken over.
 */
export async function bringProofs(db: Connection, theirs: readonly Proof[]): Promise<string[]> {
  await lockProofs(db)
  const lacking = await namesLacking(db, theirs)
  if (lacking.length > 0) return lacking
  for (const proof of theirs) {
    if (!(await shareKey(db, proof.name)))
      throw new OperatorError(`Somebody is at retiring the key ${proof.name}: give the command again when that has ended.`)
    await bringProof(db, proof)
  }
  return []
}

/**
 * Names of the keys, of which these are the proofs, that this database does not know yet and that a process which runs does not hold: what is written with them it neither
 * finds nor opens, and an order that comes again would be paid again.
 */
export async function namesLacking(db: Connection, proofs: readonly Proof[]): Promise<string[]> {
  const known = new Set((await readProofs(db)).map(({ name }) => name))
  const inUse = await readKeysInUse(db)
  const newest = proofs.toSorted(byAge).findLast(({ name }) => name.startsWith('seal '))
  return proofs.flatMap(({ name }) => {
    const [kind, id] = name.split(' ') as ['lookup' | 'seal', string]
    /** Of more seal keys than it tells a process may hold older ones. */
    const mayHold = (told: readonly string[]) => kind === 'seal' && name !== newest?.name && told.length === toldMax
    return !known.has(name) && inUse.some(one => !one[kind].includes(id) && !mayHold(one[kind])) ? [name] : []
  })
}

export const lackingText = (where: string, names: readonly string[]): string =>
  `A gateway or a command that runs in ${where} does not hold the ${keyText(names)}: restart all of them there with the key files as they are.`

const keyText = (names: readonly string[]): string => names.map(name => name.replace(' ', ' key ')).join(' and the ')

/**
 * Who works with these keys. A key is written with while its proof is kept: whoever keeps the first one has looked whether all who write here hold the key, and
 * whoever takes it away whether one of them writes with it. Both see a process by its sessions; a session that they could not see yet, as those of a database that
 * comes back, is told here what has become of its keys.
 */
export const writerOf = (keys: Keys): Writer => ({
  told: tellKeys(keys),
  async admit(session) {
    const known = await awaitProofs(session, writtenWith(keys))
    compareKeys(known, keys)
    const retired = writtenWith(keys).find(name => !provedNames(known, keys).includes(name))
    if (retired !== undefined)
      throw new OperatorError(`Nothing is written with the key ${retired} any more: it was retired. Start this process anew.`)
  },
})

/** The same keys, writing with the newest that a gateway has proved, and so all that run hold: who makes none its own, as a command, takes this one. */
export const writingWithProved = (keys: Keys, known: readonly Proof[]): Keys => writingWith(keys, provedNames(known, keys))

const provedNames = (known: readonly Proof[], keys: Keys): string[] => {
  const own = proofsOf(keys)
  return known.flatMap(({ name, proof }) => provedBy(own, name, proof) ?? [])
}

/** What a process tells the others of its keys: ids of those that it finds and opens with, the one that it writes with first. Of many seal keys the newest. */
export const tellKeys = ({ lookup, seal }: Keys): string =>
  [lookup.slice(0, toldMax), seal.slice(0, toldMax)].map(some => some.map(({ id }) => id).join(',')).join(' ')

/** The keys of the processes that run; of those of a version before, which tell nothing, none. Poolers of connections add from where they were asked. */
export async function readKeysInUse(db: Connection): Promise<Record<'lookup' | 'seal', readonly string[]>[]> {
  const told = (await readTold(db)).map(text => /^([0-9a-f,]+) ([0-9a-f,]+)(?: - .*)?$/.exec(text))
  return told.flatMap(found => (found ? [{ lookup: found[1]!.split(','), seal: found[2]!.split(',') }] : []))
}

/**
 * The same keys, writing with those of these names: of a process that begins beside others, which would not find what another key wrote. Throws an OperatorError
 * where they are not among them any more.
 */
export function writingWith(keys: Keys, names: readonly string[]): Keys {
  const first = (kind: 'lookup' | 'seal'): readonly Key[] => {
    const wanted = keys[kind].find(({ id }) => names.includes(`${kind} ${id}`))
    if (!wanted)
      throw new OperatorError(
        `The ${kind} key with which the other processes of this gateway write is not given any more: restart all of it.`,
      )
    return [wanted, ...keys[kind].filter(one => one !== wanted)]
  }
  return { lookup: first('lookup'), seal: first('seal') }
}

/** The names of the keys that are written with: the newest of each kind. */
export const writtenWith = ({ seal, lookup }: Keys): readonly string[] => [`lookup ${lookup[0]!.id}`, `seal ${seal[0]!.id}`]

/** The name of the key that a proof is of. From the time before lookup keys had names there is one that is just called lookup. */
const provedBy = (own: ReadonlyMap<string, Buffer>, name: string, proof: Buffer): string | undefined =>
  [...own.keys()].find(
    ours => (ours === name || (name === 'lookup' && ours.startsWith('lookup '))) && timingSafeEqual(own.get(ours)!, proof),
  )

function proofsOf(keys: Keys): ReadonlyMap<string, Buffer> {
  return new Map([
    ...keys.lookup.map(key => [`lookup ${key.id}`, hashUnder(key, 'key check', 'lookup')] as const),
    ...keys.seal.map(({ id, key }) => [`seal ${id}`, createHmac('sha256', key).update('key check').digest()] as const),
  ])
}

function derive(key: Buffer, purpose: string, bytes: number): Buffer {
  return Buffer.from(hkdfSync('sha256', key, Buffer.alloc(0), `tollgate ${purpose}`, bytes))
}
