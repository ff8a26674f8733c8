// The database is another machine: it can be slow, locked, silent, cut off or restarted. What was answered stays true, nothing is sent for a
// caller who has left, and the process lives.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import pg from 'pg'
import { examine } from '../src/payments/ledger/doctor.ts'
import type { Payment } from '../src/payments/payment.ts'
import { answerLane, type NewAnswer } from '../src/payments/store/answers.ts'
import { type NewPayment, paymentLane } from '../src/payments/store/payments.ts'
import { sweepUnanswered } from '../src/payments/store/sweep.ts'
import { type Clock, clockWith, systemClock, type Timer, timeOrderedId } from '../src/platform/clock.ts'
import { chainsOf, connect, type Database, forShoppers } from '../src/platform/database/connect.ts'
import { isCrowd, NoTurn, WriteTimeout } from '../src/platform/database/errors.ts'
import { askedBy, fairPool, waitingFor } from '../src/platform/database/fairPool.ts'
import { batchBytesMost, batchMax, groupCommit } from '../src/platform/database/groupCommit.ts'
import { leastFirst, leastFirstOrElsewhere, takeTurns } from '../src/platform/database/turns.ts'
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

describe('turns', () => {
  it('come one after the other, are given up in time, and are bounded', async () => {
    const inTurn = takeTurns(systemClock, 0.3, 2)
    let running = 0
    const order: number[] = []
    const one = (name: number, until: Promise<unknown>) =>
      inTurn('chain', async () => {
        assert.equal(++running, 1)
        await until
        running--
        order.push(name)
      })
    let finish = () => {}
    const first = one(1, new Promise<void>(resolve => (finish = resolve)))
    const others = [2, 3].map(name => one(name, Promise.resolve()))
    await assert.rejects(one(4, Promise.resolve()), WriteTimeout) // more than may wait
    await inTurn('another chain', async () => {})
    for (const other of others) await assert.rejects(other, WriteTimeout)
    const last = one(5, Promise.resolve())
    finish()
    await Promise.all([first, last])
    assert.deepEqual(order, [1, 5])
  })

  it('are as many at a time as they are said to be; one that ends lets in the next', async () => {
    const inTurn = takeTurns(systemClock, 60, 2, 3)
    const ends: (() => void)[] = []
    const one = () => inTurn('merchant', () => new Promise<void>(resolve => ends.push(resolve)))
    const all = Array.from({ length: 5 }, one)
    await assert.rejects(one(), WriteTimeout)
    await eventually(async () => ends.length === 3, 'three have come')
    ends[1]!()
    await all[1]
    await eventually(async () => ends.length === 4, 'the next has come')
    for (const end of ends) end()
    await eventually(async () => ends.length === 5, 'and the last')
    ends[4]!()
    await Promise.all(all)
  })
})

describe('turns of all', () => {
  it('go to whoever has used least of late, and are given up in time', async () => {
    let elapsed = 0
    const inTurn = leastFirst({ ...systemClock, elapsed: () => elapsed }, 60, 2)
    const order: string[] = []
    const ends: (() => void)[] = []
    const one = (key: string, name = key) =>
      inTurn(key, async () => {
        order.push(name)
        await new Promise<void>(resolve => ends.push(resolve))
      })
    const end = async (took: number) => {
      elapsed += took
      const before = order.length
      ends.shift()!()
      await eventually(async () => order.length > before || ends.length === 0, 'the next comes')
    }
    const all = [one('much', 'much 1'), one('much', 'much 2'), one('much', 'much 3'), one('much', 'much 4')]
    await eventually(async () => order.length === 2, 'two at a time')
    await end(3000)
    assert.deepEqual(order, ['much 1', 'much 2', 'much 3'])
    all.push(one('little'), one('less'))
    await end(1000)
    await end(1000)
    assert.deepEqual(order.slice(3), ['little', 'less'], 'who came last has used least')
    await end(500)
    assert.equal(order.at(-1), 'much 4')
    for (const each of ends.splice(0)) each()
    await Promise.all(all)
    // What was used is forgotten: who comes first is first again.
    elapsed += 600_000
    const again = [one('a'), one('b'), one('much', 'much again'), one('little', 'little again')]
    await eventually(async () => ends.length === 2, 'two at a time')
    for (let at = 0; at < 2; at++) await end(1)
    for (const each of ends) each()
    await Promise.all(again)
    assert.deepEqual(order.slice(-2), ['much again', 'little again'])
    const late = leastFirst(systemClock, 0.2, 1)
    let finish = () => {}
    const first = late('a', () => new Promise<void>(resolve => (finish = resolve)))
    await assert.rejects(
      late('b', async () => {}),
      NoTurn,
    )
    finish()
    await first
    assert.equal(await late('b', async () => 'done'), 'done')
  })
})

describe('turns of a rush', () => {
  /** Who came, by his letter and his place among all who were there at once. */
  const orderOf = async (names: string, floor: number, abreast: number, used = '') => {
    const rush = leastFirst(systemClock, 60, 1, { cost: () => 1, floor, abreast })
    for (const name of used) await rush(name, async () => {})
    const order: string[] = []
    await Promise.all([...names].map((name, at) => rush(name, async () => void order.push(`${name}${at}`))))
    return order.join(' ')
  }

  it('go by the order in which all came, a few of each at a time', async () => {
    assert.equal(await orderOf('aaaaabcbd', 100, 2), 'a0 a1 a2 b5 c6 b7 d8 a3 a4')
    assert.equal(await orderOf('aaaaabcbd', 100, 8), 'a0 a1 a2 a3 a4 b5 c6 b7 d8')
    assert.equal(await orderOf('aaaaabcbd', 100, 1), 'a0 a1 b5 c6 d8 a2 b7 a3 a4')
  })

  it('go to whoever has used more than the floor after all others, and least first', async () => {
    assert.equal(await orderOf('xaaaabcbd', 2, 8), 'x0 a1 a2 a3 b5 c6 b7 d8 a4')
    assert.equal(await orderOf('xaabbc', 2, 8, 'aaaaabbbb'), 'x0 c5 b3 a1 b4 a2')
  })

  it('are not lost by whoever gives up, nor by those behind him', async () => {
    const late: (() => void)[] = []
    const clock: Clock = {
      ...systemClock,
      after(_, act) {
        late.push(act)
        const timer: Timer = { cancel() {}, unref: () => timer }
        return timer
      },
    }
    const rush = leastFirst(clock, 60, 1, { cost: () => 1, floor: 100, abreast: 1 })
    const order: string[] = []
    let end = () => {}
    const first = rush('x', () => new Promise<void>(resolve => (end = resolve)))
    const all = ['a', 'a', 'b', 'c'].map((name, at) => rush(name, async () => void order.push(`${name}${at}`)))
    await Promise.all([late[0]!, late[3]!].map(async giveUp => giveUp()))
    await Promise.all([0, 3].map(at => assert.rejects(all[at]!, NoTurn)))
    end()
    await Promise.all([first, all[1], all[2]])
    assert.deepEqual(order, ['a1', 'b2'])
  })

  it('come back to whoever has used little of late', async () => {
    let elapsed = 0
    const rush = leastFirst({ ...systemClock, elapsed: () => elapsed }, 60, 1, { cost: () => 1, floor: 2, abreast: 8 })
    const order: string[] = []
    const ends: (() => void)[] = []
    const one = (name: string) =>
      rush(name, async () => {
        order.push(name)
        await new Promise<void>(resolve => ends.push(resolve))
      })
    const settled = () => new Promise(resolve => setImmediate(resolve))
    const end = async () => {
      ends.shift()!()
      await settled()
    }
    const all = ['a', 'a', 'a', 'a', 'a', 'b', 'b'].map(one)
    for (let at = 0; at < 3; at++) await end()
    assert.deepEqual(order, ['a', 'a', 'a', 'b'])
    elapsed = 5000
    all.push(one('c'), one('c'))
    for (let at = 0; at < 5; at++) await end()
    assert.deepEqual(order.slice(4), ['b', 'a', 'c', 'c', 'a'], 'before whoever came later, though he is there without end')
    await end()
    await Promise.all(all)
  })
})

describe('turns of callers and of places', () => {
  let elapsed: number
  let turns: ReturnType<typeof leastFirstOrElsewhere>
  const late: (() => void)[] = []
  const clock: Clock = {
    ...systemClock,
    elapsed: () => elapsed,
    after(_, act) {
      late.push(act)
      const timer: Timer = { cancel() {}, unref: () => timer }
      return timer
    },
  }
  beforeEach(() => {
    elapsed = 0
    late.length = 0
    turns = leastFirstOrElsewhere(clock, 60, 1)
  })
  const at = (named: string) => {
    const [caller = '', place = ''] = named.split('@')
    return { caller, place }
  }
  /** They were there before, so long in all. */
  const used = (named: string, milliseconds: number) =>
    turns(at(named), async () => {
      elapsed += milliseconds
    })
  /** In which order they come who all came while another was there. */
  const orderOf = async (...names: string[]): Promise<string[]> => {
    let end = () => {}
    const order: string[] = []
    const first = turns(at('x@x'), () => new Promise<void>(resolve => (end = resolve)))
    const all = names.map(named => turns(at(named), async () => void order.push(named)))
    end()
    await Promise.all([first, ...all])
    return order
  }

  it('come to who is new where much is done, however many places another asks at', async () => {
    await used('a@busy', 2000)
    for (const named of ['s@1', 's@2', 's@3', 's@4']) await used(named, 50)
    const order = await orderOf('s@1', 's@2', 's@3', 's@4', 's@5', 'new@busy', 'also@busy')
    assert.deepEqual(order, ['s@5', 'new@busy', 's@1', 'also@busy', 's@2', 's@3', 's@4'])
  })

  it('come to who is elsewhere than a crowd, however many those are', async () => {
    await used('a@crowded', 300)
    const order = await orderOf('b@crowded', 'c@crowded', 'd@crowded', 'e@crowded', 'a@quiet', 'a@still')
    assert.deepEqual(order, ['a@quiet', 'b@crowded', 'a@still', 'c@crowded', 'd@crowded', 'e@crowded'])
  })

  it('come at one place to the caller who has used least, of equals to who came first', async () => {
    await used('much@1', 300)
    await used('more@2', 400)
    assert.deepEqual(await orderOf('more@1', 'much@1', 'b@1', 'a@1'), ['b@1', 'a@1', 'much@1', 'more@1'])
    // What was used is forgotten, of callers and at places.
    elapsed += 600_000
    assert.deepEqual(await orderOf('more@1', 'much@2', 'b@1', 'a@3'), ['more@1', 'much@2', 'b@1', 'a@3'])
  })

  it('come to so many at a time, and to nobody who has given up', async () => {
    turns = leastFirstOrElsewhere(clock, 60, 2)
    const ends: (() => void)[] = []
    const order: string[] = []
    const all = ['a', 'b', 'c', 'd'].map(caller =>
      turns({ caller, place: '' }, () => new Promise<void>(end => ends.push(end) && order.push(caller))),
    )
    assert.deepEqual(order, ['a', 'b'])
    late[0]!()
    await assert.rejects(all[2]!, NoTurn)
    ends[0]!()
    await all[0]
    await eventually(async () => order.length === 3, 'the next comes')
    assert.deepEqual(order, ['a', 'b', 'd'])
    for (const end of ends) end()
    await Promise.all([all[1], all[3]])
    assert.equal(await turns(at('e@'), async () => 'done'), 'done')
  })

  it('pass on what failed', async () => {
    await assert.rejects(
      turns(at('a@1'), () => Promise.reject(new Error('failed'))),
      /failed/,
    )
    assert.deepEqual(await orderOf('b@1'), ['b@1'])
  })
})

describe('chains', () => {
  const [mine, yours] = ['5a11d0000000000000000000000000e1', '5a11d0000000000000000000000000e2']
  let server: Awaited<ReturnType<typeof makeDatabase>>
  let database: Database
  let ends: (() => void)[]
  /** Of whom those were that have begun; each goes on until it is ended. */
  let begun: string[]
  const begin = (of: string, { inChain }: Pick<Database, 'inChain'>, merchantId: string, chain: number) =>
    inChain(
      merchantId,
      chain.toString(16).padStart(32, '0'),
      async () => begun.push(of),
      () => new Promise<void>(end => ends.push(end)),
    )
  const haveBegun = (count: number) => eventually(async () => ends.length === count, `${count} have begun`)
  /** Whatever waits. */
  const isDone = async ({ inChain }: Pick<Database, 'inChain'>, merchantId: string) =>
    inChain(
      merchantId,
      'f'.repeat(32),
      async () => {},
      async () => true,
    )
  beforeEach(async () => {
    server = await makeDatabase()
    database = connect(server.connection, systemClock, error => assert.fail(error))
    ends = []
    begun = []
  })
  const all: Promise<unknown>[] = []
  const endAll = async () => {
    for (let at = 0; at < all.length; at++) {
      await eventually(async () => ends.length > at, 'the next has begun')
      ends[at]!()
    }
    await Promise.all(all.splice(0))
  }
  afterEach(async () => {
    await endAll()
    await database.close()
    await server.drop()
  })

  it('of one merchant leave connections to those of others, however many wait', async () => {
    for (let at = 0; at < 20; at++) all.push(begin('mine', database, mine, at))
    await haveBegun(chainsOf.merchant)
    assert.equal(await isDone(database, yours), true)
    assert.equal(begun.length, chainsOf.merchant)
  })

  it('of shoppers and of a merchant do not wait for each other, and others for neither', async () => {
    const shoppers = forShoppers(database, systemClock)
    const press = (network: string, at: number) => askedBy(network, () => begin(network, shoppers, mine, at))
    for (let at = 0; at < 20; at++) all.push(begin('mine', database, mine, at))
    await haveBegun(chainsOf.merchant)
    assert.equal(await askedBy('shopper', () => isDone(shoppers, mine)), true)
    for (let at = 0; at < 20; at++) all.push(press(`crowd ${at % 2}`, 100 + at))
    await haveBegun(chainsOf.merchant + chainsOf.shoppers)
    assert.equal(await isDone(database, yours), true)
    all.push(press('other', 200))
    await endAll()
    const pressed = begun.filter(of => of !== 'mine')
    assert.ok(pressed.indexOf('other') <= chainsOf.shoppers + 2, `${pressed}`)
  })

  it('of shoppers of one merchant keep none of another’s waiting, from however many networks they come', async () => {
    const shoppers = forShoppers(database, systemClock)
    for (let at = 0; at < 60; at++) all.push(askedBy(`crowd ${at}`, () => begin('mine', shoppers, mine, at)))
    await haveBegun(chainsOf.shoppers)
    all.push(askedBy('crowd 0', () => begin('yours', shoppers, yours, 1)))
    await endAll()
    assert.ok(begun.indexOf('yours') <= chainsOf.shoppers + 1, `${begun}`)
  })

  it('of a network that presses at all merchants keep no other’s waiting, where merchants have more to do than those', async () => {
    let elapsed = 0
    const shoppers = forShoppers(database, { ...systemClock, elapsed: () => elapsed })
    const shop = (at: number) => `5a11d0000000000000000000000001${at.toString(16).padStart(2, '0')}`
    const work = (network: string, merchantId: string) =>
      askedBy(network, () =>
        shoppers.inChain(
          merchantId,
          '1'.repeat(32),
          async () => {},
          async () => {
            elapsed += 40
          },
        ),
      )
    for (let at = 0; at < 3; at++) await work('stranger', shop(at))
    for (let at = 0; at < 6; at++) await work(`shopper ${at}`, mine)
    for (let at = 0; at < 60; at++) all.push(askedBy('stranger', () => begin('stranger', shoppers, shop(at), 2)))
    await haveBegun(2)
    for (let at = 0; at < 5; at++) all.push(askedBy(`new ${at}`, () => begin('new', shoppers, mine, at)))
    await endAll()
    assert.ok(begun.lastIndexOf('new') < 2 + 2 * 5 + 2, `${begun}`)
  })

  it('of shoppers that wait for one that is held keep nobody from a connection', async () => {
    const shoppers = forShoppers(database, systemClock)
    all.push(begin('mine', database, mine, 1))
    await haveBegun(1)
    for (let at = 0; at < 20; at++) all.push(askedBy(`crowd ${at}`, () => begin('crowd', shoppers, mine, 1)))
    assert.equal(await askedBy('shopper', () => isDone(shoppers, mine)), true)
    assert.deepEqual(begun, ['mine'])
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

it('a pool of many gives its connections in their order, by statement and by transaction, and to a crowd last', async () => {
  const begun: string[] = []
  const ends: (() => void)[] = []
  const released: unknown[] = []
  let isDown = false
  const fake = {
    waitingCount: 3,
    query: (name: string) => {
      begun.push(name)
      return new Promise<string>(resolve => ends.push(() => resolve(`rows of ${name}`)))
    },
    async connect() {
      if (isDown) throw new Error('no connection')
      return { release: (error: unknown) => void released.push(error) }
    },
  }
  const pool = fairPool(fake as unknown as pg.Pool, systemClock, 60, 2)
  const ask = (name: string) => askedBy('one', () => pool.query(name)) as unknown as Promise<string>
  const settled = () => new Promise(resolve => setImmediate(resolve))
  const first = ['a', 'b', 'c', 'd'].map(ask)
  const transaction = askedBy('other', () => pool.connect())
  const later = ['e', 'f', 'g', 'h'].map(ask)
  await settled()
  assert.deepEqual(begun, ['a', 'b'])
  const waiting = () => waitingFor(fake as unknown as pg.Pool)
  assert.equal(waiting(), 3 + 7, 'those of the pool, and those who wait for a turn')
  for (const end of [0, 1, 2]) {
    ends[end]!()
    await settled()
  }
  const client = await transaction
  assert.deepEqual(begun, ['a', 'b', 'c', 'd'], 'the transaction has the turn')
  ends[3]!()
  await settled()
  assert.deepEqual(begun.slice(4), ['e'])
  client.release(true)
  client.release()
  await settled()
  assert.deepEqual([released, begun.slice(5)], [[true, undefined], ['f']], 'a turn is given back once')
  isDown = true
  const refused = askedBy('other', () => pool.connect())
  for (const end of [4, 5]) {
    ends[end]!()
    await settled()
  }
  ends[6]!()
  await assert.rejects(refused, /no connection/)
  await settled()
  ends[7]!()
  assert.deepEqual(
    await Promise.all([...first, ...later]),
    ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].map(name => `rows of ${name}`),
  )
  assert.equal(waiting(), 3)
  const hasty = fairPool(fake as unknown as pg.Pool, systemClock, 0.01, 1)
  const last = hasty.query('i')
  await assert.rejects(hasty.query('j'), NoTurn)
  assert.equal(waiting(), 3, 'who has given up waits no more')
  ends[8]!()
  await last
})
