// Card ranges as a process keeps them: asked for anew each hour, beside the payments, which take the old ones meanwhile; and for a day when the
// directory server has none to give, or far fewer. Only who finds none at all waits, all for one question.

import type { Clock } from '../../../platform/clock.ts'
import type { CardRanges } from './cardRanges.ts'

const renewedAfterMilliseconds = 3_600_000
/** EMV 3-D Secure wants them asked for once a day at least. */
const keptMilliseconds = 86_400_000
/** A server that has just failed is not asked by each payment. */
const againAfterMilliseconds = 60_000
/** Nor by all who wait for the first ranges: they fail as the last one did. */
const againWithoutMilliseconds = 3_000
/** No directory server loses so many cards within a day: such a list was cut, or is somebody else's. */
const shareLeast = 0.5

export type KeptRanges = {
  /** How many there are; none at all before they were asked for. */
  count(): number
  /** `patience`: how long to wait, where somebody has to. */
  take(patience: () => AbortSignal): Promise<CardRanges>
}

/** `failed` is told of every failure. */
export function keepRanges(ask: () => Promise<CardRanges>, clock: Clock, failed: (why: string) => void): KeptRanges {
  let kept: { readonly at: number; readonly ranges: CardRanges } | undefined
  let underWay: Promise<CardRanges> | undefined
  let refused: { readonly at: number; readonly error: Error } | undefined

  /** A clock may be put back. */
  function isOver(at: number, milliseconds: number): boolean {
    const since = clock.real() - at
    return since < 0 || since >= milliseconds
  }

  async function renewed(): Promise<CardRanges> {
    try {
      const ranges = await ask()
      if (kept && ranges.count < kept.ranges.count * shareLeast && !isOver(kept.at, keptMilliseconds))
        throw new Error(`the directory server named ${ranges.count} card ranges, and ${kept.ranges.count} before`)
      kept = { at: clock.real(), ranges }
      refused = undefined
      return ranges
    } catch (error) {
      refused = { at: clock.real(), error: error as Error }
      failed((error as Error).message)
      throw error
    } finally {
      underWay = undefined
    }
  }
  const renew = (): Promise<CardRanges> => {
    underWay ??= renewed()
    return underWay
  }

  return {
    count: () => kept?.ranges.count ?? 0,
    async take(patience) {
      const waitsFor = (pause: number) => refused !== undefined && !isOver(refused.at, pause)
      if (!kept || isOver(kept.at, keptMilliseconds)) {
        if (!underWay && waitsFor(againWithoutMilliseconds)) throw refused!.error
        return untilAborted(renew(), patience())
      }
      if (isOver(kept.at, renewedAfterMilliseconds) && !waitsFor(againAfterMilliseconds)) renew().catch(() => {}) // `failed` has been told
      return kept.ranges
    },
  }
}

/** One who does not wait any longer leaves the others waiting. */
const untilAborted = <Given>(given: Promise<Given>, signal: AbortSignal): Promise<Given> =>
  new Promise((resolve, reject) => {
    const giveUp = () => reject(new Error('no answer in time'))
    if (signal.aborted) giveUp()
    signal.addEventListener('abort', giveUp, { once: true })
    given.then(resolve, reject)
  })
