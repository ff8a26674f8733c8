// Figures for the operator, in the text format of Prometheus, on a port of their own. Every room registers its own in one registry. Every label has few
// values: never an id or a URL.

import { hash, timingSafeEqual } from 'node:crypto'
import http from 'node:http'
import type { Socket } from 'node:net'
import { Counter, collectDefaultMetrics, Registry } from 'prom-client'
import type { Log } from './log.ts'

/** Figures that are asked for at a scrape, not counted as things happen. */
export type Measure = () => Promise<void>

export const makeRegistry = (): Registry => new Registry()

/** A figure that only grows, one for each value of its label. */
export function countBy<Label extends string>(
  registry: Registry,
  name: string,
  help: string,
  label: string,
): (value: Label) => void {
  const counter = new Counter({ name, help, labelNames: [label], registers: [registry] })
  return value => counter.inc({ [label]: value })
}

/** Compared as hashes: the time that it takes tells nothing of what is right. */
const isSame = (sent: string | undefined, right: string): boolean =>
  timingSafeEqual(hash('sha256', sent ?? '', 'buffer'), hash('sha256', right, 'buffer'))

const connectionsMost = 64

/** `token`: who reads sends it; absent = nobody is asked. */
export async function serveMetrics(
  registry: Registry,
  measures: readonly Measure[],
  log: Log,
  { port, host, token }: { readonly port: number; readonly host: string; readonly token: string | undefined },
): Promise<{ port: number; stop(): Promise<void> }> {
  collectDefaultMetrics({ register: registry })
  // Many who ask at once are told the same, and nobody asks twice on one connection.
  let reading: Promise<string> | undefined
  const read = () => {
    reading ??= Promise.all(measures.map(measure => measure()))
      .then(() => registry.metrics())
      .finally(() => {
        reading = undefined
      })
    return reading
  }
  const server = http.createServer(
    { headersTimeout: 10_000, requestTimeout: 10_000, connectionsCheckingInterval: 2_000 },
    (request, response) => {
      response.setHeader('Connection', 'close')
      if (request.url?.split('?')[0] !== '/metrics') return void response.writeHead(404).end()
      if (token !== undefined && !isSame(request.headers.authorization, `Bearer ${token}`))
        return void response.writeHead(401, { 'WWW-Authenticate': 'Bearer' }).end()
      read().then(
        text => response.writeHead(200, { 'Content-Type': registry.contentType }).end(text),
        (error: Error) => {
          log.warn({ why: error.message }, 'metrics could not be read')
          response.writeHead(500).end()
        },
      )
    },
  )
  // One more takes the place of that which is there for longest: whoever says nothing keeps nobody out.
  const sockets = new Set<Socket>()
  server.on('connection', socket => {
    socket.once('close', () => sockets.delete(socket))
    if (sockets.add(socket).size > connectionsMost) sockets.values().next().value!.destroy()
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  const address = server.address()
  return {
    port: typeof address === 'object' && address ? address.port : port,
    stop: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
