// What the links to acquirers show the operator.

import { Counter, Gauge, type Registry } from 'prom-client'

/** What the links to acquirers have counted by themselves. Labels are names of the operator's file and numbers of lines: few. */
export type AcquirerMetrics = {
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
export function showAcquirers(registry: Registry, read: () => AcquirerMetrics): void {
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
