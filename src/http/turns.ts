// Requests of one network, or of one merchant, are begun a few in each turn of the event loop, and those of others between them: a crowd that asks at once, whatever it asks,
// costs everybody else a moment and not the time for all of it.

import { addTo } from '../platform/counts.ts'
import { networkShare } from '../platform/network.ts'
import { makeRests } from './rests.ts'

/** Begun in one turn for one network (a /56 and a /48 have twice and four times as many, all together twice), and for each of these bytes of a body or an answer one less: a large one may take as long as a crowd of small ones. */
const atOnce = 64
const bytesForOne = 4096
/** As long as a turn takes everybody waits for each of its steps: nothing more is begun in it when so much time has gone, whatever it went into. */
const turnMilliseconds = 10
const everybody = 'everybody'
const mostOf = (network: string): number => atOnce * (network === everybody ? 2 : networkShare(network))

/** What stands for a merchant, or for a division. */
export const merchantLine = (id: string): string => `of ${id}`
/** What stands for all others who have something to do at a merchant, of whom there may be any number: whoever sends little, as a form is that a shopper fills in, does not
 * stand behind those who send much, and neither of them before the merchant's own server. */
export const othersLine = (id: string, bytes: number): string => `${bytes > bytesForOne ? 'much' : 'little'} at ${id}`

export type FairTurns = {
  /** Begins when the turn has come, which may be now; returns how to leave the line, for whoever waits in it. `cost`: as much as so many, where there is more to do than
   * to read a form. `networks`: around a caller, the narrowest first, or what stands for his merchant: in the line of the last, since who has a wide network has as many
   * narrow ones as he likes. `caller`: those of one line take turns in it. `begin` must not throw. */
  turn(networks: readonly string[], bytes: number, cost: number, begin: () => void, caller?: string): (() => void) | undefined
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
    readonly begin: () => void
  }
  type Line = Map<string, Set<Waiting>>
  const begun = new Map<string, number>()
  const owed = new Map<string, number>()
  const waiting = new Map<string, Line>()
  const rests = makeRests(elapsed)
  let isScheduled = false
  /** Milliseconds in this turn. */
  let took = 0

  /** What would go beyond it waits for the next turn, but for what is more by itself. */
  const isRoom = (networks: readonly string[], more: number): boolean =>
    took < turnMilliseconds &&
    networks.every(network => {
      const weights = begun.get(network) ?? 0
      return weights === 0 || weights + more <= mostOf(network)
    })
  function go({ line, networks, weight, begin }: Waiting): void {
    for (const network of networks) addTo(begun, network, weight)
    const started = elapsed()
    begin()
    const milliseconds = elapsed() - started
    took += milliseconds
    rests.took(line, milliseconds)
  }

  /** One of each line. Those that had nothing come first when it goes on, in this turn or the next. */
  function beginOfEach(): boolean {
    let hasBegun = false
    for (const [name, line] of [...waiting]) {
      const own = line.values().next().value!
      const one = own.values().next().value!
      if (!rests.isOver(name) || !isRoom(one.networks, one.weight)) continue
      waiting.delete(name)
      leave(line, one)
      if (line.delete(one.caller)) line.set(one.caller, own)
      if (line.size > 0) waiting.set(name, line)
      go(one)
      hasBegun = true
    }
    return hasBegun
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
      while (beginOfEach());
      const rest = [...waiting.keys()].every(line => !rests.isOver(line))
      if (waiting.size + owed.size > 0) schedule(rest && owed.size === 0 ? later : nextTurn)
    })
  }

  function turn(
    networks: readonly string[],
    bytes: number,
    cost: number,
    begin: () => void,
    caller = networks[0]!,
  ): (() => void) | undefined {
    const name = networks.at(-1)!
    const weight = cost + bytes / bytesForOne
    const one = { line: name, networks: [...networks, everybody], caller, weight, begin }
    const line = waiting.get(name)
    schedule()
    if (!line && rests.isOver(name) && isRoom(one.networks, weight)) {
      go(one)
      return undefined
    }
    rests.waits(name)
    const own = line ?? new Map<string, Set<Waiting>>()
    own.set(caller, (own.get(caller) ?? new Set()).add(one))
    waiting.set(name, own)
    return () => {
      leave(own, one)
      if (own.size === 0 && waiting.get(name) === own) waiting.delete(name)
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
