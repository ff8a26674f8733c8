// Traces, as a collector gets them that was written from the specification of OTLP: what a payment spent its time with, and nothing that is secret.
import assert from 'node:assert/strict'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { systemClock, systemRandom } from '../src/platform/clock.ts'
import type { Log } from '../src/platform/log.ts'
import { type SpanCount, sendSpans } from '../src/platform/otlp.ts'
import { readTraceparent, type Span, tracer } from '../src/platform/traces.ts'
import { startFlood } from './support/flood.ts'
import { eventually, sandbox, type TestGateway, testGateway } from './support/gateway.ts'

// biome-ignore lint/suspicious/noExplicitAny: JSON of the protocol, looked at field by field
type Any = any
type Taken = { readonly path: string; readonly headers: http.IncomingHttpHeaders; readonly text: string }
type CollectorHere = { readonly url: string; readonly taken: Taken[]; answers: [number, string][]; spans(): Any[]; close(): void }

async function startCollector(): Promise<CollectorHere> {
  const taken: Taken[] = []
  const server = http.createServer((request, response) => {
    let text = ''
    request.setEncoding('utf8').on('data', chunk => {
      text += chunk
    })
    request.on('end', () => {
      const [status, body] = here.answers.shift() ?? [200, '{}']
      if (status === 200) taken.push({ path: request.url!, headers: request.headers, text })
      response.writeHead(status, { 'Content-Type': 'application/json' }).end(body)
    })
  })
  await new Promise<void>(ready => server.listen(0, '127.0.0.1', ready))
  const here: CollectorHere = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    taken,
    answers: [],
    spans: () => taken.flatMap(({ text }) => readRequest(text)),
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
  return here
}

/** ExportTraceServiceRequest, strictly: every field is one of the protocol, in the form that its JSON mapping gives it. */
function readRequest(text: string): Any[] {
  const keys = (value: Any, ...known: string[]) => {
    for (const key of Object.keys(value)) assert.ok(known.includes(key), `${key} is no field`)
    return value
  }
  const attributesOf = (given: Any[]) =>
    Object.fromEntries(
      given.map(one => {
        const { key, value } = keys(one, 'key', 'value')
        const [[kind, inner]] = Object.entries(keys(value, 'stringValue', 'intValue')) as [[string, Any]]
        assert.equal(typeof inner, 'string', 'also a number of 64 bits is a text')
        return [key, kind === 'intValue' ? Number(inner) : inner]
      }),
    )
  return keys(JSON.parse(text), 'resourceSpans').resourceSpans.flatMap((one: Any) => {
    const { resource, scopeSpans } = keys(one, 'resource', 'scopeSpans')
    assert.equal(attributesOf(keys(resource, 'attributes').attributes)['service.name'], 'tollgate')
    return scopeSpans.flatMap((scope: Any) =>
      keys(scope, 'scope', 'spans').spans.map((span: Any) => {
        keys(
          span,
          'traceId',
          'spanId',
          'parentSpanId',
          'name',
          'kind',
          'startTimeUnixNano',
          'endTimeUnixNano',
          'attributes',
          'status',
        )
        assert.match(span.traceId, /^[0-9a-f]{32}$/)
        assert.match(span.spanId, /^[0-9a-f]{16}$/)
        if ('parentSpanId' in span) assert.match(span.parentSpanId, /^[0-9a-f]{16}$/)
        for (const time of [span.startTimeUnixNano, span.endTimeUnixNano]) assert.match(time, /^\d{19}$/)
        assert.ok(BigInt(span.endTimeUnixNano) >= BigInt(span.startTimeUnixNano))
        assert.ok([1, 2, 3].includes(span.kind))
        keys(span.status, 'code')
        return { ...span, attributes: attributesOf(span.attributes) }
      }),
    )
  })
}

const theirs = { traceId: '4bf92f3577b34da6a3ce929d0e0e4736', parentId: '00f067aa0ba902b7' }

describe('a payment', () => {
  let collector: CollectorHere
  let gateway: TestGateway
  before(async () => {
    collector = await startCollector()
    gateway = await testGateway({
      environment: { OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/`, OTEL_EXPORTER_OTLP_HEADERS: 'x-key=abc%20d,x-other=1' },
    })
  })
  after(async () => {
    await gateway.stop()
    collector.close()
  })
  const traced = (route: string, count: number) =>
    eventually(
      async () => {
        const spans = collector.spans()
        const root = spans.find(({ attributes }) => attributes['http.route'] === route)
        const all = spans.filter(({ traceId }) => traceId === root?.traceId)
        return all.length === count && { root, all: all as Any[] }
      },
      `the spans of ${route}`,
      15,
    )

  it('is a trace: the request, its writes, its connector', async () => {
    const traceparent = `00-${theirs.traceId}-${theirs.parentId}-01`
    const { body } = await gateway.post(
      '/v1/payments',
      {
        entityId: sandbox.entityId,
        ...{ paymentType: 'PA', amount: '92.00', currency: 'EUR', paymentBrand: 'VISA', 'card.number': '4200000000000000' },
        ...{ 'card.holder': 'Jane Jones', 'card.expiryMonth': '05', 'card.expiryYear': '2034', 'card.cvv': '123' },
        ...{
          merchantTransactionId: 'order-4711',
          'customer.email': 'jane@shop.example',
          'customer.givenName': 'Jane',
          'customer.surname': 'Jones',
        },
      },
      { traceparent },
    )
    assert.equal(body.result.code, '000.100.110')
    const { root, all } = await traced('/v1/payments', 4)
    assert.deepEqual(
      [root.traceId, root.parentSpanId, root.kind, root.name],
      [theirs.traceId, theirs.parentId, 2, 'POST /v1/payments'],
    )
    assert.equal(root.attributes['http.response.status_code'], 200)
    assert.ok(body.ndc.endsWith(root.attributes['tollgate.request']))
    const steps = all.filter(one => one !== root && one.spanId !== root.spanId)
    for (const one of steps) {
      assert.deepEqual([one.parentSpanId, one.kind, one.attributes['tollgate.payment']], [root.spanId, 3, body.id])
      assert.ok(BigInt(one.startTimeUnixNano) >= BigInt(root.startTimeUnixNano))
      assert.ok(BigInt(one.endTimeUnixNano) <= BigInt(root.endTimeUnixNano))
    }
    const inOrder = [...steps].sort((a, b) => (BigInt(a.startTimeUnixNano) < BigInt(b.startTimeUnixNano) ? -1 : 1))
    assert.deepEqual(
      inOrder.map(({ name }) => name),
      ['write payment', 'simulator PA', 'write answer'],
    )
    assert.equal(inOrder[1].attributes['tollgate.outcome'], 'success')
    const [first] = collector.taken
    assert.deepEqual(
      [first!.path, first!.headers['content-type'], first!.headers['x-key'], first!.headers['x-other']],
      ['/v1/traces', 'application/json', 'abc d', '1'],
    )
    await gateway.refer(body.id, { paymentType: 'CP', amount: '92.00', currency: 'EUR' })
    const { all: capture } = await traced('/v1/payments/{id}', 4)
    assert.ok(capture.some(({ name }) => name === 'write in chain'))
    // The id of a checkout lets its holder pay, whatever is done with it.
    const ordered = { entityId: sandbox.entityId, amount: '92.00', currency: 'EUR', paymentType: 'DB' }
    const made = await gateway.post('/v1/checkouts', ordered)
    assert.equal(
      (await gateway.post(`/v1/checkouts/${made.body.id}`, { ...ordered, amount: '93.00' })).body.result.code,
      '000.200.101',
    )
    const { all: change } = await traced('/v1/checkouts/{id}', 2)
    assert.ok(change.some(({ name }) => name === 'write in chain'))
    const sent = collector.taken.map(({ text }) => text).join()
    assert.ok(!sent.toUpperCase().includes(made.body.id.split('.')[0]))
    for (const secret of ['4200000000000000', 'Jane', 'jane@', 'order-4711', sandbox.accessToken, sandbox.entityId, '127.0.0.1'])
      assert.ok(!sent.includes(secret), `${secret} is told`)
    // Times and ids hold any digits by chance.
    assert.ok(!sent.replace(/\b[0-9a-f]{16,}\b/g, '').includes('420000'), 'a part of the number is told')
  })

  it('that is not traced by its caller is not traced', async () => {
    await gateway.get('/v1/resultcodes', {}, { traceparent: `00-${theirs.traceId}-${theirs.parentId}-00` })
    await gateway.get('/health/live', {}, { traceparent: 'nonsense' })
    const { root } = await traced('/health/live', 1)
    assert.equal(root.parentSpanId, undefined)
    assert.ok(!collector.spans().some(({ attributes }) => attributes['http.route'] === '/v1/resultcodes'))
  })
})

describe('traceparent', () => {
  const { traceId, parentId } = theirs
  for (const [text, sampled] of [
    [`00-${traceId}-${parentId}-01`, true],
    [`00-${traceId}-${parentId}-fe`, false],
    [`cc-${traceId}-${parentId}-01-what-will-be`, true],
  ] as const)
    it(`${text} is one`, () => assert.deepEqual(readTraceparent(text), { traceId, parentId, sampled }))
  for (const text of [
    '',
    `ff-${traceId}-${parentId}-01`,
    `00-${'0'.repeat(32)}-${parentId}-01`,
    `00-${traceId}-${'0'.repeat(16)}-01`,
    `00-${traceId.toUpperCase()}-${parentId}-01`,
    `00-4539578763621486${traceId.slice(16).replace(/^\d/, 'a')}-${parentId}-01`,
    `00-a4539578763621486${'b'.repeat(15)}-${parentId}-01`,
    `00-${traceId}-4539578763621486-01`,
    `00-${'a'.repeat(24)}45395787-63621486${'a'.repeat(8)}-01`,
    `00-${traceId}-${parentId}-01-more`,
    `00-${traceId}-${parentId}`,
    ` 00-${traceId}-${parentId}-01`,
  ])
    it(`${text || 'nothing'} is none`, () => assert.equal(readTraceparent(text), undefined))
})

it('a share of the requests is traced, whatever their callers say', async () => {
  const spans: Span[] = []
  const quarter = tracer(systemClock, systemRandom, 0.25, span => spans.push(span))
  const step = { name: 'a', kind: 'server' } as const
  // The last one has an id as somebody makes it up who wants to be traced.
  for (const traceparent of [undefined, `00-${'a'.repeat(18)}${'0'.repeat(13)}1-${theirs.parentId}-01`]) {
    spans.length = 0
    for (let at = 0; at < 2000; at++) await quarter.request(traceparent, step, async () => {})
    assert.ok(spans.length > 350 && spans.length < 650, `${spans.length} of 2000`)
  }
  assert.equal(spans.at(-1)!.parentId, theirs.parentId)
  for (const share of [0, 1]) {
    spans.length = 0
    const all = tracer(systemClock, systemRandom, share, span => spans.push(span))
    // Also where a caller traces its own request: everybody could say so.
    for (const traceparent of [undefined, `00-${theirs.traceId}-${theirs.parentId}-01`])
      for (let at = 0; at < 50; at++) await all.request(traceparent, step, async () => {})
    assert.equal(spans.length, 100 * share)
  }
  await assert.rejects(
    tracer(systemClock, systemRandom, 1, span => spans.push(span)).request(undefined, step, () =>
      Promise.reject(new Error('no')),
    ),
  )
  assert.equal(spans.at(-1)!.failed, true)
})

describe('the way to the collector', () => {
  const span = (at: number): Span => ({
    ...{ traceId: theirs.traceId, spanId: at.toString(16).padStart(16, '0'), name: 'a', kind: 'internal', attributes: [] },
    ...{ began: 1_700_000_000_000, ended: 1_700_000_000_001, failed: false },
  })
  const log = { warn() {} } as unknown as Log
  const counted = () => {
    const counts: Record<string, number> = {}
    const count: SpanCount = ended => {
      counts[ended] = (counts[ended] ?? 0) + 1
    }
    return { counts, count }
  }

  it('sends again what a collector takes later, and gives up what it never will', async () => {
    const collector = await startCollector()
    collector.answers = [
      [503, ''],
      [200, '{"partialSuccess":{"rejectedSpans":"9223372036854775807"}}'],
      [400, '{}'],
    ]
    const { counts, count } = counted()
    const sender = sendSpans({ url: `${collector.url}/v1/traces`, headers: {} }, '1', systemClock, log, count)
    for (let at = 1; at <= 3; at++) sender.send(span(at))
    await eventually(async () => collector.taken.length === 1, 'it is sent again')
    assert.equal(collector.spans().length, 3)
    sender.send(span(4))
    await sender.stop()
    assert.deepEqual(counts, { sent: 3, refused: 4 }, 'no more than were sent are refused')
    collector.close()
  })

  const head = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n'
  for (const [what, first, more, taken] of [
    ['says without an end that it goes on', '', 'HTTP/1.1 100 Continue\r\n\r\n', false],
    ['answers without an end', `${head}Content-Length: 9000000000\r\n\r\n`, ' ', true],
    ['answers in a chunk that is described without an end', `${head}Transfer-Encoding: chunked\r\n\r\n1;x=`, 'y', false],
  ] as const)
    it(`hears little of one that ${what}`, async t => {
      const flood = await startFlood(Buffer.from(first), Buffer.alloc(100_000, more))
      t.after(flood.stop)
      const { counts, count } = counted()
      const sender = sendSpans({ url: `http://127.0.0.1:${flood.port}/v1/traces`, headers: {} }, '1', systemClock, log, count)
      sender.send(span(1))
      const began = performance.now()
      await sender.stop()
      assert.ok(performance.now() - began < 4000, 'not until its time is over')
      assert.deepEqual(counts, taken ? { sent: 1 } : { dropped: 1 })
      await eventually(async () => flood.open() === 0, 'nothing is heard of it any more')
      assert.ok(flood.bytesRead() < 400_000, `${flood.bytesRead()} bytes were read`)
    })

  it('follows no redirect', async t => {
    const elsewhere = await startCollector()
    t.after(elsewhere.close)
    const pointer = http.createServer((_, response) => {
      response.writeHead(307, { Location: `${elsewhere.url}/v1/traces` }).end()
    })
    await new Promise<void>(ready => pointer.listen(0, '127.0.0.1', ready))
    t.after(() => pointer.close())
    const { counts, count } = counted()
    const sender = sendSpans(
      { url: `http://127.0.0.1:${(pointer.address() as AddressInfo).port}/v1/traces`, headers: {} },
      '1',
      systemClock,
      log,
      count,
    )
    sender.send(span(1))
    await sender.stop()
    assert.deepEqual([counts, elsewhere.taken], [{ refused: 1 }, []])
  })

  it('holds so many spans for one that is silent, and counts the rest', async () => {
    const { counts, count } = counted()
    const sender = sendSpans({ url: 'http://127.0.0.1:9/v1/traces', headers: {} }, '1', systemClock, log, count)
    for (let at = 0; at < 5000; at++) sender.send(span(at))
    assert.equal(counts.dropped, 5000 - 4096)
    await sender.stop()
    assert.deepEqual(counts, { dropped: 5000 })
  })
})
