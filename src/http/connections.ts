// What one connection may cost: requests that wait for their answers, answers that nobody takes, and time in which nothing is asked. A connection counts
// from its first moment: under TLS the raw socket is watched while the handshake goes on, and ended when that takes too long.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Clock } from '../platform/clock.ts'
import { addTo } from '../platform/counts.ts'
import { networkShare, networksAround } from '../platform/network.ts'
import { endParsing, lackOf, stopParsing } from '../platform/parsing.ts'

/** Requests of one connection that wait for their answers; one more closes it. */
export const unfinishedMost = 32
/** A longer answer is given in pieces: whoever takes each of them in time may take the whole as slowly as his line does. */
export const pieceBytes = 1024 * 1024
/** Connections to one process, and of these from one network that is no trusted proxy. One more takes the place of one to which nothing is owed, or whose answer nobody takes. */
export const connectionsMost = 4096
export const networkConnectionsMost = 1024
/** What comes through trusted proxies is of so many callers at least: a network of its own with more connections than one of these goes before. */
const callersOfProxies = 16
/** Requests of one such network that wait for their answers; one more closes its connection. A crowd of them stands in every turn of the event loop. */
export const networkUnfinishedMost = 1024
/** Bytes of bodies whose requests have not begun: they have not come whole, or wait for their turn. More closes the connection with most of them, of the network that has most, counted by how long they have been there. */
export const unfinishedBytesMost = 64 * 1024 * 1024
/** Bytes of answers that are made and not taken yet. More closes the connection with most of them, of the network that has most, counted by how long it has taken none. */
export const untakenBytesMost = 64 * 1024 * 1024
/** Pieces of bodies by what they lack, of a network in a second. Proxies pass on more, of several callers, of whom each has half when these are too many. */
const smallPiecesMost = { network: 8192, crowded: 4096, proxies: 65_536 }
/** Requests of one connection one after the other: the last answer closes it. Node’s own limit closes nothing, and answers what goes beyond it without a word to us. */
export const requestsMost = 10_000
/** Where answers are owed to all. */
export const maxima = { maxConnections: connectionsMost + 64 }

/** Seconds. Node ends a connection on which nothing comes; these end one that is kept busy with nothing. */
export type Patience = {
  readonly answerSeconds: number
  readonly idleSeconds: number
  readonly handshakeSeconds: number
  readonly lookEverySeconds: number
}

const standard: Patience = { answerSeconds: 60, idleSeconds: 70, handshakeSeconds: 10, lookEverySeconds: 2 }

export type Connections = {
  opened(socket: Socket): void
  /** A raw socket on which TLS is to be spoken: it has so long for the handshake. */
  begun(socket: Socket): void
  /** TLS stands on `raw`: what is asked and answered goes through this socket from now on. */
  secured(socket: Socket, raw: Socket | undefined): void
  /** Counts a request until its answer is gone, which must be taken piece by piece, each in time. False = one too many: the connection is closed. */
  asked(incoming: IncomingMessage, outgoing: ServerResponse): boolean
  /** Its answer is made, and has so many bytes. */
  answers(incoming: IncomingMessage, bytes: number): void
  /** One more piece of a body has come, or a record of TLS without anything, sent by `caller`, who is another than the socket's end behind a proxy. False = too many small
   * ones of his network in this second: the connection is closed. */
  takes(socket: Socket, bytes: number, caller: () => string): boolean
  /** So many bytes of its body have come, or will not be needed. */
  keeps(incoming: IncomingMessage, bytes: number): void
  /** Its body has come whole, and is kept until it begins. */
  waits(incoming: IncomingMessage, body: string): void
  /** The body of a request whose turn has come; undefined when its connection was closed meanwhile, and the body let go. */
  begins(incoming: IncomingMessage): string | undefined
  /** Are answers owed on this connection, to requests that have come whole? Then what is said about it has to wait. */
  isOwed(socket: Socket): boolean
  /** Takes nothing more, and closes the connection as soon as nothing is owed, or when that takes too long; one that cannot be spoken on, at once. */
  closeSoon(socket: Socket): void
  /** Closes those on which TLS does not stand yet, or all of them. */
  closeAll(which: 'unsecured' | 'every'): void
  stop(): void
}

type OpenConnection = {
  readonly network: string
  /** That, and those around it: many are given a /56 or a /48 of IPv6. */
  readonly around: readonly string[]
  /** Bytes of bodies whose requests have not begun, and since when there are any. */
  bytes: number
  bytesSince: number
  /** Since when it has taken no answer of those that are made. */
  untakenSince: number
  /** Requests whose answers are not gone, with the bytes of those that are made. */
  readonly unfinished: Map<IncomingMessage, number>
  /** Of those that have come whole. */
  readonly bodies: Map<IncomingMessage, string>
  requests: number
  idleSince: number
  stuckSince: number | undefined
  endsBefore: number | undefined
}

/** Who may go, and since when nothing has happened there. */
type Candidate = { readonly socket: Socket; readonly since: number; readonly isUntaken: boolean }

function untakenBy({ unfinished }: OpenConnection): number {
  let sum = 0
  for (const bytes of unfinished.values()) sum += bytes
  return sum
}

/** A request of which nothing more can come never ends: no answer is owed to it before it has come whole. */
function isOwed({ unfinished }: OpenConnection): boolean {
  for (const { complete } of unfinished.keys()) if (complete) return true
  return false
}

/** So long a caller may take in what was said last. */
const lingerSeconds = 5

/** `isShared`: may many callers come from this address? */
export function watchConnections(
  clock: Clock,
  { answerSeconds, idleSeconds, handshakeSeconds, lookEverySeconds }: Patience = standard,
  isShared: (address: string) => boolean = () => false,
): Connections {
  const connections = new Map<Socket, OpenConnection>()
  const fromNetwork = new Map<string, number>()
  const unfinishedOf = new Map<string, number>()
  /** What small pieces lack together, by network, in this second. */
  const smallPieces = new Map<string, number>()
  let bytesKept = 0
  let bytesUntaken = 0
  /** Raw sockets on which TLS does not stand yet. */
  const unsecured = new Set<Socket>()

  const second = clock.every(1000, () => smallPieces.clear())
  const timer = clock.every(lookEverySeconds * 1000, () => {
    const now = clock.elapsed()
    for (const [socket, one] of connections) {
      one.stuckSince = socket.writableLength === 0 ? undefined : (one.stuckSince ?? now)
      const isStuck = one.stuckSince !== undefined && now - one.stuckSince > answerSeconds * 1000
      const isIdle = one.unfinished.size === 0 && now - one.idleSince > idleSeconds * 1000
      const isOver = one.endsBefore !== undefined && now > one.endsBefore
      if (isStuck || isIdle || isOver) socket.destroy()
    }
  })

  /** All callers of a proxy come from its network: what they have together says nothing of one of them. */
  const aroundOf = (address: string): readonly string[] => (isShared(address) ? [''] : networksAround(address))

  function opened(socket: Socket): OpenConnection {
    const around = aroundOf(socket.remoteAddress ?? '')
    const network = around[0]!
    const ofNetwork = fromNetwork.get(network) ?? 0
    const isCrowd = network !== '' && ofNetwork >= networkConnectionsMost
    if (isCrowd || connections.size >= connectionsMost) drop(whoGoes(around, isCrowd) ?? socket)
    const one: OpenConnection = {
      network,
      around,
      bytes: 0,
      bytesSince: 0,
      untakenSince: 0,
      unfinished: new Map(),
      bodies: new Map(),
      requests: 0,
      idleSince: clock.elapsed(),
      stuckSince: undefined,
      endsBefore: undefined,
    }
    connections.set(socket, one)
    for (const each of around) addTo(fromNetwork, each, 1)
    socket.once('close', () => forget(socket))
    return one
  }

  function forget(socket: Socket): void {
    const one = connections.get(socket)
    if (!one) return
    connections.delete(socket)
    bytesKept -= one.bytes
    one.bytes = 0
    one.bodies.clear() // those who wait for their turn hold the connection
    for (const incoming of one.unfinished.keys()) answered(one, incoming)
    for (const each of one.around) addTo(fromNetwork, each, -1)
  }

  function answered(one: OpenConnection, incoming: IncomingMessage): void {
    const bytes = one.unfinished.get(incoming)
    if (bytes === undefined) return
    one.unfinished.delete(incoming)
    addTo(unfinishedOf, one.network, -1)
    bytesUntaken -= bytes
    one.untakenSince = clock.elapsed()
  }

  /** Of a wide network as many as are of one address, by how many addresses it counts for. */
  const crowdOf = (around: readonly string[]): number =>
    Math.max(
      ...around.map(network => (fromNetwork.get(network) ?? 0) / (network === '' ? callersOfProxies : networkShare(network))),
    )

  /** Of the largest crowd: who has waited for longest without an answer being owed, else who takes none of his for longest; that one only for
   * somebody of the same network, or of one with fewer connections. */
  function whoGoes(newcomer: readonly string[], isCrowd: boolean): Socket | undefined {
    const now = clock.elapsed()
    const own = crowdOf(newcomer)
    const crowds = new Map<string, number>()
    const ofNetworks = new Map<string, Candidate>()
    for (const [socket, one] of connections) {
      const { network, around, idleSince, stuckSince = socket.writableLength > 0 ? now : undefined } = one
      if (isCrowd && network !== newcomer[0]) continue
      const crowd = crowds.get(network) ?? crowdOf(around)
      crowds.set(network, crowd)
      const isUntaken = isOwed(one)
      const since = isUntaken ? stuckSince : idleSince
      if (since === undefined || (isUntaken && network !== newcomer[0] && crowd <= own)) continue
      const found = ofNetworks.get(network)
      const isFirst = !found || (found.isUntaken === isUntaken ? since < found.since : found.isUntaken)
      if (isFirst) ofNetworks.set(network, { socket, since, isUntaken })
    }
    const [first] = [...ofNetworks].sort(([a], [b]) => crowds.get(b)! - crowds.get(a)!)
    return first?.[1].socket
  }

  /** Of the network that holds most, wide ones too, who holds most, counted by how long: what has just come is on its way. */
  function mostHeld(heldBy: (one: OpenConnection) => number, since: (one: OpenConnection) => number): Socket {
    const now = clock.elapsed()
    const held = new Map<string, number>()
    for (const one of connections.values()) for (const network of one.around) addTo(held, network, heldBy(one))
    let most: { readonly socket: Socket; readonly together: number; readonly own: number } | undefined
    for (const [socket, one] of connections) {
      const together = Math.max(...one.around.map(network => (held.get(network) ?? 0) / networkShare(network)))
      const own = heldBy(one) * (1 + now - since(one))
      if (own > 0 && (!most || together > most.together || (together === most.together && own > most.own)))
        most = { socket, together, own }
    }
    return most!.socket
  }

  function drop(socket: Socket): void {
    forget(socket)
    endParsing(socket)
  }

  function keeps({ socket }: IncomingMessage, bytes: number): void {
    const one = connections.get(socket)
    if (!one) return
    if (one.bytes === 0) one.bytesSince = clock.elapsed()
    one.bytes += bytes
    bytesKept += bytes
    if (bytesKept <= unfinishedBytesMost) return
    const most = mostHeld(
      ({ bytes }) => bytes,
      ({ bytesSince }) => bytesSince,
    )
    drop(most)
  }

  function answers(incoming: IncomingMessage, bytes: number): void {
    const one = connections.get(incoming.socket)
    if (!one?.unfinished.has(incoming)) return
    if (untakenBy(one) === 0) one.untakenSince = clock.elapsed()
    one.unfinished.set(incoming, bytes)
    bytesUntaken += bytes
    if (bytesUntaken > untakenBytesMost) drop(mostHeld(untakenBy, ({ untakenSince }) => untakenSince))
  }

  function closeSoon(socket: Socket): void {
    stopParsing(socket)
    const one = connections.get(socket)
    if (one) one.endsBefore = clock.elapsed() + (isOwed(one) ? answerSeconds : lingerSeconds) * 1000
    else socket.destroy()
  }

  return {
    opened,
    begun(socket) {
      opened(socket).endsBefore = clock.elapsed() + handshakeSeconds * 1000
      unsecured.add(socket)
      socket.once('close', () => unsecured.delete(socket))
    },
    secured(socket, raw) {
      const one = raw && connections.get(raw)
      if (!one) return void socket.destroy() // it is closed already
      unsecured.delete(raw)
      connections.delete(raw)
      connections.set(socket, one)
      one.endsBefore = undefined
      one.idleSince = clock.elapsed()
      socket.once('close', () => forget(socket))
    },
    asked(incoming, outgoing) {
      const { socket } = incoming
      const one = connections.get(socket) ?? opened(socket)
      if (one.endsBefore !== undefined) return false
      if (++one.requests > requestsMost) {
        closeSoon(socket)
        return false
      }
      if (one.requests === requestsMost) outgoing.shouldKeepAlive = false
      const { network } = one
      if (
        one.unfinished.size >= unfinishedMost ||
        (network !== '' && (unfinishedOf.get(network) ?? 0) >= networkUnfinishedMost)
      ) {
        endParsing(socket)
        return false
      }
      one.unfinished.set(incoming, 0)
      addTo(unfinishedOf, network, 1)
      outgoing.on('drain', () => {
        one.stuckSince = undefined
        one.untakenSince = clock.elapsed()
      })
      outgoing.once('close', () => {
        answered(one, incoming)
        one.idleSince = clock.elapsed()
        if (one.endsBefore !== undefined && !isOwed(one)) socket.end()
      })
      return true
    },
    answers,
    takes(socket, bytes, caller) {
      const one = connections.get(socket)
      if (!one) return false
      const lacks = lackOf(bytes)
      if (lacks === 0) return true
      const isProxied = one.network === ''
      // Then who has few of them is not the one that is closed.
      const isCrowded = isProxied && addTo(smallPieces, '', lacks) > smallPiecesMost.proxies
      const ofOne = isCrowded ? smallPiecesMost.crowded : smallPiecesMost.network
      let isOver = false
      for (const network of isProxied ? aroundOf(caller()) : one.around)
        if (network === '' ? isCrowded : addTo(smallPieces, network, lacks) > ofOne * networkShare(network)) isOver = true
      if (isOver) endParsing(socket)
      return !isOver
    },
    keeps,
    waits(incoming, body) {
      connections.get(incoming.socket)?.bodies.set(incoming, body)
    },
    begins(incoming) {
      const bodies = connections.get(incoming.socket)?.bodies
      const body = bodies?.get(incoming)
      bodies?.delete(incoming)
      keeps(incoming, -(body?.length ?? 0))
      return body
    },
    isOwed(socket) {
      const one = connections.get(socket)
      return one !== undefined && isOwed(one)
    },
    closeSoon,
    closeAll(which) {
      for (const socket of [...(which === 'every' ? connections.keys() : unsecured)]) socket.destroy()
    },
    stop() {
      timer.cancel()
      second.cancel()
    },
  }
}
