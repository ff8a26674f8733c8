// Shares of due work: a backlog of one merchant, at a shop or at a bank, keeps what another has waiting no longer than what is under way.

import assert from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import type pg from 'pg'
import { systemRandom } from '../src/platform/clock.ts'
import { countShares } from '../src/platform/due/shares.ts'
import { addDue, type DueItem, lineOf, type Taking, type Wanted } from '../src/platform/due/store.ts'
import { makeDatabase, type TestDatabase, testPool } from './support/database.ts'
import { lookAtDue, noShares, rooms } from './support/due.ts'

let database: TestDatabase
let pool: pg.Pool
const now = Date.now()
const merchant = (number: number) => `5a11d0000000000000000000000${number.toString(16).padStart(5, '0')}`
const [busy, other] = [merchant(1), merchant(2)]
const kind = 'redirectExpiry'

before(async () => {
  database = await makeDatabase()
  pool = testPool(database.connection, 2)
})
afterEach(() => pool.query('truncate due_work'))
after(async () => {
  await pool.end()
  await database.drop()
})

/** The oldest is due for as many seconds as there are. */
async function backlog(count: number, merchantId: string, side: string, secondsAgo = count): Promise<void> {
  await pool.query(
    `insert into due_work (kind, merchant_id, subject_id, due_at, side)
     select $1, $2, gen_random_uuid(), $3::timestamptz + n * interval '1 ms', $4 from generate_series(1, $5::int) n`,
    [kind, merchantId, new Date(now - secondsAgo * 1000 - count), side, count],
  )
}
const one = (merchantId: string, side: string) => addDue(pool, kind, merchantId, systemRandom.uuid(), now, {}, side)
const wanted = (taking: Taking, more: Partial<Wanted> = {}): Wanted => ({
  kinds: [kind],
  taking,
  limit: 20,
  merchants: rooms(15),
  sides: rooms(8),
  ...noShares,
  ...more,
})
const of = (items: readonly DueItem[], merchantId: string) => items.filter(item => item.merchantId === merchantId).length

for (const [taking, side, most] of [
  ['own', '', 15],
  ['sides', 'bank.example', 7],
  ['all', 'shop.example', 7],
] as const)
  test(`behind a hundred thousand that are due to one merchant, others are found without reading those (${taking})`, async () => {
    await backlog(100_000, busy, side)
    await one(other, side)
    // Their time has not come; each costs a step.
    for (let number = 3; number < 103; number++)
      await addDue(pool, kind, merchant(number), systemRandom.uuid(), now + 60_000, {}, side)
    await pool.query('analyze due_work')
    const { items, read } = await lookAtDue(pool, now, wanted(taking))
    assert.deepEqual([of(items, busy), of(items, other)], [most, 1])
    assert.ok(read < 400, `${read} rows`)
    const full = await lookAtDue(pool, now, wanted(taking, { merchants: rooms(15, [busy, 0]) }))
    assert.deepEqual([of(full.items, busy), of(full.items, other)], [0, 1])
    assert.ok(full.read < 400, `${full.read} rows`)
  })

test('where all that is due is seen, no merchant is looked for', async () => {
  await pool.query(
    `insert into due_work (kind, merchant_id, subject_id, due_at) select $1, gen_random_uuid(), gen_random_uuid(), $2 from generate_series(1, 5000)`,
    [kind, new Date(now + 60_000)],
  )
  await one(other, '')
  await pool.query('analyze due_work')
  const { items, read } = await lookAtDue(pool, now, wanted('own'))
  assert.equal(items.length, 1)
  assert.ok(read < 10, `${read} rows`)
})

const merchants = (count: number, each: string, minutes: number) =>
  pool.query(
    `insert into due_work (kind, merchant_id, subject_id, due_at, side)
     select $1, ('5a11d000' || lpad(to_hex(n), 24, '0'))::uuid, gen_random_uuid(), $2, side from generate_series(16, 15 + $3::int) n, unnest($4::text[]) side`,
    [kind, new Date(now + minutes * 60_000), count, each.split(' ')],
  )

/** Looks, of which each goes on where the one before came to. What is found stays free. */
async function looks(count: number, more: Wanted): Promise<Awaited<ReturnType<typeof lookAtDue>>[]> {
  await pool.query('analyze due_work')
  const seen: Awaited<ReturnType<typeof lookAtDue>>[] = []
  while (seen.length < count) seen.push(await lookAtDue(pool, now, { ...more, behind: seen.at(-1)?.cameTo ?? [] }))
  return seen
}

for (const [what, minutes, count, most] of [
  ['is due', -1, 350, 19],
  ['waits for its time', 1, 3500, 6],
] as const)
  test(`of many merchants whose work ${what} a look passes some, the next goes on behind them, and all come in turn`, async () => {
    await backlog(30, busy, '', 600)
    await merchants(count, '', minutes)
    await one('0'.repeat(32), '') // nobody's: the first in any order
    await one('f'.repeat(32), '') // and the last
    const seen = await looks(most * 2, wanted('own'))
    for (const { read } of seen) assert.ok(read < 2000, `${read} rows`)
    for (const some of [seen.slice(0, most), seen.slice(most)]) {
      const found = new Set(some.flatMap(({ items }) => items.map(({ merchantId }) => merchantId)))
      assert.equal(found.size, minutes < 0 ? count + 3 : 3)
    }
  })

test('merchants who left, whose work waits until they are forgotten here, cost others no look', async () => {
  await merchants(1500, '', -60)
  await pool.query(
    `insert into merchant_moves (merchant_id, direction, state, here, other, run, changed_at)
     select distinct merchant_id, 'leaving', 'moved', false, 'two', 1, now() from due_work`,
  )
  await one(busy, '')
  await one('f'.repeat(32), '')
  try {
    const [first] = await looks(1, wanted('own'))
    assert.deepEqual(first!.items.map(({ merchantId }) => merchantId).sort(), [busy, 'f'.repeat(32)].sort())
  } finally {
    await pool.query('delete from merchant_moves')
  }
})

test('where the merchants of a place are as many as a look passes at most, each look sees all of them', async () => {
  await merchants(98, '', -1)
  await backlog(50, busy, '', 600)
  await one(other, '')
  for (const { items, cameTo } of await looks(3, wanted('own', { limit: 200 })))
    assert.deepEqual([of(items, other), cameTo.length], [1, 0])
})

test('places share the steps of a look: a hundred sides cost what one does, and the last merchant of each comes in turn', async () => {
  const sides = Array.from({ length: 100 }, (_, index) => `bank${index}.example`)
  await merchants(30, sides.join(' '), -1)
  const seen = await looks(30, wanted('sides', { limit: 2000, merchants: rooms(200) }))
  for (const { read } of seen) assert.ok(read < 4000, `${read} rows`)
  const last = `5a11d000${(45).toString(16).padStart(24, '0')}`
  const called = new Set(
    seen.flatMap(({ items }) => items.filter(({ merchantId }) => merchantId === last).map(({ side }) => side)),
  )
  assert.equal(called.size, 100)
})

test('what is under way counts, at a side what calls it, and of one merchant the oldest come first', async () => {
  await backlog(100, busy, 'bank.example')
  await backlog(50, other, 'bank.example', 1)
  const shares = (...running: [string, string, number][]): Pick<Wanted, 'ofLines'> => ({
    ofLines: new Map(running.map(([side, merchantId, running]) => [lineOf({ side, merchantId }), { running, turn: running }])),
  })
  const look = async (more: Partial<Wanted>) => (await lookAtDue(pool, now, wanted('sides', more))).items
  const all = await look({})
  assert.deepEqual([of(all, busy), of(all, other)], [4, 4])
  const { rows } = await pool.query<{ id: string }>(
    'select subject_id as id from due_work where merchant_id = $1 order by due_at limit 4',
    [other],
  )
  assert.deepEqual(
    all.filter(item => item.merchantId === other).map(item => item.subjectId),
    rows.map(({ id }) => id),
  )
  const five = { sides: rooms(8, ['bank.example', 3]), ...shares(['bank.example', busy, 4], ['bank.example', other, 1]) }
  const next = await look(five)
  assert.deepEqual([of(next, busy), of(next, other)], [0, 3])
  // What calls another bank takes no turn at this one.
  const elsewhere = { sides: rooms(8, ['bank.example', 1]), ...shares(['bank.example', busy, 4], ['slow.example', other, 7]) }
  assert.equal(of(await look(elsewhere), other), 1)
})

test('among many with a backlog each has its turn, whoever waits for longest', async () => {
  const many = Array.from({ length: 12 }, (_, index) => merchant(index + 10))
  for (const id of many) await backlog(30, id, 'bank.example', 600)
  await one(other, 'bank.example')
  const ofLines = countShares()
  const served: DueItem[] = []
  const running: DueItem[] = []
  for (let round = 0; round < 14; round++) {
    const sides = rooms(8, ['bank.example', 8 - running.length])
    const { items } = await lookAtDue(pool, now, wanted('sides', { sides, ofLines: ofLines.shares }))
    for (const item of items) {
      ofLines.begin(lineOf(item))
      await pool.query('delete from due_work where subject_id = $1', [item.subjectId])
    }
    served.push(...items)
    running.push(...items)
    ofLines.end(lineOf(running.shift()!))
  }
  assert.equal(of(served.slice(0, 13), other), 1, 'it is served before anybody is for the second time')
  assert.equal(new Set(served.slice(0, 13).map(({ merchantId }) => merchantId)).size, 13)
})

test('what is locked leaves its place to others', async () => {
  await backlog(100, busy, 'bank.example')
  await one(other, 'bank.example')
  const holder = await pool.connect()
  try {
    await holder.query('begin')
    await holder.query('select from due_work where merchant_id = $1 order by due_at limit 1 for update', [busy])
    const sides = rooms(8, ['bank.example', 1])
    const { items } = await lookAtDue(pool, now, wanted('sides', { limit: 1, sides }))
    assert.deepEqual([of(items, busy), of(items, other)], [0, 1])
  } finally {
    await holder.query('rollback')
    holder.release()
  }
})

test('who has nothing under way is remembered for as long as others have, five hundred of them at most', () => {
  const { shares, begin, end } = countShares()
  begin('one')
  for (let number = 0; number <= 500; number++) {
    begin(`${number}`)
    end(`${number}`)
  }
  assert.equal(shares.size, 501)
  assert.deepEqual(
    [shares.get('one'), shares.get('0'), shares.get('500')],
    [{ running: 1, turn: 1 }, undefined, { running: 0, turn: 502 }],
  )
  begin('one')
  end('one')
  assert.deepEqual(shares.get('one'), { running: 1, turn: 503 })
  end('one')
  assert.equal(shares.size, 0)
})
