// Due work between two processes on one database, seen by whom it calls: what one holds the other leaves alone, for the length of a lease, and
// the movable clock keeps the order.

import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { listDeliveries } from '../src/notifications/deliveries/store.ts'
import { clockWith, systemRandom } from '../src/platform/clock.ts'
import { addDue, leaseSeconds, moveClock } from '../src/platform/due/store.ts'
import { addEndpoint } from './support/endpoints.ts'
import { type Client, eventually, sandbox, type TestGateway, testGateway } from './support/gateway.ts'
import { type Receiver, startReceiver } from './support/receiver.ts'

let ahead = 0
const clock = clockWith(() => Date.now() + ahead)
let gateway: TestGateway
let other: Client
let shop: Receiver

before(async () => {
  gateway = await testGateway({ clock, alone: false })
  other = await gateway.another()
  shop = await startReceiver()
})
beforeEach(() => {
  shop.answer = () => 200
  shop.received.length = 0
})
after(async () => {
  await shop.close()
  await other.stop()
  await gateway.stop()
})

/** A missed return that is due now or in so many milliseconds: its handler calls the shop. */
async function callsShop(name: string, later = 0, merchantId: string = sandbox.merchantId): Promise<void> {
  const details = { id: name, resourcePath: '/', shopperResultUrl: `${shop.url}/${name}` }
  await addDue(gateway.pool, 'missedReturn', merchantId, systemRandom.uuid(), clock.real() + later, details)
}
const called = () => shop.received.map(({ path }) => /\w+/.exec(path)![0])
const isCalled = (name: string) => eventually(async () => called().includes(name), `${name} is called`)

/** Calls of this name wait until the test answers them, each for itself. */
function answeringByHand(name: string): ((status: number) => void)[] {
  const answers: ((status: number) => void)[] = []
  shop.answer = ({ path }) => (path.startsWith(`/${name}`) ? new Promise(resolve => answers.push(resolve)) : 200)
  return answers
}

/** Two further things are done, one after the other: whatever else was due has been taken meanwhile. */
async function roundsGoBy(): Promise<void> {
  for (const name of ['one', 'two']) {
    await callsShop(name)
    await isCalled(name)
  }
}

test('what a process holds is left to it until its lease runs out', async () => {
  const answers = answeringByHand('first')
  await callsShop('first')
  await isCalled('first')
  ahead += (leaseSeconds * 1000) / 2
  await roundsGoBy()
  assert.deepEqual(called(), ['first', 'one', 'two'])
  ahead += (leaseSeconds * 1000) / 2
  await eventually(async () => answers.length === 2, 'the other one takes it')
  for (const answer of answers) answer(200)
})

test('a row that somebody has locked delays no other', async () => {
  await callsShop('locked', 3_600_000)
  const holder = await gateway.pool.connect()
  try {
    await holder.query('begin')
    await holder.query('select 1 from due_work where due_at > $1 for update', [new Date(clock.real() + 3_000_000)])
    ahead += 3_600_000
    await roundsGoBy()
    assert.deepEqual(called(), ['one', 'two'])
  } finally {
    await holder.query('rollback')
    holder.release()
  }
  await isCalled('locked')
})

test('what takes long delays no other, not in its own process either', async () => {
  const answers = answeringByHand('slow')
  for (const name of ['slow1', 'slow2', 'slow3']) {
    await callsShop(name)
    await isCalled(name)
  }
  await roundsGoBy()
  assert.deepEqual(called(), ['slow1', 'slow2', 'slow3', 'one', 'two'])
  // What was called last is done a moment after its call.
  const leased = 'select from due_work where leased_until is not null and attempts = 1'
  await eventually(async () => (await gateway.pool.query(leased)).rowCount === 3, 'they alone are under way')
  for (const answer of answers) answer(200)
})

test('errands to servers that say nothing hold up neither what is done about money nor the errands of another merchant', async () => {
  const answers = answeringByHand('silent')
  const left = async (kind: string) =>
    (await gateway.pool.query('select from due_work where kind = $1 and due_at < now() + $2', [kind, '1 minute'])).rowCount!
  for (let count = 0; count < 60; count++) await callsShop(`silent${count}`)
  await eventually(async () => answers.length >= 8, 'two processes call')
  const other = '5a11d0000000000000000000000000e9'
  for (const name of ['another', 'more']) await callsShop(name, 0, other)
  await addDue(gateway.pool, 'redirectExpiry', sandbox.merchantId, systemRandom.uuid(), clock.real())
  await eventually(async () => (await left('redirectExpiry')) === 0, 'it is done')
  await eventually(async () => called().includes('another') && called().includes('more'), 'they are called')
  assert.equal(answers.length, 8, 'each has four calls for one merchant')
  let answered = 0
  await eventually(async () => {
    while (answered < answers.length) answers[answered++]!(200)
    return answered === 60 && (await left('missedReturn')) === 0
  }, 'all are called in the end')
})

test('the movable clock waits for what a process holds, and only then goes on', async () => {
  const answers = answeringByHand('held')
  await callsShop('held')
  await isCalled('held')
  await callsShop('later', 30_000)
  const advanced = gateway.advance('1m')
  await roundsGoBy()
  assert.deepEqual(called(), ['held', 'one', 'two'])
  answers[0]!(200)
  assert.equal((await advanced).status, 200)
  assert.deepEqual(called(), ['held', 'one', 'two', 'later'])
})

test('the movable clock runs what falls due in its order, whatever table it waits in', async () => {
  const { id } = await addEndpoint(gateway.pool, { url: `${shop.url}/told` })
  shop.received.length = 0
  shop.answer = ({ path }) => (path.startsWith('/told') && shop.received.length === 0 ? 500 : 200)
  await gateway.pay()
  await eventually(
    async () => (await listDeliveries(gateway.pool, sandbox.merchantId, id, 'scheduled', 1))[0]?.lastStatus === 500,
    'it is to be told again in a minute',
  )
  await callsShop('before', 30_000)
  await callsShop('after', 90_000)
  await gateway.advance('2m')
  assert.deepEqual(called(), ['told', 'before', 'told', 'after'])
})

test('a clock goes no further than the year 9000, in however many steps', async () => {
  const day = 86_400_000
  const mine = await testGateway()
  const clock = async (advance: string) => {
    const { status, body } = await mine.advance(advance)
    const { now = '', result } = body as { now?: string; result: { parameterErrors?: { name: string; message: string }[] } }
    return [status, now.slice(0, 10), ...(result.parameterErrors ?? []).map(({ name, message }) => `${name} ${message}`)]
  }
  await moveClock(mine.pool, sandbox.merchantId, Date.UTC(9000, 0) - Date.now() - 2.5 * day)
  await clock('0ms')
  assert.deepEqual(await clock('2d'), [200, '8999-12-31'])
  assert.deepEqual(await clock('1d'), [400, '', 'advance must not lead beyond the year 9000'])
  assert.equal((await clock('1h'))[0], 200)
  await mine.stop()
})
