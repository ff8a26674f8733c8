// Where connections come in. The event loop takes one that waits of each listener in a turn: behind a crowd that opens and closes connections others would wait for as
// many turns as it has, each as long as what the crowd asks. Many listeners of one port have many rows, among which the kernel shares out whoever comes.

import cluster from 'node:cluster'
import { once } from 'node:events'
import net, { BlockList, type Server, type SocketAddress } from 'node:net'

export const listenersMost = 256

export type Listening = { readonly port: number; close(): Promise<void> }

/** Node asks it of each connection before it makes anything for it. */
class Door extends BlockList {
  readonly #admits: (address: string) => boolean

  constructor(admits: (address: string) => boolean) {
    super()
    this.#admits = admits
  }

  override check(address: SocketAddress | string): boolean {
    return typeof address === 'string' && !this.#admits(address)
  }
}

/**
 * Rejects as `listen` does, also when another process has the port in this way. Workers have listeners of their own among those of the others, for whom
 * their primary has looked: what it would give them comes one in a turn.
 */
export async function listen(
  server: Server,
  port: number,
  host: string,
  admits: (address: string) => boolean,
): Promise<Listening> {
  const blockList = new Door(admits)
  const servers = [Object.assign(server, { blockList })]
  const close = async () => {
    // A server of HTTP would cut off what it takes for idle: also answers that are not taken yet, and requests behind them.
    const closeListener = (one: Server) => new Promise<void>(closed => net.Server.prototype.close.call(one, () => closed()))
    await Promise.all(servers.map(closeListener))
  }
  // They would share the port with another gateway of the same user: it must be free before.
  if (!cluster.isWorker && port !== 0) await freePort(host, port)
  if (!(await begin(server, port, host))) {
    await listening(server, { port, host })
    return { port: portOf(server), close }
  }
  while (servers.length < listenersMost) {
    const more = Object.assign(net.createServer(), ofServer(server), { blockList })
    more.on('connection', socket => {
      // Gone before it was taken: nobody was asked about it, for it has no address.
      if (socket.remoteAddress === undefined) socket.destroy()
      else server.emit('connection', socket)
    })
    await listening(more, { port: portOf(server), host, reusePort: true })
    more.on('error', error => server.emit('error', error))
    servers.push(more)
  }
  return { port: portOf(server), close }
}

/** A port that nobody has: any, or this one. */
export async function freePort(host: string, port = 0): Promise<number> {
  const server = await listening(net.createServer(), { port, host })
  const free = portOf(server)
  await new Promise(closed => server.close(closed))
  return free
}

/** False where the system knows no such listeners. */
async function begin(server: Server, port: number, host: string): Promise<boolean> {
  try {
    await listening(server, { port, host, reusePort: true })
    return true
  } catch (error) {
    if (!['ENOTSUP', 'EINVAL', 'ENOPROTOOPT'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    return false
  }
}

async function listening(server: Server, options: net.ListenOptions): Promise<Server> {
  server.listen(options)
  await once(server, 'listening')
  return server
}

const portOf = (server: Server): number => (server.address() as net.AddressInfo).port

/** How a server makes its sockets: it keeps what it was made with. */
function ofServer(server: Server): object {
  const { allowHalfOpen, noDelay, highWaterMark } = server as Server &
    Record<'allowHalfOpen' | 'noDelay' | 'highWaterMark', unknown>
  return { allowHalfOpen, noDelay, highWaterMark }
}
