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
  /** See routeHash. */
  readonly routeHash: string | null
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

const entityColumns = `id, kind, parent_id as "parentId", merchant_id as "merchantId", name, settings, clock_offset_ms as "clockOffset"`

/** All, or those that are named. */
export async function readEntities(db: Connection, ids?: readonly string[]): Promise<EntityRow[]> {
  const { rows } = await db.query<EntityRow>(
    `select ${entityColumns} from entities ${ids ? 'where id = any ($1)' : ''}`,
    ids && [ids],
  )
  return rows
}

/** One, where nobody mistyped. */
export async function readPsps(db: Connection): Promise<EntityRow[]> {
  const { rows } = await db.query<EntityRow>(`select ${entityColumns} from entities where kind = 'psp'`)
  return rows
}

/** An entity and those above it, nearest first; none when there is no such entity. */
export async function readLineage(db: Connection, id: string): Promise<EntityRow[]> {
  const { rows } = await db.query<EntityRow>(
    `with recursive lineage as (
       select *, 0 as height from entities where id = $1
       union all
       select above.*, height + 1 from entities above join lineage on above.id = lineage.parent_id
     )
     select ${entityColumns} from lineage order by height`,
    [id],
  )
  return rows
}

/** Entities and all that stand below them. */
export async function readBelow(db: Connection, ids: readonly string[]): Promise<EntityRow[]> {
  const { rows } = await db.query<EntityRow>(
    `with recursive branch as (
       select id from entities where id = any ($1)
       union
       select below.id from entities below join branch on below.parent_id = branch.id
     )
     select ${entityColumns} from entities where id in (select id from branch)`,
    [ids],
  )
  return rows
}

/** Settings are inherited: of two changes at a time the second sees the first. Until the transaction ends. */
export async function lockTree(db: Connection): Promise<void> {
  await db.query(`select pg_advisory_xact_lock(hashtextextended('entities', 0))`)
}

/** Tokens that act for one of these entities by its own name, that have one of these hashes, or one of these ids. */
export type SomeTokens = {
  readonly entities?: readonly string[]
  readonly hashes?: readonly Buffer[]
  /** Read without an index. */
  readonly routeHashes?: readonly Buffer[]
  readonly ids?: readonly string[]
}

/** Oldest first: all, or some. */
export async function readTokens(db: Connection, some?: SomeTokens): Promise<TokenRow[]> {
  const { rows } = await db.query<TokenRow & { entities: string[] }>(
    `select token_hash as hash, lookup_key as "lookupKey", encode(route_hash, 'hex') as "routeHash", id, merchant_id as "merchantId", label, array_to_json(entities) as entities, legacy,
            created_at as "createdAt", revoked_at as "revokedAt"
       from access_tokens ${some ? 'where entities && $1::uuid[] or token_hash = any ($2) or id = any ($3)' : ''}${some?.routeHashes ? ' or route_hash = any ($4)' : ''} order by created_at, id`,
    some && [some.entities ?? [], some.hashes ?? [], some.ids ?? [], ...(some.routeHashes ? [some.routeHashes] : [])],
  )
  return rows.map(row => ({ ...row, entities: row.entities.map(id => id.replaceAll('-', '')) }))
}

/** Whether a token acts for somebody who is not here. */
export async function hasTokensForOthers(db: Connection): Promise<boolean> {
  const { rows } = await db.query<{ exists: boolean }>(
    `select exists (select from access_tokens, unnest(access_tokens.entities) as one (id)
                     where not exists (select from entities where entities.id = one.id))`,
  )
  return rows[0]!.exists
}

/** Merchants who are served by another cell, though their rows are here. */
export async function readElsewhere(db: Connection): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>('select merchant_id as id from merchant_moves where not here')
  return rows.map(({ id }) => id)
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
    `insert into access_tokens (token_hash, id, merchant_id, label, entities, legacy, created_at, lookup_key, route_hash)
     values ($1, $2, $3, $4, $5, $6, $7, $8, decode($9, 'hex'))
     on conflict (token_hash) do update set label = excluded.label, entities = excluded.entities, merchant_id = excluded.merchant_id,
       legacy = excluded.legacy, route_hash = excluded.route_hash
      where access_tokens.revoked_at is null`,
    [
      token.hash,
      token.id,
      token.merchantId,
      token.label,
      token.entities,
      token.legacy,
      timeParameter(now),
      token.lookupKey,
      token.routeHash,
    ],
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

/** Of a token that was made before proxies asked for it, or before it was known to be a user id and a password, which have none (null), when it is sent. */
export async function noteRoute(
  db: Connection,
  { id, legacy }: Pick<TokenRow, 'id' | 'legacy'>,
  routeHash: string | null,
): Promise<void> {
  const text = `update access_tokens set route_hash = decode($2, 'hex'), legacy = $3 where id = $1`
  await db.query(text, [id, routeHash, legacy])
}

/** A token that was valid is revoked now; also one whose time was to end later. The entity for which it acted first, undefined when there is no such token. */
export async function revokeToken(db: Connection, id: string, now: number): Promise<string | undefined> {
  const { rows } = await db.query<{ entityId: string }>(
    `update access_tokens set revoked_at = $2 where id = $1 and (revoked_at is null or revoked_at > $2) returning entities[1] as "entityId"`,
    [id, timeParameter(now)],
  )
  return rows[0]?.entityId
}

/** Of the rows of one credential, by its hashes, one is left, under the first of these that has one: it acts for what each says, and ends when the first of them does. */
export async function joinTokens(db: Connection, hashes: readonly Buffer[]): Promise<void> {
  await db.query(
    `with found as (select t.*, place from unnest($1::bytea[]) with ordinality as given (hash, place) join access_tokens t on t.token_hash = given.hash for update of t),
       gone as (delete from access_tokens where token_hash in (select token_hash from found where place > (select min(place) from found)) returning token_hash)
     update access_tokens t set revoked_at = (select min(revoked_at) from found),
            entities = array(select distinct unnest(entities) from found order by 1),
            merchant_id = (select case when count(*) = count(merchant_id) and count(distinct merchant_id) = 1 then (array_agg(merchant_id))[1] end from found)
      where t.token_hash = (select token_hash from found order by place limit 1) and exists (select from gone)`,
    [hashes],
  )
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
