// Figures for the operator, in the text format of Prometheus, on a port of their own. Every room declares its own; every label has few values: never an
// id or a URL.

import { hash, timingSafeEqual } from 'node:crypto'
import type { Socket } from 'node:net'
import { http } from './http.ts'
import type { Log } from './log.ts'

export type FigureValue = readonly [labels: Readonly<Record<string, string | number>>, value: number]

export type Figure = {
  /** A counter only grows while the process runs. */
  readonly kind: 'counter' | 'gauge'
  readonly name: string
  readonly help: string
  readonly labels?: readonly string[]
  /** As it is now; read at every scrape. */
  read(): readonly FigureValue[]
}

/** Figures that are asked for at a scrape, and read after that. */
export type Measure = { readonly figures: readonly Figure[]; measure(): Promise<void> }

/** A gauge without labels. */
export const gauge = (name: string, help: string, value: () => number): Figure => ({
  kind: 'gauge',
  name,
  help,
  read: () => [[{}, value()]],
})

/** A figure that only grows, one for each value of its label. To count costs no more than a sum: nobody may ever ask. */
export function countBy<Label extends string>(
  figures: Figure[],
  name: string,
  help: string,
  label: string,
): (value: Label) => void {
  const counts = new Map<Label, number>()
  figures.push({
    kind: 'counter',
    name,
    help,
    labels: [label],
    read: () => [...counts].map(([value, count]) => [{ [label]: value }, count]),
  })
  return value => void counts.set(value, (counts.get(value) ?? 0) + 1)
}

/** Compared as hashes: the time that it takes tells nothing of what is right. */
const isSame = (sent: string | undefined, right: string): boolean =>
  timingSafeEqual(hash('sha256', sent ?? '', 'buffer'), hash('sha256', right, 'buffer'))

const connectionsMost = 64

/** `token`: who reads sends it; absent = nobody is asked. */
export async function serveMetrics(
  figures: readonly Figure[],
  measures: readonly Measure[],
  log: Log,
  { port, host, token }: { readonly port: number; readonly host: string; readonly token: string | undefined },
): Promise<{ port: number; stop(): Promise<void> }> {
  const { Counter, collectDefaultMetrics, Gauge, Registry } = await import('prom-client') // most processes never need it
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  for (const { kind, name, help, labels = [], read } of [...figures, ...measures.flatMap(({ figures }) => figures)]) {
    const described = { name, help, labelNames: labels, registers: [registry] }
    if (kind === 'counter')
      new Counter({
        ...described,
        collect() {
          this.reset()
          for (const [of, value] of read()) this.inc(of, value)
        },
      })
    else
      new Gauge({
        ...described,
        collect() {
          this.reset()
          for (const [of, value] of read()) this.set(of, value)
        },
      })
  }
  // Many who ask at once are told the same, and nobody asks twice on one connection.
  let reading: Promise<string> | undefined
  const read = () => {
    reading ??= Promise.all(measures.map(one => one.measure()))
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
