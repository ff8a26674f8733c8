// The simulator as a bank that answers when a test has seen enough, and is waited for as long.

import { type Clock, systemClock } from '../../src/platform/clock.ts'
import type { Fields } from './gateway.ts'

export type SlowBank = {
  /** For the gateway. */
  readonly clock: Clock
  /** What a payment says that is to wait. */
  readonly slowly: Fields
  /** To all who wait, and to those who come until it is slow again. */
  answer(): void
  beSlow(): void
}

export function slowBank(): SlowBank {
  const [delay, patience] = [6000, 10_000]
  let answered = Promise.withResolvers<void>()
  return {
    clock: {
      ...systemClock,
      sleep: (milliseconds, signal) => (milliseconds === delay ? answered.promise : systemClock.sleep(milliseconds, signal)),
      after: (milliseconds, act) => systemClock.after(milliseconds === patience ? 600_000 : milliseconds, act),
    },
    slowly: { 'customParameters[simulateDelay]': String(delay) },
    answer: () => answered.resolve(),
    beSlow() {
      answered = Promise.withResolvers()
    },
  }
}
