// What requests show the operator.

import { countBy, distribution, type Figure } from '../platform/metrics.ts'

export type RequestCount = {
  /** An answer: by the name of its route, its HTTP status, and how long it took. */
  request(route: string, status: number, milliseconds: number): void
}

export function countRequests(figures: Figure[]): RequestCount {
  const answers = countBy(figures, 'tollgate_http_answers_total', 'HTTP answers by status.', 'status')
  const took = distribution(
    figures,
    'tollgate_http_request_duration_seconds',
    'How long requests took, by route and class of status.',
    ['route', 'class'],
  )
  return {
    request(route, status, milliseconds) {
      answers(String(status))
      took(milliseconds / 1000, route, `${Math.floor(status / 100)}xx`)
    },
  }
}
