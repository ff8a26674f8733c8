// Who makes room where there are no places, or no bytes, for all.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Clock } from '../platform/clock.ts'
import { type CallerNetwork, countNetworks, crowdedCircle, crowdOf, type Networks } from './networks.ts'
import { isProxys, type NetworkNames } from './rates.ts'

/**
 * Connections to one process: those on which nothing was asked yet, those on which browsers and strangers asked last, and all of trusted proxies, and those on which merchants' servers did. None of
 * one kind makes room for any of another.
 */
export const newcomersMost = 2048
export const connectionsMost = 4096
export const serversMost = 2048
/** Of each kind from one network that is no trusted proxy, and of one merchant. One more takes the place of one to which nothing is owed, or whose answer nobody takes. */
export const networkConnectionsMost = 1024

/** The places of one kind, and who has them. */
export type Places = { readonly most: number; readonly networks: Networks<OpenConnection> }
export type Place = { readonly among: Places; readonly network: CallerNetwork<OpenConnection> }

export type OpenConnection = {
  socket: Socket
  /** Of its address: of trusted proxies those of all their callers. */
  readonly names: NetworkNames
  place: Place
  /** Who asked last. */
  caller: CallerNetwork<OpenConnection>
  /** Bytes of requests that have not begun, and since when there are any. */
  kept: number
  keptSince: number
  /** Bytes of answers that are made, and since when it has taken none of them. */
  untaken: number
  untakenSince: number
  /** Whose answers are not gone. */
  readonly unfinished: Map<IncomingMessage, HeldRequest>
  /** Of these, those that came without a token. */
  tokenless: number
  /** Of these, those of merchants' servers whose answers are not made, or the next to be taken. */
  serving: number
  requests: number
  idleSince: number
  stuckSince: number | undefined
  endsBefore: number | undefined
}

export type HeldRequest = {
  readonly outgoing: ServerResponse
  kept: number
  untaken: number
  body?: string
  /** It came with a token by chance, of whomever. */
  readonly hasToken: boolean
  /** A merchant's server waits for it: its token was found. */
  isServers?: true
  isCut?: true
  leave?: () => void
}

/** Who may go, and since when nothing has happened there. */
type Candidate = { readonly one: OpenConnection; readonly since: number; readonly isUntaken: boolean }

const goesBefore = (one: Candidate, other: Candidate): boolean =>
  one.isUntaken === other.isUntaken ? one.since < other.since : other.isUntaken

/** A request of which nothing more can come never ends: no answer is owed to it before it has come whole, or was cut. */
export function isOwed({ unfinished }: OpenConnection): boolean {
  for (const [{ complete }, { isCut }] of unfinished) if (complete || isCut) return true
  return false
}

/** Nothing has begun there that a merchant's server waits for. */
const isSpared = ({ serving }: OpenConnection): boolean => serving === 0

/** Somebody has pressed a button. */
function isPressed({ unfinished }: OpenConnection): boolean {
  for (const { method } of unfinished.keys()) if (method === 'POST') return true
  return false
}

/** Who has no more connections is no crowd where somebody has pressed a button: he would not know what became of it. */
const pressedMost = 16

const isTokenless = ({ unfinished, tokenless }: OpenConnection): boolean => tokenless === unfinished.size

/** One of a proxy is told, which it can be only of a request by itself that is no more than half sent. An answer that is made, and that nobody takes, spares nobody. */
const mayGo = (one: OpenConnection): boolean =>
  one.tokenless > 0 && (isOfProxy(one) ? one.unfinished.size === 1 && !isOwed(one) : isSpared(one) || one.untaken > 0)

function asksMore(one: OpenConnection, other: OpenConnection): boolean {
  if (one.tokenless !== other.tokenless) return one.tokenless > other.tokenless
  return isWaitedFor(one) === isWaitedFor(other) ? one.idleSince < other.idleSince : isWaitedFor(other)
}

/** Somebody waits for an answer there, and takes it. */
export const isWaitedFor = (one: OpenConnection): boolean => isOwed(one) && one.stuckSince === undefined

/** A trusted proxy's: many callers ask on it. */
export const isOfProxy = ({ names }: OpenConnection): boolean => isProxys(names)

/** A request comes so soon on a connection that was opened for it. */
export const arrivalSeconds = 1

export type Room = {
  readonly newcomers: Places
  readonly strangers: Places
  readonly servers: Places
  /** Who makes room for one more of this network; nobody where there is room. False = nobody, and there is none. */
  whoGoes(place: Place): OpenConnection | undefined | false
  /** Who holds most bytes. */
  mostHeld(what: 'kept' | 'untaken'): OpenConnection
  /** Of a network in which too much is asked without a token, or of the wide one in which there is: on which most of that is, unfinished; of several that on which nothing has come whole, for longest. */
  fullest(network: CallerNetwork<OpenConnection>): OpenConnection | undefined
}

/** Bytes of requests that a merchant's network may have more than any other before one of its connections goes: strangers' lie there for long, his burst for a moment. */
export const merchantsBytes = 4 * 1024 * 1024

export function makeRoom(clock: Clock, callers: Networks<OpenConnection>, isMerchants: (names: NetworkNames) => boolean): Room {
  const placesFor = (most: number): Places => ({ most, networks: countNetworks() })
  const servers = placesFor(serversMost)

  function whoGoes({ among, network }: Place): OpenConnection | undefined | false {
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
      for (const one of network.asking) {
        const held = one[what] * (1 + now - one[`${what}Since`])
        if (held <= own) continue
        own = held
        most = one
      }
    }
    return most!
  }

  function fullest(crowded: CallerNetwork<OpenConnection>): OpenConnection | undefined {
    const circle = crowdedCircle(crowded, 'tokenless')
    let found: OpenConnection | undefined
    for (const network of callers.all()) {
      if (!network.circles.includes(circle)) continue
      for (const one of network.asking) if (mayGo(one) && (!found || asksMore(one, found))) found = one
    }
    return found
  }

  return { newcomers: placesFor(newcomersMost), strangers: placesFor(connectionsMost), servers, whoGoes, mostHeld, fullest }
}
