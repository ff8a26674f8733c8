// Settings and seeds: everything that is wrong is named at once, what a group sets is inherited, and one entity that cannot be harms no other.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it, test } from 'node:test'
import type pg from 'pg'
import { applySeed, readSeed, type Seed } from '../src/merchants/seed.ts'
import { settingsFor, standardBrandNames } from '../src/merchants/settings.ts'
import { readTokens } from '../src/merchants/store.ts'
import { systemClock, systemRandom } from '../src/platform/clock.ts'
import { mistakesIn } from '../src/platform/schema.ts'
import { makeDatabase, type TestDatabase, testPool } from './support/database.ts'
import { eventually, type Fields, sandbox, type TestGateway, testGateway, testKeys } from './support/gateway.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollgate-settings-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const id = (number: number) => `7e57c0de${String(number).padStart(24, '0')}`
const token = 'a-token-of-sixteen-and-more'

/** One channel with these settings, in a file. */
const fileWith = (settings: object, more: object = {}): string => {
  const path = join(folder, 'seed.json')
  const merchants = [{ id: id(2), name: 'Merchant', channels: [{ id: id(3), name: 'Channel', settings }] }]
  writeFileSync(
    path,
    JSON.stringify({ psp: { id: id(0), name: 'PSP' }, divisions: [{ id: id(1), name: 'Division', merchants }], ...more }),
  )
  return path
}
const mistakes = (path: string, brands?: ReadonlySet<string>): string[] => {
  try {
    readSeed(path, brands)
    return []
  } catch (error) {
    return (error as Error).message.split('\n').map(line => line.replace(`The seed file ${path}: `, ''))
  }
}

describe('a seed file that cannot be', () => {
  const place = 'divisions[0].merchants[0].channels[0].settings.'
  const cases: readonly (readonly [settings: object, ...mistakes: string[]])[] = [
    [{ lenient: 'false' }, 'lenient must be true or false.'],
    [{ brands: ['VIZA'] }, 'brands[0] is not a brand: did you mean VISA?'],
    [{ brands: 'VISA' }, 'brands must be a list.'],
    [{ brands: [null] }, 'brands[0] must be the name of a brand, in capitals.'],
    [
      { currencies: ['EUR', 'EURO', 'XXY'] },
      'currencies[1] must be a currency code.',
      'currencies[2] is not a currency code of ISO 4217.',
    ],
    [{ setings: {}, lenient: 1 }, 'lenient must be true or false.', 'setings is not known.'],
    [
      { brandDetecton: true, curencies: [] },
      'brandDetecton is not known: did you mean brandDetection?',
      'curencies is not known: did you mean currencies?',
    ],
    [
      { acquirerAccounts: { north: { facilitator: 'false', category: 5999 } } },
      'acquirerAccounts.north.category must be a text of 4 digits.',
      'acquirerAccounts.north.facilitator must be true or false.',
    ],
    [{ acquirerAccounts: { north: null } }, 'acquirerAccounts.north must be a map.'],
    [
      { routes: [null, { acquirers: [] }, {}] },
      'routes[0] must be a map.',
      'routes[1].acquirers must hold at least one.',
      'routes[2].acquirers is missing.',
    ],
    [
      { simulatorRules: [{ match: { bin: 4 }, code: '000.000.999' }] },
      'simulatorRules[0].match.bin must be a text.',
      'simulatorRules[0].code must be a code of the interface.',
    ],
    [{ paymentTypes: ['RF'] }, 'paymentTypes[0] must be PA, DB, CD or 3D.'],
    [{ statusReadsPerMinute: 1.5 }, 'statusReadsPerMinute must be a whole number, 0 for no limit.'],
    [{ bankAccount: { holder: 'Shop Ltd' } }, 'bankAccount.number is missing.'],
    [
      {
        shopName: ' ',
        shopLogo: 'http://shop.example/logo.png',
        shopColour: 'red',
        formOrigins: ['https://shop.example/pay', 'shop'],
      },
      'shopName must be a text of 1 to 64 characters.',
      'shopLogo must be an https address or a data: address of an image.',
      'shopColour must be a colour such as #1d5fd1.',
      'formOrigins[0] must be an origin such as https://shop.example, without a path.',
      'formOrigins[1] must be an origin such as https://shop.example.',
    ],
    [
      { shopName: 'a\u202eb', shopLogo: 'data:text/html;base64,AAAA', shopColour: '#12345', formOrigins: 'https://shop.example' },
      'shopName must be a text of 1 to 64 characters.',
      'shopLogo must be an https address or a data: address of an image.',
      'shopColour must be a colour such as #1d5fd1.',
      'formOrigins must be a list.',
    ],
    [{ shopName: 'x'.repeat(65) }, 'shopName must be a text of 1 to 64 characters.'],
    [
      { shopLogo: 'https://a;script-src-elem.example/logo.png', formOrigins: ["https://a;b'.example"] },
      'shopLogo must be an https address or a data: address of an image, of at most 65536 characters.',
      'formOrigins[0] must be an origin such as https://shop.example, without a path.',
    ],
    [{ shopName: 'Shop 4539 5787 6362 1486' }, 'shopName must not hold a card number or a CVV.'],
    [{ shopName: 'Shop ④⑤③⑨⑤⑦⑧⑦⑥③⑥②①④⑧⑥' }, 'shopName must not hold a card number or a CVV.'],
    [
      {
        bankAccount: { holder: 'Shop, cvv 942', number: '1234567' },
        acquirerAccounts: { north: { name: '4539578763621486' }, '4539578763621486': { name: 'Shop' } },
        routes: [{ acquirers: ['north', 'of-4539578763621486'] }],
        slipAccounts: { BOLETO: ['4539578763621486'] },
        riskRules: 'rules 4539-5787-6362-1486',
        simulatorRules: [{ match: { last4: '4539578763621486' }, code: '000.100.110' }],
      },
      ...[
        'bankAccount.holder',
        'acquirerAccounts.north.name',
        'acquirerAccounts',
        'routes[0].acquirers[1]',
        'slipAccounts.BOLETO[0]',
        'riskRules',
        'simulatorRules[0].match.last4',
      ].map(name => `${name} must not hold a card number or a CVV.`),
    ],
  ]
  for (const [settings, ...wanted] of cases) {
    it(`names ${wanted.join(' ')}`, () =>
      assert.deepEqual(mistakes(fileWith(settings)).sort(), wanted.map(one => place + one).sort()))
  }

  it('is none for identifiers, accounts and addresses that pass for a card number by chance', () => {
    const number = '6759649826438453'
    const accounts = { number: { merchantId: '378282246310005', name: 'Shop' } }
    const bankAccount = { holder: 'Shop Ltd', number }
    const addresses = { shopLogo: `https://shop.example/${number}.png`, formOrigins: [`https://${number}.shop.example`] }
    assert.deepEqual(mistakes(fileWith({ acquirerAccounts: accounts, bankAccount, ...addresses })), [])
    const routes = [{ bins: ['45320000-45329999', '45330000-45339999', '41110000-41119999'], acquirers: ['north'] }]
    assert.deepEqual(mistakes(fileWith({ routes, appSchemes: ['fb4123456789012349'] })), [])
    const { merchant } = settingsFor(standardBrandNames)
    const server = { host: '2600:1901:1000:1004::1', user: 'shop', hostKey: 'ssh-ed25519 AAAA' }
    assert.deepEqual(mistakesIn(merchant, { receiptFiles: server }), [])
    assert.deepEqual(mistakes(fileWith({ acquirerAccounts: { number: { name: number } } })), [
      `${place}acquirerAccounts.number.name must not hold a card number or a CVV.`,
    ])
  })

  it('names mistakes in all of its places at once, never with a secret', () => {
    const secret = 'short-secret'
    const path = fileWith({ lenient: 'yes' }, { token: [], tokens: [{ token: secret, entities: [] }, { entities: [id(3)] }] })
    const found = mistakes(path)
    assert.deepEqual(
      found.sort(),
      [
        `${place}lenient must be true or false.`,
        'token is not known: did you mean tokens?',
        'tokens[0].entities must hold at least one.',
        'tokens[0].token must have at least 16 characters.',
        'tokens[1] needs either token, or userId and password.',
      ].sort(),
    )
    assert.ok(!found.join().includes(secret))
  })

  it('takes the look of a shop', () => {
    for (const shopLogo of ['https://shop.example/logo.svg', 'data:image/svg+xml;base64,PHN2Zy8+'])
      assert.deepEqual(
        mistakes(
          fileWith({ shopName: 'É. & Söhne 店', shopLogo, shopColour: '#A0b1C2', formOrigins: ['http://localhost:3000'] }),
        ),
        [],
      )
  })

  it('takes the brands of the installation, and its own schema for editors', () => {
    assert.deepEqual(
      mistakes(fileWith({ brands: ['HOUSE'] }, { $schema: '../docs/reference/schemas/seed.json' }), new Set(['HOUSE'])),
      [],
    )
    assert.equal(mistakes(fileWith({ brands: ['HOUSE'] })).length, 1)
  })
})

describe('a second seed', () => {
  let database: TestDatabase
  let pool: pg.Pool
  before(async () => {
    database = await makeDatabase()
    pool = testPool(database.connection, 2)
  })
  after(async () => {
    await pool.end()
    await database.drop()
  })
  const seed = (entities: string[]): Seed => ({
    psp: { id: id(0), name: 'PSP' },
    divisions: [
      {
        id: id(1),
        name: 'Division',
        merchants: [
          { id: id(2), name: 'One', channels: [{ id: id(3), name: 'Channel' }] },
          { id: id(4), name: 'Other', channels: [{ id: id(5), name: 'Channel' }] },
        ],
      },
    ],
    tokens: [{ label: 'shop', token, entities }],
  })
  const apply = (entities: string[]) => applySeed(pool, testKeys, systemClock, systemRandom, seed(entities))
  const entities = async () => (await readTokens(pool)).map(({ entities }) => entities)

  it('moves no token to another merchant, and narrows or widens it where it is', async () => {
    await apply([id(2)])
    await assert.rejects(apply([id(4)]), /token shop: it acts for 7e57c0de0*2; a token does not move/)
    await assert.rejects(apply([id(5)]), /a token does not move/)
    assert.deepEqual(await entities(), [[id(2)]])
    await apply([id(3)])
    await apply([id(1)])
    assert.deepEqual(await entities(), [[id(1)]])
  })

  const dispatching = (of: 'merchant' | 'group', channel: string): Seed => {
    const settings = { channelDispatching: [{ channel: id(3), brands: ['VISA'] }, { channel }] }
    const { psp, divisions } = seed([id(1)])
    const [{ merchants: [one, other] = [], ...division }] = divisions as [NonNullable<Seed['divisions']>[number]]
    return {
      psp,
      divisions: [
        {
          ...division,
          ...(of === 'group' && { settings }),
          merchants: [{ ...one!, ...(of === 'merchant' && { settings }) }, other!],
        },
      ],
    }
  }
  it('takes no rule that leads a merchant to the channel of another', async () => {
    const apply = (seed: Seed) => applySeed(pool, testKeys, systemClock, systemRandom, seed)
    const stranger = (which: number, name: string, at: number) =>
      `merchant ${id(which)} (${name}): channelDispatching[${at}].channel must be a channel of this merchant.`
    const message = (seed: Seed) =>
      apply(seed).then(
        () => assert.fail('it was taken'),
        (error: Error) => error.message,
      )
    await apply(seed([id(1)]))
    for (const channel of [id(5), id(4), id(2), id(99)])
      assert.equal(await message(dispatching('merchant', channel)), stranger(2, 'One', 1))
    assert.equal(await message(dispatching('group', id(3))), [stranger(4, 'Other', 0), stranger(4, 'Other', 1)].join('\n'))
    const { rows } = await pool.query(`select count(*) from entities where settings ? 'channelDispatching'`)
    assert.equal(rows[0].count, 0)
    await apply(dispatching('merchant', id(3)))
    await apply(seed([id(1)]))
  })

  it('brings no second PSP, whose people would see what belongs to no merchant', async () => {
    const other: Seed = { psp: { id: id(90), name: 'Second PSP' }, divisions: [] }
    await assert.rejects(
      applySeed(pool, testKeys, systemClock, systemRandom, other),
      (error: Error) => error.message === `An installation has one PSP, not ${id(0)} (PSP) and ${id(90)} (Second PSP).`,
    )
    assert.equal((await pool.query(`select from entities where kind = 'psp'`)).rowCount, 1)
  })

  it('says of a revoked token that it stays revoked', async () => {
    await pool.query('update access_tokens set revoked_at = now()')
    const { tokens, revoked } = await apply([id(1)])
    assert.deepEqual({ tokens, revoked }, { tokens: 0, revoked: ['shop'] })
  })
})

describe('settings of divisions and the PSP', () => {
  const inherited = id(12)
  const own = id(13)
  let gateway: TestGateway
  before(async () => {
    gateway = await testGateway({
      seed: {
        psp: { id: '5a11d0000000000000000000000000a0', name: 'Sandbox', settings: { currencies: ['EUR'], requireCvv: false } },
        divisions: [
          {
            id: id(10),
            name: 'Division',
            settings: { requireCvv: true, legacyCredentials: true, lenient: true },
            merchants: [
              {
                id: id(11),
                name: 'Merchant',
                channels: [
                  { id: inherited, name: 'inherits' },
                  { id: own, name: 'has its own', settings: { currencies: ['USD'], lenient: false } },
                ],
              },
            ],
          },
        ],
        tokens: [{ label: 'all', userId: id(20), password: 'not-the-sandbox', entities: [id(10)] }],
      },
    })
  })
  after(() => gateway.stop())
  const bearer = { Authorization: `Bearer ${Buffer.from(`${id(20)}|not-the-sandbox`).toString('base64')}` }
  const pay = (entityId: string, fields: Record<string, string>) =>
    gateway.post('/v1/payments', { entityId, paymentType: 'DB', amount: '92.00', ...card, ...fields }, bearer)
  const card = {
    paymentBrand: 'VISA',
    'card.number': '4200000000000000',
    'card.expiryMonth': '05',
    'card.expiryYear': '2034',
    'card.cvv': '123',
  }

  it('are those of a channel that sets nothing itself, the nearest first', async () => {
    const code = async (entityId: string, fields: Record<string, string>) => (await pay(entityId, fields)).body.result.code
    assert.equal(await code(inherited, { currency: 'EUR' }), '000.100.110')
    assert.equal(await code(inherited, { currency: 'USD' }), '600.200.500')
    assert.equal(await code(own, { currency: 'USD' }), '000.100.110')
    assert.equal((await pay(inherited, { currency: 'EUR', 'card.cvv': '' })).status, 400)
    assert.equal(await code(inherited, { currency: 'EUR', 'customer.email': 'no address' }), '000.100.110')
    assert.equal((await pay(own, { currency: 'USD', 'customer.email': 'no address' })).status, 400)
  })

  it('are those of a merchant as well', async () => {
    const legacy = { 'authentication.userId': id(20), 'authentication.password': 'not-the-sandbox' }
    const fields = { entityId: inherited, paymentType: 'DB', amount: '92.00', currency: 'EUR', ...card, ...legacy }
    const answer = await fetch(`${gateway.baseUrl}/v1/payments`, { method: 'POST', body: new URLSearchParams(fields) })
    assert.equal(answer.status, 200, await answer.text())
  })
})

test('an entity whose settings cannot be is refused alone, loudly, and a token revoked meanwhile is refused at once', async () => {
  const gateway = await testGateway({
    seed: {
      psp: { id: '5a11d0000000000000000000000000a0', name: 'Sandbox' },
      tokens: [{ label: 'leaked', token, entities: [sandbox.merchantId] }],
    },
  })
  const pay = (entityId: string, bearer: string) =>
    gateway
      .post(
        '/v1/payments',
        { entityId, paymentType: 'CD', amount: '1.00', currency: 'EUR' },
        { Authorization: `Bearer ${bearer}` },
      )
      .then(({ status }) => status)
  assert.notEqual(await pay(sandbox.entityId, token), 403)
  await gateway.pool.query(`update entities set settings = '{"lenient": "yes"}' where id = $1`, [sandbox.lenientEntityId])
  await gateway.pool.query(`update access_tokens set revoked_at = now() where label = 'leaked'`)
  await gateway.pool.query(`select pg_notify('tollgate_directory', '')`)
  await eventually(async () => (await pay(sandbox.entityId, token)) === 403, 'the revoked token is refused')
  assert.equal(await pay(sandbox.lenientEntityId, sandbox.accessToken), 403)
  assert.notEqual(await pay(sandbox.entityId, sandbox.accessToken), 403)
  assert.ok(gateway.logged.some(line => line.includes('lenient must be true or false') && line.includes('"error"')))
  await gateway.stop()
})

test('channels refer to payments of each other only where their merchant says so, and then on the account of the payment', async () => {
  const gateway = await testGateway()
  const { body: payment } = await gateway.pay()
  const refund = () =>
    gateway.post(`/v1/payments/${payment.id}`, {
      entityId: sandbox.lenientEntityId,
      paymentType: 'RF',
      amount: '1.00',
      currency: 'EUR',
    })
  assert.equal((await refund()).body.result.code, '700.400.700')
  await gateway.pool.query(`update entities set settings = settings || '{"referencesAcrossChannels": true}' where id = $1`, [
    sandbox.merchantId,
  ])
  await gateway.pool.query(`select pg_notify('tollgate_directory', '')`)
  const { id: refundId } = await eventually(async () => {
    const { body } = await refund()
    return body.result.code === '000.100.110' && body
  }, 'the refund is taken')
  const { rows } = await gateway.pool.query('select channel_id as "channelId" from payments where id = $1', [refundId])
  assert.deepEqual(rows, [{ channelId: sandbox.entityId }])
  await gateway.stop()
})

test("a channel that is kept to its own reads, finds, refers to and pays with nothing of the merchant's other channels", async t => {
  const gateway = await testGateway()
  t.after(() => gateway.stop())
  const { entityId: kept, lenientEntityId: other } = sandbox
  const mine = { merchantTransactionId: 'one order' }
  const own = (await gateway.pay({ ...mine, createRegistration: 'true' })).body
  const theirs = (await gateway.pay({ ...mine, createRegistration: 'true', entityId: other })).body
  const checkoutOf = async (entityId: string) =>
    (await gateway.post('/v1/checkouts', { entityId, amount: '1.00', currency: 'EUR', paymentType: 'DB' })).body.id as string
  const checkout = { own: await checkoutOf(kept), theirs: await checkoutOf(other) }
  const money = { amount: '1.00', currency: 'EUR' }
  const refund = (entityId: string, id: string) => gateway.post(`/v1/payments/${id}`, { entityId, paymentType: 'RF', ...money })
  await refund(other, own.id) // refused, and linked to the payment
  const found = async (entityId: string, path: string, query: Fields = {}) => {
    const { body } = await gateway.get(path, { entityId, ...query })
    return ((body.records ?? body.payments ?? []) as { id: string }[]).length
  }
  const seen = async (entityId: string, id: string, registrationId: string, checkoutId: string) => ({
    read: (await gateway.get(`/v1/payments/${id}`, { entityId })).status,
    queried: (await gateway.get(`/v1/query/${id}`, { entityId })).status,
    found: (await gateway.get(`/v3/query/${id}`, { entityId })).status,
    registration: (await gateway.get(`/v1/registrations/${registrationId}`, { entityId })).status,
    paidWith: (await gateway.post(`/v1/registrations/${registrationId}/payments`, { entityId, paymentType: 'DB', ...money }))
      .status,
    checkout: (await gateway.get(`/v1/checkouts/${checkoutId}/payment`, { entityId })).status,
  })
  const all = { read: 200, queried: 200, found: 200, registration: 200, paidWith: 200, checkout: 200 }
  const none = { read: 404, queried: 400, found: 400, registration: 404, paidWith: 404, checkout: 400 }
  const ofTheirs = (entityId: string) => seen(entityId, theirs.id, theirs.registrationId, checkout.theirs)
  const ofOwn = (entityId: string) => seen(entityId, own.id, own.registrationId, checkout.own)
  const byNumber = (entityId: string) => found(entityId, '/v1/query', { merchantTransactionId: 'one order' })
  const byList = (entityId: string) => found(entityId, '/v3/query', { merchantTransactionId: 'one order', limit: '50' })
  const linked = (entityId: string) => found(entityId, `/v3/query/${own.id}`, { includeLinkedTransactions: 'true' })
  assert.deepEqual([await ofOwn(kept), await ofTheirs(kept)], [all, all])
  assert.equal((await refund(kept, theirs.id)).body.result.code, '700.400.700')
  const before = [await byNumber(kept), await byList(kept), await linked(kept)]

  await gateway.pool.query(`update entities set settings = settings || '{"ownChannelOnly": true}' where id = $1`, [kept])
  await gateway.pool.query(`select pg_notify('tollgate_directory', '')`)
  await eventually(
    async () => (await gateway.get(`/v1/payments/${theirs.id}`, { entityId: kept })).status === 404,
    'it is kept to its own',
  )
  assert.deepEqual([await ofOwn(kept), await ofTheirs(kept)], [all, none])
  assert.deepEqual([await ofOwn(other), await ofTheirs(other)], [all, all], 'the other channel is not')
  const stored = async () => Number((await gateway.pool.query('select count(*) from payments')).rows[0].count)
  const payments = await stored()
  assert.equal((await refund(kept, theirs.id)).status, 404)
  assert.equal(await stored(), payments)
  assert.equal((await refund(kept, own.id)).body.result.code, '000.100.110')
  const after = [await byNumber(kept), await byList(kept), await linked(kept)]
  // Both payments, and a refused refund of each; then the own ones, and linked to the own payment only its refund.
  assert.deepEqual(
    [before, after],
    [
      [4, 4, 2],
      [3, 3, 2],
    ],
  )
})
