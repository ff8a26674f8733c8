// Limits failed attempts to authenticate, per address and per address and credential, in a sliding minute. Successes are never counted.

import { hash } from 'node:crypto'

export type Failures = {
  tooMany(address: string, credential: string, now: number): boolean
  count(address: string, credential: string, now: number): void
}

export const failuresPerAddress = 300
export const failuresPerCredential = 30
const windowMilliseconds = 60_000
const remembered = 10_000

const keysOf = (address: string, credential: string): { readonly key: string; readonly max: number }[] => [
  { key: address, max: failuresPerAddress },
  { key: `${address} ${hash('sha256', credential, 'base64')}`, max: failuresPerCredential },
]

export function countFailures(): Failures {
  const counted = new Map<string, number[]>()
  const recent = (key: string, now: number) => (counted.get(key) ?? []).filter(at => at > now - windowMilliseconds)
  return {
    tooMany: (address, credential, now) =>
      counted.size > 0 && keysOf(address, credential).some(({ key, max }) => recent(key, now).length >= max),
    count(address, credential, now) {
      for (const { key } of keysOf(address, credential)) {
        const times = [...recent(key, now), now]
        counted.delete(key)
        counted.set(key, times)
      }
      while (counted.size > remembered) counted.delete(counted.keys().next().value!)
    },
  }
}
