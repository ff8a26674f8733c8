// Which database a configuration means. Of an embedded one the server writes its socket's folder and port beside its files while it runs.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type pg from 'pg'
import { database, role } from './embedded/place.ts'

/** Undefined when it is an embedded one that does not run. */
export const connectionOf = ({ databaseUrl, dataDir }: { readonly databaseUrl?: string; readonly dataDir: string }) =>
  databaseUrl === undefined ? runningEmbedded(dataDir) : { connectionString: databaseUrl }

/** Undefined when no server runs on this data folder. */
export function runningEmbedded(dataDir: string): pg.PoolConfig | undefined {
  let lines: string[]
  try {
    lines = readFileSync(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8').split('\n')
  } catch {
    return undefined
  }
  const [, , , port, host] = lines // after pid, data folder and start time
  return host && port ? { host, port: Number(port), user: role, database, password: '', ssl: false } : undefined
}
