// Requests of one network are begun a few in each turn of the event loop, and those of others between them: a crowd that asks at once, whatever it asks,
// costs everybody else a moment and not the time for all of it.

import { addTo } from '../platform/counts.ts'

/** Begun in one turn for one network, and for each of these bytes of a body or an answer one less: a large one may take as long as a crowd of small ones. */
const atOnce = 64
const bytesForOne = 4096

/** What would go beyond it waits for the next turn, but for what is more by itself. */
const isRoom = (weights: number, more: number): boolean => weights === 0 || weights + more <= atOnce

export type FairTurns = {
  /** Begins when the turn has come, which may be now; returns how to leave the line, for whoever waits in it. `cost`: as much as so many, where there is more to do than
   * to read a form. `begin` must not throw. */
  turn(network: string, bytes: number, cost: number, begin: () => void): (() => void) | undefined
  /** What it was answered is as many bytes: turns to come are spent already. */
  spent(network: string, bytes: number): void
}

export function fairTurns(nextTurn: (go: () => void) => void): FairTurns {
  type Waiting = { readonly weight: number; readonly begin: () => void }
  const begun = new Map<string, number>()
  const owed = new Map<string, number>()
  const waiting = new Map<string, Set<Waiting>>()
  let isScheduled = false

  function schedule(): void {
    if (isScheduled) return
    isScheduled = true
    nextTurn(() => {
      isScheduled = false
      begun.clear()
      for (const [network, weight] of owed) {
        begun.set(network, weight)
        addTo(owed, network, -Math.min(weight, atOnce))
      }
      for (const [network, line] of waiting) {
        for (const one of line) {
          const weights = begun.get(network) ?? 0
          if (!isRoom(weights, one.weight)) break
          begun.set(network, weights + one.weight)
          line.delete(one)
          one.begin()
        }
        if (line.size === 0) waiting.delete(network)
      }
      if (waiting.size + owed.size > 0) schedule()
    })
  }

  function turn(network: string, bytes: number, cost: number, begin: () => void): (() => void) | undefined {
    const before = begun.get(network) ?? 0
    const weight = cost + bytes / bytesForOne
    const line = waiting.get(network)
    schedule()
    if (!line && isRoom(before, weight)) {
      begun.set(network, before + weight)
      begin()
      return undefined
    }
    const one = { weight, begin }
    if (line) line.add(one)
    else waiting.set(network, new Set([one]))
    return () => void (line ?? waiting.get(network))?.delete(one)
  }

  return {
    turn,
    spent(network, bytes) {
      if (bytes < bytesForOne) return
      addTo(owed, network, bytes / bytesForOne)
      schedule()
    },
  }
}
