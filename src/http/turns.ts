// Requests of one network, or of one merchant, are begun a few in each turn of the event loop, and those of others between them: a crowd that asks at once, whatever it asks,
// costs everybody else a moment and not the time for all of it.

import { addTo } from '../platform/counts.ts'
import { networkShare } from '../platform/network.ts'
import { makeRests } from './rests.ts'

/** Begun in one turn for one network (a /56 and a /48 have twice and four times as many, all together twice), and for each of these bytes of a body or an answer one less: a large one may take as long as a crowd of small ones. */
const atOnce = 64
const bytesForOne = 4096
/** A larger body is taken for long work: of each of several whom nobody knows one would come after the other. */
export const longBytes = 16 * 1024
/** As long as a turn takes everybody waits for each of its steps: nothing more is begun in it when so much time has gone, whatever it went into. */
const turnMilliseconds = 10
const everybody = 'everybody'
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

  /** What would go beyond it waits for the next turn, but for what is more by itself. */
  const isRoom = (networks: readonly string[], more: number): boolean =>
    took < turnMilliseconds &&
    networks.every(network => {
      const weights = begun.get(network) ?? 0
      return weights === 0 || weights + more <= mostOf(network)
    })
  function go({ line, networks, weight, isLarge, begin }: Waiting): void {
    for (const network of networks) addTo(begun, network, weight)
    const started = elapsed()
    begin()
    const milliseconds = elapsed() - started
    took += milliseconds
    ahead += isMerchants(line) ? milliseconds : -milliseconds
    ahead = Math.max(-turnMilliseconds, Math.min(turnMilliseconds, ahead))
    rests.took(line, milliseconds, isLarge)
  }

  const firstOf = (line: Line): Waiting | undefined => line.values().next().value?.values().next().value

  /** Those that may begin, one of each line after the other; where a turn ends, it goes on behind them in the next. Each is begun before the next is asked for. */
  function* nextOf(lines: Map<string, Line>): Generator<Waiting> {
    for (let hasBegun = true; hasBegun; ) {
      hasBegun = false
      for (const [name, line] of [...lines]) {
        const one = firstOf(line)
        // None where what was begun has closed the connections of all.
        if (!one || !rests.isOver(name, one.isLarge) || !isRoom(one.networks, one.weight)) continue
        lines.delete(name)
        const own = line.get(one.caller)!
        leave(line, one)
        if (line.delete(one.caller)) line.set(one.caller, own)
        if (line.size > 0) lines.set(name, line)
        hasBegun = true
        yield one
      }
    }
  }
  function beginAll(): void {
    const [merchants, others] = [nextOf(ofMerchants), nextOf(ofOthers)]
    for (;;) {
      const [first, second] = ahead > 0 ? [others, merchants] : [merchants, others]
      const one = first.next().value ?? second.next().value
      if (!one) return
      go(one)
    }
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
      const lines = [...ofMerchants, ...ofOthers]
      const rest = lines.every(([name, line]) => !rests.isOver(name, firstOf(line)?.isLarge === true))
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
    if (!line && rests.isOver(name, isLarge) && isRoom(one.networks, weight)) {
      go(one)
      return undefined
    }
    rests.waits(name, isLarge)
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
