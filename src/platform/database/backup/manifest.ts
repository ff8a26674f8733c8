// What a backup says of itself: of which server, from when to when, and each file with its hash. Sealed with a key of the installation, so that
// nobody else can have written it.

import { createHash } from 'node:crypto'
import {
  closeSync,
  type Dirent,
  existsSync,
  fstatSync,
  fsyncSync,
  openSync,
  readdirSync,
  readSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { OperatorError } from '../../errors.ts'
import { readOwn } from '../embedded/ownFile.ts'

export type FileProof = { readonly bytes: number; readonly sha256: string }

export type Manifest = {
  readonly format: 1
  /** The server's major version and the processor, whose files no other reads. */
  readonly server: string
  readonly mode: string
  readonly build: string
  /** Milliseconds. A restore leads to any moment from the second on. */
  readonly beganAt: number
  readonly endedAt: number
  /** The first and the last piece of WAL that it cannot do without. */
  readonly wal: readonly [from: string, to: string]
  /** Proofs of the keys that the database was written with, in hex, by name. */
  readonly keys: Readonly<Record<string, string>>
  readonly folders: readonly string[]
  /** By the path below `data`. */
  readonly files: Readonly<Record<string, FileProof>>
}

/** The server that reads files of a major version: no other does, nor one of another processor. */
export const whoReads = (major: string): string => `PostgreSQL ${major}, ${process.platform}-${process.arch}`

/** Text → seals in hex: one to be written, several to be compared with while keys are changed. */
export type Seals = (text: string) => readonly string[]

const name = 'manifest'

/** Refused for one of these, and nothing is changed. */
export class BackupError extends OperatorError {}

export function writeManifest(folder: string, manifest: Manifest, seals: Seals): void {
  const text = JSON.stringify(manifest)
  writeHashed(join(folder, name), `${text}\n${seals(text)[0]}\n`)
}

/** Unsealed: what it says must be compared with the seal before it is believed. */
export function readManifest(folder: string): { manifest: Manifest; hasSealOf(seals: Seals): boolean } {
  if (!existsSync(join(folder, name)))
    throw new BackupError(`${folder} is no backup, or one that was broken off: it has no manifest.`)
  const [text = '', seal = ''] = readOwn(folder, name).toString().split('\n')
  try {
    const manifest = JSON.parse(text) as Manifest
    if (manifest.format === 1) return { manifest, hasSealOf: seals => seals(text).includes(seal) }
  } catch {}
  throw new BackupError(`${join(folder, name)} cannot be read: it was altered, or is of a newer program.`)
}

/** A new file, forced to the disk. */
export function writeHashed(path: string, text: string): FileProof {
  writeFileSync(path, text, { flag: 'wx', mode: 0o600, flush: true })
  return { bytes: Buffer.byteLength(text), sha256: createHash('sha256').update(text).digest('hex') }
}

/** A piece of a file at a time: files have up to a gigabyte, and most of them a page. */
export function copyHashed(source: number, to: string, { flush }: { flush: boolean }): FileProof {
  const target = openSync(to, 'wx', 0o600)
  try {
    const hash = createHash('sha256')
    const piece = Buffer.allocUnsafe(Math.min(1 << 20, fstatSync(source).size + 1))
    let bytes = 0
    for (let count = readSync(source, piece); count > 0; count = readSync(source, piece)) {
      hash.update(piece.subarray(0, count))
      writeSync(target, piece, 0, count)
      bytes += count
    }
    if (flush) fsyncSync(target)
    return { bytes, sha256: hash.digest('hex') }
  } finally {
    closeSync(target)
  }
}

/** Folders and files below a folder, as paths from it. What goes away meanwhile is left out. */
export function treeOf(root: string, below = ''): { folders: string[]; files: string[] } {
  const found = { folders: [] as string[], files: [] as string[] }
  for (const entry of entriesOf(root, below).sort((one, other) => (one.name < other.name ? -1 : 1))) {
    const path = join(below, entry.name)
    if (!entry.isDirectory()) found.files.push(path)
    else {
      const inside = treeOf(root, path)
      found.folders.push(path, ...inside.folders)
      found.files.push(...inside.files)
    }
  }
  return found
}

function entriesOf(root: string, below: string): Dirent[] {
  try {
    return readdirSync(join(root, below), { withFileTypes: true })
  } catch (error) {
    if (below !== '' && (error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}
