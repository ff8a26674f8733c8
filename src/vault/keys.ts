// The two keys of an installation. The seal key encrypts card data and can be rotated; the lookup key makes keyed hashes of
// tokens and request bodies and stays. Each comes from a file, from the environment, or, in a sandbox, from DATA_DIR.

import { createHmac, createSecretKey, hkdfSync, type KeyObject, timingSafeEqual } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Connection } from '../database/connect.ts'
import { keepProof, readProofs } from './store.ts'

/** As key objects: Node spends ten microseconds on preparing a key that it is given as bytes, each time. */
export type Keys = {
  /** Newest first: the first seals, all of them open. */
  readonly seal: readonly { readonly id: string; readonly key: KeyObject }[]
  readonly lookup: KeyObject
}

/** A key that is missing, malformed, readable by others, or not the one of this database. */
export class KeyError extends Error {}

/** One key: 64 hex characters. */
export function parseKey(text: string, source: string): Buffer {
  if (!/^[0-9a-fA-F]{64}$/.test(text.trim())) throw new KeyError(`${source} must hold 64 hex characters (32 bytes).`)
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
    throw new KeyError(`${setting} names ${path}, which cannot be read.`)
  }
  if ((mode & 0o077) !== 0) throw new KeyError(`${setting} names ${path}, which others may read: set its mode to 0600.`)
  return readFileSync(path, 'utf8')
}

/** The key that a sandbox makes for itself, once. */
export function sandboxKey(dataDir: string, name: string, random: () => Buffer): string {
  const folder = join(dataDir, 'keys')
  const path = join(folder, name)
  if (!existsSync(path)) {
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

/** Refuses to run with keys other than those that the database was written with. */
export async function checkKeys(db: Connection, keys: Keys): Promise<void> {
  const lookupProof = keyedHash(keys, 'key check', 'lookup')
  await keepProof(db, 'lookup', lookupProof)
  for (const { id, key } of keys.seal.slice(0, 1)) {
    const proof = createHmac('sha256', key).update('key check').digest()
    await keepProof(db, `seal ${id}`, proof)
  }
  for (const { name, proof } of await readProofs(db)) {
    if (name === 'lookup' && !timingSafeEqual(proof, lookupProof)) {
      throw new KeyError('The lookup key is not the one that this database was written with.')
    }
    if (name.startsWith('seal ') && !keys.seal.some(({ id }) => name === `seal ${id}`)) {
      throw new KeyError(
        `Card data in this database is sealed with the key ${name.slice(5)}, which is not among the seal keys given.`,
      )
    }
  }
}

function derive(key: Buffer, purpose: string, bytes: number): Buffer {
  return Buffer.from(hkdfSync('sha256', key, Buffer.alloc(0), `tollgate ${purpose}`, bytes))
}
