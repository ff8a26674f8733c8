// Connections by the networks that they come from, the largest crowd first: who has to make room is found without a look at everybody.

import { shareOf } from './networks.ts'

/** The connections of a network, or of one around it. */
export type Crowd<One> = {
  readonly name: string
  /** It counts as so many addresses. */
  readonly share: number
  connections: number
  /** Those to which no answer is owed, who has waited for longest first; and the others. */
  readonly waiting: Set<One>
  readonly owed: Set<One>
}

/** As much as one address has. */
export const crowdSize = <One>({ connections, share }: Crowd<One>): number => connections / share

export type Crowds<One> = {
  /** Of all. */
  count(): number
  /** Those around a caller that there are, the narrowest first. */
  around(names: readonly string[]): readonly Crowd<One>[]
  /** One more of those around a caller. */
  join(names: readonly string[]): readonly Crowd<One>[]
  /** It waits from now on, or is owed an answer. */
  sits(one: One, crowds: readonly Crowd<One>[], isOwed: boolean): void
  leave(one: One, crowds: readonly Crowd<One>[]): void
  /** The largest first, and of several those of which nobody has done anything for longest; none smaller than that. */
  largest(least: number): Iterable<Crowd<One>>
}

/** All shares are parts of it. */
const parts = 16

export function makeCrowds<One>(): Crowds<One> {
  const crowds = new Map<string, Crowd<One>>()
  const bySize: Set<Crowd<One>>[] = []
  let count = 0
  let top = 0

  const placeOf = ({ connections, share }: Crowd<One>): number => (connections * parts) / share
  function grows(crowd: Crowd<One>, by: number): void {
    bySize[placeOf(crowd)]?.delete(crowd)
    crowd.connections += by
    const at = placeOf(crowd)
    const same = bySize[at] ?? new Set()
    bySize[at] = same
    if (crowd.connections > 0) same.add(crowd)
    else crowds.delete(crowd.name)
    top = Math.max(top, at)
    while (top > 0 && !bySize[top]?.size) top--
  }

  return {
    count: () => count,
    around: names => names.flatMap(name => crowds.get(name) ?? []),
    join(names) {
      count++
      return names.map(name => {
        const crowd = crowds.get(name) ?? { name, share: shareOf(name), connections: 0, waiting: new Set(), owed: new Set() }
        crowds.set(name, crowd)
        grows(crowd, 1)
        return crowd
      })
    },
    sits(one, own, isOwed) {
      for (const crowd of own) {
        crowd.waiting.delete(one)
        crowd.owed.delete(one)
        crowd[isOwed ? 'owed' : 'waiting'].add(one)
        grows(crowd, 0)
      }
    },
    leave(one, own) {
      count--
      for (const crowd of own) {
        crowd.waiting.delete(one)
        crowd.owed.delete(one)
        grows(crowd, -1)
      }
    },
    *largest(least) {
      for (let at = top; at > 0 && at >= least * parts; at--) yield* bySize[at] ?? []
    },
  }
}
