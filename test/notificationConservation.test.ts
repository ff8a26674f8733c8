// The law of conservation under random failures, several processes and kill -9: every event reaches its receiver at least once, and the
// sums say so. Beside it replay, reading by a cursor, and the missed return.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type pg from 'pg'
import { checkNotifications } from '../src/notifications/deliveries/check.ts'
import { secretsOf } from '../src/notifications/endpoints/endpoint.ts'
import { listEndpoints } from '../src/notifications/endpoints/store.ts'
import { replay } from '../src/notifications/replay/replay.ts'
import { systemRandom } from '../src/platform/clock.ts'
import { runningEmbedded } from '../src/platform/database/find.ts'
import { readConfig } from '../src/start/config.ts'
import { testPool } from './support/database.ts'
import { addEndpoint, endpointParts } from './support/endpoints.ts'
import { eventually, type Fields, sandbox, type TestGateway, testGateway, visa } from './support/gateway.ts'
import { opened, startReceiver } from './support/receiver.ts'

const project = fileURLToPath(new URL('..', import.meta.url))
let gateway: TestGateway
before(async () => {
  gateway = await testGateway({ alone: false })
})
after(() => gateway.stop())

const balanced = (pool: pg.Pool, what: string) =>
  eventually(async () => {
    const check = await checkNotifications(pool)
    const open = check.endpoints
      .filter(one => one.state === 'active' && one.kind !== 'cursor')
      .reduce((sum, one) => sum + one.scheduled, 0)
    return check.waiting === 0 && open === 0 && check
  }, what)

test('three gateways, three endpoints, random failures: each event is made once, told at least once, and the sums are right', async t => {
  const others = await Promise.all([gateway.another(), gateway.another()])
  t.after(() => Promise.all(others.map(one => one.stop())))
  const receivers = await Promise.all([0, 1, 2].map(() => startReceiver()))
  const endpoints = await Promise.all(receivers.map(({ url }, at) => addEndpoint(gateway.pool, { url, name: `random-${at}` })))
  for (const [at, receiver] of receivers.entries()) {
    receiver.answer = () => (Math.random() < [0, 0.2, 0.4][at]! ? 503 : 200)
    receiver.received.length = 0
  }
  const paid = await Promise.all(Array.from({ length: 60 }, () => gateway.pay()))
  for (let step = 0; step < 12; step++) await gateway.advance('1d')
  const check = await balanced(gateway.pool, 'everything is told')
  assert.deepEqual(
    check.endpoints.filter(one => !one.balanced),
    [],
  )
  const wanted = paid.map(({ body }) => body.id).sort()
  for (const [at, { received }] of receivers.entries()) {
    const acknowledged = received.filter(({ status }) => status === 200)
    const heard = new Set(acknowledged.map(one => opened(one, endpoints[at]!.secret).payload.id))
    assert.deepEqual([...heard].sort(), wanted)
    assert.equal(check.endpoints.find(one => one.endpointId === endpoints[at]!.id)!.emitted, wanted.length)
  }
  await Promise.all(receivers.map(one => one.close()))
})

test('an event whose transaction commits after later ones is told all the same', async () => {
  const receiver = await startReceiver()
  const { id } = await addEndpoint(gateway.pool, { url: receiver.url })
  receiver.received.length = 0
  const [early, late] = [await gateway.pool.connect(), gateway.pool]
  const insert = `insert into events (merchant_id, payment_id, sequence, type, channel_id, root_id, occurred_at, recorded_at)
                  select merchant_id, payment_id, 3, type, channel_id, root_id, occurred_at, $2::timestamptz from events where payment_id = $1 and sequence = 2`
  const [first, second] = [(await gateway.pay()).body.id, (await gateway.pay()).body.id]
  await eventually(async () => receiver.received.length === 2, 'the payments')
  const now = Date.now()
  await early.query('begin')
  try {
    await early.query(insert, [first, new Date(now)])
    await late.query(insert, [second, new Date(now + 1000)])
    await eventually(async () => receiver.received.length === 3, 'the later one')
    await early.query('commit')
  } finally {
    early.release(true)
  }
  await eventually(async () => receiver.received.length === 4, 'the one that committed late')
  const mine = (await checkNotifications(gateway.pool)).endpoints.find(({ endpointId }) => endpointId === id)!
  assert.deepEqual([mine.emitted, mine.balanced], [4, true])
  await receiver.close()
})

test('a hanging endpoint delays no other', async () => {
  const hanging = await startReceiver()
  const healthy = await startReceiver()
  await addEndpoint(gateway.pool, { url: hanging.url })
  await addEndpoint(gateway.pool, { url: healthy.url })
  hanging.answer = () => 'hang'
  healthy.received.length = 0
  await Promise.all(Array.from({ length: 40 }, () => gateway.pay()))
  await eventually(async () => healthy.received.length === 40, 'the healthy endpoint hears everything')
  assert.ok(hanging.received.length <= 16 + 1) // no more calls at a time than it has room for, and the test notification
  await hanging.close()
  await healthy.close()
})

test('replay: one, a range, a filter; the id and the sequence stay', async () => {
  const receiver = await startReceiver()
  const { id, secret } = await addEndpoint(gateway.pool, { url: receiver.url, channelId: sandbox.lenientEntityId })
  receiver.received.length = 0
  const parts = { ...endpointParts(gateway.pool), directory: { businessTime: () => Date.now() } } as unknown as Parameters<
    typeof replay
  >[0]
  for (let at = 0; at < 3; at++) {
    await gateway.pay({ entityId: sandbox.lenientEntityId })
    await eventually(async () => receiver.received.length === at + 1, 'told')
  }
  const first = receiver.received.map(({ headers }) => headers['webhook-id']!)
  const replayed = async (filter: Parameters<typeof replay>[3], count: number) => {
    receiver.received.length = 0
    assert.deepEqual(await replay(parts, sandbox.merchantId, id, filter), { replayed: count })
    await eventually(async () => receiver.received.length === count, `${count} replayed`)
    return receiver.received.map(({ headers }) => [headers['webhook-id'], headers['x-notification-sequence']])
  }
  assert.deepEqual(await replayed({ notificationId: first[1]! }, 1), [[first[1], '2']])
  assert.deepEqual(
    (await replayed({ from: 2, to: 3 }, 2)).sort(),
    [
      [first[1], '2'],
      [first[2], '3'],
    ].sort(),
  )
  const { payload } = opened(receiver.received[0]!, secret)
  assert.deepEqual(await replayed({ paymentId: payload.id }, 1), [
    [
      receiver.received.length === 1 && receiver.received[0]!.headers['webhook-id'],
      receiver.received[0]!.headers['x-notification-sequence'],
    ],
  ])
  await replayed({ state: 'given up' }, 0)
  assert.deepEqual(await replay(parts, sandbox.divisionId, id, {}), { refused: 'There is no active endpoint with this id.' })
  const { endpoints } = await checkNotifications(gateway.pool)
  assert.ok(endpoints.find(one => one.endpointId === id)!.balanced)
  await receiver.close()
})

test('a cursor is read in order, acknowledged by the next reading, and goes on where it stopped', async () => {
  const read = (more: Fields = {}) =>
    gateway.post('/sandbox/notifications', { entityId: sandbox.lenientEntityId, name: 'cursor-test', ...more })
  const pay = async () => (await gateway.pay({ entityId: sandbox.lenientEntityId })).body.id
  const empty = await read()
  assert.deepEqual(empty.body.notifications, [])
  const ids = [await pay(), await pay()]
  const both = await eventually(async () => {
    const { body } = await read({ wait: '5' })
    return body.notifications.length === 2 && body
  }, 'two to read')
  assert.deepEqual(
    both.notifications.map((one: { headers: Fields; body: string }) => {
      const headers = Object.fromEntries(Object.entries(one.headers).map(([name, value]) => [name.toLowerCase(), value]))
      return opened({ headers, text: one.body }, both.secret).payload.id
    }),
    ids,
  )
  // Not acknowledged: read again. The first one acknowledged: the second is left.
  assert.equal((await read()).body.notifications.length, 2)
  assert.deepEqual(
    (await read({ after: '1' })).body.notifications.map((one: { position: string }) => one.position),
    ['2'],
  )
  assert.deepEqual((await read({ after: '2' })).body.notifications, [])
  const mine = (await checkNotifications(gateway.pool)).endpoints.find(one => one.name === 'cursor-test')!
  assert.deepEqual([mine.emitted, mine.acknowledged, mine.balanced], [2, 2, true])
  assert.equal((await read({ after: 'x' })).status, 400)
  assert.equal((await read({ wait: '6' })).status, 400)
  assert.equal((await gateway.post('/sandbox/notifications', { entityId: sandbox.entityId, name: 'random-0' })).status, 400)
  const numbered = await gateway.post('/sandbox/notifications', { entityId: sandbox.entityId, name: 'of-374245455400126' })
  assert.deepEqual(numbered.body.result.parameterErrors, [{ name: 'name', message: 'must hold no card number' }])
})

test('a merchant has so many cursors, and one more is refused by name', async () => {
  const post = (name: string) => gateway.post('/sandbox/notifications', { entityId: sandbox.lenientEntityId, name })
  let made = 0
  while (made <= 100 && (await post(`many-${made}`)).status === 200) made++
  assert.ok(made > 90 && made <= 100, `${made} were made`)
  assert.equal((await post('many-0')).status, 200, 'those that there are go on')
  assert.deepEqual((await post('one-more')).body.result.parameterErrors[0].name, 'name')
})

test('kill -9 in the middle of delivery loses nothing', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'tollgate-test-'))
  const receiver = await startReceiver()
  const start = async () => {
    const process_ = spawn(process.execPath, ['--min-semi-space-size=16', 'src/main.ts'], {
      cwd: project,
      env: { ...process.env, DATA_DIR: dataDir, PORT: '0', LOG_LEVEL: 'silent', SEED_FILE: '', DATABASE_URL: '' },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let said = ''
    process_.stdout!.on('data', chunk => {
      said += chunk
    })
    const baseUrl = await eventually(async () => /Base address +(\S+)/.exec(said)?.[1], 'the gateway is ready')
    const exited = new Promise(resolve => process_.once('exit', resolve))
    return {
      baseUrl,
      pid: process_.pid!,
      exited,
      kill: (signal: 'SIGKILL' | 'SIGTERM') => {
        process_.kill(signal)
        return exited
      },
    }
  }
  const post = async (url: string, fields: Fields) => {
    const response = await fetch(url, {
      method: 'POST',
      headers: { Authorization: `Bearer ${sandbox.accessToken}`, 'Content-Type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ entityId: sandbox.entityId, ...fields }).toString(),
    })
    // biome-ignore lint/suspicious/noExplicitAny: an answer of the interface
    return (await response.json()) as any
  }
  const pay = (baseUrl: string, more: Fields = {}) =>
    post(`${baseUrl}/v1/payments`, {
      paymentType: 'DB',
      amount: '1.00',
      currency: 'EUR',
      ...visa,
      notificationUrl: receiver.url,
      ...more,
    })
  const paid: string[] = []
  let running = await start()
  try {
    for (let round = 0; round < 2; round++) {
      // Slow answers: when the kill comes, deliveries are waiting, under way, and answered but not yet marked.
      receiver.answer = () => (Math.random() < 0.5 ? 'hang' : 200)
      const before = receiver.received.length
      const made = await Promise.all(Array.from({ length: 40 }, () => pay(running.baseUrl)))
      paid.push(...made.map(({ id }) => id as string))
      await eventually(async () => receiver.received.length > before + 5, 'delivery is under way')
      await running.kill('SIGKILL')
      receiver.answer = () => 200
      running = await start()
    }
    await post(`${running.baseUrl}/sandbox/clock`, { advance: '2h' })
    const secret = await withDatabase(dataDir, async (pool, keysOf) => {
      const check = await balanced(pool, 'everything is told')
      assert.deepEqual(
        check.endpoints.map(({ emitted, acknowledged, balanced }) => [emitted, acknowledged, balanced]),
        [[80, 80, true]],
      )
      return keysOf()
    })
    const heard = new Set(receiver.received.filter(({ status }) => status === 200).map(one => opened(one, secret).payload.id))
    assert.deepEqual([...heard].sort(), paid.sort())
    const told = receiver.received.map(({ headers }) => headers['webhook-id'])
    assert.equal(new Set(told).size, 80) // repeats carry the id that they had before
    assert.ok(told.length > 80)
  } finally {
    await running.kill('SIGTERM')
    await receiver.close()
    rmSync(dataDir, { recursive: true, force: true })
  }
})

/** Looks into the embedded database of a running gateway, with its keys. */
async function withDatabase<Value>(
  dataDir: string,
  look: (pool: pg.Pool, secret: () => Promise<string>) => Promise<Value>,
): Promise<Value> {
  const pool = testPool(runningEmbedded(dataDir)!, 2)
  try {
    const keys = readConfig({ DATA_DIR: dataDir }, '/nonexistent').keys(() => systemRandom.bytes(32))
    return await look(pool, async () => secretsOf(keys, (await listEndpoints(pool, null))[0]!)[0]!)
  } finally {
    await pool.end()
  }
}
