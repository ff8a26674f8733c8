// Moves in the database: how far each is, the rows that are copied and compared, the fence around a merchant who leaves.

import { isDeepStrictEqual } from 'node:util'
import type pg from 'pg'
import { type Connection, inTransaction, timeParameter } from '../../platform/database/connect.ts'
import { OperatorError } from '../../platform/errors.ts'
import { erasedAnyway, type MovedTable, ofAccounts, ownAccounts } from './tables.ts'

/**
 * Leaving: copying → frozen → fenced → handing → moved → forgetting → forgotten; frozen or fenced → returning → copying when it fails, or stayed when it is given up. Arriving: arriving →
 * arrived; arriving → forgetting → forgotten when it was given up.
 */
export type MoveState =
  | 'copying'
  | 'frozen'
  | 'fenced'
  | 'handing'
  | 'returning'
  | 'stayed'
  | 'moved'
  | 'arriving'
  | 'arrived'
  | 'forgetting'
  | 'forgotten'

/** Rows and a sum of their hashes, by table. */
export type Counted = Readonly<Record<string, { readonly rows: number; readonly hash: string }>>

export type Move = {
  readonly merchantId: string
  readonly direction: 'leaving' | 'arriving'
  readonly state: MoveState
  /** Whether this cell serves the merchant. */
  readonly here: boolean
  /** The name of the other cell. */
  readonly other: string
  readonly run: number
  /** Both databases of a move have the same; null in moves that began before there were any. */
  readonly moveId: string | null
  readonly counted: Counted | null
  readonly changedAt: number
}

const columns =
  'merchant_id as "merchantId", direction, state, here, other, run, move_id as "moveId", counted, changed_at as "changedAt"'

export async function readMove(db: Connection, merchantId: string): Promise<Move | undefined> {
  return (await db.query<Move>(`select ${columns} from merchant_moves where merchant_id = $1`, [merchantId])).rows[0]
}

export async function listMoves(db: Connection): Promise<Move[]> {
  return (await db.query<Move>(`select ${columns} from merchant_moves order by changed_at, merchant_id`)).rows
}

/**
 * Whether another database has its part of a move, as far as the move has come. What was handed over has arrived there, or was sent on by a later run; a database that
 * was put back to before that is the other end no more.
 */
export function isOtherEnd(move: Move, there: Move | undefined): there is Move {
  const isOver = move.state === 'moved' || move.state === 'forgetting'
  if (there?.direction !== 'arriving') return there !== undefined && isOver && there.run > move.run
  return (there.state === 'arrived' || !isOver) && isOfMove(move, there)
}

/** Moves that began before there were ids are known by what was handed over, and until then by their run. */
const isOfMove = (move: Move, there: Move): boolean =>
  move.moveId !== null || there.moveId !== null
    ? move.moveId === there.moveId
    : there.state === 'arrived'
      ? there.counted !== null && isDeepStrictEqual(move.counted, there.counted)
      : move.run === there.run

/** Replaces what stood there; throws when another command has replaced it meanwhile. */
export async function putMove(
  db: Connection,
  before: Move | undefined,
  move: Omit<Move, 'counted' | 'changedAt'>,
  now: number,
): Promise<void> {
  const { rowCount } = await db.query(
    `insert into merchant_moves (merchant_id, direction, state, here, other, run, move_id, changed_at) values ($1, $2, $3, $4, $5, $6, $7, $8)
     on conflict (merchant_id) do update set direction = excluded.direction, state = excluded.state, here = excluded.here, other = excluded.other,
       run = excluded.run, move_id = excluded.move_id, counted = null, changed_at = excluded.changed_at
       where merchant_moves.run = $9 and merchant_moves.state = $10`,
    [
      move.merchantId,
      move.direction,
      move.state,
      move.here,
      move.other,
      move.run,
      move.moveId,
      timeParameter(now),
      before?.run ?? null,
      before?.state ?? null,
    ],
  )
  if (rowCount !== 1) throw overtaken(move.merchantId)
}

/** The next step of a run; throws when another command has begun its own. */
export async function stepMove(
  db: Connection,
  { merchantId, run }: Pick<Move, 'merchantId' | 'run'>,
  from: readonly MoveState[],
  to: Pick<Move, 'state' | 'here'> & { readonly counted?: Counted },
  now: number,
): Promise<void> {
  const { rowCount } = await db.query(
    `update merchant_moves set state = $4, here = $5, counted = coalesce($6::jsonb, counted), changed_at = $7
      where merchant_id = $1 and run = $2 and state = any ($3)`,
    [merchantId, run, from, to.state, to.here, to.counted ? JSON.stringify(to.counted) : null, timeParameter(now)],
  )
  if (rowCount !== 1) throw overtaken(merchantId)
}

/** Until the transaction ends the move stays as it is: what a command that was overtaken has read is written nowhere. */
async function holdMove(db: Connection, { merchantId, run }: Pick<Move, 'merchantId' | 'run'>, state: MoveState): Promise<void> {
  const { rowCount } = await db.query('select from merchant_moves where merchant_id = $1 and run = $2 and state = $3 for share', [
    merchantId,
    run,
    state,
  ])
  if (rowCount !== 1) throw overtaken(merchantId)
}

const overtaken = (merchantId: string) =>
  new OperatorError(`Another command has gone on with the move of the merchant ${merchantId}: this one ends.`)

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
    const values = valuesOf(move.merchantId, range)
    if (there > 0)
      await db.query(
        `delete from ${name} where ${within(table, range)}
            and (${keys.join(', ')}) not in (select ${keys.join(', ')} from json_populate_recordset(null::${name}, $${values.length + 1}))`,
        [...values, rows],
      )
    const others = columns.filter(column => !keys.includes(column))
    // Another merchant's is not taken from it, nor are numbers given out again that were given out here.
    const isOwn = owner === undefined ? '' : ` where ${name}.${owner} = excluded.${owner}`
    const isAccounts = ofAccounts.has(name) ? ` where ${name}.${condition.replaceAll('$1', '$2')}` : ''
    const value = (column: string) =>
      name === 'slip_numbers' ? `greatest(${name}.${column}, excluded.${column})` : `excluded.${column}`
    const replaced = others.map(column => `${column} = ${value(column)}`).join(', ')
    await db.query(
      `insert into ${name} select * from json_populate_recordset(null::${name}, $1)
       on conflict (${keys.join(', ')}) do ${others.length === 0 ? 'nothing' : `update set ${replaced}${isOwn}${isAccounts}`}`,
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

const rowsAtOnce = 1000

/** Takes away what was left behind, at most a step. Returns how many rows went. */
export async function forgetRows(pool: pg.Pool, { name, key, condition }: MovedTable, move: Move): Promise<number> {
  const keys = key.map(one => one.name).join(', ')
  return inTransaction(pool, async db => {
    await holdMove(db, move, 'forgetting')
    await db.query(`select set_config('tollgate.forgets', $1, true)`, [move.merchantId])
    const { rowCount } = await db.query(
      `delete from ${name} where (${keys}) in (select ${keys} from ${name} where ${condition} limit ${rowsAtOnce})`,
      [move.merchantId],
    )
    return rowCount ?? 0
  })
}

const fenceOf = (merchantId: string) => `elsewhere_${merchantId}`

/** For so many milliseconds others' writes may wait behind us. */
export async function fenceTable(pool: pg.Pool, { name, owner }: MovedTable, move: Move, milliseconds: number): Promise<void> {
  const { merchantId } = move
  if (!/^[0-9a-f]{32}$/.test(merchantId)) throw new Error('no id of a merchant')
  const fence = fenceOf(merchantId)
  await inTransaction(pool, async db => {
    await holdMove(db, move, 'frozen')
    await db.query(`set local lock_timeout = ${milliseconds}`)
    await db.query(
      `create or replace trigger ${fence} before insert or update on ${name} for each row when (new.${owner} = '${merchantId}')
       execute function refuse_elsewhere('${merchantId}')`,
    )
    await db.query(
      `create or replace trigger ${fence}_taken before delete on ${name} for each row when (old.${owner} = '${merchantId}')
       execute function refuse_elsewhere('${merchantId}')`,
    )
  })
}

/** The tables with a fence around a merchant. */
export async function fencedTables(db: Connection, merchantId: string): Promise<string[]> {
  const { rows } = await db.query<{ name: string }>(
    'select distinct c.relname as name from pg_trigger t join pg_class c on c.oid = t.tgrelid where t.tgname like $1 order by 1',
    [`${fenceOf(merchantId)}%`],
  )
  return rows.map(({ name }) => name)
}

/** Where the merchant is served again the fence is only switched off: to drop it would wait for whoever reads the table, a backup or the doctor. */
export async function unfenceTable(
  pool: pg.Pool,
  name: string,
  move: Move,
  state: MoveState,
  milliseconds: number,
): Promise<void> {
  const fence = fenceOf(move.merchantId)
  await inTransaction(pool, async db => {
    await holdMove(db, move, state)
    await db.query(`set local lock_timeout = ${milliseconds}`)
    for (const trigger of [fence, `${fence}_taken`])
      await db.query(
        state === 'returning' ? `alter table ${name} disable trigger ${trigger}` : `drop trigger if exists ${trigger} on ${name}`,
      )
  })
}

/** What a process is at: payments without an answer that were recorded a moment ago, and what is leased. */
export async function countTaken(db: Connection, merchantId: string, now: number): Promise<number> {
  const { rows } = await db.query<{ count: number }>(
    `select (select count(*) from unanswered where merchant_id = $1 and recorded_at > $3)
          + (select count(*) from due_work where merchant_id = $1 and leased_until > $2)
          + (select count(*) from deliveries where merchant_id = $1 and state = 'scheduled' and leased_until > $2) as count`,
    [merchantId, timeParameter(now), timeParameter(now - 60_000)],
  )
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

/** What keeps a merchant where it is, in its cell: a sentence each. */
export async function reasonsToStay(db: Connection, merchantId: string): Promise<string[]> {
  const { rows } = await db.query<{ shared: string[]; filed: number; archived: number }>(
    `with own as (${ownAccounts})
     select (select coalesce(json_agg(account order by account), '[]') from own
              where exists (select from slips s where s.account = own.account and s.merchant_id <> $1)
                 or exists (select from refund_transfers t where t.account = own.account and t.merchant_id <> $1)) as shared,
            (select count(*) from collected_captures where merchant_id = $1 and sequence is not null and outcome is null) as filed,
            (select count(*) from archived_payments where merchant_id = $1) as archived`,
    [merchantId],
  )
  const { shared, filed, archived } = rows[0]!
  return [
    ...shared.map(
      account =>
        `Slips of other merchants stand on its account ${account} too, and what the bank sends goes to one cell: it stays with them.`,
    ),
    ...(filed > 0
      ? [`${filed} of its captures are in files that their acquirer has not acknowledged yet: wait for that, then move it.`]
      : []),
    ...(archived > 0 ? [`${archived} of its payments are in archives of this cell: bring them back first.`] : []),
  ]
}

/** The same of the cell that it goes to: numbers that were given out there could be its own. */
export async function takenAccounts(db: Connection, accounts: readonly string[]): Promise<string[]> {
  const { rows } = await db.query<{ account: string }>(
    'select account from slip_numbers where account = any ($1) order by account',
    [accounts],
  )
  return rows.map(({ account }) => account)
}

/** Of those, what other merchants of the other cell have come to use meanwhile. */
export async function accountsOfOthers(db: Connection, accounts: readonly string[], merchantId: string): Promise<string[]> {
  const { rows } = await db.query<{ account: string }>(
    `select account from slips where account = any ($1) and merchant_id <> $2
      union select account from refund_transfers where account = any ($1) and merchant_id <> $2 order by account`,
    [accounts, merchantId],
  )
  return rows.map(({ account }) => account)
}

/** Names of files that came of a merchant's accounts, and that another cell has not taken. */
export async function filesMissing(db: Connection, there: Connection, merchantId: string): Promise<string[]> {
  const { rows } = await db.query<{ name: string; hash: string }>(
    `select name, encode(hash, 'hex') as hash from return_files where account = any ($1) and refused is null order by received_at`,
    [await accountsOf(db, merchantId)],
  )
  const { rows: known } = await there.query<{ hash: string }>(
    `select encode(hash, 'hex') as hash from return_files where hash = any (select decode(one, 'hex') from unnest($1::text[]) one) and refused is null`,
    [rows.map(({ hash }) => hash)],
  )
  const taken = new Set(known.map(({ hash }) => hash))
  return rows.filter(({ hash }) => !taken.has(hash)).map(({ name }) => name)
}

export async function accountsOf(db: Connection, merchantId: string): Promise<string[]> {
  const { rows } = await db.query<{ account: string }>(`${ownAccounts} order by account`, [merchantId])
  return rows.map(({ account }) => account)
}

export async function readMigrations(db: Connection): Promise<string[]> {
  const { rows } = await db.query<{ name: string }>(`select name || ' ' || checksum as name from migrations order by name`)
  return rows.map(({ name }) => name)
}

/** Payment details that all merchants of a division share: how many there are of some divisions. */
export async function countSharedRegistrations(db: Connection, owners: readonly string[]): Promise<number> {
  const { rows } = await db.query<{ count: number }>('select count(*) from registrations where owner_id = any ($1)', [owners])
  return rows[0]!.count
}

/** What a merchant has together with others, as JSON for the other cell. */
export type Around = { readonly entities: string; readonly tokens: string; readonly risk: string }

/** Entities above the merchant with their lists for the risk check, and tokens that act for more than it: they stay as they are until the transaction ends. */
export async function readAround(db: Connection, above: readonly string[], own: readonly string[]): Promise<Around> {
  await db.query('select from access_tokens where merchant_id is null and entities && $1::uuid[] for share', [[...above, ...own]])
  const { rows } = await db.query<Around>(
    `select (select coalesce(json_agg(e), '[]')::text from entities e where id = any ($1)) as entities,
            (select coalesce(json_agg(t), '[]')::text from access_tokens t where merchant_id is null and entities && $2::uuid[]) as tokens,
            (select coalesce(json_agg(r), '[]')::text from risk_entries r where owner_id = any ($1)) as risk`,
    [above, [...above, ...own]],
  )
  return rows[0]!
}

/**
 * What is there already stays as it is, but that a token acts for the entities of both cells, and one that was revoked is revoked here too. Lists for the risk check
 * of whom no other merchant of this cell belongs to become the same. Returns how many entries of others are not.
 */
export async function writeAround(db: Connection, move: Move, { entities, tokens, risk }: Around): Promise<number> {
  await holdMove(db, move, 'arriving')
  await db.query('insert into entities select * from json_populate_recordset(null::entities, $1) on conflict do nothing', [
    entities,
  ])
  await db.query(
    `insert into access_tokens select * from json_populate_recordset(null::access_tokens, $1)
     on conflict (token_hash) do update set revoked_at = least(access_tokens.revoked_at, excluded.revoked_at), merchant_id = null,
       entities = array(select distinct unnest(access_tokens.entities || excluded.entities) order by 1)`,
    [tokens],
  )
  const { rows: known } = await db.query<{ id: string; alone: boolean }>(
    `with recursive above as (select id from json_populate_recordset(null::entities, $1)),
       below as (select id as above, id, kind from entities where id in (select id from above)
                  union all select b.above, e.id, e.kind from below b join entities e on e.parent_id = b.id)
     select id, not exists (select from below b where b.above = a.id and b.kind = 'merchant' and b.id <> $2) as alone from above a`,
    [entities, move.merchantId],
  )
  const alone = known.flatMap(one => (one.alone ? [one.id] : []))
  const given = 'select * from json_populate_recordset(null::risk_entries, $1)'
  await db.query(
    `delete from risk_entries r where owner_id = any ($2) and not exists (${given} g where (g.owner_id, g.kind, g.value) = (r.owner_id, r.kind, r.value))`,
    [risk, alone],
  )
  const columns = ['id', 'list', 'shown', 'network', 'lookup_key', 'reason', 'added_by', 'added_at', 'ends_at']
  await db.query(
    `insert into risk_entries as r ${given} on conflict (owner_id, kind, value) do update set ${columns.map(one => `${one} = excluded.${one}`).join(', ')}
       where r.owner_id = any ($2)`,
    [risk, alone],
  )
  const seen = 'owner_id, kind, value, list, ends_at'
  const { rows } = await db.query<{ count: number }>(
    `with given as (select ${seen} from (${given}) g), here as (select ${seen} from risk_entries where owner_id = any ($2))
     select count(distinct (owner_id, kind, value)) as count
       from ((table given except table here) union all (table here except table given)) differing`,
    [risk, known.map(({ id }) => id)],
  )
  return rows[0]!.count
}

/** A token of the merchant alone, which the other cell has for others, is one that acts for more than it. */
export async function shareTokens(source: pg.Pool, target: pg.Pool, { merchantId }: Move): Promise<void> {
  const { rows: own } = await source.query<{ hash: Buffer }>(
    'select token_hash as hash from access_tokens where merchant_id = $1',
    [merchantId],
  )
  const { rows: theirs } = await target.query<{ hash: Buffer }>(
    'select token_hash as hash from access_tokens where token_hash = any ($1) and merchant_id is distinct from $2',
    [own.map(({ hash }) => hash), merchantId],
  )
  if (theirs.length > 0)
    await source.query('update access_tokens set merchant_id = null where token_hash = any ($1) and merchant_id = $2', [
      theirs.map(({ hash }) => hash),
      merchantId,
    ])
}

/** Takes the one place of a command that moves this merchant; undefined when another has it. Who dies gives it back with the connection. */
export async function takePlace(pool: pg.Pool, merchantId: string): Promise<{ giveBack(): Promise<void> } | undefined> {
  const connection = await pool.connect()
  const name = [`move ${merchantId}`]
  const { rows } = await connection.query<{ ours: boolean }>('select pg_try_advisory_lock(hashtextextended($1, 0)) as ours', name)
  if (!rows[0]!.ours) {
    connection.release()
    return undefined
  }
  return {
    giveBack: () =>
      connection.query('select pg_advisory_unlock(hashtextextended($1, 0))', name).then(
        () => connection.release(),
        () => connection.release(true),
      ),
  }
}
