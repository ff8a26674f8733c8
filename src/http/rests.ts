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
/** Of what somebody was given half is forgotten in so long. */
const halvedMilliseconds = 1000

export type Rests = {
  /** Is somebody's next piece of work taken for a long one? `isLarge`: it may be, of one of whom nothing is known yet. */
  takesLong(whom: string, isLarge?: boolean): boolean
  /** May a long piece begin? */
  isOver(): boolean
  /** Milliseconds that somebody has had of late. */
  spentBy(whom: string): number
  /** Somebody is about whose work takes no time. */
  waits(): void
  took(whom: string, milliseconds: number, isLong: boolean): void
}

type Known = { readonly average: number; readonly until: number; readonly spent: number; readonly at: number }

export function makeRests(elapsed: () => number): Rests {
  const known = new Map<string, Known>()
  let restUntil = Number.NEGATIVE_INFINITY
  let othersUntil = Number.NEGATIVE_INFINITY
  let forgetAt = elapsed() + aboutMilliseconds

  const takesLong = (whom: string, isLarge = false): boolean =>
    (known.get(whom)?.average ?? (isLarge ? longMilliseconds : 0)) >= longMilliseconds
  function waits(): void {
    othersUntil = elapsed() + aboutMilliseconds
  }
  function spentBy(whom: string): number {
    const { spent, at } = known.get(whom) ?? { spent: 0, at: 0 }
    return spent * 2 ** ((at - elapsed()) / halvedMilliseconds)
  }
  function forget(now: number): void {
    if (now < forgetAt) return
    forgetAt = now + aboutMilliseconds
    for (const [whom, { until }] of known) if (until <= now) known.delete(whom)
  }

  return {
    takesLong,
    isOver: () => elapsed() >= Math.min(restUntil, othersUntil),
    spentBy,
    waits,
    took(whom, milliseconds, isLong) {
      const now = elapsed()
      forget(now)
      const before = known.get(whom)?.average ?? milliseconds
      const average = before * weightBefore + milliseconds * (1 - weightBefore)
      const until = now + aboutMilliseconds + average * knownTimes
      known.set(whom, { average, until, spent: spentBy(whom) + milliseconds, at: now })
      if (isLong || takesLong(whom)) restUntil = now + milliseconds
      else waits()
    },
  }
}
