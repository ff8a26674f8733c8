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
  let repeats = 1
  while ((await costOf(usual, repeats)) < measuredLeast) repeats *= 2
  let [least, leastUsual] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
  for (let round = 0; round < roundsLeast || (round < roundsMost && least >= most * leastUsual); round++) {
    leastUsual = Math.min(leastUsual, await costOf(usual, repeats))
    least = Math.min(least, await costOf(work, repeats))
  }
  assert.ok(least < most * leastUsual, `${what} took ${least} µs, and ${most} times ${leastUsual} was the most`)
}
