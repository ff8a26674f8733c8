// Who waits for a password to be looked at. Each look is slow on purpose (password.ts) and takes one of Node's few threads, so that few are made at a time; and
// strangers can ask for many. The line is short, and who leaves, or has waited for too long, is out of it. Who is known stands before all strangers: a flood can
// come from more networks than looks can be made. Among strangers whoever had fewer looks lately comes first, and of these who came less often: whoever floods
// comes often, and stands behind those who do not.

import type { Clock } from '../platform/clock.ts'
import { attemptsMinutes } from './kept.ts'

/** As many as have their turn in two or three seconds: after that whoever came seldom stands before a flood. */
export const attemptsWaitingMost = 50
/** One computes while the others count, or read. */
export const looksAtOnce = 8
const patienceSeconds = 5
const rememberedMost = 50_000
/** However often somebody came, one look more weighs more; and however many looks somebody had, being a stranger does. */
const visitsOfLook = 1_000_000
const looksOfStranger = 1_000_000
/** Within half an hour: whoever is known and floods is a stranger then. */
export const looksOfKnownMost = 20

/** Who attempts: a network; or, known to us, a browser, a session, or the person of a link. And whether there is still somebody to be answered. */
export type Attempter = { readonly whose: string; readonly isKnown?: boolean; isGone?(): boolean }

export type AttemptLine = {
  /** Busy: nothing was looked at, and nothing was counted. */
  inTurn<Value>(attempter: Attempter, look: () => Promise<Value>): Promise<Value | 'busy'>
  /** The last attempt was of somebody who may come in: it is held against nobody. */
  forgive(whose: string): void
}

export function attemptLine(clock: Clock): AttemptLine {
  type Waiting = Attempter & { readonly before: number; comes(isTurn: boolean): void }
  const waiting = new Set<Waiting>() // in the order in which they came
  const known = new Map<string, { looks: number; visits: number; readonly since: number }>()
  let looking = 0

  /** What somebody did within half an hour. */
  function knownOf(whose: string) {
    const found = known.get(whose)
    if (found && clock.real() - found.since < attemptsMinutes * 60_000) return found
    known.delete(whose)
    const one = { looks: 0, visits: 0, since: clock.real() }
    known.set(whose, one)
    if (known.size > rememberedMost) known.delete(known.keys().next().value!)
    return one
  }

  /** Of those with as much before them the first to come now, or the last. */
  function found(which: 'next' | 'last'): Waiting | undefined {
    let best: Waiting | undefined
    for (const one of waiting) if (!best || (which === 'next' ? one.before < best.before : one.before >= best.before)) best = one
    return best
  }

  function goOn(): void {
    looking--
    for (let one = found('next'); one; one = found('next')) {
      const isTurn = one.isGone?.() !== true
      one.comes(isTurn)
      if (isTurn) return
    }
  }

  function turn(attempter: Attempter): Promise<boolean> {
    const one = knownOf(attempter.whose)
    const isFirst = attempter.isKnown === true && one.looks < looksOfKnownMost
    const looks = one.looks + (isFirst ? 0 : looksOfStranger)
    const before = looks * visitsOfLook + Math.min(one.visits++, visitsOfLook - 1)
    const begin = () => {
      looking++
      one.looks++
    }
    if (looking < looksAtOnce) {
      begin()
      return Promise.resolve(true)
    }
    return new Promise(resolve => {
      const timer = clock.after(patienceSeconds * 1000, () => mine.comes(false))
      const mine: Waiting = {
        ...attempter,
        before,
        comes(isTurn) {
          timer.cancel()
          waiting.delete(mine)
          if (isTurn) begin()
          resolve(isTurn)
        },
      }
      waiting.add(mine)
      if (waiting.size <= attemptsWaitingMost) return
      for (const other of waiting) if (other.isGone?.()) other.comes(false)
      if (waiting.size > attemptsWaitingMost) found('last')!.comes(false)
    })
  }

  return {
    async inTurn(attempter, look) {
      if (!(await turn(attempter))) return 'busy'
      try {
        return await look()
      } finally {
        goOn()
      }
    },
    forgive(whose) {
      const one = known.get(whose)
      if (one) one.looks--
    },
  }
}
