// Requests of one network, or of one merchant, are begun a few in each turn of the event loop, and those of others between them: a crowd that asks at once, whatever it asks,
// costs everybody else a moment and not the time for all of it.

import { addTo } from '../platform/counts.ts'
import { networkShare } from '../platform/network.ts'
import { makeRests } from './rests.ts'

/** Begun in one turn for one network (a /56 and a /48 have twice and four times as many, all together twice), and for each of these bytes of a body or an answer one less: a large one may take as long as a crowd of small ones. */
const atOnce = 64
const bytesForOne = 4096
/** A larger body of somebody of whom nothing is known yet is taken for long work: of each of several one would come after the other. */
export const longBytes = 16 * 1024
/** As long as a turn takes everybody waits for each of its steps: nothing more is begun in it when so much time has gone, whatever it went into. */
const turnMilliseconds = 10
const everybody = 'everybody'
/** Milliseconds that merchants, or others, may have more of long work before the others have it. */
const longAheadMost = 1000
const within = (most: number, value: number): number => Math.max(-most, Math.min(most, value))
const mostOf = (network: string): number => atOnce * (network === everybody ? 2 : networkShare(network))

/** What stands for a merchant, or for a division. */
export const merchantLine = (id: string): string => `of ${id}`
const isMerchants = (line: string): boolean => line.startsWith('of ')

export type FairTurns = {
  /** Begins when the turn has come, which may be now; returns how to leave the line, for whoever waits in it. `cost`: as much as so many, where there is more to do than
   * to read a form. `networks`: around a caller, the narrowest first, or what stands for his merchant: in the line of the last, since who has a wide network has as many
   * narrow ones as he likes, which take turns in it. `begin` must not throw. */
  turn(networks: readonly string[], bytes: number, cost: number, begin: () => void): (() => void) | undefined
  /** What it was answered is as many bytes: turns to come are spent already. */
  spent(networks: readonly string[], bytes: number): void
}

/** `later`: in a moment, where all who wait rest. */
export function fairTurns(
  nextTurn: (go: () => void) => void,
  elapsed: () => number,
  later: (go: () => void) => void = nextTurn,
): FairTurns {
  type Waiting = {
    readonly line: string
    readonly networks: readonly string[]
    readonly caller: string
    readonly weight: number
    readonly isLarge: boolean
    readonly begin: () => void
  }
  type Line = Map<string, Set<Waiting>>
  const begun = new Map<string, number>()
  const owed = new Map<string, number>()
  /** Of strangers there may be any number: all together they have half of the time while merchants' own servers wait, and these the other. */
  const [ofMerchants, ofOthers] = [new Map<string, Line>(), new Map<string, Line>()]
  const rests = makeRests(elapsed)
  let isScheduled = false
  /** Milliseconds in this turn. */
  let took = 0
  /** So many more of them merchants have had of late; fewer than none where others have. */
  let ahead = 0
  /** The same of long pieces of work, of which one may take as long as many turns. */
  let aheadInLong = 0
  /** So many of the others have their turns before the next of those, as if all stood in one round. */
  let before = 0

  /** What would go beyond it waits for the next turn, but for what is more by itself. */
  const isRoom = (networks: readonly string[], more: number): boolean =>
    took < turnMilliseconds &&
    networks.every(network => {
      const weights = begun.get(network) ?? 0
      return weights === 0 || weights + more <= mostOf(network)
    })
  function go(one: Waiting): void {
    const { line, networks, weight, begin } = one
    for (const network of networks) addTo(begun, network, weight)
    const started = elapsed()
    begin()
    const milliseconds = elapsed() - started
    took += milliseconds
    const more = isMerchants(line) ? milliseconds : -milliseconds
    const takesTime = isLong(one)
    before = takesTime ? ofMerchants.size + ofOthers.size : before - 1
    if (takesTime) aheadInLong = within(longAheadMost, aheadInLong + more)
    else ahead = within(turnMilliseconds, ahead + more)
    rests.took(line, milliseconds, takesTime)
  }

  const isLong = ({ line, isLarge }: Waiting): boolean => rests.takesLong(line, isLarge)
  /** Whoever is begun stands behind all others then. */
  function takeOut(lines: Map<string, Line>, one: Waiting): void {
    const line = lines.get(one.line)!
    const own = line.get(one.caller)!
    lines.delete(one.line)
    leave(line, one)
    if (line.delete(one.caller)) line.set(one.caller, own)
    if (line.size > 0) lines.set(one.line, line)
  }
  const firstOf = (line: Line): Waiting | undefined => line.values().next().value?.values().next().value

  /** Those that may begin, one of each line after the other; where a turn ends, it goes on behind them in the next. Each is begun before the next is asked for. */
  function* nextOf(lines: Map<string, Line>): Generator<Waiting> {
    for (let hasBegun = true; hasBegun; ) {
      hasBegun = false
      for (const line of [...lines.values()]) {
        const one = firstOf(line)
        // None where what was begun has closed the connections of all.
        if (!one || isLong(one) || !isRoom(one.networks, one.weight)) continue
        takeOut(lines, one)
        hasBegun = true
        yield one
      }
    }
  }
  /** Of those whose work takes long: of whoever has had least. */
  function nextLongOf(lines: Map<string, Line>): Waiting | undefined {
    let least = Number.POSITIVE_INFINITY
    let found: Waiting | undefined
    for (const line of lines.values()) {
      const one = firstOf(line)
      if (!one || !isLong(one)) continue
      const spent = rests.spentBy(one.line)
      if (spent >= least || !isRoom(one.networks, one.weight)) continue
      least = spent
      found = one
    }
    if (found) takeOut(lines, found)
    return found
  }
  function beginLong(): void {
    while (rests.isOver()) {
      const [first, second] = aheadInLong > 0 ? [ofOthers, ofMerchants] : [ofMerchants, ofOthers]
      const one = nextLongOf(first) ?? nextLongOf(second)
      if (!one) return
      go(one)
    }
  }
  function beginAll(): void {
    if (before <= 0) beginLong()
    const [merchants, others] = [nextOf(ofMerchants), nextOf(ofOthers)]
    for (;;) {
      const [first, second] = ahead > 0 ? [others, merchants] : [merchants, others]
      const one = first.next().value ?? second.next().value
      if (!one) break
      go(one)
    }
    beginLong()
  }
  function leave(line: Line, one: Waiting): void {
    const own = line.get(one.caller)
    own?.delete(one)
    if (own?.size === 0) line.delete(one.caller)
  }

  function schedule(soon = nextTurn): void {
    if (isScheduled) return
    isScheduled = true
    soon(() => {
      isScheduled = false
      took = 0
      begun.clear()
      for (const [network, weight] of owed) {
        begun.set(network, weight)
        addTo(owed, network, -Math.min(weight, mostOf(network)))
      }
      beginAll()
      const lines = [...ofMerchants.values(), ...ofOthers.values()]
      const rest = !rests.isOver() && lines.map(firstOf).every(one => !one || isLong(one))
      if (lines.length + owed.size > 0) schedule(rest && owed.size === 0 ? later : nextTurn)
    })
  }

  function turn(networks: readonly string[], bytes: number, cost: number, begin: () => void): (() => void) | undefined {
    const [caller, name] = [networks[0]!, networks.at(-1)!]
    const weight = cost + bytes / bytesForOne
    const isLarge = bytes >= longBytes
    const one = { line: name, networks: [...networks, everybody], caller, weight, isLarge, begin }
    const lines = isMerchants(name) ? ofMerchants : ofOthers
    const line = lines.get(name)
    schedule()
    const takesTime = isLong(one)
    const mayBegin = !takesTime || (ofMerchants.size + ofOthers.size === 0 && rests.isOver())
    if (!line && mayBegin && isRoom(one.networks, weight)) {
      go(one)
      return undefined
    }
    if (!takesTime) rests.waits()
    const own = line ?? new Map<string, Set<Waiting>>()
    own.set(caller, (own.get(caller) ?? new Set()).add(one))
    lines.set(name, own)
    return () => {
      leave(own, one)
      if (own.size === 0 && lines.get(name) === own) lines.delete(name)
    }
  }

  return {
    turn,
    spent(networks, bytes) {
      if (bytes < bytesForOne) return
      for (const network of networks) addTo(owed, network, bytes / bytesForOne)
      schedule()
    },
  }
}
