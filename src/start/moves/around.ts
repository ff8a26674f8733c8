// What a merchant has together with others: the keys that its rows are written with, the entities above it, their lists for the risk check, and tokens that act for more
// than it. They stay where they are, and are in the other cell too.

import pg from 'pg'
import { mayBeOneOf } from '../../merchants/access/tokens.ts'
import { severalPsps } from '../../merchants/seed.ts'
import {
  announceChange,
  isValidAt,
  lockTree,
  readBelow,
  readLineage,
  readPsps,
  readTokens,
  type TokenRow,
} from '../../merchants/store.ts'
import { type Connection, inTransaction } from '../../platform/database/connect.ts'
import { isUnavailable } from '../../platform/database/errors.ts'
import { OperatorError } from '../../platform/errors.ts'
import { bringProofs, lackingText } from '../../vault/keys.ts'
import { readProofs } from '../../vault/store.ts'
import type { MoveEnds, MoveSide } from './move.ts'
import { holdMove, type Move } from './store.ts'

/** `differing`: so many entries of lists for the risk check differ. `unsure`: tokens that may be one which was revoked here. */
export type AroundCopied = { readonly differing: number; readonly unsure: readonly Pick<TokenRow, 'id' | 'label'>[] }

/**
 * Copies what the merchant has together with others. A token that is revoked meanwhile is revoked after this in both cells, or is found revoked: whoever
 * revokes it waits until it is there.
 */
export async function copyAround(
  { source, target, merchantId }: MoveEnds,
  move: Move,
  when: 'in use' | 'behind the fence',
): Promise<AroundCopied> {
  const names = await namesAround(source, merchantId)
  try {
    await bringKeys(source, target)
    return await inTransaction(source.database.work, from =>
      inTransaction(target.database.work, async to => {
        await takeTurn(from, to)
        const around = await readAround(from, ...names)
        // Tokens go last: what a seed takes from one while the merchant is in use would stay there.
        const isLast = when === 'behind the fence'
        const { differing, alone } = await writeAround(to, move, isLast ? around : { ...around, tokens: '[]' })
        if (isLast) await settleTokens(from, to, names[1], alone)
        await announceChange(to)
        const tokens = await readTokens(to, { entities: names.flat() })
        const now = target.clock.real()
        return {
          differing,
          unsure: mayBeOneOf(
            tokens,
            tokens.filter(token => !isValidAt(token, now)),
            now,
          ),
        }
      }),
    )
  } catch (error) {
    if (!(error instanceof pg.DatabaseError) || !isUnavailable(error)) throw error
    throw new OperatorError(
      `Somebody else holds what the merchant has together with others, in ${source.name} or ${target.name} (${error.message}): give the command again, it goes on.`,
    )
  }
}

/** Before anything else that was written with them, and alone: sessions that begin wait for it. */
async function bringKeys(source: MoveSide, target: MoveSide): Promise<void> {
  const proofs = await readProofs(source.database.work)
  const lacking = await inTransaction(target.database.work, db => bringProofs(db, proofs))
  if (lacking.length > 0) throw new OperatorError(lackingText(target.name, lacking))
}

/**
 * One at a time between two databases, whichever way: two opposite moves of merchants with one token would wait for each other for ever. Every one begins with the same
 * database of the two.
 */
async function takeTurn(one: Connection, other: Connection): Promise<void> {
  const [first, second] = (await databaseOf(one)) < (await databaseOf(other)) ? [one, other] : [other, one]
  for (const db of [first, second]) await db.query(`select pg_advisory_xact_lock(hashtextextended('moves around', 0))`)
}

/** The same by whatever address, and of no other database. */
async function databaseOf(db: Connection): Promise<string> {
  const { rows } = await db.query<{ id: string }>(
    `select system_identifier || ' ' || current_database() as id from pg_control_system()`,
  )
  return rows[0]!.id
}

/** The entities above the merchant, and its own. */
async function namesAround({ database }: MoveSide, merchantId: string): Promise<[above: string[], own: string[]]> {
  const [, ...above] = await readLineage(database.work, merchantId)
  const own = await readBelow(database.work, [merchantId])
  return [above.map(({ id }) => id), own.map(({ id }) => id)]
}

/** What a merchant has together with others, as JSON for the other cell. */
type Around = { readonly entities: string; readonly tokens: string; readonly risk: string }

/** Entities above the merchant with their lists for the risk check, and tokens that act for more than it: they stay as they are until the transaction ends. */
async function readAround(db: Connection, above: readonly string[], own: readonly string[]): Promise<Around> {
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
 * of whom no other merchant of this cell belongs to become the same. Returns how many entries of others are not, and the entities above that are of this merchant alone.
 */
async function writeAround(
  db: Connection,
  move: Move,
  { entities, tokens, risk }: Around,
): Promise<{ readonly differing: number; readonly alone: readonly string[] }> {
  await holdMove(db, move, 'arriving')
  await lockTree(db)
  await db.query('insert into entities select * from json_populate_recordset(null::entities, $1) on conflict do nothing', [
    entities,
  ])
  const several = severalPsps(await readPsps(db)) // one may have been seeded since the cells were compared
  if (several.length > 0) throw new OperatorError(`The other cell belongs to another PSP. ${several.join(' ')}`)
  const givenTokens = 'select * from json_populate_recordset(null::access_tokens, $1)'
  // Several of theirs may be one of ours, which came from one of them and was hashed as another: it is what all of them say.
  await db.query(
    `update access_tokens here set revoked_at = least(here.revoked_at, same.revoked_at), merchant_id = null,
       entities = array(select distinct unnest(here.entities || same.entities) order by 1)
       from (select here.token_hash, min(g.revoked_at) as revoked_at, array_agg(distinct entity) as entities
               from access_tokens here join (${givenTokens}) g on ${isSameToken}, unnest(g.entities) entity group by here.token_hash) same
      where here.token_hash = same.token_hash`,
    [tokens],
  )
  await db.query(
    `insert into access_tokens ${givenTokens} g where not exists (select from access_tokens here where ${isSameToken})`,
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
  return { differing: rows[0]!.count, alone }
}

/** It may stand here under another lookup key than there, with which it came last: its id is the same where a move brought it, and what a proxy knows it by always. */
const isSameToken = '(here.token_hash = g.token_hash or here.id = g.id or here.route_hash = g.route_hash)'

/**
 * Of what is served here alone, the merchant with all below it (`own`) and what is above no other one there (`alone`), a token acts there for as much as here: a row that stood there
 * before may say more, from a move that was given up or from when the merchant was there. For the merchant itself no token acts there that does not act for it here. Of several rows of
 * one credential each says for whom it acts.
 */
async function settleTokens(from: Connection, to: Connection, own: readonly string[], alone: readonly string[]): Promise<void> {
  const names = [...own, ...alone]
  const { rows } = await to.query<{ tokens: string }>(
    `select coalesce(json_agg(t), '[]')::text as tokens from access_tokens t where merchant_id is null and entities && $1::uuid[]`,
    [names],
  )
  const given = 'json_populate_recordset(null::access_tokens, $1) g'
  const { rows: ours } = await from.query<{ tokens: string }>(
    `with ours as (select here.* from access_tokens here where exists (select from ${given} where ${isSameToken}) for share)
     select coalesce(json_agg(t), '[]')::text as tokens from ours t`,
    [rows[0]!.tokens],
  )
  const isKnownHere = `exists (select from ${given} where ${isSameToken})`
  await to.query(
    `update access_tokens here set entities = array(
         select one from unnest(here.entities) one where one <> all ($2::uuid[]) and not (one = any ($3::uuid[]) and ${isKnownHere})
          union select one from ${given}, unnest(g.entities) one where ${isSameToken} and one = any ($2::uuid[] || $3::uuid[]) order by 1)
      where merchant_id is null and entities && ($2::uuid[] || $3::uuid[])`,
    [ours[0]!.tokens, own, alone],
  )
}

/** A token of the merchant alone, which the other cell has for others, is one that acts for more than it. */
export async function shareTokens(source: pg.Pool, target: pg.Pool, { merchantId }: Move): Promise<void> {
  const { rows } = await source.query<{ tokens: string }>(
    `select coalesce(json_agg(t), '[]')::text as tokens from access_tokens t where merchant_id = $1`,
    [merchantId],
  )
  const { rows: theirs } = await target.query<{ id: string }>(
    `select g.id from json_populate_recordset(null::access_tokens, $1) g
      where exists (select from access_tokens here where ${isSameToken} and here.merchant_id is distinct from $2)`,
    [rows[0]!.tokens, merchantId],
  )
  if (theirs.length > 0)
    await source.query('update access_tokens set merchant_id = null where id = any ($1) and merchant_id = $2', [
      theirs.map(({ id }) => id),
      merchantId,
    ])
}
