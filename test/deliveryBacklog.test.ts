// What waits behind a delivery that fails: a round reads a bounded part of it, however much there is, takes what others are owed, and comes back to it
// when it is held no more.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import type pg from 'pg'
import { checkNotifications } from '../src/notifications/deliveries/check.ts'
import { type Deliver, startDelivering } from '../src/notifications/deliveries/deliver.ts'
import type { DeliveryAttempt, LeasedDelivery } from '../src/notifications/deliveries/delivery.ts'
import {
  attemptLane,
  type ChainKey,
  type DeliveryRooms,
  firstChain,
  firstDelivery,
  leaseMilliseconds,
  listUnheard,
  measureBacklog,
  moveDeliveries,
  releaseDelivery,
  takeDeliveries,
  wakeStranded,
} from '../src/notifications/deliveries/store.ts'
import { giveUpOwed } from '../src/notifications/endpoints/endpoint.ts'
import { beforeAllWaiting, giveUpNext, isOwedAny, listClosedOwed } from '../src/notifications/endpoints/store.ts'
import type { NotificationParts } from '../src/notifications/parts.ts'
import { attemptsAhead } from '../src/notifications/retrySchedule.ts'
import { systemClock } from '../src/platform/clock.ts'
import type { Connection } from '../src/platform/database/connect.ts'
import { isElsewhere } from '../src/platform/database/elsewhere.ts'
import type { CallResult } from '../src/platform/egress/call.ts'
import { makeLog } from '../src/platform/log.ts'
import { makeDatabase, type TestDatabase, testPool } from './support/database.ts'
import { eventually } from './support/gateway.ts'
import { lockWaiters } from './support/locks.ts'

let database: TestDatabase
let pool: pg.Pool
before(async () => {
  database = await makeDatabase()
  pool = testPool(database.connection, 4)
})
after(async () => {
  await pool.end()
  await database.drop()
})

type Owed = { readonly merchantId: string; readonly endpointId: string; readonly paymentId: string }

/** An endpoint of a merchant of its own, and one chain of so many deliveries, all of them due. */
async function owed(count: number, kind = 'webhook'): Promise<Owed> {
  const ids = { merchantId: randomUUID(), endpointId: randomUUID(), paymentId: randomUUID() }
  await pool.query(
    `insert into endpoints (merchant_id, id, kind, url, sealed_secrets, state, created_at, activated_at, emitted)
     values ($1, $2, $4, case when $4 = 'webhook' then 'http://127.0.0.1:9/' end, '\\x00', 'active', now(), now(), $3)`,
    [ids.merchantId, ids.endpointId, count, kind],
  )
  await pool.query(
    `insert into events (merchant_id, payment_id, sequence, type, channel_id, root_id, occurred_at, recorded_at, notified)
     values ($1, $2, 1, 'PAYMENT', $1, $2, now(), now(), 'done')`,
    [ids.merchantId, ids.paymentId],
  )
  await pool.query(
    `insert into deliveries (merchant_id, endpoint_id, position, notification_id, sequence, payment_id, event_sequence, root_id, replay, emitted_at, due_at)
     select $1, $2, at, $3, at, $3, 1, $3, true, now(), now() - interval '1 minute' from generate_series(1, $4) at`,
    [ids.merchantId, ids.endpointId, ids.paymentId, count],
  )
  return ids
}
const fails = ({ merchantId, endpointId }: Owed, position: number, attempts: number) =>
  pool.query(
    `update deliveries set attempts = $4, due_at = now() + interval '1 hour' where merchant_id = $1 and endpoint_id = $2 and position = $3`,
    [merchantId, endpointId, position, attempts],
  )
const take = (db: Connection = pool, room = 16, more: Partial<DeliveryRooms> = {}) =>
  takeDeliveries(db, Date.now(), {
    ofEndpoints: {},
    ofEndpoint: room,
    ofMerchants: {},
    ofMerchant: 1000,
    together: 1000,
    ...more,
  })
const told = async (of: Owed) =>
  (await take()).taken.filter(one => one.endpointId === of.endpointId.replaceAll('-', '')).map(({ position }) => position)

const behind = async ({ paymentId }: Owed) =>
  (await pool.query('select position from deliveries where payment_id = $1 and behind order by 1', [paymentId])).rows.map(
    ({ position }) => position,
  )

const lane = () => attemptLane(pool, systemClock)
const ended = (
  { merchantId, endpointId, position, attempts }: Pick<LeasedDelivery, 'merchantId' | 'endpointId' | 'position' | 'attempts'>,
  state: DeliveryAttempt['state'],
): DeliveryAttempt => ({
  merchantId,
  endpointId,
  position,
  attempt: attempts,
  attemptedAt: Date.now(),
  milliseconds: 1,
  status: state === 'acknowledged' ? 200 : 500,
  failure: null,
  answer: '',
  acknowledged: state === 'acknowledged',
  state,
  dueAt: state === 'scheduled' ? Date.now() + 3_600_000 : null,
})

/** What the database reads for one round: pages, of tables and indexes, and rows that came out of them. */
async function readBy(round: (db: Connection) => Promise<unknown>): Promise<{ pages: number; rows: number }> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    let plan: Plan | undefined
    const explained = async (asked: string | { text: string; values: unknown[] }, given?: unknown[]) => {
      const { text, values } = typeof asked === 'string' ? { text: asked, values: given } : asked
      const { rows } = await client.query(`explain (analyze, buffers, format json) ${text}`, values)
      plan = rows[0]['QUERY PLAN'][0].Plan
      return { rows: [] }
    }
    await round({ query: explained } as unknown as Connection)
    await client.query('rollback')
    return { pages: plan!['Shared Hit Blocks'] + plan!['Shared Read Blocks'], rows: rowsOf(plan!) }
  } finally {
    client.release()
  }
}
type Plan = {
  readonly 'Shared Hit Blocks': number
  readonly 'Shared Read Blocks': number
  readonly 'Actual Rows': number
  readonly 'Actual Loops': number
  readonly 'Rows Removed by Filter'?: number
  readonly Plans?: readonly Plan[]
}
const rowsOf = (plan: Plan): number =>
  (plan['Actual Rows'] + (plan['Rows Removed by Filter'] ?? 0)) * plan['Actual Loops'] +
  (plan.Plans ?? []).reduce((sum, one) => sum + rowsOf(one), 0)

test('a merchant has a share of what is under way, whose parts its endpoints have in turn, and all together have an end', async () => {
  const many = await owed(0)
  const others = [await owed(1), await owed(1)]
  const endpoints = Array.from({ length: 6 }, () => randomUUID())
  for (const id of endpoints) {
    await pool.query(
      `insert into endpoints (merchant_id, id, kind, url, sealed_secrets, state, created_at, activated_at, emitted)
       values ($1, $2, 'webhook', 'http://127.0.0.1:9/', '\\x00', 'active', now(), now(), 20)`,
      [many.merchantId, id],
    )
    await pool.query(
      `insert into deliveries (merchant_id, endpoint_id, position, notification_id, sequence, payment_id, event_sequence, root_id, replay, emitted_at, due_at)
       select $1, $2, at, $3, at, $3, 1, gen_random_uuid(), true, now(), now() - interval '1 hour' from generate_series(1, 20) at`,
      [many.merchantId, id, many.paymentId],
    )
  }
  const own = many.merchantId.replaceAll('-', '')
  const round = async (more: Partial<DeliveryRooms>) => {
    const { taken } = await take(pool, 16, more)
    const of = taken.filter(({ merchantId }) => merchantId === own)
    const each = endpoints.map(id => of.filter(({ endpointId }) => endpointId === id.replaceAll('-', '')).length)
    for (const one of taken) await releaseDelivery(pool, one)
    return { of: of.length, each, others: taken.length - of.length }
  }
  try {
    assert.deepEqual(await round({ ofMerchant: 12 }), { of: 12, each: [2, 2, 2, 2, 2, 2], others: 2 })
    assert.equal((await round({ ofMerchants: { [own]: 1 } })).of, 1)
    assert.deepEqual((await round({ ofMerchants: { [own]: 0 } })).of, 0)
    assert.deepEqual((await round({ ofMerchants: { [own]: -3 } })).of, 0)
    // What all have together is shared out by turns: one of each merchant comes before the second of any.
    const few = await round({ together: 5 })
    assert.deepEqual([few.of, few.others], [3, 2])
    // What a merchant has under way counts: the second of another comes before its next.
    const [first] = others.map(({ merchantId }) => merchantId.replaceAll('-', ''))
    const next = await round({ together: 3, ofMerchant: 12, ofMerchants: { [own]: 9, [first!]: 8 } })
    assert.deepEqual([next.of, next.others], [2, 1])
    const busy = await round({ together: 2, ofMerchant: 12, ofMerchants: { [own]: 7, [first!]: 8 } })
    assert.deepEqual([busy.of, busy.others], [0, 2])
  } finally {
    for (const { merchantId } of [many, ...others])
      await pool.query(`delete from deliveries where merchant_id = $1`, [merchantId])
  }
})

/** Adds an endpoint that is owed so many to a merchant, each of a chain of its own. */
async function addOwed(merchant: { readonly merchantId: string; readonly paymentId: string }, count: number): Promise<string> {
  const id = randomUUID()
  await pool.query(
    `insert into endpoints (merchant_id, id, kind, url, sealed_secrets, state, created_at, activated_at, emitted)
     values ($1, $2, 'webhook', 'http://127.0.0.1:9/', '\\x00', 'active', now(), now(), $3)`,
    [merchant.merchantId, id, count],
  )
  await pool.query(
    `insert into deliveries (merchant_id, endpoint_id, position, notification_id, sequence, payment_id, event_sequence, root_id, replay, emitted_at, due_at)
     select $1, $2, at, $3, at, $3, 1, gen_random_uuid(), true, now(), now() - interval '1 hour' from generate_series(1, $4) at`,
    [merchant.merchantId, id, merchant.paymentId, count],
  )
  return id.replaceAll('-', '')
}

/** Delivers by calls that end when a test says so, or by `ended`. Whatever was taken stays leased. */
function startCalls(ended: (endpointId: string) => CallResult | undefined = () => undefined) {
  const calls = new Map<string, ((called: CallResult) => void)[]>()
  const of = (id: string) => calls.get(id) ?? []
  const end = (id: string, called: CallResult) => {
    for (const answer of calls.get(id)?.splice(0) ?? []) answer(called)
  }
  const deliver: Deliver = async ({ endpointId }) =>
    ended(endpointId) ?? new Promise(resolve => calls.set(endpointId, [...of(endpointId), resolve]))
  const parts = { database: { work: pool }, clock: systemClock, log: makeLog('silent') } as unknown as NotificationParts
  const delivering = startDelivering(parts, deliver, false, () => true)
  return {
    of,
    end,
    async stop() {
      const stopped = delivering.stop()
      for (const id of calls.keys()) end(id, { status: 200, answer: '', milliseconds: 1 })
      await stopped
    },
  }
}

test('who answers slowly keeps few places, who says nothing one, and that one is none of its merchant’s', async () => {
  const merchant = await owed(0)
  const add = (count: number) => addOwed(merchant, count)
  const { of, end, stop } = startCalls()
  try {
    const slow = await add(60)
    await eventually(async () => of(slow).length === 16, 'sixteen at once')
    end(slow, { status: 200, answer: '', milliseconds: 5001 })
    await eventually(async () => of(slow).length === 4, 'four')
    // Forty-eight of a merchant, whatever four others hold; and one more for each that says nothing.
    const silent = await add(60)
    await eventually(async () => of(silent).length === 16, 'sixteen at once')
    end(silent, { failure: 'no answer in time', answer: '', milliseconds: 30_000 })
    await eventually(async () => of(silent).length === 1, 'one')
    const quick = [await add(30), await add(30), await add(30)]
    const underWay = () => quick.reduce((sum, id) => sum + of(id).length, 0)
    await eventually(async () => underWay() === 44, 'all places but the four')
    assert.deepEqual([of(slow).length, of(silent).length], [4, 1])
    end(slow, { status: 200, answer: '', milliseconds: 4999 })
    await eventually(async () => of(slow).length > 0 && of(slow).length + underWay() === 48, 'what is free is taken')
  } finally {
    await stop()
    await pool.query('delete from deliveries where merchant_id = $1', [merchant.merchantId])
  }
})

test('of a merchant’s endpoints that do not answer eight are tried at once, each in its turn and with a rest after it', async () => {
  const failure = { failure: 'too many pieces', answer: '', milliseconds: 1 }
  const merchant = await owed(0)
  const begun = new Map<string, number>()
  let atOnce = true
  const { of, end, stop } = startCalls(id => {
    begun.set(id, (begun.get(id) ?? 0) + 1)
    return atOnce && hostile.includes(id) ? failure : undefined
  })
  const hostile: string[] = []
  try {
    for (let count = 0; count < 20; count++) hostile.push(await addOwed(merchant, 60))
    const failed = `select 1 from deliveries where merchant_id = $1 and attempts > 0 group by endpoint_id having count(*) > 4`
    // Begun is not enough: of one whose first end is not known sixteen more are tried at once.
    await eventually(async () => (await pool.query(failed, [merchant.merchantId])).rowCount === hostile.length, 'each has failed')
    atOnce = false
    const tried = () => hostile.filter(id => of(id).length > 0)
    const all = () => hostile.reduce((sum, id) => sum + of(id).length, 0)
    const seen = new Set<string>()
    await eventually(async () => tried().length === 8, 'eight')
    // Another of the merchant has its places meanwhile, and what is free is looked for again and again.
    const honest = await addOwed(merchant, 100)
    for (let round = 0; round < 4; round++) {
      await eventually(async () => of(honest).length === 16, 'sixteen at once')
      assert.deepEqual([tried().length, all()], [8, 8])
      end(honest, { status: 500, answer: '', milliseconds: 1 })
    }
    for (let round = 0; seen.size < hostile.length; round++) {
      assert.ok(round < 5, `${seen.size} had a turn`)
      await eventually(async () => tried().length === 8, 'eight')
      const had = tried()
      await systemClock.sleep(1100) // those before them have rested
      for (const id of had) {
        seen.add(id)
        end(id, failure)
      }
    }
    await eventually(async () => tried().length === 8, 'eight')
    const [one] = tried() as [string]
    const [before, since] = [begun.get(one)!, Date.now()]
    atOnce = true
    for (const id of tried()) end(id, failure)
    await eventually(async () => begun.get(one)! >= before + 2, 'it is tried again')
    assert.ok(Date.now() - since >= 1990, `after ${Date.now() - since} ms`)
  } finally {
    atOnce = false
    await stop()
    await pool.query('delete from deliveries where merchant_id = $1', [merchant.merchantId])
    await pool.query('delete from endpoints where merchant_id = $1', [merchant.merchantId])
  }
})

test('however many wait behind one that fails, a round reads a bounded part of them, and another merchant is told in it', async () => {
  const failing = await owed(100_000)
  await fails(failing, 1, 1)
  await pool.query('analyze deliveries')
  const others = await owed(1)
  const before = await readBy(take)
  assert.ok(before.pages < 5_000 && before.rows < 5_000, JSON.stringify(before))
  const first = await take()
  assert.deepEqual(
    first.taken.map(({ merchantId }) => merchantId.replaceAll('-', '')),
    [others.merchantId.replaceAll('-', '')],
  )
  assert.ok(first.setAside > 0 && first.setAside < 1_000)
  let met = first.setAside
  for (let round = 0; round < 3; round++) met += (await take()).setAside
  assert.equal(met, 4 * first.setAside) // each round others
  await pool.query(`update deliveries set behind = true where payment_id = $1 and position > 1`, [failing.paymentId])
  await pool.query('vacuum analyze deliveries')
  const aside = await readBy(take)
  assert.ok(aside.pages < 500 && aside.rows < 500, JSON.stringify(aside))
  assert.deepEqual(await take(), { taken: [], setAside: 0 })
  const backlog = await measureBacklog(pool, Date.now())
  assert.deepEqual([backlog.scheduled, backlog.oldest >= 59_000], [10_001, true])
  await lane()(ended({ ...failing, position: 1, attempts: 1 }, 'acknowledged'))
  assert.deepEqual(await told(failing), [2])
  await pool.query(`delete from deliveries`)
})

test('what waits is woken one by one: by an end, by the last attempt that it waits for, and by no attempt before', async () => {
  const chain = await owed(4)
  const [first] = (await take()).taken
  assert.equal(first!.position, 1)
  await lane()(ended(first!, 'scheduled'))
  assert.deepEqual(await told(chain), [])
  await lane()(ended(first!, 'acknowledged'))
  await fails(chain, 2, attemptsAhead - 1)
  await pool.query(`update deliveries set due_at = now() - interval '1 minute' where payment_id = $1 and position = 2`, [
    chain.paymentId,
  ])
  const [second] = (await take()).taken
  assert.deepEqual([second!.position, second!.attempts], [2, attemptsAhead])
  assert.deepEqual(await told(chain), [])
  await lane()(ended(second!, 'scheduled'))
  const [third] = (await take()).taken
  assert.equal(third!.position, 3)
  await releaseDelivery(pool, third!)
  const [again] = (await take()).taken
  assert.equal(again!.position, 3)
  await lane()(ended(again!, 'given up'))
  assert.deepEqual(await told(chain), [4])
  await pool.query(`delete from deliveries`)
})

test('what is set aside while the one before it ends is woken all the same', async () => {
  const chain = await owed(2)
  await fails(chain, 1, 1)
  const round = await pool.connect()
  try {
    await round.query('begin')
    assert.equal((await take(round)).setAside, 1)
    let over = false
    const ending = lane()(ended({ ...chain, position: 1, attempts: 1 }, 'acknowledged')).then(() => (over = true))
    await eventually(async () => over || (await lockWaiters(pool)).length > 0, 'it ends, or waits for the round')
    await round.query('commit')
    await ending
  } finally {
    round.release()
  }
  assert.deepEqual(await told(chain), [2])
  await pool.query(`delete from deliveries`)
})

test('an end that comes when its delivery was forgotten leaves nothing', async () => {
  const chain = await owed(0)
  await addOwed(chain, 2)
  await pool.query('delete from deliveries where merchant_id = $1 and position = 1', [chain.merchantId])
  const { rows } = await pool.query('select endpoint_id as "endpointId", position from deliveries where merchant_id = $1', [
    chain.merchantId,
  ])
  const [{ endpointId }] = rows
  const one = { merchantId: chain.merchantId, endpointId, attempts: 0 }
  const both = lane()
  await Promise.all([1, 2].map(position => both(ended({ ...one, position }, 'acknowledged'))))
  const kept = await pool.query('select position from delivery_attempts where merchant_id = $1', [chain.merchantId])
  assert.deepEqual(kept.rows, [{ position: 2 }])
  await pool.query('delete from deliveries where merchant_id = $1', [chain.merchantId])
})

test('a round does not wait for one that is ending, and sets nothing aside behind it', async () => {
  const chain = await owed(2)
  await fails(chain, 1, 1)
  const ending = await pool.connect()
  try {
    await ending.query('begin')
    await ending.query(
      `update deliveries set state = 'acknowledged', settled_at = now() where payment_id = $1 and position = 1`,
      [chain.paymentId],
    )
    assert.deepEqual(await take(), { taken: [], setAside: 0 })
    await ending.query('commit')
  } finally {
    ending.release()
  }
  assert.deepEqual(await told(chain), [2])
  await pool.query(`delete from deliveries`)
})

test('the end of one wakes the next also while its merchant is on the way out or held; of one who arrives none is written', async () => {
  for (const [direction, state, isHeld] of [
    ['leaving', 'frozen', false],
    ['leaving', 'stayed', true],
    ['arriving', 'arriving', false],
  ] as const) {
    const chain = await owed(2)
    await fails(chain, 1, 1)
    assert.equal((await take()).setAside, 1)
    await pool.query(
      `insert into merchant_moves (merchant_id, direction, state, here, other, run, changed_at, put_back_at)
       values ($1, $2, $3, false, 'two', 1, now(), case when $4 then now() end)`,
      [chain.merchantId, direction, state, isHeld],
    )
    const end = lane()(ended({ ...chain, position: 1, attempts: 1 }, 'acknowledged'))
    if (direction === 'arriving') await assert.rejects(end, isElsewhere)
    else await end
    assert.deepEqual(await behind(chain), direction === 'arriving' ? [2] : [], state)
    await pool.query('delete from merchant_moves')
    await pool.query(`delete from deliveries`)
  }
})

test('one end wakes all that were tried so often that nobody waits for them, however many, and the first that is waited for', async () => {
  const chain = await owed(902)
  await pool.query('update deliveries set behind = true, attempts = $2 where payment_id = $1 and position between 2 and 900', [
    chain.paymentId,
    attemptsAhead,
  ])
  await pool.query('update deliveries set behind = true where payment_id = $1 and position > 900', [chain.paymentId])
  await lane()(ended({ ...chain, position: 1, attempts: 0 }, 'acknowledged'))
  assert.deepEqual(await behind(chain), [902])
  await pool.query(`delete from deliveries`)
})

test('what was set aside and waits for nobody is found, chain by chain; what waits for one is left', async () => {
  const [lost, alsoLost, waiting, away] = [await owed(3), await owed(2), await owed(2), await owed(2)]
  await pool.query(`update deliveries set behind = true where merchant_id = any ($1)`, [
    [lost, alsoLost, away].map(one => one.merchantId),
  ])
  await pool.query('update deliveries set behind = true where merchant_id = $1 and position = 2', [waiting.merchantId])
  await pool.query(
    `insert into merchant_moves (merchant_id, direction, state, here, other, run, changed_at) values ($1, 'leaving', 'moved', false, 'two', 1, now())`,
    [away.merchantId],
  )
  assert.equal((await checkNotifications(pool, lost.merchantId)).balanced, false)
  assert.deepEqual(
    (await checkNotifications(pool, waiting.merchantId)).endpoints.map(({ stranded }) => stranded),
    [0],
  )
  let woken = 0
  let rounds = 0
  for (let after: ChainKey | undefined = firstChain; after; rounds++) {
    const looked = await wakeStranded(pool, after, Date.now(), 3)
    woken += looked.woken
    after = looked.last
  }
  assert.deepEqual([woken, rounds], [2, 2])
  assert.deepEqual(await Promise.all([lost, alsoLost, waiting, away].map(behind)), [[2, 3], [2], [2], [1, 2]])
  assert.deepEqual(await told(lost), [1])
  await pool.query('delete from merchant_moves')
  await pool.query(`delete from deliveries`)
})

test('a lease that no right clock can have taken is none, and holds nobody', async () => {
  const [free, chain] = [await owed(1), await owed(2)]
  const lease = (of: Owed, position: number, milliseconds: number) =>
    pool.query('update deliveries set leased_until = $3 where payment_id = $1 and position = $2', [
      of.paymentId,
      position,
      new Date(Date.now() + milliseconds),
    ])
  await fails(chain, 1, attemptsAhead)
  for (const far of [2 * leaseMilliseconds - 5000, 20 * 86_400_000]) {
    await lease(free, 1, far)
    await lease(chain, 1, far)
    const isTaken = far > 2 * leaseMilliseconds
    const { busy } = (await firstDelivery(pool, free.merchantId, Date.now(), Date.now()))!
    assert.equal(busy, !isTaken)
    const { taken } = await take()
    assert.deepEqual(
      taken.map(({ paymentId }) => paymentId).sort(),
      isTaken ? [free, chain].map(one => one.paymentId.replaceAll('-', '')).sort() : [],
    )
    await pool.query('update deliveries set behind = false')
  }
  await pool.query(`delete from deliveries`)
})

test('the movable clock locks the first of a chain before the next, as whoever ends one and wakes the next', async () => {
  // Read as they lie, unless the statement itself asks for an order.
  const asTheyLie = testPool({ ...database.connection, options: '-c enable_indexscan=off -c enable_bitmapscan=off' }, 1)
  const chain = await owed(2)
  await pool.query('update deliveries set replay = replay where position = 1') // it lies behind the other now
  const ending = await pool.connect()
  try {
    await ending.query('begin')
    await ending.query('select from deliveries where payment_id = $1 and position = 1 for update', [chain.paymentId])
    const moved = moveDeliveries(asTheyLie, chain.merchantId, 60_000)
    await eventually(async () => (await lockWaiters(pool)).length > 0, 'it waits for the first')
    const next = await ending.query('select from deliveries where payment_id = $1 and position = 2 for update nowait', [
      chain.paymentId,
    ])
    assert.equal(next.rowCount, 1, 'it holds nothing while it waits')
    await ending.query('commit')
    await moved
  } finally {
    ending.release()
  }
  await pool.query(`delete from deliveries`)
  await asTheyLie.end()
})

const close = ({ endpointId }: Owed) => pool.query(`update endpoints set state = 'disabled' where id = $1`, [endpointId])
const statesOf = async ({ paymentId }: Owed) =>
  (await pool.query('select position, state from deliveries where payment_id = $1 order by 1', [paymentId])).rows.map(
    ({ state }) => state,
  )

test('what a closed endpoint is owed is given up in steps of bounded cost, past what others hold, and nothing of it is woken', async () => {
  const [chain, open, away] = [await owed(4), await owed(2), await owed(1)]
  await pool.query('update deliveries set behind = true where position > 1')
  const some = ({ merchantId, endpointId }: Owed, after = beforeAllWaiting, limit = 2) =>
    giveUpNext(pool, merchantId, endpointId, after, Date.now(), limit)
  assert.equal((await some(open)).givenUp, 0, 'it is active')
  for (const one of [chain, away]) await close(one)
  await pool.query(
    `insert into merchant_moves (merchant_id, direction, state, here, other, run, changed_at) values ($1, 'leaving', 'moved', false, 'two', 1, now())`,
    [away.merchantId],
  )
  assert.equal((await some(away)).givenUp, 0, 'another cell serves it')
  const owedTo = async () => (await listClosedOwed(pool, 10)).map(one => one.id)
  assert.deepEqual(await owedTo(), [chain.endpointId.replaceAll('-', '')])

  const ending = await pool.connect()
  await ending.query('begin')
  await ending.query('select from deliveries where payment_id = $1 and position = 2 for update', [chain.paymentId])
  const first = await some(chain, beforeAllWaiting, 2)
  assert.deepEqual([first.givenUp, first.cameTo?.position], [2, 3])
  assert.deepEqual(await statesOf(chain), ['given up', 'scheduled', 'given up', 'scheduled'])
  assert.deepEqual(await behind(chain), [2, 3, 4], 'nothing is woken')
  assert.equal((await wakeStranded(pool, firstChain, Date.now(), 10)).woken, 0)
  assert.equal((await checkNotifications(pool, chain.merchantId)).balanced, true)
  assert.equal(
    await giveUpOwed({ database: { work: pool } } as never, chain.merchantId, chain.endpointId, Date.now(), () => true),
    1,
  )
  assert.equal(await isOwedAny(pool, chain.merchantId, chain.endpointId), true)
  await ending.query('commit')
  ending.release()
  let looks = 0
  const once = () => looks++ < 1
  assert.equal(await giveUpOwed({ database: { work: pool } } as never, chain.merchantId, chain.endpointId, Date.now(), once), 1)
  assert.equal(await isOwedAny(pool, chain.merchantId, chain.endpointId), false)
  assert.deepEqual(await owedTo(), [])
  assert.deepEqual(await statesOf(open), ['scheduled', 'scheduled'])
  await pool.query('delete from merchant_moves')
  await pool.query('delete from deliveries')
})

test('a step of giving up reads no more of a long backlog than it ends', async () => {
  const long = await owed(20_000)
  await pool.query('update deliveries set root_id = gen_random_uuid() where payment_id = $1', [long.paymentId])
  await close(long)
  await pool.query('analyze deliveries')
  const { merchantId, endpointId } = long
  const { rows } = await readBy(db => giveUpNext(db, merchantId, endpointId, beforeAllWaiting, Date.now(), 100))
  assert.ok(rows < 2000, `${rows} rows`)
  const found = await readBy(db => listClosedOwed(db, 10))
  assert.ok(found.rows < 50, `${found.rows} rows`)
  const places: unknown[] = []
  const work = {
    query(asked: pg.QueryConfig) {
      places.push(asked.values![2])
      return pool.query(asked)
    },
  }
  assert.equal(await giveUpOwed({ database: { work } } as never, merchantId, endpointId, Date.now(), () => true), 20_000)
  assert.deepEqual(places, [...new Set(places)].sort(), 'each step begins where the one before ended')
  await pool.query('delete from deliveries')
})

test('what the clock and the office look for first is found without reading a long backlog, of the endpoints of these merchants', async () => {
  const [long, short] = [await owed(20_000), await owed(3)]
  await pool.query('update deliveries set root_id = gen_random_uuid() where payment_id = $1', [long.paymentId])
  await pool.query(`update deliveries set due_at = now() - interval '2 minutes' where payment_id = $1 and position = 7`, [
    long.paymentId,
  ])
  await pool.query('update deliveries set behind = true where payment_id = $1 and position > 1', [short.paymentId])
  await pool.query('analyze deliveries')
  const first = (db: Connection) => firstDelivery(db, long.merchantId, Date.now(), Date.now())
  assert.equal((await first(pool))!.position, 7)
  const unheard = (db: Connection) => listUnheard(db, [short.merchantId, long.merchantId], 'scheduled', 50)
  const listed = await unheard(pool)
  assert.deepEqual([listed.length, listed[0]!.position], [50, 7])
  const only = await listUnheard(pool, [short.merchantId], 'scheduled', 50)
  assert.deepEqual(
    only.map(({ position }) => position),
    [1, 2, 3],
  )
  for (const round of [first, unheard]) {
    const { rows } = await readBy(round)
    assert.ok(rows < 2000, `${rows} rows`)
  }
  await pool.query('delete from deliveries')
})

test('more than there is room for are not taken, and what a cursor reads waits behind nothing when it is given up', async () => {
  const many = await Promise.all([owed(1), owed(1)])
  assert.equal((await take(pool, 0)).taken.length, 0)
  const { merchantId, endpointId, paymentId } = many[0]
  await pool.query(
    `insert into deliveries (merchant_id, endpoint_id, position, notification_id, sequence, payment_id, event_sequence, root_id, replay, emitted_at, due_at)
     select $1, $2, at, $3, at, $3, 1, gen_random_uuid(), true, now(), now() - interval '1 minute' from generate_series(2, 40) at`,
    [merchantId, endpointId, paymentId],
  )
  assert.equal((await take(pool, 16)).taken.length, 17)
  const cursor = await owed(5, 'cursor')
  assert.deepEqual(await told(cursor), [1, 2, 3, 4, 5])
})
