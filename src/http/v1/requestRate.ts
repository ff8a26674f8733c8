// Limits how many requests a token may send in a minute, where its merchant's settings say so: evenly, with a minute's worth at once after a rest.

import { resultAnswer } from '../answer.ts'
import { type Authenticate, isCaller } from '../authenticate.ts'
import type { HttpParts } from '../parts.ts'

/** Counts one more request of a key. Seconds until the next is allowed when there were too many, else 0. */
export type Rates = (key: string, perMinute: number, now: number) => number

export function limitRates(): Rates {
  const left = new Map<string, { requests: number; at: number }>()
  return (key, perMinute, now) => {
    if (perMinute === 0) return 0
    const last = left.get(key) ?? { requests: perMinute, at: now }
    const requests = Math.min(perMinute, last.requests + (Math.max(0, now - last.at) * perMinute) / 60_000)
    if (requests < 1) return Math.ceil(((1 - requests) * 60) / perMinute)
    left.set(key, { requests: requests - 1, at: now })
    return 0
  }
}

/** Callers within the rate of their token; others are told when to come again. */
export function withinRate(parts: HttpParts, authenticate: Authenticate): Authenticate {
  const rates = limitRates()
  return (request, form, action, otherwise) => {
    const caller = authenticate(request, form, action, otherwise)
    if (!isCaller(caller)) return caller
    const { token, merchantId, entityId } = caller
    const perMinute = parts.directory.merchant(merchantId)?.settings.requestsPerMinute ?? 0
    const wait = rates(`${token.id} ${merchantId}`, perMinute, parts.clock.real())
    if (wait === 0) return caller
    return resultAnswer(parts, request, 429, 'tooManyRequests', {
      entityId,
      tokenId: token.id,
      headers: { 'Retry-After': String(wait) },
    })
  }
}
