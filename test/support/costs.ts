// What work costs the processor, however busy the machine is beside it: the least of some times, which are as many as it takes.

import assert from 'node:assert/strict'

const roundsLeast = 3
const roundsMost = 30
/** So much work is done at once, or more: some machines count in steps of milliseconds. */
const measuredLeast = 10_000

type Work = () => unknown

/** Microseconds of this thread, in which nothing else is done here. */
async function costOf(work: Work, repeats = 1): Promise<number> {
  const before = process.threadCpuUsage()
  for (let at = 0; at < repeats; at++) await work()
  const after = process.threadCpuUsage()
  return after.user + after.system - before.user - before.system
}

/** Fails unless the work costs less than so many milliseconds. */
export async function costsMilliseconds(most: number, work: Work, what: string): Promise<void> {
  let least = Number.POSITIVE_INFINITY
  for (let round = 0; round < roundsLeast && least >= most * 1000; round++) least = Math.min(least, await costOf(work))
  assert.ok(least < most * 1000, `${what} took ${least / 1000} ms and not less than ${most}`)
}

/** Fails unless the work costs less than so many times what the usual work does. They are measured in turn. */
export async function costsTimes(most: number, usual: Work, work: Work, what: string): Promise<void> {
  let [repeats, round, least, leastUsual] = [1, 0, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
  while (round < roundsLeast || (round < roundsMost && least >= most * leastUsual)) {
    const cost = await costOf(usual, repeats)
    if (cost < measuredLeast) {
      // Too little to be told from nothing, as the first time, when all is new, it was not: begun again with more.
      ;[repeats, round, least, leastUsual] = [2 * repeats, 0, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
      continue
    }
    leastUsual = Math.min(leastUsual, cost)
    least = Math.min(least, await costOf(work, repeats))
    round++
  }
  assert.ok(least < most * leastUsual, `${what} took ${least} µs, and ${most} times ${leastUsual} was the most`)
}
