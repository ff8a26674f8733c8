// Retention: sealed cards go after their last day, idempotency keys after their hours, neither sooner.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eraseKeys } from '../src/payments/store/sweep.ts'
import { eraseCards } from '../src/vault/cardStore.ts'
import { cardRetentionDays } from '../src/vault/cards.ts'
import { eventually, sandbox, type TestGateway, testGateway, visa } from './support/gateway.ts'

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

test('a sealed card goes by the time of its merchant, soon after a start', async () => {
  const { body } = await gateway.pay()
  const cards = async () => (await gateway.pool.query('select 1 from sealed_cards where payment_id = $1', [body.id])).rowCount
  const elsewhere = sandbox.merchantId.replace(/.$/, '2')
  await gateway.pool.query(
    `insert into entities (id, kind, parent_id, merchant_id, name, settings, changed_at, clock_offset_ms)
     select $2, kind, parent_id, $2, 'another', '{}', changed_at, 0 from entities where id = $1`,
    [sandbox.merchantId, elsewhere],
  )
  await gateway.pool.query(
    'insert into sealed_cards select $2, payment_id, sealed, erase_after from sealed_cards where payment_id = $1',
    [body.id, elsewhere],
  )
  await gateway.advance(`${cardRetentionDays + 1}d`)
  assert.equal(await cards(), 2)
  await gateway.restart()
  // The merchant's own card is gone, that of a merchant whose time was not moved is still there.
  await eventually(async () => (await cards()) === 1, 'it is erased')
  const { rows } = await gateway.pool.query('select merchant_id as id from sealed_cards where payment_id = $1', [body.id])
  assert.equal(String(rows[0].id).replaceAll('-', ''), elsewhere)
})

test('an idempotency key is kept until it is old enough', async () => {
  const { rows } = await gateway.pool.query<{ at: Date | number }>('select recorded_at as at from idempotency_keys')
  const at = Number(rows[0]!.at)
  assert.equal(await eraseKeys(gateway.pool, at), 0)
  assert.equal(await eraseKeys(gateway.pool, at + 1), 1)
})
