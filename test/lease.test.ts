// Due work that takes longer than a lease: the lease is renewed for as long as its handler works.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { clockWith } from '../src/platform/clock.ts'
import { addDue, leaseSeconds } from '../src/platform/due/store.ts'
import type { WorkerParts } from '../src/platform/due/worker.ts'
import { runItem } from '../src/platform/due/worker.ts'
import { takeAnyDue } from './support/due.ts'
import { eventually, sandbox, type TestGateway, testGateway } from './support/gateway.ts'

let gateway: TestGateway
before(async () => {
  gateway = await testGateway()
})
after(() => gateway.stop())

test('it is not taken by another while it runs, and is gone when it has ended', async t => {
  const subject = '01a1fcaebec47bdc9003acd45c0c06f4'
  let now = Date.now() + 24 * 3_600_000 // later than the gateway's own worker looks
  await addDue(gateway.pool, 'reverse', sandbox.merchantId, subject, now)
  const take = async () => (await takeAnyDue(gateway.pool, now, 10, ['reverse']))[0]
  const item = (await take())!
  t.mock.timers.enable({ apis: ['setInterval'] })
  let finish = () => {}
  const handlers = new Map([['reverse', () => new Promise<'done'>(resolve => (finish = () => resolve('done')))]])
  const { pool } = gateway
  const running = runItem({ database: { work: pool }, clock: clockWith(() => now) } as unknown as WorkerParts, handlers, item)
  const leasedUntil = async () =>
    new Date(
      (await pool.query('select leased_until as at from due_work where subject_id = $1', [subject])).rows[0]?.at ?? 0,
    ).getTime()
  for (let renewals = 0; renewals < 5; renewals++) {
    const before = await leasedUntil()
    const step = (leaseSeconds * 1000) / 3
    now += step
    await eventually(async () => {
      t.mock.timers.tick(step) // again, when the last renewal had not come back yet
      return (await leasedUntil()) > before
    }, 'the lease is renewed')
    assert.equal(await take(), undefined)
  }
  finish()
  await running
  assert.equal(await leasedUntil(), 0)
})

test('at the start of a process that is alone it does not wait for the lease of a dead one', async () => {
  const { body } = await gateway.pay({ 'customParameters[simulateAnswer]': 'none' })
  // As if a process had taken it, and had been killed.
  await gateway.pool.query(
    `update due_work set due_at = now() - interval '1 second', leased_until = now() + interval '115 seconds' where subject_id = $1`,
    [body.id],
  )
  await gateway.restart()
  await eventually(async () => {
    const { body: read } = await gateway.get(`/v1/payments/${body.id}`, { entityId: sandbox.entityId })
    return read.result.code === '900.100.301'
  }, 'recovery settles it')
})
