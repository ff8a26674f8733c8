// Entities and access tokens in the database.

import { type Connection, timeParameter } from '../platform/database/connect.ts'

export type EntityKind = 'psp' | 'division' | 'merchant' | 'channel'

export type EntityRow = {
  readonly id: string
  readonly kind: EntityKind
  readonly parentId: string | null
  readonly merchantId: string | null
  readonly name: string
  readonly settings: Readonly<Record<string, unknown>>
  readonly clockOffset: number
}

export type TokenRow = {
  readonly hash: Buffer
  /** The id of the lookup key that made the hash. */
  readonly lookupKey: string | null
  readonly id: string
  readonly merchantId: string | null
  readonly label: string
  readonly entities: readonly string[]
  readonly legacy: boolean
  readonly createdAt: number
  /** Real time from which on it is not valid; it may be in the future. */
  readonly revokedAt: number | null
}

export const isValidAt = ({ revokedAt }: Pick<TokenRow, 'revokedAt'>, now: number): boolean =>
  revokedAt === null || now < revokedAt

/** Gateways listen here and read the directory again when something changed. */
export const changesChannel = 'tollgate_directory'

export async function readEntities(db: Connection): Promise<EntityRow[]> {
  const { rows } = await db.query<EntityRow>(
    `select id, kind, parent_id as "parentId", merchant_id as "merchantId", name, settings, clock_offset_ms as "clockOffset" from entities`,
  )
  return rows
}

/** Whoever changes it after us waits, and then reads what we wrote. */
export async function lockEntity(db: Connection, id: string): Promise<void> {
  await db.query('select from entities where id = $1 for update', [id])
}

export async function readTokens(db: Connection): Promise<TokenRow[]> {
  const { rows } = await db.query<TokenRow & { entities: string[] }>(
    `select token_hash as hash, lookup_key as "lookupKey", id, merchant_id as "merchantId", label, array_to_json(entities) as entities, legacy,
            created_at as "createdAt", revoked_at as "revokedAt"
       from access_tokens order by created_at, id`,
  )
  return rows.map(row => ({ ...row, entities: row.entities.map(id => id.replaceAll('-', '')) }))
}

export async function saveEntity(db: Connection, entity: Omit<EntityRow, 'clockOffset'>, now: number): Promise<void> {
  await db.query(
    `insert into entities (id, kind, parent_id, merchant_id, name, settings, changed_at) values ($1, $2, $3, $4, $5, $6, $7)
     on conflict (id) do update set name = excluded.name, settings = excluded.settings, changed_at = excluded.changed_at
      where (entities.name, entities.settings) is distinct from (excluded.name, excluded.settings)`,
    [
      entity.id,
      entity.kind,
      entity.parentId,
      entity.merchantId,
      entity.name,
      JSON.stringify(entity.settings),
      timeParameter(now),
    ],
  )
}

/** A token that is there already keeps its id; a revoked one stays revoked. */
export async function saveToken(db: Connection, token: Omit<TokenRow, 'createdAt' | 'revokedAt'>, now: number): Promise<void> {
  await db.query(
    `insert into access_tokens (token_hash, id, merchant_id, label, entities, legacy, created_at, lookup_key) values ($1, $2, $3, $4, $5, $6, $7, $8)
     on conflict (token_hash) do update set label = excluded.label, entities = excluded.entities, merchant_id = excluded.merchant_id,
       legacy = excluded.legacy
      where access_tokens.revoked_at is null`,
    [token.hash, token.id, token.merchantId, token.label, token.entities, token.legacy, timeParameter(now), token.lookupKey],
  )
}

/** Ids of valid tokens with one of these hashes. */
export async function findValidTokens(db: Connection, hashes: readonly Buffer[], now: number): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>(
    'select id from access_tokens where token_hash = any ($1) and (revoked_at is null or revoked_at > $2) order by id',
    [hashes, timeParameter(now)],
  )
  return rows.map(({ id }) => id)
}

/** Finds a token under its new hash from now on: it was used, so that the older lookup key is not needed for it any more. */
export async function rehashToken(db: Connection, older: readonly Buffer[], hash: Buffer, lookupKey: string): Promise<void> {
  await db.query(
    `update access_tokens set token_hash = $2, lookup_key = $3
      where token_hash = any ($1) and not exists (select from access_tokens where token_hash = $2)`,
    [older, hash, lookupKey],
  )
}

/** True when a token that was valid is revoked now; also one whose time was to end later. */
export async function revokeToken(db: Connection, id: string, now: number): Promise<boolean> {
  const { rowCount } = await db.query(
    'update access_tokens set revoked_at = $2 where id = $1 and (revoked_at is null or revoked_at > $2)',
    [id, timeParameter(now)],
  )
  return rowCount === 1
}

/** Gives a token an end, now or later. False when it has one already. */
export async function endToken(db: Connection, id: string, at: number): Promise<boolean> {
  const { rowCount } = await db.query('update access_tokens set revoked_at = $2 where id = $1 and revoked_at is null', [
    id,
    timeParameter(at),
  ])
  return rowCount === 1
}

export async function announceChange(db: Connection): Promise<void> {
  await db.query(`select pg_notify('${changesChannel}', '')`)
}
