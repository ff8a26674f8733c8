// What every request and every piece of due work is given: the parts that `main` puts together.

import type { Failures } from './audit/failures.ts'
import type { Clock, Random } from './clock.ts'
import type { Connectors, Methods } from './connectors/index.ts'
import type { CardBrands } from './contract/brands.ts'
import type { Database } from './database/connect.ts'
import type { Egress } from './events/address.ts'
import type { Caller } from './events/call.ts'
import type { Directory } from './merchants/directory.ts'
import type { Count } from './metrics.ts'
import type { AnswerLane, PaymentLane } from './payments/store/write.ts'
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
  /** Who was refused: the address, and the token where one is known. */
  readonly address?: string
  readonly tokenId?: string
  /** What somebody tried that was refused: a line for whoever watches over the house. */
  readonly audit?: 'forgedReturn' | 'forgedNotice' | 'wrongSession' | 'unknownToken' | 'returnedAgain'
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
  readonly failures: Failures
  readonly payments: PaymentLane
  readonly answers: AnswerLane
  readonly connectors: Connectors
  /** Calls to merchants' servers, guarded; and the rule that guards them. */
  readonly call: Caller
  readonly egress: Egress
  /** Payment methods that are no cards, by brand. */
  readonly methods: Methods
  readonly cardBrands: CardBrands
  /** By name; channels that screen their payments name one. */
  readonly riskRules?: RiskRules
  readonly log: Log
  readonly count: Count
  readonly build: string
  /** Where shoppers and other servers reach us, without a slash at the end. */
  publicUrl(): string
  /** The sandbox has a movable clock and demonstration credentials; live mode has neither. */
  readonly sandbox: boolean
}
