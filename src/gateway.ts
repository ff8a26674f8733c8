// What every request and every piece of due work is given: the parts that `main` puts together.

import type { Clock, Random } from './clock.ts'
import type { Connectors } from './connectors/index.ts'
import type { Database } from './database/connect.ts'
import type { Directory } from './merchants/directory.ts'
import type { AnswerLane, PaymentLane } from './payments/store.ts'
import type { RiskRules } from './risk/rules.ts'
import type { Keys } from './vault/keys.ts'

/** Named fields only: whatever is logged is on this list. */
export type LogFields = {
  readonly ndc?: string
  readonly entityId?: string
  readonly paymentId?: string
  readonly method?: string
  readonly route?: string
  readonly status?: number
  readonly result?: string
  readonly milliseconds?: number
  readonly names?: readonly string[]
  readonly why?: string
  readonly kind?: string
  readonly attempt?: number
}

export type Log = {
  debug(fields: LogFields, message: string): void
  info(fields: LogFields, message: string): void
  warn(fields: LogFields, message: string): void
  error(fields: LogFields, message: string): void
}

export type Gateway = {
  readonly clock: Clock
  readonly random: Random
  readonly keys: Keys
  readonly directory: Directory
  readonly database: Database
  readonly payments: PaymentLane
  readonly answers: AnswerLane
  readonly connectors: Connectors
  /** By name; channels that screen their payments name one. */
  readonly riskRules?: RiskRules
  readonly log: Log
  readonly build: string
  /** The sandbox has a movable clock and demonstration credentials; live mode has neither. */
  readonly sandbox: boolean
}
