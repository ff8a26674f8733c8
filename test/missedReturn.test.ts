// The missed return: once, 29 minutes after the checkout was made, unless the status was read before. By the movable clock.
import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { cancelMissedReturn, scheduleMissedReturn } from '../src/checkouts/missedReturn.ts'
import type { Directory } from '../src/merchants/directory.ts'
import { systemClock } from '../src/platform/clock.ts'
import { sandbox, type TestGateway, testGateway } from './support/gateway.ts'
import { type Receiver, startReceiver } from './support/receiver.ts'

let gateway: TestGateway
let shop: Receiver
let number = 0

before(async () => {
  gateway = await testGateway()
  shop = await startReceiver()
})
beforeEach(() => {
  shop.received.length = 0
})
after(async () => {
  await shop.close()
  await gateway.stop()
})

const businessTime = async () => {
  const { rows } = await gateway.pool.query('select clock_offset_ms as "offset" from entities where id = $1', [
    sandbox.merchantId,
  ])
  return Date.now() + Number(rows[0].offset)
}

/** A shopper presses pay, some minutes after the checkout was made. */
async function pressPay(minutesAfter = 0): Promise<string> {
  const subjectId = String(++number).padStart(32, 'a')
  const now = await businessTime()
  const parts = { clock: systemClock, directory: { businessTime: () => now } as unknown as Directory }
  await scheduleMissedReturn(parts, gateway.pool, {
    merchantId: sandbox.merchantId,
    subjectId,
    id: `${subjectId.toUpperCase()}.tail`,
    resourcePath: `/v1/checkouts/${subjectId.toUpperCase()}.tail/payment`,
    shopperResultUrl: `${shop.url}/result?order=7`,
    expiresAt: now + (30 - minutesAfter) * 60_000,
  })
  return subjectId
}

test('the shopper paid and nobody read the status: one call after 29 minutes, not before, not again', async () => {
  const id = (await pressPay()).toUpperCase()
  await gateway.advance('28m')
  assert.equal(shop.received.length, 0)
  await gateway.advance('1m')
  await gateway.advance('3d')
  assert.equal(shop.received.length, 1)
  const [call] = shop.received
  assert.equal(call!.method, 'GET')
  assert.deepEqual(
    [...new URL(call!.path, shop.url).searchParams],
    [
      ['order', '7'],
      ['id', `${id}.tail`],
      ['resourcePath', `/v1/checkouts/${id}.tail/payment`],
    ],
  )
})

test('the status was read: no call', async () => {
  const id = await pressPay()
  assert.equal(await cancelMissedReturn(gateway.pool, sandbox.merchantId, id), true)
  assert.equal(await cancelMissedReturn(gateway.pool, sandbox.merchantId, id), false)
  await gateway.advance('30m')
  assert.equal(shop.received.length, 0)
})

test('a payment in minute 20 is called for 9 minutes later, one after minute 29 at once', async () => {
  await pressPay(20)
  await gateway.advance('8m')
  assert.equal(shop.received.length, 0)
  await gateway.advance('1m')
  assert.equal(shop.received.length, 1)
  await pressPay(29.5)
  await gateway.advance('0m')
  await gateway.advance('1ms')
  assert.equal(shop.received.length, 2)
})

test('a shop that fails or redirects is called once all the same', async () => {
  shop.answer = () => 302
  await pressPay()
  await gateway.advance('30m')
  shop.answer = () => 500
  await pressPay()
  await gateway.advance('1d')
  assert.deepEqual(
    shop.received.map(({ status }) => status),
    [302, 500],
  )
})
