// The paths of the interface.

import type { HttpParts } from '../parts.ts'
import type { Route } from '../router.ts'
import { xmlQuery } from '../xml/query.ts'
import { makeAdmission } from './admission.ts'
import { getCheckout, postCheckout, postCheckoutPayment, postCheckoutUpdate, removeCheckout } from './checkouts.ts'
import { getPayment, getThreeDSecure, postFollowUp, postPayment, postThreeDSecure, queryOne, resultCodes } from './payments.ts'
import { getRegistration, postRegistration, postRegistrationPayment, removeRegistration } from './registrations.ts'
import { reportRoutes } from './reports.ts'
import { queryList, v3List, v3One } from './searches.ts'

/** `shoppers`: for what browsers ask for, or whoever knows the id of a checkout. */
export function v1Routes(parts: HttpParts, shoppers: HttpParts): Route[] {
  const admission = makeAdmission(parts)
  const ofShoppers = { ...admission, parts: shoppers }
  return [
    { method: 'POST', path: '/v1/payments', callers: 'token', answer: postPayment(admission) },
    { method: 'GET', path: '/v1/payments', callers: 'token', answer: queryList(admission) },
    { method: 'POST', path: '/v1/payments/{id}', callers: 'token', answer: postFollowUp(admission) },
    { method: 'GET', path: '/v1/payments/{id}', callers: 'token', answer: getPayment(admission) },
    { method: 'POST', path: '/v1/checkouts', callers: 'token', answer: postCheckout(admission) },
    { method: 'POST', path: '/v1/checkouts/{id}', callers: 'token', answer: postCheckoutUpdate(admission) },
    { method: 'DELETE', path: '/v1/checkouts/{id}', callers: 'token', answer: removeCheckout(admission) },
    {
      method: 'GET',
      path: '/v1/checkouts/{id}/payment',
      callers: 'token',
      answer: getCheckout(admission, ofShoppers, 'payment'),
    },
    { method: 'POST', path: '/v1/checkouts/{id}/payment', callers: 'browser', answer: postCheckoutPayment(ofShoppers) },
    {
      method: 'GET',
      path: '/v1/checkouts/{id}/registration',
      callers: 'token',
      answer: getCheckout(admission, ofShoppers, 'registration'),
    },
    { method: 'POST', path: '/v1/checkouts/{id}/registration', callers: 'browser', answer: postCheckoutPayment(ofShoppers) },
    { method: 'POST', path: '/v1/registrations', callers: 'token', answer: postRegistration(admission) },
    { method: 'GET', path: '/v1/registrations/{id}', callers: 'token', answer: getRegistration(admission) },
    { method: 'DELETE', path: '/v1/registrations/{id}', callers: 'token', answer: removeRegistration(admission) },
    { method: 'POST', path: '/v1/registrations/{id}/payments', callers: 'token', answer: postRegistrationPayment(admission) },
    { method: 'GET', path: '/v1/query', callers: 'token', answer: queryList(admission) },
    { method: 'GET', path: '/v1/query/{id}', callers: 'token', answer: queryOne(admission) },
    { method: 'GET', path: '/v3/query', callers: 'token', answer: v3List(admission) },
    { method: 'GET', path: '/v3/query/{id}', callers: 'token', answer: v3One(admission) },
    ...reportRoutes(admission),
    { method: 'POST', path: '/payment/query', callers: 'token', cost: 4, answer: xmlQuery(admission) },
    { method: 'GET', path: '/v1/resultcodes', callers: 'anyone', cors: true, answer: resultCodes(admission) },
    { method: 'POST', path: '/v1/threeDSecure', callers: 'token', answer: postThreeDSecure(admission) },
    { method: 'GET', path: '/v1/threeDSecure/{id}', callers: 'token', answer: getThreeDSecure(admission) },
  ]
}
