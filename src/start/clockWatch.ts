// Compares the clock of this process with that of its database: at the start, now and then, and at once when it was set by a step. A small difference is told;
// a large one would let processes take each other's leases, look for orphans too early or too late, and erase what is young, so that no request and no due
// work is taken until it is mended. What is under way by then goes on by the time that was trusted last.

import type { Clock } from '../platform/clock.ts'
import { clockAhead, refusedSeconds, sharedTime } from '../platform/database/clocks.ts'
import type { Connection } from '../platform/database/connect.ts'
import { OperatorError } from '../platform/errors.ts'
import type { Log } from '../platform/log.ts'

export const toldSeconds = 2
const everyMilliseconds = 60_000
/** Between two comparisons of a clock that was set: the database may be away. And while both are far apart: either may have been set right. */
const againMilliseconds = 1000
const farMilliseconds = 5000

export type ClockWatch = {
  /** For all that is written down: its real time takes no step that the database has not confirmed. */
  readonly clock: Clock
  isTrusted(): boolean
  /** What the database shares, for what cannot be undone; undefined when nothing may be done by it. */
  time(): Promise<number | undefined>
  stop(): Promise<void>
}

export const unwatched = (clock: Clock): ClockWatch => ({
  clock,
  isTrusted: () => true,
  time: async () => clock.real(),
  stop: async () => {},
})

/** Throws OperatorError when the clocks are too far apart at the start, unless `tell` is given: it is told why, and the time of the database counts. */
export async function watchClock(db: Connection, clock: Clock, log: Log, tell?: (why: string) => void): Promise<ClockWatch> {
  const now = () => clock.real()
  /** Stays as it is until the clock is set, or the machine has slept. */
  const distance = () => clock.real() - clock.elapsed()
  let compared = { ahead: 0, at: distance() }
  let comparedLast = Number.NEGATIVE_INFINITY
  let told: { trusted?: boolean; at: number } = { at: Number.NEGATIVE_INFINITY }
  let comparing: Promise<unknown> | undefined
  const isFar = (difference: number) => Math.abs(difference) > refusedSeconds * 1000
  const compare = async (): Promise<string | undefined> => {
    comparedLast = clock.elapsed()
    const at = distance() // of before the question: a step during it is seen afterwards
    const ahead = await clockAhead(db, now)
    compared = { ahead, at }
    const seconds = Math.abs(ahead) / 1000
    if (seconds <= toldSeconds) return undefined
    const why = `The clock of this machine is ${seconds.toFixed(1)} seconds ${ahead > 0 ? 'ahead of' : 'behind'} that of its database.`
    const trusted = !isFar(ahead)
    if (trusted !== told.trusted || clock.elapsed() >= told.at + everyMilliseconds) {
      told = { trusted, at: clock.elapsed() }
      log[trusted ? 'warn' : 'error']({ why }, trusted ? 'the clocks differ' : 'the clocks differ too much: nothing is taken')
    }
    return why
  }
  const why = await compare()
  if (isFar(compared.ahead)) {
    if (!tell)
      throw new OperatorError(`${why} More than ${refusedSeconds} are refused: set the clock right, for example with NTP.`)
    tell(why!)
  }
  /** The distance by which our own time goes on while the machine's is not trusted. */
  let followed = compared.at - (isFar(compared.ahead) ? compared.ahead : 0)
  const compareNow = () => {
    comparing ??= compare()
      .catch((error: Error) => log.warn({ why: error.message }, 'the clocks could not be compared'))
      .finally(() => {
        comparing = undefined
      })
  }
  // Without a question to the database: whoever asks waits for nothing.
  const follows = (at: number): boolean => {
    const step = at - compared.at
    const wasFar = isFar(compared.ahead)
    const isInDoubt = isFar(step) || (!wasFar && isFar(compared.ahead + step))
    const pause = isInDoubt ? againMilliseconds : wasFar ? farMilliseconds : Number.POSITIVE_INFINITY
    if (clock.elapsed() >= comparedLast + pause) compareNow()
    if (isInDoubt || wasFar) return false
    followed = at
    return true
  }
  const isTrusted = () => follows(distance())
  const real = (): number => {
    const [machine, elapsed] = [clock.real(), clock.elapsed()]
    return follows(machine - elapsed) ? machine : Math.floor(elapsed + followed) // ids are made of whole milliseconds
  }
  const timer = clock.every(everyMilliseconds, compareNow)
  return {
    clock: { ...clock, real },
    isTrusted,
    async time() {
      if (!isTrusted()) return undefined
      const shared = await sharedTime(db, now)
      return isTrusted() ? shared : undefined
    },
    async stop() {
      timer.cancel()
      await comparing
    },
  }
}
