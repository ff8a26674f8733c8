// What answering requests needs of a process.

import type { Failures } from '../audit/failures.ts'
import type { CheckoutParts } from '../checkouts/parts.ts'
import type { RequestCount } from './metrics.ts'
import type { Holding } from './underWay.ts'

export type HttpParts = CheckoutParts & {
  readonly failures: Failures
  readonly count: RequestCount
  /** Of merchants by their ids, of browsers by their networks. */
  readonly held: { readonly merchants: Holding; readonly browsers: Holding }
}
