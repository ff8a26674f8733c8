// What requests show the operator.

import { countBy, type Figure } from '../platform/metrics.ts'

export type RequestCount = {
  /** The HTTP status of an answer. */
  request(status: string): void
}

export const countRequests = (figures: Figure[]): RequestCount => ({
  request: countBy(figures, 'tollgate_http_answers_total', 'HTTP answers by status.', 'status'),
})
