// What one connection may cost: requests that wait for their answers, answers that nobody takes, and time in which nothing is asked.

import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Requests of one connection that wait for their answers; one more closes it. */
export const unfinishedMost = 32
/** Connections to one process, and requests of one connection one after the other. */
export const maxima = { maxConnections: 4096, maxRequestsPerSocket: 10_000 }

/** Seconds. Node ends a connection on which nothing comes; these end one that is kept busy with nothing. */
export type Patience = { readonly answerSeconds: number; readonly idleSeconds: number; readonly lookEverySeconds: number }

const standard: Patience = { answerSeconds: 60, idleSeconds: 70, lookEverySeconds: 5 }

export type Connections = {
  opened(socket: Socket): void
  /** Counts a request until its answer is gone. False = one too many: the connection is closed. */
  asked(socket: Socket, outgoing: ServerResponse): boolean
  /** Are answers owed on this connection? Then what is said about it has to wait. */
  isOwed(socket: Socket): boolean
  /** Closes the connection as soon as nothing is owed. */
  closeSoon(socket: Socket): void
  stop(): void
}

type Connection = { unfinished: number; idleSince: number; stuckSince: number | undefined; ending: boolean }

export function watchConnections({ answerSeconds, idleSeconds, lookEverySeconds }: Patience = standard): Connections {
  const connections = new Map<Socket, Connection>()

  const timer = setInterval(() => {
    const now = performance.now()
    for (const [socket, one] of connections) {
      one.stuckSince = socket.writableLength === 0 ? undefined : (one.stuckSince ?? now)
      const isStuck = one.stuckSince !== undefined && now - one.stuckSince > answerSeconds * 1000
      const isIdle = one.unfinished === 0 && now - one.idleSince > idleSeconds * 1000
      if (isStuck || isIdle) socket.destroy()
    }
  }, lookEverySeconds * 1000).unref()

  function opened(socket: Socket): Connection {
    const one: Connection = { unfinished: 0, idleSince: performance.now(), stuckSince: undefined, ending: false }
    connections.set(socket, one)
    socket.once('close', () => connections.delete(socket))
    return one
  }

  return {
    opened,
    asked(socket, outgoing) {
      const one = connections.get(socket) ?? opened(socket)
      if (one.ending) return false
      if (one.unfinished >= unfinishedMost) {
        socket.destroy()
        return false
      }
      one.unfinished++
      outgoing.once('close', () => {
        one.unfinished--
        one.idleSince = performance.now()
        if (one.ending && one.unfinished === 0) socket.end()
      })
      return true
    },
    isOwed: socket => (connections.get(socket)?.unfinished ?? 0) > 0,
    closeSoon(socket) {
      const one = connections.get(socket)
      if (one) one.ending = true
    },
    stop: () => clearInterval(timer),
  }
}
