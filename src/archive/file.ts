// The file of an archive: gzip, a JSON text in each line. The first says whose it is, the last how many chains stand between.

import { createHash, type Hash } from 'node:crypto'
import { closeSync, createReadStream, createWriteStream, fsyncSync, openSync, renameSync, rmSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import { OperatorError } from '../platform/errors.ts'
import { syncFolder } from '../platform/files.ts'

export type ArchiveHeader = {
  readonly archive: string
  readonly format: 1
  readonly mode: string
  /** Everything in it was recorded before this. */
  readonly before: string
  /** Table → its columns when it was written. */
  readonly columns: Readonly<Record<string, readonly string[]>>
}

const partOf = (path: string): string => `${path}.part`

/** Writes it whole, or leaves a part that the next attempt clears away. → SHA-256 of its bytes, and how many chains it has. */
export async function writeArchiveFile(
  path: string,
  header: ArchiveHeader,
  chains: AsyncIterable<string>,
): Promise<{ proof: Buffer; count: number }> {
  const part = partOf(path)
  rmSync(part, { force: true })
  const hash = createHash('sha256')
  let count = 0
  async function* lines() {
    yield `${JSON.stringify(header)}\n`
    for await (const chain of chains) {
      count++
      yield `${chain}\n`
    }
    yield `${JSON.stringify({ chains: count })}\n`
  }
  const into = createWriteStream(part, { flags: 'wx', mode: 0o600 })
  await pipeline(Readable.from(lines()), createGzip(), hashing(hash), into).catch((error: NodeJS.ErrnoException) => {
    throw error.path === part || error.syscall === 'write'
      ? new OperatorError(`${path} cannot be written (${error.code}).`)
      : error
  })
  const handle = openSync(part, 'r+')
  fsyncSync(handle)
  closeSync(handle)
  renameSync(part, path)
  syncFolder(dirname(resolve(path)))
  return { proof: hash.digest(), count }
}

/** Passes on what comes by, and adds it to a hash. */
const hashing = (hash: Hash) =>
  async function* (pieces: AsyncIterable<Buffer>) {
    for await (const piece of pieces) {
      hash.update(piece)
      yield piece
    }
  }

/** A file that is read from its beginning to its end. What it says is to be believed when its proof is known, and that is at the end. */
export type ArchiveReading = {
  readonly header: ArchiveHeader
  /** The texts of its chains. Throws where it is no archive or ends before its end. */
  readonly chains: AsyncIterable<string>
  /** SHA-256 of all its bytes, once the chains were read. */
  proof(): Buffer
  /** For whoever does not read on. */
  close(): void
}

/** Undefined where a file does not begin as one of an archive. */
export async function openArchiveFile(path: string): Promise<ArchiveReading | undefined> {
  const hash = createHash('sha256')
  const bytes = createReadStream(path)
  const unpacked = createGunzip()
  // Whoever reads the lines is told of what fails.
  const ended = pipeline(bytes, hashing(hash), unpacked).catch(() => {})
  const lines = linesOf(unpacked, path)
  const first = await lines.next().catch(() => undefined)
  const header = first && !first.done ? headerFrom(first.value) : undefined
  if (!header) {
    bytes.destroy()
    return undefined
  }
  async function* chains() {
    let count = 0
    let last: string | undefined
    for await (const line of lines) {
      if (last !== undefined) {
        count++
        yield last
      }
      last = line
    }
    if (last === undefined || countFrom(last) !== count) throw noArchive(path)
    await ended
  }
  return { header, chains: chains(), proof: () => hash.digest(), close: () => void bytes.destroy() }
}

const noArchive = (path: string) => new OperatorError(`${path} is no whole archive of payments.`)

function headerFrom(line: string): ArchiveHeader | undefined {
  try {
    const header = JSON.parse(line) as ArchiveHeader
    return header.format === 1 && typeof header.archive === 'string' ? header : undefined
  } catch {
    return undefined
  }
}

function countFrom(line: string): number | undefined {
  try {
    return (JSON.parse(line) as { chains?: number }).chains
  } catch {
    return undefined
  }
}

/** A thousand payments of the largest kind are less, and a text cannot be much longer. */
const lineMost = 256 * 1024 * 1024

async function* linesOf(bytes: NodeJS.ReadableStream, path: string): AsyncGenerator<string, void> {
  bytes.setEncoding('utf8')
  let [rest, length] = [[] as string[], 0]
  try {
    for await (const piece of bytes as AsyncIterable<string>) {
      const [first = '', ...others] = piece.split('\n')
      rest.push(first)
      length += first.length
      if (length > lineMost) throw noArchive(path)
      for (const other of others) {
        yield rest.join('')
        rest = [other]
        length = other.length
      }
    }
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code?.startsWith('Z_') ? noArchive(path) : error
  }
  if (rest.join('') !== '') yield rest.join('')
}
