// Who makes room where there are no bytes for all, or where too much is asked.

import type { Clock } from '../platform/clock.ts'
import { type CallerNetwork, crowdedCircle, crowdOf, type Networks } from './networks.ts'
import { isOfProxy, isOwed, isSpared, isWaitedFor, type OpenConnection } from './openConnection.ts'
import { looksMost } from './places.ts'
import type { NetworkNames } from './rates.ts'

/** One of a proxy is told, which it can be only of a request by itself that is no more than half sent. An answer that is made, and that nobody takes, spares nobody. */
const mayGo = (one: OpenConnection): boolean =>
  one.tokenless > 0 && (isOfProxy(one) ? one.unfinished.size === 1 && !isOwed(one) : isSpared(one) || one.untaken > 0)

function asksMore(one: OpenConnection, other: OpenConnection): boolean {
  if (one.tokenless !== other.tokenless) return one.tokenless > other.tokenless
  return isWaitedFor(one) === isWaitedFor(other) ? one.idleSince < other.idleSince : isWaitedFor(other)
}

export type Room = {
  /** Who holds most bytes. */
  mostHeld(what: 'kept' | 'untaken'): OpenConnection
  /** Of a network in which too much is asked without a token, or of the wide one in which there is: on which most of that is, unfinished; of several that on which nothing has come whole, for longest. */
  fullest(network: CallerNetwork<OpenConnection>): OpenConnection | undefined
}

/** Bytes of requests that a merchant's network may have more than any other before one of its connections goes: strangers' lie there for long, his burst for a moment. */
export const merchantsBytes = 4 * 1024 * 1024

export function makeRoom(clock: Clock, callers: Networks<OpenConnection>, isMerchants: (names: NetworkNames) => boolean): Room {
  /** Of the network that holds most, wide ones too, who holds most, counted by how long: what has just come is on its way. */
  function mostHeld(what: 'kept' | 'untaken'): OpenConnection {
    const now = clock.elapsed()
    let together = Number.NEGATIVE_INFINITY
    let own = 0
    let most: OpenConnection | undefined
    for (const network of callers.all()) {
      const bytes = crowdOf(network, what)
      const crowd = bytes - (what === 'kept' && isMerchants(network.names) ? merchantsBytes : 0)
      if (bytes === 0 || crowd < together) continue
      if (crowd > together) own = 0
      together = crowd
      for (const one of network.circles[0]!.asking) {
        const held = one[what] * (1 + now - one[`${what}Since`])
        if (held <= own) continue
        own = held
        most = one
      }
    }
    return most!
  }

  function fullest(crowded: CallerNetwork<OpenConnection>): OpenConnection | undefined {
    let looks = looksMost
    let found: OpenConnection | undefined
    for (const one of crowdedCircle(crowded, 'tokenless').asking) {
      if (mayGo(one) && (!found || asksMore(one, found))) found = one
      if (--looks === 0) break
    }
    return found
  }

  return { mostHeld, fullest }
}
