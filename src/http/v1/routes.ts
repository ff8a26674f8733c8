// The paths of the interface.

import type { HttpParts } from '../parts.ts'
import type { Route } from '../router.ts'
import { makeDoor } from './door.ts'
import { getPayment, getThreeDSecure, postFollowUp, postPayment, postThreeDSecure, queryOne, resultCodes } from './payments.ts'
import { queryList, v3List, v3One } from './searches.ts'

export function v1Routes(parts: HttpParts): Route[] {
  const door = makeDoor(parts)
  return [
    { method: 'POST', path: '/v1/payments', callers: 'token', answer: postPayment(door) },
    { method: 'GET', path: '/v1/payments', callers: 'token', answer: queryList(door) },
    { method: 'POST', path: '/v1/payments/{id}', callers: 'token', answer: postFollowUp(door) },
    { method: 'GET', path: '/v1/payments/{id}', callers: 'token', answer: getPayment(door) },
    { method: 'GET', path: '/v1/query', callers: 'token', answer: queryList(door) },
    { method: 'GET', path: '/v1/query/{id}', callers: 'token', answer: queryOne(door) },
    { method: 'GET', path: '/v3/query', callers: 'token', answer: v3List(door) },
    { method: 'GET', path: '/v3/query/{id}', callers: 'token', answer: v3One(door) },
    { method: 'GET', path: '/v1/resultcodes', callers: 'anyone', cors: true, answer: resultCodes(door) },
    { method: 'POST', path: '/v1/threeDSecure', callers: 'token', answer: postThreeDSecure(door) },
    { method: 'GET', path: '/v1/threeDSecure/{id}', callers: 'token', answer: getThreeDSecure(door) },
  ]
}
