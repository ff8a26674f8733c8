// The figures for the operator: on a port of their own, few label values, and the conservation of notifications among them.
import assert from 'node:assert/strict'
import net, { type AddressInfo } from 'node:net'
import { test } from 'node:test'
import { addEndpoint } from './support/endpoints.ts'
import { eventually, testGateway } from './support/gateway.ts'
import { acquirersFile, testHost } from './support/host.ts'
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
    ])
      assert.ok(text.includes(`${line}\n`), `${line} in\n${text}`)
    assert.doesNotMatch(text, /127\.0\.0\.1|[0-9a-f]{32}/) // no ids, no addresses
    assert.equal((await fetch(`http://127.0.0.1:${port}/`)).status, 404)
    assert.equal((await gateway.get('/metrics')).status, 404)
  } finally {
    await receiver.close()
    await gateway.stop()
  }
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

async function freePort(): Promise<number> {
  const server = net.createServer()
  await new Promise<void>(ready => server.listen(0, '127.0.0.1', ready))
  const { port } = server.address() as AddressInfo
  await new Promise(done => server.close(done))
  return port
}
