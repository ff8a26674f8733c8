// The other side of a connection that sends without an end, and how much of it this process reads.

import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { createServer, type Socket } from 'node:net'

export type Flood = {
  readonly port: number
  /** What the connections have read that this process has made since. */
  bytesRead(): number
  /** How many of them are open, as the other side sees it. */
  open(): number
  stop(): void
}

/** Says `first`, and `more` again and again. */
export async function startFlood(first: Buffer, more: Buffer): Promise<Flood> {
  const sockets = new Set<Socket>()
  const made: Socket[] = []
  const note = (message: unknown) => void made.push((message as { socket: Socket }).socket)
  subscribe('net.client.socket', note)
  const server = createServer(socket => {
    const pour = () => {
      while (socket.writable && socket.write(more));
    }
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    socket.on('drain', pour)
    socket.resume()
    socket.write(first)
    pour()
  })
  await new Promise<void>(ready => server.listen(0, '127.0.0.1', ready))
  return {
    port: (server.address() as { port: number }).port,
    bytesRead: () => made.reduce((all, { bytesRead }) => all + bytesRead, 0),
    open: () => sockets.size,
    stop: () => {
      unsubscribe('net.client.socket', note)
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}
