// What answering requests needs of a process.

import type { Failures } from '../audit/failures.ts'
import type { PaymentParts } from '../payments/parts.ts'
import type { RequestCount } from './metrics.ts'

export type HttpParts = PaymentParts & {
  readonly failures: Failures
  readonly count: RequestCount
}
