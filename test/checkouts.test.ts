// Checkouts: abandoned at each step, resumed in a second tab, paid twice at once, paid after their end; by two processes, by others, and with
// answers that nobody heard. What counts is how many payments there are, and what the merchant reads.

import assert from 'node:assert/strict'
import http from 'node:http'
import { after, before, describe, it } from 'node:test'
import { attemptsMost } from '../src/checkouts/pay.ts'
import { limits } from '../src/contract/limits.ts'
import { type ResultName, results } from '../src/contract/results/results.ts'
import { networkRequestsMost } from '../src/http/underWay.ts'
import { legacyToken } from '../src/merchants/access/legacy.ts'
import type { Seed } from '../src/merchants/seed.ts'
import { makeKeys } from '../src/vault/keys.ts'
import {
  type Body,
  type Client,
  eventually,
  type Fields,
  type Reply,
  sandbox,
  type TestGateway,
  testGateway,
  visa,
} from './support/gateway.ts'
import { lockWaiters, untilWaiting } from './support/locks.ts'
import { type Receiver, startReceiver } from './support/receiver.ts'
import { formsOf, makeShopper } from './support/shopper.ts'

const other = {
  merchantId: '8a829400000000000000000000000001',
  entityId: '8a829400000000000000000000000002',
  narrowId: '8a829400000000000000000000000004',
  openId: '8a829400000000000000000000000005',
  userId: '8a829400000000000000000000000003',
  password: 'another-merchants-password',
}
const narrowToken = 'a-token-of-the-narrow-channel-alone'
const theirs = { Authorization: `Bearer ${legacyToken(other.userId, other.password)}` }
const seed: Seed = {
  psp: { id: '5a11d0000000000000000000000000a0', name: 'Sandbox' },
  divisions: [
    {
      id: '8a829400000000000000000000000009',
      name: 'Another division',
      merchants: [
        {
          id: other.merchantId,
          name: 'Another merchant',
          channels: [
            {
              id: other.entityId,
              name: 'Another',
              settings: {
                brands: ['MASTER', 'PAYPAL', 'VISA'],
                shopName: 'Corner shop',
                checkoutMinutesMost: 10_000,
                formOrigins: ['https://listed.example'],
                appSchemes: ['com.example.listed'],
              },
            },
            { id: other.narrowId, name: 'Narrow', settings: { statusReadsPerMinute: 2, requireCvvForRegistrations: true } },
            {
              id: other.openId,
              name: 'Open and narrow',
              settings: { statusReadsPerMinute: 2, statusReadsWithoutCredentials: true },
            },
          ],
        },
      ],
    },
  ],
  tokens: [
    { label: 'another', userId: other.userId, password: other.password, entities: [other.merchantId] },
    { label: 'narrow', token: narrowToken, entities: [other.narrowId] },
  ],
}

let gateway: TestGateway
let shop: Receiver
before(async () => {
  gateway = await testGateway({ seed })
  shop = await startReceiver()
})
after(async () => {
  await shop.close()
  await gateway.stop()
})

const backUrl = 'https://shop.example/back?order=7'
const browser = { Authorization: '', Accept: 'application/json' }

async function create(fields: Fields = {}, client: Client = gateway): Promise<string> {
  const sent = {
    entityId: sandbox.entityId,
    paymentType: 'DB',
    amount: '92.00',
    currency: 'EUR',
    shopperResultUrl: backUrl,
    ...fields,
  }
  const { status, body } = await client.post('/v1/checkouts', sent)
  assert.equal(status, 200, JSON.stringify(body))
  return body.id
}

const press = (id: string, fields: Fields = {}, client: Client = gateway): Promise<Reply> =>
  client.post(`/v1/checkouts/${id}/payment`, { ...visa, ...fields }, browser)
const status = (id: string, client: Client = gateway): Promise<Reply> =>
  client.get(`/v1/checkouts/${id}/payment`, { entityId: sandbox.entityId })

function is({ body }: { body: Body }, name: ResultName): void {
  assert.equal(body.result.code, results[name].code, JSON.stringify(body))
}

/** The payments of a checkout, as everybody finds them, oldest first. */
async function payments(id: string): Promise<{ brand: string; result: string | null; moved: number }[]> {
  const { rows } = await gateway.pool.query(
    `select p.brand, a.result, (select count(*)::int from journal j where j.merchant_id = p.merchant_id and j.payment_id = p.id) as moved
       from payments p left join answers a on a.merchant_id = p.merchant_id and a.payment_id = p.id
      where p.record::jsonb ->> 'checkout' = $1 order by p.id`,
    [id],
  )
  return rows
}
const paid = async (id: string) => (await payments(id)).filter(({ moved }) => moved > 0).length

const another: Fields = { paymentBrand: 'MASTER', 'card.number': '5454545454545454' }
const asked = { 'customParameters[3DS2_enrolled]': 'true' }
const challenged: Fields = { 'card.number': '4200000000000018' }

describe('paid twice at once', () => {
  it('by a second click: one payment, and both hear of it', async () => {
    const id = await create({ 'customParameters[simulateDelay]': '400' })
    const both = await Promise.all([press(id), press(id)])
    for (const one of both) is(one, 'succeededInTestMode')
    assert.equal((await payments(id)).length, 1)
  })
  it('in two tabs with two cards: one payment, and the second tab hears of the first', async () => {
    const id = await create({ 'customParameters[simulateDelay]': '400' })
    const both = await Promise.all([press(id), press(id, another)])
    for (const one of both) is(one, 'succeededInTestMode')
    assert.equal((await payments(id)).length, 1)
  })
  it('by two processes on one database: one payment', async () => {
    const second = await gateway.another()
    try {
      const id = await create({ 'customParameters[simulateDelay]': '300' })
      const all = await Promise.all(
        Array.from({ length: 8 }, (_, at) => press(id, at % 2 ? another : {}, at % 2 ? second : gateway)),
      )
      for (const one of all) is(one, 'succeededInTestMode')
      assert.equal((await payments(id)).length, 1)
      is(await status(id, second), 'succeededInTestMode')
      assert.equal((await status(id)).status, 400)
    } finally {
      await second.stop()
    }
  })
  it('after a success that the merchant has not read: nothing is paid, and the shopper goes back', async () => {
    const id = await create()
    is(await press(id), 'succeededInTestMode')
    const again = await press(id, another)
    is(again, 'succeededInTestMode')
    assert.equal(again.body.shopperResultUrl, `${backUrl}&id=${id}&resourcePath=%2Fv1%2Fcheckouts%2F${id}%2Fpayment`)
    assert.equal((await payments(id)).length, 1)
  })
})

describe('a form that a shopper sends', () => {
  it('may be as large as what shoppers fill in, and no larger: it is held while its payment is under way', async () => {
    const id = await create()
    const own = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`customParameters[SHOPPER_${at}]`, 'x']))
    const many = await press(id, own(limits.shoppersParametersMax))
    assert.deepEqual([many.status, many.body.result.code], [400, results.tooManyParameters.code])
    const large = await press(id, { unknown: 'x'.repeat(limits.shoppersBodyMaxBytes) })
    assert.deepEqual([large.status, large.body.result.code], [413, results.bodyTooLarge.code])
    const strange = Object.fromEntries(Array.from({ length: 1500 }, (_, at) => [`a${at}`, 'x']))
    is(await press(id, { ...own(20), ...strange }), 'succeededInTestMode')
  })
})

describe('a shop that only the shopper names', () => {
  const said = 'https://elsewhere.example/back?order=7'
  const leave = async (fields: Fields, made: Fields = {}, headers = {}) => {
    const shopperResultUrl = fields.shopperResultUrl ?? said
    const sent = { entityId: sandbox.entityId, paymentType: 'DB', amount: '92.00', currency: 'EUR', ...asked, ...made }
    const { id } = (await gateway.post('/v1/checkouts', sent, headers)).body
    const { body } = await press(id, { shopperResultUrl, ...fields })
    is({ body }, 'pending')
    const atShop = `${shopperResultUrl}&id=${id}&resourcePath=%2Fv1%2Fcheckouts%2F${id}%2Fpayment`
    return { id: id as string, url: body.redirect.url as string, atShop }
  }
  const wallet: Fields = {
    paymentBrand: 'PAYPAL',
    'card.number': '',
    'card.expiryMonth': '',
    'card.expiryYear': '',
    'card.cvv': '',
  }
  const browserDescribed: Fields = Object.fromEntries(
    [
      ['acceptHeader', 'text/html'],
      ['userAgent', 'Mozilla/5.0'],
      ['language', 'de'],
      ['screenHeight', '900'],
      ['screenWidth', '1600'],
      ['screenColorDepth', '24'],
      ['timezone', '-60'],
      ['javaEnabled', 'false'],
      ['javascriptEnabled', 'true'],
      ['challengeWindow', '2'],
    ].map(([name, value]) => [`customer.browser.${name}`, value!]),
  )
  /** What stands there for a browser that did not pay. */
  const strange = async (url: string): Promise<void> => {
    const seen = await makeShopper().open(url)
    assert.deepEqual([seen.status, seen.location], [403, undefined])
    assert.match(seen.text, /begun elsewhere/)
    assert.doesNotMatch(seen.text + seen.headers.get('content-security-policy'), /elsewhere\.example/)
  }

  for (const [what, fields, auto] of [
    ['a wallet', wallet, 'approve'],
    ['a wallet that was cancelled', wallet, 'cancel'],
    ['a challenge, which comes back by a form of another site', challenged, 'approve'],
  ] as const)
    it(`is where ${what} leads the browser that pays, and nobody else`, async () => {
      const { id, url, atShop } = await leave(fields)
      const shopper = makeShopper()
      await shopper.open(url)
      await strange(url.replace('/r/', '/r/return/'))
      assert.equal((await shopper.walk(`${url}?auto=${auto}`, gateway.baseUrl)).location, atShop)
      for (let times = 0; times < 2; times++) {
        await strange(url)
        const again = await shopper.open(url)
        assert.deepEqual([again.status, again.location], [303, atShop])
      }
      assert.equal((await payments(id)).length, 1)
    })
  /** Who comes late hears what became of the payment, and is led nowhere, however often he comes. */
  const late = async (url: string, told: RegExp): Promise<void> => {
    for (let times = 0; times < 2; times++) {
      const seen = await makeShopper().open(url)
      assert.deepEqual([seen.status, seen.location, seen.headers.getSetCookie()], [200, undefined, []])
      assert.match(seen.text, told)
      assert.doesNotMatch(seen.text + seen.headers.get('content-security-policy'), /elsewhere\.example/)
    }
  }
  const decoupled = () =>
    leave({ ...browserDescribed, 'card.number': '4200000000000026' }, { 'customParameters[3DS2_flow]': 'decoupled' })
  /** The issuer of the sandbox says after a moment what became of it. */
  const saidByIssuer = (id: string) =>
    eventually(async () => (await payments(id))[0]!.result === 'succeededInTestMode', 'the issuer has said it')

  it('is told to nobody when it has ended before a browser came', async () => {
    const { id, url } = await leave(wallet)
    await gateway.advance('3h')
    assert.equal((await payments(id))[0]!.result, 'pendingTimedOut')
    await late(url, /The time for this payment ran out/)
  })
  it('is told to whoever comes first where there is nothing to do before, if that is at once', async () => {
    for (const isSaid of [false, true]) {
      const { id, url, atShop } = await decoupled()
      if (isSaid) await saidByIssuer(id)
      assert.equal((await makeShopper().open(url)).location, atShop)
      await strange(url)
    }
    const { id, url, atShop } = await decoupled()
    await saidByIssuer(id)
    await gateway.advance('90s')
    assert.equal((await makeShopper().open(url)).location, atShop)
    await strange(url)
  })
  it('is told to one alone of those who come at the same moment, and again to the browser that it is', async () => {
    for (const isSaid of [false, true]) {
      const { id, url, atShop } = await decoupled()
      if (isSaid) await saidByIssuer(id)
      const shoppers = Array.from({ length: 4 }, () => makeShopper())
      // Nobody has written yet when the last one has read.
      const lock = await gateway.pool.connect()
      await lock.query('begin')
      await lock.query('select from redirects for update')
      const opened = shoppers.map(shopper => shopper.open(url))
      await untilWaiting(gateway.pool, 'update redirects', shoppers.length)
      await lock.query('commit')
      lock.release()
      const first = (await Promise.all(opened)).map(({ location }) => location === atShop)
      assert.equal(first.filter(is => is).length, 1)
      for (const [at, shopper] of shoppers.entries()) {
        const again = await shopper.open(url)
        assert.deepEqual([again.status, again.location], first[at] ? [303, atShop] : [403, undefined])
      }
    }
  })
  it('is told to who loads the page again before it has come', async () => {
    const { id, url, atShop } = await decoupled()
    await saidByIssuer(id)
    const lock = await gateway.pool.connect()
    await lock.query('begin; lock table continuations in access exclusive mode')
    const stop = new AbortController()
    const broken = assert.rejects(fetch(url, { redirect: 'manual', signal: stop.signal }))
    await untilWaiting(gateway.pool, 'continuations')
    stop.abort()
    await broken
    await new Promise(resolve => setTimeout(resolve, 300)) // its connection is closed at this end, and soon at the other
    await lock.query('rollback')
    lock.release()
    assert.equal((await makeShopper().open(url)).location, atShop)
  })
  it('is told to nobody who comes later than at once: not what was paid, nor while that is waited for', async () => {
    const { id, url } = await decoupled()
    await gateway.advance('120s')
    await late(url, /Your payment (to .* was received|has not been confirmed yet)/)
    await saidByIssuer(id)
    await late(url, /Your payment to .* was received/)
    // Another shop's address is the merchant's own, and anybody may know it.
    const known = await leave(wallet, { shopperResultUrl: said })
    await gateway.advance('3h')
    assert.equal((await makeShopper().open(known.url)).location, known.atShop)
  })
  it('is told to the browser that pays also when somebody only looks whether its link leads anywhere', async () => {
    const { url, atShop } = await leave(challenged)
    const shopper = makeShopper()
    const page = await shopper.walk(url, gateway.baseUrl)
    for (const path of ['/r/', '/r/return/', '/r/cancel/', '/r/methodDone/'])
      assert.equal((await fetch(url.replace('/r/', path), { method: 'HEAD', redirect: 'manual' })).status, 405)
    assert.equal((await shopper.press(page, 'approve', gateway.baseUrl)).location, atShop)
  })
  it('is called by the gateway when nobody reads the status: no other address is known', async () => {
    shop.received.length = 0
    const id = await create({ shopperResultUrl: '' })
    await press(id, { shopperResultUrl: `${shop.url}/said` })
    await gateway.advance('40m')
    await eventually(async () => shop.received.length === 1, 'it is called')
    assert.match(shop.received[0]!.path, /^\/said\?/)
  })
  it('is as good as one of the merchant on a site that may hold the form, or in an app of the channel', async () => {
    for (const shopperResultUrl of ['https://listed.example/back?order=7', 'com.example.listed://back?order=7']) {
      const { url, atShop } = await leave({ ...wallet, shopperResultUrl }, { entityId: other.entityId }, theirs)
      await makeShopper().walk(`${url}?auto=cancel`, gateway.baseUrl)
      assert.equal((await makeShopper().open(url)).location, atShop)
    }
    const elsewhere = await leave(
      { ...wallet, shopperResultUrl: 'https://listed.example:8443/back?order=7' },
      { entityId: other.entityId },
      theirs,
    )
    await makeShopper().walk(`${elsewhere.url}?auto=cancel`, gateway.baseUrl)
    assert.equal((await makeShopper().open(elsewhere.url)).status, 403)
  })
})

describe('a shopper who left', () => {
  it('and presses again with the same form is sent to the same page', async () => {
    const id = await create(asked)
    const first = await press(id, challenged)
    is(first, 'pending')
    assert.equal(first.body.shopperResultUrl, undefined)
    assert.deepEqual((await press(id, challenged)).body.redirect, first.body.redirect)
    const seen = await makeShopper().walk(`${first.body.redirect.url}?auto=approve`, gateway.baseUrl)
    assert.equal(seen.location, `${backUrl}&id=${id}&resourcePath=%2Fv1%2Fcheckouts%2F${id}%2Fpayment`)
    is(await status(id), 'succeededInTestMode')
    assert.equal((await payments(id)).length, 1)
  })
  it('and presses again at a gateway that writes with another lookup key is sent to the same page', async () => {
    const changing = await testGateway()
    const [seal, before, after] = [1, 2, 8].map(byte => Buffer.alloc(32, byte)) as [Buffer, Buffer, Buffer]
    await changing.restart(makeKeys([seal], before, after))
    const changed = await changing.another(makeKeys([seal], after, before))
    try {
      for (const [one, other] of [
        [changing, changed],
        [changed, changing],
      ] as const) {
        const id = await create(asked, one)
        const first = await press(id, challenged, one)
        is(first, 'pending')
        assert.deepEqual((await press(id, challenged, other)).body.redirect, first.body.redirect)
        await makeShopper().walk(`${first.body.redirect.url}?auto=approve`, one.baseUrl)
        is(await status(id, one), 'succeededInTestMode')
        // Another form is another form there too.
        const twice = await create(asked, one)
        const waiting = await press(twice, challenged, one)
        assert.notDeepEqual((await press(twice, { ...challenged, ...another }, other)).body.redirect, waiting.body.redirect)
      }
    } finally {
      await changed.stop()
      await changing.stop()
    }
  })
  it('and comes back in a second tab with another card: what waited is ended, and its late return takes nothing', async () => {
    const id = await create(asked)
    const first = await press(id, challenged)
    const tab = makeShopper()
    const challenge = await tab.walk(first.body.redirect.url, gateway.baseUrl)
    const second = await press(id, another)
    assert.notEqual(second.body.redirect.url, first.body.redirect.url)
    await makeShopper().walk(`${second.body.redirect.url}?auto=approve`, gateway.baseUrl)
    assert.deepEqual(
      (await payments(id)).map(({ result }) => result),
      ['threeDSecureAbandoned', 'succeededInTestMode'],
    )
    await tab.press(challenge, 'approve', gateway.baseUrl)
    is(await status(id), 'succeededInTestMode')
    assert.equal(await paid(id), 1)
  })
  it('and had agreed at the wallet when a second tab pays by card: money comes once, also when the first tab returns at last', async () => {
    const id = await create()
    const first = await press(id, { paymentBrand: 'PAYPAL' })
    is(first, 'pending')
    const wallet = makeShopper()
    const seen = await wallet.walk(first.body.redirect.url, gateway.baseUrl)
    const form = formsOf(seen)[0]!
    const agreed = await wallet.open(form.action, { ...form.fields, action: 'agree' })
    assert.match(agreed.location!, /\/r\/return\//)
    is(await press(id, another), 'succeededInTestMode')
    const back = await wallet.walk(agreed.location!, gateway.baseUrl)
    assert.match(back.location!, /^https:\/\/shop\.example\//)
    assert.deepEqual(
      (await payments(id)).map(({ brand, moved }) => [brand, moved > 0]),
      [
        ['PAYPAL', false],
        ['MASTER', true],
      ],
    )
  })
  it('and never returned: the checkout goes on when that attempt has ended', async () => {
    const id = await create({ ...asked, validMinutes: '60' })
    is(await press(id, challenged), 'pending')
    await gateway.advance('11m')
    is(await status(id), 'threeDSecureAbandoned')
    const again = await press(id, challenged)
    await makeShopper().walk(`${again.body.redirect.url}?auto=approve`, gateway.baseUrl)
    is(await status(id), 'succeededInTestMode')
    assert.equal(await paid(id), 1)
  })
  it('before he pressed anything: the merchant reads pending, then nothing', async () => {
    const id = await create()
    is(await status(id), 'pending')
    await gateway.advance('29m')
    is(await status(id), 'pending')
    await gateway.advance('1m')
    assert.equal((await status(id)).status, 400)
    assert.equal((await press(id)).status, 400)
    assert.equal((await payments(id)).length, 0)
  })
})

describe('a checkout that is changed while its shopper pays', () => {
  it('pays nothing, and says so', async () => {
    const id = await create()
    const beside = await gateway.another()
    const holder = await gateway.pool.connect()
    let changed: Promise<Reply>
    let pressed: Promise<Reply>
    try {
      await holder.query('begin; select from checkouts for update')
      changed = gateway.post(`/v1/checkouts/${id}`, { entityId: sandbox.entityId, amount: '1.00' })
      await untilWaiting(gateway.pool, 'checkouts')
      pressed = press(id, {}, beside)
      await untilWaiting(gateway.pool, 'checkouts', 2)
    } finally {
      await holder.query('rollback')
      holder.release()
    }
    assert.equal((await changed).status, 200)
    const { body } = await pressed
    await beside.stop()
    assert.equal(body.result.description, results.checkoutChanged.description)
    assert.equal((await payments(id)).length, 0)
    is(await press(id), 'succeededInTestMode')
  })
  it('says of wrong names no more than twenty, and the beginning of each', async () => {
    const id = await create()
    const names = Array.from({ length: 100 }, (_, at) => [`customParameters[${at}${'x'.repeat(200)}]`, 'y'])
    const { status, body } = await press(id, Object.fromEntries(names))
    const errors = body.result.parameterErrors as { name: string }[]
    assert.deepEqual([status, errors.length, errors[0]!.name.length], [400, 20, 100])
    // Cut before it was looked for, fifteen digits of a number would be told, and kept with the request.
    for (const beside of [70, 71, 72, 80]) {
      const numbered = `customParameters[${'x'.repeat(beside)}.4539578763621486]`
      const said = await press(await create(), { [numbered]: 'y' })
      assert.equal(said.status, 400)
      assert.doesNotMatch(JSON.stringify(said.body), /45395787/)
    }
    await eventually(
      async () => (await gateway.pool.query(`select from request_records where status = 400`)).rowCount! > 4,
      'the requests are kept',
    )
    const { rows } = await gateway.pool.query<{ row: string }>('select t::text as row from request_records t')
    for (const { row } of rows) assert.doesNotMatch(row, /45395787/)
  })
})

describe('an attempt whose outcome nobody knows', () => {
  it('lets no other begin; when it is settled as not carried out, another may', async () => {
    const id = await create({ 'customParameters[simulateAnswer]': 'none' })
    const first = await press(id)
    is(first, 'pending')
    assert.equal(first.body.redirect, undefined)
    const { status: http, body } = await gateway.post(`/v1/checkouts/${id}`, { entityId: sandbox.entityId, amount: '1.00' })
    assert.deepEqual([http, body.result.code], [400, results.checkoutUnderWay.code])
    const waiting = press(id, another)
    await gateway.advance('1m')
    await waiting
    await eventually(async () => (await payments(id))[0]!.result !== null, 'recovery settles the first attempt')
    assert.equal((await payments(id))[0]!.result, 'timeoutReversed', JSON.stringify(await payments(id)))
  })
})

describe('answers that nobody heard', () => {
  it('of the status: the payment is found by the merchant transaction id', async () => {
    const merchantTransactionId = 'status-was-lost'
    const id = await create({ merchantTransactionId })
    await press(id)
    await status(id)
    const lost = await status(id)
    assert.equal(lost.status, 400)
    assert.match(
      lost.body.result.description,
      /No payment session found for the requested id - are you mixing test\/live servers or have you paid more than 30min ago\?/,
    )
    const { body } = await gateway.get('/v1/query', { entityId: sandbox.entityId, merchantTransactionId })
    assert.deepEqual([body.payments.length, body.payments[0].ndc], [1, id])
  })
  it('of the creation: the same key brings the same checkout, another body is refused', async () => {
    const fields = { entityId: sandbox.entityId, paymentType: 'DB', amount: '92.00', currency: 'EUR' }
    const key = { 'Idempotency-Key': 'checkout-1' }
    const [one, two] = await Promise.all([1, 2].map(() => gateway.post('/v1/checkouts', fields, key)))
    assert.equal(one!.text, two!.text)
    const changed = await gateway.post('/v1/checkouts', { ...fields, amount: '93.00' }, key)
    assert.deepEqual([changed.status, changed.body.result.description], [400, results.idempotencyKeyReused.description])
  })
  it('of the form: the missed return calls the shop once at minute 29, with what the browser would have brought', async () => {
    shop.received.length = 0
    const read = await create({ shopperResultUrl: `${shop.url}/read` })
    const unread = await create({ shopperResultUrl: `${shop.url}/unread?order=7` })
    const untouched = await create({ shopperResultUrl: `${shop.url}/untouched` })
    const stored = await create({
      paymentType: '',
      amount: '',
      currency: '',
      createRegistration: 'true',
      shopperResultUrl: `${shop.url}/stored`,
    })
    for (const id of [read, unread]) await press(id)
    await gateway.post(`/v1/checkouts/${stored}/registration`, visa, browser)
    is(await status(read), 'succeededInTestMode')
    await gateway.advance('28m')
    assert.deepEqual(shop.received, [])
    await gateway.advance('1m')
    assert.deepEqual(
      shop.received.map(({ method, path }) => `${method} ${path}`).sort(),
      [
        `GET /stored?id=${stored}&resourcePath=%2Fv1%2Fcheckouts%2F${stored}%2Fregistration`,
        `GET /unread?order=7&id=${unread}&resourcePath=%2Fv1%2Fcheckouts%2F${unread}%2Fpayment`,
      ],
      `${untouched} was not pressed`,
    )
    is(await status(unread), 'succeededInTestMode')
  })
})

describe('others', () => {
  it('another merchant neither reads, changes nor deletes a checkout', async () => {
    const id = await create()
    const query = { entityId: other.entityId }
    for (const reply of [
      await gateway.get(`/v1/checkouts/${id}/payment`, query, theirs),
      await gateway.get(`/v1/checkouts/${id}/registration`, query, theirs),
      await gateway.post(`/v1/checkouts/${id}`, { ...query, amount: '1.00' }, theirs),
      await remove(`/v1/checkouts/${id}`, query, theirs),
    ])
      assert.deepEqual(
        [reply.status, reply.body.result.code, reply.body.id],
        [400, results.checkoutGone.code, undefined],
        reply.text,
      )
    is(await status(id), 'pending')
  })
  it('a token of another channel of the merchant neither reads, changes nor deletes it', async () => {
    const order = { entityId: other.entityId, paymentType: 'DB', amount: '92.00', currency: 'EUR' }
    const { id } = (await gateway.post('/v1/checkouts', order, theirs)).body
    const narrow = { Authorization: `Bearer ${narrowToken}` }
    const query = { entityId: other.narrowId }
    for (const reply of [
      await gateway.get(`/v1/checkouts/${id}/payment`, query, narrow),
      await gateway.post(`/v1/checkouts/${id}`, { ...query, amount: '1.00', currency: 'EUR', paymentType: 'DB' }, narrow),
      await remove(`/v1/checkouts/${id}`, query, narrow),
    ])
      assert.deepEqual([reply.status, reply.body.result.code], [400, results.checkoutGone.code], reply.text)
    is(await gateway.get(`/v1/checkouts/${id}/payment`, { entityId: other.entityId }, theirs), 'pending')
    assert.equal((await gateway.post('/v1/checkouts', { ...order, ...query }, narrow)).status, 200, 'its own are its own')
  })
  it('how a brand pays is the merchant’s word, whoever names the brand', async () => {
    const typeOf = async (fields: Fields, made: Fields) => {
      const id = await create(made)
      is(await press(id, fields), 'succeededInTestMode')
      return (await status(id)).body.paymentType
    }
    const override = { 'overridePaymentType[VISA]': 'PA' }
    const saved = (await gateway.post('/v1/registrations', { entityId: sandbox.entityId, ...visa })).body.id
    const offered = { 'registrations[0].id': saved }
    const { 'card.cvv': cvv } = visa
    const none = { 'card.number': '', 'card.holder': '', 'card.expiryMonth': '', 'card.expiryYear': '', 'card.cvv': cvv }
    assert.equal(await typeOf({}, override), 'PA', 'stated')
    assert.equal(await typeOf({ paymentBrand: '' }, override), 'PA', 'by its number')
    assert.equal(await typeOf({ ...none, paymentBrand: '', registrationId: saved }, { ...override, ...offered }), 'PA', 'saved')
    const wallet = { 'overridePaymentType[PAYPAL]': 'PA', ...offered }
    assert.equal(
      await typeOf({ ...none, paymentBrand: 'PAYPAL', registrationId: saved }, wallet),
      'DB',
      'another brand beside it',
    )
  })
  it('a saved card that was not offered, or is gone since, pays nothing, whatever card stands beside it', async () => {
    const store = async () => (await gateway.post('/v1/registrations', { entityId: sandbox.entityId, ...visa })).body.id
    const [offered, others, deleted] = [await store(), await store(), await store()]
    const id = await create({ 'registrations[0].id': offered, 'registrations[1].id': deleted })
    await remove(`/v1/registrations/${deleted}`, { entityId: sandbox.entityId })
    is(await press(id, { registrationId: others }), 'registrationDoesNotExist')
    is(await press(id, { registrationId: deleted }), 'registrationDeleted')
    assert.deepEqual(await payments(id), [])
    is(await press(id, { registrationId: offered }), 'succeededInTestMode')
    assert.equal(await paid(id), 1)
  })
  it('of a form so many saved cards can be chosen, each once', async () => {
    const saved = (await gateway.post('/v1/registrations', { entityId: sandbox.entityId, ...visa })).body.id
    const many = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`registrations[${at}].id`, saved]))
    const id = await create(many(50))
    const times = (text: string) => text.split(saved).length - 1
    const page = async (path: string) => times(await (await fetch(`${gateway.baseUrl}${path}`)).text())
    assert.equal(await page(`/pay/${id}`), await page(`/pay/${await create(many(1))}`))
    const fields = { entityId: sandbox.entityId, paymentType: 'DB', amount: '92.00', currency: 'EUR', ...many(51) }
    const { status, body } = await gateway.post('/v1/checkouts', fields)
    assert.deepEqual([status, body.result.parameterErrors[0].name], [400, 'registrations[50].id'])
  })
  it('get no code of a checkout that there is not, and scripts by their names alone', async () => {
    const get = async (path: string) => {
      const response = await fetch(`${gateway.baseUrl}${path}`)
      return { status: response.status, text: await response.text() }
    }
    const real = await get(`/pay/${await create()}/code`)
    assert.match(real.text, /<svg[^>]*viewBox/)
    const codeIn = /<path[^>]{2000,}/
    assert.match(real.text, codeIn)
    for (const id of ['nothing', 'A'.repeat(2200), '%00']) assert.doesNotMatch((await get(`/pay/${id}/code`)).text, codeIn)
    for (const path of ['/pay/4200000000000000', '/pay/4200000000000000/code', '/v1/form/4200000000000000'])
      assert.doesNotMatch((await get(path)).text, /4200000000000000/, path)
    for (const path of ['%00/x.js', 'aa/%00', `${'a'.repeat(32)}/%00`])
      assert.equal((await get(`/v1/static/${path}`)).status, 404)
  })
  it('reads without credentials are a matter of the channel; without an entity its own counts', async () => {
    const open = await create()
    const bare = async (id: string) => {
      const response = await fetch(`${gateway.baseUrl}/v1/checkouts/${id}/payment`)
      return { status: response.status, body: await response.json() }
    }
    is(await bare(open), 'pending')
    is(await gateway.get(`/v1/checkouts/${open}/payment`), 'pending')
    assert.equal((await gateway.get(`/v1/checkouts/${open}/payment`, {}, { Authorization: 'Bearer wrong' })).status, 403)
    const closed = (await gateway.post('/v1/checkouts', narrow({ entityId: other.entityId }), theirs)).body.id
    assert.equal((await bare(closed)).status, 401)
    is(await gateway.get(`/v1/checkouts/${closed}/payment`, {}, theirs), 'pending')
  })
  it('strangers are turned away before their checkout is looked for; whoever has a token and names no entity waits where payments do', async () => {
    const [id, removed] = [await create(), await create()]
    const path = `/v1/checkouts/${id}`
    const wrong = { 'authentication.userId': other.userId, 'authentication.password': 'a-guess' }
    const waiting = await whileNobodyReads(async () => {
      for (const [status, Authorization] of [
        [401, ''],
        [401, 'x'],
        [403, 'Bearer wrong'],
      ] as const) {
        const headers = { Authorization }
        for (const query of [{}, { entityId: sandbox.entityId }]) {
          assert.equal((await gateway.post(path, { amount: '93.00', ...query }, headers)).status, status)
          assert.equal((await remove(path, query, headers)).status, status)
          assert.equal((await gateway.get(`${path}/payment`, query, headers)).status, status)
          assert.equal((await gateway.get(`${path}/registration`, query, headers)).status, status)
        }
      }
      assert.equal((await fetch(`${gateway.baseUrl}${path}`, { method: 'POST', body: new URLSearchParams(wrong) })).status, 403)
      const all = [
        status(id),
        gateway.get(`${path}/payment`),
        gateway.post(path, { amount: '93.00' }),
        remove(`/v1/checkouts/${removed}`, {}),
      ]
      const pools = Array(4).fill('tollgate work')
      await eventually(async () => (await lockWaiters(gateway.pool)).length === pools.length, 'they look')
      assert.deepEqual(
        (await lockWaiters(gateway.pool)).map(({ name }) => name),
        pools,
      )
      return all
    })
    for (const { status } of await Promise.all(waiting)) assert.equal(status, 200)
  })
  it('of one network so many read without credentials at a time', async () => {
    const id = await create()
    const told: number[] = []
    const read = async () => told.push((await fetch(`${gateway.baseUrl}/v1/checkouts/${id}/payment`)).status)
    const waiting = await whileNobodyReads(async () => {
      const all = Array.from({ length: networkRequestsMost + 3 }, read)
      await eventually(async () => told.length === 3, 'those above the limit are answered')
      return all
    })
    await Promise.all(waiting)
    assert.deepEqual(told, [429, 429, 429, ...Array.from({ length: networkRequestsMost }, () => 200)])
  })
  it('reads of one checkout are limited by its channel', async () => {
    const { id } = (await gateway.post('/v1/checkouts', narrow(), theirs)).body
    const read = () => gateway.get(`/v1/checkouts/${id}/payment`, { entityId: other.narrowId }, theirs)
    const replies = [await read(), await read(), await read()]
    assert.deepEqual(
      replies.map(reply => reply.status),
      [200, 200, 429],
    )
    assert.equal(replies[2]!.body.result.code, '800.120.100')
    assert.ok(Number(replies[2]!.headers.get('retry-after')) > 0)
  })
  it('whoever reads without credentials takes no reading from the merchant, nor from another network', async () => {
    const { id } = (await gateway.post('/v1/checkouts', narrow({ entityId: other.openId }), theirs)).body
    const from = (localAddress: string) =>
      new Promise<number | undefined>((done, failed) => {
        http
          .get(`${gateway.baseUrl}/v1/checkouts/${id}/payment`, { localAddress, agent: false }, response => {
            response.resume()
            done(response.statusCode)
          })
          .on('error', failed)
      })
    for (const [address, status] of [
      ['127.0.0.1', 200],
      ['127.0.0.1', 200],
      ['127.0.0.1', 429],
      ['127.0.0.2', 200],
    ] as const)
      assert.equal(await from(address), status, address)
    // The merchant's server may stand in the same network.
    const read = async () => (await gateway.get(`/v1/checkouts/${id}/payment`, { entityId: other.openId }, theirs)).status
    assert.deepEqual([await read(), await read(), await read()], [200, 200, 429])
  })
  it('who tries out cards is stopped', async () => {
    const id = await create()
    for (let at = 0; at < attemptsMost; at++)
      is(
        await press(id, { 'card.number': '4000000000000002', 'card.holder': `Jane Jones ${'x'.repeat(at)}` }),
        'declinedByAuthorization',
      )
    const stopped = await press(id)
    assert.deepEqual([stopped.status, stopped.body.result.code], [429, '800.120.100'])
    assert.equal((await payments(id)).length, attemptsMost)
  })
  it('a page of another site gets no JSON; a plain form of a shop is sent on', async () => {
    const id = await create()
    const foreign = await gateway.post(`/v1/checkouts/${id}/payment`, visa, { ...browser, Origin: 'https://evil.example' })
    assert.equal(foreign.status, 403)
    assert.equal((await payments(id)).length, 0)
    const plain = (fields: Fields) =>
      fetch(`${gateway.baseUrl}/v1/checkouts/${id}/payment`, {
        method: 'POST',
        redirect: 'manual',
        headers: { Origin: 'https://shop.example', Accept: 'text/html' },
        body: new URLSearchParams(fields),
      })
    const declined = await plain({ ...visa, 'card.number': '4000000000000002' })
    const back = `${backUrl}&id=${id}&resourcePath=%2Fv1%2Fcheckouts%2F${id}%2Fpayment`
    assert.deepEqual([declined.status, declined.headers.get('location')], [303, back])
    const done = await plain(visa)
    assert.deepEqual([done.status, done.headers.get('location')], [303, back])
    assert.equal(await paid(id), 1)
  })
})

/** While the table of checkouts is locked. */
async function whileNobodyReads<Value>(work: () => Promise<Value>): Promise<Value> {
  const holder = await gateway.pool.connect()
  try {
    await holder.query('begin; lock table checkouts in access exclusive mode')
    return await work()
  } finally {
    await holder.query('rollback')
    holder.release()
  }
}

const narrow = (fields: Fields = {}): Fields => ({
  entityId: other.narrowId,
  paymentType: 'DB',
  amount: '92.00',
  currency: 'EUR',
  ...fields,
})

async function remove(
  path: string,
  fields: Fields,
  headers: Record<string, string> = {},
): Promise<{ status: number; body: Body; text: string }> {
  const response = await fetch(`${gateway.baseUrl}${path}`, {
    method: 'DELETE',
    headers: { Authorization: `Bearer ${sandbox.accessToken}`, ...headers },
    body: new URLSearchParams(fields),
  })
  const text = await response.text()
  return { status: response.status, body: JSON.parse(text), text }
}

it('a key that made a checkout makes no second one for as long as it is kept', async () => {
  const fields = { entityId: sandbox.entityId, paymentType: 'DB', amount: '92.00', currency: 'EUR' }
  const make = async () => (await gateway.post('/v1/checkouts', fields, { 'Idempotency-Key': 'checkout-kept' })).body.id
  const id = await make()
  is(await press(id), 'succeededInTestMode')
  is(await status(id), 'succeededInTestMode')
  await gateway.advance('26h')
  assert.equal(await make(), id)
  assert.equal((await press(id)).status, 400)
  assert.equal(await paid(id), 1)
})

it('a twin with another body, which is refused, takes nothing away from the life of the first', async () => {
  const fields = { entityId: other.entityId, paymentType: 'DB', amount: '92.00', currency: 'EUR', validMinutes: '7200' }
  const key = { 'Idempotency-Key': 'checkout-twin', ...theirs }
  const { body } = await gateway.post('/v1/checkouts', fields, key)
  const { validMinutes: _, ...shorter } = fields
  const twin = async () => assert.equal((await gateway.post('/v1/checkouts', { ...shorter, amount: '1.00' }, key)).status, 400)
  await twin()
  await gateway.pool.query('delete from idempotency_keys') // the checkout lives longer than its key
  await twin()
  await gateway.post('/sandbox/clock', { entityId: other.entityId, advance: '80h' }, theirs)
  is(await press(body.id), 'succeededInTestMode')
})

it('what the merchant said stands sealed, and is erased a day after the end; the payment stays', async () => {
  const id = await create({ 'customer.givenName': 'Canary', 'customer.surname': 'Bird' })
  await press(id)
  const find = async () =>
    (await gateway.pool.query('select * from checkouts where id = $1', [id.slice(0, 32).toLowerCase()])).rows
  const [row] = await find()
  assert.ok(!Buffer.concat([row.sealed, Buffer.from(JSON.stringify(row))]).includes('Canary'))
  await gateway.advance('23h')
  assert.equal((await find()).length, 1)
  await gateway.advance('2h')
  assert.equal((await find()).length, 0)
  assert.equal((await payments(id)).length, 1)
  assert.equal(
    (await gateway.pool.query('select 1 from checkout_attempts where checkout_id = $1', [id.slice(0, 32).toLowerCase()]))
      .rowCount,
    0,
  )
})

it('the script of a checkout that asks for its hash stays the same', async () => {
  const { body } = await gateway.post('/v1/checkouts', narrow({ entityId: sandbox.entityId, integrity: 'true' }))
  assert.match(body.integrity, /^sha384-[A-Za-z0-9+/]{64}$/)
  assert.deepEqual(Object.keys(body).slice(-2), ['id', 'integrity'])
})
