// Traces by OpenTelemetry: what a request spent its time with, a span for each step. Absent where nobody wants them, so that they cost nothing then. Spans hold
// named attributes only, as log lines do, and none is made by callers but the ids of a trace that they began.

import { AsyncLocalStorage } from 'node:async_hooks'
import type { Clock, Random } from './clock.ts'
import { scrub } from './log.ts'

/** Named attributes only: whatever a span tells is on this list. The names are those of OpenTelemetry where it has one. */
export type SpanAttributes = {
  readonly 'http.request.method'?: string
  readonly 'http.route'?: string
  readonly 'http.response.status_code'?: number
  /** The number that ends the ndc of the answer and stands in the log. */
  readonly 'tollgate.request'?: string
  readonly 'tollgate.payment'?: string
  readonly 'tollgate.connector'?: string
  readonly 'tollgate.operation'?: string
  readonly 'tollgate.outcome'?: string
}
const shown: ReadonlySet<string> = new Set<keyof SpanAttributes>([
  'http.request.method',
  'http.route',
  'http.response.status_code',
  'tollgate.request',
  'tollgate.payment',
  'tollgate.connector',
  'tollgate.operation',
  'tollgate.outcome',
])

/** The numbers of OpenTelemetry. */
export const spanKinds = { internal: 1, server: 2, client: 3 } as const

/** A span that has ended; times in milliseconds since 1970. */
export type Span = {
  readonly traceId: string
  readonly spanId: string
  readonly parentId?: string
  readonly name: string
  readonly kind: keyof typeof spanKinds
  readonly began: number
  readonly ended: number
  readonly attributes: readonly (readonly [name: string, value: string | number])[]
  readonly failed: boolean
}

type TraceStep<Value> = {
  readonly name: string
  readonly kind: keyof typeof spanKinds
  readonly attributes?: SpanAttributes
  /** What the end adds. */
  tells?(value: Value): SpanAttributes
}

export type Tracer = {
  /** `traceparent` as the caller sent it (W3C Trace Context): a trace that it began goes on here. Perhaps nothing is traced of it. */
  request<Value>(traceparent: string | undefined, step: TraceStep<Value>, work: () => Promise<Value>): Promise<Value>
  /** A step of the request that is traced now, if any is. */
  step<Value>(step: TraceStep<Value>, work: () => Promise<Value>): Promise<Value>
}

type Running = { readonly traceId: string; readonly spanId: string }

/** `share`: which part of the requests is traced, 0 to 1, by chance of our own: ids are the callers'. */
export function tracer(clock: Clock, random: Random, share: number, end: (span: Span) => void): Tracer {
  const running = new AsyncLocalStorage<Running>()
  // One beginning for all spans, so that they stand beside each other as they were.
  const origin = clock.real() - clock.elapsed()
  const hex = (bytes: number) => random.bytes(bytes).toString('hex')

  async function span<Value>(
    { name, kind, attributes = {}, tells }: TraceStep<Value>,
    traceId: string,
    parentId: string | undefined,
    work: () => Promise<Value>,
  ): Promise<Value> {
    const spanId = hex(8)
    const began = origin + clock.elapsed()
    const ended = (more: SpanAttributes, failed: boolean) =>
      end({
        ...{ traceId, spanId, name, kind, began, failed, ended: origin + clock.elapsed() },
        ...(parentId !== undefined && { parentId }),
        attributes: clean({ ...attributes, ...more }),
      })
    try {
      const value = await running.run({ traceId, spanId }, work)
      ended(tells?.(value) ?? {}, false)
      return value
    } catch (error) {
      ended({}, true)
      throw error
    }
  }

  return {
    request(traceparent, step, work) {
      const theirs = readTraceparent(traceparent)
      const traceId = theirs?.traceId ?? hex(16)
      // Whoever does not trace its own request gets no trace of ours; whoever does cannot make us trace more than our share.
      if (theirs?.sampled === false || !isChosen(hex(7), share)) return work()
      return span(step, traceId, theirs?.parentId, work)
    },
    step(step, work) {
      const now = running.getStore()
      return now ? span(step, now.traceId, now.spanId, work) : work()
    },
  }
}

const clean = (attributes: SpanAttributes): Span['attributes'] =>
  Object.entries(attributes)
    .filter(([name]) => shown.has(name))
    .map(([name, value]) => [name, typeof value === 'number' ? value : scrub(value).slice(0, 100)])

/** `drawn`: 56 bits, in hex. */
const isChosen = (drawn: string, share: number): boolean => Number.parseInt(drawn, 16) < share * 2 ** 56

/** Undefined for what is no traceparent: then the trace begins here. */
export function readTraceparent(
  text = '',
): { readonly traceId: string; readonly parentId: string; readonly sampled: boolean } | undefined {
  const [, version, traceId = '', parentId = '', flags, rest = ''] =
    /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/.exec(text) ?? []
  if (version === undefined || version === 'ff' || (version === '00' && rest !== '')) return undefined
  if (/^0+$/.test(traceId) || /^0+$/.test(parentId)) return undefined
  // Others make them, and all who are told of the trace would read a card number in them.
  if (scrub(`${traceId}-${parentId}`) !== `${traceId}-${parentId}`) return undefined
  return { traceId, parentId, sampled: (Number.parseInt(flags!, 16) & 1) === 1 }
}
