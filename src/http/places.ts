// The places that connections have: who gets one, and who makes room where there are none left.

import type { Clock } from '../platform/clock.ts'
import { type CallerNetwork, countNetworks, crowdOf, type Networks, networkName } from './networks.ts'
import { type ConnectionPlace, isOfProxy, isOwed, isSpared, type OpenConnection, type PlacesOfKind } from './openConnection.ts'
import { isProxys, type NetworkNames } from './rates.ts'

/**
 * Connections to one process: those on which nothing was asked yet, those on which browsers and strangers asked last, and all of trusted proxies, and those on which merchants' servers did. None of
 * one kind makes room for any of another.
 */
export const newcomersMost = 2048
export const connectionsMost = 4096
export const serversMost = 2048
export const allConnectionsMost = newcomersMost + connectionsMost + serversMost
/** Of each kind from one network that is no trusted proxy, and of one merchant. One more takes the place of one to which nothing is owed, or whose answer nobody takes. */
export const networkConnectionsMost = 1024

/** A request comes so soon on a connection that was opened for it. */
export const arrivalSeconds = 1

/** Who may go, and since when nothing has happened there. */
type Candidate = { readonly one: OpenConnection; readonly since: number; readonly isUntaken: boolean }

const goesBefore = (one: Candidate, other: Candidate): boolean =>
  one.isUntaken === other.isUntaken ? one.since < other.since : other.isUntaken

/** Somebody has pressed a button. */
function isPressed({ unfinished }: OpenConnection): boolean {
  for (const { method } of unfinished.keys()) if (method === 'POST') return true
  return false
}

/** Who has no more connections is no crowd where somebody has pressed a button: he would not know what became of it. */
const pressedMost = 16

const isTokenless = ({ unfinished, tokenless }: OpenConnection): boolean => tokenless === unfinished.size

export type ConnectionPlaces = {
  /** For a new connection. Undefined = there is none. */
  forNewcomer(names: NetworkNames): ConnectionPlace | undefined
  /** Something is asked on it, with a token of a merchant or without one. False = there is no place for that. */
  comesIn(one: OpenConnection, ofMerchant: string | undefined): boolean
  /** A merchant's server asks there, as was found by what it sent. */
  becomesServers(one: OpenConnection, ofMerchant: string): void
  /** What was asked there last was no merchant's. False = there is no place for that. */
  becomesStrangers(one: OpenConnection): boolean
  leaves(one: OpenConnection): void
  /** Is an answer owed there, or does it wait from now on? */
  sits(one: OpenConnection): void
}

/** `drop`: closes a connection, which leaves its place. `isOpen`: has it not been closed meanwhile? */
export function makePlaces(
  clock: Clock,
  callers: Networks<OpenConnection>,
  drop: (one: OpenConnection) => void,
  isOpen: (one: OpenConnection) => boolean,
): ConnectionPlaces {
  const placesFor = (most: number): PlacesOfKind => ({ most, networks: countNetworks() })
  const newcomers = placesFor(newcomersMost)
  const strangers = placesFor(connectionsMost)
  const servers = placesFor(serversMost)

  /** Nobody where there is room. False = nobody, and there is none. */
  function whoGoes({ among, network }: ConnectionPlace): OpenConnection | undefined | false {
    const { connections, share } = network.circles[0]!
    const isCrowd = connections / share >= networkConnectionsMost
    if (!isCrowd && among.networks.sum('connections') < among.most) return undefined
    const found = isProxys(network.names) ? proxiedWhoGoes(network) : undefined
    return (found ?? largestWhoGoes(network, isCrowd ? [network] : among.networks.all(), among !== servers))?.one ?? false
  }

  /** Of the largest crowd: who has waited for longest without an answer being owed, else who takes none of his for longest; that one only for somebody of the same network, or of one
   * with fewer connections. For the latter also one who only stands in line, or a browser. */
  function largestWhoGoes(
    newcomer: CallerNetwork<OpenConnection>,
    networks: Iterable<CallerNetwork<OpenConnection>>,
    mayBeOwed: boolean,
  ): Candidate | undefined {
    // Whoever has more connections makes no room for himself by those of others.
    const own = crowdOf(newcomer, 'connections')
    let largest = own
    let first: Candidate | undefined
    for (const network of networks) {
      const crowd = crowdOf(network, 'connections')
      if (crowd < largest) continue
      const waiting = oldestWaiting(network)
      const isLarger = network !== newcomer && crowd > own
      const found =
        waiting ??
        (isLarger || network === newcomer ? longestUntaken(network) : undefined) ??
        (isLarger && mayBeOwed ? owedWhoGoes(network, crowd) : undefined)
      if (!found || (first && crowd === largest && !goesBefore(found, first))) continue
      largest = crowd
      first = found
    }
    return first
  }

  function owedWhoGoes({ owed }: CallerNetwork<OpenConnection>, crowd: number): Candidate | undefined {
    const isMeant = (one: OpenConnection) => crowd > pressedMost || !isPressed(one)
    return firstSpared(owed, one => isTokenless(one) && isMeant(one)) ?? firstSpared(owed, isMeant)
  }

  function oldestWaiting({ waiting }: CallerNetwork<OpenConnection>): Candidate | undefined {
    for (const one of waiting) if (!isOwed(one)) return { one, since: one.idleSince, isUntaken: false }
    return undefined
  }

  function longestUntaken({ owed }: CallerNetwork<OpenConnection>): Candidate | undefined {
    const now = clock.elapsed()
    let found: Candidate | undefined
    for (const one of owed) {
      const since = one.stuckSince ?? (one.socket.writableLength > 0 ? now : undefined)
      if (since !== undefined && (!found || since < found.since)) found = { one, since, isUntaken: true }
    }
    return found
  }

  const owedThere = (one: OpenConnection): Candidate => ({ one, since: clock.elapsed(), isUntaken: true })

  /** Pages first: whoever pressed a button would not know what became of it. */
  function firstSpared(connections: Iterable<OpenConnection>, isMeant = (_: OpenConnection) => true): Candidate | undefined {
    let found: OpenConnection | undefined
    for (const one of connections) {
      if (!isMeant(one) || !isOwed(one) || !isSpared(one)) continue
      if (!isPressed(one)) return owedThere(one)
      found ??= one
    }
    return found && owedThere(found)
  }

  /**
   * One on which nothing has been asked for a while; else of those who ask through proxies one of whoever has most requests under way: a proxy may open a connection
   * for each, and says only then for whom.
   */
  function proxiedWhoGoes(newcomer: CallerNetwork<OpenConnection>): Candidate | undefined {
    const idle = oldestWaiting(newcomer)
    if (idle && clock.elapsed() - idle.since >= arrivalSeconds * 1000) return idle
    let largest = 0
    let found: Candidate | undefined
    for (const network of callers.all()) {
      const crowd = crowdOf(network, 'unfinished')
      if (crowd <= largest) continue
      const spared = firstSpared(network.asking, isOfProxy)
      if (!spared) continue
      largest = crowd
      found = spared
    }
    return found
  }

  /** Undefined = there is none. Whoever has to make room for it is gone. */
  function placeAmong(among: PlacesOfKind, names: NetworkNames): ConnectionPlace | undefined {
    const network = among.networks.join(names)
    const goes = whoGoes({ among, network })
    if (goes === false) {
      among.networks.leave(network)
      return undefined
    }
    if (goes) drop(goes)
    among.networks.add(network, 'connections', 1)
    return { among, network }
  }

  function gives({ among, network }: ConnectionPlace): void {
    among.networks.add(network, 'connections', -1)
    among.networks.leave(network)
  }

  function leaves(one: OpenConnection): void {
    one.place.network.waiting.delete(one)
    one.place.network.owed.delete(one)
    gives(one.place)
  }

  /** False = there is no place, and it stays where it is. */
  function moves(one: OpenConnection, among: PlacesOfKind, names: NetworkNames): boolean {
    if (one.place.among === among && networkName(one.place.network) === names[0]) return true
    const place = placeAmong(among, names)
    if (!place) return false
    if (!isOpen(one)) {
      gives(place) // it was the one to make room
      return false
    }
    leaves(one)
    one.place = place
    sits(one)
    return true
  }

  function sits(one: OpenConnection): void {
    const { waiting, owed } = one.place.network
    waiting.delete(one)
    owed.delete(one)
    if (isOwed(one)) owed.add(one)
    else waiting.add(one)
  }

  return {
    forNewcomer: names => placeAmong(isProxys(names) ? strangers : newcomers, names),
    comesIn(one, ofMerchant) {
      if (isOfProxy(one)) return true
      if (ofMerchant !== undefined) return moves(one, servers, [ofMerchant])
      // One on which a merchant's server has asked stays his until it is seen that what comes behind it is not: what it says of itself may stand in a body.
      return one.place.among === servers || moves(one, strangers, one.names)
    },
    becomesServers(one, ofMerchant) {
      if (one.place.among === strangers && !isOfProxy(one)) moves(one, servers, [ofMerchant])
    },
    becomesStrangers: one => one.place.among !== servers || moves(one, strangers, one.names),
    leaves,
    sits,
  }
}
