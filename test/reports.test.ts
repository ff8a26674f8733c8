// Settlement reports: every figure is what the merchant was answered, and what the journal has.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { recordChargeback } from '../src/clearing/chargebacks/chargebacks.ts'
import { signedAmountText } from '../src/contract/amounts.ts'
import { openDirectory } from '../src/merchants/directory.ts'
import { clockWith, systemRandom } from '../src/platform/clock.ts'
import { connect } from '../src/platform/database/connect.ts'
import { csvRow } from '../src/reporting/csv.ts'
import { type Body, type Fields, sandbox, type TestGateway, testGateway, testKeys, visa } from './support/gateway.ts'

const path = '/reports/v1/reconciliations/aggregations'
const firstDay = '2030-03-30'
const lastDay = '2030-04-02'
let now = Date.UTC(2030, 2, 30, 22)
const clock = clockWith(() => now)
const other = {
  merchantId: 'c0ffee000000000000000000000000e1',
  channelId: 'c0ffee000000000000000000000000c1',
  token: 'token-of-another-merchant',
}
const liveChannelId = '5a11d0000000000000000000000000c9'
let gateway: TestGateway
before(async () => {
  gateway = await testGateway({
    clock,
    seed: {
      psp: { id: '5a11d0000000000000000000000000a0', name: 'Sandbox' },
      divisions: [
        {
          id: sandbox.divisionId,
          name: 'Sandbox',
          merchants: [
            {
              id: sandbox.merchantId,
              name: 'Sandbox',
              channels: [{ id: liveChannelId, name: 'Live', settings: { mode: 'live' } }],
            },
          ],
        },
        {
          id: 'c0ffee000000000000000000000000d1',
          name: 'Another',
          merchants: [{ id: other.merchantId, name: 'Another', channels: [{ id: other.channelId, name: 'Another' }] }],
        },
      ],
      tokens: [{ label: 'another', token: other.token, entities: [other.merchantId] }],
    },
  })
})
after(() => gateway?.stop())

const report = async (fields: Fields = {}): Promise<Body[]> =>
  (await gateway.get(path, { entityId: sandbox.entityId, 'date.from': firstDay, 'date.to': lastDay, ...fields })).body
    .aggregations
const detail = (id: string, fields: Fields = {}, version = 1): Promise<Body> =>
  gateway.get(`${path.replace('v1', `v${version}`)}/${id}`, { entityId: sandbox.entityId, ...fields })
const csv = async (pathAndQuery: string): Promise<string[]> => {
  const response = await fetch(`${gateway.baseUrl}${pathAndQuery}`, {
    headers: { Authorization: `Bearer ${sandbox.accessToken}`, Accept: 'text/csv' },
  })
  assert.match(response.headers.get('content-type')!, /^text\/csv/)
  assert.match(response.headers.get('content-disposition')!, /^attachment; filename="settlement-/)
  return (await response.text()).trimEnd().split('\r\n')
}
const hundredths = (text: string) => Math.round(Number(text) * 100)

describe('over some days', () => {
  /** What the merchant was answered: movements by entity, day and currency. */
  const moved: { entityId: string; day: string; currency: string; amount: number; id: string }[] = []
  const add = (entityId: string, { body }: { body: Body }, sign: 1 | -1): string => {
    assert.equal(body.result.code, '000.100.110', JSON.stringify(body))
    const day = new Date(now).toISOString().slice(0, 10)
    now += 1000 // ids of one moment have no order
    moved.push({ entityId, day, currency: body.currency, amount: sign * hundredths(body.amount), id: body.id })
    return body.id
  }

  before(async () => {
    // Past two midnights, one of them the end of a month.
    for (let at = 0; at < 16; at++, now += 3 * 3_600_000 + 7000) {
      const entityId = at % 3 === 0 ? sandbox.lenientEntityId : sandbox.entityId
      const currency = at % 2 === 0 ? 'EUR' : 'BRL'
      const money = { entityId, currency }
      const db = add(entityId, await gateway.pay({ ...money, amount: `${90 + at}.0${at % 10}` }), 1)
      const pa = (await gateway.pay({ ...money, paymentType: 'PA', amount: '70.00' })).body.id
      await gateway.pay({ ...money, paymentType: 'PA', amount: '33.00' })
      await gateway.pay({ ...money, 'customParameters[forceResultCode]': '800.100.152' })
      now += 1000
      const refer = async (id: string, paymentType: string, amount: string, sign: 1 | -1) => {
        add(entityId, await gateway.refer(id, { ...money, paymentType, amount }), sign)
      }
      await refer(pa, 'CP', '61.50', 1)
      if (at % 4 === 0) await refer(pa, 'RF', '1.23', -1)
      if (at % 4 === 1) await refer(db, 'RV', `${90 + at}.0${at % 10}`, -1)
      if (at % 4 === 2) await refer(db, 'RF', '45.00', -1)
      if (at % 4 === 3) add(entityId, await gateway.pay({ ...money, paymentType: 'CD', amount: '5.55' }), -1)
    }
    await gateway.post(
      '/v1/payments',
      { entityId: other.channelId, paymentType: 'DB', amount: '7.00', currency: 'EUR', ...visa },
      { Authorization: `Bearer ${other.token}` },
    )
  })

  const expected = (of: (one: (typeof moved)[number]) => boolean) => {
    const groups = Map.groupBy(moved.filter(of), ({ day, currency }) => `${day} ${currency}`)
    return [...groups]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, ofKey]) => {
        const sum = (sign: number) => ofKey.reduce((total, { amount }) => total + (Math.sign(amount) === sign ? amount : 0), 0)
        return [
          key,
          String(ofKey.length),
          signedAmountText(sum(1)),
          signedAmountText(-sum(-1)),
          signedAmountText(sum(1) + sum(-1)),
        ]
      })
  }
  const figures = (found: readonly Body[]) =>
    found.map(({ date, currency, count, credit, debit, amount }) => [`${date} ${currency}`, count, credit, debit, amount])

  it('a channel reports what was answered on it, and a merchant what was on all of its channels', async () => {
    const days = new Set(moved.map(({ day }) => day))
    assert.equal(days.size, 3)
    for (const entityId of [sandbox.entityId, sandbox.lenientEntityId])
      assert.deepEqual(
        figures(await report({ entityId, testMode: 'INTERNAL' })),
        expected(one => one.entityId === entityId),
      )
    assert.deepEqual(
      figures(await report({ entityId: sandbox.merchantId, testMode: 'INTERNAL' })),
      expected(() => true),
    )
    assert.deepEqual(
      figures(await report({ currency: 'BRL', 'date.to': firstDay })),
      expected(one => one.entityId === sandbox.entityId && one.currency === 'BRL' && one.day === firstDay),
    )
  })

  it('every figure is the journal, to the hundredth', async () => {
    const { rows } = await gateway.pool.query(
      `select to_char(booked_at at time zone 'UTC', 'YYYY-MM-DD') || ' ' || currency as key, count(*)::text as count,
              sum(case credit when 'merchant' then amount when 'acquirer' then -amount else 0 end)::text as amount
         from journal where merchant_id = $1 and state = 'posted' and 'acquirer' in (debit, credit) group by 1 order by 1`,
      [sandbox.merchantId],
    )
    const found = await report({ entityId: sandbox.merchantId, testMode: 'INTERNAL' })
    assert.deepEqual(
      found.map(one => [`${one.date} ${one.currency}`, one.count, String(hundredths(one.amount))]),
      rows.map(({ key, count, amount }) => [key, count, amount]),
    )
  })

  it('the records of an aggregation are its payments, and make its amount', async () => {
    for (const entityId of [sandbox.entityId, sandbox.merchantId])
      for (const one of await report({ entityId, testMode: 'INTERNAL' })) {
        const { body } = await detail(one.id, { entityId })
        assert.deepEqual(body.aggregation, one)
        const own = moved.filter(
          ({ day, currency, entityId: channel }) =>
            day === one.date && currency === one.currency && (entityId === sandbox.merchantId || channel === entityId),
        )
        assert.deepEqual(
          body.records.map(({ id, amount }: Body) => [id, amount]),
          own.map(({ id, amount }) => [id, signedAmountText(amount)]),
        )
        const reversed = await detail(one.id, { entityId, sortOrder: 'DESC' })
        assert.deepEqual(reversed.body.records, body.records.toReversed())
      }
  })

  it('another merchant has its own report, and finds nothing by ids of this one', async () => {
    const theirs = { Authorization: `Bearer ${other.token}` }
    const own = await gateway.get(path, { entityId: other.channelId, 'date.from': firstDay, 'date.to': lastDay }, theirs)
    assert.deepEqual(
      own.body.aggregations.map(({ amount, count }: Body) => [amount, count]),
      [['7.00', '1']],
    )
    const [ours] = await report()
    const foreign = await gateway.get(`${path}/${ours.id}`, { entityId: other.channelId }, theirs)
    assert.deepEqual([foreign.status, foreign.body.result.code, foreign.body.records], [400, '700.400.580', undefined])
    const stolen = await gateway.get(`${path}/${ours.id}`, { entityId: sandbox.entityId }, theirs)
    assert.equal(stolen.status, 403)
    const mode = `${ours.id.slice(0, 13)}2${ours.id.slice(14)}`
    assert.equal((await detail(mode)).status, 400)
  })

  it('as a file it says the same', async () => {
    const query = `entityId=${sandbox.entityId}&date.from=${firstDay}&date.to=${lastDay}`
    const [heading, ...lines] = await csv(`${path}?${query}`)
    assert.equal(heading, 'id,date,currency,testMode,count,matchedCount,credit,debit,amount')
    const found = await report()
    assert.deepEqual(
      lines,
      found.map(one =>
        [one.id, one.date, one.currency, one.testMode, one.count, one.matchedCount, one.credit, one.debit, one.amount].join(','),
      ),
    )
    const records = (await detail(found[0].id)).body.records
    const [, ...rows] = await csv(`${path}/${found[0].id}?entityId=${sandbox.entityId}`)
    assert.deepEqual(
      rows.map(row => row.split(',')[0]),
      records.map(({ id }: Body) => id),
    )
    assert.deepEqual(
      rows.map(row => row.split(',')[6]),
      records.map(({ amount }: Body) => amount),
    )
  })
})

it('payments of another mode are not in it; where none is named a test channel reports the simulator and a live one what is live', async () => {
  now = Date.UTC(2031, 0, 1, 12)
  const day = { 'date.from': '2031-01-01', 'date.to': '2031-01-01' }
  const pay = async (entityId: string) =>
    (await gateway.pay({ entityId, currency: 'USD', testMode: 'INTERNAL', amount: '3.00' })).body.id
  const ids = [await pay(sandbox.entityId), await pay(liveChannelId)]
  const count = async (entityId: string, testMode?: string) =>
    (await report({ ...day, entityId, ...(testMode && { testMode }) })).reduce((sum, one) => sum + Number(one.count), 0)
  const all = async (entityId: string) => [
    await count(entityId),
    await count(entityId, 'INTERNAL'),
    await count(entityId, 'EXTERNAL'),
  ]
  assert.deepEqual(
    [await all(sandbox.entityId), await all(liveChannelId), await all(sandbox.merchantId)],
    [
      [1, 1, 0],
      [0, 1, 0],
      [0, 2, 0],
    ],
  )
  await gateway.pool.query(`update journal set mode = 'external' where payment_id = $1`, [ids[0]])
  await gateway.pool.query(`update journal set mode = 'live' where payment_id = $1`, [ids[1]])
  assert.deepEqual(
    [await all(sandbox.entityId), await all(liveChannelId), await all(sandbox.merchantId)],
    [
      [0, 0, 1],
      [1, 0, 0],
      [1, 0, 1],
    ],
  )
  const [live] = await report({ ...day, entityId: liveChannelId })
  assert.deepEqual([live.testMode, live.matchedCount], [undefined, '0'])
})

it('a chargeback and its reversal have names of their own, and a record is matched once a settlement file had it', async () => {
  now = Date.UTC(2031, 1, 1, 12)
  const database = connect(gateway.connection, clock, () => {})
  const directory = await openDirectory(database, testKeys, clock, () => {})
  try {
    const { body: db } = await gateway.pay({ currency: 'USD', merchantTransactionId: '=1+1;cmd "x"' })
    const { body: unmatched } = await gateway.pay({ currency: 'USD', amount: '10.00' })
    const parts = { database, directory, clock, random: systemRandom, keys: testKeys, build: 'test' }
    const line = { report: 'r', reference: db.id, currency: 'USD', date: '2031-02-01' } as const
    now += 1000
    await recordChargeback(parts, { ...line, line: 1, type: 'CB', amount: 9200, reason: '10.4' })
    now += 1000
    await recordChargeback(parts, { ...line, line: 2, type: 'CR', amount: 2000, reason: '' })
    const settle = (id: string, outcome: string, hash: string) =>
      gateway.pool.query(
        `insert into settled_bookings (merchant_id, payment_id, kind, acquirer, day, outcome, hash, line, settled_at)
         values ($1, $2, 'debit', 'north', '2031-02-02', $3, $4, 1, now())`,
        [sandbox.merchantId, id, outcome, hash],
      )
    await gateway.pool.query(`update journal set mode = 'external' where booked_at >= '2031-02-01'`)
    const asked = { 'date.from': '2031-02-01', 'date.to': '2031-02-01', testMode: 'EXTERNAL' }
    const statuses = async () => {
      const [one] = await report(asked)
      const { records } = (await detail(one.id)).body
      return [
        one.matchedCount,
        ...records.map(
          (record: Body) =>
            `${record.reconciliationType} ${record.amount} ${record.matchedTransactions.status} ${record.settlement?.date ?? ''}`,
        ),
      ]
    }
    const charged = ['CHARGEBACK -92.00 MATCHED ', 'CHARGEBACK REVERSAL 20.00 MATCHED ']
    assert.deepEqual(
      (await statuses()).sort(),
      ['2', 'SETTLED 10.00 NOT_MATCHED ', 'SETTLED 92.00 NOT_MATCHED ', ...charged].sort(),
    )
    await settle(db.id, 'matched', 'a')
    await settle(unmatched.id, 'otherAmount', 'b')
    assert.deepEqual(
      (await statuses()).sort(),
      ['3', 'SETTLED 10.00 NOT_MATCHED 2031-02-02', 'SETTLED 92.00 MATCHED 2031-02-02', ...charged].sort(),
    )
    const [one] = await report(asked)
    assert.deepEqual(
      one.totals.map(({ reconciliationType, count, amount }: Body) => [reconciliationType, count, amount]),
      [
        ['SETTLED', '2', '102.00'],
        ['CHARGEBACK REVERSAL', '1', '20.00'],
        ['CHARGEBACK', '1', '-92.00'],
      ],
    )
    for (const [reconciliationType, count] of [
      ['SETTLED', 2],
      ['CHARGEBACK', 1],
      ['CHARGEBACK REVERSAL', 1],
      ['FEE', 0],
    ] as const)
      assert.equal((await detail(one.id, { reconciliationType })).body.records.length, count)
    const file = await csv(`${path}/${one.id}?entityId=${sandbox.entityId}`)
    assert.ok(
      file.some(row => row.includes(`,"'=1+1;cmd ""x""",`)),
      file.join('\n'),
    )
  } finally {
    await directory.close()
    await database.close()
  }
})

it('a large day comes whole, in pages of a hundred or all at once', async () => {
  now = Date.UTC(2031, 2, 1, 12)
  const ids = new Set<string>()
  await Promise.all(
    Array.from({ length: 260 }, async () => ids.add((await gateway.pay({ currency: 'EUR', amount: '1.00' })).body.id)),
  )
  const [one] = await report({ 'date.from': '2031-03-01', 'date.to': '2031-03-01' })
  assert.deepEqual([one.count, one.amount], ['260', '260.00'])
  const all = (await detail(one.id)).body.records.map(({ id }: Body) => id)
  assert.deepEqual(new Set(all), ids)
  assert.equal(all.length, 260)
  const pages = await Promise.all(['1', '2', '3', '4'].map(pageNo => detail(one.id, { pageNo }, 2)))
  assert.deepEqual(
    pages.map(({ body }) => body.records.length),
    [100, 100, 60, 0],
  )
  assert.deepEqual(
    pages.flatMap(({ body }) => body.records.map(({ id }: Body) => id)),
    all,
  )
  assert.ok(pages.every(({ body }) => body.pages === '3'))
  assert.equal((await csv(`${path}/${one.id}?entityId=${sandbox.entityId}`)).length, 261)
})

it('a report of a day reads what was booked that day, by the index of it', async () => {
  const client = await gateway.pool.connect()
  // Of so few rows all are read sooner than an index.
  await client.query('begin; set local enable_seqscan = off')
  const { rows } = await client.query(
    `explain select from journal j where j.merchant_id = $1 and j.state = 'posted' and 'merchant' in (j.debit, j.credit) and j.booked_at >= $2 and j.booked_at < $3`.replace(
      /\$(\d)/g,
      (_, at) => `'${[sandbox.merchantId, '2030-03-30', '2030-03-31'][Number(at) - 1]}'`,
    ),
  )
  await client.query('rollback')
  client.release()
  assert.match(JSON.stringify(rows), /journal_of_merchants/)
})

it('nothing in a file is a formula', () => {
  for (const [cell, written] of [
    ['=A1', "'=A1"],
    ['+1', "'+1"],
    ['@x', "'@x"],
    ['-x', "'-x"],
    ['-12.00', '-12.00'],
    ['-5', '-5'],
    [-5, '-5'],
    ['-0.5', '-0.5'],
    ['-5-3', "'-5-3"],
    ['-5.', "'-5."],
    ['\t=1', `"'\t'=1"`],
    ['a,b', '"a,b"'],
    ['a"b', '"a""b"'],
    ['order-12;=1+1', `"order-12;'=1+1"`],
    ['order-12\t=1+1', `"order-12\t'=1+1"`],
    ['order-12\n@x\r+1', `"order-12\n'@x\r'+1"`],
    ['order-12;"=1+1"', `"order-12;'""=1+1"""`],
    [' =1+1', "' =1+1"],
    ['\u200b\u00a0@x', "'\u200b\u00a0@x"],
    ['order; " +1', `"order;' "" +1"`],
    ['a;b-c=d', '"a;b-c=d"'],
    ['a\r\n\r\nb', '"a\r\n\r\nb"'],
    ['a\nb', '"a\nb"'],
    ['plain', 'plain'],
  ] as const)
    assert.equal(csvRow([cell, undefined]), `${written},\r\n`)
})
