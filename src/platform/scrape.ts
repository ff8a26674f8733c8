// Reads figures and serves them, in the text format of Prometheus, on a port of their own: those of one process or, added up, of several.

import { hash, timingSafeEqual } from 'node:crypto'
import type { MetricObjectWithValues, MetricValueWithName, Registry } from 'prom-client'
import type { Clock } from './clock.ts'
import { boundConnections, http, takeOnly } from './http.ts'
import type { Log } from './log.ts'
import { countBy, type Figure, type Measure } from './metrics.ts'

/** Figures as they were read, in the form of prom-client. It is plain data, and passes between processes. */
export type FigureReading = MetricObjectWithValues<MetricValueWithName<string>> & { readonly aggregator: string }

/** Something that has figures: a process, or a question to the database. */
export type FigureSource = {
  readonly name: string
  read(): Promise<readonly FigureReading[]>
  /** What counts where it does not answer, or is gone: a sum must not shrink. */
  last?(): readonly FigureReading[]
}

export const readFigure = ({ kind, name, help, across = 'sum', read }: Figure): FigureReading =>
  ({
    name,
    help,
    type: kind,
    aggregator: across,
    values: read().map(([labels, value, part]) => ({ labels, value, ...(part && { metricName: `${name}_${part}` }) })),
  }) as unknown as FigureReading // its type knows the kinds by numbers, its code by names

export const sourceOf = ({ name, figures, measure }: Measure): FigureSource => ({
  name,
  read: () => measure().then(() => figures.map(readFigure)),
})

/** Of several processes the worst counts, where the average would hide it, and the first to start. */
const standardAcross = (name: string): Pick<FigureReading, 'aggregator'> | undefined =>
  name.startsWith('nodejs_eventloop_lag')
    ? { aggregator: 'max' }
    : name === 'process_start_time_seconds'
      ? { aggregator: 'min' }
      : undefined

/** The figures of this process, with those of Node and of the system that everybody knows. */
export async function processSource(figures: readonly Figure[]): Promise<FigureSource> {
  const { collectDefaultMetrics, Registry } = await import('prom-client') // most processes never need it
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  return {
    name: 'process',
    async read() {
      const standard = (await registry.getMetricsAsJSON()) as unknown as FigureReading[]
      return [...standard.map(one => ({ ...one, ...standardAcross(one.name) })), ...figures.map(readFigure)]
    },
  }
}

/** Readings of several sources, those of one name made one. */
export async function together(readings: readonly (readonly FigureReading[])[]): Promise<Registry> {
  const { AggregatorRegistry } = await import('prom-client')
  return AggregatorRegistry.aggregate(readings as never)
}

/** A scrape gives up after ten seconds as a rule. */
const patienceMilliseconds = 3000

/** Reads all sources. One that fails, or does not answer in time, is left out and counted, and keeps no other waiting; nor is it asked again before it has ended. */
export function reader(
  sources: () => readonly FigureSource[],
  clock: Clock,
  log: Log,
  patience = patienceMilliseconds,
): () => Promise<string> {
  const own: Figure[] = []
  const leftOut = countBy(
    own,
    'tollgate_metrics_left_out_total',
    'Sources of figures that did not answer in time, by their names.',
    'source',
  )
  const running = new Map<FigureSource, Promise<readonly FigureReading[]>>()
  const ask = (source: FigureSource): Promise<readonly FigureReading[]> => {
    const asked = running.get(source) ?? source.read().finally(() => running.delete(source))
    running.set(source, asked)
    return new Promise((resolve, reject) => {
      const timer = clock.after(patience, () => reject(new Error('no answer in time')))
      asked.then(resolve, reject).finally(() => timer.cancel())
    })
  }
  const readOne = (source: FigureSource) =>
    ask(source).catch((error: Error) => {
      leftOut(source.name)
      log.warn({ kind: source.name, why: error.message }, 'figures are left out of the metrics')
      return source.last?.() ?? []
    })
  return async () => {
    const readings = await Promise.all(sources().map(readOne))
    return (await together([...readings, own.map(readFigure)])).metrics()
  }
}

/** Compared as hashes: the time that it takes tells nothing of what is right. */
const isSame = (sent: string | undefined, right: string): boolean =>
  timingSafeEqual(hash('sha256', sent ?? '', 'buffer'), hash('sha256', right, 'buffer'))

const connectionsMost = 64
const contentType = 'text/plain; version=0.0.4; charset=utf-8'

export type MetricsServer = { readonly port: number; stop(): Promise<void> }

/** `token`: who reads sends it; absent = nobody is asked. */
export async function serveMetrics(
  readAll: () => Promise<string>,
  log: Log,
  { port, host, token }: { readonly port: number; readonly host: string; readonly token: string | undefined },
): Promise<MetricsServer> {
  // Many who ask at once are told the same, and nobody asks twice on one connection.
  let reading: Promise<string> | undefined
  const read = () => {
    reading ??= readAll().finally(() => {
      reading = undefined
    })
    return reading
  }
  const server = http.createServer(
    { headersTimeout: 10_000, requestTimeout: 10_000, connectionsCheckingInterval: 2_000 },
    (request, response) => {
      takeOnly(request, response)
      if (request.url?.split('?')[0] !== '/metrics') return void response.writeHead(404).end()
      if (token !== undefined && !isSame(request.headers.authorization, `Bearer ${token}`)) {
        log.warn({ status: 401, address: request.socket.remoteAddress ?? '' }, 'a caller of the metrics was turned away')
        return void response.writeHead(401, { 'WWW-Authenticate': 'Bearer' }).end()
      }
      read().then(
        text => response.writeHead(200, { 'Content-Type': contentType }).end(text),
        (error: Error) => {
          log.warn({ why: error.message }, 'metrics could not be read')
          response.writeHead(500).end()
        },
      )
    },
  )
  boundConnections(server, connectionsMost)
  await new Promise<void>((resolve, reject) => {
    server.once('error', error => reject(Object.assign(error, { setting: 'METRICS_PORT' })))
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
