// Files for acquirers and banks that wait, because the database was put back: what is to go into one may be in a file that the other side has. One row of the
// installation for all of them.

import type { Connection } from './connect.ts'
import { servedHere } from './elsewhere.ts'

/**
 * Whether files wait, and the subjects of those that do not (see clearing/fileSeries). `after`: where the database stood before, when all that holds them is that
 * nobody knows what became of it.
 */
export type FileHold = { readonly held: boolean; readonly released: readonly string[]; readonly after: string | null }

const noHold: FileHold = { held: false, released: [], after: null }

export async function readFileHold(db: Connection, lock = ''): Promise<FileHold> {
  const { rows } = await db.query<FileHold>(
    `select files_held as held, files_released as released, files_held_after as after from installation ${lock}`,
  )
  return rows[0] ?? noHold
}

export const isHeld = ({ held, released }: Pick<FileHold, 'held' | 'released'>, subject: string): boolean =>
  held && !released.includes(subject)

export async function writeFileHold(db: Connection, { held, released, after }: FileHold): Promise<void> {
  await db.query('update installation set files_held = $1, files_released = $2, files_held_after = $3', [held, released, after])
}

/** All files wait for somebody's word. `after`: as of FileHold; where nothing else is held by it, what holds them already stays the reason. */
export async function holdFiles(db: Connection, after: string | null = null): Promise<void> {
  const before = await readFileHold(db, 'for update')
  if (after !== null && before.held && before.released.length === 0) return
  await writeFileHold(db, { held: true, released: [], after })
}

/** The last number of a series of files. `here`: whether who is in it is served here: what has left with a merchant is not lost. */
export type LastFile = { readonly last: number; readonly here: boolean }
/** By the name of the account or acquirer. */
export type LastFiles = ReadonlyMap<string, LastFile>

/** Of each account. `files` and `lines`: their tables; a line has the account and number of its file, and the merchant whose it is. */
export async function lastFilesOf(db: Connection, files: string, lines: string): Promise<LastFiles> {
  const { rows } = await db.query<LastFile & { name: string }>(
    `select f.account as name, f.last, coalesce((select ${servedHere('l.merchant_id')} from ${lines} l
              where l.account = f.account and l.sequence is not null order by l.sequence desc, l.line desc limit 1), false) as here
       from (select account, max(sequence) as last from ${files} group by account) f`,
  )
  return new Map(rows.map(({ name, ...last }) => [name, last]))
}
