// Who says nothing when asked: after some silences in a row what waits for such a side waits without a call, and one piece of work tries it from time to time.

import type { Clock } from '../clock.ts'

/** What a process has heard of other sides, by the names that due work has for them. */
export type Silences = {
  /** A call to it has ended; `wasSilent`: because its time was over. */
  note(side: string, wasSilent: boolean): void
  /** How many pieces of work may wait at once for those that say nothing: none, or one that tries. */
  rooms(): ReadonlyMap<string, number>
}

/** Before that it may have been one payment, or a moment. */
const silencesBeforeRest = 3
const restLeast = 1000
const restMost = 30_000

export function hearSilences({ elapsed }: Pick<Clock, 'elapsed'>): Silences {
  const silent = new Map<string, { readonly times: number; readonly until: number }>()
  return {
    note(side, wasSilent) {
      if (!wasSilent) {
        silent.delete(side)
        return
      }
      const times = (silent.get(side)?.times ?? 0) + 1
      const rest = Math.min(restLeast * 2 ** Math.min(times - silencesBeforeRest, 10), restMost)
      silent.set(side, { times, until: elapsed() + rest })
    },
    rooms() {
      const now = elapsed()
      return new Map(
        [...silent]
          .filter(([, { times }]) => times >= silencesBeforeRest)
          .map(([side, { until }]) => [side, now < until ? 0 : 1] as const),
      )
    },
  }
}
