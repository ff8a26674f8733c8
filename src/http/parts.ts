// What answering requests needs of a process.

import type { Failures } from '../audit/failures.ts'
import type { CheckoutParts } from '../checkouts/parts.ts'
import type { RequestCount } from './metrics.ts'

export type HttpParts = CheckoutParts & {
  readonly failures: Failures
  readonly count: RequestCount
}
