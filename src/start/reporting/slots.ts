// Slots in the cells: each keeps on a cell's disk what the reporting server has not taken yet, so that none may stand there for nobody. A slot says by its name which
// cell it is of, and stands in the database that it is of, of which a server may have several.

import type { Connection } from '../../platform/database/connect.ts'
import { followingPrefix, readSources } from '../../platform/database/following.ts'
import { OperatorError } from '../../platform/errors.ts'

/** A cell as the reporting database follows it. */
export type FollowedCell = {
  readonly name: string
  /** Owns the tables. */
  readonly owner: Connection
  /** May replicate, and read what is published; the reporting server connects as it, and keeps its password. */
  readonly replicator: Connection
  readonly url: string
}

/** Of a subscription, and of its slot in the cell. */
export const subscriptionName = (cell: string): string => followingPrefix + cell.replaceAll('-', '_')
const cellOf = (name: string): string => name.slice(followingPrefix.length).replaceAll('_', '-')

type Slot = {
  readonly name: string
  readonly database: string
  readonly isHere: boolean
  readonly isLost: boolean
  readonly isActive: boolean
}

/** All slots of reporting databases that the server of a cell has. */
const readSlots = async (db: Connection): Promise<Slot[]> =>
  (
    await db.query<Slot>(
      `select slot_name as name, database, database = current_database() as "isHere", active as "isActive",
              coalesce(wal_status = 'lost', false) as "isLost"
         from pg_replication_slots where starts_with(slot_name, $1) order by slot_name`,
      [followingPrefix],
    )
  ).rows

/** In the database that is asked. */
export const findSlot = async (db: Connection, name: string): Promise<Slot | undefined> =>
  (await readSlots(db)).find(one => one.isHere && one.name === name)

type Subscription = { readonly oid: number; readonly name: string }

const readSubscribed = async (db: Connection): Promise<Subscription[]> =>
  (
    await db.query<Subscription>(
      `select oid::bigint as oid, subname as name from pg_subscription
        where starts_with(subname, $1) and subdbid = (select oid from pg_database where datname = current_database())`,
      [followingPrefix],
    )
  ).rows

export const findSubscription = async (db: Connection, name: string): Promise<Subscription | undefined> =>
  (await readSubscribed(db)).find(one => one.name === name)

/** A server that begins anew, or another one, has another time; a role needs no right to ask. */
const placeOf = async (db: Connection): Promise<string> =>
  (
    await db.query<{ place: string }>(
      `select concat_ws(' ', extract(epoch from pg_postmaster_start_time()), current_database()) as place`,
    )
  ).rows[0]!.place

/** Whom the slots in a cell's database are of that have the names of other cells: who follows it under that name, and what nobody uses. */
async function readOthers(db: Connection, { name, owner, replicator }: FollowedCell): Promise<Record<'used' | 'left', Slot[]>> {
  const [subscribed, sources, own] = [await readSubscribed(db), await readSources(db), await readSources(owner)]
  // Between two tries of its subscription a slot is used by nobody. What comes of a name says which database has it; before the first that comes it may be this one.
  const isUsed = (slot: Slot): boolean => {
    const known = sources.find(({ source }) => source === cellOf(slot.name))
    const isSubscribed = subscribed.some(one => one.name === slot.name)
    return slot.isActive || (isSubscribed && (known === undefined || own.some(({ id }) => id === known.id)))
  }
  const others = (await readSlots(replicator)).filter(slot => slot.isHere && slot.name !== subscriptionName(name))
  return { used: others.filter(isUsed), left: others.filter(slot => !isUsed(slot)) }
}

/** Why a cell's database is not followed under this name and by this address, in words for the operator. `db`: the reporting database. */
export async function placeRefusals(db: Connection, cell: FollowedCell): Promise<string[]> {
  const { owner, replicator } = cell
  if ((await placeOf(owner)) !== (await placeOf(replicator)))
    return ['REPLICATION_URL names another database than DATABASE_URL: the payments of another cell would come under its name.']
  const { used } = await readOthers(db, cell)
  if (used.length > 0)
    return used.map(slot => {
      const other = cellOf(slot.name)
      return `Its database is followed as ${other} already (it has the slot ${slot.name}): call it ${other} in the cells file, or end that first with --end ${other}.`
    })
  const name = subscriptionName(cell.name)
  const slot = (await readSlots(replicator)).find(one => one.name === name)
  if (slot && !slot.isHere)
    return [
      `Its server has a slot ${name} already, of the database ${slot.database}: no two databases of a server are followed under one name. If nobody uses it, drop it there: ${dropText(name)}.`,
    ]
  if (slot?.isActive && !(await findSubscription(db, name)))
    return [`Another reporting database follows the cell ${cell.name}: one has its slot, ${name}.`]
  return []
}

export const dropText = (slot: string): string => `select pg_drop_replication_slot('${slot}')`

/** What stands in a cell for nobody, in words for the operator. */
export async function leftSlots(db: Connection, cell: FollowedCell): Promise<string[]> {
  const { left } = await readOthers(db, cell)
  return left.map(
    ({ name, database }) =>
      `Nobody uses the slot ${name} of its database, for which all is kept that is written there. Drop it in ${database}: ${dropText(name)}.`,
  )
}

/** `slots`: patterns of names. In the database that is asked. */
export const matchingSlots = async (replicator: Connection, slots: readonly string[]) =>
  (
    await replicator.query<{ slot: string; active: boolean }>(
      'select slot_name as slot, active from pg_replication_slots where slot_name like any ($1) and database = current_database()',
      [slots],
    )
  ).rows

/** Who used one ends in a moment. */
export async function dropSlots(replicator: Connection, slots: readonly string[]): Promise<void> {
  for (let tries = 0; ; tries++) {
    const found = await matchingSlots(replicator, slots)
    if (found.length === 0) return
    if (tries === 50) throw new OperatorError(`The slot ${found[0]!.slot} is still in use.`)
    for (const { slot } of found.filter(({ active }) => !active))
      await replicator.query('select pg_drop_replication_slot($1)', [slot])
    if (found.some(({ active }) => active)) await replicator.query('select pg_sleep(0.2)')
  }
}
