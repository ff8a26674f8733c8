// Limits how many requests a token may send in a minute, where its merchant's settings say so: evenly, with a minute's worth at once after a rest. And how
// many of it may be under way at a time.

import type { ResultName } from '../../contract/results/results.ts'
import { type MerchantSettings, merchantSettings } from '../../merchants/settings.ts'
import { turnedOutToBe } from '../../platform/database/fairPool.ts'
import { read } from '../../platform/schema.ts'
import { resultAnswer } from '../answer.ts'
import { type Authenticate, isCaller } from '../authenticate.ts'
import type { HttpParts } from '../parts.ts'
import { countUnderWay, isHeldForMerchant } from '../underWay.ts'

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

/** A division has no settings for this: of its tokens as many are under way as of any. */
const standard: Pick<MerchantSettings, 'requestsPerMinute' | 'requestsAtOnce'> = read(merchantSettings, {}, '')

/** Callers within the rate of their token; others are told when to come again. */
export function withinRate(parts: HttpParts, authenticate: Authenticate): Authenticate {
  const rates = limitRates()
  const underWay = countUnderWay()
  return (request, form, action, otherwise) => {
    const caller = authenticate(request, form, action, otherwise)
    if (!isCaller(caller)) return caller
    const { token, merchantId, entityId } = caller
    turnedOutToBe(merchantId)
    const { requestsPerMinute, requestsAtOnce } = parts.directory.merchant(merchantId)?.settings ?? standard
    const key = `${token.id} ${merchantId}`
    const refuse = (name: ResultName, seconds: number) =>
      resultAnswer(parts, request, 429, name, { entityId, tokenId: token.id, headers: { 'Retry-After': String(seconds) } })
    const wait = rates(key, requestsPerMinute, parts.clock.real())
    if (wait > 0) return refuse('tooManyRequests', wait)
    if (!underWay(request, key, requestsAtOnce || Number.POSITIVE_INFINITY)) return refuse('tooManyAtOnce', 1)
    if (!isHeldForMerchant(parts, request, merchantId, form.pairs)) return refuse('tooManyAtOnce', 1)
    return caller
  }
}
