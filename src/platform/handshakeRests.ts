// What handshakes with servers cost that somebody chose. Within the bytes that it has, a chain of certificates with costly keys takes a tenth of a second of
// the event loop, and nothing stops OpenSSL. So what a handshake takes beyond an honest one lets all of the same owner rest, for many times as long.

import type { Clock } from './clock.ts'

/** Of one handshake. */
export type HandshakeRest = {
  /** Do those of its owner rest? Then `goOn` is called at the end of it. */
  waits(goOn: () => void): boolean
  /** It took so many more milliseconds of the processor. */
  took(milliseconds: number): void
}

/** An honest one takes 2 to 7 milliseconds. */
const sparedMilliseconds = 8
/** What is beyond that, so many times as long they rest. */
const restTimes = 10

export function handshakeRests(clock: Clock): (owner: string) => HandshakeRest {
  const waitingOf = new Map<string, Set<() => void>>()

  function rest(owner: string, milliseconds: number): void {
    const waiting = new Set<() => void>()
    waitingOf.set(owner, waiting)
    clock.after(milliseconds, () => {
      waitingOf.delete(owner)
      for (const goOn of waiting) goOn()
    })
  }

  return owner => {
    let spent = 0
    return {
      waits(goOn) {
        const waiting = waitingOf.get(owner)
        waiting?.add(goOn)
        return waiting !== undefined
      },
      took(milliseconds) {
        spent += milliseconds
        const beyond = spent - sparedMilliseconds
        if (beyond <= 0) return
        spent = sparedMilliseconds
        rest(owner, restTimes * beyond)
      },
    }
  }
}
