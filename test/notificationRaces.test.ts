// Several who are at one notification: a lease that runs out while its call is still under way, a failure that comes after a later attempt has
// begun, a row that another process holds, and a state that is found only after a later one was told.

import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { leaseMilliseconds, listAttempts, listDeliveries } from '../src/notifications/deliveries/store.ts'
import { givenUpAfter } from '../src/notifications/retrySchedule.ts'
import { clockWith } from '../src/platform/clock.ts'
import { addEndpoint, type TestEndpoint } from './support/endpoints.ts'
import { eventually, sandbox, type TestGateway, testGateway } from './support/gateway.ts'
import { opened, type Receiver, startReceiver } from './support/receiver.ts'

let ahead = 0
let gateway: TestGateway
let receiver: Receiver
let endpoint: TestEndpoint

before(async () => {
  gateway = await testGateway({ clock: clockWith(() => Date.now() + ahead) })
  receiver = await startReceiver()
  endpoint = await addEndpoint(gateway.pool, { url: receiver.url })
})
beforeEach(() => {
  receiver.answer = () => 200
  receiver.received.length = 0
})
after(async () => {
  await receiver.close()
  await gateway.stop()
})

const told = (count: number) => eventually(async () => receiver.received.length >= count, `${count} calls`)
const ids = () => receiver.received.map(one => opened(one, endpoint.secret).payload.id)
const pay = async (): Promise<string> => (await gateway.pay()).body.id
const deliveryOf = async (paymentId: string) => {
  const all = await listDeliveries(gateway.pool, sandbox.merchantId, endpoint.id, null, 100)
  return all.find(one => one.paymentId === paymentId)!
}

/** Two further payments are told, one after the other: whatever was due before has been taken meanwhile. */
async function roundsGoBy(): Promise<string[]> {
  const others: string[] = []
  for (let round = 0; round < 2; round++) {
    const id = await pay()
    await eventually(async () => ids().includes(id), 'another payment is told')
    others.push(id)
  }
  return others
}

/** Calls for one payment wait until the test answers them, each for itself; all others are acknowledged. */
function answeringByHand(): ((status: number) => void)[] {
  const answers: ((status: number) => void)[] = []
  let mine: string | undefined
  receiver.answer = one => {
    const { id } = opened(one, endpoint.secret).payload
    mine ??= id
    return id === mine ? new Promise(resolve => answers.push(resolve)) : 200
  }
  return answers
}

test('a call under way is not made again before its lease runs out, and is made again after', async () => {
  const answers = answeringByHand()
  const id = await pay()
  await told(1)
  ahead += leaseMilliseconds / 2
  const others = await roundsGoBy()
  assert.deepEqual(ids(), [id, ...others])
  ahead += leaseMilliseconds / 2
  await eventually(async () => answers.length === 2, 'somebody else takes what the dead one held')
  for (const answer of answers) answer(200)
  await eventually(async () => (await deliveryOf(id)).state === 'acknowledged', 'acknowledged')
})

test('a failure that comes after the next attempt has begun says nothing: the acknowledgement counts', async () => {
  const answers = answeringByHand()
  const id = await pay()
  await told(1)
  ahead += givenUpAfter // an attempt that fails now is the last one
  await eventually(async () => answers.length === 2, 'the second attempt')
  const { position } = await deliveryOf(id)
  answers[0]!(500)
  await eventually(
    async () => (await listAttempts(gateway.pool, sandbox.merchantId, endpoint.id, position)).some(one => one.status === 500),
    'the failure of the first attempt is stored',
  )
  assert.equal((await deliveryOf(id)).state, 'scheduled')
  answers[1]!(200)
  await eventually(async () => (await deliveryOf(id)).state !== 'scheduled', 'the end of the second attempt is stored')
  assert.equal((await deliveryOf(id)).state, 'acknowledged')
})

test('a delivery that another process holds delays no other', async () => {
  let refuse = true
  receiver.answer = () => (refuse ? 500 : 200)
  const held = await pay()
  await eventually(async () => (await deliveryOf(held))?.lastStatus === 500, 'it has to be told again')
  refuse = false
  const other = await gateway.pool.connect()
  try {
    await other.query('begin')
    await other.query('select 1 from deliveries where payment_id = $1 for update', [held])
    ahead += 61_000
    const others = await roundsGoBy()
    assert.deepEqual(ids(), [held, ...others])
  } finally {
    await other.query('rollback')
    other.release()
  }
  await eventually(async () => ids().filter(id => id === held).length === 2, 'it is told when it is free')
})

/** Inserts events of a payment in one transaction, recorded in the order given. */
async function happens(paymentId: string, sequences: readonly number[]): Promise<void> {
  const now = Date.now() + ahead
  await gateway.pool.query(
    `insert into events (merchant_id, payment_id, sequence, type, channel_id, root_id, occurred_at, recorded_at)
     select merchant_id, payment_id, given.sequence, type, channel_id, root_id, occurred_at, given.recorded_at
       from events, unnest($2::int[], $3::timestamptz[]) as given (sequence, recorded_at) where payment_id = $1 and events.sequence = 2`,
    [paymentId, sequences, sequences.map((_, at) => new Date(now + at))],
  )
}

test('a pending state that is found after the final one was told is not told', async () => {
  const id = await pay()
  await told(1)
  await happens(id, [1]) // as if its transaction had committed only now
  const others = await roundsGoBy()
  assert.deepEqual(ids(), [id, ...others])
})

test('an earlier state that is found together with a later one is not told', async () => {
  const id = await pay()
  await told(1)
  await happens(id, [4, 3])
  const others = await roundsGoBy()
  assert.deepEqual(ids(), [id, id, ...others])
})

test('what was set aside and forgotten is told all the same', async () => {
  receiver.answer = () => 500
  const id = await pay()
  await told(1)
  await gateway.pool.query('update deliveries set behind = true, due_at = now() where payment_id = $1', [id])
  receiver.answer = () => 200
  await eventually(async () => (await deliveryOf(id)).state === 'acknowledged', 'it is told')
})
