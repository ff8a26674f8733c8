// Chains as texts: read from the tables that a payment has rows in, taken out of them, and put back. The tables and their columns are ours alone.

import type { ChainTable } from '../payments/store/chainTable.ts'
import { type Connection, timeParameter } from '../platform/database/connect.ts'
import { servedHere } from '../platform/database/elsewhere.ts'
import { databaseLocks } from '../platform/database/locks.ts'

const columnOf = ({ payment = 'payment_id' }: ChainTable): string => payment
const goes = (tables: readonly ChainTable[]): ChainTable[] => tables.filter(({ stays }) => !stays)

/** Held by a session, and gone with it. False when another one has it. */
export async function takeArchiveLock(session: Connection): Promise<boolean> {
  const { rows } = await session.query<{ ours: boolean }>('select pg_try_advisory_lock($1) as ours', [databaseLocks.archive])
  return rows[0]!.ours
}

/** First payments of a merchant, in their order, that were made before a moment. */
export async function findOldRoots(
  db: Connection,
  merchantId: string,
  { after, before, limit }: { readonly after: string; readonly before: string; readonly limit: number },
): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>(
    'select id from payments where merchant_id = $1 and root_id is null and id > $2 and id < $3 order by id limit $4',
    [merchantId, after, before, limit],
  )
  return rows.map(({ id }) => id)
}

/** A text longer than some hundred megabytes is none that PostgreSQL makes, or a process reads. Callers write these bytes: a chain has up to a thousand payments. */
const chainBytesMost = 16 * 1024 * 1024

/** Of chains of a merchant those of which everything was recorded before a moment, nothing is still to come, and not too much is there. */
export async function findSettledChains(
  db: Connection,
  tables: readonly ChainTable[],
  merchantId: string,
  roots: readonly string[],
  before: number,
): Promise<string[]> {
  const holding = tables.flatMap(one => {
    if (one.holds === undefined) return []
    const id = one.isText ? `replace(p.id::text, '-', '')` : 'p.id'
    return [`select p.root from p join ${one.table} t on t.merchant_id = $1 and t.${columnOf(one)} = ${id} where ${one.holds}`]
  })
  const { rows } = await db.query<{ root: string }>(
    `with p as materialized (${paymentsOf})
     select r.root from unnest($2::uuid[]) r (root) where ${servedHere('$1::uuid')} and r.root in (select p.root from p) and r.root not in (
       select p.root from p where p.recorded_at >= $3
       union all select p.root from p where not exists (
         select from answers a where a.merchant_id = $1 and a.payment_id = p.id and a.answered_at < $3)
       union all select p.root from p left join answers a on a.merchant_id = $1 and a.payment_id = p.id
        group by p.root having sum(p.bytes + coalesce(octet_length(a.body), 0)) > ${chainBytesMost}
       ${holding.map(one => `union all ${one}`).join('\n       ')}) order by r.root`,
    [merchantId, roots, timeParameter(before)],
  )
  return rows.map(({ root }) => root)
}

const paymentsOf =
  'select id, coalesce(root_id, id) as root, recorded_at, octet_length(record) as bytes from payments where merchant_id = $1 and (id = any ($2) or root_id = any ($2))'

export type ChainText = { readonly root: string; readonly text: string }

/** All rows of chains of a merchant, a JSON text for each chain: the same rows make the same text. */
export async function readChainTexts(
  db: Connection,
  tables: readonly ChainTable[],
  merchantId: string,
  roots: readonly string[],
): Promise<ChainText[]> {
  const parts = goes(tables).map(
    one =>
      `'${one.table}', (select coalesce(jsonb_agg(to_jsonb(t) order by to_jsonb(t)::text), '[]')
                           from ${one.table} t where t.merchant_id = $1 and t.${columnOf(one)} = any (c.ids))`,
  )
  const { rows } = await db.query<ChainText>(
    `select r.root, jsonb_build_object('merchant', $1::uuid, 'chain', r.root, 'rows', jsonb_build_object(${parts.join(',\n       ')}))::text as text
       from unnest($2::uuid[]) r (root)
      cross join lateral (select array_agg(id) as ids from payments where merchant_id = $1 and (id = r.root or root_id = r.root)) c
      where c.ids is not null order by r.root`,
    [merchantId, roots],
  )
  return rows
}

/** One capture, refund, chargeback or archive at a time looks at a chain. In the order of their ids, so that nobody waits for somebody who waits. */
export async function lockRoots(db: Connection, merchantId: string, roots: readonly string[]): Promise<void> {
  await db.query('select 1 from payments where merchant_id = $1 and id = any ($2) order by id for update', [merchantId, roots])
}

/** All payments of chains, the first ones among them. */
export async function findMembers(db: Connection, merchantId: string, roots: readonly string[]): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>(
    'select id from payments where merchant_id = $1 and (id = any ($2) or root_id = any ($2))',
    [merchantId, roots],
  )
  return rows.map(({ id }) => id)
}

/** Every row of some payments, in every table that goes with them; where they are is written first. */
export async function takeOut(
  db: Connection,
  tables: readonly ChainTable[],
  merchantId: string,
  archiveId: string,
  payments: readonly string[],
): Promise<void> {
  await db.query(
    `insert into archived_payments (merchant_id, payment_id, root_id, archive_id)
     select merchant_id, id, coalesce(root_id, id), $3 from payments where merchant_id = $1 and id = any ($2)`,
    [merchantId, payments, archiveId],
  )
  for (const one of goes(tables))
    await db.query(`delete from ${one.table} where merchant_id = $1 and ${columnOf(one)} = any ($2)`, [merchantId, payments])
}

/** The rows of a text, each in its table. Fails where one is there already. */
export async function putBack(
  db: Connection,
  tables: readonly ChainTable[],
  merchantId: string,
  root: string,
  text: string,
): Promise<string[]> {
  for (const { table } of goes(tables))
    await db.query(
      `insert into ${table} select * from jsonb_populate_recordset(null::${table}, $1::jsonb -> 'rows' -> '${table}')`,
      [text],
    )
  const { rows } = await db.query<{ id: string }>(
    'delete from archived_payments where merchant_id = $1 and root_id = $2 returning payment_id as id',
    [merchantId, root],
  )
  return rows.map(({ id }) => id)
}

/** Table → its columns, in their order. */
export async function columnsOf(db: Connection, tables: readonly ChainTable[]): Promise<Record<string, string[]>> {
  const { rows } = await db.query<{ table: string; columns: string[] }>(
    `select table_name as table, array_agg(column_name::text order by column_name) as columns from information_schema.columns
      where table_schema = current_schema and table_name = any ($1) group by 1 order by 1`,
    [goes(tables).map(({ table }) => table)],
  )
  return Object.fromEntries(rows.map(({ table, columns }) => [table, columns]))
}

export async function findMerchants(db: Connection): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>(`select id from entities where kind = 'merchant' order by id`)
  return rows.map(({ id }) => id)
}

export type Archive = {
  readonly id: string
  readonly name: string
  readonly before: number
  readonly beganAt: number
  /** SHA-256 of the file; null until it is whole. */
  readonly proof: Buffer | null
  readonly inFile: number
  readonly chains: number
  readonly payments: number
  readonly lines: number
  readonly endedAt: number | null
}

const archiveColumns = `id, name, before, began_at as "beganAt", proof, in_file as "inFile", chains, payments, lines, ended_at as "endedAt"`

export async function findArchives(db: Connection): Promise<Archive[]> {
  const { rows } = await db.query<Archive>(`select ${archiveColumns} from archives order by began_at, id`)
  return rows
}

export async function insertArchive(
  db: Connection,
  { id, name, before, beganAt }: Pick<Archive, 'id' | 'name' | 'before' | 'beganAt'>,
): Promise<void> {
  await db.query('insert into archives (id, name, before, began_at) values ($1, $2, $3, $4)', [
    id,
    name,
    timeParameter(before),
    timeParameter(beganAt),
  ])
}

export async function proveArchive(db: Connection, id: string, proof: Buffer, inFile: number): Promise<void> {
  await db.query('update archives set proof = $2, in_file = $3 where id = $1 and proof is null', [id, proof, inFile])
}

/** What an archive counts, and whether more will come. */
export async function countArchive(
  db: Connection,
  id: string,
  { chains, payments, lines }: Pick<Archive, 'chains' | 'payments' | 'lines'>,
): Promise<void> {
  await db.query('update archives set chains = chains + $2, payments = payments + $3, lines = lines + $4 where id = $1', [
    id,
    chains,
    payments,
    lines,
  ])
}

export async function endArchive(db: Connection, id: string, now: number): Promise<void> {
  await db.query('update archives set ended_at = $2 where id = $1 and ended_at is null', [id, timeParameter(now)])
}

/** False when something of it is out of the database. */
export async function dropArchive(db: Connection, id: string): Promise<boolean> {
  const { rowCount } = await db.query('delete from archives where id = $1 and chains = 0 and ended_at is null', [id])
  return rowCount === 1
}

/** Of some chains of a merchant those that are out of the database, in this archive. */
export async function findTakenOut(
  db: Connection,
  merchantId: string,
  archiveId: string,
  roots: readonly string[],
): Promise<Set<string>> {
  const { rows } = await db.query<{ root: string }>(
    'select payment_id as root from archived_payments where merchant_id = $1 and payment_id = any ($2) and archive_id = $3',
    [merchantId, roots, archiveId],
  )
  return new Set(rows.map(({ root }) => root))
}

export type ArchivedPlace = {
  readonly merchantId: string
  readonly rootId: string
  readonly name: string
  readonly before: number
}

/** Where a payment of some merchants is, if it is archived. */
export async function findArchived(
  db: Connection,
  merchantIds: readonly string[],
  id: string,
): Promise<ArchivedPlace | undefined> {
  const { rows } = await db.query<ArchivedPlace>(
    `select p.merchant_id as "merchantId", p.root_id as "rootId", a.name, a.before
       from archived_payments p join archives a on a.id = p.archive_id where p.merchant_id = any ($1) and p.payment_id = $2 limit 1`,
    [merchantIds, id],
  )
  return rows[0]
}

/** What the books say of an archive, and what its sums say: both count by themselves. */
export async function countTakenOut(
  db: Connection,
  id: string,
): Promise<{ chains: number; payments: number; lines: number; both: number }> {
  const { rows } = await db.query<{ chains: number; payments: number; lines: number; both: number }>(
    `select (select count(*) from archived_payments where archive_id = $1 and payment_id = root_id) as chains,
            (select count(*) from archived_payments where archive_id = $1) as payments,
            (select coalesce(sum(count), 0)::bigint from closing_sums where archive_id = $1) as lines,
            (select count(*) from archived_payments o join payments p on p.merchant_id = o.merchant_id and p.id = o.payment_id
              where o.archive_id = $1) as both`,
    [id],
  )
  return rows[0]!
}

/** What an archive booked, in hundredths, by merchant, mode, currency and the two accounts. */
export async function sumClosed(db: Connection, archiveId: string): Promise<Map<string, number>> {
  const { rows } = await db.query<{ key: string; amount: number }>(
    `select concat_ws(' ', replace(merchant_id::text, '-', ''), mode, currency, debit, credit) as key, sum(amount)::bigint as amount
       from closing_sums where archive_id = $1 group by 1`,
    [archiveId],
  )
  return new Map(rows.map(({ key, amount }) => [key, amount]))
}
