// A wire to the database that a test can cut, or fall silent on: a TCP proxy in front of the server's socket.

import net, { type AddressInfo, type Socket } from 'node:net'
import { join } from 'node:path'
import type pg from 'pg'

export type Wire = {
  /** How to reach the database through it. */
  readonly connection: pg.PoolConfig
  /** Ends every connection that is open. */
  cut(): void
  /** Keeps every connection, also new ones, and passes nothing on any more. */
  silence(): void
  /** Passes on what had to wait. */
  resume(): void
  /** Lets everything through until a connection sends such a text, and has sent `after` before: then nothing comes back on that one any more. Once. */
  swallowAnswerTo(text: string, after?: string): void
  /** The same, and that one is reset when the answer comes. */
  resetAtAnswerTo(text: string, after?: string): void
  /** Connections made so far. */
  made(): number
  /** Those that are open. */
  open(): number
  close(): Promise<void>
}

export async function wireTo(connection: pg.PoolConfig): Promise<Wire> {
  const pairs = new Set<readonly [Socket, Socket]>()
  let silent = false
  let swallowed: { readonly text: string; readonly after: string; readonly resets?: true } | undefined
  let made = 0
  const reach = () => {
    const { host = '', port = 5432 } = connection
    return host.startsWith('/') ? net.connect(join(host, `.s.PGSQL.${port}`)) : net.connect(port, host)
  }
  const server = net.createServer(near => {
    made++
    const far = reach()
    let hasSent = false
    const pair = [near, far] as const
    pairs.add(pair)
    for (const [from, to] of [pair, [far, near] as const]) {
      from.on('error', () => {})
      from.on('close', () => {
        pairs.delete(pair)
        to.destroy()
      })
      from.on('data', (chunk: Buffer) => {
        if (from === near && swallowed && chunk.includes(swallowed.after)) hasSent = true
        if (from === near && swallowed && hasSent && chunk.includes(swallowed.text)) {
          const { resets } = swallowed
          swallowed = undefined
          far.removeAllListeners('data').resume()
          if (resets) far.once('data', () => near.resetAndDestroy())
        }
        to.write(chunk)
      })
      if (silent) from.pause()
    }
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    connection: { ...connection, host: '127.0.0.1', port: (server.address() as AddressInfo).port },
    cut() {
      for (const [near, far] of pairs) {
        near.destroy()
        far.destroy()
      }
    },
    silence() {
      silent = true
      for (const pair of pairs) for (const socket of pair) socket.pause()
    },
    resume() {
      silent = false
      for (const pair of pairs) for (const socket of pair) socket.resume()
    },
    swallowAnswerTo(text, after = text) {
      swallowed = { text, after }
    },
    resetAtAnswerTo(text, after = text) {
      swallowed = { text, after, resets: true }
    },
    made: () => made,
    open: () => pairs.size,
    async close() {
      for (const [near] of pairs) near.destroy()
      await new Promise(resolve => server.close(resolve))
    },
  }
}
