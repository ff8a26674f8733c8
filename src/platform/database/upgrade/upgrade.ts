// The embedded database moves to the server of another major version: made anew by its own migrations, its rows copied from the old server and
// compared with them, in a folder beside it. Then they change places. The old files are kept as they were.

import { existsSync, realpathSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { systemClock } from '../../clock.ts'
import { syncFolder } from '../../files.ts'
import { makePool } from '../connect.ts'
import { type Binaries, findBinaries } from '../embedded/binaries.ts'
import { clearDraft } from '../embedded/orphan.ts'
import { clusterMajor, upgradingName } from '../embedded/place.ts'
import { type EmbeddedDatabase, startEmbedded } from '../embedded.ts'
import { claimFolder, type FolderClaim, FolderError } from '../folder.ts'
import { readStanding, standingOf, writeStanding } from '../installation.ts'
import { migrate } from '../migrate.ts'
import { copyTable } from './copyTable.ts'

export type UpgradeOrder = {
  readonly dataDir: string
  /** The programs that made the database, and ours. */
  readonly from: Binaries
  readonly to?: Binaries
  readonly user: string | undefined
  readonly strict: boolean
  /** Tells the new database of it, before it takes the place of the old one. */
  tell(pool: pg.Pool): Promise<void>
  say(text: string): void
}

/** → the folder in which the old files are kept, and how many rows were moved. */
export async function upgradeCluster(order: UpgradeOrder): Promise<{ kept: string; tables: number; rows: number }> {
  const { from, to = findBinaries(), say } = order
  const claim = claimFolder(order.dataDir)
  const folder = realpathSync(order.dataDir)
  const [cluster, kept, draft] = [join(folder, 'postgres'), join(folder, `postgres-${from.major}`), join(folder, upgradingName)]
  try {
    // Broken off between the two steps of changing places: it begins anew.
    if (!existsSync(cluster) && existsSync(kept) && existsSync(draft)) renameSync(kept, cluster)
    refuseUnfit(cluster, kept, from, to)
    await clearDraft(draft, say)
    const moved = await move(order, folder, draft, to).catch(async (error: Error) => {
      await clearDraft(draft, say)
      throw error
    })
    renameSync(cluster, kept)
    renameSync(join(draft, 'postgres'), cluster)
    syncFolder(folder)
    await clearDraft(draft, say)
    return { kept, ...moved }
  } finally {
    claim.release()
  }
}

function refuseUnfit(cluster: string, kept: string, from: Binaries, to: Binaries): void {
  if (!existsSync(join(cluster, 'PG_VERSION'))) throw new FolderError(`There is no database in ${cluster}. Nothing was changed.`)
  const major = clusterMajor(cluster)
  if (major === to.major)
    throw new FolderError(`The database in ${cluster} is of PostgreSQL ${major} already. Nothing was changed.`)
  if (major !== from.major)
    throw new FolderError(
      `The database in ${cluster} is of PostgreSQL ${major}, and the package given is ${from.major}. Nothing was changed.`,
    )
  if (Number(from.major) > Number(to.major))
    throw new FolderError(
      `The database in ${cluster} is of PostgreSQL ${major}, which is newer than ours, ${to.major}. Nothing was changed.`,
    )
  if (existsSync(kept))
    throw new FolderError(`${kept} is there already, of an earlier upgrade: take it away first. Nothing was changed.`)
}

async function move({ from, user, strict, tell, say }: UpgradeOrder, folder: string, draft: string, to: Binaries) {
  const options = { say, strict, ...(user !== undefined && { user }) }
  const servers: EmbeddedDatabase[] = []
  const clients: pg.Client[] = []
  let pool: pg.Pool | undefined
  let claim: FolderClaim | undefined
  try {
    say(`Reading the database with PostgreSQL ${from.major}, writing it with ${to.major} ...`)
    servers.push(await startEmbedded({ ...options, dataDir: folder, binaries: from }))
    claim = claimFolder(draft)
    servers.push(await startEmbedded({ ...options, dataDir: draft, binaries: to }))
    for (const { host, port, user, database } of servers) {
      const client = new pg.Client({ host, port, user, database, ssl: false })
      client.on('error', () => {}) // the next statement fails
      await client.connect()
      clients.push(client)
    }
    const [old, fresh] = clients as [pg.Client, pg.Client]
    const { rows: applied } = await old.query<{ name: string }>('select name from migrations')
    const { host, port, user: role, database } = servers[1]!
    pool = makePool({ host, port, user: role, database, ssl: false }, 1, () => {})
    const wanted = new Set(applied.map(({ name }) => name))
    await migrate(pool, new Date(systemClock.real()).toISOString(), wanted)
    const copied = await copyRows(old, fresh)
    // It stands elsewhere now, and was not put back; unless the old one was, and no gateway has noticed that yet.
    if (wanted.has('0045_put_back.sql') && (await readStanding(old)) === (await standingOf(old)))
      await writeStanding(fresh, await standingOf(fresh))
    await tell(pool)
    return copied
  } finally {
    for (const client of clients) await client.end()
    await pool?.end()
    for (const server of servers) await server.stop()
    claim?.release()
  }
}

type Trigger = { readonly owner: string; readonly name: string; readonly state: keyof typeof triggerStates }
const triggerStates = { O: 'enable', A: 'enable always', R: 'enable replica', D: 'disable' } as const

type Table = { readonly name: string; readonly columns: string; readonly isUnlogged: boolean }

/** All of it in one transaction of the new server: what fails leaves nothing. */
async function copyRows(old: pg.Client, fresh: pg.Client): Promise<{ tables: number; rows: number }> {
  const [was, is] = [await tablesOf(old), await tablesOf(fresh)]
  if (JSON.stringify(was) !== JSON.stringify(is))
    throw new FolderError(
      'The tables of the database are not those of its migrations: somebody has changed them. Nothing was changed.',
    )
  // Secrets of minutes, which no log may hold: the files that are kept would.
  for (const { name } of was.filter(({ isUnlogged }) => isUnlogged)) await old.query(`truncate ${name}`)
  const { rows: references } = await fresh.query<{ owner: string; name: string; definition: string }>(
    `select conrelid::regclass as owner, quote_ident(conname) as name, pg_get_constraintdef(oid) as definition
       from pg_constraint where contype = 'f' and connamespace = 'public'::regnamespace`,
  )
  const { rows: triggers } = await fresh.query<Trigger>(
    `select tgrelid::regclass as owner, quote_ident(tgname) as name, tgenabled as state from pg_trigger where not tgisinternal`,
  )
  await fresh.query('begin')
  for (const { owner, name } of triggers) await fresh.query(`alter table ${owner} disable trigger ${name}`)
  for (const { owner, name } of references) await fresh.query(`alter table ${owner} drop constraint ${name}`)
  for (const { name } of is) await empty(fresh, name)
  for (const { name, columns } of is) await copyTable(old, fresh, `${name} (${columns})`)
  for (const { owner, name, state } of triggers) await fresh.query(`alter table ${owner} ${triggerStates[state]} trigger ${name}`)
  for (const { owner, name, definition } of references)
    await fresh.query(`alter table ${owner} add constraint ${name} ${definition}`)
  await raiseFences(old, fresh)
  const { rows: sequences } = await old.query<{ name: string; last: string }>(
    `select format('%I.%I', schemaname, sequencename) as name, last_value as last from pg_sequences where last_value is not null`,
  )
  for (const { name, last } of sequences) await fresh.query('select setval($1::regclass, $2)', [name, last])
  let rows = 0
  for (const { name } of is) {
    const [before, after] = [await contentOf(old, name), await contentOf(fresh, name)]
    if (before.count !== after.count || before.hash !== after.hash)
      throw new FolderError(`${name} has ${before.count} rows, and ${after.count} or others arrived. Nothing was changed.`)
    rows += after.count
  }
  await fresh.query('commit')
  await fresh.query('analyze')
  return { tables: is.length, rows }
}

/** What keeps a merchant's rows from being written where it is not served any more, or not now, is of no migration (migration 0038). */
async function raiseFences(old: pg.Client, fresh: pg.Client): Promise<void> {
  const { rows: fences } = await old.query<Trigger & { definition: string }>(
    `select tgrelid::regclass as owner, quote_ident(tgname) as name, tgenabled as state, pg_get_triggerdef(oid) as definition
       from pg_trigger where tgfoid = to_regproc('public.refuse_elsewhere')`,
  )
  for (const { owner, name, state, definition } of fences)
    await fresh.query(`${definition}; alter table ${owner} ${triggerStates[state]} trigger ${name}`)
}

/** Rows that migrations have made come with those of the old server. From some tables even their owner may not delete, until it says that it may. */
async function empty(client: pg.Client, table: string): Promise<void> {
  if (!(await client.query(`select from ${table} limit 1`)).rowCount) return
  const { rows } = await client.query<{ mayDelete: boolean }>(
    `select has_table_privilege($1::regclass, 'delete') as "mayDelete"`,
    [table],
  )
  if (rows[0]!.mayDelete) await client.query(`delete from ${table}`)
  else
    await client.query(
      `grant delete on ${table} to current_user; delete from ${table}; revoke delete on ${table} from current_user`,
    )
}

async function tablesOf(client: pg.Client): Promise<Table[]> {
  const { rows } = await client.query<Table>(
    `select c.oid::regclass::text as name, c.relpersistence = 'u' as "isUnlogged",
            (select string_agg(quote_ident(attname), ', ' order by attname) from pg_attribute
              where attrelid = c.oid and attnum > 0 and not attisdropped and attgenerated = '') as columns
       from pg_class c where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace order by 1`,
  )
  return rows
}

/** The same for the same rows, in whichever order they stand. */
async function contentOf(client: pg.Client, table: string): Promise<{ count: number; hash: string }> {
  const { rows } = await client.query<{ count: number; hash: string }>(
    `select count(*) as count, coalesce(sum(hashtextextended(one::text, 0)), 0)::text as hash from ${table} one`,
  )
  return rows[0]!
}
