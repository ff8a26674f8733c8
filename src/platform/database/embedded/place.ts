// What a start works with.

import type { SystemAccount } from './account.ts'
import type { Binaries } from './binaries.ts'
import { readOwn } from './ownFile.ts'

/** DATA_DIR, the folders in it, the programs and whom they run as. */
export type EmbeddedPlace = { folder: string; cluster: string; socketFolder: string; binaries: Binaries; account: SystemAccount }

/** Part of the socket's name, no TCP port. */
export const port = 5432
/** Owns the cluster and is let in nowhere. */
export const superuser = 'tollgate'
/** The gateway's own: see role.ts. */
export const role = 'gateway'
export const database = 'tollgate'

/** As a server of ours is told it: a list, hence the quotes. */
export const socketSetting = (folder: string): string => `unix_socket_directories="${folder.replaceAll('"', '""')}"`

/** Whether a gateway gave this command line; others write the setting without quotes, or into a file. */
export const hasOurSocket = (commandLine: string): boolean => commandLine.includes(socketSetting('').slice(0, -1))

/** How long a server may be silent while it starts or stops. */
export const patienceMs = 30_000

export const restoringName = 'postgres.restoring'
export const upgradingName = 'postgres.upgrading'
/** Folders in which a command puts a database together, as in a DATA_DIR of its own, with that command. Beside one of them no server is started. */
export const unfinished = { [restoringName]: 'restore', [upgradingName]: 'upgrade-database' } as const

/** The major version of the server that made the files of a cluster; no other reads them. */
export const clusterMajor = (cluster: string): string => readOwn(cluster, 'PG_VERSION').toString().trim()

/** PostgreSQL's name of a database's files, made by chance with them, and carried by all that it writes: a copy has it too, what takes their place has not. */
export const systemIdentifier = (cluster: string): string => String(readOwn(cluster, 'global/pg_control').readBigUInt64LE())
