// A clock whose deadlines end when a test says so, however slow the machine is.

import { type Clock, clockWith } from '../../src/platform/clock.ts'

export type PatientClock = Clock & {
  /** Ends the deadlines of at most so many milliseconds that have begun. */
  endDeadlines(most: number): void
}

export function patientClock(real: () => number): PatientClock {
  let begun: { readonly milliseconds: number; readonly end: AbortController }[] = []
  return {
    ...clockWith(real),
    deadline(milliseconds) {
      const end = new AbortController()
      begun.push({ milliseconds, end })
      return end.signal
    },
    endDeadlines(most) {
      const ended = begun.filter(({ milliseconds }) => milliseconds <= most)
      begun = begun.filter(({ milliseconds }) => milliseconds > most)
      for (const { end } of ended) end.abort()
    },
  }
}
