// The places of due work as the gateway has them: whose servers say nothing, or little, takes those of nobody else.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, afterEach, before, test } from 'node:test'
import type pg from 'pg'
import { systemClock } from '../src/platform/clock.ts'
import { hearSilences } from '../src/platform/due/silence.ts'
import { addDue } from '../src/platform/due/store.ts'
import { type DueHandlers, startWorker, type Worker } from '../src/platform/due/worker.ts'
import { makeLog } from '../src/platform/log.ts'
import { duePlaces, type Gateway } from '../src/start/assemble.ts'
import { makeDatabase, type TestDatabase, testPool } from './support/database.ts'
import { eventually } from './support/gateway.ts'

let database: TestDatabase
let pool: pg.Pool
const workers: Worker[] = []
/** What is under way, and ends when the test says so. */
const running = new Map<string, () => void>()
let silentShops = hearSilences(systemClock)
/** Of whom everything ends at once. */
let fast = ''
const receiptHosts = new Map<string, string>()

before(async () => {
  database = await makeDatabase()
  pool = testPool(database.connection, 8)
})
afterEach(async () => {
  await pool.query('delete from due_work')
  for (const end of running.values()) end()
  await Promise.all(workers.splice(0).map(worker => worker.stop()))
  running.clear()
  silentShops = hearSilences(systemClock)
  fast = ''
})
after(async () => {
  await pool.end()
  await database.drop()
})

/** All workers of a gateway, whose work lasts until somebody ends it. */
function work(): void {
  const parts = {
    database: { work: pool },
    clock: systemClock,
    log: makeLog('silent'),
    silences: hearSilences(systemClock),
    silentShops,
    connectors: new Map(),
    directory: {
      merchant: (id: string) =>
        receiptHosts.has(id) ? { settings: { receiptFiles: { host: receiptHosts.get(id) } } } : undefined,
    },
  } as unknown as Gateway
  const kinds = ['missedReturn', 'scheduledReport', 'receiptFiles', 'returnServer', 'export', 'redirectExpiry']
  const handlers: DueHandlers<Gateway> = new Map(
    kinds.map(kind => [
      kind,
      (_, { subjectId, merchantId }) =>
        merchantId === fast
          ? Promise.resolve('done')
          : new Promise(resolve => {
              running.set(subjectId, () => resolve('done'))
            }),
    ]),
  )
  for (const places of duePlaces) workers.push(startWorker(parts, handlers, places, () => true))
}
const id = () => randomUUID().replaceAll('-', '')

async function due(kind: string, details: object = {}, owner = id(), subject = id()): Promise<string> {
  await addDue(pool, kind, owner, subject, Date.now() - 1000, details)
  return subject
}
async function scheduled(host: string, owner = id()): Promise<string> {
  const subject = id()
  await pool.query(`insert into report_schedules (owner_id, id, settings, made_at, made_by) values ($1, $2, $3, now(), 'us')`, [
    owner,
    subject,
    JSON.stringify({ host }),
  ])
  return due('scheduledReport', {}, owner, subject)
}
const receipts = (host: string): Promise<string> => {
  const merchant = id()
  receiptHosts.set(merchant, host)
  return due('receiptFiles', {}, merchant, merchant)
}
const missed = (host: string, merchant = id()) => due('missedReturn', { shopperResultUrl: `https://${host}/back` }, merchant)
const times = <Value>(count: number, make: () => Promise<Value>) => Promise.all(Array.from({ length: count }, make))
const runs = (subject: string) => eventually(async () => running.has(subject), 'it is under way')
/** Older than what is made one by one. */
const backlog = (kind: string, count: number, owner: string, side: string) =>
  pool.query(
    `insert into due_work (kind, merchant_id, subject_id, due_at, side)
     select $1, $2, gen_random_uuid(), now() - interval '1 hour' + n * interval '1 ms', $3 from generate_series(1, $4::int) n`,
    [kind, owner, side, count],
  )
const end = (subject: string) => {
  running.get(subject)!()
  running.delete(subject)
}
const underWay = (of: readonly string[]) => of.filter(subject => running.has(subject)).length

test('files for one server take a share, however it is written and whosever they are, and keep no files for others waiting', async () => {
  const slow = [
    ...(await times(6, () => scheduled('Slow.example'))),
    ...(await times(6, () => scheduled('slow.example.'))),
    ...(await times(6, () => receipts('slow.example'))),
  ]
  work()
  await eventually(async () => underWay(slow) === 6, 'its share is taken')
  const others = [await scheduled('fast.example'), await receipts('quick.example')]
  for (const one of others) await runs(one)
  assert.equal(underWay(slow), 6)
  const [first] = slow.filter(subject => running.has(subject))
  const before = underWay(slow)
  end(first!)
  await eventually(async () => underWay(slow) === before, 'the next one follows')
})

test('who stands behind a backlog and thousands of merchants whose time has not come is found while the backlog lasts', async () => {
  fast = id()
  await backlog('redirectExpiry', 2000, fast, 'bank.example')
  await pool.query(
    `insert into due_work (kind, merchant_id, subject_id, due_at, side)
     select 'redirectExpiry', gen_random_uuid(), gen_random_uuid(), now() + interval '1 hour', 'bank.example' from generate_series(1, 3000)`,
  )
  await pool.query('analyze due_work')
  const subject = id()
  await addDue(pool, 'redirectExpiry', 'f'.repeat(32), subject, Date.now() - 1000, {}, 'bank.example')
  work()
  await runs(subject)
  assert.ok((await pool.query('select from due_work where merchant_id = $1', [fast])).rowCount! > 0)
})

test('files of one owner take four places', async () => {
  const owner = id()
  const own = await Promise.all(['a', 'b', 'c', 'd', 'e', 'f'].map(name => scheduled(`${name}.example`, owner)))
  work()
  await eventually(async () => underWay(own) === 4, 'four')
  await runs(await scheduled('other.example'))
  assert.equal(underWay(own), 4)
})

test('what banks lay down is fetched, and what people wait for is made, whatever files and shops are waited for', async () => {
  for (let host = 0; host < 44; host++) {
    await times(6, () => scheduled(`h${host}.example`))
    await times(6, () => missed(`s${host}.example`))
  }
  const exports = await times(6, () => due('export'))
  work()
  await eventually(async () => running.size === 128 + 256 + 2, 'all places of files, shops and exports are taken')
  await runs(await due('returnServer'))
  assert.equal(underWay(exports), 2)
})

test('exports of colleagues take one place, and who has had nothing for longest comes next', async () => {
  const many = id()
  await backlog('export', 20, many, '')
  work()
  await eventually(async () => running.size === 1, 'one is made')
  const first = await due('export')
  await runs(first)
  const others = [first, await due('export')]
  end([...running.keys()].find(subject => !others.includes(subject))!)
  await eventually(async () => underWay(others) === 2, 'the next is the other')
  end(others.find(subject => running.has(subject))!)
  await eventually(async () => running.size === 2, 'the third follows')
  assert.equal(underWay(others), 1)
})

test('one shop’s server takes a share of the calls, and one merchant too', async () => {
  const [of] = [id()]
  const many = (
    await Promise.all(['slow.example', 'Slow.example.', 'slow.example.:443'].map(host => times(4, () => missed(host))))
  ).flat()
  const own = await Promise.all(['a', 'b', 'c', 'd', 'e', 'f'].map(name => missed(`${name}.example`, of)))
  work()
  await eventually(async () => underWay(many) === 6 && underWay(own) === 4, 'their shares are taken')
  await runs(await missed('other.example'))
  assert.deepEqual([underWay(many), underWay(own)], [6, 4])
})

test('shops of a merchant that said nothing three times are tried by one call', async () => {
  const silent = id()
  for (let time = 0; time < 3; time++) silentShops.note(silent, true)
  const calls = await Promise.all(['a', 'b', 'c'].map(name => missed(`${name}.example`, silent)))
  work()
  await runs(await missed('other.example'))
  assert.equal(underWay(calls), 0, 'it rests')
  await eventually(async () => underWay(calls) === 1, 'one tries')
  await runs(await missed('another.example'))
  assert.equal(underWay(calls), 1)
})

for (const [kind, places] of [
  ['missedReturn', 256],
  ['scheduledReport', 128],
  ['redirectExpiry', 60],
] as const)
  test(`a backlog of a merchant whose servers answer at once keeps another one waiting for a look (${kind})`, async () => {
    fast = id()
    const count = 20 * places
    await backlog(kind, count, fast, 'fast.example')
    const other = id()
    await backlog(kind, 1, other, 'other.example')
    await pool.query(`update due_work set due_at = now() where merchant_id = $1`, [other])
    work()
    await eventually(async () => running.size === 1, 'it is under way')
    const { rowCount } = await pool.query('select from due_work where merchant_id = $1', [fast])
    assert.ok(rowCount! > count - 3 * places, `${rowCount} of ${count} are left`)
  })

test('of a bank’s places the next is given to who has none, and two merchants have as many each in the end', async () => {
  const [busy, other] = [id(), id()]
  const ofOther = async () => {
    const { rows } = await pool.query<{ id: string }>('select subject_id as id from due_work where merchant_id = $1', [other])
    return rows.map(row => row.id.replaceAll('-', ''))
  }
  await backlog('redirectExpiry', 300, busy, 'bank.example')
  work()
  await eventually(async () => running.size === 8, 'all places of the bank are taken')
  await backlog('redirectExpiry', 50, other, 'bank.example')
  await pool.query(`update due_work set due_at = now() where merchant_id = $1`, [other])
  const others = await ofOther()
  for (let places = 1; places <= 4; places++) {
    end([...running.keys()].find(subject => !others.includes(subject))!)
    await eventually(async () => running.size === 8, 'the next follows')
    assert.equal(underWay(others), places)
  }
})
