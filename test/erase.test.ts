// Retention: sealed cards go after their last day, idempotency keys after their hours, neither sooner.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { cardRetentionDays } from '../src/payments/pay.ts'
import { eraseCards, eraseKeys } from '../src/payments/store/sweep.ts'
import { sandbox, type TestGateway, testGateway, visa } from './support/gateway.ts'

let gateway: TestGateway
before(async () => {
  gateway = await testGateway()
  const fields = { entityId: sandbox.entityId, paymentType: 'DB', amount: '92.00', currency: 'EUR', ...visa }
  assert.equal((await gateway.post('/v1/payments', fields, { 'Idempotency-Key': 'first' })).status, 200)
})
after(() => gateway.stop())

test('a sealed card is kept through its last day', async () => {
  const { rows } = await gateway.pool.query<{ day: string }>('select erase_after::text as day from sealed_cards')
  const lastMoment = Date.parse(`${rows[0]!.day}T23:59:59.999Z`)
  assert.equal(Math.floor((lastMoment - Date.now()) / 86_400_000), cardRetentionDays)
  assert.equal(await eraseCards(gateway.pool, lastMoment), 0)
  assert.equal(await eraseCards(gateway.pool, lastMoment + 1), 1)
})

test('an idempotency key is kept until it is old enough', async () => {
  const { rows } = await gateway.pool.query<{ at: Date | number }>('select recorded_at as at from idempotency_keys')
  const at = Number(rows[0]!.at)
  assert.equal(await eraseKeys(gateway.pool, at), 0)
  assert.equal(await eraseKeys(gateway.pool, at + 1), 1)
})
