// What payments need of a process.

import type { Connectors, Methods } from '../connectors/registry.ts'
import type { CardBrands } from '../contract/brands.ts'
import type { Directory } from '../merchants/directory.ts'
import type { Clock, Random } from '../platform/clock.ts'
import type { Database } from '../platform/database/connect.ts'
import type { Log } from '../platform/log.ts'
import type { LookTogether } from '../platform/look.ts'
import type { Keys } from '../vault/keys.ts'
import type { PaymentCount } from './metrics.ts'
import type { RiskRules } from './risk/rules.ts'
import type { AnswerLane } from './store/answers.ts'
import type { PaymentLane } from './store/payments.ts'

export type PaymentParts = {
  readonly clock: Clock
  readonly random: Random
  readonly keys: Keys
  readonly directory: Directory
  readonly database: Database
  readonly insertPayment: PaymentLane
  readonly insertAnswer: AnswerLane
  readonly connectors: Connectors
  /** Payment methods that are no cards, by brand. */
  readonly methods: Methods
  readonly cardBrands: CardBrands
  /** By name; channels that screen their payments name one. */
  readonly riskRules?: RiskRules
  readonly lookTogether: LookTogether
  readonly log: Log
  readonly count: PaymentCount
  readonly build: string
  /** The sandbox has a movable clock and demonstration credentials; live mode has neither. */
  readonly sandbox: boolean
  /** Where shoppers and other servers reach us, without a slash at the end. */
  publicUrl(): string
}
