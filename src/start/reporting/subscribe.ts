// A reporting database that subscribes to cells, by PostgreSQL's logical replication. Every step can be taken again: what is there already is put right.

import pg from 'pg'
import type { Random } from '../../platform/clock.ts'
import { type Connection, timeParameter } from '../../platform/database/connect.ts'
import { followingPrefix, nameBeat } from '../../platform/database/following.ts'
import { published, publishedText, takingText } from './published.ts'
import { grantReading, rightsBeyond } from './roles.ts'
import { dropSlots, type FollowedCell, findSlot, findSubscription, subscriptionName } from './slots.ts'
import { isGateways } from './whose.ts'

const publication = 'tollgate_reporting'

type Found = { readonly what: string; readonly is: string; readonly wrong: boolean; readonly rule: string }

/** What keeps a server from publishing to a reporting database, in words for the operator. */
export async function publisherRefusals({ name, owner, replicator, url }: FollowedCell): Promise<string[]> {
  const { rows } = await owner.query<Found>(
    `select 'wal_level' as what, current_setting('wal_level') as is, current_setting('wal_level') <> 'logical' as wrong, 'must be logical' as rule
      union all
     select 'max_slot_wal_keep_size', current_setting('max_slot_wal_keep_size'), current_setting('max_slot_wal_keep_size') = '-1',
            'must have a limit: a reporting database that is away would fill the disk on which payments are written'
      union all
     select 'synchronous_standby_names', current_setting('synchronous_standby_names'), exists (select from regexp_matches(current_setting('synchronous_standby_names'), '"((?:[^"]|"")*)"|([*])|([^\\s,()"]+)', 'g') name
                     where lower(coalesce(name[1], name[2], name[3])) in ('*', lower($1))),
            'must name standbys, and not the reporting database: every payment would wait for it'`,
    [URL.parse(url)?.searchParams.get('application_name') ?? subscriptionName(name)],
  )
  const { rows: roles } = await replicator.query<{ role: string }>(
    'select current_user as role from pg_roles where rolname = current_user and not rolreplication and not rolsuper',
  )
  const beyond = await rightsBeyond(replicator, 'replicator')
  return [
    ...rows.filter(({ wrong }) => wrong).map(({ what, is, rule }) => `${what} is ${is || 'empty'}: it ${rule}.`),
    ...beyond.map(
      one =>
        `REPLICATION_URL: ${one} Whoever reads the reporting server's subscriptions has its password (docs/operating-reporting.md).`,
    ),
    ...roles.map(
      ({ role }) => `The role ${role} may not replicate: alter role ${role} replication, or name another in REPLICATION_URL.`,
    ),
  ]
}

/** What keeps a server from subscribing to so many cells. */
export async function subscriberRefusals(db: Connection, cells: number): Promise<string[]> {
  const { rows } = await db.query<{ standby: boolean; workers: number; may: boolean; foreign: string | null }>(
    `select pg_is_in_recovery() as standby, current_setting('max_logical_replication_workers')::int as workers,
            coalesce((select rolsuper from pg_roles where rolname = current_user), false)
              or exists (select from pg_roles where rolname = 'pg_create_subscription' and pg_has_role(oid, 'member')) as may,
            case when to_regclass('reporting_sources') is null and to_regclass('installation') is null then
              (select min(relname) from pg_class join pg_namespace on pg_namespace.oid = relnamespace
                where nspname = current_schema() and relkind in ('r', 'p', 'v', 'm', 'f')
                  and not exists (select from pg_depend where classid = 'pg_class'::regclass and objid = pg_class.oid and deptype = 'e')) end as foreign`,
  )
  const { standby, workers, may, foreign } = rows[0]!
  if (standby) return ['It is a standby, which follows one database already: it needs no subscription.']
  return [
    ...(foreign === null ? [] : [`Another program has made ${foreign} in this database: a reporting database begins empty.`]),
    ...((await isGateways(db)) ? ['A gateway has used this database: a reporting database begins empty.'] : []),
    ...(workers > cells ? [] : [`max_logical_replication_workers is ${workers}: it must be more than the ${cells} cells.`]),
    ...(may ? [] : ['The role may not make subscriptions: it must be a superuser, or have the role pg_create_subscription.']),
  ]
}

/** The tables take rows as they come: of two with one key the one that counts, and without what is not published. */
export async function prepareTables(db: Connection): Promise<void> {
  const { rows } = await db.query<{ schema: string }>('select current_schema() as schema')
  const schema = pg.escapeIdentifier(rows[0]!.schema)
  for (const one of published) {
    for (const statement of takingText(schema, one)) await db.query(statement)
    const { rows: demanded } = await db.query<{ name: string }>(
      `select attname as name from pg_attribute where attrelid = $1::regclass and attnum > 0 and attnotnull and not atthasdef and attname <> all ($2)`,
      [`${schema}.${one.table}`, one.columns ?? []],
    )
    if (one.columns)
      for (const { name } of demanded) await db.query(`alter table ${one.table} alter column ${name} drop not null`)
  }
}

/**
 * Makes the reporting database follow a cell, or puts right what is there. Returns what was done. A slot that the cell has lost, because it was too far behind or
 * another server took over, is made anew, and everything is copied again beside what is there.
 */
export async function follow(db: pg.Pool, cell: FollowedCell, now: number, random: Random): Promise<string> {
  const { owner, replicator, url } = cell
  const name = subscriptionName(cell.name)
  await nameBeat(owner, now, random, cell.name)
  await grantReading(owner, (await replicator.query<{ role: string }>('select current_user as role')).rows[0]!.role, 'replicator')
  const { rows: there } = await owner.query('select from pg_publication where pubname = $1', [publication])
  const words = `publication ${publication}`
  await owner.query(there.length > 0 ? `alter ${words} set table ${publishedText}` : `create ${words} for table ${publishedText}`)
  // What a cell erases, or gives away with a merchant, stays.
  await owner.query(`alter ${words} set (publish = 'insert, update')`)
  await db.query('insert into reporting_sources (source, subscribed_at) values ($1, $2) on conflict do nothing', [
    cell.name,
    timeParameter(now),
  ])
  const [slot, subscription] = [await findSlot(replicator, name), await findSubscription(db, name)]
  if (subscription && slot && !slot.isLost) {
    await sayQuietly(db, `alter subscription ${name} connection ${pg.escapeLiteral(url)}`)
    await db.query(`alter subscription ${name} enable`)
    await db.query(`alter subscription ${name} refresh publication`)
    return 'follows'
  }
  await dropSlots(replicator, await unsubscribe(db, cell.name))
  // Not by the subscription itself: on one server the two would wait for each other.
  await replicator.query(`select pg_create_logical_replication_slot($1, 'pgoutput')`, [name])
  await sayQuietly(
    db,
    `create subscription ${name} connection ${pg.escapeLiteral(url)} publication ${publication} with (create_slot = false, slot_name = ${name}, copy_data = true)`,
  )
  if (!subscription) return 'is copied'
  return slot ? 'is copied anew: the cell had given up what it kept' : 'is copied anew: the cell kept nothing for it'
}

/** What would keep the words of a statement on a server, where others than superusers read them, and what ends that for a session. */
const quiet = {
  track_activities: 'off',
  log_statement: 'none',
  log_min_duration_statement: '-1',
  log_min_duration_sample: '-1',
  log_transaction_sample_rate: '0',
  log_min_error_statement: 'panic',
  'pg_stat_statements.track': 'none',
  'pgaudit.log': 'none',
}

/** A statement that holds a password, in a session of its own. A role that is no superuser leaves as it is what it was not given to set. */
async function sayQuietly(db: pg.Pool, statement: string): Promise<void> {
  const session = await db.connect()
  try {
    await session.query(
      `select set_config(name, quiet.value, false) from json_each_text($1) quiet (name, value) join pg_settings using (name)
        where has_parameter_privilege(name, 'set')`,
      [JSON.stringify(quiet)],
    )
    await session.query(statement)
  } finally {
    session.release(true)
  }
}

/** Ends a subscription; what was copied stays. Returns patterns of its slots in the cell, which hold what is written there until they are dropped. */
export async function unsubscribe(db: Connection, cell: string): Promise<readonly string[]> {
  const name = subscriptionName(cell)
  const own = name.replaceAll('_', '\\_')
  const subscription = await findSubscription(db, name)
  if (!subscription) return [own]
  await db.query(`alter subscription ${name} disable`)
  await db.query(`alter subscription ${name} set (slot_name = none)`)
  await db.query(`drop subscription ${name}`)
  return [own, `pg\\_${subscription.oid}\\_sync\\_%`]
}

/** How the subscriptions stand: tables that are still copied, and how often one was stopped. */
export type SubscriptionState = {
  readonly source: string
  readonly copying: number
  readonly runs: boolean
  readonly errors: number
}

export async function readSubscriptions(db: Connection): Promise<SubscriptionState[]> {
  const { rows } = await db.query<SubscriptionState>(
    `select r.source, s.subenabled and exists (select from pg_stat_subscription w where w.subid = s.oid and w.pid is not null) as runs,
            (select count(*) from pg_subscription_rel t where t.srsubid = s.oid and t.srsubstate <> 'r') as copying,
            coalesce((select e.apply_error_count + e.sync_error_count from pg_stat_subscription_stats e where e.subid = s.oid), 0) as errors
       from reporting_sources r left join pg_subscription s on s.subname = $1 || replace(r.source, '-', '_') order by r.source`,
    [followingPrefix],
  )
  return rows.map(one => ({ ...one, runs: one.runs === true }))
}

/** False when it was not followed. */
export async function forgetSource(db: Connection, source: string): Promise<boolean> {
  await db.query('delete from beats where source = $1', [source])
  return (await db.query('delete from reporting_sources where source = $1', [source])).rowCount === 1
}

const sumKey = `concat_ws(' ', ${published.find(({ table }) => table === 'closing_sums')!.key.join(', ')})`

/** What stands for payments that are archived, and whose it may be. */
export type CellSums = { readonly keys: readonly string[]; readonly merchants: readonly string[] }

export async function readSums(db: Connection): Promise<CellSums> {
  const { rows: sums } = await db.query<{ key: string }>(`select ${sumKey} as key from closing_sums`)
  const { rows: merchants } = await db.query<{ id: string }>(`select id from entities where kind = 'merchant'`)
  return { keys: sums.map(({ key }) => key), merchants: merchants.map(({ id }) => id) }
}

/**
 * Sums of merchants of the cells that none of them has, because all that they were of was brought back: that is a deletion, and none is published. `known`: what
 * was there before the cells were asked, which may make more meanwhile.
 */
export async function dropSums(db: Connection, known: CellSums, cells: readonly CellSums[]): Promise<void> {
  const wanted = new Set(cells.flatMap(one => one.keys))
  await db.query(`delete from closing_sums where merchant_id = any ($1::uuid[]) and ${sumKey} = any ($2)`, [
    cells.flatMap(one => one.merchants),
    known.keys.filter(key => !wanted.has(key)),
  ])
}
