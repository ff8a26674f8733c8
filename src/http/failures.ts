// Limits failed attempts to authenticate, per address and per address and credential, in a sliding minute. Successes are never counted.

import { hash } from 'node:crypto'

export type Failures = {
  tooMany(keys: readonly FailureKey[], now: number): boolean
  count(keys: readonly FailureKey[], now: number): void
}
export type FailureKey = { readonly key: string; readonly max: number }

const windowMilliseconds = 60_000
const remembered = 10_000

export const failureKeys = (address: string, credential: string): FailureKey[] => [
  { key: address, max: 300 },
  { key: `${address} ${hash('sha256', credential, 'base64')}`, max: 30 },
]

export function countFailures(): Failures {
  const counted = new Map<string, number[]>()
  const recent = (key: string, now: number) => (counted.get(key) ?? []).filter(at => at > now - windowMilliseconds)
  return {
    tooMany: (keys, now) => counted.size > 0 && keys.some(({ key, max }) => recent(key, now).length >= max),
    count(keys, now) {
      for (const { key } of keys) {
        const times = [...recent(key, now), now]
        counted.delete(key)
        counted.set(key, times)
      }
      while (counted.size > remembered) counted.delete(counted.keys().next().value!)
    },
  }
}
