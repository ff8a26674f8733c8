// Records of requests: what developers read of a request that failed, and what nobody may read of any.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { systemClock, systemRandom, timeOrderedId } from '../src/platform/clock.ts'
import { keepRequests } from '../src/reporting/requests/keep.ts'
import { heldForm, maskingOf, type RequestContent, type RequestTrace } from '../src/reporting/requests/record.ts'
import { findRequests } from '../src/reporting/requests/store.ts'
import { costsTimes } from './support/costs.ts'
import { eventually, sandbox, type TestGateway, testGateway } from './support/gateway.ts'

let gateway: TestGateway
before(async () => {
  gateway = await testGateway()
})
after(() => gateway.stop())

type Row = Awaited<ReturnType<typeof findRequests>>[number] & { content: RequestContent }

/** The record of the request that ended so, once it is written. */
const recorded = (ndc: string): Promise<Row> =>
  eventually(async () => {
    const found = (await findRequests(gateway.pool, {}, 1000)).find(({ number }) => ndc.endsWith(number))
    return found && ({ ...found, content: JSON.parse(found.content) } as Row)
  }, 'the request is recorded')

function maskedRequest(trace: RequestTrace, sandbox: boolean) {
  const masking = maskingOf(trace, sandbox)
  for (;;) {
    const step = masking.next()
    if (step.done) return step.value
  }
}

/** Of a large form, of which beginnings are held. */
function shownOfLarge(value: string, name = 'customParameters[note]'): string {
  const form = heldForm({ pairs: [[name, value], ...Array(20).fill(['customParameters[more]', 'y '.repeat(500)])] })
  assert.equal(form.isCut, true)
  const trace = {
    method: 'POST',
    route: '/v1/payments',
    path: '/v1/payments',
    status: 200,
    milliseconds: 1,
    number: '0',
    at: 0,
    form,
  }
  return maskedRequest(trace, true).content.fields[0]![1]
}

const fieldsOf = ({ content }: Row) => Object.fromEntries(content.fields)

describe('a request', () => {
  it('is recorded with its payment, and no secret stands in it', async () => {
    const { body } = await gateway.pay({ merchantTransactionId: 'order-0001', merchantMemo: 'Banco 341 1234-5' })
    const row = await recorded(body.ndc)
    assert.deepEqual(
      [row.method, row.path, row.status, row.paymentId, row.result, row.merchantId, row.entityId],
      ['POST', '/v1/payments', 200, body.id, body.result.code, sandbox.merchantId, sandbox.entityId],
    )
    assert.deepEqual(fieldsOf(row)['card.number'], '420000•••0000')
    assert.deepEqual([fieldsOf(row)['card.cvv'], fieldsOf(row).merchantMemo], ['•••', '•••'])
    assert.deepEqual([fieldsOf(row).merchantTransactionId, fieldsOf(row).entityId], ['order-0001', sandbox.entityId])
    assert.doesNotMatch(JSON.stringify(row), /4200000000000000|341 1234|"123"/)
  })

  it('that was refused names what was wrong, and what was probably meant', async () => {
    const { body } = await gateway.pay({ amuont: '5.00', currency: 'EURO', card_number: '4200000000000000' })
    const row = await recorded(body.ndc)
    assert.equal(row.status, 400)
    assert.deepEqual(row.content.parameterErrors, body.result.parameterErrors)
    assert.equal(row.content.parameterErrors?.[0]?.name, 'currency')
    assert.ok(row.content.unknown?.includes('amuont: did you mean amount?'))
    assert.doesNotMatch(JSON.stringify(row), /4200000000000000|5\.00(?!\dZ)/) // the values of what is not known
  })

  it('with a card number in the wrong place, in a name, a value or the path, hides it', async () => {
    const number = '4242424242424242'
    const replies = [
      await gateway.pay({ merchantInvoiceId: number }),
      await gateway.pay({ [`customParameters[${number}]`]: number }),
      await gateway.pay({ 'card.cvv': number, 'card.holder': number }),
      await gateway.get(`/v1/payments/${number}`, { entityId: sandbox.entityId, merchantTransactionId: number }),
      await gateway.get(`/v1/nothing/${number}`, { entityId: sandbox.entityId }),
    ]
    for (const { body } of replies) assert.ok(!JSON.stringify(await recorded(body.ndc)).includes(number))
  })

  it('with a card number where a long value of a large form is cut hides it', async () => {
    const padding = Object.fromEntries(
      Array.from({ length: 12 }, (_, at) => [`customParameters[padding${at}]`, 'y '.repeat(450)]),
    )
    for (const number of ['4200000000000000', '4111 1111 1111 1111', '%34242424242424242'])
      for (let before = 236; before < 256; before++) {
        const value = `${'x'.repeat(before)} ${number}`
        const { body } = await gateway.pay({ ...padding, 'customParameters[note]': value, [`customParameters[${value}]`]: '' })
        const shown = JSON.stringify((await recorded(body.ndc)).content)
        assert.doesNotMatch(shown, /x\D{0,3}\d(\D{0,3}\d){9}/, `${number} after ${before}`)
        assert.match(shown, /xxxxx/)
      }
  })

  it('with a card number in the escapes of JSON where a value of a large form is cut hides it', () => {
    const [open, escaped] = ['4539578763621486', [...'4539578763621486'].map(one => `\\u003${one}`).join('')]
    for (let before = 60; before < 180; before++) {
      const value = `${'%79'.repeat(before)} ${open} %20${escaped} ${'z'.repeat(9000)}`
      const kept = shownOfLarge(value)
      const meant = kept.replace(/\\u([0-9a-f]{4})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
      assert.ok(meant.replace(/\D/g, '').length <= 8, `${before}: ${meant.slice(-40)}`)
    }
  })

  it('with a CVV whose card number stands in what is cut of a large form hides it', () => {
    const value = `{"securityCode":"944","address":"${'a street '.repeat(1000)}","number":"4539578763621486"}`
    assert.match(shownOfLarge(value, 'customParameters[card]'), /^\{"securityCode":"xxx"/)
  })

  it('with card numbers where a value of a large form is cut twice hides each', () => {
    for (const between of ['%252520'.repeat(68), ' '.repeat(470), '%2520'.repeat(80), `<b class="${'z'.repeat(180)}">`.repeat(3)])
      for (let more = 0; more < 24; more++)
        for (const number of [
          '5555555555554444',
          '4%2D2%2D4%2D2%2D4242%2D42424242',
          `424242424242<b ${'z'.repeat(190)}><b ${'z'.repeat(190)}>4242`,
        ]) {
          const value = `4111111111111111 ${between}${'.'.repeat(more)}${number}${' and more'.repeat(40)}`
          const shown = shownOfLarge(value)
          assert.doesNotMatch(shown.replace(/%2D/g, ''), /[45]\d{11}/, `${more} ${between.slice(0, 9)} ${number}`)
        }
  })

  it('is not held with more fields than are shown of it', () => {
    const pairs = Array.from({ length: 2000 }, (_, at): [string, string] => [`a${at}`, '1'])
    const form = { pairs, broken: new Set(pairs.map(([name]) => name)) }
    assert.deepEqual(heldForm(form), { pairs: pairs.slice(0, 100) })
    const long = pairs.map(([name]): [string, string] => [name, 'y'.repeat(1000)])
    const held = heldForm({ ...form, pairs: long })
    assert.deepEqual(Object.keys(held), ['pairs', 'isCut'])
    assert.deepEqual(
      held.pairs,
      long.slice(0, 63).map(([name]) => [name, 'y'.repeat(511)]),
      '32 KiB',
    )
    // As long as it may be and held whole, one sign more, and one that does not go on.
    const whole = { pairs: [['a', 'y'.repeat(8191)]] as [string, string][] }
    assert.deepEqual(heldForm(whole), whole)
    // A secret at its end is not looked for, nor shown.
    const costly = { pairs: [['descriptor', `${'y'.repeat(2100)} cvv 947`]] as [string, string][] }
    assert.equal(
      maskedRequest(trace('costly', { route: '/v1/payments', form: costly }), true).content.fields[0]![1],
      `${'y'.repeat(255)}…`,
    )
    for (const [length, shown] of [
      [255, 'y'.repeat(255)],
      [256, `${'y'.repeat(255)}…`],
    ] as const)
      assert.equal(shownOfLarge('y'.repeat(length)), shown)
  })

  it('of a stranger costs no more for what is not shown of it, and nothing is looked for before it is known who asks', async () => {
    // Of the worst kind: at each digit a number may begin.
    const form = (length: number, unit = '/0/00') => ({
      pairs: Array.from({ length: 100 }, (_, at): [string, string] => [`a${at}`, `00${unit.repeat(length / 500)}%2541`]),
    })
    const [small, large, plain] = [form(32_000), form(3_200_000), form(32_000, 'words')]
    // A hundred times, were all of it looked at.
    await costsTimes(
      20,
      () => heldForm(small),
      () => heldForm(large),
      'a long form',
    )
    await costsTimes(
      5,
      () => heldForm(plain),
      () => heldForm(small),
      'a form full of numbers',
    )
  })

  it('that names a checkout does not give it away', async () => {
    const made = await gateway.post('/v1/checkouts', {
      entityId: sandbox.entityId,
      amount: '1.00',
      currency: 'EUR',
      paymentType: 'DB',
    })
    const { body } = await gateway.get(`/v1/checkouts/${made.body.id}/payment`, { entityId: sandbox.entityId })
    const [random] = made.body.id.split('.')
    for (const written of [
      made.body.id.replace('.', '%2E'),
      made.body.id.replace(/^./, (one: string) => `%${Buffer.from(one).toString('hex')}`),
    ])
      assert.equal(
        (await gateway.get(`/v1/checkouts/${written}/payment`, { entityId: sandbox.entityId })).body.result.code,
        body.result.code,
      )
    // Written otherwise it is none, and whoever reads it knows what was meant.
    for (const written of [made.body.id.toLowerCase(), random, `x${made.body.id}`, made.body.id.replace('.', '_')])
      assert.notEqual((await gateway.get(`/v1/checkouts/${written}/payment`, { entityId: sandbox.entityId })).status, 200)
    const found = await eventually(async () => {
      const rows = await findRequests(gateway.pool, {}, 100)
      return rows.filter(({ path }) => path.startsWith('/v1/checkouts/')).length >= 7 && rows
    }, 'the readings are recorded')
    assert.ok(made.body.id && body.result)
    for (const id of [made.body.id, random, random.toLowerCase()])
      for (const route of ['payments', 'query', 'registrations', 'threeDSecure', 'nothing'])
        await gateway.get(`/v1/${route}/${id}`, { entityId: sandbox.entityId })
    const last = await gateway.get(`/v1/payments/${random.toLowerCase()}`, { entityId: sandbox.entityId })
    assert.equal((await recorded(last.body.ndc)).path, '/v1/payments/…')
    assert.equal((await recorded(last.body.ndc)).paymentId, null)
    const every = await findRequests(gateway.pool, {}, 100)
    assert.ok(every.filter(({ path }) => path === '/v1/payments/…').length >= 3)
    assert.ok(!every.some(row => JSON.stringify(row).toUpperCase().includes(random)))
    assert.deepEqual(
      found.filter(row => JSON.stringify(row).toUpperCase().includes(random) || row.path.includes('%')),
      [],
    )
    assert.equal(made.body.ndc, made.body.id)
    assert.ok(!gateway.logged.some(line => line.toUpperCase().includes(random)))
  })

  it('shows of its path words of routes and ids of payments, and in a sandbox what is nothing but letters: else it may be a secret', () => {
    const id = timeOrderedId(Date.now(), systemRandom)
    const shown = (path: string, sandbox: boolean, more = {}) =>
      maskedRequest(
        { method: 'GET', path, status: 404, milliseconds: 1, number: '0'.repeat(32), at: 0, caller, ...more },
        sandbox,
      )
    const caller = { merchantId: sandbox.merchantId, entityId: sandbox.entityId }
    const secrets = [
      `${id}&authentication.password=our-shop-1`,
      `${id}%3Fauthentication.password=our-shop-1`,
      `${id};authentication.password=our-shop-1`,
      'Bearer%20our-shop-1',
      'our-shop-1',
      '0'.repeat(32),
    ]
    for (const sandbox of [true, false]) {
      for (const secret of secrets) assert.equal(shown(`/v1/payments/${secret}`, sandbox).path, '/v1/payments/…')
      const { path, paymentId } = shown(`/v1/payments/${id}`, sandbox)
      assert.deepEqual([path, paymentId], [`/v1/payments/${id}`, id])
      assert.equal(shown(`/v1/paymnets/${id}`, sandbox).path, `/v1/${sandbox ? 'paymnets' : '…'}/${id}`)
      const form = {
        pairs: [
          ['amount', '1.00&authentication.password=our-shop-1'],
          ['currency', 'EUR\nmerchantMemo=our'],
        ] as const,
      }
      assert.deepEqual(shown('/v1/payments', sandbox, { form }).content.fields, [
        ['amount', '1.00…'],
        ['currency', 'EUR…'],
      ])
      assert.ok(shown(`/v1/${'/a'.repeat(100_000)}`, sandbox).path.length <= 200)
      const errors = ['amount', 'our-shop-1'].map(name => ({ name, value: '', message: 'is wrong' }))
      const answer = JSON.stringify({ result: { code: '200.300.404', parameterErrors: errors } })
      const told = shown('/v1/payments', sandbox, { answer }).content.parameterErrors!
      assert.deepEqual(
        told.map(({ name }) => name),
        ['amount', sandbox ? 'our-shop-1' : '•••'],
      )
    }
  })

  it('shows of a secret nothing, however it looks, of a card number what an answer tells of it', () => {
    const fields = [
      ['card.number', '4200000000000000', '420000•••0000'],
      ['card.cvv', '947', '•••'],
      ['authentication.password', 'Tr0ub4dor-and-secret', '•••'],
      ['authentication.password', '8317', '•••'],
      ['authentication.password', '4200000000000000', '•••'],
      ['virtualAccount.password', '8317', '•••'],
      ['virtualAccount.password', 'canary account password', '•••'],
      ['merchantMemo', 'DE02 1203', '•••'],
    ] as const
    for (const sandbox of [true, false]) {
      const { content } = maskedRequest(
        {
          method: 'POST',
          path: '/v1/payments',
          route: '/v1/payments',
          status: 400,
          milliseconds: 1,
          number: '0'.repeat(32),
          at: 0,
          caller: { merchantId: '0'.repeat(32), entityId: '1'.repeat(32) },
          form: { pairs: fields.map(([name, value]) => [name, value] as const) },
        },
        sandbox,
      )
      assert.deepEqual(
        content.fields,
        fields.map(([name, , shown]) => [name, shown]),
      )
    }
  })

  it('of a stranger is not recorded for the merchant that it names', async () => {
    const { body } = await gateway.post(
      '/v1/payments',
      { entityId: sandbox.entityId, amount: '1.00' },
      { Authorization: 'Bearer bm90aGluZ3xub3RoaW5n' },
    )
    const row = await recorded(body.ndc)
    assert.equal(row.status, 403)
    assert.deepEqual([row.merchantId, row.entityId, row.tokenId], ['0'.repeat(32), null, null])
    assert.ok(!(await findRequests(gateway.pool, { merchantIds: [sandbox.merchantId] }, 1000)).some(({ id }) => id === row.id))
  })

  it('is found by the payment that it made or names', async () => {
    const { body } = await gateway.pay()
    const read = await gateway.get(`/v1/payments/${body.id}`, { entityId: sandbox.entityId })
    await recorded(read.body.ndc)
    const refund = await gateway.refer(body.id, { paymentType: 'RF', amount: '1.00', currency: 'EUR' })
    await recorded(refund.body.ndc)
    const found = await findRequests(gateway.pool, { paymentId: body.id }, 10)
    assert.deepEqual(
      found.map(({ method }) => method),
      ['GET', 'POST'],
    )
  })

  it('is no page, no script and nothing that only a sandbox has', async () => {
    for (const path of ['/health', '/v1/paymentWidgets.js', '/v1/resultcodes']) await fetch(gateway.baseUrl + path)
    await gateway.advance('1ms')
    await recorded((await gateway.pay()).body.ndc)
    const found = await findRequests(gateway.pool, {}, 1000)
    assert.ok(!found.some(({ path }) => /health|\.js|resultcodes|sandbox/.test(path)))
  })
})

const trace = (number: string, more: Partial<RequestTrace> = {}): RequestTrace => ({
  method: 'POST',
  path: '/v1/payments',
  status: 200,
  milliseconds: 1,
  number,
  at: systemClock.real(),
  ...more,
})

describe('records are bounded', () => {
  const parts = () => ({
    clock: systemClock,
    random: systemRandom,
    database: { work: gateway.pool },
    log: silent,
    sandbox: true,
  })
  const silent = { debug() {}, info() {}, warn() {}, error() {} }
  const numbers = async (merchantId: string) =>
    (await findRequests(gateway.pool, { merchantIds: [merchantId] }, 1000)).map(({ number }) => number)

  it('of each merchant the newest are left, whatever strangers send', async () => {
    const merchantId = 'a'.repeat(32)
    const keeper = keepRequests(parts(), 'all', { most: 3, eraseEveryMilliseconds: 50 })
    const caller = { merchantId, entityId: merchantId }
    keeper.record(trace('stranger'))
    const before = systemClock.real() - 100
    for (let at = 0; at < 60; at++) keeper.record(trace(`of ${at}`, { caller, at: before + at }))
    await keeper.stop()
    const again = keepRequests(parts(), 'all', { most: 3, eraseEveryMilliseconds: 50 })
    again.record(trace('last', { caller }))
    const left = async () => (await numbers(merchantId)).join()
    await eventually(async () => (await left()) === 'last,of 59,of 58', 'the oldest are gone')
    await again.stop()
    assert.ok((await numbers('0'.repeat(32))).includes('stranger'))
  })

  it('good ones are left out where only failures are asked for, all where none is', async () => {
    const caller = { merchantId: 'c'.repeat(32), entityId: 'c'.repeat(32) }
    for (const which of ['failed', 'none'] as const) {
      const keeper = keepRequests(parts(), which)
      keeper.record(trace(`${which} good`, { caller }))
      keeper.record(trace(`${which} bad`, { caller, status: 400 }))
      await keeper.stop()
    }
    assert.deepEqual(await numbers(caller.merchantId), ['failed bad'])
  })

  it('a request with many fields and long values leaves a small record', () => {
    const pairs = Array.from({ length: 2000 }, (_, at) => [`customParameters[p${at}]`, 'x'.repeat(2000)] as const)
    const { content } = maskedRequest(trace('long', { form: { pairs } }), true)
    assert.ok(JSON.stringify(content).length < 32_000)
  })

  it('in live mode nothing stands of strangers but that they came, and of names that nobody knows what was meant', () => {
    const pairs = [
      ['amuont', '1.00'],
      ['cvv739', ''],
      ['hunter2secret', ''],
      ['descriptor', 'shoes'],
    ] as const
    const form = { pairs, broken: new Set<string>() }
    const caller = { merchantId: 'd'.repeat(32), entityId: 'd'.repeat(32) }
    assert.deepEqual(maskedRequest(trace('live', { form, caller }), false).content, {
      fields: [['descriptor', 'shoes']],
      unknown: ['something like amount'],
    })
    assert.deepEqual(maskedRequest(trace('live', { form }), false).content, { fields: [] })
  })

  it('no more are masked in one piece than take a few milliseconds, and at least one', async () => {
    const written = async (elapsed: () => number) => {
      const counts: number[] = []
      const query = async ({ values }: { values: unknown[][] }) => void counts.push(values[0]!.length)
      const work = { query } as unknown as typeof gateway.pool
      const keeper = keepRequests({ ...parts(), clock: { ...systemClock, elapsed }, database: { work } }, 'all')
      for (let at = 0; at < 60; at++) keeper.record(trace(`of ${at}`))
      await keeper.stop()
      return counts
    }
    assert.deepEqual(await written(() => 0), [50, 10])
    let now = 0
    assert.deepEqual(await written(() => (now += 0.4)), Array(20).fill(3))
    assert.deepEqual(await written(() => (now += 100)), Array(60).fill(1))
  })

  it('one that costs much is masked in pieces, and those of others are written meanwhile', async () => {
    const merchants: string[] = []
    let now = 0
    const query = async ({ values }: { values: string[][] }) => void merchants.push(...values[0]!)
    const work = { query } as unknown as typeof gateway.pool
    const clock = { ...systemClock, elapsed: () => now++ }
    const keeper = keepRequests({ ...parts(), clock, database: { work } }, 'all')
    const [one, other] = ['a'.repeat(32), 'b'.repeat(32)]
    const record = (merchantId: string, fields: number) => {
      const pairs = Array.from({ length: fields }, (_, at): [string, string] => [`customParameters[a${at}]`, 'x'])
      keeper.record(trace('x', { caller: { merchantId, entityId: merchantId }, form: { pairs } }))
    }
    record(one, 60)
    for (let at = 0; at < 10; at++) record(other, 0)
    await keeper.stop()
    assert.equal(merchants.length, 11)
    assert.ok(merchants.indexOf(one) >= 8, `${merchants}`)
  })

  it('one merchant’s come between those of another, who has no more than half of what may wait', async () => {
    const merchants: string[] = []
    const query = async ({ values }: { values: string[][] }) => void merchants.push(...values[0]!)
    const work = { query } as unknown as typeof gateway.pool
    const keeper = keepRequests({ ...parts(), clock: { ...systemClock, elapsed: () => 0 }, database: { work } }, 'all')
    const [one, other] = ['a'.repeat(32), 'b'.repeat(32)]
    const record = (merchantId: string) => keeper.record(trace('x', { caller: { merchantId, entityId: merchantId } }))
    for (let at = 0; at < 3000; at++) record(one)
    for (let at = 0; at < 3; at++) record(other)
    await keeper.stop()
    assert.deepEqual(merchants.slice(0, 8), [one, other, one, other, one, other, one, one])
    assert.deepEqual(
      [one, other].map(merchant => merchants.filter(of => of === merchant).length),
      [1000, 3],
    )
  })

  it('a database that is away stops no request', async () => {
    const gone = { query: () => Promise.reject(new Error('away')) } as unknown as typeof gateway.pool
    const keeper = keepRequests({ ...parts(), database: { work: gone } }, 'all')
    keeper.record(trace('lost'))
    await keeper.stop()
  })
})
