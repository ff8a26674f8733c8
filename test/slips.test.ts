// Slips: a PA issues one, which moves nothing; what is paid on it is a receipt of its own, and only a receipt is refunded.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import { type Receipt, type ReceiptResult, recordReceipt } from '../src/clearing/receipts/receipts.ts'
import { readSlipsFile } from '../src/connectors/slips/accounts.ts'
import { readBarcode, readLine } from '../src/connectors/slips/banks/barcode.ts'
import { type Directory, openDirectory } from '../src/merchants/directory.ts'
import { examine } from '../src/payments/ledger/doctor.ts'
import { systemClock, systemRandom } from '../src/platform/clock.ts'
import { connect, type Database } from '../src/platform/database/connect.ts'
import { measureSlipNumbers } from '../src/slips/metrics.ts'
import { findSlip } from '../src/slips/store.ts'
import { addEndpoint } from './support/endpoints.ts'
import {
  type Body,
  eventually,
  type Fields,
  type Reply,
  sandbox,
  type TestGateway,
  testGateway,
  testKeys,
} from './support/gateway.ts'
import { opened, startReceiver } from './support/receiver.ts'
import { boleto, oxxo } from './support/slips.ts'

const success = '000.100.110'
const dayIn = (days: number) => new Date(Date.now() + days * 86_400_000 - 3 * 3_600_000).toISOString().slice(0, 10)
const written = (day: string) => day.split('-').reverse().join('/')

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

const ask = (fields: Fields, more: Fields = {}): Promise<Reply> => {
  const all = { ...fields, ...more }
  return gateway.post('/v1/payments', Object.fromEntries(Object.entries(all).filter(([, value]) => value !== '-')))
}
const issue = async (fields: Fields = boleto, more: Fields = {}): Promise<Body> => {
  const { status, body } = await ask(fields, more)
  assert.equal(status, 200, JSON.stringify(body.result))
  return body
}
const read = async (id: string): Promise<Body> => (await gateway.get(`/v1/payments/${id}`, { entityId: sandbox.entityId })).body
const booksAgree = async () => assert.deepEqual((await examine(gateway.pool)).findings, [])

let keys = 0
const receive = (slip: Body, more: Partial<Receipt> = {}): Promise<ReceiptResult> =>
  recordReceipt(
    { database, directory, clock: systemClock, random: systemRandom, build: 'test' },
    {
      account: slip.paymentBrand === 'OXXO' ? 'oxxo-demo' : 'itau-demo',
      number: slip.resultDetails.acquirerTxId1,
      key: `key ${++keys}`,
      amount: Math.round(Number(slip.amount) * 100),
      currency: slip.currency,
      paidOn: slip.resultDetails.DueDate,
      ...more,
    },
  )
const idOf = async (said: Promise<ReceiptResult>): Promise<string> => {
  const one = await said
  assert.equal(one.kind, 'recorded', JSON.stringify(one))
  return one.kind === 'recorded' ? one.payment.id : ''
}

describe('issuing', () => {
  it('a slip of a bank: the success code, no redirect, numbers that a bank can read, and nothing in the books', async () => {
    const due = dayIn(7)
    const body = await issue(boleto, { 'customParameters[CUSTOM_due_date]': written(due) })
    assert.deepEqual([body.result.code, body.paymentType, body.paymentBrand, body.redirect], [success, 'PA', 'BOLETO', undefined])
    const details = body.resultDetails
    const barcode = readBarcode(details.EXTERNAL_SYSTEM_BARCODE_NUMBER, due)
    assert.ok(!('broken' in barcode), JSON.stringify(barcode))
    assert.deepEqual([barcode.bank, barcode.amount, barcode.dueOn, details.DueDate], ['341', 12345, due, due])
    assert.deepEqual(readLine(details.DigitableLine), { barcode: details.EXTERNAL_SYSTEM_BARCODE_NUMBER })
    assert.match(details.EXTERNAL_SYSTEM_LINK, /^http:\/\/127\.0\.0\.1:\d+\/slip\/[A-Za-z0-9_-]{22}\.[0-9a-z]+$/)
    assert.match(details.ConnectorTxID1, /^110\/\d{8}-\d$/)
    for (const name of ['ExtendedDescription', 'acquirerReturnCode', 'acquirerReturnMessage', 'acquirerTxId1', 'acquirerTxId2'])
      assert.ok(details[name], name)
    assert.equal(body.customParameters.CUSTOM_CPF_number, '11144477735')
    const { rowCount } = await gateway.pool.query('select 1 from journal where payment_id = $1', [body.id])
    assert.equal(rowCount, 0)
    const place = await findSlip(gateway.pool, 'itau-demo', details.acquirerTxId1)
    assert.deepEqual(place, { merchantId: sandbox.merchantId, paymentId: body.id, amount: 12345, currency: 'BRL', dueOn: due })
    assert.deepEqual((await read(body.id)).resultDetails, details)
  })

  it('a store slip: a reference, a number of 30 digits, an image', async () => {
    const body = await issue(oxxo)
    const details = body.resultDetails
    assert.match(details.EXTERNAL_SYSTEM_BARCODE_NUMBER, /^20\d{28}$/)
    assert.equal(details.EXTERNAL_SYSTEM_BARCODE_NUMBER.slice(2, 14), details.Reference)
    assert.equal(details.EXTERNAL_SYSTEM_BARCODE_IMAGE, `${details.EXTERNAL_SYSTEM_LINK}/barcode.png`)
  })

  it('numbers are never given twice, not by two processes and not after a start', async () => {
    const other = await gateway.another()
    const send = (one: Pick<TestGateway, 'post'>) => one.post('/v1/payments', boleto)
    const first = await Promise.all(Array.from({ length: 40 }, (_, at) => send(at % 2 === 0 ? gateway : other)))
    await other.stop()
    await gateway.restart()
    const all = [...first, await send(gateway)].map(({ body }) => body.resultDetails.acquirerTxId1)
    assert.equal(new Set(all).size, all.length)
  })

  // biome-ignore format: one line a case
  const refused: readonly (readonly [what: string, fields: Fields, status: number, code: string, wrong: string])[] = [
    ['a debit', { paymentType: 'DB' }, 400, '600.200.310', 'paymentType'],
    ['a preauthorization that is captured at once', { paymentType: 'PA.CP' }, 400, '600.200.310', 'paymentType'],
    ['another currency', { currency: 'EUR' }, 400, '600.200.500', 'currency'],
    ['no tax id', { 'customParameters[CUSTOM_CPF_number]': '-' }, 400, '200.300.404', 'customParameters[CUSTOM_CPF_number]'],
    ['a wrong tax id', { 'customParameters[CUSTOM_CPF_number]': '11144477736' }, 400, '200.300.404', 'customParameters[CUSTOM_CPF_number]'],
    ['two tax ids', { 'customer.identificationDocType': 'TAXSTATEMENT', 'customer.identificationDocId': '52998224725' }, 400, '200.300.404', 'customer.identificationDocId'],
    ['no street', { 'billing.street1': '-' }, 400, '200.300.404', 'billing.street1'],
    ['no address of mail', { 'customer.email': '-' }, 400, '200.300.404', 'customer.email'],
    ['a sign that banks do not take', { 'customer.surname': 'Silva & Filhos' }, 400, '200.300.404', 'customer.surname'],
    ['a degree sign in the product', { 'customParameters[product]': 'Livro n° 1' }, 400, '200.300.404', 'customParameters[product]'],
    ['letters that no bank prints', { 'customer.givenName': '玛丽' }, 400, '200.300.404', 'customer.givenName'],
    ['a postcode of elsewhere', { 'billing.postcode': '1310100' }, 400, '200.300.404', 'billing.postcode'],
    ['yesterday', { 'customParameters[CUSTOM_due_date]': written(dayIn(-1)) }, 400, '200.300.404', 'customParameters[CUSTOM_due_date]'],
    ['a day that there is not', { 'customParameters[CUSTOM_due_date]': '30/02/2027' }, 400, '200.300.404', 'customParameters[CUSTOM_due_date]'],
    ['a day too far away', { 'customParameters[CUSTOM_due_date]': written(dayIn(1827)) }, 400, '200.300.404', 'customParameters[CUSTOM_due_date]'],
  ]
  for (const [what, fields, status, code, wrong] of refused)
    it(`refused, and named: ${what}`, async () => {
      const { status: found, body } = await ask(boleto, fields)
      assert.deepEqual([found, body.result.code], [status, code], JSON.stringify(body.result))
      assert.deepEqual(
        body.result.parameterErrors?.map(({ name }: { name: string }) => name),
        [wrong],
      )
    })

  it('taken: today, the last day, a CNPJ with letters, written as people do, and a tax id in the place of documents', async () => {
    await issue(boleto, { 'customParameters[CUSTOM_due_date]': written(dayIn(0)) })
    await issue(boleto, { 'customParameters[CUSTOM_due_date]': written(dayIn(1825)) })
    await issue(boleto, { 'customParameters[CUSTOM_CPF_number]': '12.ABC.345/01DE-35' })
    await issue(boleto, {
      'customParameters[CUSTOM_CPF_number]': '-',
      'customer.identificationDocType': 'TAXSTATEMENT',
      'customer.identificationDocId': '111.444.777-35',
    })
  })

  it('a lenient channel does without what no bank needs, and takes the hyphen of a CEP', async () => {
    const lenient = { entityId: sandbox.lenientEntityId, 'customer.email': '-', 'customer.ip': '-', shopperResultUrl: '-' }
    await issue(boleto, { ...lenient, 'billing.postcode': '01310-100' })
    const { status, body } = await ask(boleto, { ...lenient, 'billing.street1': '-' })
    assert.deepEqual([status, body.result.parameterErrors[0].name], [400, 'billing.street1'])
  })

  it('a tax id that passes for a card number is none', async () => {
    // A CNPJ that begins and ends like a card of Diners.
    const cnpj = '36000009000140'
    const body = await issue(boleto, { 'customParameters[CUSTOM_CPF_number]': cnpj })
    assert.equal(body.customParameters.CUSTOM_CPF_number, cnpj)
  })
})

describe('when something goes wrong', () => {
  const countTo = (next: number) => gateway.pool.query(`update slip_numbers set next = $1 where account = 'itau-demo'`, [next])
  const counted = async (): Promise<number> =>
    (await gateway.pool.query(`select next from slip_numbers where account = 'itau-demo'`)).rows[0].next
  const leftOf = async (account: string): Promise<number | undefined> => {
    const measure = measureSlipNumbers(database, readSlipsFile(readFileSync('seeds/slips.json', 'utf8'), 'test'))
    await measure.measure()
    return measure.figures[0]!.read().find(([labels]) => labels.account === account)?.[1]
  }
  /** As if its process had died before the answer. */
  const issueAnew = async (id: string): Promise<Body> => {
    for (const table of ['answers', 'slips', 'events'])
      await gateway.pool.query(`delete from ${table} where payment_id = $1`, [id])
    await gateway.pool.query(`insert into due_work (kind, merchant_id, subject_id, due_at) values ('recover', $1, $2, now())`, [
      sandbox.merchantId,
      id,
    ])
    return eventually(async () => {
      const body = await read(id)
      return body.result.code === success && body
    }, 'the slip is issued')
  }

  it('a process that died before its answer: the slip is issued with a number that nobody has heard of', async () => {
    const slip = await issue()
    const again = await issueAnew(slip.id)
    assert.equal(Number(again.resultDetails.acquirerTxId1), Number(slip.resultDetails.acquirerTxId1) + 1)
    assert.equal((await findSlip(gateway.pool, 'itau-demo', slip.resultDetails.acquirerTxId1))?.paymentId, undefined)
    assert.equal((await findSlip(gateway.pool, 'itau-demo', again.resultDetails.acquirerTxId1))?.paymentId, slip.id)
    await booksAgree()
  })

  it('a start takes no numbers, and a slip takes one', async () => {
    const before = await counted()
    await gateway.restart()
    await gateway.restart()
    assert.equal(await counted(), before)
    const issued = await Promise.all(Array.from({ length: 20 }, () => issue()))
    assert.equal(new Set(issued.map(slip => slip.resultDetails.acquirerTxId1)).size, 20)
    assert.equal(await counted(), before + 20)
  })

  it('the last numbers of an account are given, then it issues nothing and says so', async () => {
    await countTo(10 ** 8 - 3)
    assert.equal(await leftOf('itau-demo'), 3)
    const codes = (await Promise.all(Array.from({ length: 8 }, () => ask(boleto)))).map(({ body }) => body.result.code)
    assert.deepEqual(codes.sort(), [...Array(3).fill(success), ...Array(5).fill('900.100.600')])
    const { status, body } = await ask(boleto)
    assert.deepEqual([status, body.result.code, body.resultDetails], [400, '900.100.600', undefined])
    assert.equal(await leftOf('itau-demo'), 0)
    await issue(oxxo)
  })

  it('where another cell gives out numbers none is given here, though nothing was started anew', async () => {
    await countTo(10_000)
    const elsewhere = (is: boolean) =>
      gateway.pool.query(`update slip_numbers set elsewhere = $1 where account = 'itau-demo'`, [is])
    await elsewhere(true)
    assert.equal((await ask(boleto)).body.result.code, '900.100.600')
    assert.equal(await leftOf('itau-demo'), undefined)
    await elsewhere(false)
    assert.equal((await issue()).resultDetails.acquirerTxId1, '00010000')
  })

  it('a number that a slip has already is passed over: each slip gets one of its own, at once', async () => {
    await countTo(1)
    const codes = await Promise.all([1, 2, 3].map(() => issue()))
    const given = codes.map(({ resultDetails }) => resultDetails.acquirerTxId1)
    for (const [at, number] of given.entries())
      assert.equal((await findSlip(gateway.pool, 'itau-demo', number))?.paymentId, codes[at]!.id)
    await gateway.pool.query(`update slip_numbers set next = 1 where account = 'oxxo-demo'`)
    await issue(oxxo)
    await countTo(20_000)
  })
})

describe('captures, refunds and reversals', () => {
  const brl = (amount: string) => ({ amount, currency: 'BRL' })
  const refer = async (id: string, fields: Fields) => (await gateway.refer(id, fields)).body.result.code

  it('a slip is no money: it is not captured, and not refunded', async () => {
    const slip = await issue()
    assert.equal(await refer(slip.id, { paymentType: 'CP', ...brl('123.45') }), '700.400.510')
    await idOf(receive(slip))
    assert.equal(await refer(slip.id, { paymentType: 'RF', ...brl('1.00') }), '700.400.520')
    await booksAgree()
  })

  it('a slip that nobody has paid is withdrawn once, after any time; a receipt is not reversed', async () => {
    const slip = await issue()
    await gateway.advance('100h')
    assert.equal(await refer(slip.id, { paymentType: 'RV', ...brl('1.00') }), '700.300.800')
    const { body } = await gateway.refer(slip.id, { paymentType: 'RV' })
    assert.deepEqual([body.result.code, body.resultDetails.ExtendedDescription], [success, 'The slip is withdrawn'])
    assert.equal(await refer(slip.id, { paymentType: 'RV' }), '700.400.300')
    await booksAgree()
    // The bank took the money all the same.
    const id = await idOf(receive(slip))
    assert.equal(await refer(id, { paymentType: 'RV' }), '700.400.530')
    await booksAgree()
  })

  it('a slip that was paid is not withdrawn', async () => {
    const slip = await issue()
    await idOf(receive(slip, { amount: 1 }))
    assert.equal(await refer(slip.id, { paymentType: 'RV' }), '700.400.300')
  })
})

describe('receipts', () => {
  it('what was paid is a payment of its own: read, searched, told, booked once', async () => {
    const receiver = await startReceiver()
    const endpoint = await addEndpoint(gateway.pool, { url: receiver.url })
    try {
      const slip = await issue()
      const key = 'told'
      const id = await idOf(receive(slip, { key, creditedOn: dayIn(5) }))
      assert.deepEqual(await receive(slip, { key }), { kind: 'known', paymentId: id })
      assert.deepEqual(await receive(slip, { key, amount: 1 }), { kind: 'refused', why: 'otherReceipt' })
      const body = await read(id)
      assert.deepEqual(
        [
          body.paymentType,
          body.referencedId,
          body.amount,
          body.currency,
          body.result.code,
          body.merchantTransactionId,
          body.paymentBrand,
        ],
        ['RC', slip.id, '123.45', 'BRL', success, 'order-0042', 'BOLETO'],
      )
      assert.equal(body.resultDetails.creditedOn, dayIn(5))
      const today = body.timestamp.slice(0, 10)
      const found = await gateway.get('/v3/query', {
        entityId: sandbox.entityId,
        'date.from': `${today} 00:00:00`,
        'date.to': `${today} 23:59:59`,
        paymentTypes: 'RC',
        paymentMethods: 'PP',
      })
      assert.ok(found.body.records.some((one: Body) => one.id === id))
      assert.ok(found.body.records.every((one: Body) => one.paymentType === 'RC'))
      const told = await eventually(
        async () => receiver.received.map(one => opened(one, endpoint.secret)).find(one => one.payload.id === id),
        'the receipt is told',
      )
      assert.deepEqual([told.payload.paymentType, told.payload.referencedId], ['RC', slip.id])
      const { rows } = await gateway.pool.query('select debit, credit, amount, state from journal where payment_id = $1', [id])
      assert.deepEqual(rows, [{ debit: 'bank', credit: 'merchant', amount: 12345, state: 'posted' }])
      await booksAgree()
    } finally {
      await receiver.close()
    }
  })

  it('the same file read by many at a time makes one receipt', async () => {
    const slip = await issue()
    const said = await Promise.all(Array.from({ length: 8 }, () => receive(slip, { key: 'race' })))
    assert.deepEqual(said.map(({ kind }) => kind).sort(), [...Array(7).fill('known'), 'recorded'])
    await booksAgree()
  })

  it('more, less, late, and twice: each as it was paid, and each said', async () => {
    const slip = await issue()
    const details = async (more: Partial<Receipt>) => {
      const { DUPLICATE, LATE, OVERPAID, UNDERPAID } = (await read(await idOf(receive(slip, more)))).resultDetails
      return [DUPLICATE, LATE, OVERPAID, UNDERPAID]
    }
    assert.deepEqual(await details({ amount: 12000 }), [undefined, undefined, undefined, '3.45'])
    assert.deepEqual(await details({ amount: 345, paidOn: dayIn(30) }), [undefined, 'true', undefined, undefined])
    assert.deepEqual(await details({ amount: 12345 }), ['true', undefined, undefined, undefined])
    assert.deepEqual(await details({ amount: 12346, flags: { late: true } }), ['true', 'true', '0.01', undefined])
    await booksAgree()
  })

  it('what fits no slip is refused by name, and nothing is recorded', async () => {
    const slip = await issue()
    const count = async () => (await gateway.pool.query('select 1 from payments')).rowCount
    const earlier = await count()
    assert.deepEqual(await receive(slip, { number: '88888888' }), { kind: 'refused', why: 'noSlip' })
    assert.deepEqual(await receive(slip, { account: 'oxxo-demo' }), { kind: 'refused', why: 'noSlip' })
    assert.deepEqual(await receive(slip, { currency: 'MXN' }), { kind: 'refused', why: 'currencyDiffers' })
    assert.deepEqual(await receive(slip, { amount: 0 }), { kind: 'refused', why: 'nothingPaid' })
    assert.equal(await count(), earlier)
  })

  it('what became of it and the receipt are one transaction', async () => {
    const slip = await issue()
    const parts = { database, directory, clock: systemClock, random: systemRandom, build: 'test' }
    const receipt = {
      account: 'itau-demo',
      number: slip.resultDetails.acquirerTxId1,
      key: 'dies',
      amount: 12345,
      currency: 'BRL',
      paidOn: dayIn(0),
    }
    await assert.rejects(
      recordReceipt(parts, receipt, async () => {
        throw new Error('the process died')
      }),
      /died/,
    )
    assert.equal((await recordReceipt(parts, receipt)).kind, 'recorded')
    await booksAgree()
  })

  it('a merchant cannot send one', async () => {
    const slip = await issue()
    const { body } = await gateway.refer(slip.id, { paymentType: 'RC', amount: '1.00', currency: 'BRL' })
    assert.equal(body.result.code, '700.400.562')
  })
})
