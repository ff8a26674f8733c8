// What channels can be set to, by a seed of their own: brands, currencies, types, descriptors, modes, limits on reading, rules of the
// simulator, dispatching. And that one merchant's payments do not exist for another.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { limitReads } from '../src/http/v1/statusReads.ts'
import type { Seed } from '../src/merchants/seed.ts'
import type { WrittenChannelSettings } from '../src/merchants/settings.ts'
import { type Fields, type Reply, sandbox, type TestGateway, testGateway, visa } from './support/gateway.ts'

const id = (number: number) => `7e57c0de${String(number).padStart(24, '0')}`
const token = 'dGVzdC1jaGFubmVscy1vbmx5LXRva2Vu'
const otherToken = 'b3RoZXItbWVyY2hhbnQtb25seS10b2tlbg=='
const [eurosToken, dollarsToken] = ['token-of-the-channel-for-euros', 'token-of-the-channel-for-dollars']

const channels = {
  brands: { brands: ['VISA'] },
  electron: { brands: ['VISAELECTRON'] },
  currencies: { currencies: ['EUR', 'JPY'] },
  types: { paymentTypes: ['DB'] },
  undetected: { brandDetection: false },
  replacing: { descriptor: 'replace' },
  appending: { descriptor: 'append' },
  ignoring: { descriptor: 'ignore' },
  disabled: { disabled: true },
  live: { mode: 'live' },
  throttled: { statusReadsPerMinute: 2 },
  ruled: {
    simulatorRules: [
      { match: { last4: '1111' }, code: '800.100.159' },
      { match: { brand: 'MASTER', amount: '13.00' }, code: '800.100.162' },
      { match: { paymentType: 'CP', amount: '66.00' }, code: '800.100.152' },
      { match: { bin: '424242', currency: 'USD' }, code: '000.000.000' },
      { match: { bin: '424242' }, code: '100.400.000' },
    ],
  },
  noExpiryCheck: { refuseExpiredCards: false },
  lenientExpiryCheck: { lenient: true, refuseExpiredCards: true },
  noCvv: { requireCvv: false },
} satisfies Record<string, WrittenChannelSettings>

const names = Object.keys(channels) as (keyof typeof channels)[]
const channel = Object.fromEntries(names.map((name, at) => [name, id(100 + at)])) as Record<keyof typeof channels, string>
const merchant = { many: id(1), other: id(2), dispatching: id(3), stray: id(4) }
const otherChannel = id(200)
const otherThrottled = id(201)

const seed: Seed = {
  psp: { id: '5a11d0000000000000000000000000a0', name: 'Sandbox' },
  divisions: [
    {
      id: id(10),
      name: 'Division of tests',
      merchants: [
        {
          id: merchant.many,
          name: 'Merchant of many channels',
          channels: names.map(name => ({ id: channel[name], name, settings: channels[name] })),
        },
        {
          id: merchant.other,
          name: 'Other merchant',
          channels: [
            { id: otherChannel, name: 'Other channel' },
            { id: otherThrottled, name: 'Other throttled channel', settings: { statusReadsPerMinute: 2 } },
          ],
        },
        {
          id: merchant.dispatching,
          name: 'Dispatching merchant',
          settings: {
            channelDispatching: [
              { channel: id(301), brands: ['AMEX'] },
              { channel: id(302), currencies: ['USD', 'CAD'] },
              { channel: id(303), brands: ['VISA', 'MASTER'], currencies: ['EUR'] },
            ],
          },
          channels: [
            { id: id(301), name: 'amex' },
            { id: id(302), name: 'dollars' },
            { id: id(303), name: 'euros' },
          ],
        },
      ],
    },
  ],
  tokens: [
    { label: 'division', token, entities: [id(10)] },
    { label: 'other', token: otherToken, entities: [otherChannel] },
    { label: 'euros', token: eurosToken, entities: [id(303)] },
    { label: 'dollars', token: dollarsToken, entities: [id(302)] },
    { label: 'other user', userId: id(400), password: 'not-for-legacy', entities: [merchant.other] },
  ],
}

let gateway: TestGateway
before(async () => {
  gateway = await testGateway({ seed })
})
after(() => gateway.stop())

const as = (bearer: string) => ({ Authorization: `Bearer ${bearer}` })
const post = (path: string, fields: Fields, bearer = token) => gateway.post(path, fields, as(bearer))
const get = (path: string, query: Fields, bearer = token) => gateway.get(path, query, as(bearer))
const pay = (entityId: string, fields: Fields = {}) =>
  post('/v1/payments', { entityId, paymentType: 'DB', amount: '92.00', currency: 'EUR', ...visa, ...fields })

function check({ status, body }: Reply, wanted: number, code: string, fields: Fields = {}): Reply['body'] {
  assert.equal(`${status} ${body.result.code}`, `${wanted} ${code}`, JSON.stringify(body))
  for (const [name, value] of Object.entries(fields)) assert.equal(body[name], value, `${name} of ${JSON.stringify(body)}`)
  return body
}

const master = { paymentBrand: 'MASTER', 'card.number': '5454545454545454' }
const unbranded = { paymentBrand: '' }

it('whoever reads many payments does not let another merchant read one more often', () => {
  const reads = limitReads()
  const own = () => reads('one', 'a payment', 2, 0)
  assert.deepEqual([own(), own()], [0, 0])
  for (let at = 0; at < 10_001; at++) reads('other', String(at), 2, 0)
  assert.equal(own(), 60)
  assert.deepEqual(
    [1, 2, 3].map(() => reads('other', '10000', 2, 0)),
    [0, 60, 60],
  )
  assert.deepEqual(
    [1, 2, 3].map(() => reads('other', '0', 2, 0)),
    [0, 0, 60],
    'of one merchant some are forgotten',
  )
})

describe('a channel takes what it is set up for', () => {
  it('brands: a brand that is not set up is told apart from one that does not exist', async () => {
    check(await pay(channel.brands), 200, '000.100.110')
    const refused = check(await pay(channel.brands, master), 400, '600.200.500', { paymentBrand: 'MASTER', amount: '92.00' })
    assert.match(refused.id, /^[0-9a-f]{32}$/)
    check(await pay(channel.brands, { paymentBrand: 'NOSUCH' }), 400, '100.100.501')
  })

  it('brands: a detected brand must be set up too, and a number of two brands goes to the one that is', async () => {
    check(await pay(channel.brands, { ...master, ...unbranded }), 400, '600.200.500')
    const electron = { ...unbranded, 'card.number': '4917300800000000' }
    check(await pay(channel.brands, electron), 200, '000.100.110', { paymentBrand: 'VISA' })
    check(await pay(channel.electron, electron), 200, '000.100.110', { paymentBrand: 'VISAELECTRON' })
  })

  it('currencies', async () => {
    check(await pay(channel.currencies), 200, '000.100.110')
    check(await pay(channel.currencies, { currency: 'JPY' }), 200, '000.100.110')
    check(await pay(channel.currencies, { currency: 'USD' }), 400, '600.200.500', { currency: 'USD' })
  })

  it('payment types', async () => {
    check(await pay(channel.types), 200, '000.100.110')
    for (const paymentType of ['PA', 'CD', 'PA.CP']) check(await pay(channel.types, { paymentType }), 400, '600.200.202')
  })

  it('no brand detection: the brand must be stated', async () => {
    check(await pay(channel.undetected, unbranded), 400, '100.100.500')
    check(await pay(channel.undetected), 200, '000.100.110')
  })

  it('a disabled channel takes nothing, but what it took can be read', async () => {
    const { id } = check(await pay(channel.disabled), 400, '500.100.201')
    check(await get(`/v1/payments/${id}`, { entityId: channel.disabled }), 200, '500.100.201')
  })

  it('expiry and CVV', async () => {
    const expired = { 'card.expiryYear': '2018' }
    check(await pay(channel.noExpiryCheck, expired), 200, '000.100.110')
    check(await pay(channel.lenientExpiryCheck, expired), 400, '100.100.303')
    check(await pay(channel.noCvv, { 'card.cvv': '' }), 200, '000.100.110')
    check(await pay(channel.noCvv, { 'card.cvv': '1234' }), 400, '100.100.601')
  })
})

describe('the line on the statement', () => {
  const own = /^\d{4}\.\d{4}\.\d{4} /
  for (const [name, said, unsaid] of [
    ['replacing', /^Shop$/, /^[\d.]{14} replacing$/],
    ['appending', /^[\d.]{14} appending Shop$/, /^[\d.]{14} appending$/],
    ['ignoring', /^[\d.]{14} ignoring$/, /^[\d.]{14} ignoring$/],
  ] as const) {
    it(name, async () => {
      assert.match(check(await pay(channel[name], { descriptor: 'Shop' }), 200, '000.100.110').descriptor, said)
      assert.match(check(await pay(channel[name]), 200, '000.100.110').descriptor, unsaid)
    })
  }
  it('has at most 127 characters', async () => {
    const { descriptor } = check(await pay(channel.appending, { descriptor: '💳'.repeat(127) }), 200, '000.100.110')
    assert.match(descriptor, own)
    assert.equal([...descriptor].length, 127)
  })
  it('a capture, refund or reversal is under the same setting', async () => {
    const { id, descriptor } = check(await pay(channel.ignoring, { descriptor: 'Shop' }), 200, '000.100.110')
    const refund = { entityId: channel.ignoring, paymentType: 'RF', amount: '1.00', currency: 'EUR' }
    check(await post(`/v1/payments/${id}`, refund), 200, '000.100.110', { descriptor })
    check(await post(`/v1/payments/${id}`, { ...refund, descriptor: 'Sale' }), 200, '000.100.110', { descriptor })
  })
})

describe('live channels', () => {
  it('testMode=EXTERNAL is refused, INTERNAL is the simulator', async () => {
    check(await pay(channel.live, { testMode: 'EXTERNAL' }), 400, '600.200.701')
    const { id } = check(await pay(channel.live, { testMode: 'INTERNAL' }), 200, '000.100.110')
    const refund = { entityId: channel.live, paymentType: 'RF', amount: '1.00', currency: 'EUR' }
    check(await post(`/v1/payments/${id}`, refund), 200, '000.100.110')
    check(await post(`/v1/payments/${id}`, { ...refund, testMode: 'INTERNAL' }), 200, '000.100.110')
    check(await post(`/v1/payments/${id}`, { ...refund, testMode: 'EXTERNAL' }), 400, '700.100.600')
  })
  it('without testMode a payment never goes to the simulator', async () => {
    check(await pay(channel.live), 400, '600.200.201')
  })
})

describe('rules of the simulator', () => {
  it('decide on their channel only', async () => {
    const ending = { 'card.number': '4111111111111111' }
    check(await pay(channel.ruled, ending), 400, '800.100.159')
    check(await pay(channel.noCvv, ending), 200, '000.100.110')
    check(await pay(channel.ruled), 200, '000.100.110')
  })
  it('need all that they name, and the first that fits decides', async () => {
    check(await pay(channel.ruled, { ...master, amount: '13.00' }), 400, '800.100.162')
    check(await pay(channel.ruled, { ...master, amount: '13.01' }), 200, '000.100.110')
    check(await pay(channel.ruled, { amount: '13.00' }), 200, '000.100.110')
    check(await pay(channel.ruled, { 'card.number': '4242424242424242' }), 400, '100.400.000')
    check(await pay(channel.ruled, { 'card.number': '4242424242424242', currency: 'USD' }), 200, '000.100.110')
  })
  it('a PA.CP whose capture is declined leaves no hold', async () => {
    const paCp = { paymentType: 'PA.CP', amount: '66.00', merchantTransactionId: 'split-order' }
    check(await pay(channel.ruled, paCp), 400, '800.100.152')
    const { body } = await get('/v1/query', { entityId: channel.ruled, merchantTransactionId: 'split-order' })
    const found = (body.payments as Reply['body'][]).map(({ paymentType, result }) => `${paymentType} ${result.code}`)
    assert.deepEqual(found, ['PA 000.100.110', 'CP 800.100.152', 'RV 000.100.110'])
  })
})

describe('a PA.CP that is sent again under its key', () => {
  const again = async (amount: string) => {
    const fields = { entityId: channel.ruled, paymentType: 'PA.CP', amount, currency: 'EUR', ...visa }
    const send = () =>
      gateway.post('/v1/payments', fields, { ...as(token), 'Idempotency-Key': `split ${amount}`.replace(' ', '-') })
    const first = await send()
    const others = await Promise.all([send(), send()])
    for (const { status, text } of others) assert.deepEqual([status, text], [first.status, first.text])
    return first
  }
  it('gets the same bytes when it succeeded', async () => void check(await again('65.00'), 200, '000.100.110'))
  it('gets the same bytes when its capture was declined', async () => void check(await again('66.00'), 400, '800.100.152'))
})

describe('status reads', () => {
  it('are limited for each payment and minute where the channel says so', async () => {
    const first = check(await pay(channel.throttled), 200, '000.100.110').id
    const second = check(await pay(channel.throttled), 200, '000.100.110').id
    const read = (payment: string, entityId = channel.throttled) => get(`/v1/payments/${payment}`, { entityId })
    check(await read(first), 200, '000.100.110')
    check(await read(first), 200, '000.100.110')
    const refused = check(await read(first), 429, '800.120.100', { id: first })
    assert.equal(refused.result.description, 'Too many requests. Please try again later.')
    assert.match(refused.ndc, new RegExp(`^${channel.throttled}_[0-9a-f]{32}$`))
    const line = gateway.logged.map(text => JSON.parse(text)).findLast(({ message }) => message === 'a caller was turned away')
    assert.deepEqual([line.ndc, line.status, line.address], [refused.ndc.slice(-32), 429, '127.0.0.1'])
    assert.match(line.tokenId, /^[0-9a-f]{32}$/)
    check(await read(second), 200, '000.100.110')
    check(await read(first, channel.brands), 200, '000.100.110')
  })
  it('are those of each way to ask for one', async () => {
    for (const path of ['/v1/payments', '/v1/query', '/v3/query', '/v1/threeDSecure']) {
      const { id } = check(await pay(channel.throttled), 200, '000.100.110')
      const statuses: number[] = []
      for (const asked of ['/v1/payments', '/v1/query', path])
        statuses.push((await get(`${asked}/${id}`, { entityId: channel.throttled })).status)
      assert.deepEqual(statuses, [200, 200, 429], path)
    }
  })
  it("say when to come again, and another merchant's reads do not count", async () => {
    const { id } = check(await pay(channel.throttled), 200, '000.100.110')
    const other = () => get(`/v1/payments/${id}`, { entityId: otherThrottled })
    for (const wanted of ['404 700.400.580', '404 700.400.580', '429 800.120.100']) {
      const { status, body } = await other()
      assert.equal(`${status} ${body.result.code}`, wanted)
    }
    const again = Number((await other()).headers.get('retry-after'))
    assert.ok(again >= 1 && again <= 60, String(again))
    check(await get(`/v1/payments/${id}`, { entityId: channel.throttled }), 200, '000.100.110')
    check(await get('/v1/payments/nonsense', { entityId: otherThrottled }), 404, '700.400.580')
  })
})

describe('channel dispatching', () => {
  const dispatched = async (fields: Fields) => (await pay(merchant.dispatching, fields)).body.descriptor?.slice(15)
  it('the first rule that fits chooses the channel', async () => {
    const amex = { paymentBrand: 'AMEX', 'card.number': '377777777777770', 'card.cvv': '1234' }
    assert.equal(await dispatched({ ...amex, currency: 'USD' }), 'amex')
    assert.equal(await dispatched({ currency: 'USD' }), 'dollars')
    assert.equal(await dispatched({ currency: 'EUR' }), 'euros')
  })
  it('no rule that fits is a 400', async () => {
    check(await pay(merchant.dispatching, { currency: 'GBP' }), 400, '200.300.407')
  })
  it('a refund names the merchant as well, with or without the brand', async () => {
    const { id } = check(await pay(merchant.dispatching, { currency: 'USD' }), 200, '000.100.110')
    const refund = { entityId: merchant.dispatching, paymentType: 'RF', amount: '1.00', currency: 'USD' }
    check(await post(`/v1/payments/${id}`, refund), 200, '000.100.110')
    const second = check(await pay(merchant.dispatching), 200, '000.100.110').id
    check(await post(`/v1/payments/${second}`, { ...refund, currency: 'EUR' }), 200, '000.100.110')
  })
  it('a full reversal, which names neither brand nor currency, finds its channel', async () => {
    const { id } = check(await pay(merchant.dispatching), 200, '000.100.110')
    const reversal = { entityId: merchant.dispatching, paymentType: 'RV' }
    check(await post(`/v1/payments/${id}`, reversal), 200, '000.100.110', { amount: '92.00', currency: 'EUR' })
  })
  it('a merchant or division without rules is too broad for a payment', async () => {
    check(await pay(merchant.many), 400, '200.300.407')
    check(await pay(id(10)), 400, '200.300.407')
  })
})

describe('merchants', () => {
  it("another merchant's payment does not exist, for reading and for referring", async () => {
    const { id } = check(await pay(channel.brands, { merchantTransactionId: 'ours-alone' }), 200, '000.100.110')
    const other = { entityId: otherChannel }
    check(await get(`/v1/payments/${id}`, other, otherToken), 404, '700.400.580')
    check(await get(`/v1/query/${id}`, other, otherToken), 400, '700.400.580')
    check(await get(`/v3/query/${id}`, { ...other, includeLinkedTransactions: 'true' }, otherToken), 400, '700.400.580')
    check(await get('/v1/query', { ...other, merchantTransactionId: 'ours-alone' }, otherToken), 400, '700.400.580')
    const money = { ...other, amount: '1.00', currency: 'EUR' }
    check(await post(`/v1/payments/${id}`, { ...money, paymentType: 'CP' }, otherToken), 404, '700.400.510')
    check(await post(`/v1/payments/${id}`, { ...money, paymentType: 'RF' }, otherToken), 404, '600.200.500')
    check(await post(`/v1/payments/${id}`, { ...other, paymentType: 'RV' }, otherToken), 404, '700.400.530')
  })
  it('a token acts for its own entities only', async () => {
    check(await post('/v1/payments', { entityId: channel.brands, paymentType: 'DB' }, otherToken), 403, '800.900.201')
    check(await post('/v1/payments', { entityId: otherChannel, paymentType: 'DB' }, sandbox.accessToken), 403, '800.900.201')
  })
  it('a token for one channel need not name it', async () => {
    const fields = { paymentType: 'DB', amount: '92.00', currency: 'EUR', ...visa }
    const { ndc } = check(await post('/v1/payments', fields, otherToken), 200, '000.100.110')
    assert.match(ndc, new RegExp(`^${otherChannel}_`))
  })
  it('user id and password are taken only where the merchant allows them', async () => {
    const fields = { 'authentication.userId': id(400), 'authentication.password': 'not-for-legacy' }
    const query = new URLSearchParams({ ...fields, 'authentication.entityId': otherChannel })
    const response = await fetch(`${gateway.baseUrl}/v1/payments/${id(9)}?${query}`)
    assert.equal(response.status, 403)
    const body = new URLSearchParams({ ...fields, 'authentication.entityId': otherChannel, paymentType: 'DB' })
    const posted = await fetch(`${gateway.baseUrl}/v1/payments`, { method: 'POST', body })
    assert.equal(posted.status, 403)
    const bearer = Buffer.from(`${id(400)}|not-for-legacy`).toString('base64')
    check(await get(`/v1/payments/${id(9)}`, { entityId: otherChannel }, bearer), 404, '700.400.580')
  })
  it('the same idempotency key of two merchants are two keys', async () => {
    const fields = { paymentType: 'DB', amount: '92.00', currency: 'EUR', ...visa }
    const ours = await gateway.post(
      '/v1/payments',
      { ...fields, entityId: channel.brands },
      { ...as(token), 'Idempotency-Key': 'shared' },
    )
    const theirs = await gateway.post(
      '/v1/payments',
      { ...fields, entityId: otherChannel },
      { ...as(otherToken), 'Idempotency-Key': 'shared' },
    )
    assert.notEqual(check(ours, 200, '000.100.110').id, check(theirs, 200, '000.100.110').id)
  })
  it("two channels' tokens with one idempotency key and one body make two payments", async () => {
    const fields = { paymentType: 'DB', amount: '92.00', currency: 'EUR', ...visa }
    const paid = async (bearer: string) =>
      check(
        await gateway.post('/v1/payments', fields, { ...as(bearer), 'Idempotency-Key': 'same-in-both-shops' }),
        200,
        '000.100.110',
      )
    const [euros, dollars] = [await paid(eurosToken), await paid(dollarsToken)]
    assert.notEqual(euros.id, dollars.id)
    assert.match(euros.ndc, new RegExp(`^${id(303)}_`))
    assert.match(dollars.ndc, new RegExp(`^${id(302)}_`))
    // Each may still repeat its own.
    assert.equal((await paid(dollarsToken)).id, dollars.id)
  })
})
