// Money under concurrency, silence, repetition and death: what must stay true whatever happens, seen through the interface and the books.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { examine } from '../src/payments/ledger/doctor.ts'
import { sweepUnanswered } from '../src/payments/store/sweep.ts'
import { eventually, type Reply, sandbox, type TestGateway, testGateway, visa } from './support/gateway.ts'

let gateway: TestGateway
before(async () => {
  gateway = await testGateway()
})
after(() => gateway.stop())

const codes = (replies: readonly Reply[]) => replies.map(({ body }) => body.result.code as string)
const count = (replies: readonly Reply[], code: string) => codes(replies).filter(one => one === code).length
const success = '000.100.110'
const pending = '000.200.000'
const at = (amount: string) => ({ amount, currency: 'EUR' })
const times = <Value>(count: number, make: (index: number) => Promise<Value>) =>
  Promise.all(Array.from({ length: count }, (_, index) => make(index)))

async function booksAgree(): Promise<void> {
  const { findings } = await examine(gateway.pool)
  assert.deepEqual(findings, [])
}

async function rows(sql: string, ...values: unknown[]): Promise<Record<string, unknown>[]> {
  return (await gateway.pool.query(sql, values)).rows
}

describe('racing requests', () => {
  it('50 simultaneous captures of one PA give one success', async () => {
    const { body: pa } = await gateway.pay({ paymentType: 'PA' })
    const replies = await times(50, () => gateway.refer(pa.id, { paymentType: 'CP', ...at('92.00') }))
    assert.equal(count(replies, success), 1)
    assert.equal(count(replies, '700.400.100'), 49)
    assert.equal((await rows('select 1 from captures where payment_id = $1', pa.id)).length, 1)
    await booksAgree()
  })

  it('refunds racing each other never exceed what was cleared, whichever id they name', async () => {
    const { body: pa } = await gateway.pay({ paymentType: 'PA' })
    const { body: cp } = await gateway.refer(pa.id, { paymentType: 'CP', ...at('50.00') })
    const replies = await times(30, index => gateway.refer(index % 2 === 0 ? pa.id : cp.id, { paymentType: 'RF', ...at('7.00') }))
    assert.equal(count(replies, success), 7) // 7 × 7.00 = 49.00 ≤ 50.00
    assert.equal(count(replies, '700.400.200'), 23)
    const { body: rest } = await gateway.refer(pa.id, { paymentType: 'RF', ...at('1.00') })
    assert.equal(rest.result.code, success)
    const { body: over } = await gateway.refer(pa.id, { paymentType: 'RF', ...at('0.01') })
    assert.equal(over.result.code, '700.400.200')
    await booksAgree()
  })

  it('refunds racing each other through two processes: one of them wins', async t => {
    const other = await gateway.another()
    t.after(() => other.stop())
    for (let round = 0; round < 10; round++) {
      const { body: db } = await gateway.pay()
      const replies = await Promise.all([gateway, other].map(one => one.refer(db.id, { paymentType: 'RF', ...at('92.00') })))
      assert.equal(count(replies, success), 1, codes(replies).join(' '))
    }
    await booksAgree()
  })

  it('a refund and a reversal racing for one DB: one of them wins', async () => {
    for (let round = 0; round < 5; round++) {
      const { body: db } = await gateway.pay()
      const replies = await Promise.all([
        gateway.refer(db.id, { paymentType: 'RF', ...at('92.00') }),
        gateway.refer(db.id, { paymentType: 'RV' }),
      ])
      assert.equal(count(replies, success), 1, codes(replies).join(' '))
    }
    await booksAgree()
  })

  it('a capture and a reversal racing for one PA: one of them wins', async () => {
    for (let round = 0; round < 5; round++) {
      const { body: pa } = await gateway.pay({ paymentType: 'PA' })
      const replies = await Promise.all([
        gateway.refer(pa.id, { paymentType: 'CP', ...at('92.00') }),
        gateway.refer(pa.id, { paymentType: 'RV' }),
      ])
      assert.equal(count(replies, success), 1, codes(replies).join(' '))
    }
    await booksAgree()
  })

  const pairs = [
    ['DB', 'RF'],
    ['DB', 'RV'],
    ['PA', 'CP'],
    ['PA', 'RV'],
  ] as const
  for (const [initial, paymentType] of pairs)
    it(`a refused ${paymentType} is in the way of no right one of a ${initial}, whether its refusal is written yet or not`, async () => {
      const wrong = { paymentType, ...at('999.00') }
      const right = { paymentType, ...at('92.00') }
      const { body: first } = await gateway.pay({ paymentType: initial })
      const { body: refused } = await gateway.refer(first.id, wrong)
      // As it is for a moment, and after a crash until recovery has seen it.
      await gateway.pool.query('delete from answers where payment_id = $1', [refused.id])
      await booksAgree()
      assert.equal((await gateway.refer(first.id, right)).body.result.code, success)
      await booksAgree()
      const replies = await times(10, async () => {
        const { body } = await gateway.pay({ paymentType: initial })
        const beside = gateway.refer(body.id, wrong)
        const reply = await gateway.refer(body.id, right)
        await beside
        return reply
      })
      assert.deepEqual(codes(replies), Array(10).fill(success))
    })

  it('20 requests with one Idempotency-Key make one payment and get the same bytes', async () => {
    const fields = {
      entityId: '5a11d0000000000000000000000000c1',
      paymentType: 'DB',
      ...at('92.00'),
      merchantTransactionId: 'same-key-1',
    }
    const card = {
      paymentBrand: 'VISA',
      'card.number': '4200000000000000',
      'card.expiryMonth': '05',
      'card.expiryYear': '2034',
      'card.cvv': '123',
    }
    const slow = { 'customParameters[simulateDelay]': '200' }
    const replies = await times(20, () =>
      gateway.post('/v1/payments', { ...fields, ...card, ...slow }, { 'Idempotency-Key': 'race' }),
    )
    assert.equal(new Set(replies.map(({ text }) => text)).size, 1)
    assert.equal((await rows(`select 1 from payments where merchant_transaction_id = 'same-key-1'`)).length, 1)
  })

  it('20 captures with one Idempotency-Key capture once and get the same bytes', async () => {
    const { body: pa } = await gateway.pay({ paymentType: 'PA' })
    const replies = await times(20, () =>
      gateway.refer(pa.id, { paymentType: 'CP', ...at('92.00') }, { 'Idempotency-Key': `capture ${pa.id}`.replace(' ', '-') }),
    )
    assert.equal(new Set(replies.map(({ text }) => text)).size, 1)
    assert.equal(replies[0]!.body.result.code, success)
    await booksAgree()
  })
})

describe('an Idempotency-Key', () => {
  it('of a refund that may be made again reserves nothing a second time', async () => {
    const { body: db } = await gateway.pay()
    const refund = () => gateway.refer(db.id, { paymentType: 'RF', ...at('7.00') }, { 'Idempotency-Key': `refund-of-${db.id}` })
    const replies = [await refund(), ...(await times(5, refund))]
    assert.equal(new Set(replies.map(({ text }) => text)).size, 1)
    assert.equal((await rows(`select 1 from journal where state = 'pending' and payment_id >= $1`, db.id)).length, 1)
    const { body: rest } = await gateway.refer(db.id, { paymentType: 'RF', ...at('85.00') })
    assert.equal(rest.result.code, success)
    await booksAgree()
  })

  it('of a capture that was declined captures nothing a second time', async () => {
    const { body: pa } = await gateway.pay({ paymentType: 'PA' })
    const capture = { paymentType: 'CP', ...at('92.00') }
    const declined = () =>
      gateway.refer(
        pa.id,
        { ...capture, 'customParameters[forceResultCode]': '800.100.151' },
        { 'Idempotency-Key': `capture-of-${pa.id}` },
      )
    const replies = [await declined(), await declined()]
    assert.deepEqual(codes(replies), ['800.100.151', '800.100.151'])
    const { body: again } = await gateway.refer(pa.id, capture)
    assert.equal(again.result.code, success)
    await booksAgree()
  })

  it('gives the same bytes after a restart, and is refused with another body', async () => {
    const key = { 'Idempotency-Key': 'before-the-restart' }
    const fields = { entityId: sandbox.entityId, paymentType: 'DB', ...at('92.00'), ...visa }
    const first = await gateway.post('/v1/payments', fields, key)
    await gateway.restart()
    const again = await gateway.post('/v1/payments', { ...fields, 'card.cvv': '321' }, key) // the CVV is no part of the fingerprint
    assert.equal(again.text, first.text)
    const other = await gateway.post('/v1/payments', { ...fields, amount: '93.00' }, key)
    assert.deepEqual(
      [other.status, other.body.result.code, other.body.result.parameterErrors[0].name],
      [400, '200.300.404', 'Idempotency-Key'],
    )
  })

  it('of a request whose process died gives its current record within the time that the request itself had', async () => {
    const key = { 'Idempotency-Key': 'process-died' }
    const fields = { entityId: sandbox.entityId, paymentType: 'DB', ...at('92.00'), ...visa }
    const { body } = await gateway.post('/v1/payments', fields, key)
    // As if the process had died a minute ago, before the answer, and nobody had looked since.
    for (const table of ['answers', 'journal', 'events']) await rows(`delete from ${table} where payment_id = $1`, body.id)
    await rows(`update payments set recorded_at = recorded_at - interval '1 minute' where id = $1`, body.id)
    await rows(
      'insert into unanswered select merchant_id, id, recorded_at + interval $$1 hour$$ from payments where id = $1',
      body.id,
    )
    const began = performance.now()
    const { body: again } = await gateway.post('/v1/payments', fields, key)
    assert.deepEqual([again.id, again.result.code], [body.id, pending])
    assert.ok(performance.now() - began < 10_000)
    await rows('update unanswered set recorded_at = recorded_at - interval $$3 hours$$')
    await sweepUnanswered(gateway.pool, Date.now(), Date.now())
    await gateway.advance('2m')
    const { body: settled } = await gateway.post('/v1/payments', fields, key)
    assert.deepEqual([settled.id, settled.result.code], [body.id, '900.100.301'])
    await booksAgree()
  })

  it('of a request that died before its answer gives the current record', async () => {
    const { body } = await gateway.post(
      '/v1/payments',
      { entityId: sandbox.entityId, paymentType: 'DB', ...at('92.00'), ...visa, 'customParameters[simulateAnswer]': 'none' },
      { 'Idempotency-Key': 'died' },
    )
    assert.equal(body.result.code, pending)
    await gateway.advance('1m')
    const { body: again } = await gateway.post(
      '/v1/payments',
      { entityId: sandbox.entityId, paymentType: 'DB', ...at('92.00'), ...visa, 'customParameters[simulateAnswer]': 'none' },
      { 'Idempotency-Key': 'died' },
    )
    assert.deepEqual([again.id, again.result.code], [body.id, '900.100.301'])
  })
})

describe('an answer that does not come, comes late, or comes twice', () => {
  const silent = { 'customParameters[simulateAnswer]': 'none' }

  it('a DB without an answer reads as pending, is then reversed, and is announced both times', async () => {
    const { body: db, status } = await gateway.pay(silent)
    assert.deepEqual([status, db.result.code, db.redirect], [200, pending, undefined])
    const { body: read } = await gateway.get(`/v1/payments/${db.id}`, { entityId: '5a11d0000000000000000000000000c1' })
    assert.equal(read.result.code, pending)
    const { body: refund } = await gateway.refer(db.id, { paymentType: 'RF', ...at('92.00') })
    assert.equal(refund.result.code, '700.400.570')
    await gateway.advance('1m')
    const { body: settled } = await gateway.get(`/v1/payments/${db.id}`, { entityId: '5a11d0000000000000000000000000c1' })
    assert.equal(settled.result.code, '900.100.301')
    assert.deepEqual(await rows('select sequence, action from events where payment_id = $1 order by sequence', db.id), [
      { sequence: 1, action: null },
      { sequence: 2, action: 'UPDATED' },
    ])
    await eventually(
      async () => (await rows('select 1 from due_work where subject_id = $1', db.id)).length === 0,
      'the reversal was acknowledged',
    )
    await booksAgree()
  })

  it('a capture without an answer is repeated until it is acknowledged, and a second capture meanwhile is refused', async () => {
    const { body: pa } = await gateway.pay({ paymentType: 'PA' })
    const { body: cp } = await gateway.refer(pa.id, { paymentType: 'CP', ...at('92.00'), ...silent })
    assert.equal(cp.result.code, pending)
    const { body: second } = await gateway.refer(pa.id, { paymentType: 'CP', ...at('92.00') })
    assert.equal(second.result.code, '700.400.100')
    await gateway.advance('1m')
    const { body: settled } = await gateway.get(`/v1/payments/${cp.id}`, { entityId: '5a11d0000000000000000000000000c1' })
    assert.equal(settled.result.code, success)
    await booksAgree()
  })

  it('a pending refund counts in full until it is settled', async () => {
    const { body: db } = await gateway.pay()
    const { body: rf } = await gateway.refer(db.id, { paymentType: 'RF', ...at('92.00'), ...silent })
    assert.equal(rf.result.code, pending)
    const { body: second } = await gateway.refer(db.id, { paymentType: 'RF', ...at('0.01') })
    assert.equal(second.result.code, '700.400.200')
    await booksAgree()
    await gateway.advance('1m')
    await booksAgree()
  })

  it('while a partial reversal is pending, neither a capture nor another reversal passes: what is left is not known yet', async () => {
    const { body: pa } = await gateway.pay({ paymentType: 'PA' })
    const { body: reversal } = await gateway.refer(pa.id, { paymentType: 'RV', ...at('10.00'), ...silent })
    assert.equal(reversal.result.code, pending)
    const blocked = [{ paymentType: 'CP', ...at('1.00') }, { paymentType: 'RV', ...at('1.00') }, { paymentType: 'RV' }]
    for (const fields of blocked) assert.equal((await gateway.refer(pa.id, fields)).body.result.code, '700.400.570')
    await gateway.advance('1m')
    const { body: over } = await gateway.refer(pa.id, { paymentType: 'CP', ...at('82.01') })
    assert.notEqual(over.result.code, success)
    const { body: capture } = await gateway.refer(pa.id, { paymentType: 'CP', ...at('82.00') })
    assert.equal(capture.result.code, success)
    await booksAgree()
  })

  it('a capture that is pending is not refunded before it is settled', async () => {
    const { body: pa } = await gateway.pay({ paymentType: 'PA' })
    const { body: cp } = await gateway.refer(pa.id, { paymentType: 'CP', ...at('92.00'), ...silent })
    const refund = (id: string) => gateway.refer(id, { paymentType: 'RF', ...at('1.00') })
    for (const { id } of [pa, cp]) assert.equal((await refund(id)).body.result.code, '700.400.570')
    await gateway.advance('1m')
    assert.equal((await refund(pa.id)).body.result.code, success)
    await booksAgree()
  })

  it('a late approval that comes before recovery decides is the answer', async () => {
    const { body: db } = await gateway.pay({ 'customParameters[simulateAnswer]': 'late' })
    assert.equal(db.result.code, pending)
    const read = () => gateway.get(`/v1/payments/${db.id}`, { entityId: '5a11d0000000000000000000000000c1' })
    await eventually(async () => (await read()).body.result.code === success, 'the late approval was taken')
    await gateway.advance('1m')
    assert.equal((await read()).body.result.code, success)
    await booksAgree()
  })

  it('a late approval that comes after recovery decided changes nothing and is reversed', async () => {
    const { body: db } = await gateway.pay({ 'customParameters[simulateAnswer]': 'late' })
    await gateway.advance('20s')
    const { body: decided } = await gateway.get(`/v1/payments/${db.id}`, { entityId: '5a11d0000000000000000000000000c1' })
    assert.equal(decided.result.code, '900.100.301')
    await eventually(
      async () => gateway.logged.some(line => line.includes('came too late and is reversed') && line.includes(db.id)),
      'the late approval was reversed',
    )
    const { body: after } = await gateway.get(`/v1/payments/${db.id}`, { entityId: '5a11d0000000000000000000000000c1' })
    assert.equal(after.result.code, '900.100.301')
    await booksAgree()
  })

  it('an answer that comes twice counts once', async () => {
    const { body: db } = await gateway.pay({ 'customParameters[simulateAnswer]': 'twice' })
    assert.equal(db.result.code, success)
    await eventually(
      async () => gateway.logged.some(line => line.includes('came late or twice') && line.includes(db.id)),
      'the second answer came',
    )
    assert.equal((await rows('select 1 from journal where payment_id = $1', db.id)).length, 1)
    assert.equal((await rows('select 1 from events where payment_id = $1', db.id)).length, 1)
    await booksAgree()
  })

  it('what could not be sent is a final refusal, and nothing is booked', async () => {
    const { body, status } = await gateway.pay({ 'customParameters[simulateAnswer]': 'unreachable' })
    assert.deepEqual([status, body.result.code], [400, '900.100.600'])
    assert.equal((await rows('select 1 from journal where payment_id = $1', body.id)).length, 0)
  })

  it('an approval of another amount is no success and is reversed', async () => {
    const { body, status } = await gateway.pay({ 'customParameters[simulateAnswer]': 'other' })
    assert.deepEqual([status, body.result.code], [400, '100.550.701'])
    await eventually(
      async () => (await rows('select 1 from due_work where subject_id = $1', body.id)).length === 0,
      'the reversal was acknowledged',
    )
    await booksAgree()
  })

  it('a declined capture gives the PA back to be captured', async () => {
    const { body: pa } = await gateway.pay({ paymentType: 'PA' })
    const { body: declined } = await gateway.refer(pa.id, {
      paymentType: 'CP',
      ...at('92.00'),
      'customParameters[forceResultCode]': '800.100.151',
    })
    assert.equal(declined.result.code, '800.100.151')
    const { body: again } = await gateway.refer(pa.id, { paymentType: 'CP', ...at('92.00') })
    assert.equal(again.result.code, success)
    await booksAgree()
  })

  it('a declined refund and a declined reversal void what they reserved', async () => {
    const { body: db } = await gateway.pay()
    const declined = { 'customParameters[forceResultCode]': '800.100.151' }
    await gateway.refer(db.id, { paymentType: 'RF', ...at('92.00'), ...declined })
    await gateway.refer(db.id, { paymentType: 'RV', ...declined })
    const { body: refunded } = await gateway.refer(db.id, { paymentType: 'RF', ...at('92.00') })
    assert.equal(refunded.result.code, success)
    await booksAgree()
  })
})

describe('PA.CP, whose two halves may be torn apart', () => {
  const linked = async (id: string) =>
    await rows(
      'select p.payment_type as type, a.approved from payments p left join answers a using (merchant_id) where a.payment_id = p.id and p.root_id = $1 order by p.id',
      id,
    )

  it('is captured later when its approval came late', async () => {
    const { body } = await gateway.pay({ paymentType: 'PA.CP', 'customParameters[simulateAnswer]': 'late' })
    assert.equal(body.result.code, pending)
    await eventually(
      async () => (await rows('select 1 from answers where payment_id = $1 and approved', body.id)).length === 1,
      'the late approval was taken',
    )
    assert.deepEqual(await linked(body.id), [])
    await gateway.advance('2m')
    assert.deepEqual(await linked(body.id), [{ type: 'CP', approved: true }])
    await booksAgree()
  })

  it('is captured later also when its channel was disabled meanwhile', async () => {
    const { body } = await gateway.pay({ paymentType: 'PA.CP', 'customParameters[simulateAnswer]': 'late' })
    await eventually(
      async () => (await rows('select 1 from answers where payment_id = $1 and approved', body.id)).length === 1,
      'the late approval was taken',
    )
    await rows(`update entities set settings = '{"disabled": true}' where id = $1`, sandbox.entityId)
    await gateway.advance('2m') // reads the directory again
    assert.deepEqual(await linked(body.id), [{ type: 'CP', approved: true }])
    const { body: refused } = await gateway.refer(body.id, { paymentType: 'RF', ...at('92.00') })
    assert.equal(refused.result.code, '500.100.201')
    await rows(`update entities set settings = '{}' where id = $1`, sandbox.entityId)
    await gateway.advance('1s')
    await booksAgree()
  })

  it('is captured once when its request did it', async () => {
    const { body } = await gateway.pay({ paymentType: 'PA.CP' })
    await gateway.advance('2m')
    assert.deepEqual(await linked(body.id), [{ type: 'CP', approved: true }])
  })

  it('is reversed later when the request died after a declined capture', async () => {
    const { body } = await gateway.pay({ paymentType: 'PA.CP' })
    // As if the process had died after the answer of a declined capture.
    const [cp] = await rows(`select id from payments where root_id = $1`, body.id)
    await gateway.pool.query('update answers set approved = false where payment_id = $1', [cp!.id])
    await gateway.pool.query('delete from journal where payment_id = $1', [cp!.id])
    await gateway.pool.query('delete from captures where capture_id = $1', [cp!.id])
    await gateway.advance('2m')
    assert.deepEqual(await linked(body.id), [
      { type: 'CP', approved: false },
      { type: 'RV', approved: true },
    ])
    await booksAgree()
  })
})

describe('the search for unanswered payments', () => {
  const found = (id: string) => rows(`select 1 from due_work where kind = 'recover' and subject_id = $1`, id)
  const sweep = () => sweepUnanswered(gateway.pool, Date.now() + 1000, Date.now() + 3_600_000)

  it('hands an orphan to recovery, and neither an answered payment nor one whose shopper is away', async () => {
    const { body: answered } = await gateway.pay()
    const { body: away } = await gateway.pay({
      'card.number': '4200000000000018',
      'customParameters[3DS2_enrolled]': 'true',
      shopperResultUrl: 'https://shop.example/back',
    })
    assert.ok(away.redirect.url)
    const { body: orphan } = await gateway.pay({ 'customParameters[simulateAnswer]': 'none' })
    // As if its process had died before it could hand the payment to recovery.
    await gateway.pool.query('delete from due_work where subject_id = $1', [orphan.id])
    await gateway.pool.query('insert into unanswered select merchant_id, id, recorded_at from payments where id = $1', [
      orphan.id,
    ])
    await sweep()
    assert.deepEqual(
      [(await found(orphan.id)).length, (await found(answered.id)).length, (await found(away.id)).length],
      [1, 0, 0],
    )
    await gateway.advance('2h')
  })
})

describe('the doctor', () => {
  it('says where the journal and the operations differ', async () => {
    const { body: db } = await gateway.pay()
    const { body: pa } = await gateway.pay({ paymentType: 'PA' })
    await gateway.pool.query('update journal set amount = amount + 1 where payment_id = $1', [db.id])
    await gateway.pool.query(
      `insert into captures (merchant_id, payment_id, capture_id) values ('5a11d0000000000000000000000000e1', $1, $1)`,
      [pa.id],
    )
    await gateway.pool.query('delete from events where payment_id = $1', [pa.id])
    const { findings } = await examine(gateway.pool)
    assert.equal(findings.length, 3)
    assert.match(findings.join('\n'), new RegExp(`Payment ${db.id}.*: the operations make 92.00 cleared, the journal 92.01`))
    assert.match(findings.join('\n'), new RegExp(`Payment ${pa.id}.*: its capture is none, the guard row says ${pa.id}`))
    assert.match(findings.join('\n'), /1 approved payments have no event/)
    await gateway.pool.query('update journal set amount = amount - 1 where payment_id = $1', [db.id])
    await gateway.pool.query('delete from captures where payment_id = $1', [pa.id])
    await gateway.pool.query(
      `insert into events (merchant_id, payment_id, sequence, type, channel_id, root_id, occurred_at, recorded_at)
       select merchant_id, id, 2, 'PAYMENT', channel_id, id, received_at, recorded_at from payments where id = $1`,
      [pa.id],
    )
    await booksAgree()
  })
})
