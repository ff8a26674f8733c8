// Chargebacks and their reversals: what fits a payment is recorded once, booked and told; what does not fit is refused by name.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type ImportResult, recordChargeback } from '../src/clearing/chargebacks/chargebacks.ts'
import { hourOf, type ReportLine, readReport, resultOfReason } from '../src/clearing/chargebacks/report.ts'
import { inTurns } from '../src/clearing/steps.ts'
import { type Directory, openDirectory } from '../src/merchants/directory.ts'
import { examine } from '../src/payments/ledger/doctor.ts'
import { systemClock, systemRandom } from '../src/platform/clock.ts'
import { connect, type Database } from '../src/platform/database/connect.ts'
import { addEndpoint } from './support/endpoints.ts'
import { eventually, sandbox, type TestGateway, testGateway, testKeys } from './support/gateway.ts'
import { acquirersFile, testHost } from './support/host.ts'
import { opened, startReceiver } from './support/receiver.ts'

const success = '000.100.110'
const eur = (amount: string) => ({ amount, currency: 'EUR' })
const today = new Date().toISOString().slice(0, 10)

describe('recording', () => {
  let gateway: TestGateway
  let database: Database
  let directory: Directory
  before(async () => {
    gateway = await testGateway()
    database = connect(gateway.connection, systemClock, () => {})
    directory = await openDirectory(database, testKeys, systemClock, () => {})
  })
  after(async () => {
    await directory.close()
    await database.close()
    await gateway.stop()
  })

  let line = 0
  const record = (reference: string, more: Partial<ReportLine> = {}): Promise<ImportResult> =>
    recordChargeback(
      { database, directory, clock: systemClock, random: systemRandom, keys: testKeys, build: 'test' },
      {
        report: 'r',
        line: ++line,
        type: 'CB',
        reference,
        amount: 9200,
        currency: 'EUR',
        reason: '10.4',
        date: today,
        ...more,
      },
    )
  const kind = async (said: Promise<ImportResult>) => {
    const one = await said
    return one.kind === 'refused' ? one.why : one.kind
  }
  const idOf = async (said: Promise<ImportResult>) => {
    const one = await said
    assert.equal(one.kind, 'recorded', JSON.stringify(one))
    return one.kind === 'recorded' ? one.payment.id : ''
  }
  const refund = async (id: string, amount: string) =>
    (await gateway.refer(id, { paymentType: 'RF', ...eur(amount) })).body.result.code
  const booksAgree = async () => assert.deepEqual((await examine(gateway.pool)).findings, [])

  it('a debit is charged back, read, searched and told, with what it refers to', async () => {
    const receiver = await startReceiver()
    const endpoint = await addEndpoint(gateway.pool, { url: receiver.url })
    try {
      const { body: db } = await gateway.pay({ merchantTransactionId: 'charged-back' })
      const id = await idOf(record(db.id))
      const { body } = await gateway.get(`/v1/payments/${id}`, { entityId: sandbox.entityId })
      assert.deepEqual(
        [body.paymentType, body.referencedId, body.amount, body.currency, body.result.code, body.resultDetails.AcquirerResponse],
        ['CB', db.id, '92.00', 'EUR', '000.100.220', '10.4'],
      )
      assert.deepEqual([body.merchantTransactionId, body.card.last4Digits, body.paymentBrand], ['charged-back', '0000', 'VISA'])
      const found = await gateway.get('/v3/query', {
        entityId: sandbox.entityId,
        'date.from': `${today} 00:00:00`,
        'date.to': `${today} 23:59:59`,
        paymentTypes: 'CB',
      })
      assert.deepEqual(
        found.body.records.map((one: { id: string }) => one.id),
        [id],
      )
      const told = await eventually(
        async () => receiver.received.map(one => opened(one, endpoint.secret)).find(one => one.payload.id === id),
        'the chargeback is told',
      )
      assert.deepEqual([told.payload.paymentType, told.payload.referencedId], ['CB', db.id])
      await booksAgree()
    } finally {
      await receiver.close()
    }
  })

  it('the same line changes nothing the second time, and another line under its number is refused', async () => {
    const { body: db } = await gateway.pay()
    const same = { report: 'again', line: 1 }
    const id = await idOf(record(db.id, { ...same, amount: 1000 }))
    assert.deepEqual(await record(db.id, { ...same, amount: 1000 }), { kind: 'known', paymentId: id })
    assert.equal(await kind(record(db.id, { ...same, amount: 1001 })), 'otherLine')
    const racing = await Promise.all(
      Array.from({ length: 8 }, () => kind(record(db.id, { report: 'race', line: 1, amount: 1000 }))),
    )
    assert.deepEqual(racing.sort(), [...Array(7).fill('known'), 'recorded'])
    await booksAgree()
  })

  it('a line that was imported for one merchant is none of another, however it was mended', async () => {
    const { body: db } = await gateway.pay()
    const other = '0'.repeat(31).concat('7')
    await gateway.pool.query(
      `insert into entities (id, kind, parent_id, merchant_id, name, changed_at) select $1, 'merchant', parent_id, $1, 'Other', now() from entities where id = $2`,
      [other, sandbox.merchantId],
    )
    const same = { report: 'mended', line: 1, amount: 1000 }
    await gateway.pool.query('insert into chargeback_lines values ($1, $2, $3, gen_random_uuid())', [
      other,
      same.report,
      same.line,
    ])
    assert.equal(await kind(record(db.id, same)), 'otherLine')
    assert.equal(await kind(record(db.id, { ...same, line: 2 })), 'recorded')
    // What two had before is each one's own.
    await gateway.pool.query('insert into chargeback_lines values ($1, $2, $3, gen_random_uuid())', [other, same.report, 2])
    assert.equal(await kind(record(db.id, { ...same, line: 2 })), 'known')
    await booksAgree()
  })

  it('chargebacks together stay within what was cleared, whatever was refunded', async () => {
    const { body: pa } = await gateway.pay({ paymentType: 'PA' })
    assert.equal(await kind(record(pa.id)), 'nothingCleared')
    const { body: cp } = await gateway.refer(pa.id, { paymentType: 'CP', ...eur('50.00') })
    assert.equal(await refund(pa.id, '50.00'), success)
    assert.equal(await kind(record(cp.id, { amount: 5001 })), 'aboveCleared')
    const first = await record(pa.id, { amount: 4999 })
    assert.equal(first.kind === 'recorded' && first.payment.referenceId, cp.id)
    assert.equal(await kind(record(cp.id, { amount: 2 })), 'aboveCleared')
    assert.equal(await kind(record(cp.id, { amount: 1 })), 'recorded')
    await booksAgree()
  })

  it('a reversed part of a debit cannot be charged back', async () => {
    const { body: db } = await gateway.pay()
    await gateway.refer(db.id, { paymentType: 'RV', ...eur('42.00') })
    assert.equal(await kind(record(db.id, { amount: 5001 })), 'aboveCleared')
    assert.equal(await kind(record(db.id, { amount: 5000 })), 'recorded')
    await booksAgree()
  })

  it('what is charged back cannot be refunded or reversed, what is left can be refunded', async () => {
    const { body: db } = await gateway.pay()
    await idOf(record(db.id, { amount: 9000 }))
    assert.equal((await gateway.refer(db.id, { paymentType: 'RV' })).body.result.code, '700.400.300')
    assert.equal(await refund(db.id, '2.01'), '700.400.200')
    assert.equal(await refund(db.id, '2.00'), success)
    assert.equal(await refund(db.id, '0.01'), '700.400.200')
    await booksAgree()
  })

  it('a chargeback is reversed once; then the payment may be refunded or charged back again', async () => {
    const { body: db } = await gateway.pay()
    assert.equal(await kind(record(db.id, { type: 'CR' })), 'noChargeback')
    const cb = await idOf(record(db.id))
    assert.equal(await kind(record(db.id, { type: 'CR', amount: 9201 })), 'aboveChargeback')
    const cr = await idOf(record(db.id, { type: 'CR', reason: '' }))
    const { body } = await gateway.get(`/v1/payments/${cr}`, { entityId: sandbox.entityId })
    assert.deepEqual([body.paymentType, body.referencedId, body.result.code], ['CR', cb, success])
    assert.equal(await kind(record(db.id, { type: 'CR' })), 'noChargeback')
    assert.equal(await kind(record(cb, { type: 'CR' })), 'noChargeback')
    const again = await idOf(record(db.id, { amount: 4000 }))
    await idOf(record(db.id, { amount: 4000 }))
    assert.equal(await kind(record(db.id, { type: 'CR', amount: 4000 })), 'severalChargebacks')
    assert.equal(await kind(record(again, { type: 'CR', amount: 4000 })), 'recorded')
    assert.equal(await refund(db.id, '52.01'), '700.400.200')
    assert.equal(await refund(db.id, '52.00'), success)
    await booksAgree()
  })

  it('what fits no payment is refused, and nothing is recorded', async () => {
    const { body: db } = await gateway.pay()
    const { body: declined } = await gateway.pay({ 'card.number': '4000000000000002' })
    const { body: rf } = await gateway.refer(db.id, { paymentType: 'RF', ...eur('1.00') })
    const count = async () => (await gateway.pool.query('select 1 from payments')).rowCount
    const earlier = await count()
    assert.equal(await kind(record('0'.repeat(32))), 'noPayment')
    assert.equal(await kind(record(declined.id)), 'nothingCleared')
    assert.equal(await kind(record(rf.id, { amount: 100 })), 'nothingCleared')
    assert.equal(await kind(record(db.id, { currency: 'USD' })), 'currencyDiffers')
    assert.equal(await kind(record('106214000017', { acquirer: 'north' })), 'noPayment')
    assert.equal(await count(), earlier)
  })

  it('a merchant cannot send one', async () => {
    const { body: db } = await gateway.pay()
    assert.equal((await gateway.refer(db.id, { paymentType: 'CB', ...eur('92.00') })).status, 400)
  })

  it('the doctor sees a chargeback that the journal does not know', async () => {
    const { body: db } = await gateway.pay()
    const id = await idOf(record(db.id, { amount: 1000 }))
    await gateway.pool.query('update journal set amount = 999 where payment_id = $1', [id])
    assert.match(
      (await examine(gateway.pool)).findings.join('\n'),
      new RegExp(`${db.id}.*the operations make 82.00 cleared, the journal 82.01`),
    )
    await gateway.pool.query('update journal set amount = 1000 where payment_id = $1', [id])
    await booksAgree()
  })

  it('a payment at an acquirer is found by its retrieval reference', async () => {
    const host = await testHost()
    const file = acquirersFile({ north: [host.port] })
    const external = await testGateway({ environment: { ACQUIRERS_FILE: file.path } })
    const itsDatabase = connect(external.connection, systemClock, () => {})
    try {
      const { body: db } = await external.pay({ testMode: 'EXTERNAL' })
      const reference = db.resultDetails.ConnectorTxID1
      const parts = { database: itsDatabase, directory, clock: systemClock, random: systemRandom, keys: testKeys, build: 'test' }
      const given = {
        report: 'r',
        line: 1,
        type: 'CB',
        reference,
        amount: 9200,
        currency: 'EUR',
        reason: '',
        date: today,
      } as const
      assert.deepEqual(await recordChargeback(parts, { ...given, acquirer: 'south' }), { kind: 'refused', why: 'noPayment' })
      const said = await recordChargeback(parts, { ...given, acquirer: 'north' })
      assert.equal(said.kind === 'recorded' && said.payment.referenceId, db.id)
      const reversed = await recordChargeback(parts, { ...given, acquirer: 'north', type: 'CR', line: 2 })
      assert.equal(reversed.kind, 'recorded')
      assert.deepEqual((await examine(external.pool)).findings, [])
    } finally {
      await itsDatabase.close()
      await external.stop()
      await host.stop()
      file.remove()
    }
  })
})

describe('the report', () => {
  const heading = 'report,line,type,acquirer,reference,amount,currency,reason,date'
  const id = 'a'.repeat(32)
  const good = `n-1,1,CB,,${id},92.00,EUR,10.4,2031-03-04`
  const readAll = (text: string) => inTurns(readReport(text))
  const read = async (line: string) => (await readAll(`\uFEFF${heading}\r\n${line}\r\n`))![0]!

  it('is read by the names of its columns', async () => {
    assert.equal(await readAll(good), undefined)
    assert.deepEqual(await read(good), {
      at: 2,
      subject: 'n-1 line 1',
      line: {
        report: 'n-1',
        line: 1,
        type: 'CB',
        reference: id,
        amount: 9200,
        currency: 'EUR',
        reason: '10.4',
        date: '2031-03-04',
      },
    })
    const turned = await readAll(
      `date,reason,currency,amount,reference,acquirer,type,line,report\n2031-03-04,,EUR,5,106214000017,north,CR,7,n`,
    )
    assert.deepEqual(turned![0], {
      at: 2,
      subject: 'n line 7',
      line: {
        report: 'n',
        line: 7,
        type: 'CR',
        acquirer: 'north',
        reference: '106214000017',
        amount: 500,
        currency: 'EUR',
        reason: '',
        date: '2031-03-04',
      },
    })
  })

  const wrong: [string, RegExp][] = [
    [good.replace('n-1', ''), /^report/],
    [good.replace(',1,', ',0,'), /^line/],
    [good.replace('CB', 'RF'), /^type/],
    [good.replace('92.00', '0.00'), /^amount/],
    [good.replace('92.00', '92.0'), /^amount/],
    [good.replace('92.00', '-1'), /^amount/],
    [good.replace('EUR', 'eur'), /^currency/],
    [good.replace(id, '106214000017'), /^reference/],
    [good.replace(',,', ',north,'), /^reference/],
    [good.replace('03-04', '13-04'), /^date/],
    [good.replace('03-04', '02-31'), /^date/],
    [good.replace('2031', '0000'), /^date/],
    [good.replace('2031', '0001'), /^date/],
    [good.replace('2031', '1999'), /^date/],
    [good.replace(/^[^,]*/, '4539578763621486'), /^report must not hold a card number$/],
    [good.replace(/^[^,]*/, 'of_4539-5787-6362-1486'), /^report must not hold a card number$/],
    [good.replace('10.4', '4539578763621486'), /^reason must not hold a card number$/],
    [`${good},`, /^has 10 columns/],
  ]
  for (const [line, rule] of wrong)
    it(`refuses ${line}`, async () => {
      const said = await read(line)
      assert.match('malformed' in said ? said.malformed : 'taken', rule)
    })

  it('has reasons that become results', () => {
    const results = ['000.100.220', '000.100.299', '10.4', '4853', '99.9', '', '000.100.110', 'constructor'].map(resultOfReason)
    assert.deepEqual(results, [
      'chargebackFraud',
      'chargebackTechnicalCause',
      'chargebackFraud',
      'chargebackRevokedOrDisputed',
      ...Array(4).fill('chargebackWithoutReason'),
    ])
  })

  it('names the hour of a retrieval reference, in the last such year', () => {
    assert.equal(new Date(hourOf('106214000017', '2031-03-04')).toISOString(), '2031-03-03T14:00:00.000Z')
    assert.equal(new Date(hourOf('936523000017', '2031-03-04')).toISOString(), '2029-12-31T23:00:00.000Z')
  })
})
