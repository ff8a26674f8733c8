// What requests show the operator.

import type { Registry } from 'prom-client'
import { countBy } from '../platform/metrics.ts'

export type RequestCount = {
  /** The HTTP status of an answer. */
  request(status: string): void
}

export const countRequests = (registry: Registry): RequestCount => ({
  request: countBy(registry, 'tollgate_http_answers_total', 'HTTP answers by status.', 'status'),
})
