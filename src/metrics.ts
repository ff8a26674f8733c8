// Figures for the operator, in the text format of Prometheus, on a port of their own. Every label has few values: never an id or a URL.

import { hash, timingSafeEqual } from 'node:crypto'
import http from 'node:http'
import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import { checkNotifications } from './events/deliveries/check.ts'
import { measureBacklog } from './events/deliveries/store.ts'
import type { Gateway } from './gateway.ts'

export type Count = {
  readonly registry: Registry
  /** The outcome of a payment request, or `refused` when nothing was stored. */
  payment(outcome: string): void
  /** The HTTP status of an answer. */
  request(status: number): void
  /** How an attempt to notify ended. */
  attempt(ended: 'acknowledged' | 'failed' | 'given up'): void
}

export function makeCount(): Count {
  const registry = new Registry()
  const registers = [registry]
  const payments = new Counter({
    name: 'tollgate_payments_total',
    help: 'Payment requests by outcome.',
    labelNames: ['outcome'],
    registers,
  })
  const requests = new Counter({
    name: 'tollgate_http_answers_total',
    help: 'HTTP answers by status.',
    labelNames: ['status'],
    registers,
  })
  const attempts = new Counter({
    name: 'tollgate_notification_attempts_total',
    help: 'Attempts to notify by how they ended.',
    labelNames: ['ended'],
    registers,
  })
  return {
    registry,
    payment: outcome => payments.inc({ outcome }),
    request: status => requests.inc({ status }),
    attempt: ended => attempts.inc({ ended }),
  }
}

/** What the links to acquirers have counted by themselves. Labels are names of the operator's file and numbers of lines: few. */
export type AcquirerFigures = {
  readonly routes: readonly {
    readonly mode: string
    readonly acquirer: string
    readonly counts: Readonly<Record<string, number>>
  }[]
  readonly lines: readonly {
    readonly acquirer: string
    /** 1 is the first. */
    readonly line: number
    readonly up: boolean
    readonly inFlight: number
    readonly counts: Readonly<Record<string, number>>
  }[]
}

/** Read at every scrape: nothing is counted twice. */
function showAcquirers(registry: Registry, read: () => AcquirerFigures): void {
  const registers = [registry]
  new Counter({
    name: 'tollgate_route_messages_total',
    help: 'Messages of payments by mode, acquirer and how they ended; `tookOver`: nothing could be sent to the acquirer before.',
    labelNames: ['mode', 'acquirer', 'event'],
    registers,
    collect() {
      this.reset()
      for (const { mode, acquirer, counts } of read().routes)
        for (const [event, count] of Object.entries(counts)) this.inc({ mode, acquirer, event }, count)
    },
  })
  new Counter({
    name: 'tollgate_line_events_total',
    help: 'What happened on each line to an acquirer.',
    labelNames: ['acquirer', 'line', 'event'],
    registers,
    collect() {
      this.reset()
      for (const { acquirer, line, counts } of read().lines)
        for (const [event, count] of Object.entries(counts)) this.inc({ acquirer, line, event }, count)
    },
  })
  new Gauge({
    name: 'tollgate_line_up',
    help: 'Whether a line to an acquirer can carry messages.',
    labelNames: ['acquirer', 'line'],
    registers,
    collect() {
      for (const { acquirer, line, up } of read().lines) this.set({ acquirer, line }, up ? 1 : 0)
    },
  })
  new Gauge({
    name: 'tollgate_line_in_flight',
    help: 'Messages under way on a line to an acquirer.',
    labelNames: ['acquirer', 'line'],
    registers,
    collect() {
      for (const { acquirer, line, inFlight } of read().lines) this.set({ acquirer, line }, inFlight)
    },
  })
}

/** Compared as hashes: the time that it takes tells nothing of what is right. */
const isSame = (sent: string | undefined, right: string): boolean =>
  timingSafeEqual(hash('sha256', sent ?? '', 'buffer'), hash('sha256', right, 'buffer'))

/** Counting everything ever delivered takes a while: not at every scrape. */
const checkEveryMilliseconds = 60_000

export async function serveMetrics(
  gateway: Gateway,
  port: number,
  host: string,
  acquirers: () => AcquirerFigures,
  token?: string,
): Promise<{ port: number; stop(): Promise<void> }> {
  const { registry } = gateway.count
  const registers = [registry]
  collectDefaultMetrics({ register: registry })
  showAcquirers(registry, acquirers)
  const deliveries = new Gauge({ name: 'tollgate_notifications', help: 'Deliveries by state.', labelNames: ['state'], registers })
  const emitted = new Gauge({
    name: 'tollgate_notifications_emitted',
    help: 'Deliveries ever made, counted where they are made.',
    registers,
  })
  const unaccounted = new Gauge({
    name: 'tollgate_notifications_unaccounted',
    help: 'Emitted, but neither acknowledged, scheduled nor given up; acknowledged without proof; or lost. Anything but 0 is a defect.',
    registers,
  })
  const waiting = new Gauge({ name: 'tollgate_events_waiting', help: 'Events not yet turned into deliveries.', registers })
  const due = new Gauge({ name: 'tollgate_notifications_due', help: 'Deliveries whose time has come.', registers })
  const oldest = new Gauge({
    name: 'tollgate_notifications_backlog_age_seconds',
    help: 'How long the oldest due delivery has waited.',
    registers,
  })
  let checkedAt = Number.NEGATIVE_INFINITY

  async function measure(): Promise<void> {
    const db = gateway.database.work
    const backlog = await measureBacklog(db, gateway.clock.real())
    due.set(backlog.due)
    oldest.set(backlog.oldest / 1000)
    if (performance.now() - checkedAt < checkEveryMilliseconds) return
    const { endpoints, waiting: events } = await checkNotifications(gateway.database.reports)
    checkedAt = performance.now()
    const sum = (pick: (one: (typeof endpoints)[number]) => number) => endpoints.reduce((total, one) => total + pick(one), 0)
    deliveries.set(
      { state: 'acknowledged' },
      sum(one => one.acknowledged),
    )
    deliveries.set(
      { state: 'scheduled' },
      sum(one => one.scheduled),
    )
    deliveries.set(
      { state: 'given up' },
      sum(one => one.givenUp),
    )
    emitted.set(sum(one => one.emitted))
    unaccounted.set(sum(one => Math.abs(one.unaccounted) + one.withoutProof + one.lost))
    waiting.set(events)
  }

  const server = http.createServer((request, response) => {
    if (request.url?.split('?')[0] !== '/metrics') return void response.writeHead(404).end()
    if (token !== undefined && !isSame(request.headers.authorization, `Bearer ${token}`))
      return void response.writeHead(401, { 'WWW-Authenticate': 'Bearer' }).end()
    measure()
      .then(() => registry.metrics())
      .then(
        text => response.writeHead(200, { 'Content-Type': registry.contentType }).end(text),
        (error: Error) => {
          gateway.log.warn({ why: error.message }, 'metrics could not be read')
          response.writeHead(500).end()
        },
      )
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
