// A port of this machine that nobody listens on, for programs that cannot choose one themselves.

import { randomInt } from 'node:crypto'
import net from 'node:net'

/** Below those that systems give to whoever asks for any: one of these may be given to another program before ours begins to listen. */
const [from, to] = [10_000, 32_000]

export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(from, to)
    const server = net.createServer()
    const isFree = await new Promise<boolean>(resolve => {
      server.once('error', () => resolve(false))
      server.listen(port, '127.0.0.1', () => resolve(true))
    })
    if (!isFree) continue
    await new Promise(resolve => server.close(resolve))
    return port
  }
}
