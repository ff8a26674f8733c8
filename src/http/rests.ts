// Where several take turns, those whose work takes long rest for as long as it took, all of them together, while others are about: these have half of the time, however
// many there are of those.

/** On average a piece of work of such takes so much; that of a usual request takes a quarter, and now and then memory is tidied up in it. */
const longMilliseconds = 4
/** Of the average that was, so much stays with each piece. */
const weightBefore = 7 / 8
/** Others are about for so long after something of theirs was done. */
const aboutMilliseconds = 1000
/** So many times as long as somebody's work took he is known by it, and those that rest with him have their turns. */
const knownTimes = 200

export type Rests = {
  /** Whether somebody's work may go on. */
  isOver(whom: string): boolean
  /** Whose turn it is of those who wait, in their order. The owner's work is taken for short until it is known; that of others, of whom there may be many, is not. */
  nextOf(waiting: ReadonlyMap<string, unknown>, owner: string, mayGo: (whom: string) => boolean): string | undefined
  took(whom: string, milliseconds: number): void
  /** Nobody is known. */
  isEmpty(): boolean
}

export function makeRests(elapsed: () => number): Rests {
  const known = new Map<string, { readonly average: number; readonly until: number }>()
  let restUntil = Number.NEGATIVE_INFINITY
  let othersUntil = Number.NEGATIVE_INFINITY
  /** Of those who wait, the others come first until they have had as much time as the last work that took long. */
  let owed = 0
  let forgetAt = elapsed() + aboutMilliseconds

  const takesLong = (whom: string): boolean => (known.get(whom)?.average ?? 0) >= longMilliseconds
  function forget(now: number): void {
    if (now < forgetAt) return
    forgetAt = now + aboutMilliseconds
    for (const [whom, { until }] of known) if (until <= now) known.delete(whom)
  }

  const isOver = (whom: string): boolean => !takesLong(whom) || elapsed() >= Math.min(restUntil, othersUntil)

  return {
    isOver,
    nextOf(waiting, owner, mayGo) {
      const isShort = (whom: string) => (known.has(whom) ? !takesLong(whom) : whom === owner)
      const ranks = owed > 0 ? [isShort, (whom: string) => !takesLong(whom), isOver] : [isOver]
      for (const judged of ranks) for (const whom of waiting.keys()) if (judged(whom) && mayGo(whom)) return whom
      return undefined
    },
    took(whom, milliseconds) {
      const now = elapsed()
      forget(now)
      const before = known.get(whom)?.average ?? milliseconds
      const average = before * weightBefore + milliseconds * (1 - weightBefore)
      known.set(whom, { average, until: now + aboutMilliseconds + average * knownTimes })
      if (takesLong(whom)) {
        restUntil = now + milliseconds
        owed = milliseconds
      } else {
        othersUntil = now + aboutMilliseconds
        owed -= milliseconds
      }
    },
    isEmpty() {
      forget(elapsed())
      return known.size === 0
    },
  }
}
