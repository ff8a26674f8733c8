// What one connection may cost: requests that wait for their answers, answers that nobody takes, and time in which nothing is asked. A connection counts
// from its first moment: under TLS the raw socket is watched while the handshake goes on, and ended when that takes too long.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Clock } from '../platform/clock.ts'

/** Requests of one connection that wait for their answers; one more closes it. */
export const unfinishedMost = 32
/** Connections to one process, and of these from one address that is no trusted proxy. One more takes the place of that which has been idle for longest. */
export const connectionsMost = 4096
export const addressMost = 1024
/** Where nobody is idle; and requests of one connection one after the other. */
export const maxima = { maxConnections: connectionsMost + 64, maxRequestsPerSocket: 10_000 }

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
  /** TLS stands: what is asked and answered goes through this socket from now on. */
  secured(socket: Socket): void
  /** Counts a request until its answer is gone. False = one too many: the connection is closed. */
  asked(incoming: IncomingMessage, outgoing: ServerResponse): boolean
  /** Are answers owed on this connection, to requests that have come whole? Then what is said about it has to wait. */
  isOwed(socket: Socket): boolean
  /** Takes nothing more, and closes the connection as soon as nothing is owed, or when that takes too long; one that cannot be spoken on, at once. */
  closeSoon(socket: Socket): void
  /** Closes those on which TLS does not stand yet, or all of them. */
  closeAll(which: 'unsecured' | 'every'): void
  stop(): void
}

type OpenConnection = {
  readonly address: string
  readonly unfinished: Set<IncomingMessage>
  idleSince: number
  stuckSince: number | undefined
  endsBefore: number | undefined
}

/** A request of which nothing more can come never ends: no answer is owed to it before it has come whole. */
const isOwed = ({ unfinished }: OpenConnection): boolean => [...unfinished].some(({ complete }) => complete)

/** So long a caller may take in what was said last. */
const lingerSeconds = 5

/** `isShared`: may many callers come from this address? */
export function watchConnections(
  clock: Clock,
  { answerSeconds, idleSeconds, handshakeSeconds, lookEverySeconds }: Patience = standard,
  isShared: (address: string) => boolean = () => false,
): Connections {
  const connections = new Map<Socket, OpenConnection>()
  const fromAddress = new Map<string, number>()
  /** Raw sockets on which TLS does not stand yet, by their two ends: Node tells what stands by another object. */
  const unsecured = new Map<string, Socket>()

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

  function opened(socket: Socket): OpenConnection {
    const address = socket.remoteAddress ?? ''
    const isOneTooMany = !isShared(address) && (fromAddress.get(address) ?? 0) >= addressMost
    if (isOneTooMany) makeRoom(socket, one => one.address === address)
    else if (connections.size >= connectionsMost) makeRoom(socket, () => true)
    const one: OpenConnection = {
      address,
      unfinished: new Set(),
      idleSince: clock.elapsed(),
      stuckSince: undefined,
      endsBefore: undefined,
    }
    connections.set(socket, one)
    fromAddress.set(address, (fromAddress.get(address) ?? 0) + 1)
    socket.once('close', () => forget(socket))
    return one
  }

  function forget(socket: Socket): void {
    const one = connections.get(socket)
    if (!one) return
    connections.delete(socket)
    if (unsecured.get(endsOf(socket)) === socket) unsecured.delete(endsOf(socket))
    const left = fromAddress.get(one.address)! - 1
    if (left > 0) fromAddress.set(one.address, left)
    else fromAddress.delete(one.address)
  }

  /** Closes the connection that has been idle for longest, or the new one where all are busy. */
  function makeRoom(socket: Socket, isMeant: (one: OpenConnection) => boolean): void {
    let longest: [Socket, OpenConnection] | undefined
    for (const [other, one] of connections)
      if (isMeant(one) && one.unfinished.size === 0 && one.idleSince < (longest?.[1].idleSince ?? Number.POSITIVE_INFINITY))
        longest = [other, one]
    const closed = longest?.[0] ?? socket
    forget(closed)
    closed.destroy()
  }

  return {
    opened,
    begun(socket) {
      opened(socket).endsBefore = clock.elapsed() + handshakeSeconds * 1000
      unsecured.set(endsOf(socket), socket)
    },
    secured(socket) {
      const raw = unsecured.get(endsOf(socket))
      const one = raw && connections.get(raw)
      if (!one) return void socket.destroy() // it is closed already
      unsecured.delete(endsOf(socket))
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
      if (one.unfinished.size >= unfinishedMost) {
        socket.destroy()
        return false
      }
      one.unfinished.add(incoming)
      outgoing.once('close', () => {
        one.unfinished.delete(incoming)
        one.idleSince = clock.elapsed()
        if (one.endsBefore !== undefined && !isOwed(one)) socket.end()
      })
      return true
    },
    isOwed(socket) {
      const one = connections.get(socket)
      return one !== undefined && isOwed(one)
    },
    closeSoon(socket) {
      const one = connections.get(socket)
      if (one) one.endsBefore = clock.elapsed() + (isOwed(one) ? answerSeconds : lingerSeconds) * 1000
      else socket.destroy()
    },
    closeAll(which) {
      for (const socket of [...(which === 'every' ? connections.keys() : unsecured.values())]) socket.destroy()
    },
    stop: () => timer.cancel(),
  }
}

const endsOf = ({ remoteAddress, remotePort, localAddress, localPort }: Socket): string =>
  [remoteAddress, remotePort, localAddress, localPort].join(' ')
