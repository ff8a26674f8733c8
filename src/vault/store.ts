// Proofs of the keys in the database, a keyed value for each, never a key; and sealed records, wherever they stand, by the key that they need.

import { type Connection, timeParameter } from '../platform/database/connect.ts'
import { servedHere } from '../platform/database/elsewhere.ts'

/**
 * `made_at`: since when the key is written with here; null where that is not known, or where only rows that came from another database were. `written_at`: when somebody
 * who writes with it was last seen, here or where such rows came from; null where only versions before that told it did.
 */
export type Proof = {
  readonly name: string
  readonly proof: Buffer
  readonly made_at?: number | null
  readonly written_at?: number | null
}

/** The first proof under a name stays, and since when it was. */
export async function keepProof(db: Connection, name: string, proof: Buffer, now: number): Promise<void> {
  await db.query(
    `insert into key_checks (name, proof, made_at) values ($1, $2, $3)
      on conflict (name) do update set made_at = excluded.made_at where key_checks.made_at is null`,
    [name, proof, timeParameter(now)],
  )
}

/** Of a key that rows come with. */
export async function bringProof(db: Connection, { name, proof, written_at }: Proof): Promise<void> {
  await db.query(
    `insert into key_checks (name, proof, written_at) values ($1, $2, $3)
      on conflict (name) do update set written_at = greatest(key_checks.written_at, excluded.written_at)`,
    [name, proof, written_at == null ? null : timeParameter(written_at)],
  )
}

/** Whoever writes with these keys has been seen at this time. */
export async function tellWritten(db: Connection, names: readonly string[], now: number): Promise<void> {
  await db.query('update key_checks set written_at = greatest(written_at, $2) where name = any ($1)', [names, timeParameter(now)])
}

/** The oldest first. */
export const byAge = (one: Proof, other: Proof): number => (one.made_at ?? 0) - (other.made_at ?? 0)

/** Gives the only lookup key that there was its name, also beside the hashes that it made. */
export async function nameLookupProof(db: Connection, name: string): Promise<void> {
  await db.query(`update key_checks set name = $1 where name = 'lookup'`, [name])
  await db.query('update access_tokens set lookup_key = $1 where lookup_key is null', [name.slice('lookup '.length)])
}

export async function dropProof(db: Connection, name: string): Promise<void> {
  await db.query('delete from key_checks where name = $1', [name])
}

/** Sessions that begin wait for these locks, whoever holds them: the server ends a holder that stands still, before they give up. */
const holdBriefly = `set local idle_in_transaction_session_timeout = '3s'`
const waitSeconds = 4

/** Until the transaction ends nobody else keeps a proof. Who waits for it, and all the while it is held, keeps others waiting: not for long. */
export async function lockProofs(db: Connection): Promise<void> {
  await db.query(
    `${holdBriefly}; set local lock_timeout = '3s'; set local statement_timeout = '30s'; lock table key_checks in share row exclusive mode`,
  )
}

const lockName = (name: string) => `hashtextextended('key ${name}', 0)`

/** Until the transaction ends no session begins that writes with the key. */
export async function lockKey(db: Connection, name: string): Promise<void> {
  await db.query(`${holdBriefly}; select pg_advisory_xact_lock(${lockName(name)})`)
}

/** Until the transaction ends nobody retires the key; false when somebody is at it. */
export async function shareKey(db: Connection, name: string): Promise<boolean> {
  const { rows } = await db.query<{ shared: boolean }>(`select pg_try_advisory_xact_lock_shared(${lockName(name)}) as shared`)
  return rows[0]!.shared
}

/**
 * The proofs for a session that will write with keys of these names, our own names: when whoever keeps one or retires one of these has ended, which is not waited for
 * long. One question, because every session asks it; it writes nothing.
 */
export async function awaitProofs(session: Connection, names: readonly string[]): Promise<Proof[]> {
  const answers = (await session.query(
    [
      'begin isolation level read committed',
      `set local lock_timeout = '${waitSeconds}s'`,
      'lock table key_checks in row exclusive mode',
      ...names.toSorted().map(name => `select pg_advisory_xact_lock_shared(${lockName(name)})`),
      'select name, proof from key_checks',
      'commit',
    ].join('; '),
  )) as unknown as { rows: Proof[] }[]
  return answers.at(-2)!.rows
}

/** None in a database that no gateway has used yet. */
export async function readProofs(db: Connection): Promise<Proof[]> {
  const { rows } = await db.query<{ there: boolean }>(`select to_regclass('key_checks') is not null as there`)
  if (!rows[0]!.there) return []
  // Read before migrations have run: the last column may not be there yet.
  return (await db.query<Proof>('select * from key_checks order by name')).rows
}

/** Where sealed records of one kind stand. */
export type SealedPlace = {
  /** What is sealed there, in the plural. */
  readonly what: string
  readonly table: string
  /** Whose a row is; merchant_id when absent. */
  readonly owner?: string
  /** The column beside it that names a row. */
  readonly id: string
  /** Reads the record, in SQL; null where a row has none. */
  readonly sealed: string
  /** The assignment that replaces it, in SQL. */
  replace(value: string): string
  /** What binds a record to its row. */
  bound(merchantId: string, id: string): string
}

/** A record that fills a column. */
export const sealedColumn = (name: string): Pick<SealedPlace, 'sealed' | 'replace'> => ({
  sealed: name,
  replace: value => `${name} = ${value}`,
})

export type SealedRow = { readonly merchantId: string; readonly id: string; readonly sealed: Buffer }

const keyOf = (sealed: string) => `encode(substring(${sealed} from 2 for 4), 'hex')`

/** How many records need which key. */
export async function countSealed(db: Connection, { table, sealed }: SealedPlace): Promise<ReadonlyMap<string, number>> {
  const { rows } = await db.query<{ key: string; count: number }>(
    `select ${keyOf(sealed)} as key, count(*) as count from ${table} where ${sealed} is not null group by 1 order by 1`,
  )
  return new Map(rows.map(({ key, count }) => [key, count]))
}

/** The next records after a row that need another key than one, in the order of their rows; none of merchants who are served elsewhere. */
export async function sealedOtherwise(
  db: Connection,
  { table, owner = 'merchant_id', id, sealed }: SealedPlace,
  key: string,
  after: Pick<SealedRow, 'merchantId' | 'id'>,
  limit: number,
): Promise<SealedRow[]> {
  const { rows } = await db.query<SealedRow>(
    `select ${owner} as "merchantId", ${id} as id, ${sealed} as sealed from ${table}
      where (${owner}, ${id}) > ($1, $2) and ${sealed} is not null and ${keyOf(sealed)} <> $3 and ${servedHere(owner)} order by ${owner}, ${id} limit $4`,
    [after.merchantId, after.id, key, limit],
  )
  return rows
}

/** Replaces records that are still what they were. Returns how many. */
export async function replaceSealed(
  db: Connection,
  { table, owner = 'merchant_id', id, sealed, replace }: SealedPlace,
  rows: readonly (SealedRow & { readonly renewed: Buffer })[],
): Promise<number> {
  const { rowCount } = await db.query(
    `update ${table} set ${replace('given.renewed')}
       from unnest($1::uuid[], $2::uuid[], $3::bytea[], $4::bytea[]) as given (merchant_id, row_id, old, renewed)
      where ${table}.${owner} = given.merchant_id and ${table}.${id} = given.row_id and ${sealed} = given.old`,
    [rows.map(row => row.merchantId), rows.map(row => row.id), rows.map(row => row.sealed), rows.map(row => row.renewed)],
  )
  return rowCount ?? 0
}
