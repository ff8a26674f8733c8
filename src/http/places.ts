// The places that connections have: who gets one, and who makes room where there are none left.

import type { Clock } from '../platform/clock.ts'
import { type Crowd, type Crowds, crowdSize, makeCrowds } from './crowds.ts'
import { crowdOf, type Networks } from './networks.ts'
import { type ConnectionPlace, isOfProxy, isOwed, isSpared, type OpenConnection, type PlacesOfKind } from './openConnection.ts'
import { isProxys, type NetworkNames } from './rates.ts'

/**
 * Connections to one process: those on which nothing was asked yet, those on which browsers and strangers asked last, and all of trusted proxies, and those on which merchants' servers did. None of
 * one kind makes room for any of another.
 */
export const newcomersMost = 2048
export const connectionsMost = 4096
export const serversMost = 4096
export const allConnectionsMost = newcomersMost + connectionsMost + serversMost
/** Of each kind from one network that is no trusted proxy, and of one merchant. One more takes the place of one to which nothing is owed, or whose answer nobody takes. */
export const networkConnectionsMost = 1024

/** A request comes so soon on a connection that was opened for it. */
export const arrivalSeconds = 1

/** So many are looked at for somebody to go, who came first first: all that an address has, and of the thousands of a wide network not more. */
export const looksMost = networkConnectionsMost

/** Somebody has pressed a button. */
function isPressed({ unfinished }: OpenConnection): boolean {
  for (const { method } of unfinished.keys()) if (method === 'POST') return true
  return false
}

/** Who has no more connections is no crowd where somebody has pressed a button: he would not know what became of it. */
const pressedMost = 16

/** What has been asked there is no more than half sent: nothing has begun. */
const isHalfSentByProxy = (one: OpenConnection): boolean => isOfProxy(one) && one.unfinished.size > 0 && !isOwed(one)

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
  /** Of which merchant the servers are that asked there last, if they are any's. */
  ofMerchant(one: OpenConnection): string | undefined
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
  const placesFor = (most: number): PlacesOfKind => ({ most, crowds: makeCrowds() })
  const newcomers = placesFor(newcomersMost)
  const strangers = placesFor(connectionsMost)
  const servers = placesFor(serversMost)

  /** Nobody where there is room. False = nobody, and there is none. */
  function whoGoes(among: PlacesOfKind, names: NetworkNames): OpenConnection | undefined | false {
    const { most, crowds } = among
    const own = crowds.around(names)
    // What merchants' servers wait for makes no room: each merchant leaves as much as he has.
    const mostOfOne = among === servers ? Math.min(networkConnectionsMost, most - crowds.count()) : networkConnectionsMost
    const isCrowd = own[0]?.name === names[0] && crowdSize(own[0]!) >= mostOfOne
    if (!isCrowd && crowds.count() < most) return undefined
    const proxied = isProxys(names) ? proxiedWhoGoes(own[0]) : undefined
    return proxied ?? (isCrowd ? ownWhoGoes(own[0]!) : largestWhoGoes(crowds, own, among !== servers)) ?? false
  }

  /** Who has waited for longest without an answer being owed, else who takes none of his for longest. */
  const ownWhoGoes = (crowd: Crowd<OpenConnection>): OpenConnection | undefined => oldestWaiting(crowd) ?? longestUntaken(crowd)

  /** The same of the largest crowd, the latter only for somebody of the same, or of one with fewer connections. For such also one who only stands in line, or a browser. */
  function largestWhoGoes(
    crowds: Crowds<OpenConnection>,
    own: readonly Crowd<OpenConnection>[],
    mayBeOwed: boolean,
  ): OpenConnection | undefined {
    // Whoever has more connections makes no room for himself by those of others.
    const size = Math.max(0, ...own.map(crowdSize))
    for (const crowd of crowds.largest(size)) {
      const isLarger = crowdSize(crowd) > size
      const found = isLarger || own.includes(crowd) ? ownWhoGoes(crowd) : oldestWaiting(crowd)
      const goes = found ?? (isLarger && mayBeOwed ? owedWhoGoes(crowd) : undefined)
      if (goes) return goes
    }
    return undefined
  }

  function owedWhoGoes(crowd: Crowd<OpenConnection>): OpenConnection | undefined {
    const { owed } = crowd
    const isMeant = (one: OpenConnection) => crowdSize(crowd) > pressedMost || !isPressed(one)
    return firstSpared(owed, one => isTokenless(one) && isMeant(one)) ?? firstSpared(owed, isMeant)
  }

  function firstOf(connections: Iterable<OpenConnection>, isMeant: (one: OpenConnection) => boolean): OpenConnection | undefined {
    for (const one of connections) if (isMeant(one)) return one
    return undefined
  }

  function oldestWaiting({ waiting }: Crowd<OpenConnection>): OpenConnection | undefined {
    return firstOf(waiting, one => !isOwed(one))
  }

  function longestUntaken({ owed }: Crowd<OpenConnection>): OpenConnection | undefined {
    let longest = Number.POSITIVE_INFINITY
    let looks = looksMost
    let found: OpenConnection | undefined
    for (const one of owed) {
      if (--looks < 0) break
      const since = one.stuckSince ?? (one.socket.writableLength > 0 ? clock.elapsed() : longest)
      if (since >= longest) continue
      longest = since
      found = one
    }
    return found
  }

  /** Pages first: whoever pressed a button would not know what became of it. */
  function firstSpared(connections: Iterable<OpenConnection>, isMeant = (_: OpenConnection) => true): OpenConnection | undefined {
    let looks = looksMost
    let found: OpenConnection | undefined
    for (const one of connections) {
      if (--looks < 0 && found) break
      if (!isMeant(one) || !isOwed(one) || !isSpared(one)) continue
      if (!isPressed(one)) return one
      found ??= one
    }
    return found
  }

  /**
   * One on which nothing has been asked for a while; else of those who ask through proxies one of whoever has most requests under way, half-sent ones first: a proxy may
   * open a connection for each, and says only then for whom. Others send theirs slowly.
   */
  function proxiedWhoGoes(proxies: Crowd<OpenConnection> | undefined): OpenConnection | undefined {
    const idle = proxies && firstOf(proxies.waiting, ({ unfinished }) => unfinished.size === 0)
    if (idle && clock.elapsed() - idle.idleSince >= arrivalSeconds * 1000) return idle
    let largest = 0
    let found: OpenConnection | undefined
    for (const network of callers.all()) {
      const crowd = crowdOf(network, 'unfinished')
      if (crowd <= largest) continue
      const { asking } = network.circles[0]!
      const spared = firstOf(asking, isHalfSentByProxy) ?? firstSpared(asking, isOfProxy)
      if (!spared) continue
      largest = crowd
      found = spared
    }
    return found
  }

  /** Undefined = there is none. Whoever has to make room for it is gone. */
  function placeAmong(among: PlacesOfKind, names: NetworkNames): ConnectionPlace | undefined {
    const goes = whoGoes(among, names)
    if (goes === false) return undefined
    if (goes) drop(goes)
    return { among, crowds: among.crowds.join(names) }
  }

  const gives = (one: OpenConnection, { among, crowds }: ConnectionPlace): void => among.crowds.leave(one, crowds)
  const sits = (one: OpenConnection): void => one.place.among.crowds.sits(one, one.place.crowds, isOwed(one))

  /** False = there is no place, and it stays where it is. */
  function moves(one: OpenConnection, among: PlacesOfKind, names: NetworkNames): boolean {
    if (one.place.among === among && one.place.crowds[0]!.name === names[0]) return true
    const place = placeAmong(among, names)
    if (!place) return false
    if (!isOpen(one)) {
      gives(one, place) // it was the one to make room
      return false
    }
    gives(one, one.place)
    one.place = place
    sits(one)
    return true
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
    ofMerchant: ({ place }) => (place.among === servers ? place.crowds[0]!.name : undefined),
    leaves: one => gives(one, one.place),
    sits,
  }
}
