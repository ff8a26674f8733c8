// What requests show the operator.

import { Counter, type Registry } from 'prom-client'

export type RequestCount = {
  /** The HTTP status of an answer. */
  request(status: number): void
}

export function countRequests(registry: Registry): RequestCount {
  const requests = new Counter({
    name: 'tollgate_http_answers_total',
    help: 'HTTP answers by status.',
    labelNames: ['status'],
    registers: [registry],
  })
  return { request: status => requests.inc({ status }) }
}
