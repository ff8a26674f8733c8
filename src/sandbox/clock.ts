// What only a sandbox has: a clock that can be moved. POST /sandbox/clock, form fields entityId and advance (`29m`, `72h`, `1500ms`, `3d`).

import { peek } from '../contract/form.ts'
import { resultAnswer } from '../http/answer.ts'
import { actorOf, authenticator, readCaller } from '../http/authenticate.ts'
import type { RequestFunction } from '../http/router.ts'
import { wireTime } from '../platform/clock.ts'
import type { DueSource } from '../platform/due/source.ts'
import { advanceClock } from './advance.ts'
import type { SandboxParts } from './parts.ts'

const units: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const advanceMax = 3660 * units.d!
/** From the year 10000 on a time is written in another way, which neither databases nor merchants' programs read; and no clock goes back. */
const latest = Date.UTC(9000, 0)

/** `29m` → milliseconds; undefined for anything else. Nothing = 0, which only reads the clock. */
export function duration(text: string | undefined): number | undefined {
  if (text === undefined) return 0
  const read = /^(\d{1,9})(ms|s|m|h|d)$/.exec(text)
  const milliseconds = read ? Number(read[1]) * units[read[2]!]! : Number.NaN
  return milliseconds <= advanceMax ? milliseconds : undefined
}

export function sandboxClock(parts: SandboxParts, sources: readonly DueSource[]): RequestFunction {
  const authenticate = authenticator(parts)
  return async request => {
    const called = await readCaller(parts, authenticate, request, 'moveClock')
    if (!('caller' in called)) return called
    const { form, caller } = called
    const milliseconds = duration(peek(form, 'advance'))
    const isTooFar = parts.directory.businessTime(caller.merchantId) + (milliseconds ?? 0) > latest
    if (milliseconds === undefined || isTooFar) {
      const message = isTooFar
        ? 'must not lead beyond the year 9000'
        : 'must be a number and ms, s, m, h or d, for example 29m; at most ten years'
      return resultAnswer(parts, request, 400, 'invalidParameter', {
        entityId: caller.entityId,
        parameterErrors: [{ name: 'advance', message }],
      })
    }
    const now = await advanceClock(parts, sources, caller.merchantId, milliseconds, actorOf(request, caller))
    return resultAnswer(parts, request, 200, 'requestSucceeded', {
      entityId: caller.entityId,
      more: { merchantId: caller.merchantId, now: wireTime(now) },
    })
  }
}
