// The database is another machine: it can be slow, locked, silent, cut off or restarted. What was answered stays true, nothing is sent for a
// caller who has left, and the process lives.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { after, before, describe, it } from 'node:test'
import pg from 'pg'
import { examine } from '../src/payments/ledger/doctor.ts'
import type { Payment } from '../src/payments/payment.ts'
import { answerLane, type NewAnswer } from '../src/payments/store/answers.ts'
import { type NewPayment, paymentLane } from '../src/payments/store/payments.ts'
import { sweepUnanswered } from '../src/payments/store/sweep.ts'
import { type Clock, clockWith, systemClock, type Timer, timeOrderedId } from '../src/platform/clock.ts'
import { connect } from '../src/platform/database/connect.ts'
import { isCrowd, WriteTimeout } from '../src/platform/database/errors.ts'
import { batchBytesMost, batchMax, groupCommit } from '../src/platform/database/groupCommit.ts'
import { addDue, finishDue, postponeDue, renewDue } from '../src/platform/due/store.ts'
import { makeDatabase, testPool } from './support/database.ts'
import { takeAnyDue } from './support/due.ts'
import { eventually, type Reply, sandbox, type TestGateway, testGateway } from './support/gateway.ts'
import { untilWaiting } from './support/locks.ts'
import { wireTo } from './support/wire.ts'

const success = '000.100.110'
const pending = '000.200.000'
const at = (amount: string) => ({ amount, currency: 'EUR' })
const times = <Value>(count: number, make: (index: number) => Promise<Value>) =>
  Promise.all(Array.from({ length: count }, (_, index) => make(index)))
const code = ({ body }: Reply): string => body.result.code
const read = (gateway: TestGateway, id: string) => gateway.get(`/v1/payments/${id}`, { entityId: sandbox.entityId })

async function locked<Value>(pool: pg.Pool, statement: string, work: () => Promise<Value>): Promise<Value> {
  const holder = await pool.connect()
  try {
    await holder.query('begin')
    await holder.query(statement)
    return await work()
  } finally {
    await holder.query('rollback')
    holder.release()
  }
}

async function booksAgree({ pool }: TestGateway): Promise<void> {
  assert.deepEqual((await examine(pool)).findings, [])
}

describe('a batch of a group commit', () => {
  it('never holds two rows of one key, and each learns what became of its own', async () => {
    const batches: string[][] = []
    const stored = new Set<string>()
    const lane = groupCommit<{ key: string; text: string }, boolean>({
      clock: systemClock,
      key: row => row.key,
      patienceSeconds: 10,
      async write(rows) {
        batches.push(rows.map(({ key }) => key))
        return rows.map(({ key }) => !stored.has(key) && Boolean(stored.add(key)))
      },
    })
    const outcomes = await Promise.all(['a', 'b', 'a', 'a', 'b'].map((key, text) => lane({ key, text: String(text) })))
    assert.deepEqual(outcomes, [true, true, false, false, false])
    assert.deepEqual(batches, [['a', 'b'], ['a', 'b'], ['a']])
  })

  it('holds rows of all owners in turn, and no more bytes than it may but where one row is longer', async () => {
    const batches: string[][] = []
    const lane = groupCommit<{ owner: string; at: number; bytes: number }, boolean>({
      clock: systemClock,
      key: ({ owner, at }) => `${owner}${at}`,
      owner: ({ owner }) => owner,
      bytes: ({ bytes }) => bytes,
      patienceSeconds: 10,
      async write(rows) {
        batches.push(rows.map(({ owner, at }) => `${owner}${at}`))
        return rows.map(() => true)
      },
    })
    const rows = (owner: string, count: number, bytes: number) =>
      Array.from({ length: count }, (_, at) => lane({ owner, at, bytes }))
    await Promise.all([...rows('large', 3, 2 * batchBytesMost), ...rows('long', 3, batchBytesMost / 2), ...rows('small', 3, 10)])
    assert.deepEqual(batches, [['large0'], ['long0', 'small0', 'small1', 'small2'], ['large1'], ['long1', 'long2'], ['large2']])
    batches.length = 0
    await Promise.all([...rows('a', 300, 0), ...rows('b', 2, 0)])
    assert.deepEqual(
      batches.map(batch => [batch.length, batch.filter(key => key.startsWith('b')).length]),
      [
        [batchMax, 2],
        [batchMax, 0],
        [46, 0],
      ],
    )
  })

  it('is tried again whole while the database is away, and given up when its rows have waited too long', async () => {
    const sizes: number[] = []
    let away = true
    const lane = groupCommit<number, true>({
      clock: systemClock,
      key: String,
      patienceSeconds: 0.5,
      async write(rows) {
        sizes.push(rows.length)
        if (away) throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
        return rows.map(() => true)
      },
    })
    const given = await Promise.allSettled([1, 2, 3].map(lane))
    assert.ok(given.every(one => one.status === 'rejected' && one.reason instanceof WriteTimeout))
    assert.ok(sizes.length > 1 && sizes.every(size => size === 3), String(sizes))
    away = false
    assert.deepEqual(await Promise.all([4, 5].map(lane)), [true, true])
  })
})

describe('a merchant with many long payments', () => {
  const merchants = ['a', 'b'].map(one => one.repeat(32))
  /** The merchants of each statement that the lane sends. */
  const statements = (column: number, width: number) => {
    const seen: string[][] = []
    const pool = {
      async query({ values }: { values: string[] }) {
        const rows = Array.from({ length: Math.floor(values.length / width) }, (_, at) =>
          values.slice(at * width, (at + 1) * width),
        )
        seen.push(rows.flatMap(row => (row[0] === null ? [] : [row[0]!])))
        return { rows: rows.map(row => ({ id: row[column], payment_id: row[column] })), rowCount: 1 }
      },
    } as unknown as pg.Pool
    return { seen, pool }
  }
  const paymentOf = (merchantId: string, at: number) =>
    ({
      merchantId,
      id: `${at}`,
      channelId: merchantId,
      type: 'DB',
      receivedAt: 0,
      recordedAt: 0,
      record: { memo: 'x'.repeat(200_000) },
    }) as unknown as Payment
  const each = <Row>(lane: (row: Row) => Promise<unknown>, row: (payment: Payment) => Row) =>
    Promise.all(
      merchants.flatMap((merchantId, of) =>
        Array.from({ length: of === 0 ? 40 : 1 }, (_, at) => lane(row(paymentOf(merchantId, at)))),
      ),
    )

  it('keeps no other’s waiting: it is in the first statement, which holds few of them', async () => {
    const payments = statements(1, 20)
    await each(paymentLane(payments.pool, systemClock), payment => ({ payment }) as NewPayment)
    const answers = statements(1, 23)
    const body = JSON.stringify({ memo: 'x'.repeat(200_000) })
    const answer = { result: 'succeeded', approved: true, kept: {}, body, answeredAt: 0 }
    await each(
      answerLane(answers.pool, systemClock),
      payment => ({ payment, answer, transfers: [], recordedAt: 0 }) as unknown as NewAnswer,
    )
    for (const { seen } of [payments, answers]) {
      assert.ok(seen[0]!.includes(merchants[1]!), String(seen[0]))
      assert.ok(
        seen.every(rows => rows.length <= 6),
        String(seen.map(rows => rows.length)),
      )
      assert.equal(seen.flat().length, 41)
    }
  })
})

describe('two answers of one payment', () => {
  let gateway: TestGateway
  before(async () => {
    gateway = await testGateway()
  })
  after(() => gateway.stop())

  it('in one batch: one of them counts, and what the merchant was told is what stands', async () => {
    const late = await times(15, () => gateway.pay({ 'customParameters[simulateAnswer]': 'late' }))
    assert.ok(late.every(reply => code(reply) === pending))
    // While nothing can be stored, recovery decides and the late approvals come in: they wait for the same batch.
    await locked(gateway.pool, 'lock table answers in exclusive mode', async () => {
      await gateway.pool.query(`update due_work set due_at = due_at - interval '1 hour' where kind = 'recover'`)
      await eventually(
        async () => gateway.logged.filter(line => line.includes('came late or twice')).length >= 15,
        'all late replies came in',
      )
      await eventually(
        async () =>
          (await gateway.pool.query(`select 1 from due_work where kind = 'recover' and leased_until is null`)).rowCount === 0,
        'recovery has begun',
      )
    })
    await eventually(
      async () => (await gateway.pool.query('select 1 from due_work')).rowCount === 0,
      'all of it is settled and acknowledged',
      150, // what could not be postponed waits for its lease
    )
    for (const { body } of late) {
      const { rows } = await gateway.pool.query<{ approved: boolean; lines: string; announced: string }>(
        `select approved, (select count(*) from journal j where j.payment_id = a.payment_id) as lines,
                (select count(*) from events e where e.payment_id = a.payment_id and e.sequence = 2) as announced
           from answers a where payment_id = $1`,
        [body.id],
      )
      assert.equal(rows.length, 1)
      const { approved, lines, announced } = rows[0]!
      assert.deepEqual([Number(lines), Number(announced)], [approved ? 1 : 0, 1], body.id)
      assert.equal(code(await read(gateway, body.id)), approved ? success : '900.100.301')
    }
    await booksAgree(gateway)
  })

  it('the doctor names an approved payment that is being reversed', async () => {
    const { body } = await gateway.pay()
    await gateway.pool.query(
      `insert into due_work (kind, merchant_id, subject_id, due_at) values ('reverse', $1, $2, '2999-01-01')`,
      [sandbox.merchantId, body.id],
    )
    const { findings } = await examine(gateway.pool)
    assert.deepEqual(findings, [
      `Payment ${body.id} of merchant ${sandbox.merchantId}: it was answered as approved and is being reversed.`,
    ])
    await gateway.pool.query('delete from due_work where subject_id = $1', [body.id])
  })
})

describe('connections that are cut', () => {
  let gateway: TestGateway
  before(async () => {
    gateway = await testGateway({ wired: true })
  })
  after(() => gateway.stop())

  it('idle ones: the process lives, requests go on, and changes are heard again', async () => {
    await gateway.pay()
    for (let round = 0; round < 12; round++) {
      gateway.wire!.cut() // more often than the pool has places
      await eventually(async () => code(await gateway.pay()) === success, 'payments go on')
    }
    assert.equal((await gateway.get('/health')).status, 200)
    await gateway.pool.query(`update entities set settings = '{"disabled": true}' where id = $1`, [sandbox.entityId])
    await eventually(async () => {
      await gateway.pool.query(`select pg_notify('tollgate_directory', '')`)
      return code(await gateway.pay()) === '500.100.201'
    }, 'a change is heard')
    await gateway.pool.query(`update entities set settings = '{}' where id = $1`, [sandbox.entityId])
    await eventually(async () => {
      await gateway.pool.query(`select pg_notify('tollgate_directory', '')`)
      return code(await gateway.pay()) === success
    }, 'and taken back')
  })

  it('under load: whatever was answered is found, the rest is settled, and the books agree', async () => {
    let cutting = true
    const cuts = (async () => {
      for (let round = 0; cutting && round < 120; round++) {
        await new Promise(resolve => setTimeout(resolve, 20 + (round % 5) * 15)) // without end, a slow machine would never come through
        gateway.wire!.cut()
      }
    })()
    const replies: Reply[] = []
    await times(8, async () => {
      for (let count = 0; count < 15; count++) {
        const reply = await gateway.pay({ paymentType: 'PA' })
        replies.push(reply)
        if (code(reply) === success) replies.push(await gateway.refer(reply.body.id, { paymentType: 'CP', ...at('92.00') }))
      }
    })
    cutting = false
    await cuts
    await gateway.advance('1s') // also the clock works again
    for (const reply of replies) {
      if (reply.body.id === undefined) assert.equal(reply.status, 503, reply.text)
      else if (code(reply) !== pending) assert.equal(code(await read(gateway, reply.body.id)), code(reply))
    }
    assert.ok(replies.some(reply => code(reply) === success))
    // What nobody waits for any more is found, whenever it was committed.
    await eventually(async () => {
      await gateway.pool.query(`update unanswered set recorded_at = recorded_at - interval '1 hour'`)
      await sweepUnanswered(gateway.pool, Date.now() - 60_000, Date.now())
      await gateway.pool.query(`update due_work set due_at = due_at - interval '1 hour' where leased_until is null`)
      const { rowCount } = await gateway.pool.query(
        'select 1 from payments p where not exists (select from answers a where a.payment_id = p.id) union all select 1 from due_work',
      )
      return rowCount === 0
    }, 'every payment is settled')
    await booksAgree(gateway)
  })
})

describe('a database that is silent', () => {
  it('is not waited for without end: nothing is sent for callers who have left, and all goes on afterwards', async () => {
    const gateway = await testGateway({ wired: true })
    try {
      const { body: pa } = await gateway.pay({ paymentType: 'PA' })
      gateway.wire!.silence()
      const began = performance.now()
      const replies = await Promise.all([
        ...Array.from({ length: 30 }, () => gateway.pay({ merchantTransactionId: 'in-the-silence' })),
        gateway.refer(pa.id, { paymentType: 'CP', ...at('92.00') }),
      ])
      assert.ok(performance.now() - began < 45_000)
      for (const { status, body } of replies)
        assert.deepEqual([status, body.result.code, body.id], [503, '800.800.801', undefined])
      assert.equal((await gateway.get('/health')).status, 503)
      gateway.wire!.resume()
      await eventually(async () => code(await gateway.pay()) === success, 'payments go on')
      await eventually(async () => (await gateway.get('/health')).status === 200, 'it is healthy')
      // What had reached the server was stored without having been sent; it must not become a success by itself.
      const { rows } = await gateway.pool.query<{ result: string | null }>(
        `select a.result from payments p left join answers a on a.payment_id = p.id where p.merchant_transaction_id = 'in-the-silence'`,
      )
      assert.ok(rows.every(({ result }) => result !== 'succeededInTestMode'))
      assert.equal(code(await gateway.refer(pa.id, { paymentType: 'CP', ...at('92.00') })), success)
      await booksAgree(gateway)
    } finally {
      gateway.wire!.resume()
      await gateway.stop()
    }
  })
})

describe('a write of which nothing is heard', () => {
  let gateway: TestGateway
  before(async () => {
    gateway = await testGateway({ wired: true })
  })
  after(() => gateway.stop())

  /** What was stored of a request that was answered 503, once it has an answer. */
  const settledAs = (merchantTransactionId: string) =>
    eventually(async () => {
      const { rows } = await gateway.pool.query<{ result: string }>(
        `select a.result from payments p join answers a on a.payment_id = p.id where p.merchant_transaction_id = $1`,
        [merchantTransactionId],
      )
      return rows[0]?.result
    }, 'it is settled')

  it('a refund that was committed and told as failed is never carried out', async () => {
    const { body: db } = await gateway.pay()
    gateway.wire!.swallowAnswerTo('commit\u0000', 'told-as-failed') // the statement, not the level of a transaction, and no other's
    const failed = await gateway.refer(db.id, { paymentType: 'RF', ...at('30.00'), merchantTransactionId: 'told-as-failed' })
    assert.deepEqual([failed.status, failed.body.id], [503, undefined])
    assert.equal(await settledAs('told-as-failed'), 'storedTooLate')
    await gateway.advance('10m') // recovery has nothing to do
    assert.equal(await settledAs('told-as-failed'), 'storedTooLate')
    // All of it can still be refunded.
    assert.equal(code(await gateway.refer(db.id, { paymentType: 'RF', ...at('92.00') })), success)
    await booksAgree(gateway)
  })

  it('a payment whose batch was stored goes on when the batch is tried again', async () => {
    gateway.wire!.swallowAnswerTo('payments 1')
    const reply = await gateway.pay({ merchantTransactionId: 'stored-unheard', paymentType: 'CD' })
    assert.ok([success, '900.100.600', '800.800.801'].includes(code(reply)), reply.text)
    const result = await settledAs('stored-unheard')
    assert.equal(result === 'succeededInTestMode', code(reply) === success)
    await booksAgree(gateway)
  })
})

describe('locks that others hold', () => {
  let gateway: TestGateway
  before(async () => {
    gateway = await testGateway()
  })
  after(() => gateway.stop())

  it('one locked chain does not hold up the others', async () => {
    const [{ body: stuck }, { body: free }] = await Promise.all([gateway.pay(), gateway.pay()])
    let waiting: Promise<Reply[]> | undefined
    await locked(gateway.pool, `select 1 from payments where id = '${stuck.id}' for update`, async () => {
      waiting = times(40, () => gateway.refer(stuck.id, { paymentType: 'RF', ...at('1.00') }))
      await untilWaiting(gateway.pool)
      const began = performance.now()
      assert.equal(code(await gateway.refer(free.id, { paymentType: 'RF', ...at('1.00') })), success)
      assert.equal((await gateway.get('/health')).status, 200)
      assert.ok(performance.now() - began < 2000)
    })
    const replies = await waiting!
    assert.ok(replies.every(reply => code(reply) === success))
    await booksAgree(gateway)
  })

  it('a payment that was stored too late is not sent, and says so', async () => {
    const reply = await locked(gateway.pool, 'lock table payments in exclusive mode', async () => {
      const paid = gateway.pay({ merchantTransactionId: 'stored-too-late' })
      // The lock is given up by its waiter after 5 s and asked for again: it is let go between the last try and the end of patience.
      await new Promise(resolve => setTimeout(resolve, 10_300))
      return { paid }
    })
    const { status, body } = await reply.paid
    assert.ok(['800.800.801', '900.100.600'].includes(body.result.code), body.result.code)
    assert.ok(status === 503 || status === 400)
    const { rows } = await gateway.pool.query(
      `select a.result, a.approved from payments p left join answers a on a.payment_id = p.id where p.merchant_transaction_id = 'stored-too-late'`,
    )
    assert.ok(rows.length === 0 || rows[0].result === 'storedTooLate', JSON.stringify(rows))
    await booksAgree(gateway)
  })
})

describe('isolation', () => {
  it('the rules see what was committed a moment ago, whatever the database has as its default', async () => {
    const gateway = await testGateway()
    try {
      const { database } = gateway.connection
      await gateway.pool.query(`alter database ${database} set default_transaction_isolation = 'repeatable read'`)
      await gateway.restart()
      const { body: db } = await gateway.pay(at('100.00'))
      const refunds = await times(20, () => gateway.refer(db.id, { paymentType: 'RF', ...at('30.00') }))
      assert.equal(refunds.filter(reply => code(reply) === success).length, 3)
      await booksAgree(gateway)
    } finally {
      await gateway.stop()
    }
  })
})

describe('payments that nobody answered', () => {
  let gateway: TestGateway
  before(async () => {
    gateway = await testGateway()
  })
  after(() => gateway.stop())

  const store = async (recordedAt: number) => {
    const { body } = await gateway.pay()
    const { rows } = await gateway.pool.query('select channel_id, record from payments where id = $1', [body.id])
    const id = timeOrderedId(recordedAt, { uuid: () => crypto.randomUUID(), bytes: count => Buffer.alloc(count) })
    const payment = {
      merchantId: sandbox.merchantId,
      id,
      channelId: sandbox.entityId,
      type: 'DB',
      amount: 9200,
      currency: 'EUR',
      mode: 'internal',
      connector: 'simulator',
      receivedAt: recordedAt,
      recordedAt,
      record: JSON.parse(rows[0].record),
    } as const
    assert.equal(await paymentLane(gateway.pool, systemClock)({ payment }), true)
    return id
  }
  const isTaken = async (id: string) =>
    (await gateway.pool.query(`select 1 from due_work where kind = 'recover' and subject_id = $1`, [id])).rowCount === 1
  const sweep = (now = Date.now()) => sweepUnanswered(gateway.pool, now - 60_000, Date.now() + 3_600_000)

  it('are found when they were committed long after their id was made', async () => {
    await sweep()
    const id = await store(Date.now() - 3 * 3_600_000)
    await sweep()
    assert.equal(await isTaken(id), true)
  })

  it('are found when the clock of their process was ahead', async () => {
    const id = await store(Date.now() + 25_000)
    await sweep()
    assert.equal(await isTaken(id), false)
    await sweep(Date.now() + 90_000)
    assert.equal(await isTaken(id), true)
  })

  it('are named by the doctor when nothing is under way for them', async () => {
    const id = await store(Date.now() - 3_600_000)
    const findings = async () => (await examine(gateway.pool, Date.now() - 600_000)).findings.filter(text => text.includes(id))
    assert.match((await findings()).join(), /it has no answer, and nothing is under way/)
    await sweep()
    assert.deepEqual(await findings(), [])
  })

  it('are named by the doctor when a wrong clock has put off what is to be done for them', async () => {
    const id = await store(Date.now() - 3_600_000)
    const findings = async () => (await examine(gateway.pool, Date.now() - 600_000)).findings.filter(text => text.includes(id))
    const hour = 3_600_000
    const due = [
      ['recover', 1, 3],
      ['reverse', 0.5, 401 * 24],
      ['redirectExpiry', 24, 26],
    ] as const
    for (const [kind, usual, late] of due) {
      await addDue(gateway.pool, kind, sandbox.merchantId, id, Date.now() + usual * hour)
      assert.deepEqual(
        (await findings()).filter(text => text.includes('is due at')),
        [],
      )
      await gateway.pool.query('update due_work set due_at = $2 where subject_id = $1', [id, new Date(Date.now() + late * hour)])
      const [named] = (await findings()).filter(text => text.includes('is due at'))
      assert.ok(named?.includes(`(${kind})`) && named.includes('a wrong clock wrote it'), named)
      await gateway.pool.query('delete from due_work where subject_id = $1', [id])
    }
  })
})

describe('due work', () => {
  let gateway: TestGateway
  const merchantId = sandbox.merchantId
  const subject = '01a1fcaebec47bdc9003acd45c0c06f4'
  before(async () => {
    gateway = await testGateway()
  })
  after(() => gateway.stop())
  // Of a kind that the gateway's own worker leaves alone, because its time comes late.
  const dueAt = Date.now() + 3_600_000
  const take = async (now = dueAt) =>
    (await takeAnyDue(gateway.pool, now, 10, ['reverse'])).find(({ subjectId }) => subjectId === subject)
  const waiting = async () => (await gateway.pool.query('select * from due_work where subject_id = $1', [subject])).rows
  const add = (details = {}) => addDue(gateway.pool, 'reverse', merchantId, subject, dueAt, details)

  it('that is asked for again while it runs is not ended by whoever runs it', async () => {
    await add({ first: 1 })
    const taken = (await take())!
    await add({ second: 2 })
    await finishDue(gateway.pool, taken)
    const again = (await take())!
    assert.deepEqual(again.details, { first: 1, second: 2 })
    await finishDue(gateway.pool, again)
    assert.deepEqual(await waiting(), [])
  })

  it('that another took after the lease ran out is neither ended nor postponed by the first', async () => {
    await add()
    const first = (await take())!
    const second = (await take(dueAt + 61_000))!
    await postponeDue(gateway.pool, first, dueAt + 9_000_000)
    await finishDue(gateway.pool, first)
    const [row] = await waiting()
    assert.equal(new Date(row.leased_until).getTime(), second.leasedUntil)
    await finishDue(gateway.pool, second)
    assert.deepEqual(await waiting(), [])
  })

  it('is not taken while a lease runs, and a lease can be renewed', async () => {
    await add()
    const taken = (await take())!
    assert.equal(await take(dueAt + 59_000), undefined)
    const renewed = (await renewDue(gateway.pool, taken, dueAt + 50_000))!
    assert.equal(await take(dueAt + 61_000), undefined)
    assert.equal(await renewDue(gateway.pool, taken, dueAt), undefined) // of an older lease
    await finishDue(gateway.pool, renewed)
    assert.deepEqual(await waiting(), [])
  })
})

describe('a clock beside that of the database', () => {
  it('is refused at the start when it is too far away', async () => {
    const ahead = (seconds: number) => testGateway({ watched: true, clock: clockWith(() => Date.now() + seconds * 1000) })
    await assert.rejects(ahead(45), /[4-9]\d\.\d seconds ahead of that of its database/)
    await assert.rejects(ahead(-40), /seconds behind that of its database/)
    const gateway = await ahead(10)
    assert.ok(gateway.logged.some(line => line.includes('the clocks differ')))
    await gateway.stop()
  })
})

describe('what listens', () => {
  it('listens again as soon as its connection is lost, and hears what was said meanwhile', async () => {
    const gateway = await testGateway()
    const never = { cancel() {}, unref: () => never } as unknown as Timer
    // Nobody asks whether the connection lives.
    const after: Clock['after'] = (milliseconds, work) => (milliseconds > 10_000 ? never : systemClock.after(milliseconds, work))
    const database = connect(gateway.connection, { ...systemClock, after }, () => {})
    let heard = 0
    await database.listen('anything', () => heard++)
    for (const round of [1, 2, 3]) {
      await gateway.pool.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and query = 'listen anything'`,
      )
      await eventually(async () => heard === round, 'it is heard')
    }
    await database.close()
    await new Promise(resolve => setTimeout(resolve, 50))
    assert.equal(heard, 3, 'who has closed listens no more')
    await gateway.stop()
  })

  it('and is stopped while it opens another connection, leaves none behind', async () => {
    const gateway = await testGateway()
    const wire = await wireTo(gateway.connection)
    const database = connect(wire.connection, systemClock, () => {})
    let heard = 0
    const listener = await database.listen('anything', () => heard++)
    try {
      wire.cut()
      wire.silence()
      await eventually(async () => wire.made() > 1, 'it opens another one')
      await listener.stop()
      assert.equal(wire.open(), 1)
      wire.resume()
      await eventually(async () => wire.open() === 0, 'it is ended')
      assert.equal(heard, 0)
    } finally {
      await database.close()
      await wire.close()
      await gateway.stop()
    }
  })
  it('asks again in a second, and not at once, where each connection ends as soon as it is made', async () => {
    const gateway = await testGateway()
    const waited: number[] = []
    const after: Clock['after'] = (milliseconds, work) => {
      waited.push(milliseconds)
      return systemClock.after(milliseconds === 1000 ? 20 : milliseconds, work)
    }
    const database = connect(gateway.connection, { ...systemClock, after, elapsed: () => 0 }, () => {})
    let heard = 0
    const listener = await database.listen('anything', () => heard++)
    for (const round of [1, 2, 3]) {
      await gateway.pool.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and query = 'listen anything'`,
      )
      await eventually(async () => heard === round, 'it is heard')
    }
    assert.equal(waited.filter(milliseconds => milliseconds === 1000).length, 3)
    await listener.stop()
    await database.close()
    await gateway.stop()
  })
})

describe('closing', () => {
  it('ends every connection, also that which listens', async () => {
    const gateway = await testGateway()
    const database = connect(gateway.connection, systemClock, () => {})
    await database.listen('anything', () => {})
    await database.work.query('select 1')
    await database.close()
    await gateway.stop() // drops the database, which a connection would keep
  })
})

it('a pool that is full is a crowd, a server to which no connection can be opened is not', async () => {
  const { connection, drop } = await makeDatabase()
  const full = testPool({ ...connection, connectionTimeoutMillis: 1000 }, 1)
  const silent = createServer(() => {}).listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const away = new pg.Pool({ host: '127.0.0.1', port: (silent.address() as AddressInfo).port, connectionTimeoutMillis: 50 })
  const client = await full.connect()
  await assert.rejects(full.query('select 1'), isCrowd)
  await assert.rejects(away.query('select 1'), error => !isCrowd(error))
  client.release()
  await Promise.all([full.end(), away.end()])
  silent.close()
  await drop()
})
