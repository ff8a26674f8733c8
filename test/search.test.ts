// The search over payments: one box that understands what is pasted, pages that hold while payments come, and a projection that can be written anew
// while it is read.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { dayBegin, momentOf } from '../src/contract/formats.ts'
import { systemClock } from '../src/platform/clock.ts'
import { connect, type Database } from '../src/platform/database/connect.ts'
import type { FoundPayment } from '../src/reporting/search/found.ts'
import { rebuildSearch, searchPayments } from '../src/reporting/search/search.ts'
import { namedExactly, type SearchTerms, understand } from '../src/reporting/search/terms.ts'
import { makeKeys } from '../src/vault/keys.ts'
import { databaseUrl } from './support/database.ts'
import { eventually, sandbox, type TestGateway, testGateway, testKeys } from './support/gateway.ts'
import { manyCommands } from './support/process.ts'
import { boleto } from './support/slips.ts'

let gateway: TestGateway
let database: Database
before(async () => {
  gateway = await testGateway()
  database = connect(gateway.connection, systemClock, () => {})
})
after(async () => {
  await database.close()
  await gateway.stop()
})

const parts = () => ({ database, keys: testKeys, clock: systemClock })
const find = (text: string, merchantId = sandbox.merchantId): Promise<FoundPayment[]> =>
  searchPayments(parts(), [merchantId], understand(text), 100)
const idsOf = (found: readonly FoundPayment[]) => found.map(({ paymentId }) => paymentId)
const allTaken = () =>
  eventually(
    async () => (await gateway.pool.query('select from events where searched is null')).rowCount === 0,
    'events are taken',
  )

describe('what somebody means', () => {
  const day = 86_400_000
  const cases: [text: string, first: SearchTerms, readings: number][] = [
    ['92.00', { amount: 9200 }, 1],
    ['92,00', { amount: 9200 }, 1],
    ['2026-02-28', { from: Date.UTC(2026, 1, 28), to: Date.UTC(2026, 2, 1) }, 1],
    ['2026-02-01..2026-02-28', { from: Date.UTC(2026, 1, 1), to: Date.UTC(2026, 1, 28) + day }, 1],
    ['Jane@Example.org', { email: 'Jane@Example.org' }, 1],
    ['000.100.110', { result: '000.100.110' }, 1],
    ['4200 0000 0000 0000', { bin: '420000', lastFour: '0000' }, 1],
    ['4200000000000000', { bin: '420000', lastFour: '0000' }, 1],
    ['420000******0000', { bin: '420000', lastFour: '0000' }, 1],
    ['****0000', { lastFour: '0000' }, 1],
    ['rf', { type: 'RF' }, 1],
    ['00012345678', { slipNumber: '00012345678' }, 4],
    ['109/12345678-5', { slipNumber: '12345678' }, 4],
    ['632612345679', { slipNumber: '632612345679' }, 5],
    ['6326A1B2C3D4', { reference: '6326A1B2C3D4' }, 4],
    ['visa 92.00', { brand: 'VISA', amount: 9200 }, 7],
    ['5A11d0000000000000000000000000c1', { id: '5a11d0000000000000000000000000c1' }, 5],
    ['  ', {}, 0],
  ]
  for (const [text, first, count] of cases)
    it(text, () => {
      const meant = understand(text)
      assert.deepEqual(meant[0] ?? {}, first)
      assert.equal(meant.length, count)
    })

  it('is a day only where there is such a day, and a moment in one spelling', () => {
    assert.deepEqual(understand('2024-02-29'), [{ from: Date.UTC(2024, 1, 29), to: Date.UTC(2024, 2, 1) }])
    for (const text of [
      '2023-02-29',
      '2026-02-30',
      '2026-04-31..2026-05-02',
      '2026-04-01..2026-04-31',
      '0999-01-01',
      '3000-01-01',
    ])
      assert.ok(
        understand(text).every(meant => meant.from === undefined && meant.to === undefined),
        text,
      )
    for (const text of [
      '5',
      '12.11.2026',
      '2026-2-3',
      '2026-02-30',
      '2026-02-03Z',
      ' 2026-02-03',
      '2026-02-03T12:00',
      '2026-02-30T12:00Z',
    ])
      assert.deepEqual([dayBegin(text), momentOf(text)], [Number.NaN, Number.NaN], text)
    for (const text of [
      '2026-02-03T24:00Z',
      '2026-02-03T12:60Z',
      '2026-02-03T12:00:00.1234Z',
      '2026-02-03T12:00+24:00',
      '2026-02-03T12Z',
    ])
      assert.equal(momentOf(text), Number.NaN, text)
    const noon = Date.UTC(2026, 1, 3, 12)
    for (const text of ['2026-02-03T12:00Z', '2026-02-03T12:00:00.000Z', '2026-02-03T09:00:00-03:00'])
      assert.equal(momentOf(text), noon, text)
    assert.deepEqual([dayBegin('2026-02-03'), momentOf('2026-02-03')], [noon - 43_200_000, noon - 43_200_000])
  })

  it('of many words is bounded: a sentence is one name, or nothing', () => {
    assert.ok(understand('1 2 3 4 5 6 7 8').length < 40)
    for (const text of ['a '.repeat(7000), '1.00 '.repeat(2900), '4'.repeat(16_000)]) {
      const meant = understand(text)
      assert.ok(meant.length < 40 && JSON.stringify(meant).length < 10_000)
    }
  })
  it('is also a name as it was typed where that passes for a card number or a CVV, and only there', () => {
    const [order, long] = ['4539578763621486', '4539-5787-6362-1486']
    const names = (text: string) => [{ merchantTransactionId: text }, { invoice: text }]
    assert.deepEqual(namedExactly(` ${order} `), [...names(order), { reference: order }, { slipNumber: order }])
    assert.deepEqual(namedExactly(long), names(long))
    assert.deepEqual(namedExactly('order cvv 942'), names('order cvv 942'))
    for (const text of ['4539578763621487', 'CVC-2345-22', 'jane@example.org', '', '92.00'])
      assert.deepEqual(namedExactly(text), [])
  })
  it('never holds a card number', () => {
    for (const text of [
      '4200000000000000',
      'order 4200-0000-0000-0000 of Jane',
      'x4242424242424242',
      '4200.0000.0000.0000',
      '４２００ 0000/0000/0000',
    ])
      assert.ok(
        !/\d{12}/.test(
          JSON.stringify(understand(text))
            .normalize('NFKC')
            .replace(/[ ./-]/g, ''),
        ),
        text,
      )
    // Cut before it was looked for, fifteen digits would be what is searched for, in logs of the database too.
    assert.doesNotMatch(JSON.stringify(understand(`${'x'.repeat(239)} 4200000000000000`)), /4200000/)
    assert.deepEqual(understand('4200/0000/0000/0000'), [{ bin: '420000', lastFour: '0000' }])
    assert.equal(understand('1234567890123').at(-1)!.descriptor, '1234567890123')
  })
})

describe('a payment', () => {
  let id: string
  let refundId: string
  const number = 'order-20261122-0001'
  before(async () => {
    await gateway.pay({ amount: '11.00' })
    const { body } = await gateway.pay({
      amount: '48.77',
      merchantTransactionId: number,
      merchantInvoiceId: 'Invoice 77',
      descriptor: 'Blue shoes',
      'customer.givenName': 'Jane',
      'customer.surname': 'Jones',
      'customer.email': 'jane@example.org',
      'card.number': '5454545454545454',
      paymentBrand: 'MASTER',
    })
    id = body.id
    assert.ok(id, JSON.stringify(body))
    refundId = (await gateway.refer(id, { paymentType: 'RF', amount: '8.77', currency: 'EUR' })).body.id
    await allTaken()
  })

  for (const text of [
    number,
    'Invoice 77',
    'JANE@example.org master',
    '48.77',
    '48.77 EUR',
    'master 4454 545454 success'.replace('4454', '5454'),
    '5454545454545454',
    '545454…5454 48.77',
  ])
    it(`is found by ${text}`, async () => assert.ok(idsOf(await find(text)).includes(id)))

  it('is found by its id, and so is its chain', async () => {
    assert.deepEqual(idsOf(await find(id)), [refundId, id])
    assert.deepEqual(idsOf(await find(`${id} RF`)), [refundId])
  })

  it('is found by its whole descriptor', async () => {
    const [found] = await find(id.toUpperCase())
    assert.ok(idsOf(await find(found!.descriptor!)).includes(id))
  })

  it('is not found by what fits only in part', async () => {
    for (const text of ['48.77 VISA', `${number} 11.00`, 'john@example.org', '48.78', 'order', "' or 1=1 --"])
      assert.deepEqual(
        idsOf(await find(text)).filter(one => one === id),
        [],
        text,
      )
  })

  it('is not found for another merchant', async () => {
    for (const text of [id, number, '48.77', 'jane@example.org']) assert.deepEqual(await find(text, 'e'.repeat(32)), [], text)
  })

  it('is found under an older lookup key too', async () => {
    const renewed = makeKeys([Buffer.alloc(32, 1)], Buffer.alloc(32, 3), Buffer.alloc(32, 2))
    const found = await searchPayments({ database, keys: renewed }, [sandbox.merchantId], [{ email: 'jane@example.org' }], 10)
    assert.ok(idsOf(found).includes(id))
  })

  it('is found by the command as its order number was typed, though it passes for the number of a card', async () => {
    const commands = manyCommands({
      DATABASE_URL: databaseUrl(gateway.connection),
      SEAL_KEY: '01'.repeat(32),
      LOOKUP_KEY: '02'.repeat(32),
    })
    try {
      const { body } = await gateway.pay({ merchantTransactionId: '4539-5787-6362-1486' })
      await allTaken()
      const { stdout } = await commands.run('search', 'find', '4539-5787-6362-1486', '--json')
      assert.deepEqual(idsOf(JSON.parse(stdout).payments), [body.id])
    } finally {
      commands.stop()
    }
  })

  it('is searched without its e-mail address in clear', async () => {
    const { rows } = await gateway.pool.query<{ line: string }>('select t::text as line from searched_payments t')
    assert.ok(rows.length > 0 && !rows.some(({ line }) => /jane@/i.test(line)))
  })

  it('is found by the number of its slip, as banks and as we write it, and by what the other side knows it by', async () => {
    const { body: issued, text } = await gateway.post('/v1/payments', { ...boleto, merchantTransactionId: 'order-slip-77' })
    assert.ok(issued.resultDetails, text)
    const { body: card } = await gateway.pay({ amount: '7.77', testMode: 'EXTERNAL' })
    await allTaken()
    const { acquirerTxId1, ConnectorTxID1 } = issued.resultDetails
    assert.match(ConnectorTxID1, /^\d+\/\d{8}-\d$/)
    for (const text of [acquirerTxId1, ConnectorTxID1, `BOLETO ${acquirerTxId1}`])
      assert.deepEqual(idsOf(await find(text)), [issued.id], text)
    const { rows } = await gateway.pool.query('select reply from answers where payment_id = $1', [card.id])
    const { rrn, hostReference } = JSON.parse(rows[0].reply)
    assert.match(rrn, /^\d{12}$/)
    // By the box too, unless it passes for the number of a card today (officePayments.test.ts).
    const isFound = async (terms: SearchTerms[]) =>
      idsOf(await searchPayments(parts(), [sandbox.merchantId], terms, 10)).includes(card.id)
    assert.ok(await isFound([{ reference: hostReference ?? rrn }]))
    assert.ok(understand(rrn).some(({ lastFour }) => lastFour === rrn.slice(-4)) || (await isFound(understand(`visa ${rrn}`))))
    assert.deepEqual(await find(rrn, 'e'.repeat(32)), [])
  })

  it('that is pending is found as such, and as what became of it', async () => {
    const { body } = await gateway.pay({ amount: '3.33', 'customParameters[simulateAnswer]': 'late' })
    await eventually(async () => (await find('3.33 success'))[0]?.paymentId === body.id, 'the final result is found')
    assert.deepEqual(await find('3.33 pending'), [])
  })
})

describe('pages', () => {
  it('hold while payments come: nothing is shown twice, nothing left out', async () => {
    for (let at = 0; at < 7; at++) await gateway.pay({ amount: '5.55' })
    await allTaken()
    const read = async (behind?: FoundPayment) => searchPayments(parts(), [sandbox.merchantId], [{ amount: 555 }], 3, behind)
    const first = await read()
    await gateway.pay({ amount: '5.55' })
    await allTaken()
    const second = await read(first.at(-1))
    const third = await read(second.at(-1))
    const all = [...first, ...second, ...third]
    assert.deepEqual([all.length, new Set(idsOf(all)).size], [7, 7])
    const times = all.map(({ receivedAt }) => receivedAt)
    assert.deepEqual(
      times,
      [...times].sort((a, b) => b - a),
    )
  })
})

describe('the projection', () => {
  const rowsOf = async () =>
    (
      await gateway.pool.query(
        `select to_jsonb(p) - 'written_at' as row from searched_payments p order by merchant_id, payment_id`,
      )
    ).rows as object[]

  it('is written anew beside a gateway that runs, and what is there is found meanwhile', async () => {
    await allTaken()
    const before = await rowsOf()
    await gateway.pool.query(`update searched_payments set amount = 1, result = 'lost' where amount = 4877`)
    await gateway.pool.query('delete from searched_payments where amount = 555')
    let told = 0
    await rebuildSearch(parts(), () => told++)
    await allTaken()
    assert.deepEqual(await rowsOf(), before)
    assert.ok(told > 0)
  })

  it('misses nothing that happens meanwhile', async () => {
    const paying = Promise.all(Array.from({ length: 20 }, () => gateway.pay({ amount: '6.66' })))
    await rebuildSearch(parts(), () => {})
    await paying
    await allTaken()
    assert.equal((await find('6.66')).length, 20)
  })
})
