// From a payment to a merchant's server: what is told to whom, in which order, how often, and what is kept of it.
import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import type { Actor } from '../src/audit/entry.ts'
import { checkNotifications } from '../src/notifications/deliveries/check.ts'
import { listAttempts, listDeliveries } from '../src/notifications/deliveries/store.ts'
import { activateEndpoint, closeEndpoint, createEndpoint, rotateSecret } from '../src/notifications/endpoints/endpoint.ts'
import { givenUpAfter, nextAttempt } from '../src/notifications/retrySchedule.ts'
import { addEndpoint, endpointParts, type TestEndpoint } from './support/endpoints.ts'
import { eventually, sandbox, type TestGateway, testGateway } from './support/gateway.ts'
import { opened, type Received, type Receiver, startReceiver } from './support/receiver.ts'

let gateway: TestGateway
let receiver: Receiver
let endpoint: TestEndpoint | undefined

before(async () => {
  gateway = await testGateway()
  receiver = await startReceiver()
})
beforeEach(() => {
  receiver.answer = () => 200
  receiver.received.length = 0
})
after(async () => {
  await receiver.close()
  await gateway.stop()
})

/** An endpoint of its own for each test; the one before is deleted. */
async function listening(wanted: Parameters<typeof addEndpoint>[1] | object = {}): Promise<TestEndpoint> {
  if (endpoint) await closeEndpoint(endpointParts(gateway.pool), sandbox.merchantId, endpoint.id, 'deleted', Date.now())
  endpoint = await addEndpoint(gateway.pool, { url: `${receiver.url}/hook`, ...wanted })
  receiver.received.length = 0
  return endpoint
}
const told = (count: number) =>
  eventually(async () => receiver.received.length >= count && receiver.received, `${count} notifications`)
const ids = (all: readonly Received[]) => all.map(one => opened(one, endpoint!.secret).payload.id)
const settled = (id: string, state: string, count: number) =>
  eventually(async () => {
    const rows = await listDeliveries(gateway.pool, sandbox.merchantId, id, state, 100)
    return rows.length >= count && rows
  }, `${count} ${state}`)

test('a payment, its capture and its refund are told as they were answered, in order', async () => {
  const { id, secret } = await listening()
  const pa = await gateway.pay({ paymentType: 'PA', merchantTransactionId: 'order-0001' })
  const cp = await gateway.refer(pa.body.id, { paymentType: 'CP', amount: '92.00', currency: 'EUR' })
  const rf = await gateway.refer(pa.body.id, { paymentType: 'RF', amount: '10.00', currency: 'EUR' })
  const all = await told(3)
  const presented = (amount: string) => ({ presentationAmount: amount, presentationCurrency: 'EUR' })
  assert.deepEqual(
    all.map(one => opened(one, secret)),
    [
      { type: 'PAYMENT', payload: { ...pa.body, ...presented('92.00') }, ...presented('92.00') },
      { type: 'PAYMENT', payload: { ...cp.body, ...presented('92.00') }, ...presented('92.00') },
      { type: 'PAYMENT', payload: { ...rf.body, ...presented('10.00') }, ...presented('10.00') },
    ],
  )
  assert.equal(cp.body.referencedId, pa.body.id)
  assert.deepEqual(
    all.map(({ headers }) => headers['x-notification-sequence']),
    ['1', '2', '3'],
  )
  assert.deepEqual(
    all.map(({ headers }) => headers['content-type']),
    Array(3).fill('text/plain; charset=UTF-8'),
  )
  await settled(id, 'acknowledged', 3)
  const [attempt] = await listAttempts(gateway.pool, sandbox.merchantId, id, 1)
  assert.deepEqual([attempt?.status, attempt?.answer, attempt?.acknowledged], [200, 'said 200', true])
})

test('a pending payment is told as pending, then as what it became, with the action UPDATED', async () => {
  const { secret } = await listening({ wrapper: 'json' })
  const paid = await gateway.pay({ 'customParameters[simulateAnswer]': 'none', 'customParameters[simulateDelay]': '0' })
  assert.equal(paid.body.result.code, '000.200.000')
  const [pending] = await told(1)
  const { timestamp, ...rest } = opened(pending!, secret).payload
  assert.equal(rest.result.code, '000.200.000')
  assert.equal(rest.id, paid.body.id)
  assert.equal(rest.ndc, paid.body.ndc)
  await gateway.advance('1m')
  const final = opened((await told(2))[1]!, secret)
  assert.equal(final.action, 'UPDATED')
  assert.equal(final.payload.id, paid.body.id)
  assert.equal(final.payload.result.code, '900.100.301')
})

test('retries after 1, 2, 4, 8, 15, 30 minutes and 1 hour, then daily up to 30 days, then given up: by the movable clock', async () => {
  receiver.answer = () => 200
  const { id } = await listening()
  receiver.answer = () => 500
  await gateway.pay()
  await told(1)
  await gateway.advance('31d')
  const [delivery] = await settled(id, 'given up', 1)
  const attempts = await listAttempts(gateway.pool, sandbox.merchantId, id, delivery!.position)
  const minutes = attempts.slice(1).map((one, at) => Math.round((one.attemptedAt - attempts[at]!.attemptedAt) / 60_000))
  assert.deepEqual(minutes, [1, 2, 4, 8, 15, 30, 60, ...Array(29).fill(1440)])
  assert.equal(receiver.received.length, attempts.length)
  assert.deepEqual(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size, 1)
  assert.deepEqual(
    receiver.received.map(({ headers }) => Number(headers['x-notification-attempt'])),
    attempts.map((_, at) => at + 1),
  )
})

test('the ladder, both sides of its limits', () => {
  assert.equal(nextAttempt(1, 0), 60_000)
  assert.equal(nextAttempt(7, 0), 3_600_000)
  assert.equal(nextAttempt(8, 0), 86_400_000)
  assert.equal(nextAttempt(9, givenUpAfter - 86_400_000), 86_400_000)
  assert.equal(nextAttempt(9, givenUpAfter - 86_400_000 + 1), undefined)
  // Retry-After is obeyed when it asks for more, up to a day.
  assert.equal(nextAttempt(1, 0, 30), 60_000)
  assert.equal(nextAttempt(1, 0, 300), 300_000)
  assert.equal(nextAttempt(1, 0, 1e9), 86_400_000)
})

test('the notifications of one payment wait for each other; those of another payment do not', async () => {
  await listening()
  let refuse = true
  const first = await gateway.pay({ paymentType: 'PA' })
  await told(1)
  receiver.answer = () => (refuse ? 500 : 200)
  const cp = await gateway.refer(first.body.id, { paymentType: 'CP', amount: '1.00', currency: 'EUR' })
  await told(2) // refused: its follower must wait now
  refuse = false
  const rf = await gateway.refer(first.body.id, { paymentType: 'RF', amount: '1.00', currency: 'EUR' })
  const other = await gateway.pay()
  await told(3)
  await gateway.advance('1m')
  await told(5)
  assert.deepEqual(ids(receiver.received), [first.body.id, cp.body.id, other.body.id, cp.body.id, rf.body.id])
})

test('a follower goes after the attempt of the first one after 1 hour, and not before', async () => {
  await listening()
  const pa = await gateway.pay({ paymentType: 'PA' })
  await told(1)
  receiver.answer = one => (opened(one, endpoint!.secret).payload.paymentType === 'CP' ? 500 : 200)
  const cp = await gateway.refer(pa.body.id, { paymentType: 'CP', amount: '1.00', currency: 'EUR' })
  await told(2)
  const rf = await gateway.refer(pa.body.id, { paymentType: 'RF', amount: '1.00', currency: 'EUR' })
  await gateway.advance('61m') // the attempts up to the one after 30 minutes
  assert.deepEqual(ids(receiver.received).slice(1), Array(7).fill(cp.body.id))
  await gateway.advance('1h')
  assert.deepEqual(ids(receiver.received).slice(1), [...Array(8).fill(cp.body.id), rf.body.id])
})

test('an endpoint hears of its channel and types only, from its activation on', async () => {
  await gateway.pay()
  const { id } = await listening({ channelId: sandbox.lenientEntityId })
  await gateway.pay()
  const paid = await gateway.pay({ entityId: sandbox.lenientEntityId })
  const [only] = await told(1)
  assert.equal(opened(only!, endpoint!.secret).payload.id, paid.body.id)
  const registrations = await addEndpoint(gateway.pool, { url: receiver.url, types: ['REGISTRATION'] })
  await gateway.pay({ entityId: sandbox.lenientEntityId })
  await settled(id, 'acknowledged', 2)
  assert.deepEqual(await listDeliveries(gateway.pool, sandbox.merchantId, registrations.id, null, 10), [])
})

test('refusals by format leave no notification, a declined card does', async () => {
  await listening()
  await gateway.pay({ amount: 'x' })
  await gateway.refer('0'.repeat(32), { paymentType: 'RF', amount: '1.00', currency: 'EUR' })
  const declined = await gateway.pay({ 'card.number': '4000000000000002' })
  assert.equal(declined.status, 400)
  await told(1)
  assert.deepEqual(ids(receiver.received), [declined.body.id])
})

test('activation needs a 2xx of the test notification', async () => {
  const parts = endpointParts(gateway.pool)
  const made = await createEndpoint(parts, { merchantId: sandbox.merchantId, kind: 'webhook', url: receiver.url })
  assert.ok('endpoint' in made)
  const activate = () => activateEndpoint(parts, sandbox.merchantId, made.endpoint.id, Date.now())
  const state = async () =>
    (await gateway.pool.query('select state from endpoints where id = $1', [made.endpoint.id])).rows[0].state
  receiver.answer = () => 302
  assert.equal(((await activate()) as { status: number }).status, 302)
  assert.equal(await state(), 'inactive')
  assert.equal(receiver.received.length, 1) // the redirect was not followed
  receiver.answer = () => 204
  await activate()
  assert.equal(await state(), 'active')
  assert.deepEqual(opened(receiver.received[1]!, made.secret), {
    type: 'test',
    action: 'webhook activation',
    payload: {
      result: { code: '000.100.110', description: "Request successfully processed in 'Merchant in Integrator Test Mode'" },
    },
  })
  await closeEndpoint(parts, sandbox.merchantId, made.endpoint.id, 'deleted', Date.now())
})

/** An activation whose test notification waits for its answer, while something happens. */
async function activating(
  happens: (id: string, activate: () => ReturnType<typeof activateEndpoint>) => Promise<unknown>,
  by?: Actor,
) {
  const parts = endpointParts(gateway.pool)
  const made = await createEndpoint(parts, { merchantId: sandbox.merchantId, kind: 'webhook', url: receiver.url })
  assert.ok('endpoint' in made)
  const { id } = made.endpoint
  const told = Promise.withResolvers<void>()
  const answer = Promise.withResolvers<number>()
  receiver.answer = () => {
    told.resolve()
    return answer.promise
  }
  const first = activateEndpoint({ ...parts, ...(by && { by }) }, sandbox.merchantId, id, Date.now())
  await told.promise
  receiver.answer = () => 200
  await happens(id, () => activateEndpoint(parts, sandbox.merchantId, id, Date.now()))
  answer.resolve(200)
  const ended = await first.catch((error: Error) => ({ refused: error.message }))
  const { rows } = await gateway.pool.query('select state from endpoints where id = $1', [id])
  const activated = await gateway.pool.query(`select from audit where action = 'endpointActivated' and subject = $1`, [id])
  await closeEndpoint(parts, sandbox.merchantId, id, 'deleted', Date.now())
  return { state: rows[0].state, activations: activated.rowCount, refused: 'refused' in ended ? ended.refused : undefined }
}
const changedMeanwhile = 'It was changed meanwhile: look at it, and try again.'

test('a webhook that is closed, or changed, while its test notification waits for an answer is not activated by it', async () => {
  const parts = endpointParts(gateway.pool)
  const disable = (id: string) => closeEndpoint(parts, sandbox.merchantId, id, 'disabled', Date.now())
  const readdress = (id: string) => gateway.pool.query(`update endpoints set url = url || '/other' where id = $1`, [id])
  for (const [what, state, activations, happens] of [
    ['disabled', 'disabled', 0, disable],
    ['active meanwhile, and disabled', 'disabled', 1, async (id, activate) => [await activate(), await disable(id)]],
    ['disabled, active and disabled', 'disabled', 1, async (id, again) => [await disable(id), await again(), await disable(id)]],
    ['another secret', 'inactive', 0, id => rotateSecret(parts, sandbox.merchantId, id, 'begin')],
    ['another address', 'inactive', 0, readdress],
  ] satisfies [string, string, number, Parameters<typeof activating>[0]][])
    assert.deepEqual(await activating(happens), { state, activations, refused: changedMeanwhile }, what)
  const deleted = await activating(id => closeEndpoint(parts, sandbox.merchantId, id, 'deleted', Date.now()))
  assert.deepEqual([deleted.state, deleted.activations], ['deleted', 0])
})

test('one that was disabled before is not activated when it is disabled once more meanwhile', async () => {
  const parts = endpointParts(gateway.pool)
  const disable = (id: string) => closeEndpoint(parts, sandbox.merchantId, id, 'disabled', Date.now())
  let refused: unknown
  await activating(async id => {
    await disable(id)
    const [told, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<number>()]
    receiver.answer = () => {
      told.resolve()
      return answer.promise
    }
    const activation = activateEndpoint(parts, sandbox.merchantId, id, Date.now())
    await told.promise
    await disable(id)
    answer.resolve(200)
    refused = await activation
  })
  assert.deepEqual(refused, { refused: changedMeanwhile })
})

test('two activations at once are one, and one of which nothing was changed meanwhile counts', async () => {
  const active = { state: 'active', activations: 1, refused: undefined }
  assert.deepEqual(await activating(async () => {}), active)
  assert.deepEqual(await activating((_, activate) => activate()), active)
})

test('a webhook is not activated for whoever is dismissed while it is tested', async () => {
  let isHere = true
  const by: Actor = { kind: 'user', id: 'ann', address: 'here', isStill: async () => isHere }
  const dismissed = await activating(async () => {
    isHere = false
  }, by)
  assert.deepEqual(dismissed, { state: 'inactive', activations: 0, refused: 'Whoever asked for it may act no more.' })
})

test('410 disables a webhook: what was scheduled is given up, nothing more is sent', async () => {
  const { id } = await listening()
  receiver.answer = () => 410
  await gateway.pay()
  await settled(id, 'given up', 1)
  await gateway.pay()
  await gateway.advance('2m')
  assert.equal(receiver.received.length, 1)
  const { endpoints } = await checkNotifications(gateway.pool)
  const mine = endpoints.find(one => one.endpointId === id)!
  assert.deepEqual([mine.state, mine.emitted, mine.givenUp, mine.balanced], ['disabled', 1, 1, true])
})

test('what a closed endpoint is owed is given up behind it, by whoever lives: until then it is told nothing and is not activated', async () => {
  const { id, secret } = await listening()
  receiver.answer = () => 500
  const paid = await gateway.pay()
  await told(1)
  await eventually(
    async () => (await listDeliveries(gateway.pool, sandbox.merchantId, id, 'scheduled', 9))[0]?.lastStatus,
    'tried',
  )
  const parts = endpointParts(gateway.pool)
  const tried = await gateway.pool.connect()
  await tried.query('begin')
  await tried.query('select from deliveries where endpoint_id = $1 for update', [id])
  // Whoever ends the delivery has it: closing waits for nobody, and neither does fan-out.
  assert.deepEqual(await closeEndpoint(parts, sandbox.merchantId, id, 'disabled', Date.now()), { givenUp: 0 })
  receiver.answer = () => 200
  await gateway.advance('2m')
  const activate = () => activateEndpoint(parts, sandbox.merchantId, id, Date.now())
  const refused = await activate()
  assert.match('refused' in refused ? refused.refused : '', /still being given up/)
  await tried.query('commit')
  tried.release()
  await settled(id, 'given up', 1) // by the gateway, in its next look
  assert.ok(!('refused' in (await activate())))
  const later = await gateway.pay()
  const heard = () => receiver.received.map(one => opened(one, secret).payload.id)
  await eventually(async () => heard().includes(later.body.id), 'the payment after it')
  assert.equal(heard().filter(one => one === paid.body.id).length, 1)
  const { endpoints } = await checkNotifications(gateway.pool)
  const mine = endpoints.find(one => one.endpointId === id)!
  assert.deepEqual([mine.state, mine.emitted, mine.givenUp, mine.balanced], ['active', 2, 1, true])
})

test('during a rotation a receiver that knows either secret hears everything', async () => {
  const { id, secret } = await listening()
  const rotated = await rotateSecret(endpointParts(gateway.pool), sandbox.merchantId, id, 'begin')
  assert.ok('secrets' in rotated)
  assert.equal(rotated.secrets[0], secret)
  const next = rotated.secrets[1]!
  receiver.answer = one => (opened(one, next) === undefined ? 400 : 200)
  const paid = await gateway.pay()
  await told(1)
  await gateway.advance('1m')
  assert.equal(opened((await told(2))[1]!, next).payload.id, paid.body.id)
  await rotateSecret(endpointParts(gateway.pool), sandbox.merchantId, id, 'finish')
  const later = await gateway.pay()
  assert.equal(opened((await told(3))[2]!, next).payload.id, later.body.id)
})

test('notificationUrl gets the envelope with a secret of its channel, or the old query where the channel says so', async () => {
  if (endpoint) await closeEndpoint(endpointParts(gateway.pool), sandbox.merchantId, endpoint.id, 'deleted', Date.now())
  const paid = await gateway.pay({ notificationUrl: `${receiver.url}/own?shop=1` })
  const [posted] = await told(1)
  assert.deepEqual([posted!.method, posted!.path], ['POST', '/own?shop=1'])
  assert.match(posted!.text, /^[0-9A-F]+$/)
  await gateway.pool.query(`update entities set settings = settings || '{"notificationUrlForm":"get"}' where id = $1`, [
    sandbox.entityId,
  ])
  await gateway.pool.query(`select pg_notify('tollgate_directory', '')`)
  const [got] = await eventually(async () => {
    receiver.received.length = 0
    const again = await gateway.pay({ notificationUrl: `${receiver.url}/own?shop=1` })
    const [one] = await told(1)
    return one!.method === 'GET' && ([one!, again] as const)
  }, 'the new setting')
  const query = new URL(got.path, receiver.url).searchParams
  assert.equal(query.get('shop'), '1')
  assert.match(query.get('resourcePath')!, new RegExp(`^/v1/payments/${query.get('id')}$`))
  assert.notEqual(query.get('id'), paid.body.id)
  await gateway.pool.query(`update entities set settings = settings - 'notificationUrlForm' where id = $1`, [sandbox.entityId])
})

test('a notificationUrl that may not be called is given up at once, and delays nothing', async () => {
  const paid = await gateway.pay({ notificationUrl: 'http://169.254.169.254/latest/' })
  const { rows } = await gateway.pool.query("select id from endpoints where kind = 'request' and state = 'active'")
  const [delivery] = await settled(rows[0].id.replaceAll('-', ''), 'given up', 1)
  assert.deepEqual(
    [delivery!.paymentId, delivery!.lastFailure],
    [paid.body.id, 'the URL must not name a private or special address'],
  )
})

test('after all this the books balance', async () => {
  const check = await eventually(async () => {
    const found = await checkNotifications(gateway.pool)
    return found.waiting === 0 && found
  }, 'nothing waits')
  assert.deepEqual(
    check.endpoints.filter(({ balanced }) => !balanced),
    [],
  )
  assert.ok(check.endpoints.length > 8)
})
