// What reporting needs of a process.

import type { Directory } from '../merchants/directory.ts'
import type { Clock } from '../platform/clock.ts'
import type { Database } from '../platform/database/connect.ts'
import type { Keys } from '../vault/keys.ts'

export type ReportParts = {
  readonly clock: Clock
  readonly keys: Keys
  readonly directory: Directory
  readonly database: Pick<Database, 'reporting'>
}
