// Sends spans to a collector: OTLP over HTTP in its JSON form (opentelemetry.io/docs/specs/otlp), in batches, from a queue of bounded length. What finds no room, and
// what the collector does not take, is counted and gone: traces hold up nothing.

import type { IncomingMessage } from 'node:http'
import { readObject } from './answerText.ts'
import type { Clock } from './clock.ts'
import { ask } from './http.ts'
import type { Log } from './log.ts'
import { spokenTls } from './tls.ts'
import { type Span, spanKinds } from './traces.ts'

export type Collector = {
  /** With the path, as a rule /v1/traces. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
}

export type SpanCount = (ended: 'sent' | 'dropped' | 'refused') => void

export type SpanSender = { send(span: Span): void; stop(): Promise<void> }

const queueMost = 4096
const batchMost = 512
const everyMilliseconds = 1000
const patienceMilliseconds = 5000
const pauseMost = 30_000
const answerMost = 64 * 1024

/** Statuses after which the same may be sent again; others mean that it never will be taken. */
const passing: ReadonlySet<number> = new Set([429, 502, 503, 504])

export function sendSpans({ url, headers }: Collector, version: string, clock: Clock, log: Log, count: SpanCount): SpanSender {
  let queue: Span[] = []
  let sending: Promise<void> | undefined
  let pause = 0
  let until = 0

  async function attempt(batch: readonly Span[]): Promise<'sent' | 'again' | 'refused'> {
    try {
      const body = JSON.stringify(exportRequest(batch, version))
      const { status, text } = await post({ url, headers }, body, clock.deadline(patienceMilliseconds))
      const isTaken = status >= 200 && status < 300
      if (!isTaken) log.warn({ status }, 'the collector did not take the spans')
      else for (let left = Math.min(rejectedOf(text), batch.length); left > 0; left--) count('refused')
      return isTaken ? 'sent' : passing.has(status) ? 'again' : 'refused'
    } catch (error) {
      log.warn({ why: (error as Error).message }, 'the collector does not answer')
      return 'again'
    }
  }

  async function drain(): Promise<void> {
    while (queue.length > 0) {
      const batch = queue.slice(0, batchMost)
      const ended = await attempt(batch)
      if (ended === 'again') {
        pause = Math.min(Math.max(2 * pause, everyMilliseconds), pauseMost)
        until = clock.elapsed() + pause
        return
      }
      pause = 0
      queue = queue.slice(batch.length)
      for (const _ of batch) count(ended)
    }
  }

  const flush = (): Promise<void> => {
    sending ??= drain().finally(() => {
      sending = undefined
    })
    return sending
  }
  const timer = clock.every(everyMilliseconds, () => {
    if (clock.elapsed() >= until) flush().catch((error: Error) => log.error({ why: error.message }, 'spans could not be sent'))
  })
  return {
    send(span) {
      if (queue.length < queueMost) queue.push(span)
      else count('dropped')
    },
    /** What the collector takes at once is sent still. */
    async stop() {
      timer.cancel()
      await flush()
      for (const _ of queue.splice(0)) count('dropped')
    },
  }
}

/** No redirect is followed: to whom the spans are told is the operator's to say. */
const post = ({ url, headers }: Collector, body: string, signal: AbortSignal): Promise<{ status: number; text: string }> =>
  new Promise((resolve, reject) => {
    const options = {
      ...spokenTls,
      method: 'POST',
      signal,
      headers: { ...headers, 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) },
    }
    const request = ask(url, options, 2 * answerMost)
    request.on('error', reject)
    request.once('response', response =>
      beginning(response).then(text => resolve({ status: response.statusCode ?? 0, text }), reject),
    )
    request.end(body)
  })

/** What a collector answers is short; of what is not no more is read. */
async function beginning(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of response) {
    chunks.push(chunk)
    length += chunk.length
    if (length > answerMost) break
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** Of a request that was taken in part: how many spans were not. A number of 64 bits is a text in JSON. */
function rejectedOf(text: string): number {
  const { partialSuccess } = readObject(text) ?? {}
  return Number((partialSuccess as { readonly rejectedSpans?: unknown } | null | undefined)?.rejectedSpans ?? 0) || 0
}

/** ExportTraceServiceRequest by the JSON mapping of protobuf, with ids in hexadecimal. */
export const exportRequest = (spans: readonly Span[], version: string): object => ({
  resourceSpans: [
    {
      resource: {
        attributes: [
          ['service.name', 'tollgate'],
          ['service.version', version],
        ].map(([name, value]) => attribute(name!, value!)),
      },
      scopeSpans: [
        {
          scope: { name: 'tollgate' },
          spans: spans.map(({ traceId, spanId, parentId, name, kind, began, ended, attributes, failed }) => ({
            traceId,
            spanId,
            ...(parentId !== undefined && { parentSpanId: parentId }),
            name,
            kind: spanKinds[kind],
            startTimeUnixNano: nanoseconds(began),
            endTimeUnixNano: nanoseconds(ended),
            attributes: attributes.map(([key, value]) => attribute(key, value)),
            status: failed ? { code: 2 } : {},
          })),
        },
      ],
    },
  ],
})

const attribute = (key: string, value: string | number): object => ({
  key,
  value: typeof value === 'number' ? { intValue: String(value) } : { stringValue: value },
})

/** Microseconds are as exact as a number of milliseconds can say it. */
const nanoseconds = (milliseconds: number): string => `${Math.round(milliseconds * 1000)}000`
