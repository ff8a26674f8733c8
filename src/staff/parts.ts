// What staff needs of a process.

import type { Failures } from '../audit/failures.ts'
import type { Directory } from '../merchants/directory.ts'
import type { Clock, Random } from '../platform/clock.ts'
import type { Database } from '../platform/database/connect.ts'
import type { Log } from '../platform/log.ts'
import type { Keys } from '../vault/keys.ts'
import type { AttemptLine } from './attempts.ts'

export type StaffParts = {
  readonly clock: Clock
  readonly random: Random
  readonly keys: Keys
  readonly directory: Directory
  readonly database: Pick<Database, 'work' | 'signIns'>
  readonly log: Log
  readonly failures: Failures
  readonly attempts: AttemptLine
  readonly sandbox: boolean
}
