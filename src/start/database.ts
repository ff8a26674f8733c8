// The database of a process: the embedded one in DATA_DIR, or the one that DATABASE_URL names. Migrated, keys checked, seeded.

import pg from 'pg'
import { beginAudit, type Recorder, record } from '../audit/chain.ts'
import type { AuditEntry } from '../audit/entry.ts'
import { applySeed, findPublicTokens, keptTexts, readSeed, sandboxSeed, severalPsps } from '../merchants/seed.ts'
import { announceChange, readEntities, readPsps, revokeToken } from '../merchants/store.ts'
import type { Clock, Random } from '../platform/clock.ts'
import { inTransaction, makePool, replicaRefusal, writingPool } from '../platform/database/connect.ts'
import { type EmbeddedDatabase, startEmbedded } from '../platform/database/embedded.ts'
import { isUnavailable } from '../platform/database/errors.ts'
import { claimFolder, makeFolder } from '../platform/database/folder.ts'
import { compareModes, type InstallationMode, keepMode, readMode } from '../platform/database/installation.ts'
import { migrate } from '../platform/database/migrate.ts'
import { OperatorError } from '../platform/errors.ts'
import { compareKeys, type Keys, keepKeys, writerOf } from '../vault/keys.ts'
import { readProofs } from '../vault/store.ts'
import { channelRefusal } from './channelRefusal.ts'
import type { Config } from './config.ts'
import { credentialsOf, noteCredentials } from './credentials.ts'
import { refuseReporting } from './reporting/whose.ts'

export type OpenDatabase = { readonly connection: pg.PoolConfig; readonly embedded?: EmbeddedDatabase; close(): Promise<void> }

/** The lowest PostgreSQL that the schema and the statements are written for. */
const oldestServer = 150_000

/** Who gives up waiting aborts: nothing is left running then. */
export async function openDatabase(config: Config, say: (text: string) => void, signal: AbortSignal): Promise<OpenDatabase> {
  // A live gateway with a database of its own needs no folder to itself: several may share the machine.
  if (config.databaseUrl !== undefined) {
    if (config.mode === 'sandbox') makeFolder(config.dataDir) // for its keys, sandbox.json and the books of its acquirer host
    return { connection: { connectionString: config.databaseUrl }, close: async () => {} }
  }
  const claim = claimFolder(config.dataDir)
  try {
    const { dataDir, mode, embeddedUser, backupDir } = config
    const embedded = await startEmbedded({
      dataDir,
      say,
      signal,
      strict: mode === 'live',
      ...(embeddedUser !== undefined && { user: embeddedUser }),
      ...(backupDir !== undefined && { backupDir }),
    })
    const { host, port, user, database } = embedded
    return {
      connection: { host, port, user, database, ssl: false },
      embedded,
      async close() {
        await embedded.stop()
        claim.release()
      },
    }
  } catch (error) {
    claim.release()
    throw error
  }
}

export async function prepareDatabase(
  config: Config,
  { connection }: OpenDatabase,
  clock: Clock,
  random: Random,
  say: (text: string) => void,
): Promise<{ keys: Keys }> {
  const pool = makePool(connection, 2, () => {}) // the next statement says what is wrong
  try {
    await refuseUnfit(pool)
    // Before anything is changed: a process of another mode or with other keys leaves the database, and the folder of keys, as they are.
    compareModes(await readMode(pool), config.mode)
    await refuseReporting(pool)
    const known = await readProofs(pool)
    const keys = config.keys(known.length === 0 ? () => random.bytes(32) : undefined)
    compareKeys(known, keys)
    const before = known.length === 0 ? undefined : await modeBefore(pool, keys, clock.real())
    compareModes(before, config.mode)
    const applied = await migrate(pool, new Date(clock.real()).toISOString())
    await inTransaction(pool, async db => {
      await keepKeys(db, keys, clock.real())
      // Whatever made an entity left a row. In a database of before the beginning was sealed, this is the first that can be said of it.
      if (applied.includes('0016_audit_proofs.sql') || (await readEntities(db)).length === 0) await beginAudit(db, keys)
      await keepMode(db, config.mode, clock.real())
    }).catch(error => {
      throw isUnavailable(error) ? givenUp(error) : error // a session that was ended meanwhile answers nothing
    })
    compareModes(await readMode(pool), config.mode) // two that began at once with different modes
    await write(config, keys, connection, clock, random, say)
    if (config.mode === 'live') for (const setting of [...(await findUnsafe(pool)), ...(await findTelling(pool))]) say(setting)
    return { keys }
  } catch (error) {
    if (error instanceof pg.DatabaseError && isUnavailable(error)) throw givenUp(error)
    // Names that are taken or missing, and rights (class 42): the tables are not ours.
    if (!(error instanceof pg.DatabaseError && /^(42|3F)/.test(error.code ?? ''))) throw error
    throw new OperatorError(
      `The database cannot be used: ${error.message}. Tollgate needs a database of its own, with a role that owns it.`,
    )
  } finally {
    await pool.end()
  }
}

const givenUp = ({ message }: Error): OperatorError =>
  new OperatorError(
    `The database gave up this start: ${message}. It stood still for some seconds, or was kept waiting, as by a keys retire that counts what needs a key: start it again.`,
  )

/** What a start writes with its keys, once they are proved. */
async function write(
  config: Config,
  keys: Keys,
  connection: pg.PoolConfig,
  clock: Clock,
  random: Random,
  say: (text: string) => void,
): Promise<void> {
  const pool = writingPool(connection, 2, writerOf(keys))
  try {
    if (config.mode === 'sandbox') await applySeed(pool, keys, clock, random, readSeed(sandboxSeed))
    else await revokePublicTokens(pool, { keys, clock }, say)
    if (config.seedFile !== undefined) {
      const seed = readSeed(config.seedFile, config.brandNames, config.mode)
      const applied = await applySeed(pool, keys, clock, random, seed, { refusal: channelRefusal(config) })
      for (const text of keptTexts(applied, 'SEED_FILE')) say(text)
    }
    const several = severalPsps(await readPsps(pool))
    if (several.length > 0) throw new OperatorError(several.join('\n'))
    await noteCredentials(pool, { keys, clock }, await credentialsOf(config, keys))
  } finally {
    await pool.end()
  }
}

async function refuseUnfit(pool: pg.Pool): Promise<void> {
  const { rows } = await pool
    .query<{ version: string; encoding: string; isReadOnly: boolean; isReplica: boolean }>(
      `select current_setting('server_version_num') as version, current_setting('server_encoding') as encoding,
              current_setting('transaction_read_only')::boolean as "isReadOnly",
              exists (select from pg_settings where name = 'session_replication_role' and reset_val = 'replica') as "isReplica"`,
    )
    .catch(error => {
      throw error instanceof OperatorError ? error : new OperatorError(`The database cannot be reached: ${error.message}.`)
    })
  const { version, encoding, isReadOnly, isReplica } = rows[0]!
  if (Number(version) < oldestServer) throw new OperatorError(`PostgreSQL 15 or newer is needed; this server is ${version}.`)
  if (encoding !== 'UTF8') throw new OperatorError(`The database is encoded in ${encoding}: make one with encoding 'UTF8'.`)
  if (isReadOnly) throw new OperatorError('The database takes no writes: it is a standby, or was set to be read only.')
  if (isReplica) throw new OperatorError(replicaRefusal) // a superuser's session has left it, and others' have not
  if (await sharesSessions(pool))
    throw new OperatorError(
      'A pooler stands before the database and gives a session to others between transactions (PgBouncer with pool_mode transaction or statement): ' +
        'time limits, prepared statements and notices of the gateway would be lost in it. Set pool_mode to session for this database, or name the server itself.',
    )
}

/** What of a server loses payments that were answered when its machine fails; what is said of each. */
async function findUnsafe(pool: pg.Pool): Promise<string[]> {
  const { rows } = await pool.query<{ name: string }>(
    `select name from pg_settings where name in ('fsync', 'full_page_writes') and setting = 'off' order by name`,
  )
  return rows.map(
    ({ name }) => `The server of the database has ${name} off: what was answered may be lost when its machine fails.`,
  )
}

/** What of a server writes the values of statements into its log, where nothing that is erased goes: sealed card numbers and CVVs among them. */
export async function findTelling(pool: Pick<pg.Pool, 'query'>): Promise<string[]> {
  const { rows } = await pool.query<{ name: string; most: string }>(
    `select name, most from pg_settings, lateral (select case
              when name in ('log_parameter_max_length_on_error', 'pgaudit.log_parameter', 'auto_explain.log_verbose')
                or name like 'debug_print_%' then name
              when name like 'auto_explain.%' then 'auto_explain.log_parameter_max_length'
              else 'log_parameter_max_length' end) bound (most)
      where case name when 'log_statement' then setting in ('mod', 'all')
                      when 'log_transaction_sample_rate' then setting::float8 > 0
                      when 'log_parameter_max_length_on_error' then setting <> '0'
                      when 'pgaudit.log_parameter' then setting = 'on'
                      -- A plan that is made for the values of a statement has them in it, whatever is kept of parameters.
                      when 'auto_explain.log_verbose' then setting = 'on'
                        and exists (select from pg_settings e where e.name = 'auto_explain.log_min_duration' and e.setting <> '-1')
                      else name like 'debug_print_%' and setting = 'on' or name in ('log_min_duration_statement', 'log_min_duration_sample', 'auto_explain.log_min_duration') and setting <> '-1' end
        and exists (select from pg_settings p where p.name = most and p.setting <> '0')
      order by name`,
  )
  return rows.map(
    ({ name, most }) =>
      `The server of the database has ${name} on and writes what statements carry into its log: sealed card numbers and CVVs stay there, whatever is erased. Set ${most} to 0.`,
  )
}

/** Whether what one connection says may reach another's session of the server: each must keep its own while the other one works. */
async function sharesSessions(pool: pg.Pool): Promise<boolean> {
  const [one, other] = [await pool.connect(), await pool.connect()]
  const session = async (connection: pg.PoolClient): Promise<number> =>
    (await connection.query<{ pid: number }>('select pg_backend_pid() as pid')).rows[0]!.pid
  try {
    const before = await session(one)
    if (!(await other.query('begin').catch(() => undefined))) return true // pool_mode statement knows no transactions
    const between = await session(other)
    const after = await session(one)
    await other.query('rollback')
    return before !== after || before === between
  } finally {
    one.release()
    other.release()
  }
}

/** The mode of the database; of one from before modes were written it is a sandbox's, if the public token is valid there. */
export async function modeBefore(pool: pg.Pool, keys: Keys, now: number): Promise<InstallationMode> {
  return (await readMode(pool)) ?? ((await findPublicTokens(pool, keys, now)).length > 0 ? 'sandbox' : 'live')
}

/** No seed brings it into a live database. One that has it all the same must start without it: no command could take it out while it does not. */
async function revokePublicTokens(pool: pg.Pool, recorder: Recorder, say: (text: string) => void): Promise<void> {
  await inTransaction(pool, async db => {
    const ids = await findPublicTokens(db, recorder.keys, recorder.clock.real())
    const entries: AuditEntry[] = []
    for (const id of ids) {
      const entityId = await revokeToken(db, id, recorder.clock.real())
      entries.push({ action: 'tokenRevoked', entityId, subject: id, details: { why: "the sandbox's, public" } })
    }
    if (ids.length > 0) await announceChange(db)
    await record(db, recorder, entries)
    for (const id of ids)
      say(`The public access token of the sandbox was valid here, and is revoked: look at what it did (${id}).`)
  })
}
