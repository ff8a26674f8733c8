// What a start works with.

import type { SystemAccount } from './account.ts'
import type { Binaries } from './binaries.ts'

/** DATA_DIR, the folders in it, the programs and whom they run as. */
export type EmbeddedPlace = { folder: string; cluster: string; socketFolder: string; binaries: Binaries; account: SystemAccount }

/** Part of the socket's name, no TCP port. */
export const port = 5432
/** Owns the cluster and is let in nowhere. */
export const superuser = 'tollgate'
/** The gateway's own: see role.ts. */
export const role = 'gateway'
export const database = 'tollgate'

/** How long a server may be silent while it starts or stops. */
export const patienceMs = 30_000

/** Folders beside the cluster in which a command puts one together, with that command. While there is one, no server is started. */
export const unfinished = { 'postgres.restoring': 'restore', 'postgres.upgrading': 'upgrade-database' } as const
