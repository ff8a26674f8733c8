// Makes the rows of a merchant in one database what they are in another: page by page in the order of the primary key, until every page has as many rows and the
// same hash on both sides. A page that is the same is left alone, so that what was copied while the merchant was in use costs one more reading.

import { OperatorError } from '../../platform/errors.ts'
import type { MoveEnds } from './move.ts'
import { countRange, readPage, readRows, writeRows } from './rows.ts'
import type { Counted, Move } from './store.ts'
import { erasedAnyway, isReferredTo, type MovedTable, numberCounters } from './tables.ts'

type Copied = { readonly rows: number; readonly written: number; readonly bytes: number; readonly counted: Counted }

/** Tables that are copied beside each other. */
const atOnce = 3

/**
 * `settled`: nothing is written in the source any more, so that every page must come out the same; what does not throws an OperatorError that names the table.
 * `written` are the rows of pages that were not, of so many bytes.
 */
export async function copyAll(
  ends: Pick<MoveEnds, 'source' | 'target'>,
  tables: readonly MovedTable[],
  move: Move,
  settled: boolean,
): Promise<Copied> {
  const all = { rows: 0, written: 0, bytes: 0, counted: {} as Record<string, { rows: number; hash: string }> }
  const copy = async (table: MovedTable) => {
    const { rows, written, bytes, hash } = await copyTable(ends, table, move, settled && !erasedAnyway.has(table.name))
    all.rows += rows
    all.written += written
    all.bytes += bytes
    if (!erasedAnyway.has(table.name)) all.counted[table.name] = { rows, hash: String(hash) }
  }
  for (const table of tables.filter(isReferredTo)) await copy(table)
  const others = tables.filter(table => !isReferredTo(table) && (settled || table.name !== numberCounters))
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (let table = others.shift(); table; table = others.shift()) await copy(table)
    }),
  )
  return all
}

async function copyTable(
  { source, target }: Pick<MoveEnds, 'source' | 'target'>,
  table: MovedTable,
  move: Move,
  settled: boolean,
) {
  const { merchantId } = move
  const [here, there] = [source.database.work, target.database.work]
  const next = (from?: readonly string[]) => readPage(here, table, merchantId, from)
  let [rows, written, bytes, hash] = [0, 0, 0, 0n]
  let from: readonly string[] | undefined
  for (let page = await next(); ; ) {
    const to = page.isLast ? undefined : page.last!
    const range = { from, to }
    const following = to && next(to) // read while this one is compared
    following?.catch(() => {}) // whoever awaits it is told
    const count = () => countRange(there, table, merchantId, range)
    const isSame = (found: Awaited<ReturnType<typeof count>>) => found.rows === page.rows && found.hash === page.hash
    const found = await count()
    if (!isSame(found)) {
      // What comes behind the last page meanwhile, however much it is, is left to the next round.
      const text = page.last ? await readRows(here, table, merchantId, { from, to: page.last }) : '[]'
      await writeRows(there, table, move, range, text, found.rows)
      written += page.rows
      bytes += text.length
      if (settled && !isSame(await count())) throw new OperatorError(`${table.name} does not become the same in ${target.name}.`)
    }
    rows += page.rows
    hash += BigInt(page.hash)
    if (!following) return { rows, written, bytes, hash }
    page = await following
    from = to
  }
}

/** Tables whose rows are not the same, with the numbers of rows. */
export const differingTables = (ours: Counted, theirs: Counted): string =>
  Object.entries(ours)
    .filter(([name, { rows, hash }]) => theirs[name]?.rows !== rows || theirs[name]?.hash !== hash)
    .map(([name, { rows }]) => `${name} (${rows} and ${theirs[name]?.rows ?? 0} rows)`)
    .join(', ')
