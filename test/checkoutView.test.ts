// What the form is told of a checkout: enough to show it, nothing secret, and nothing of a checkout that is over.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sealValues, wireIdOf } from '../src/checkouts/checkout.ts'
import type { CheckoutParts } from '../src/checkouts/parts.ts'
import { formView } from '../src/checkouts/view.ts'
import { standardBrands } from '../src/contract/brands.ts'
import { legacyToken } from '../src/merchants/access/legacy.ts'
import { openDirectory } from '../src/merchants/directory.ts'
import type { Seed } from '../src/merchants/seed.ts'
import { systemClock, systemRandom } from '../src/platform/clock.ts'
import { connect, type Database } from '../src/platform/database/connect.ts'
import { eventually, type Fields, sandbox, type TestGateway, testGateway, testKeys, visa } from './support/gateway.ts'
import { heldMemory } from './support/memory.ts'

const shop = {
  merchantId: '8a829400000000000000000000000001',
  entityId: '8a829400000000000000000000000002',
  userId: '8a829400000000000000000000000003',
}
const headers = { Authorization: `Bearer ${legacyToken(shop.userId, 'a-shop-with-a-face')}` }
const seed: Seed = {
  psp: { id: '5a11d0000000000000000000000000a0', name: 'Sandbox' },
  divisions: [
    {
      id: '8a829400000000000000000000000009',
      name: 'Division',
      merchants: [
        {
          id: shop.merchantId,
          name: 'Technical name of a merchant',
          channels: [
            {
              id: shop.entityId,
              name: 'technical-channel-7',
              settings: {
                brands: ['PAYPAL', 'MASTER', 'VISA'],
                shopName: 'Corner shop',
                shopColour: '#112233',
                formOrigins: ['https://shop.example'],
              },
            },
          ],
        },
      ],
    },
  ],
  tokens: [{ label: 'shop', userId: shop.userId, password: 'a-shop-with-a-face', entities: [shop.merchantId] }],
}

let gateway: TestGateway
let database: Database
let parts: CheckoutParts
before(async () => {
  gateway = await testGateway({ seed })
  database = connect(gateway.connection, systemClock, () => {})
  const directory = await openDirectory(database, testKeys, systemClock, () => {})
  const wallet = { brand: 'PAYPAL', code: 'VA', connector: 'wallet', types: ['DB'], currencies: [], needs: [] } as const
  const some = { database, directory, keys: testKeys, clock: systemClock, cardBrands: standardBrands }
  parts = {
    ...some,
    methods: new Map([['PAYPAL', wallet]]),
    connectors: new Map([['wallet internal', {}]]),
  } as unknown as CheckoutParts
})
after(async () => {
  await parts.directory.close()
  await database.close()
  await gateway.stop()
})

const create = async (fields: Fields = {}) => {
  const { body } = await gateway.post(
    '/v1/checkouts',
    { entityId: shop.entityId, paymentType: 'DB', amount: '92', currency: 'EUR', ...fields },
    headers,
  )
  return body.id as string
}

test('the brands of the channel in its order, the shop as shoppers know it, the amount as on the wire', async () => {
  const id = await create({
    'customer.givenName': 'Jane',
    'customer.surname': 'Jones',
    shopperResultUrl: 'https://shop.example/done',
  })
  const { expiresAt, ...view } = await formView(parts, id)
  assert.ok(Math.abs(expiresAt - Date.now() - 30 * 60_000) < 60_000)
  assert.deepEqual(view, {
    id,
    state: 'open',
    standalone: false,
    paymentType: 'DB',
    amount: '92.00',
    currency: 'EUR',
    billingName: 'Jane Jones',
    shopperResultUrl: 'https://shop.example/done',
    shop: { name: 'Corner shop', colour: '#112233' },
    brands: [
      { name: 'PAYPAL', method: 'virtualAccount' },
      { name: 'MASTER', method: 'card' },
      { name: 'VISA', method: 'card' },
    ],
    offersRegistration: false,
    registrations: [],
    requireCvv: true,
    requireCvvForRegistrations: false,
    frameAncestors: ['https://shop.example'],
  })
  assert.equal((await formView(parts, await create({ 'merchant.name': 'Of this order' }))).shop.name, 'Of this order')
})

test('saved cards: what the merchant lists and can be used, of one card the later one alone', async () => {
  const store = async (fields: Fields = {}) =>
    (await gateway.post('/v1/registrations', { entityId: shop.entityId, ...visa, ...fields }, headers)).body.id as string
  const [early, late, master, renewed] = [
    await store(),
    await store(),
    await store({ paymentBrand: 'MASTER', 'card.number': '5454545454545454' }),
    await store({ 'card.expiryYear': '2036' }),
  ]
  await gateway.advance('1s')
  const foreign = (await gateway.post('/v1/registrations', { entityId: sandbox.entityId, ...visa })).body.id
  const listed = [master, early, late, renewed, foreign, '0'.repeat(32)]
  const id = await create(Object.fromEntries(listed.map((one, at) => [`registrations[${at}].id`, one])))
  const { registrations } = await formView(parts, id)
  assert.deepEqual(
    registrations.map(one => one.id),
    [master, late, renewed],
  )
  assert.deepEqual(registrations[1], {
    id: late,
    brand: 'VISA',
    holder: 'Jane Jones',
    last4: '0000',
    expiryMonth: '05',
    expiryYear: '2034',
  })
})

test('of what is paid, over or unknown nothing can be paid, and nobody can tell which', async () => {
  const id = await create()
  await gateway.post(`/v1/checkouts/${id}/payment`, visa, { Authorization: '', Accept: 'application/json' })
  assert.equal((await formView(parts, id)).state, 'over')
  for (const unknown of ['', 'x', id.toLowerCase(), `${'0'.repeat(32)}.${id.slice(33)}`, `${id.slice(0, 33)}zzz`]) {
    const { state, brands, shop } = await formView(parts, unknown)
    assert.deepEqual([state, brands, shop.name], ['over', [], ''])
  }
})

test('details that are only stored: cards, and no amount', async () => {
  const { standalone, amount, brands, offersRegistration } = await formView(
    parts,
    await create({ paymentType: '', amount: '', currency: '', createRegistration: 'true' }),
  )
  assert.deepEqual(
    [standalone, amount, brands.map(({ name }) => name), offersRegistration],
    [true, undefined, ['MASTER', 'VISA'], true],
  )
})

test('what its merchant said is not held while the rest is asked for, however many ask for the form of a large one', async () => {
  const name = { merchantId: shop.merchantId, id: 'b'.repeat(32) }
  const said = Array.from({ length: 250 }, (_, at) => [`cart.items[${at}].description`, 'x'.repeat(1000)])
  const sealed = sealValues({ keys: testKeys, random: systemRandom }, name, new Map(said as never))
  const goOn = Promise.withResolvers<void>()
  let asked = 0
  const query = async (asks: string | { text: string }) => {
    if (!/checkout_attempts/.test(JSON.stringify(asks)))
      return { rows: [{ ...name, channelId: shop.entityId, sealed: Buffer.from(sealed), endedAt: null, expiresAt: 9e15 }] }
    asked++
    await goOn.promise
    return { rows: [] }
  }
  const before = heldMemory()
  const views = Array.from({ length: 40 }, () =>
    formView({ ...parts, database: { work: { query } } } as unknown as CheckoutParts, wireIdOf(name.merchantId, name.id)),
  )
  while (asked < views.length) await new Promise(resolve => setImmediate(resolve))
  // What a buffer had is given back some time behind the collection.
  await eventually(async () => heldMemory() - before < 4, 'less than 4 MiB are held for 40 of 0.25 MiB')
  goOn.resolve()
  for (const view of await Promise.all(views)) assert.equal(view.state, 'open')
})
