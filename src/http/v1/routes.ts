// The paths of the interface.

import type { HttpParts } from '../parts.ts'
import type { Route } from '../router.ts'
import { makeAdmission } from './admission.ts'
import { getPayment, getThreeDSecure, postFollowUp, postPayment, postThreeDSecure, queryOne, resultCodes } from './payments.ts'
import { queryList, v3List, v3One } from './searches.ts'

export function v1Routes(parts: HttpParts): Route[] {
  const admission = makeAdmission(parts)
  return [
    { method: 'POST', path: '/v1/payments', callers: 'token', answer: postPayment(admission) },
    { method: 'GET', path: '/v1/payments', callers: 'token', answer: queryList(admission) },
    { method: 'POST', path: '/v1/payments/{id}', callers: 'token', answer: postFollowUp(admission) },
    { method: 'GET', path: '/v1/payments/{id}', callers: 'token', answer: getPayment(admission) },
    { method: 'GET', path: '/v1/query', callers: 'token', answer: queryList(admission) },
    { method: 'GET', path: '/v1/query/{id}', callers: 'token', answer: queryOne(admission) },
    { method: 'GET', path: '/v3/query', callers: 'token', answer: v3List(admission) },
    { method: 'GET', path: '/v3/query/{id}', callers: 'token', answer: v3One(admission) },
    { method: 'GET', path: '/v1/resultcodes', callers: 'anyone', cors: true, answer: resultCodes(admission) },
    { method: 'POST', path: '/v1/threeDSecure', callers: 'token', answer: postThreeDSecure(admission) },
    { method: 'GET', path: '/v1/threeDSecure/{id}', callers: 'token', answer: getThreeDSecure(admission) },
  ]
}
