// Who has had how much: of those whose work waits, whoever has least under way comes next, and of several the one whose last began longest ago.

export type DueShare = {
  readonly running: number
  /** The higher, the later the last of it began. */
  readonly turn: number
}

/** By name; whoever is not named has nothing under way, and has had nothing of late. */
export type DueShares = ReadonlyMap<string, DueShare>

/** So many are known of whom nothing is under way. */
const rememberedMost = 500

export function countShares(): { readonly shares: DueShares; begin(name: string): void; end(name: string): void } {
  const shares = new Map<string, DueShare>()
  let turns = 0
  let running = 0
  return {
    shares,
    begin(name) {
      const before = shares.get(name)?.running ?? 0
      shares.delete(name) // the last is who began last
      shares.set(name, { running: before + 1, turn: ++turns })
      running++
    },
    end(name) {
      const share = shares.get(name)!
      shares.set(name, { ...share, running: share.running - 1 })
      // Where nothing is under way nobody waits for a turn.
      if (--running === 0) shares.clear()
      if (shares.size > rememberedMost + running) forgetOldest(shares)
    },
  }
}

function forgetOldest(shares: Map<string, DueShare>): void {
  for (const [name, { running }] of shares) {
    if (running > 0) continue
    shares.delete(name)
    return
  }
}
