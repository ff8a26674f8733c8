// A clock whose deadlines end when a test says so, however slow the machine is.

import { type Clock, clockWith } from '../../src/platform/clock.ts'

export type PatientClock = Clock & {
  /** Ends the deadlines of at most so many milliseconds that have begun. */
  endDeadlines(most: number): void
}

/** `heldFrom`: what is to be done after so many milliseconds or more is a deadline too. */
export function patientClock(real: () => number, heldFrom = Number.POSITIVE_INFINITY): PatientClock {
  const begun = new Set<{ readonly milliseconds: number; readonly end: () => void }>()
  const clock = clockWith(real)
  return {
    ...clock,
    deadline(milliseconds) {
      const end = new AbortController()
      begun.add({ milliseconds, end: () => end.abort() })
      return end.signal
    },
    after(milliseconds, act) {
      if (milliseconds < heldFrom) return clock.after(milliseconds, act)
      const held = { milliseconds, end: act }
      begun.add(held)
      const timer = { cancel: () => void begun.delete(held), unref: () => timer }
      return timer
    },
    endDeadlines(most) {
      for (const one of [...begun]) {
        if (one.milliseconds > most) continue
        begun.delete(one)
        one.end()
      }
    },
  }
}
