// When a delivery is tried again: after 1, 2, 4, 8, 15, 30 minutes and 1 hour, then daily, up to 30 days after the notification was made.

const minute = 60_000
const day = 24 * 60 * minute
const steps: readonly number[] = [1, 2, 4, 8, 15, 30, 60].map(minutes => minutes * minute)

/** For so long a delivery is tried, in business time. */
export const givenUpAfter = 30 * day

/** Those behind it in the chain wait for this many attempts: the last of them is the one after 1 hour (decisions, 40). */
export const attemptsAhead = steps.length + 1

/** How long a receiver may ask us to wait with Retry-After. */
const retryAfterMax = day

/** Milliseconds until the next attempt, counted from the end of attempt number `attempt`; undefined when it is given up. */
export function nextAttempt(attempt: number, age: number, retryAfterSeconds = 0): number | undefined {
  const wait = Math.max(steps[attempt - 1] ?? day, Math.min(retryAfterSeconds * 1000, retryAfterMax))
  return age + wait > givenUpAfter ? undefined : wait
}
