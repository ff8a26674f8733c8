// Requests of one network are begun a few in each turn of the event loop, and those of others between them: a crowd that asks at once, whatever it asks,
// costs everybody else a moment and not the time for all of it.

/** Begun in one turn for one network. */
const atOnce = 64

/** Undefined when the turn has come already. */
export type FairTurn = (network: string) => Promise<void> | undefined

export function fairTurns(nextTurn: (go: () => void) => void): FairTurn {
  const begun = new Map<string, number>()
  const waiting = new Map<string, (() => void)[]>()
  let isScheduled = false

  function schedule(): void {
    if (isScheduled) return
    isScheduled = true
    nextTurn(() => {
      isScheduled = false
      begun.clear()
      for (const [network, line] of waiting) {
        const come = line.splice(0, atOnce)
        begun.set(network, come.length)
        for (const go of come) go()
        if (line.length === 0) waiting.delete(network)
      }
      if (waiting.size > 0) schedule()
    })
  }

  return network => {
    const count = begun.get(network) ?? 0
    schedule()
    if (count < atOnce) {
      begun.set(network, count + 1)
      return undefined
    }
    return new Promise(go => {
      const line = waiting.get(network)
      if (line) line.push(go)
      else waiting.set(network, [go])
    })
  }
}
