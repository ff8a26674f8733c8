// What requests hold that wait for another side, over HTTP: beyond a share of the memory of their process they are refused before anything is stored or sent, and
// come in when the others are answered.

import assert from 'node:assert/strict'
import http from 'node:http'
import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import type { Seed } from '../src/merchants/seed.ts'
import { eventually, type Fields, type Reply, sandbox, type TestGateway, testGateway, visa } from './support/gateway.ts'
import { makeShopper } from './support/shopper.ts'
import { slowBank } from './support/slowBank.ts'

const kibibyte = 1024
const heapBytes = 12 * 1024 * kibibyte // of which 1 MiB is shared by merchants, and 512 KiB by browsers
const bank = slowBank()
const { slowly } = bank

const other = {
  id: 'c0ffee000000000000000000000000e1',
  entityId: 'c0ffee000000000000000000000000c1',
  token: 'a-token-of-another-merchant',
}
const seed: Seed = {
  psp: { id: '5a11d0000000000000000000000000a0', name: 'Sandbox' },
  divisions: [
    {
      id: 'c0ffee000000000000000000000000d1',
      name: 'Another',
      merchants: [
        {
          id: other.id,
          name: 'Another',
          channels: [{ id: other.entityId, name: 'Another', settings: { lenient: true, statusReadsWithoutCredentials: true } }],
        },
      ],
    },
  ],
  tokens: [{ label: 'another', token: other.token, entities: [other.id] }],
}

let gateway: TestGateway
before(async () => {
  gateway = await testGateway({ clock: bank.clock, seed, heapBytes })
})
beforeEach(bank.beSlow)
afterEach(bank.answer) // those who still wait after a failure
after(() => gateway.stop())

/** A cart that says so much. */
const cart = (bytes: number): Fields =>
  Object.fromEntries(
    Array.from({ length: Math.ceil(bytes / kibibyte) }, (_, at) => [`cart.items[${at}].description`, 'x'.repeat(kibibyte)]),
  )

const entityId = sandbox.lenientEntityId
const pay = (fields: Fields, headers = {}) =>
  gateway.post('/v1/payments', { entityId, paymentType: 'DB', amount: '92.00', currency: 'EUR', ...visa, ...fields }, headers)
const isRefused = (reply: Reply) =>
  assert.deepEqual(
    [reply.status, reply.body.result.code, reply.headers.get('retry-after')],
    [429, '800.120.100', '1'],
    reply.text,
  )

const unanswered = async (): Promise<number> =>
  (await gateway.pool.query('select count(*)::int as count from unanswered')).rows[0].count
/** So many more wait for their bank. */
async function waiting<Value>(count: number, begin: () => Promise<Value>): Promise<Promise<Value>[]> {
  const earlier = await unanswered()
  const begun = Array.from({ length: count }, begin)
  await eventually(async () => (await unanswered()) === earlier + count, `${count} wait for their bank`)
  return begun
}

it('payments: a merchant has half of what is shared while nobody else needs any, and another finds room', async () => {
  const begun = await waiting(2, () => pay({ ...slowly, ...cart(200 * kibibyte) }))
  isRefused(await pay(cart(200 * kibibyte)))
  const theirs = { Authorization: `Bearer ${other.token}` }
  assert.equal((await pay({ entityId: other.entityId, ...cart(200 * kibibyte) }, theirs)).status, 200)
  assert.equal((await pay({})).status, 200, 'a small one')
  bank.answer()
  for (const one of await Promise.all(begun)) assert.equal(one.status, 200)
  assert.equal((await pay(cart(200 * kibibyte))).status, 200)
})

it('checkouts: what one says is held for as long as its merchant asks for it, changes it or takes it away', async () => {
  const made = { entityId, paymentType: 'DB', amount: '92.00', currency: 'EUR', ...cart(180 * kibibyte) }
  const { id } = (await gateway.post('/v1/checkouts', made)).body
  const path = `/v1/checkouts/${id}`
  const read = () => gateway.get(`${path}/payment`, { entityId })
  const change = () => gateway.post(path, { entityId, amount: '93.00' })
  const take = async (): Promise<Reply> => {
    const headers = { Authorization: `Bearer ${sandbox.accessToken}` }
    const answer = await fetch(`${gateway.baseUrl}${path}?entityId=${entityId}`, { method: 'DELETE', headers })
    const text = await answer.text()
    return { status: answer.status, headers: answer.headers, text, body: JSON.parse(text) }
  }
  const begun = await waiting(2, () => pay({ ...slowly, ...cart(200 * kibibyte) }))
  for (const ask of [read, change, take]) isRefused(await ask())
  bank.answer()
  await Promise.all(begun)
  for (const ask of [read, change, take]) assert.equal((await ask()).status, 200)
})

describe('captures, refunds and reversals', () => {
  it('hold what their payment says: one that may not is not stored, and is carried out when it comes again', async () => {
    const ids: string[] = []
    for (let count = 0; count < 3; count++) ids.push((await pay(cart(180 * kibibyte))).body.id)
    const refund = (id: string, more: Fields = {}) => {
      const fields = { entityId, paymentType: 'RF', amount: '10.00', currency: 'EUR', ...more }
      return gateway.post(`/v1/payments/${id}`, fields, { 'Idempotency-Key': `refund-${id}` })
    }
    let at = 0
    const begun = await waiting(2, () => refund(ids[at++]!, slowly))
    const refused = await refund(ids[2]!)
    isRefused(refused)
    assert.equal(refused.body.id, undefined)
    const stored = async () =>
      (await gateway.pool.query('select count(*)::int as count from payments where root_id = $1', [ids[2]])).rows[0].count
    assert.equal(await stored(), 0)
    bank.answer()
    for (const one of await Promise.all(begun)) assert.equal(one.status, 200, one.text)
    const refunded = await refund(ids[2]!)
    assert.equal(refunded.status, 200, refunded.text)
    // What was answered is told again, also while there is no room.
    bank.beSlow()
    const crowd = await waiting(2, () => pay({ ...slowly, ...cart(200 * kibibyte) }))
    assert.equal((await refund(ids[2]!)).text, refunded.text)
    assert.equal(await stored(), 1)
    bank.answer()
    await Promise.all(crowd)
  })
})

/** A shopper's browser, from another network where it is said. */
const browse = (method: 'GET' | 'POST', path: string, fields: Fields = {}, localAddress = '127.0.0.1', headers = {}) =>
  new Promise<{ status: number; text: string; headers: http.IncomingHttpHeaders }>((done, failed) => {
    const body = method === 'POST' ? new URLSearchParams(fields).toString() : ''
    const sent = {
      ...(method === 'POST' && { 'Content-Type': 'application/x-www-form-urlencoded', 'Content-Length': body.length }),
      ...headers,
    }
    http
      .request(`${gateway.baseUrl}${path}`, { method, localAddress, agent: false, headers: sent }, response => {
        let text = ''
        response.setEncoding('utf8').on('data', piece => {
          text += piece
        })
        response.on('end', () => done({ status: response.statusCode!, text, headers: response.headers }))
      })
      .on('error', failed)
      .end(body)
  })

describe('browsers', () => {
  it('hold what they have sent, and what the checkout says where they pay', async () => {
    const make = async () => {
      const made = { entityId, paymentType: 'DB', amount: '92.00', currency: 'EUR', ...slowly, ...cart(70 * kibibyte) }
      return (await gateway.post('/v1/checkouts', made)).body.id as string
    }
    const shoppers = { ...visa, shopperResultUrl: 'https://shop.example/back' }
    const press = (id: string, more: Fields = {}, from?: string) =>
      browse('POST', `/v1/checkouts/${id}/payment`, { ...shoppers, ...more }, from, { Accept: 'application/json' })
    const ids = await Promise.all([1, 2, 3, 4].map(make))
    let at = 0
    const begun = await waiting(2, () => press(ids[at++]!, { unknown: 'x'.repeat(20 * kibibyte) }))
    const refused = await press(ids[2]!, { unknown: 'x'.repeat(20 * kibibyte) })
    assert.deepEqual(
      [refused.status, JSON.parse(refused.text).result.code, refused.headers['retry-after']],
      [429, '800.120.100', '1'],
    )
    const elsewhere = await waiting(1, () => press(ids[3]!, {}, '127.0.0.2'))
    assert.equal((await browse('GET', `/v1/paymentWidgets.js?checkoutId=${ids[2]}`)).status, 200, 'what holds little')
    bank.answer()
    for (const one of await Promise.all([...begun, ...elsewhere])) assert.equal(one.status, 200, one.text)
    assert.equal((await press(ids[2]!)).status, 200)
  })

  it('hold what a checkout says whose status the id alone opens', async () => {
    const make = async (bytes: number, more: Fields) => {
      const made = { paymentType: 'DB', amount: '92.00', currency: 'EUR', ...cart(bytes), ...more }
      const theirs = more.entityId === other.entityId ? { Authorization: `Bearer ${other.token}` } : {}
      return (await gateway.post('/v1/checkouts', made, theirs)).body.id as string
    }
    const open = await make(120 * kibibyte, { entityId: other.entityId })
    const slow = [await make(70 * kibibyte, { entityId, ...slowly }), await make(70 * kibibyte, { entityId, ...slowly })]
    const read = () => browse('GET', `/v1/checkouts/${open}/payment`)
    assert.equal((await read()).status, 200)
    const shoppers = { ...visa, shopperResultUrl: 'https://shop.example/back' }
    let at = 0
    const begun = await waiting(2, () => browse('POST', `/v1/checkouts/${slow[at++]}/payment`, shoppers))
    assert.equal((await read()).status, 429)
    bank.answer()
    await Promise.all(begun)
  })

  it('hold what is said of the payment for which they wait, and come again by themselves', async () => {
    const secure = { 'customParameters[3DS2_enrolled]': 'true', 'customParameters[3DS2_flow]': 'frictionless' }
    const made = await pay({
      ...slowly,
      ...secure,
      ...cart(100 * kibibyte),
      shopperResultUrl: 'https://shop.example/back?order=7',
    })
    assert.equal(made.body.result.code, '000.200.000', made.text)
    const path = new URL(made.body.redirect.url).pathname
    const shopper = makeShopper()
    assert.equal((await shopper.open(made.body.redirect.url)).status, 200)
    const Cookie = [...shopper.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const seen = { browser: '1', language: 'en', screenHeight: '1', screenWidth: '1', screenColorDepth: '24', timezone: '0' }
    const going = browse('POST', path, { ...seen, javaEnabled: 'false', javascriptEnabled: 'true' }, undefined, { Cookie })
    const continues = async () =>
      (await gateway.pool.query('select from continuations where payment_id = $1', [made.body.id])).rowCount === 0
    await eventually(continues, 'its bank is asked')
    const watch = (address: string, from?: string) => browse('GET', address, {}, from, { Cookie })
    const refused: Awaited<ReturnType<typeof watch>>[] = []
    const watching = Array.from({ length: 4 }, async () => {
      const seen = await watch(path)
      if (seen.status === 429) refused.push(seen)
      return seen
    })
    await eventually(async () => refused.length === 3, 'one of them waits beside the one who goes on')
    refused.push(await watch(path.replace('/r/', '/r/return/')))
    for (const { status, text, headers } of refused) {
      assert.deepEqual([status, headers['retry-after']], [429, '3'])
      assert.match(text, /<meta http-equiv="refresh" content="3">/)
      assert.match(text, /Your payment is being processed/)
    }
    const elsewhere = watch(path, '127.0.0.2')
    bank.answer()
    const all = await Promise.all([going, elsewhere, ...watching])
    for (const one of all.filter(one => !refused.includes(one)))
      assert.deepEqual([one.status, one.headers.location?.startsWith('https://shop.example/back')], [303, true], one.text)
  })
})
