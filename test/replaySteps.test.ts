// Telling a long history again: what is read and what is held stay bounded, and no merchant's endpoint that is in use keeps the events of others waiting.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import type pg from 'pg'
import { checkNotifications } from '../src/notifications/deliveries/check.ts'
import { fanOut, fanOutAll, fanOutBatch } from '../src/notifications/deliveries/fanOut.ts'
import { findEndpoint } from '../src/notifications/endpoints/store.ts'
import type { NotificationParts } from '../src/notifications/parts.ts'
import { replay, replayStep } from '../src/notifications/replay/replay.ts'
import { findEvents, findTold, type ReplayFilter, type ReplayStep } from '../src/notifications/replay/store.ts'
import type { Connection } from '../src/platform/database/connect.ts'
import { makeDatabase, type TestDatabase, testPool } from './support/database.ts'
import { endpointParts } from './support/endpoints.ts'

let database: TestDatabase
let pool: pg.Pool
let parts: NotificationParts & Parameters<typeof replay>[0]
before(async () => {
  database = await makeDatabase()
  pool = testPool(database.connection, 4)
  parts = { ...endpointParts(pool), directory: { businessTime: () => Date.now() } } as unknown as typeof parts
})
after(async () => {
  await pool.end()
  await database.drop()
})

const nobody = '00000000000000000000000000000000'
const inHex = (id: string) => id.replaceAll('-', '')
type Merchant = { readonly merchantId: string; readonly id: string }

async function merchant(): Promise<Merchant> {
  const [merchantId, id] = [inHex(randomUUID()), inHex(randomUUID())]
  await pool.query(
    `insert into endpoints (merchant_id, id, kind, url, sealed_secrets, state, created_at, activated_at)
     values ($1, $2, 'webhook', 'http://127.0.0.1:9/', '\\x00', 'active', '2020-01-01', '2020-01-01')`,
    [merchantId, id],
  )
  return { merchantId, id }
}

/** So many events, of chains of two, each recorded a second after the one before; not fanned out unless they are `done`. */
const happened = async ({ merchantId }: Merchant, from: number, to: number, notified: 'done' | null = null) =>
  void (await pool.query(
    `insert into events (merchant_id, payment_id, sequence, type, channel_id, root_id, occurred_at, recorded_at, notified, searched)
     select $1::uuid, md5($1::uuid::text || at)::uuid, 2, 'PAYMENT', $1::uuid, md5($1::uuid::text || at / 2)::uuid, now(), timestamptz '2024-01-01' + at * interval '1 second', $4, 'done'
       from generate_series($2::int, $3::int) at`,
    [merchantId, from, to, notified],
  ))

/** A history of so many events, each told once and acknowledged. */
async function history(count: number): Promise<Merchant> {
  const made = await merchant()
  await happened(made, 1, count, 'done')
  await pool.query(
    `insert into deliveries (merchant_id, endpoint_id, position, notification_id, sequence, payment_id, event_sequence, root_id, emitted_at, due_at, attempts, state, settled_at)
     select $1::uuid, $2::uuid, at, md5('n' || at)::uuid, at, md5($1::uuid::text || at)::uuid, 2, md5($1::uuid::text || at / 2)::uuid, now(), now(), 1, 'acknowledged', now()
       from generate_series(1, $3::int) at`,
    [made.merchantId, made.id, count],
  )
  await pool.query('update endpoints set emitted = $2 where id = $1', [made.id, count])
  return made
}

const deliveriesOf = async ({ id }: Merchant, which = 'true') =>
  (
    await pool.query(
      `select d.position, d.sequence, d.replay, d.state, e.recorded_at as at from deliveries d
         join events e on e.merchant_id = d.merchant_id and e.payment_id = d.payment_id and e.sequence = d.event_sequence
        where d.endpoint_id = $1 and ${which} order by d.position`,
      [id],
    )
  ).rows

/** The pages that one step reads. */
async function pagesOf<Place>(step: (db: Connection) => Promise<ReplayStep<Place>>): Promise<number> {
  let pages = 0
  const explained = async (text: string, values: unknown[]) => {
    const { rows } = await pool.query(`explain (analyze, buffers, format json) ${text}`, values)
    const plan = rows[0]['QUERY PLAN'][0].Plan
    pages += plan['Shared Hit Blocks'] + plan['Shared Read Blocks']
    return { rows: [{ cameTo: null, lastPayment: null, paymentId: null }] }
  }
  await step({ query: explained } as unknown as Connection)
  return pages
}

test('one step of a replay reads as much of a long history as of a short one, also where all was replayed before', async () => {
  const merchants = [await history(4_000), await history(32_000)]
  for (const { merchantId, id } of merchants)
    await pool.query(
      `insert into deliveries (merchant_id, endpoint_id, position, notification_id, sequence, payment_id, event_sequence, root_id, replay, emitted_at, due_at, attempts, state, settled_at)
       select merchant_id, endpoint_id, position + 100000, notification_id, sequence, payment_id, event_sequence, root_id, true, now(), now(), 1, 'acknowledged', now()
         from deliveries where merchant_id = $1 and endpoint_id = $2`,
      [merchantId, id],
    )
  await pool.query('vacuum analyze deliveries')
  await pool.query('vacuum analyze events')
  for (const [place, one] of merchants.entries()) {
    const endpoint = (await findEndpoint(pool, one.merchantId, one.id))!
    const filters: ReplayFilter[] = [{}, { state: 'given up' }, { notificationId: nobody }, { since: Date.now() - 60_000 }]
    for (const filter of filters) {
      const told = await pagesOf(db => findTold(db, endpoint, filter, place * 2_000, 1_000_000, 100))
      const replayed = await pagesOf(db => findTold(db, endpoint, filter, 100_000, 1_000_000, 100))
      const never = await pagesOf(db => findEvents(db, endpoint, filter, { paymentId: nobody, sequence: -1 }, 100))
      assert.ok(told < 2_000 && replayed < 3_000 && never < 3_000, JSON.stringify({ place, filter, told, replayed, never }))
    }
    const { rows } = await pool.query('select payment_id from deliveries where endpoint_id = $1 limit 1', [one.id])
    const paymentId = rows[0].payment_id
    const ofOne = await pagesOf(db => findEvents(db, endpoint, { paymentId }, { paymentId, sequence: -1 }, 100))
    assert.ok(ofOne < 100, String(ofOne))
  }
  await pool.query('truncate deliveries, events, endpoints')
})

test('a replay has no end but that of what it finds: all is sent again once, in its order, and written in steps', async () => {
  const one = await history(2 * replayStep + 500)
  await happened(one, 0, 0, 'done') // never told
  assert.deepEqual(await replay(parts, one.merchantId, one.id, {}), { replayed: 2 * replayStep + 501 })
  const replays = await deliveriesOf(one, 'd.replay')
  assert.equal(replays.length, 2 * replayStep + 501)
  assert.deepEqual(
    replays.map(({ at }) => at),
    replays.map(({ at }) => at).toSorted((a, b) => a - b),
  )
  assert.deepEqual([replays[0].sequence, replays[1].sequence], [replays[0].position, 1])
  const steps = await pool.query(`select details from audit where action = 'notificationsReplayed' order by sequence`)
  assert.deepEqual(
    steps.rows.map(({ details }) => (typeof details === 'string' ? JSON.parse(details) : details).notifications),
    [replayStep + 1, replayStep, 500],
  )
  const [sums] = (await checkNotifications(pool)).endpoints
  assert.deepEqual([sums!.unaccounted, sums!.lost], [0, 0])
  // What was told only by a replay keeps the number of that one.
  const before = (await deliveriesOf(one)).length
  assert.deepEqual(await replay(parts, one.merchantId, one.id, { from: replays[0].position, to: replays[0].position }), {
    replayed: 1,
  })
  const [last] = (await deliveriesOf(one)).slice(before)
  assert.deepEqual([last.sequence, last.at], [replays[0].sequence, replays[0].at])
  // However often an event was sent again, it is found once.
  assert.deepEqual(await replay(parts, one.merchantId, one.id, { from: 1 }), { replayed: 2 * replayStep + 501 })
  await pool.query('truncate deliveries, events, endpoints')
})

test('an endpoint that somebody holds keeps no other merchant waiting, and its own are told later, in order and once', async () => {
  const [held, other] = [await merchant(), await merchant()]
  await happened(held, 1, fanOutBatch + 50)
  await happened(other, 1_000, 1_009)
  const holder = await pool.connect()
  try {
    await holder.query('begin')
    await holder.query('select from endpoints where id = $1 for update', [held.id])
    assert.equal((await fanOut(parts)).taken, 10) // though the others are older, and more than a batch
    assert.equal((await fanOut(parts)).taken, 0)
    assert.deepEqual([(await deliveriesOf(held)).length, (await deliveriesOf(other)).length], [0, 10])
    await happened(held, 2_000, 2_000)
    const all = fanOutAll(parts) // whoever must have all waits for them, outside of any transaction
    await happened(other, 3_000, 3_000)
    assert.ok((await fanOut(parts)).taken <= 1)
    await holder.query('commit')
    await all
  } finally {
    holder.release()
  }
  const told = await deliveriesOf(held)
  assert.equal(told.length, fanOutBatch + 51)
  assert.deepEqual(
    told.map(({ at }) => at),
    told.map(({ at }) => at).toSorted((a, b) => a - b),
  )
  const { balanced, waiting } = await checkNotifications(pool)
  assert.deepEqual([balanced, waiting, (await deliveriesOf(other)).length], [true, 0, 11])
  await pool.query('truncate deliveries, events, endpoints')
})

const withEndpoints = async ({ merchantId }: Merchant, count: number) =>
  void (await pool.query(
    `insert into endpoints (merchant_id, id, kind, url, sealed_secrets, state, created_at, activated_at)
     select $1, gen_random_uuid(), 'webhook', 'http://127.0.0.1:9/', '\\x00', 'active', '2020-01-01', '2020-01-01' from generate_series(1, $2::int)`,
    [merchantId, count],
  ))

test('a merchant with a hundred endpoints, whatever of it waits, keeps no other waiting: a batch is bounded by what it makes, and shared', async () => {
  const [many, second, other] = [await merchant(), await merchant(), await merchant()]
  await withEndpoints(many, 99)
  await happened(many, 1, 11_000)
  await happened(second, 1, 11_000)
  await happened(other, 20_000, 20_000)
  await pool.query('analyze events')
  const first = await fanOut(parts)
  const made = async ({ merchantId }: Merchant) =>
    (await pool.query('select from deliveries where merchant_id = $1', [merchantId])).rowCount!
  const each = [await made(many), await made(second), await made(other)]
  assert.deepEqual([each[0], each[1]! > 123, each[2]], [800, true, 1]) // half of what was looked at is the other one's, and costs little
  assert.ok(first.mayBeMore)
  await pool.query(`update events set notified = 'done' where merchant_id <> $1`, [many.merchantId])
  const before = await made(many)
  const { taken } = await fanOut(parts) // alone: ten times a hundred, and their marks
  assert.deepEqual([taken, (await made(many)) - before], [10, 1000])
  const { rows } = await pool.query(
    `select count(*) from deliveries d join events e using (merchant_id, payment_id) where d.merchant_id = $1
      and d.position <> extract(epoch from e.recorded_at - timestamptz '2024-01-01')`,
    [many.merchantId],
  )
  assert.equal(rows[0].count, 0, 'each endpoint is told all of them, in order')
  await pool.query('truncate deliveries, events, endpoints')
})

test('where the first events of all are too much for a batch, the next begins with who was left', async () => {
  const all = await Promise.all(Array.from({ length: 30 }, merchant))
  for (const one of all) {
    await withEndpoints(one, 99)
    await happened(one, 1, 3)
  }
  const told: string[] = []
  for (let round = await fanOut(parts), at = 0; at < 3; at++, round = await fanOut(parts, { behind: round })) {
    const { rows } = await pool.query<{ id: string }>('select distinct merchant_id as id from deliveries')
    assert.deepEqual([rows.length, round.taken, round.mayBeMore], [10 * (at + 1), 10, true])
    told.push(round.cameTo)
  }
  assert.equal(new Set(told).size, 3)
  await pool.query('truncate deliveries, events, endpoints')
})

test('two that fan out at once, of whom one dies in the middle again and again, lose nothing and tell nothing twice', async () => {
  const [many, other] = [await merchant(), await merchant()]
  await withEndpoints(many, 39)
  await happened(many, 1, 200)
  await happened(other, 1, 40)
  const dying = async () => {
    for (let at = 0; at < 10; at++) {
      const connection = {
        connect: async () => {
          const client = await pool.connect()
          const query = client.query.bind(client) as (...asked: unknown[]) => Promise<unknown>
          client.query = ((...asked: unknown[]) =>
            (asked[0] as { name?: string }).name === 'mark notified'
              ? Promise.reject(new Error('died'))
              : query(...asked)) as never
          const release = client.release.bind(client)
          client.release = () => {
            client.query = query as never
            client.release = release
            release()
          }
          return client
        },
        query: pool.query.bind(pool),
      }
      await assert.rejects(
        fanOut({ ...parts, database: { ...parts.database, work: connection } } as never, { wait: true }),
        /died/,
      )
    }
  }
  await dying()
  await Promise.all([fanOutAll(parts), fanOutAll(parts)])
  assert.equal((await pool.query('select from deliveries')).rowCount, 200 * 40 + 40)
  const { balanced, waiting } = await checkNotifications(pool)
  assert.deepEqual([balanced, waiting], [true, 0])
  const { rows } = await pool.query(
    `select count(*) from deliveries d join events e using (merchant_id, payment_id)
      where d.position <> extract(epoch from e.recorded_at - timestamptz '2024-01-01')`,
  )
  assert.equal(rows[0].count, 0)
  await pool.query('truncate deliveries, events, endpoints')
})

test('of a merchant with two endpoints none is told before the other, while one of them is held', async () => {
  const one = await merchant()
  await pool.query(
    `insert into endpoints select merchant_id, $2, kind, channel_id, name, url, types, fields, wrapper, sealed_secrets, alert_address, state, emitted, created_at, activated_at
       from endpoints where id = $1`,
    [one.id, randomUUID()],
  )
  await happened(one, 1, 2)
  const holder = await pool.connect()
  try {
    await holder.query('begin')
    await holder.query('select from endpoints where id = $1 for update', [one.id])
    assert.equal((await fanOut(parts)).taken, 0)
    assert.equal((await pool.query('select from deliveries')).rowCount, 0)
    await holder.query('commit')
  } finally {
    holder.release()
  }
  await fanOutAll(parts)
  assert.equal((await pool.query('select from deliveries')).rowCount, 4)
})
