// A step that is repeated until it is stopped: soon while it finds something to do, otherwise after a pause, which can be cut short.

import type { Clock, Timer } from '../clock.ts'

export type Repetition = {
  /** There may be something to do: the pause need not be waited for. */
  hurry(): void
  /** Resolves when the step that is running has ended. */
  stop(): Promise<void>
}

const pauseMilliseconds = 200
const busyPauseMilliseconds = 10

/** A step takes no more than `batch`. One that took less is followed by a longer pause, so that the next one serves many at once instead of a few. */
export type Gathering = { readonly batch: number; readonly milliseconds: number }

/** `step` returns how much it found. */
export function repeat(
  clock: Clock,
  step: () => Promise<number>,
  failed: (error: Error) => void,
  gathering: Gathering = { batch: 1, milliseconds: busyPauseMilliseconds },
): Repetition {
  let stopped = false
  let hurried = false
  let timer: Timer | undefined
  let running: Promise<void> | undefined
  const next = () => {
    timer = undefined
    running = round()
  }
  const round = async (): Promise<void> => {
    hurried = false
    const found = await step().catch((error: Error) => {
      failed(error)
      return 0
    })
    if (!stopped) timer = clock.after(pauseAfter(found), next)
  }
  const pauseAfter = (found: number): number => {
    if (found >= gathering.batch) return busyPauseMilliseconds
    return found > 0 || hurried ? gathering.milliseconds : pauseMilliseconds
  }
  next()
  return {
    hurry() {
      if (hurried || stopped) return
      hurried = true
      if (timer === undefined) return // the step is running and will see it
      timer.cancel()
      timer = clock.after(gathering.milliseconds, next)
    },
    async stop() {
      stopped = true
      timer?.cancel()
      await running
    },
  }
}
