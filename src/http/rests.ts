// Where several take turns, those whose work takes long rest for as long as it took, all of them together, while others are about: these have half of the time, however
// many there are of those.

/** On average a piece of work of such takes so much; that of a usual request takes a quarter, and now and then memory is tidied up in it. */
const longMilliseconds = 4
/** Of the average that was, so much stays with each piece. */
const weightBefore = 7 / 8
/** Others are about for so long after something of theirs came or was done. */
const aboutMilliseconds = 1000
/** So many times as long as somebody's work took he is known by it, and those that rest with him have their turns. */
const knownTimes = 200

/** `isLarge`: a piece of work that is to be taken for a long one, whoever it is. */
export type Rests = {
  /** Whether somebody's work may go on. */
  isOver(whom: string, isLarge?: boolean): boolean
  /** Somebody is about. */
  waits(whom: string, isLarge?: boolean): void
  took(whom: string, milliseconds: number, isLarge?: boolean): void
}

export function makeRests(elapsed: () => number): Rests {
  const known = new Map<string, { readonly average: number; readonly until: number }>()
  let restUntil = Number.NEGATIVE_INFINITY
  let othersUntil = Number.NEGATIVE_INFINITY
  let forgetAt = elapsed() + aboutMilliseconds

  const takesLong = (whom: string, isLarge = false): boolean => isLarge || (known.get(whom)?.average ?? 0) >= longMilliseconds
  const isAbout = (now: number) => {
    othersUntil = now + aboutMilliseconds
  }
  function forget(now: number): void {
    if (now < forgetAt) return
    forgetAt = now + aboutMilliseconds
    for (const [whom, { until }] of known) if (until <= now) known.delete(whom)
  }

  return {
    isOver: (whom, isLarge) => !takesLong(whom, isLarge) || elapsed() >= Math.min(restUntil, othersUntil),
    waits(whom, isLarge) {
      if (!takesLong(whom, isLarge)) isAbout(elapsed())
    },
    took(whom, milliseconds, isLarge) {
      const now = elapsed()
      forget(now)
      const before = known.get(whom)?.average ?? milliseconds
      const average = before * weightBefore + milliseconds * (1 - weightBefore)
      known.set(whom, { average, until: now + aboutMilliseconds + average * knownTimes })
      if (takesLong(whom, isLarge)) restUntil = now + milliseconds
      else isAbout(now)
    },
  }
}
