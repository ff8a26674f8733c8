// Which database a configuration means. Of an embedded one the server writes its socket's folder and port beside its files while it runs,
// and a copy of the folder has them too.

import { join } from 'node:path'
import type pg from 'pg'
import type { Connection } from './connect.ts'
import { readOwn } from './embedded/ownFile.ts'
import { database, role, systemIdentifier } from './embedded/place.ts'
import { isOfFolder, readServerFile, type ServerFile, serverFile } from './embedded/serverFile.ts'
import { FolderError, refuseOpen } from './folder.ts'

/** Undefined when it is an embedded one that does not run. */
export const connectionOf = ({ databaseUrl, dataDir }: { readonly databaseUrl?: string; readonly dataDir: string }) =>
  databaseUrl === undefined ? runningEmbedded(dataDir) : { connectionString: databaseUrl }

/** Undefined when no server runs on this data folder. */
export function runningEmbedded(dataDir: string): pg.PoolConfig | undefined {
  refuseOpen(dataDir)
  const cluster = join(dataDir, 'postgres')
  let file: ServerFile
  try {
    file = readServerFile(readOwn(cluster, serverFile).toString())
  } catch (error) {
    if (error instanceof FolderError) throw error
    return undefined
  }
  const { host, port } = file
  return host && port && isOfFolder(file, cluster) ? { host, port, user: role, database, password: '', ssl: false } : undefined
}

/** Whether the server that answers works on the files of this data folder: another may have taken the place of its socket. */
export async function isServerOf(db: Connection, dataDir: string): Promise<boolean> {
  const { rows } = await db.query<{ identifier: string }>('select system_identifier::text as identifier from pg_control_system()')
  return rows[0]!.identifier === BigInt.asIntN(64, BigInt(systemIdentifier(join(dataDir, 'postgres')))).toString()
}
