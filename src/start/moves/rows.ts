// Rows of a merchant in a database: read page by page, compared by a count and a sum of hashes, written as they are in the other one, taken away.

import type pg from 'pg'
import { type Connection, inTransaction } from '../../platform/database/connect.ts'
import { type Counted, holdMove, type Move } from './store.ts'
import { erasedAnyway, type MovedTable, numberCounters, ofAccounts } from './tables.ts'

/** Rows of a table between two keys, by its primary key: `from` exclusive, `to` inclusive; undefined = from the beginning, to the end. */
type KeyRange = { readonly from: readonly string[] | undefined; readonly to: readonly string[] | undefined }

// Two databases may sort texts differently.
const sorted = ({ name, type }: MovedTable['key'][number]) => (type === 'text' ? `${name} collate "C"` : name)
const keyOf = ({ key }: MovedTable): string => key.map(sorted).join(', ')

function within({ key, condition }: MovedTable, { from, to }: KeyRange): string {
  const bound = (sign: string, offset: number) => {
    const given = key.map(({ type }, at) => `$${offset + at}::${type}${type === 'text' ? ' collate "C"' : ''}`)
    return ` and (${key.map(sorted).join(', ')}) ${sign} (${given.join(', ')})`
  }
  return condition + (from ? bound('>', 2) : '') + (to ? bound('<=', 2 + (from?.length ?? 0)) : '')
}

const valuesOf = (merchantId: string, { from = [], to = [] }: KeyRange): unknown[] => [merchantId, ...from, ...to]

// The hashes of rows, 64 bits each, are added up: the order does not matter, and no row can be there twice.
const total = (alias: string) => `count(*)::integer as rows, coalesce(sum(hash_record_extended(${alias}, 0)), 0)::text as hash`

/** `last`: the key of its last row; null in an empty one. `isLast`: there was none behind it. */
export type KeyPage = {
  readonly rows: number
  readonly hash: string
  readonly last: readonly string[] | null
  readonly isLast: boolean
}

/** A page ends with either. A row may be half a megabyte, and several times that as JSON: all of a page is in memory at once, in both databases and here. */
export const pageMost = { rows: 2000, bytes: 4 * 1024 * 1024 }

/** The next page after a key. */
export async function readPage(db: Connection, table: MovedTable, merchantId: string, from: KeyRange['from']): Promise<KeyPage> {
  const range = { from, to: undefined }
  const [columns, key] = [table.columns.join(', '), keyOf(table)]
  const { rows } = await db.query<KeyPage>(
    `with ahead as materialized (
       select t.*, row_number() over (order by ${key}) as "place in page", sum(${table.size}) over (order by ${key}) as "bytes of page"
         from (select * from ${table.name} where ${within(table, range)} order by ${key} limit ${pageMost.rows}) t),
     page as materialized (select ${columns} from ahead where "bytes of page" <= ${pageMost.bytes} or "place in page" = 1)
     select ${total('page')}, count(*) = (select count(*) from ahead) and count(*) < ${pageMost.rows} as "isLast",
            (select json_build_array(${table.key.map(({ name }) => `${name}::text`).join(', ')})
               from (select * from page order by ${table.key.map(one => `${sorted(one)} desc`).join(', ')} limit 1) last_row) as last
       from page`,
    valuesOf(merchantId, range),
  )
  return rows[0]!
}

export async function countRange(
  db: Connection,
  table: MovedTable,
  merchantId: string,
  range: KeyRange,
): Promise<{ readonly rows: number; readonly hash: string }> {
  const { rows } = await db.query<{ rows: number; hash: string }>(
    `select ${total('t')} from ${table.name} t where ${within(table, range)}`,
    valuesOf(merchantId, range),
  )
  return rows[0]!
}

/** As JSON, untouched on its way: no number and no time loses a digit. */
export async function readRows(db: Connection, table: MovedTable, merchantId: string, range: KeyRange): Promise<string> {
  const { rows } = await db.query<{ rows: string }>(
    `select coalesce(json_agg(t), '[]')::text as rows from ${table.name} t where ${within(table, range)}`,
    valuesOf(merchantId, range),
  )
  return rows[0]!.rows
}

/** Makes a range of the arriving merchant, where there are so many rows, what it is in the other cell. */
export async function writeRows(
  pool: pg.Pool,
  table: MovedTable,
  move: Move,
  range: KeyRange,
  rows: string,
  there: number,
): Promise<void> {
  const { name, key, columns, owner, condition } = table
  const keys = key.map(one => one.name)
  await inTransaction(pool, async db => {
    await holdMove(db, move, 'arriving')
    await movesItself(db, move)
    const values = valuesOf(move.merchantId, range)
    if (there > 0 && name !== numberCounters)
      await db.query(
        `delete from ${name} where ${within(table, range)}
            and (${keys.join(', ')}) not in (select ${keys.join(', ')} from json_populate_recordset(null::${name}, $${values.length + 1}))`,
        [...values, rows],
      )
    const others = columns.filter(column => !keys.includes(column))
    // Another merchant's is not taken from it, nor are numbers that this cell gives out.
    const isOwn = name === numberCounters ? ` where ${name}.elsewhere` : owner && ` where ${name}.${owner} = excluded.${owner}`
    const isAccounts = ofAccounts.has(name) && name !== numberCounters && ` where ${name}.${condition.replaceAll('$1', '$2')}`
    const value = (column: string) =>
      name === numberCounters ? `greatest(${name}.${column}, excluded.${column})` : `excluded.${column}`
    const replaced = others.map(column => `${column} = ${value(column)}`).join(', ')
    await db.query(
      `insert into ${name} select * from json_populate_recordset(null::${name}, $1)
       on conflict (${keys.join(', ')}) do ${others.length === 0 ? 'nothing' : `update set ${replaced}${isOwn || isAccounts || ''}`}`,
      isAccounts ? [rows, move.merchantId] : [rows],
    )
  })
}

/** All that belongs to a merchant. */
export async function countAll(db: Connection, tables: readonly MovedTable[], merchantId: string): Promise<Counted> {
  const counted: Record<string, { rows: number; hash: string }> = {}
  for (const table of tables.filter(({ name }) => !erasedAnyway.has(name)))
    counted[table.name] = await countRange(db, table, merchantId, { from: undefined, to: undefined })
  return counted
}

/** What everybody else is refused, whoever moves the merchant may write and take away until the transaction ends. */
const movesItself = (db: Connection, { merchantId }: Move) =>
  db.query(`select set_config('tollgate.forgets', $1, true)`, [merchantId])

const rowsAtOnce = 1000

/** Takes away what was left behind, at most a step. Returns how many rows went. */
export async function forgetRows(pool: pg.Pool, { name, key, condition }: MovedTable, move: Move): Promise<number> {
  const keys = key.map(one => one.name).join(', ')
  return inTransaction(pool, async db => {
    await holdMove(db, move, 'forgetting')
    await movesItself(db, move)
    const { rowCount } = await db.query(
      `delete from ${name} where (${keys}) in (select ${keys} from ${name} where ${condition} limit ${rowsAtOnce})`,
      [move.merchantId],
    )
    return rowCount ?? 0
  })
}

export async function paymentsIn(db: Connection, merchantId: string): Promise<number> {
  const { rows } = await db.query<{ count: number }>('select count(*) as count from payments where merchant_id = $1', [
    merchantId,
  ])
  return rows[0]!.count
}

/** Whether a cell has a merchant and so many payments of it; archives hold some. */
export async function holdsMerchant(db: Connection, merchantId: string, payments: number): Promise<boolean> {
  const { rows } = await db.query<{ holds: boolean }>(
    `select exists (select from entities where id = $1)
        and (select count(*) from payments where merchant_id = $1) + (select count(*) from archived_payments where merchant_id = $1) >= $2 as holds`,
    [merchantId, payments],
  )
  return rows[0]!.holds
}
