// The database of a process: the embedded one in DATA_DIR, or the one that DATABASE_URL names. Migrated, keys checked, seeded.

import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { applySeed, readSeed, sentFor } from '../merchants/seed.ts'
import type { Clock, Random } from '../platform/clock.ts'
import { inTransaction, timeParameter } from '../platform/database/connect.ts'
import { type EmbeddedDatabase, startEmbedded } from '../platform/database/embedded.ts'
import { claimFolder } from '../platform/database/folder.ts'
import { compareModes, type InstallationMode, keepMode, readMode } from '../platform/database/installation.ts'
import { migrate } from '../platform/database/migrate.ts'
import { OperatorError } from '../platform/errors.ts'
import { compareKeys, type Keys, keepKeys, keyedHashes } from '../vault/keys.ts'
import { readProofs } from '../vault/store.ts'
import type { Config } from './config.ts'

export type OpenDatabase = { readonly connection: pg.PoolConfig; readonly embedded?: EmbeddedDatabase; close(): Promise<void> }

export const sandboxSeed = fileURLToPath(new URL('../../seeds/sandbox.json', import.meta.url))

/** The lowest PostgreSQL that the schema and the statements are written for. */
const oldestServer = 150_000

/** Who gives up waiting aborts: nothing is left running then. */
export async function openDatabase(config: Config, say: (text: string) => void, signal: AbortSignal): Promise<OpenDatabase> {
  // A live gateway with a database of its own needs no folder to itself: several may share the machine.
  if (config.databaseUrl !== undefined) return { connection: { connectionString: config.databaseUrl }, close: async () => {} }
  const claim = claimFolder(config.dataDir)
  try {
    const embedded = await startEmbedded({ dataDir: config.dataDir, say, signal, strict: config.mode === 'live' })
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
  const pool = new pg.Pool({ ...connection, max: 2, connectionTimeoutMillis: 10_000 })
  pool.on('error', () => {}) // the next statement says what is wrong
  pool.on('connect', client => client.on('error', () => {}))
  try {
    const { rows } = await pool.query<{ server_version_num: string }>('show server_version_num').catch(error => {
      throw new OperatorError(`The database cannot be reached: ${error.message}.`)
    })
    if (Number(rows[0]!.server_version_num) < oldestServer)
      throw new OperatorError(`PostgreSQL 15 or newer is needed; this server is ${rows[0]!.server_version_num}.`)
    // Before anything is changed: a process of another mode or with other keys leaves the database, and the folder of keys, as they are.
    compareModes(await readMode(pool), config.mode)
    const known = await readProofs(pool)
    const keys = config.keys(known.length === 0 ? () => random.bytes(32) : undefined)
    compareKeys(known, keys)
    const before = known.length === 0 ? undefined : await modeBefore(pool, keys, clock)
    compareModes(before, config.mode)
    await migrate(pool, new Date(clock.real()).toISOString())
    await inTransaction(pool, async db => {
      await keepKeys(db, keys, clock.real())
      await keepMode(db, config.mode, clock.real())
    })
    compareModes(await readMode(pool), config.mode) // two that began at once with different modes
    if (config.mode === 'sandbox') await applySeed(pool, keys, clock, random, readSeed(sandboxSeed))
    if (config.seedFile !== undefined) {
      const seed = readSeed(config.seedFile, config.brandNames, config.mode)
      const { revoked } = await applySeed(pool, keys, clock, random, seed)
      for (const label of revoked) say(`The token ${label} of SEED_FILE is revoked and stays so.`)
    }
    if (config.mode === 'live') await refuseSandboxToken(pool, keys, clock)
    return { keys }
  } finally {
    await pool.end()
  }
}

/** The mode of the database; of one from before modes were written it is a sandbox's, if the public token is valid there. */
async function modeBefore(pool: pg.Pool, keys: Keys, clock: Clock): Promise<InstallationMode> {
  return (await readMode(pool)) ?? ((await knowsSandboxToken(pool, keys, clock)) ? 'sandbox' : 'live')
}

/** The sandbox's token is printed in the documentation: a live gateway must not know it, whoever put it there. */
async function refuseSandboxToken(pool: pg.Pool, keys: Keys, clock: Clock): Promise<void> {
  if (await knowsSandboxToken(pool, keys, clock))
    throw new OperatorError('This database holds the public access token of the sandbox: revoke it before MODE=live.')
}

async function knowsSandboxToken(pool: pg.Pool, keys: Keys, clock: Clock): Promise<boolean> {
  const hashes = (readSeed(sandboxSeed).tokens ?? []).flatMap(token => keyedHashes(keys, 'token', sentFor(token)))
  const { rowCount } = await pool.query(
    'select 1 from access_tokens where token_hash = any ($1) and (revoked_at is null or revoked_at > $2)',
    [hashes, timeParameter(clock.real())],
  )
  return rowCount! > 0
}
