// What notifications need of a process.

import type { Directory } from '../merchants/directory.ts'
import type { Clock, Random } from '../platform/clock.ts'
import type { Database } from '../platform/database/connect.ts'
import type { Egress } from '../platform/egress/address.ts'
import type { PlaceCall } from '../platform/egress/call.ts'
import type { Log } from '../platform/log.ts'
import type { Keys } from '../vault/keys.ts'
import type { AttemptCount } from './metrics.ts'

export type NotificationParts = {
  readonly clock: Clock
  readonly random: Random
  readonly keys: Keys
  readonly directory: Directory
  readonly database: Database
  /** Calls to merchants' servers, guarded; and the rule that guards them. */
  readonly call: PlaceCall
  readonly egress: Egress
  /** What is told of a payment that has no answer yet, and of a registration, as JSON. */
  pendingPayload(event: {
    readonly type: string
    readonly merchantId: string
    readonly paymentId: string
    readonly occurredAt: number
  }): Promise<string>
  readonly log: Log
  readonly count: AttemptCount
}
