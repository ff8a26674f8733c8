// Who makes room where there are no places, or no bytes, for all.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Clock } from '../platform/clock.ts'
import { type CallerNetwork, crowdedCircle, crowdOf, freshMost, type Networks, restingMost, spareCrowd } from './networks.ts'
import { isProxys, type NetworkNames } from './rates.ts'

/** Connections to one process, and of these from one network that is no trusted proxy. One more takes the place of one to which nothing is owed, or whose answer nobody takes. */
export const connectionsMost = 4096
export const networkConnectionsMost = 1024
/** More than these at a merchant's address, of whom a token is then wanted. */
export const guestsMost = 128
export type OpenConnection = {
  socket: Socket
  /** Whose place it takes: of trusted proxies it is that of all their callers. */
  readonly network: CallerNetwork<OpenConnection>
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
  /** Its last answer was a merchant's server's, who has asked nothing since, and may any moment. */
  isKept: boolean
  /** It came to a merchant's address where there was no place, and is closed unless it is asked on with a token. */
  isGuest: boolean
  /** It was opened just now, and nothing was asked on it. */
  isFresh: boolean
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
export const isOfProxy = ({ network }: OpenConnection): boolean => isProxys(network.names)

/** A request comes so soon on a connection that was opened for it. */
export const arrivalSeconds = 1

type ConnectionPlace = { readonly goes?: Socket; readonly isGuest: boolean }

export type Room = {
  /** For a new connection of this network. Undefined = there is none. `goes`: whose it takes. */
  placeFor(newcomer: CallerNetwork<OpenConnection>): ConnectionPlace | undefined
  /** Who holds most bytes. */
  mostHeld(what: 'kept' | 'untaken'): OpenConnection
  /** Of a network in which too much is asked without a token, or of the wide one in which there is: on which most of that is, unfinished; of several that on which nothing has come whole, for longest. */
  fullest(network: CallerNetwork<OpenConnection>): OpenConnection | undefined
}

/** Bytes of requests that a merchant's network may have more than any other before one of its connections goes: strangers' lie there for long, his burst for a moment. */
export const merchantsBytes = 4 * 1024 * 1024

export function makeRoom(clock: Clock, networks: Networks<OpenConnection>, isMerchants: (names: NetworkNames) => boolean): Room {
  function placeFor(newcomer: CallerNetwork<OpenConnection>): ConnectionPlace | undefined {
    const { connections, guests, share } = newcomer.circles[0]!
    const isCrowd = connections / share >= networkConnectionsMost
    const isFull = networks.sum('connections') >= connectionsMost
    if (!isCrowd && !isFull) return { isGuest: false }
    const goes = whoGoes(newcomer, isCrowd)
    if (goes) return { goes, isGuest: false }
    if (!isMerchants(newcomer.names)) return undefined
    const isOneMore = guests < guestsMost
    if (isOneMore && !isFull) return { isGuest: true }
    const other = isOneMore ? idleElsewhere(newcomer) : oldestWaiting(newcomer, ({ isGuest }) => isGuest)
    return other && { goes: other.one.socket, isGuest: true }
  }

  function whoGoes(newcomer: CallerNetwork<OpenConnection>, isCrowd: boolean): Socket | undefined {
    const found = isProxys(newcomer.names) ? proxiedWhoGoes(newcomer) : undefined
    return (found ?? largestWhoGoes(newcomer, isCrowd))?.one.socket
  }

  /** Of the largest crowd: who has waited for longest without an answer being owed, else who takes none of his for longest; that one only for
   * somebody of the same network, or of one with fewer connections. For the latter also one who only stands in line, or a browser. */
  function largestWhoGoes(newcomer: CallerNetwork<OpenConnection>, isCrowd: boolean): Candidate | undefined {
    // Whoever has more connections makes no room for himself by those of others; those on which a merchant's server waits are no crowd.
    const own = spareCrowd(newcomer)
    let largest = own
    let first: Candidate | undefined
    for (const network of isCrowd ? [newcomer] : networks.all()) {
      const crowd = spareCrowd(network)
      if (crowd < largest) continue
      const isLarger = network !== newcomer && crowd > own
      const found = network === newcomer ? (oldestStranger(network) ?? longestUntaken(network)) : otherWhoGoes(network, isLarger)
      if (!found || (first && crowd === largest && !goesBefore(found, first))) continue
      largest = crowd
      first = found
    }
    return first
  }

  function otherWhoGoes(network: CallerNetwork<OpenConnection>, isLarger: boolean): Candidate | undefined {
    const stranger = oldestStranger(network)
    if (stranger || !isLarger) return stranger
    const isCrowd = spareCrowd(network) > pressedMost
    const isMeant = (one: OpenConnection) => isCrowd || !isPressed(one)
    return (
      longestUntaken(network) ??
      firstSpared(network.owed, one => isTokenless(one) && isMeant(one)) ??
      firstSpared(network.owed, isMeant) ??
      oldestWaiting(network)
    )
  }

  /**
   * Who has waited for longest without an answer being owed. What a merchant keeps at his own address, or asks there with his token, and whoever has just come is not the first to go: some of what
   * he keeps and of those who come, and for as long as a body may be behind its head.
   */
  function oldestStranger(network: CallerNetwork<OpenConnection>): Candidate | undefined {
    if (!isMerchants(network.names)) return oldestWaiting(network)
    const { fresh, resting } = network.circles[0]!
    const since = clock.elapsed() - arrivalSeconds * 1000
    return oldestWaiting(network, one =>
      one.isKept ? resting > restingMost : one.isFresh ? fresh > freshMost : isTokenless(one) || one.keptSince <= since,
    )
  }

  /** Nothing is owed there, and no merchant's server asks again on it. */
  function idleElsewhere(newcomer: CallerNetwork<OpenConnection>): Candidate | undefined {
    let largest = 0
    let found: Candidate | undefined
    for (const network of networks.all()) {
      const crowd = spareCrowd(network)
      if (network === newcomer || crowd <= largest) continue
      const idle = oldestStranger(network)
      if (!idle) continue
      largest = crowd
      found = idle
    }
    return found
  }

  function oldestWaiting(
    { waiting }: CallerNetwork<OpenConnection>,
    isMeant = (_: OpenConnection) => true,
  ): Candidate | undefined {
    for (const one of waiting) if (!isOwed(one) && isMeant(one)) return { one, since: one.idleSince, isUntaken: false }
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
    for (const network of networks.all()) {
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
    for (const network of networks.all()) {
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
    for (const network of networks.all()) {
      if (!network.circles.includes(circle)) continue
      for (const one of network.asking) if (mayGo(one) && (!found || asksMore(one, found))) found = one
    }
    return found
  }

  return { placeFor, mostHeld, fullest }
}
