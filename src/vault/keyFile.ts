// The file of a key: one key a line in hex, the one that is written with first. It is replaced whole and only when the new one is on disk, so that whoever is
// killed in between leaves the old file or the new one.

import {
  closeSync,
  existsSync,
  fchownSync,
  fsyncSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { type Keys, makeKeys, parseKeys, readKeyFile } from './keys.ts'

export type KeyKind = 'seal' | 'lookup'
export type KeyLine = { /** As the database knows it: `seal 0a1b2c3d`. */ readonly name: string; readonly hex: string }

export const readKeyLines = (path: string, kind: KeyKind): KeyLine[] =>
  parseKeys(existsSync(path) ? readKeyFile(path, `${kind.toUpperCase()}_KEY_FILE`) : '', path).map(key => keyLine(kind, key))

export const keyLine = (kind: KeyKind, key: Buffer): KeyLine => ({
  name: `${kind} ${makeKeys([key], key)[kind][0]!.id}`,
  hex: key.toString('hex'),
})

/** `like`: whose owner and group it gets; absent: those of the file that it replaces. A link stays one: others copy and mount what it leads to. */
export function writeKeyLines(path: string, lines: readonly KeyLine[], like = path): void {
  const place = existsSync(path) ? realpathSync(path) : path
  const made = draftFile(place)
  rmSync(made, { force: true }) // of one that was killed
  const file = openSync(made, 'wx', 0o600)
  writeSync(file, lines.map(({ hex }) => `${hex}\n`).join(''))
  const { uid, gid } = statSync(like)
  fchownSync(file, uid, gid) // the file that was made here, whatever stands under its name by now
  fsyncSync(file)
  closeSync(file)
  renameSync(made, place)
}

const draftFile = (path: string): string => `${path}.new`

/** Where keys go that nothing in the database needs any more; a backup may. */
export const retiredFile = (path: string): string => `${path}.retired`

/** All that a sandbox's keys have ever stood in, in their folder. */
export const sandboxKeyFiles = (folder: string): string[] =>
  ['seal.key', 'lookup.key'].map(name => join(folder, name)).flatMap(path => [path, draftFile(path), retiredFile(path)])

/** With the lookup keys that were retired: rows of an audit may have been hashed under them. */
export function withRetired(keys: Keys, path: string | undefined): Keys {
  const retired = path === undefined ? [] : readKeyLines(retiredFile(path), 'lookup').map(({ hex }) => Buffer.from(hex, 'hex'))
  return { ...keys, retired: makeKeys([], ...retired).lookup }
}
