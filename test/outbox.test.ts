// The outbox: every consumer gets each event once, whatever the others do, also when it dies in the middle, comes late, or begins anew.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { consume, type OutboxEvent, type Round } from '../src/payments/outbox/outbox.ts'
import { waitingMerchants } from '../src/payments/outbox/store.ts'
import { eventually, sandbox, type TestGateway, testGateway } from './support/gateway.ts'

let gateway: TestGateway
before(async () => {
  gateway = await testGateway()
  // As a migration adds a consumer.
  await gateway.pool.query('alter table events add column counted text')
  await gateway.pool.query('create index events_not_counted on events (recorded_at) where counted is null')
  await gateway.pool.query(
    'create index events_not_counted_by_merchant on events (merchant_id, recorded_at) where counted is null',
  )
  await gateway.pool.query('create table counted (payment_id uuid, sequence smallint)')
})
after(() => gateway.stop())

const counting = { mark: 'counted', lock: 1 }
const write = async (db: { query(text: string, values: unknown[]): Promise<unknown> }, events: readonly OutboxEvent[]) => {
  for (const { paymentId, sequence, superseded } of events)
    if (!superseded) await db.query('insert into counted values ($1, $2)', [paymentId, sequence])
}
const take = async (limit = 100) => (await consume(gateway.pool, counting, limit, write, { wait: true })).taken
const counted = async () => (await gateway.pool.query('select payment_id, sequence from counted')).rows

describe('a consumer', () => {
  it('gets what happened before it was there, while another has had it', async () => {
    const ids = [(await gateway.pay()).body.id, (await gateway.pay()).body.id]
    await eventually(
      async () => (await gateway.pool.query('select 1 from events where notified is null')).rowCount === 0,
      'the notifications took their events',
    )
    assert.equal(await take(1), 1)
    assert.equal(await take(), 1)
    assert.equal(await take(), 0)
    assert.deepEqual(
      (await counted()).map(row => row.payment_id),
      ids,
    )
  })

  it('gets again what it could not finish, and nothing twice', async () => {
    const { body } = await gateway.pay()
    const failing = consume(gateway.pool, counting, 10, async (db, events) => {
      await write(db, events)
      throw new Error('died')
    })
    await assert.rejects(failing, /died/)
    const both = await Promise.all([take(), take()])
    assert.deepEqual([...both].sort(), [0, 1])
    assert.equal((await counted()).filter(row => row.payment_id === body.id).length, 1)
  })

  it('gets those of others beside a merchant’s many, and of each in their order', async () => {
    const pool = gateway.pool
    await take()
    const [many, others] = ['c0ffee000000000000000000000000a1', 'c0ffee000000000000000000000000a2']
    const add = (merchant: string, count: number, from: number) =>
      pool.query(
        `insert into events (merchant_id, payment_id, sequence, type, channel_id, root_id, occurred_at, recorded_at, notified, searched)
         select $1, gen_random_uuid(), 1, 'PAYMENT', $1, $1, now(), to_timestamp($3 + n), 'done', 'done' from generate_series(1, $2) n`,
        [merchant, count, from],
      )
    await add(many, 40, 1000)
    await add(others, 3, 2000)
    const rounds: string[][] = []
    const round = () =>
      consume(pool, counting, 10, async (_, events) => {
        rounds.push(
          events.map(({ merchantId, recordedAt }) => `${merchantId === many ? 'many' : 'other'} ${(recordedAt / 1000) % 1000}`),
        )
      })
    while ((await round()).taken > 0);
    assert.deepEqual(
      rounds[0],
      [1, 2, 3].flatMap(at => [`many ${at}`, `other ${at}`]).concat([4, 5, 6, 7].map(at => `many ${at}`)),
    )
    const all = rounds.flat().filter(one => one.startsWith('many'))
    assert.deepEqual(
      all,
      Array.from({ length: 40 }, (_, at) => `many ${at + 1}`),
    )
    assert.deepEqual(
      rounds.slice(1).map(({ length }) => length),
      [10, 10, 10, 3],
    )
    await pool.query('delete from events where merchant_id = any ($1)', [[many, others]])
  })

  it('gets those of a hundred merchants in a round, behind those it had before, and of all in turn', async () => {
    const pool = gateway.pool
    await pool.query(
      `insert into events (merchant_id, payment_id, sequence, type, channel_id, root_id, occurred_at, recorded_at, notified, searched)
       select ('c0ffee' || lpad(to_hex(n), 26, '0'))::uuid, gen_random_uuid(), 1, 'PAYMENT', gen_random_uuid(), gen_random_uuid(), now(), to_timestamp(1000 + m), 'done', 'done'
         from generate_series(1, 250) n, generate_series(1, 9) m`,
    )
    let last: Round | undefined
    const rounds: Set<string>[] = []
    const gather = async (_: unknown, events: readonly OutboxEvent[]) => {
      rounds.push(new Set(events.map(({ merchantId }) => merchantId)))
    }
    for (let at = 0; at < 3; at++) last = await consume(pool, counting, 200, gather, last && { behind: last })
    assert.deepEqual([rounds.map(({ size }) => size), last!.mayBeMore], [[100, 100, 100], true])
    assert.equal(new Set(rounds.flatMap(set => [...set])).size, 250)
    for (let at = 0; last!.taken > 0; at++) {
      assert.ok(at < 12)
      last = await consume(pool, counting, 200, gather, { behind: last! })
    }
    await pool.query(`delete from events where merchant_id::text like 'c0ffee%'`)
  })

  it('gets those of who is served here, however many have left theirs behind', async () => {
    const pool = gateway.pool
    const left = (what: string) => `select ('c0ffee' || lpad(to_hex(n), 26, '0'))::uuid, ${what} from generate_series(1, 250) n`
    await pool.query(
      `insert into events (merchant_id, payment_id, sequence, type, channel_id, root_id, occurred_at, recorded_at, notified, searched)
       ${left(`gen_random_uuid(), 1, 'PAYMENT', gen_random_uuid(), gen_random_uuid(), now(), now(), 'done', 'done'`)}`,
    )
    await pool.query(
      `insert into merchant_moves (merchant_id, direction, state, here, other, run, changed_at) ${left(`'leaving', 'moved', false, 'two', 1, now()`)}`,
    )
    await gateway.pay()
    for (const behind of ['0', 'c0ffee00', 'f'])
      assert.deepEqual(
        await waitingMerchants(pool, counting, behind.padEnd(32, behind.at(-1)!), 100),
        [sandbox.merchantId],
        `behind ${behind}`,
      )
    assert.equal(await take(), 1)
    await pool.query(`delete from merchant_moves; delete from events where merchant_id::text like 'c0ffee%'`)
  })

  it('is not told a pending state after the final one', async () => {
    const { body } = await gateway.pay({ 'customParameters[simulateAnswer]': 'late' })
    assert.equal(body.result.code.slice(0, 7), '000.200')
    await eventually(
      async () => (await gateway.pool.query('select 1 from events where payment_id = $1', [body.id])).rowCount === 2,
      'the final state',
    )
    assert.equal(await take(), 2)
    const told = async () => (await counted()).filter(row => row.payment_id === body.id).map(row => row.sequence)
    assert.deepEqual(await told(), [1, 2])
    await gateway.pool.query('delete from counted where payment_id = $1 and sequence = 1', [body.id])
    await gateway.pool.query('update events set counted = null where payment_id = $1 and sequence = 1', [body.id])
    assert.equal(await take(), 1)
    assert.deepEqual(await told(), [2])
  })

  it('begins anew when its marks are taken away, and nobody else does', async () => {
    await gateway.pool.query(`update events set counted = null`)
    await gateway.pool.query('delete from counted')
    while ((await take(100)) > 0);
    const before = (await counted()).length
    const deliveries = async () => (await gateway.pool.query('select count(*) from deliveries')).rows[0].count
    const earlier = await deliveries()
    await gateway.pool.query('delete from counted')
    await gateway.pool.query('update events set counted = null')
    while ((await take(2)) > 0);
    assert.equal((await counted()).length, before)
    assert.equal(await deliveries(), earlier)
  })
})
