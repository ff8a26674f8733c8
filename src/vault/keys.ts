// The two keys of an installation. The seal key encrypts card data and can be rotated; the lookup key makes keyed hashes of
// tokens and request bodies and stays. Each comes from a file, from the environment, or, in a sandbox, from DATA_DIR.

import { createHmac, createSecretKey, hkdfSync, type KeyObject, timingSafeEqual } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Connection } from '../database/connect.ts'
import { OperatorError } from '../errors.ts'
import { keepProof, lockProofs, type Proof, readProofs } from './store.ts'

/** As key objects: Node spends ten microseconds on preparing a key that it is given as bytes, each time. */
export type Keys = {
  /** Newest first: the first seals, all of them open. */
  readonly seal: readonly { readonly id: string; readonly key: KeyObject }[]
  readonly lookup: KeyObject
}

/** One key: 64 hex characters. */
export function parseKey(text: string, source: string): Buffer {
  if (!/^[0-9a-fA-F]{64}$/.test(text.trim())) throw new OperatorError(`${source} must hold 64 hex characters (32 bytes).`)
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
  let mode: number
  try {
    mode = statSync(path).mode
  } catch {
    throw new OperatorError(`${setting} names ${path}, which cannot be read.`)
  }
  if ((mode & 0o077) !== 0) throw new OperatorError(`${setting} names ${path}, which others may read: set its mode to 0600.`)
  return readFileSync(path, 'utf8')
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

export function makeKeys(sealKeys: readonly Buffer[], lookupKey: Buffer): Keys {
  return {
    seal: sealKeys.map(key => ({
      id: derive(key, 'seal key id', 4).toString('hex'),
      key: createSecretKey(derive(key, 'seal', 32)),
    })),
    lookup: createSecretKey(derive(lookupKey, 'lookup', 32)),
  }
}

/** A keyed hash, for looking up what is not stored in clear. */
export const keyedHash = (keys: Keys, purpose: string, text: string): Buffer =>
  createHmac('sha256', keys.lookup).update(`${purpose}\u0000${text}`).digest()

/** Refuses keys other than those that the database was written with. It changes nothing. */
export function compareKeys(known: readonly Proof[], keys: Keys): void {
  const own = proofsOf(keys)
  for (const { name, proof } of known) {
    const ours = own.get(name)
    if (ours && timingSafeEqual(ours, proof)) continue
    throw new OperatorError(
      name === 'lookup'
        ? 'The lookup key is not the one that this database was written with.'
        : `Card data in this database is sealed with the key ${name.slice(5)}, which is not among the seal keys given.`,
    )
  }
}

/** Compares, then keeps the proofs of the keys that are written with from now on. Inside a transaction: of two processes that begin at
 *  once with different keys, one is refused and leaves nothing. */
export async function keepKeys(db: Connection, keys: Keys): Promise<void> {
  await lockProofs(db)
  compareKeys(await readProofs(db), keys)
  const own = proofsOf(keys)
  for (const name of ['lookup', `seal ${keys.seal[0]!.id}`]) await keepProof(db, name, own.get(name)!)
}

function proofsOf(keys: Keys): ReadonlyMap<string, Buffer> {
  const seals = keys.seal.map(({ id, key }) => [`seal ${id}`, createHmac('sha256', key).update('key check').digest()] as const)
  return new Map([['lookup', keyedHash(keys, 'key check', 'lookup')], ...seals])
}

function derive(key: Buffer, purpose: string, bytes: number): Buffer {
  return Buffer.from(hkdfSync('sha256', key, Buffer.alloc(0), `tollgate ${purpose}`, bytes))
}
