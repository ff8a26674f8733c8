// The paths of the interface.

import type { HttpParts } from '../parts.ts'
import type { Route } from '../router.ts'
import { v1 } from './v1.ts'

export function v1Routes(parts: HttpParts): Route[] {
  const one = v1(parts)
  return [
    { method: 'POST', path: '/v1/payments', callers: 'token', answer: one.postPayment },
    { method: 'GET', path: '/v1/payments', callers: 'token', answer: one.queryList },
    { method: 'POST', path: '/v1/payments/{id}', callers: 'token', answer: one.postFollowUp },
    { method: 'GET', path: '/v1/payments/{id}', callers: 'token', answer: one.getPayment },
    { method: 'GET', path: '/v1/query', callers: 'token', answer: one.queryList },
    { method: 'GET', path: '/v1/query/{id}', callers: 'token', answer: one.queryOne },
    { method: 'GET', path: '/v3/query', callers: 'token', answer: one.v3List },
    { method: 'GET', path: '/v3/query/{id}', callers: 'token', answer: one.v3One },
    { method: 'GET', path: '/v1/resultcodes', callers: 'anyone', cors: true, answer: one.resultCodes },
    { method: 'POST', path: '/v1/threeDSecure', callers: 'token', answer: one.postThreeDSecure },
    { method: 'GET', path: '/v1/threeDSecure/{id}', callers: 'token', answer: one.getThreeDSecure },
  ]
}
