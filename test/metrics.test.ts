// The figures for the operator: on a port of their own, few label values, and the conservation of notifications among them.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import http from 'node:http'
import net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import pg from 'pg'
import { systemClock } from '../src/platform/clock.ts'
import { databaseLocks } from '../src/platform/database/locks.ts'
import type { Log } from '../src/platform/log.ts'
import { distribution, type Figure, gauge } from '../src/platform/metrics.ts'
import { type FigureSource, reader, readFigure, serveMetrics } from '../src/platform/scrape.ts'
import { addEndpoint } from './support/endpoints.ts'
import { freePort } from './support/freePort.ts'
import { eventually, testGateway } from './support/gateway.ts'
import { acquirersFile, testHost } from './support/host.ts'
import { runningOn, startProcess } from './support/process.ts'
import { startReceiver } from './support/receiver.ts'

test('metrics are served where METRICS_PORT says, and nowhere else', async () => {
  const port = await freePort()
  const gateway = await testGateway({ environment: { METRICS_PORT: String(port) } })
  const receiver = await startReceiver()
  try {
    await addEndpoint(gateway.pool, { url: receiver.url })
    await gateway.pay()
    await gateway.pay({ 'card.number': '4000000000000002' })
    await eventually(async () => receiver.received.length === 3, 'both are told')
    const read = async () => (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
    const text = await eventually(async () => {
      const text = await read()
      return text.includes('tollgate_notification_attempts_total{ended="acknowledged"} 2') && text
    }, 'the attempts are counted')
    for (const line of [
      'tollgate_payments_total{outcome="success"} 1',
      'tollgate_payments_total{outcome="rejected"} 1',
      'tollgate_http_answers_total{status="200"} 1',
      'tollgate_http_answers_total{status="400"} 1',
      'tollgate_notifications_unaccounted 0',
      'tollgate_notifications_due 0',
      'tollgate_http_request_duration_seconds_count{route="/v1/payments",class="2xx"} 1',
      'tollgate_http_request_duration_seconds_bucket{route="/v1/payments",class="4xx",le="+Inf"} 1',
      'tollgate_connector_duration_seconds_count{connector="simulator",operation="DB",outcome="success"} 1',
      'tollgate_connector_duration_seconds_count{connector="simulator",operation="DB",outcome="rejected"} 1',
      'tollgate_batch_rows_count{lane="payments"} 2',
      'tollgate_batch_rows_bucket{lane="answers",le="1"} 2',
      'tollgate_batch_wait_seconds_count{lane="payments"} 2',
      'tollgate_database_connections_max{pool="work"} 10',
      'tollgate_outbox_waiting{consumer="notifications"} 0',
      'tollgate_due_work{kind="reverse"} 0',
      'tollgate_clock_trusted 1',
    ])
      assert.ok(text.includes(`${line}\n`), `${line} in\n${text}`)
    assert.match(text, /^tollgate_database_waiting\{pool="work"\} \d+$/m) // of this moment, in which something may wait
    assert.doesNotMatch(text, /127\.0\.0\.1|[0-9a-f]{32}/) // no ids, no addresses
    assert.match(text, /^tollgate_build_info\{version="\d[^"]*",build="[0-9a-f]{8}"\} 1$/m)
    // What waits is counted by kind, and for how long it has waited.
    await gateway.pool.query(
      `insert into due_work (kind, merchant_id, subject_id, due_at, leased_until, attempts)
       select kind, merchant_id, id, now() + at, now() + interval '100 seconds', attempts from payments,
              (values ('recover', interval '-90 seconds', 1), ('capture', interval '5 minutes', 7), ('release', interval '1 hour', 7)) as given (kind, at, attempts)
        where payment_type = 'DB'`,
    )
    const consumer = new pg.Client(gateway.connection)
    consumer.on('error', () => {})
    await consumer.connect()
    await consumer.query('begin')
    await consumer.query('select pg_advisory_xact_lock($1)', [databaseLocks.notifications]) // nobody takes events meanwhile
    await gateway.pool.query(
      `insert into events (merchant_id, payment_id, sequence, type, channel_id, root_id, occurred_at, recorded_at)
       select merchant_id, id, 9, 'PAYMENT', channel_id, id, now(), now() - interval '30 seconds' from payments limit 1`,
    )
    const waiting = await read()
    assert.match(waiting, /^tollgate_due_work\{kind="recover"\} 2$/m)
    assert.match(waiting, /^tollgate_due_work_age_seconds\{kind="recover"\} 9\d(\.\d+)?$/m)
    for (const [kind, failing] of Object.entries({ recover: 0, capture: 2, release: 0 }))
      assert.match(waiting, new RegExp(`^tollgate_due_work_failing\\{kind="${kind}"\\} ${failing}$`, 'm'))
    assert.match(waiting, /^tollgate_outbox_waiting\{consumer="notifications"\} 1$/m)
    assert.match(waiting, /^tollgate_outbox_age_seconds\{consumer="notifications"\} 3\d(\.\d+)?$/m)
    await gateway.pool.query('delete from events where sequence = 9')
    await consumer.end()
    assert.equal((await fetch(`http://127.0.0.1:${port}/`)).status, 404)
    assert.equal((await gateway.get('/metrics')).status, 404)
  } finally {
    await receiver.close()
    await gateway.stop()
  }
})

test('a start that is refused has opened PORT for nobody, and leaves nothing open', async () => {
  const [port, metricsPort] = [await freePort(), await freePort()]
  const environment = { PORT: String(port), METRICS_PORT: String(metricsPort) }
  const refusal = async (...taken: number[]): Promise<unknown> => {
    const others = taken.map(one => net.createServer().listen(one, '127.0.0.1'))
    await Promise.all(others.map(other => once(other, 'listening')))
    const error = await testGateway({ environment }).then(
      () => assert.fail('it starts'),
      error => error,
    )
    for (const open of [port, metricsPort].filter(one => !taken.includes(one)))
      await assert.rejects(fetch(`http://127.0.0.1:${open}/`), ({ cause }) => cause.code === 'ECONNREFUSED')
    await Promise.all(others.map(other => new Promise(closed => other.close(closed))))
    return error.port
  }
  assert.equal(await refusal(port, metricsPort), metricsPort, 'PORT is tried last')
  assert.equal(await refusal(metricsPort), metricsPort)
  assert.equal(await refusal(port), port)
  const gateway = await testGateway({ environment })
  assert.equal((await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).status, 200)
  await gateway.stop()
})

test('routes and lines to acquirers are counted by their names', async () => {
  const host = await testHost()
  const closed = await freePort()
  const file = acquirersFile({ north: [closed, host.port], south: [closed] })
  const port = await freePort()
  const gateway = await testGateway({ environment: { METRICS_PORT: String(port), ACQUIRERS_FILE: file.path } })
  try {
    const read = async () => (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
    const has = (text: string, lines: readonly string[]) => {
      for (const line of lines) assert.ok(text.includes(`${line}\n`), `${line} in\n${text}`)
    }
    has(await read(), ['tollgate_line_up{acquirer="north",line="2"} 0'])
    for (const amount of ['92.00', '93.00']) await gateway.pay({ testMode: 'EXTERNAL', amount })
    const expected = [
      'tollgate_route_messages_total{mode="external",acquirer="north",event="tried"} 2',
      'tollgate_route_messages_total{mode="external",acquirer="north",event="answered"} 2',
      'tollgate_route_messages_total{mode="live",acquirer="north",event="tried"} 0',
      'tollgate_route_messages_total{mode="external",acquirer="south",event="tried"} 0',
      'tollgate_line_events_total{acquirer="north",line="2",event="sent"} 2',
      'tollgate_line_events_total{acquirer="north",line="1",event="sent"} 0',
      'tollgate_line_up{acquirer="north",line="1"} 0',
      'tollgate_line_up{acquirer="north",line="2"} 1',
      'tollgate_line_in_flight{acquirer="north",line="2"} 0',
    ]
    has(await read(), expected)
    const again = await read() // reading counts nothing
    has(again, expected)
    assert.doesNotMatch(again, /127\.0\.0\.1|[0-9a-f]{32}/)
    has(again, ['tollgate_reversals_open 0', 'tollgate_reversals_age_seconds 0'])
    await gateway.pool.query(
      `insert into due_work (kind, merchant_id, subject_id, due_at) select 'reverse', merchant_id, id, now() + interval '1 day' from payments limit 1`,
    )
    has(await read(), ['tollgate_reversals_open 1'])
  } finally {
    await gateway.stop()
    await host.stop()
    file.remove()
  }
})

test('what several processes count is added up, whatever becomes of one of them', async () => {
  const port = await freePort()
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-metrics-'))
  const gateway = await startProcess({
    DATA_DIR: join(folder, 'data'),
    WORKERS: '2',
    METRICS_PORT: String(port),
    DEMO_SHOP_PORT: 'off',
  })
  const workers = () =>
    runningOn(String(gateway.child.pid), 'ppid,pid,args').flatMap(line => {
      const [, parent, pid] = /^\s*(\d+)\s+(\d+)\s.*src\/main\.ts/.exec(line) ?? []
      return parent === String(gateway.child.pid) ? [Number(pid)] : []
    })
  try {
    // On a connection of its own each, so that the workers take turns.
    const ask = () =>
      new Promise<number>((answered, failed) => {
        const request = http.get(`${gateway.sandbox.baseUrl}/v1/resultcodes`, { agent: false }, response => {
          response.resume().once('end', () => answered(response.statusCode!))
        })
        request.once('error', failed)
      })
    const figure = (text: string, line: string) =>
      Number(
        text
          .split('\n')
          .find(one => one.startsWith(`${line} `))
          ?.slice(line.length + 1),
      )
    const read = async () => (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
    const answered = (text: string) => figure(text, 'tollgate_http_answers_total{status="200"}')
    assert.deepEqual(new Set(await Promise.all(Array.from({ length: 10 }, ask))), new Set([200]))
    const before = await read()
    assert.equal(answered(before), 10)
    assert.equal(figure(before, 'tollgate_http_request_duration_seconds_count{route="/v1/resultcodes",class="2xx"}'), 10)
    assert.equal(figure(before, 'tollgate_database_connections_max{pool="work"}'), 20, 'of both')
    assert.equal(figure(before, 'tollgate_workers'), 2)
    assert.equal(figure(before, 'tollgate_clock_trusted'), 1)
    assert.equal(figure(before, 'tollgate_notifications_due'), 0, 'what the database knows is asked once')
    assert.doesNotMatch(before, /left_out_total\{/)

    // One that says nothing is left out, with what it had counted kept in the sums.
    const [silent, killed] = workers() as [number, number]
    process.kill(silent, 'SIGSTOP')
    const without = await read()
    assert.equal(answered(without), 10)
    assert.equal(figure(without, 'tollgate_database_connections_max{pool="work"}'), 10, 'of the one that answers')
    assert.equal(figure(without, 'tollgate_metrics_left_out_total{source="worker"}'), 1)
    process.kill(silent, 'SIGCONT')
    await eventually(async () => figure(await read(), 'tollgate_database_connections_max{pool="work"}') === 20, 'it is back')

    process.kill(killed, 'SIGKILL')
    const after = await eventually(async () => {
      const text = await read()
      assert.ok(answered(text) >= 10, 'the sum does not shrink')
      return figure(text, 'tollgate_workers_ended_total{with="SIGKILL"}') === 1 && figure(text, 'tollgate_workers') === 2 && text
    }, 'another takes its place')
    assert.equal(answered(after), 10)
    for (let at = 0; at < 5; at++) await ask()
    assert.equal(answered(await read()), 15)
  } finally {
    await gateway.stop()
    rmSync(folder, { recursive: true, force: true })
  }
})

test('a source that fails or says nothing keeps no other from the metrics, and is not asked twice at once', async () => {
  let asked = 0
  const told: string[] = []
  const log = { warn: (_: object, message: string) => told.push(message) } as unknown as Log
  const source = (name: string, read: FigureSource['read']): FigureSource => ({ name, read })
  const sources = [
    source('well', async () => [readFigure(gauge('well', 'Well.', () => 1))]),
    source('broken', async () => Promise.reject(new Error('no'))),
    source('silent', () => new Promise(() => void asked++)),
  ]
  const read = reader(() => sources, systemClock, log, 20)
  await read()
  const text = await read()
  assert.match(text, /^well 1$/m)
  assert.match(text, /^tollgate_metrics_left_out_total\{source="broken"\} 2$/m)
  assert.match(text, /^tollgate_metrics_left_out_total\{source="silent"\} 2$/m)
  assert.equal(asked, 1)
  assert.equal(told.length, 4)
})

test('whoever asks with a wrong token is told of, with the address', async () => {
  const told: unknown[] = []
  const log = { warn: (...words: unknown[]) => told.push(words) } as unknown as Log
  const { port, stop } = await serveMetrics(async () => 'figures', log, { port: 0, host: '127.0.0.1', token: 'the token' })
  const ask = async (token: string) =>
    (await fetch(`http://127.0.0.1:${port}/metrics`, { headers: { authorization: `Bearer ${token}` } })).status
  assert.deepEqual([await ask('another'), await ask('the token')], [401, 200])
  assert.deepEqual(told, [[{ status: 401, address: '127.0.0.1' }, 'a caller of the metrics was turned away']])
  await stop()
})

test('a distribution counts each value in the first bound that holds it, and all above', () => {
  const figures: Figure[] = []
  const observe = distribution(figures, 'took', 'Took.', ['way'], [1, 2, 4])
  for (const value of [0, 1, 1.5, 4, 9]) observe(value, 'a')
  const values = figures[0]!.read().map(([{ le }, value, part]) => [part, le, value])
  assert.deepEqual(values, [
    ['bucket', 1, 2],
    ['bucket', 2, 3],
    ['bucket', 4, 4],
    ['bucket', '+Inf', 5],
    ['sum', undefined, 15.5],
    ['count', undefined, 5],
  ])
})
