// What a database was made for: a sandbox or live mode, written once. A process or a command of another mode refuses it.

import { OperatorError } from '../errors.ts'
import { type Connection, timeParameter } from './connect.ts'

export type InstallationMode = 'sandbox' | 'live'

/** Undefined in a database that no gateway has used yet, and in one of the time before modes were written. */
export async function readMode(db: Connection): Promise<InstallationMode | undefined> {
  const { rows } = await db.query<{ there: boolean }>(`select to_regclass('installation') is not null as there`)
  if (!rows[0]!.there) return undefined
  return (await db.query<{ mode: InstallationMode }>('select mode from installation')).rows[0]?.mode
}

/** The first that is written stays. */
export async function keepMode(db: Connection, mode: InstallationMode, now: number): Promise<void> {
  await db.query('insert into installation (mode, made_at) values ($1, $2) on conflict do nothing', [mode, timeParameter(now)])
}

/** Throws an OperatorError unless both are the same. */
export function compareModes(mode: InstallationMode | undefined, ours: InstallationMode): void {
  if (mode === undefined || mode === ours) return
  throw new OperatorError(
    mode === 'live'
      ? 'This database belongs to live mode: set MODE=live, or give the sandbox a database of its own.'
      : 'This database belongs to a sandbox, whose credentials are public: live mode needs a database of its own.',
  )
}
