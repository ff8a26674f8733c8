// Compares the clock of this process with that of its database, at the start and now and then. A small difference is told; a large one would let
// processes take each other's leases and look for orphans too early or too late, so that no request and no due work is taken until it is mended.

import type { Clock } from '../platform/clock.ts'
import { clockAhead } from '../platform/database/clocks.ts'
import type { Connection } from '../platform/database/connect.ts'
import { OperatorError } from '../platform/errors.ts'
import type { Log } from '../platform/log.ts'

/** Half a lease of due work (due/store.ts): two processes at the two ends still respect each other's. */
export const refusedSeconds = 30
export const toldSeconds = 2
const everyMilliseconds = 60_000

export type ClockWatch = { isTrusted(): boolean; stop(): Promise<void> }

export const unwatched: ClockWatch = { isTrusted: () => true, stop: async () => {} }

/** Throws OperatorError when the clocks are too far apart at the start. */
export async function watchClock(db: Connection, clock: Clock, log: Log, milliseconds = everyMilliseconds): Promise<ClockWatch> {
  let trusted = true
  const compare = async (): Promise<string | undefined> => {
    const ahead = await clockAhead(db, () => clock.real())
    const seconds = Math.abs(ahead) / 1000
    trusted = seconds <= refusedSeconds
    if (seconds <= toldSeconds) return undefined
    const why = `The clock of this machine is ${seconds.toFixed(1)} seconds ${ahead > 0 ? 'ahead of' : 'behind'} that of its database.`
    log[trusted ? 'warn' : 'error']({ why }, trusted ? 'the clocks differ' : 'the clocks differ too much: nothing is taken')
    return why
  }
  const why = await compare()
  if (!trusted)
    throw new OperatorError(`${why} More than ${refusedSeconds} are refused: set the clock right, for example with NTP.`)
  let running: Promise<unknown> = Promise.resolve()
  const timer = clock.every(milliseconds, () => {
    running = compare().catch((error: Error) => log.warn({ why: error.message }, 'the clocks could not be compared'))
  })
  return {
    isTrusted: () => trusted,
    async stop() {
      timer.cancel()
      await running
    },
  }
}
