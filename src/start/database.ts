// The database of a process: the embedded one in DATA_DIR, or the one that DATABASE_URL names. Migrated, keys checked, seeded.

import { fileURLToPath } from 'node:url'
import pg from 'pg'
import type { Clock, Random } from '../clock.ts'
import type { Config } from '../config.ts'
import { inTransaction } from '../database/connect.ts'
import { type EmbeddedDatabase, startEmbedded } from '../database/embedded.ts'
import { claimFolder } from '../database/folder.ts'
import { migrate } from '../database/migrate.ts'
import { OperatorError } from '../errors.ts'
import { applySeed, readSeed, sentFor } from '../merchants/seed.ts'
import { compareKeys, type Keys, keepKeys, keyedHashes } from '../vault/keys.ts'
import { readProofs } from '../vault/store.ts'

export type Opened = { readonly connection: pg.PoolConfig; readonly embedded?: EmbeddedDatabase; close(): Promise<void> }

export const sandboxSeed = fileURLToPath(new URL('../../seeds/sandbox.json', import.meta.url))

/** The lowest PostgreSQL that the schema and the statements are written for. */
const oldestServer = 150_000

/** Who gives up waiting aborts: nothing is left running then. */
export async function openDatabase(config: Config, say: (text: string) => void, signal: AbortSignal): Promise<Opened> {
  // A live gateway with a database of its own needs no folder to itself: several may share the machine.
  if (config.databaseUrl !== undefined) return { connection: { connectionString: config.databaseUrl }, close: async () => {} }
  const claim = claimFolder(config.dataDir)
  try {
    const embedded = await startEmbedded({ dataDir: config.dataDir, say, signal })
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
  { connection }: Opened,
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
    // Before anything is changed: a process with other keys leaves the database, and the folder of keys, as they are.
    const known = await readProofs(pool)
    const keys = config.keys(known.length === 0 ? () => random.bytes(32) : undefined)
    compareKeys(known, keys)
    await migrate(pool, new Date(clock.real()).toISOString())
    await inTransaction(pool, db => keepKeys(db, keys, clock.real()))
    if (config.mode === 'sandbox') await applySeed(pool, keys, clock, random, readSeed(sandboxSeed))
    else await refuseSandboxToken(pool, keys)
    if (config.seedFile !== undefined) {
      const { revoked } = await applySeed(pool, keys, clock, random, readSeed(config.seedFile, config.brandNames))
      for (const label of revoked) say(`The token ${label} of SEED_FILE is revoked and stays so.`)
    }
    return { keys }
  } finally {
    await pool.end()
  }
}

/** The sandbox's token is printed in the documentation: a live gateway must not know it. */
async function refuseSandboxToken(pool: pg.Pool, keys: Keys): Promise<void> {
  for (const token of readSeed(sandboxSeed).tokens ?? []) {
    const { rowCount } = await pool.query('select 1 from access_tokens where token_hash = any ($1) and revoked_at is null', [
      keyedHashes(keys, 'token', sentFor(token)),
    ])
    if (rowCount !== 0)
      throw new OperatorError('This database holds the public access token of the sandbox: revoke it before MODE=live.')
  }
}
