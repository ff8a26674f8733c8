// A connection that the other side ends.

import type { Socket } from 'node:net'

/** When it is closed. A reset is an end like any other here: `once` of node:events rejects with it. */
export const ended = (socket: Socket): Promise<void> =>
  new Promise(resolve => {
    socket.on('error', () => {}).once('close', () => resolve())
  })
