// The bytes of a file that is owed, kept in the database from the moment at which it was made until it is delivered or given up: made and read piece by piece, so that no
// server, however slowly it takes one, has us hold all of it.

import { timeOrderedId } from '../../platform/clock.ts'
import type { Connection } from '../../platform/database/connect.ts'
import type { SentFile } from '../../platform/sftp/sftp.ts'
import type { FileContent, OwedFile, OwedParts } from './deliver.ts'
import { addPiece, beginFile, dropMaking, keepFile, keptBytes, readPieces } from './store.ts'

type KeepParts = Pick<OwedParts, 'database' | 'clock' | 'random'>

const pieceBytes = 256 * 1024

/** Where the bytes are kept, and how many records they hold: as it was made first, or made now. Undefined when another process makes it or has delivered it. */
export async function keepContent(
  { database, clock, random }: KeepParts,
  file: OwedFile,
  make: () => FileContent,
): Promise<{ readonly fileId: string; readonly records: number } | undefined> {
  if (file.fileId !== null) return { fileId: file.fileId, records: file.records! }
  const db = database.work
  const fileId = timeOrderedId(clock.real(), random)
  if (!(await beginFile(db, file, fileId))) return undefined
  let [isKept, records, number] = [false, 0, 0]
  try {
    for await (const piece of piecesIn(make(), count => (records += count)))
      if (!(await addPiece(db, file, fileId, number++, piece))) return undefined
    isKept = await keepFile(db, file, fileId, records)
    return isKept ? { fileId, records } : undefined
  } finally {
    if (!isKept) await dropMaking(db, file, fileId)
  }
}

/** Texts as pieces of some length. */
async function* piecesIn(content: FileContent, count: (records: number) => void): AsyncGenerator<Buffer> {
  let [texts, length]: [Buffer[], number] = [[], 0]
  for await (const { text, records } of content) {
    count(records)
    texts.push(Buffer.from(text))
    length += texts.at(-1)!.length
    if (length < pieceBytes) continue
    yield Buffer.concat(texts)
    ;[texts, length] = [[], 0]
  }
  if (length > 0) yield Buffer.concat(texts)
}

export async function keptFile(db: Connection, fileId: string): Promise<SentFile> {
  const length = await keptBytes(db, fileId)
  return { length, pieces: () => readPieces(db, fileId, length) }
}
