// The embedded database of a gateway that is running: the server writes its socket's folder and port beside its files.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type pg from 'pg'
import { database, role } from './embedded/place.ts'

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
