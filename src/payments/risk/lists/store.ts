// The entries of lists of the risk check, in the database: what is written counts for the next payment, in whichever process.

import { type Connection, timeParameter } from '../../../platform/database/connect.ts'
import type { Listable, ListedKind, ListedValue, RiskList } from './lists.ts'

export type NewRiskEntry = ListedValue & {
  readonly ownerId: string
  readonly id: string
  readonly kind: ListedKind
  readonly list: RiskList
  readonly reason: string
  readonly addedBy: string
  readonly addedAt: number
  /** Business time. */
  readonly endsAt: number | null
}
export type RiskEntry = Omit<NewRiskEntry, 'value' | 'network' | 'lookupKey'>

const columns = `owner_id as "ownerId", id, kind, list, shown, reason, added_by as "addedBy", added_at as "addedAt", ends_at as "endsAt"`

/** Of one entity. */
export const entriesMost = 10_000

export async function countEntries(db: Connection, ownerId: string): Promise<number> {
  const { rows } = await db.query<{ count: number }>('select count(*) as count from risk_entries where owner_id = $1', [ownerId])
  return rows[0]!.count
}

/** False when it stands there already; what has ended makes room. */
export async function insertEntry(db: Connection, entry: NewRiskEntry, now: number): Promise<boolean> {
  const { ownerId, kind, value, id, list, shown, network, lookupKey, reason, addedBy, addedAt, endsAt } = entry
  const { rowCount } = await db.query(
    `insert into risk_entries as e (owner_id, kind, value, id, list, shown, network, lookup_key, reason, added_by, added_at, ends_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
     on conflict (owner_id, kind, value) do update set id = excluded.id, list = excluded.list, reason = excluded.reason, added_by = excluded.added_by,
       added_at = excluded.added_at, ends_at = excluded.ends_at where e.ends_at <= $13`,
    [
      ownerId,
      kind,
      value,
      id,
      list,
      shown,
      network,
      lookupKey,
      reason,
      addedBy,
      timeParameter(addedAt),
      endsAt === null ? null : timeParameter(endsAt),
      timeParameter(now),
    ],
  )
  return rowCount === 1
}

/** What it was, or undefined when there is none. */
export async function deleteEntry(db: Connection, ownerId: string, id: string): Promise<RiskEntry | undefined> {
  const { rows } = await db.query<RiskEntry>(`delete from risk_entries where owner_id = $1 and id = $2 returning ${columns}`, [
    ownerId,
    id,
  ])
  return rows[0]
}

/** Entries of some entities behind one of them, the latest first; `found`: only of this value, or whose text holds this. */
export async function findEntries(
  db: Connection,
  owners: readonly string[],
  found: { readonly text: string; readonly value: string | null },
  behind: string | null,
  limit: number,
): Promise<RiskEntry[]> {
  const { rows } = await db.query<RiskEntry>(
    `select ${columns} from risk_entries
      where owner_id = any ($1) and ($2 = '' or value = $3 or strpos(shown, $2) > 0 or strpos(lower(reason), $2) > 0)
        and ($4::uuid is null or id < $4) order by id desc limit $5`,
    [owners, found.text, found.value, behind, limit],
  )
  return rows
}

type FittingEntry = {
  readonly list: RiskList
  readonly kind: ListedKind
  readonly value: string
  readonly lookupKey: string | null
}

/** Those of some entities that fit a payment and count at a moment. */
export async function fittingEntries(
  db: Connection,
  owners: readonly string[],
  { pairs, address }: Listable,
  now: number,
): Promise<FittingEntry[]> {
  const { rows } = await db.query<FittingEntry>(
    `select list, kind, value, lookup_key as "lookupKey" from risk_entries
      where owner_id = any ($1) and (ends_at is null or ends_at > $2)
        and ((kind, value) in (select * from unnest($3::text[], $4::text[])) or network >>= $5::inet)`,
    [owners, timeParameter(now), pairs.map(([kind]) => kind), pairs.map(([, value]) => value), address],
  )
  return rows
}

/** A card that was found under an older lookup key is found under the newest from now on. */
export async function rehashEntry(db: Connection, owners: readonly string[], older: string, newest: string, lookupKey: string) {
  await db.query(
    `update risk_entries e set value = $3, lookup_key = $4 where owner_id = any ($1) and kind = 'card' and value = $2
       and not exists (select from risk_entries o where o.owner_id = e.owner_id and o.kind = 'card' and o.value = $3)`,
    [owners, older, newest, lookupKey],
  )
}

/** How many cards each lookup key finds. */
export async function countListedCards(db: Connection): Promise<(readonly [lookupKey: string, count: number])[]> {
  const { rows } = await db.query<{ key: string; count: string }>(
    `select lookup_key as key, count(*) from risk_entries where kind = 'card' group by lookup_key`,
  )
  return rows.map(({ key, count }) => [key, Number(count)])
}
