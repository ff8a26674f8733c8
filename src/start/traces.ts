// The traces of a process, where a collector is named.

import type { ServerOptions } from '../http/server.ts'
import { buildNumber } from '../platform/build.ts'
import { countBy, type Figure } from '../platform/metrics.ts'
import { sendSpans } from '../platform/otlp.ts'
import { type Tracer, tracer } from '../platform/traces.ts'
import type { Parts } from './serve.ts'

export type RequestTraces = {
  readonly tracer: Tracer
  readonly figures: readonly Figure[]
  readonly request: NonNullable<ServerOptions['trace']>
  /** Sends what waits. */
  stop(): Promise<void>
}

export function tracesOf({
  config,
  clock,
  random,
  log,
}: Pick<Parts, 'config' | 'clock' | 'random' | 'log'>): RequestTraces | undefined {
  if (!config.traces) return undefined
  const { collector, share } = config.traces
  const figures: Figure[] = []
  const count = countBy(figures, 'tollgate_spans_total', 'Spans by how they ended.', 'ended', ['sent', 'dropped', 'refused'])
  const sender = sendSpans(collector, buildNumber().split('@')[1]!, clock, log, count)
  const traced = tracer(clock, random, share, sender.send)
  return {
    tracer: traced,
    figures,
    request: ({ name }, { method, number, headers }, work) =>
      traced.request(
        headers.traceparent,
        {
          name: `${method} ${name}`,
          kind: 'server',
          attributes: { 'http.request.method': method, 'http.route': name, 'tollgate.request': number },
          tells: ({ status }) => ({ 'http.response.status_code': status }),
        },
        async () => work(),
      ),
    stop: sender.stop,
  }
}
