// What the links to acquirers show the operator.

import type { Figure, FigureValue } from '../../platform/metrics.ts'

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

export const figuresOfAcquirers = (read: () => AcquirerMetrics): readonly Figure[] => [
  {
    kind: 'counter',
    name: 'tollgate_route_messages_total',
    help: 'Messages of payments by mode, acquirer and how they ended; `tookOver`: nothing could be sent to the acquirer before.',
    read: () =>
      read().routes.flatMap(({ mode, acquirer, counts }) =>
        Object.entries(counts).map(([event, count]): FigureValue => [{ mode, acquirer, event }, count]),
      ),
  },
  {
    kind: 'counter',
    name: 'tollgate_line_events_total',
    help: 'What happened on each line to an acquirer.',
    read: () =>
      read().lines.flatMap(({ acquirer, line, counts }) =>
        Object.entries(counts).map(([event, count]): FigureValue => [{ acquirer, line, event }, count]),
      ),
  },
  {
    kind: 'gauge',
    name: 'tollgate_line_up',
    help: 'Whether a line to an acquirer can carry messages; of several processes, in all of them.',
    across: 'min',
    read: () => read().lines.map(({ acquirer, line, up }) => [{ acquirer, line }, up ? 1 : 0]),
  },
  {
    kind: 'gauge',
    name: 'tollgate_line_in_flight',
    help: 'Messages under way on a line to an acquirer.',
    read: () => read().lines.map(({ acquirer, line, inFlight }) => [{ acquirer, line }, inFlight]),
  },
]
