// A socket to a server of somebody else that may send no more than there is room for: the package `ssh2` reads greetings, messages that mean nothing and answers to
// questions that nobody asked as long as they come, and leaves a socket open that it could not make sense of.

import type { Socket } from 'node:net'

/** From each call on the server may send so many bytes, whatever it was allowed before. */
export type Allow = (bytesMost: number) => void

/** `exceeded` hears of the first byte too many, and of each that comes behind it: it ends the connection. */
export function boundSocket(socket: Socket, exceeded: (bytesMost: number) => void): Allow {
  let [bytes, most] = [0, 0]
  socket.on('data', chunk => {
    bytes += chunk.length
    if (bytes > most) exceeded(most)
  })
  return bytesMost => {
    bytes = 0
    most = bytesMost
  }
}
