// Payments whose shopper leaves and comes back, over HTTP with a shopper that has no browser: every status of 3-D Secure, every ending at the
// wallet and at the bank, forged and repeated returns, races and the ends of time.

import assert from 'node:assert/strict'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { limits } from '../src/contract/limits.ts'
import { type ResultName, results } from '../src/contract/results/results.ts'
import { shortHead } from '../src/http/head.ts'
import { decrypt } from '../src/notifications/cipher.ts'
import { languages } from '../src/pages/languages/languages.ts'
import { decode } from './support/entities.ts'
import { type Body, eventually, type Fields, sandbox, type TestGateway, testGateway } from './support/gateway.ts'
import { makeShopper, type Seen, type Shopper } from './support/shopper.ts'

let gateway: TestGateway
before(async () => {
  gateway = await testGateway()
})
after(() => gateway.stop())

const shop = 'https://shop.example/back?order=7'

/** A payment that sends its shopper away. */
async function begin(fields: Fields): Promise<Body> {
  const { status, body } = await gateway.pay({ shopperResultUrl: shop, ...fields })
  assert.equal(status, 200, JSON.stringify(body))
  assert.equal(body.result.code, '000.200.000', JSON.stringify(body))
  return body
}

const secure = (number: string, more: Fields = {}): Fields => ({
  'card.number': number,
  'customParameters[3DS2_enrolled]': 'true',
  ...brandOf(number),
  ...more,
})

function brandOf(number: string): Fields {
  if (number.startsWith('4')) return { paymentBrand: 'VISA' }
  if (number.startsWith('3')) return { paymentBrand: 'AMEX', 'card.cvv': '1234' }
  return { paymentBrand: /^(5[1-5])/.test(number) ? 'MASTER' : 'MAESTRO' }
}

const read = async (id: string): Promise<Body> => (await gateway.get(`/v1/payments/${id}`, { entityId: sandbox.entityId })).body

/** Walks to the shop and reads the final status. */
async function finish({ id, redirect }: Body, auto: string, shopper: Shopper = makeShopper()): Promise<Body> {
  const seen = await shopper.walk(`${redirect.url}?auto=${auto}`, gateway.baseUrl)
  atShop(seen, id)
  return read(id)
}

function atShop({ status, location, text, headers }: Seen, id: string): void {
  assert.equal(status, 303, text)
  assert.equal(headers.get('content-security-policy'), null, 'a redirect shows nothing, and leads on inside of frames too')
  assert.equal(location, `${shop}&id=${id}&resourcePath=%2Fv1%2Fpayments%2F${id}`)
}

function is(body: Body, name: ResultName): void {
  assert.deepEqual(
    [body.result.code, body.result.description],
    [results[name].code, results[name].description],
    JSON.stringify(body),
  )
  assert.equal(body.redirect, undefined)
}

describe('the pending answer', () => {
  it('has a redirect to a page of ours, with parameters as a list', async () => {
    const body = await begin(secure('4200000000000018'))
    assert.match(body.redirect.url, new RegExp(`^${gateway.baseUrl}/r/[A-Za-z0-9_-]{22}\\.[0-9a-z]{1,25}$`))
    assert.deepEqual(body.redirect.parameters, [])
  })
  it('stays readable as it was given while the shopper is away, and a twin gets its very bytes', async () => {
    const fields = {
      entityId: sandbox.entityId,
      paymentType: 'DB',
      amount: '92.00',
      currency: 'EUR',
      shopperResultUrl: shop,
      ...paypal(),
    }
    const key = { 'Idempotency-Key': 'away' }
    const { body: started, text } = await gateway.post('/v1/payments', fields, key)
    assert.ok(started.redirect.url && started.resultDetails.CORRELATIONID)
    const asGiven = ({ timestamp: _now, ...rest }: Body) => rest
    assert.deepEqual(asGiven(await read(started.id)), asGiven(started))
    for (const path of [`/v1/query/${started.id}`, `/v3/query/${started.id}`]) {
      const { body } = await gateway.get(path, { entityId: sandbox.entityId })
      const [found] = (body.payments ?? body.records ?? [body]) as Body[]
      assert.deepEqual(found.redirect, started.redirect, path)
    }
    const shopper = makeShopper()
    const seen = await shopper.walk(started.redirect.url, gateway.baseUrl)
    await shopper.press(seen, 'agree', gateway.baseUrl, { buyer: 'insufficient' }) // sent back: another step of the same payment
    assert.equal((await gateway.post('/v1/payments', fields, key)).text, text)
    is(await finish(started, 'cancel'), 'cancelledByShopper')
  })
  it('is what the notification of the pending state says, word for word', async () => {
    const listen = async (after: string) =>
      (await gateway.post('/sandbox/notifications', { entityId: sandbox.entityId, name: 'word-for-word', after })).body
    await listen('0')
    const started = await begin(paypal())
    const told = await eventually(async () => {
      const { secret, notifications } = await listen('0')
      for (const { headers, body } of notifications) {
        const sealed = { iv: headers['X-Initialization-Vector'], tag: headers['X-Authentication-Tag'], body }
        const { payload } = JSON.parse(decrypt(Buffer.from(secret, 'hex'), sealed)!)
        if (payload.id === started.id) return payload
      }
      return undefined
    }, 'the pending payment is announced')
    const { presentationAmount: _amount, presentationCurrency: _currency, ...payload } = told
    assert.deepEqual(payload, started)
  })
})

// The facts' set of cards: what each ends as. Shopper decides = challenge; those are below.
const frictionless: readonly (readonly [
  what: string,
  numbers: readonly string[],
  expected: {
    result: ResultName
    eci: readonly [visa: string | undefined, mastercard: string | undefined]
    status: string | undefined
  },
])[] = [
  [
    'authenticated, with the issuer’s hidden frame',
    ['4200000000000091', '5200000000000007', '374500262001008', '6761301000993772'],
    { result: 'succeededInTestMode', eci: ['05', '02'], status: 'Y' },
  ],
  [
    'attempted, with the issuer’s hidden frame',
    ['4200000000000109', '5200000000000023', '377277081382243', '6706981111111113'],
    { result: 'succeededInTestMode', eci: ['06', '01'], status: 'A' },
  ],
  [
    'authenticated, without a hidden frame',
    ['4200000000000026', '5200000000000056', '375987000000062', '6799851000000032'],
    { result: 'succeededInTestMode', eci: ['05', '02'], status: 'Y' },
  ],
  [
    'attempted, without a hidden frame',
    ['4200000000000059', '5200000000000106', '373953192351004', '6007930123456780'],
    { result: 'succeededInTestMode', eci: ['06', '01'], status: 'A' },
  ],
  [
    'a technical error',
    ['4012001037461114', '5434580000000006', '375987000169875', '6761301000941201'],
    { result: 'succeededInTestMode', eci: [undefined, undefined], status: 'U' },
  ],
  [
    'not enrolled',
    ['4012001037141112', '5457350076543210', '375987000169883', '6761301000946341'],
    { result: 'succeededInTestMode', eci: ['06', '01'], status: 'N' },
  ],
  [
    'not participating',
    ['4532497088771651', '5497260847316287', '343923092050144', '6761257707836567'],
    { result: 'succeededInTestMode', eci: [undefined, undefined], status: undefined },
  ],
]

describe('the cards of 3-D Secure without a challenge', () => {
  for (const [what, numbers, expected] of frictionless) {
    for (const number of numbers) {
      it(`${number} ${what}`, async () => {
        const body = await finish(await begin(secure(number)), 'approve')
        is(body, expected.result)
        const { eci, authenticationStatus } = body.threeDSecure ?? {}
        const mastercard = ['MASTER', 'MAESTRO'].includes(body.paymentBrand)
        assert.deepEqual([eci, authenticationStatus], [expected.eci[mastercard ? 1 : 0], expected.status])
      })
    }
  }

  it('asks the merchant to begin with the hidden frame only where the issuer wants one', async () => {
    const [item] = (await begin(secure('4200000000000091'))).redirect.preconditions
    assert.deepEqual([item.origin, item.waitUntil, Array.isArray(item.parameters)], ['iframe#hidden', 'iframe#onload', true])
    assert.equal((await begin(secure('4200000000000026'))).redirect.preconditions, undefined)
  })

  it('answers at once when the merchant describes the browser and the issuer wants no frame', async () => {
    const { status, body } = await gateway.pay({ shopperResultUrl: shop, ...secure('4200000000000026'), ...browser })
    assert.equal(status, 200)
    is(body, 'succeededInTestMode')
    assert.equal(body.threeDSecure.flow, 'frictionless')
    assert.match(body.threeDSecure.verificationId, /^[A-Za-z0-9+/]{27}=$/)
    assert.equal(body.threeDSecure.version, '2.2.0')
    assert.match(body.threeDSecure.dsTransactionId, /^[0-9a-f-]{36}$/)
    assert.match(body.threeDSecure.acsTransactionId, /^[0-9a-f-]{36}$/)
  })
})

const browser: Fields = {
  'customer.browser.acceptHeader': 'text/html',
  'customer.browser.userAgent': 'Mozilla/5.0',
  'customer.browser.language': 'de',
  'customer.browser.screenHeight': '900',
  'customer.browser.screenWidth': '1600',
  'customer.browser.screenColorDepth': '24',
  'customer.browser.timezone': '-60',
  'customer.browser.javaEnabled': 'false',
  'customer.browser.javascriptEnabled': 'true',
  'customer.browser.challengeWindow': '2',
}

const challengeCards = (
  '4200000000000042 4200000000000067 5200000000000015 5200000000000049 343434343434343 375987000000021 6799998900000060018 6773670009114879 ' +
  '4200000000000018 4200000000000075 5200000000000064 5200000000000072 375987000169867 371449635398431 67034200554565015 6759888888888888'
).split(' ')

const endings: readonly (readonly [auto: string, result: ResultName, eci: string | undefined])[] = [
  ['approve', 'succeededInTestMode', '05'],
  ['attempt', 'succeededInTestMode', '06'],
  ['decline', 'userAuthenticationFailed', '07'],
  ['unavailable', 'succeededInTestMode', undefined],
  ['cancel', 'threeDSecureAbandoned', '07'],
  ['timeout', 'threeDSecureAbandoned', '07'],
  ['reject', 'threeDSecureSuspectedFraud', '07'],
]

describe('a challenge', () => {
  for (const number of challengeCards) {
    it(`comes with ${number}`, async () => {
      const body = await finish(await begin(secure(number, browser)), 'approve')
      is(body, 'succeededInTestMode')
      assert.equal(body.threeDSecure.flow, 'challenge')
    })
  }
  for (const [auto, result, eci] of endings) {
    it(`ends by ${auto} as ${result}, PA and DB alike`, async () => {
      for (const paymentType of ['PA', 'DB']) {
        const body = await finish(await begin(secure('4200000000000018', { paymentType })), auto)
        is(body, result)
        assert.equal(body.threeDSecure.eci, eci)
      }
    })
  }
  it('takes the code 1234, forgives two wrong ones, and not a third', async () => {
    const shopper = makeShopper('de')
    const started = await begin(secure('4200000000000018'))
    let seen = await shopper.walk(started.redirect.url, gateway.baseUrl)
    assert.match(seen.text, /Testseite: Es fließt kein Geld/)
    seen = await shopper.press(seen, 'otp', gateway.baseUrl, { otp: '0000' })
    assert.match(seen.text, /role="alert"/)
    atShop(await shopper.press(seen, 'otp', gateway.baseUrl, { otp: '1234' }), started.id)
    is(await read(started.id), 'succeededInTestMode')

    const again = await begin(secure('4200000000000018'))
    seen = await shopper.walk(again.redirect.url, gateway.baseUrl)
    for (const otp of ['1111', '2222']) seen = await shopper.press(seen, 'otp', gateway.baseUrl, { otp })
    atShop(await shopper.press(seen, 'otp', gateway.baseUrl, { otp: '3333' }), again.id)
    is(await read(again.id), 'threeDSecureTooManyAttempts')
  })
  it('can be forced on any card, and its end is read by the merchant', async () => {
    const forced = { 'customParameters[3DS2_flow]': 'challenge' }
    is(await finish(await begin(secure('4200000000000000', forced)), 'approve'), 'succeededInTestMode')
    is(
      await finish(await begin(secure('4200000000000000', { 'threeDSecure.challengeIndicator': '4' })), 'decline'),
      'userAuthenticationFailed',
    )
  })
  it('is followed by capture, refund and reversal like any other payment', async () => {
    const pa = await finish(await begin(secure('4200000000000018', { paymentType: 'PA' })), 'approve')
    const captured = await gateway.refer(pa.id, { paymentType: 'CP', amount: '92.00', currency: 'EUR' })
    assert.equal(captured.body.result.code, '000.100.110')
    const both = await finish(await begin(secure('4200000000000018', { paymentType: 'PA.CP' })), 'approve')
    await eventually(async () => {
      const { rows } = await gateway.pool.query('select 1 from captures where payment_id = $1', [both.id])
      return rows.length === 1
    }, 'PA.CP is captured after its challenge')
  })
  it('may be decoupled: the shopper goes to the shop, the result comes later', async () => {
    const started = await begin(secure('4200000000000000', { ...browser, 'customParameters[3DS2_flow]': 'decoupled' }))
    const shopper = makeShopper()
    atShop(await shopper.walk(started.redirect.url, gateway.baseUrl), started.id)
    assert.equal((await read(started.id)).result.code, '000.200.000')
    await eventually(async () => (await read(started.id)).result.code === '000.100.110', 'the result comes')
  })
  it('is no capture’s reference while it is pending', async () => {
    const pending = await begin(secure('4200000000000018', { paymentType: 'PA' }))
    const { body } = await gateway.refer(pending.id, { paymentType: 'CP', amount: '92.00', currency: 'EUR' })
    assert.equal(body.result.code, '700.400.570')
  })
})

describe('the policy', () => {
  it('leaves cards alone where nobody asks', async () => {
    const { body } = await gateway.pay({ 'card.number': '4200000000000018' })
    is(body, 'succeededInTestMode')
    assert.equal(body.threeDSecure, undefined)
  })
  it('wants the shopper’s way back before anything is called', async () => {
    const { status, body } = await gateway.pay(secure('4200000000000018'))
    assert.equal(status, 400)
    assert.equal(body.id, undefined)
    assert.deepEqual(body.result.parameterErrors, [
      { name: 'shopperResultUrl', message: 'is required where the shopper is sent away' },
    ])
  })
  it('waits for a payment without authentication no longer than the other side may take', async () => {
    const { status, body } = await gateway.pay({ 'customParameters[simulateDelay]': '15000' })
    assert.deepEqual([status, body.result.code], [200, '000.200.000'])
    // Recovery does not wait again: its reversal is answered at once.
    await gateway.advance('1m')
    assert.equal((await read(body.id)).result.code, '900.100.301')
  })
  it('leaves merchant-initiated payments alone', async () => {
    const { body } = await gateway.pay(
      secure('4200000000000018', { 'standingInstruction.mode': 'REPEATED', 'standingInstruction.source': 'MIT' }),
    )
    is(body, 'succeededInTestMode')
  })
  it('takes the result of an authentication made elsewhere, when it fits', async () => {
    const made = {
      'threeDSecure.eci': '05',
      'threeDSecure.verificationId': 'AAABBZEEBgAAAAAAAAQGAAAAAAA=',
      'threeDSecure.version': '2.2.0',
    }
    const { body } = await gateway.pay(made)
    is(body, 'succeededInTestMode')
    assert.deepEqual(body.threeDSecure, { eci: '05', verificationId: 'AAABBZEEBgAAAAAAAAQGAAAAAAA=', version: '2.2.0' })
    for (const [wrong, code] of [
      [{ 'threeDSecure.eci': '02' }, '100.390.117'],
      [{ 'threeDSecure.eci': '05' }, '100.390.117'],
      [{ ...made, 'threeDSecure.authenticationStatus': 'A' }, '100.390.117'],
      [{ ...made, 'threeDSecure.authenticationStatus': 'N' }, '100.390.114'],
    ] as const)
      assert.equal((await gateway.pay(wrong)).body.result.code, code, JSON.stringify(wrong))
  })
})

describe('/v1/threeDSecure', () => {
  const authenticate = (number: string, more: Fields = {}) => {
    const { 'customParameters[3DS2_enrolled]': _asked, ...fields } = secure(number, more)
    return gateway.post('/v1/threeDSecure', {
      entityId: sandbox.entityId,
      amount: '92.00',
      currency: 'EUR',
      shopperResultUrl: shop,
      'card.expiryMonth': '05',
      'card.expiryYear': '2034',
      ...fields,
      'card.cvv': '',
    })
  }
  const outcome = async (id: string) => (await gateway.get(`/v1/threeDSecure/${id}`, { entityId: sandbox.entityId })).body

  it('authenticates and moves nothing', async () => {
    const { body } = await authenticate('4200000000000018')
    assert.equal(body.result.code, '000.200.000')
    const seen = await makeShopper().walk(`${body.redirect.url}?auto=approve`, gateway.baseUrl)
    assert.equal(seen.location, `${shop}&id=${body.id}&resourcePath=%2Fv1%2FthreeDSecure%2F${body.id}`)
    const ended = await outcome(body.id)
    assert.deepEqual([ended.result.code, ended.paymentType, ended.threeDSecure.eci], ['000.100.110', '3D', '05'])
    const { rows } = await gateway.pool.query('select 1 from journal where payment_id = $1', [body.id])
    assert.equal(rows.length, 0)
    assert.equal((await gateway.refer(body.id, { paymentType: 'CP', amount: '1.00', currency: 'EUR' })).status, 400)
  })
  for (const [number, code] of [
    ['4200000000000026', '000.400.110'],
    ['4012001037141112', '000.400.102'],
    ['4012001037461114', '000.400.101'],
    ['4200000000000000', '000.400.109'],
  ] as const) {
    it(`answers ${code} for ${number} at once when the browser is described`, async () => {
      const { body } = await authenticate(number, browser)
      assert.equal(body.result.code, code, JSON.stringify(body))
      assert.equal((await outcome(body.id)).result.code, code)
    })
  }
  it('does not show a payment, nor another merchant’s record', async () => {
    const { body } = await gateway.pay()
    assert.equal((await gateway.get(`/v1/threeDSecure/${body.id}`, { entityId: sandbox.entityId })).status, 404)
  })
})

const paypal = (more: Fields = {}): Fields => ({
  paymentBrand: 'PAYPAL',
  merchantTransactionId: 'order-0001',
  merchantInvoiceId: 'invoice-not-for-others',
  'card.number': '',
  'card.cvv': '',
  'card.holder': '',
  'card.expiryMonth': '',
  'card.expiryYear': '',
  ...more,
})

describe('the wallet', () => {
  it('answers pending with its correlation, and later who paid', async () => {
    const started = await begin(paypal())
    assert.match(started.resultDetails.CORRELATIONID, /^[0-9a-f]{13}$/)
    assert.equal(started.resultDetails.AcquirerResponse, 'Success')
    assert.deepEqual(
      started.redirect.parameters.map(({ name }: { name: string }) => name),
      ['cmd', 'token'],
    )
    const body = await finish(started, 'brazil')
    is(body, 'succeededInTestMode')
    const { CORRELATIONID, PAYERID, TAXIDTYPE, TAXID, SHIPTOSTATE, ConnectorTxID1, AcquirerResponse } = body.resultDetails
    assert.deepEqual([TAXIDTYPE, TAXID, SHIPTOSTATE, AcquirerResponse], ['BR_CPF', '11144477735', 'SP', 'Success'])
    for (const value of [CORRELATIONID, PAYERID, ConnectorTxID1]) assert.match(value, /^[0-9A-Fa-f]{13,17}$/)
    assert.deepEqual(body.virtualAccount, { accountId: 'maria.silva@buyer.example', holder: 'Maria Silva' })
    assert.equal(body.merchantInvoiceId, 'invoice-not-for-others')
  })
  it('takes a form post with the parameters as well as a plain link', async () => {
    const started = await begin(paypal())
    const fields = Object.fromEntries(started.redirect.parameters.map(({ name, value }: Fields) => [name, value]))
    const shopper = makeShopper()
    const seen = await shopper.walk(started.redirect.url, gateway.baseUrl, fields)
    atShop(await shopper.press(seen, 'agree', gateway.baseUrl, { buyer: 'verified' }), started.id)
    is(await read(started.id), 'succeededInTestMode')
  })
  for (const [auto, result] of [
    ['pending', 'reviewStillPending'],
    ['declined', 'declinedByWallet'],
    ['cancel', 'cancelledByShopper'],
    ['slow', 'succeededInTestMode'],
  ] as const) {
    it(`ends by ${auto} as ${result}`, async () => is(await finish(await begin(paypal()), auto), result))
  }
  it('sends a buyer without funds back once (10486), and then is paid', async () => {
    const started = await begin(paypal())
    const shopper = makeShopper()
    let seen = await shopper.walk(started.redirect.url, gateway.baseUrl)
    seen = await shopper.press(seen, 'agree', gateway.baseUrl, { buyer: 'insufficient' })
    assert.match(seen.text, /funding source was declined/)
    assert.equal((await read(started.id)).result.code, '000.200.000')
    atShop(await shopper.press(seen, 'agree', gateway.baseUrl, { buyer: 'insufficient' }), started.id)
    is(await read(started.id), 'succeededInTestMode')
  })
  it('settles a payment whose answer was lost, without paying twice', async () => {
    const started = await begin(paypal())
    const shopper = makeShopper()
    const seen = await shopper.walk(started.redirect.url, gateway.baseUrl)
    const walking = shopper.press(seen, 'agree', gateway.baseUrl, { buyer: 'broken' })
    await eventually(async () => {
      const { rows } = await gateway.pool.query(
        `select 1 from due_work where kind = 'recover' and subject_id = $1 and attempts = 0`,
        [started.id],
      )
      const answered = (await read(started.id)).result.code !== '000.200.000'
      if (!answered && rows.length > 0) await gateway.advance('2m')
      return answered
    }, 'the wallet’s answer is found again')
    await walking
    is(await read(started.id), 'succeededInTestMode')
  })
  it('captures, refunds and voids', async () => {
    const pa = await finish(await begin(paypal({ paymentType: 'PA' })), 'approve')
    is(pa, 'succeededInTestMode')
    const captured = await gateway.refer(pa.id, { paymentType: 'CP', amount: '50.00', currency: 'EUR' })
    is(captured.body, 'succeededInTestMode')
    assert.match(captured.body.resultDetails.CORRELATIONID, /^[0-9a-f]{13}$/)
    is((await gateway.refer(pa.id, { paymentType: 'RF', amount: '20.00', currency: 'EUR' })).body, 'succeededInTestMode')
    is(
      (await gateway.refer(captured.body.id, { paymentType: 'RF', amount: '30.00', currency: 'EUR' })).body,
      'succeededInTestMode',
    )
    assert.equal(
      (await gateway.refer(pa.id, { paymentType: 'RF', amount: '0.01', currency: 'EUR' })).body.result.code,
      '700.400.200',
    )

    const voided = await finish(await begin(paypal({ paymentType: 'PA' })), 'approve')
    is((await gateway.refer(voided.id, { paymentType: 'RV' })).body, 'succeededInTestMode')
    const sale = await finish(await begin(paypal()), 'approve')
    is((await gateway.refer(sale.id, { paymentType: 'RV' })).body, 'succeededInTestMode')
  })
  it('refuses what it cannot do before it is called', async () => {
    const { shopperResultUrl: _none, ...without } = { shopperResultUrl: '', ...paypal() }
    assert.equal((await gateway.pay(without)).status, 400)
    assert.equal((await gateway.pay({ ...paypal(), shopperResultUrl: shop, paymentType: 'CD' })).body.result.code, '600.200.310')
  })
  it('sends the cart only when it adds up', async () => {
    const cart = (price: string): Fields => ({
      'cart.items[0].name': 'Tea',
      'cart.items[0].price': price,
      'cart.items[0].quantity': '2',
    })
    for (const price of ['46.00', '45.99']) is(await finish(await begin(paypal(cart(price))), 'approve'), 'succeededInTestMode')
  })
})

const sofort = (more: Fields = {}): Fields => paypal({ paymentBrand: 'SOFORTUEBERWEISUNG', ...more })

describe('the online transfer', () => {
  for (const [auto, result] of [
    ['approve', 'succeededInTestMode'],
    ['decline', 'refusedByBank'],
    ['cancel', 'cancelledByShopper'],
  ] as const) {
    it(`ends by ${auto} as ${result}`, async () => {
      const body = await finish(await begin(sofort()), auto)
      assert.equal(body.result.code, results[result].code)
      assert.match(body.resultDetails.ConnectorTxID1, /^[0-9a-f-]{36}$/)
    })
  }
  it('lets the shopper go while the bank takes its time, and hears of the money by notice', async () => {
    const started = await begin(sofort())
    const pending = await finish(started, 'later')
    assert.equal(pending.result.code, '000.200.000')
    assert.deepEqual(pending.redirect, started.redirect)
    await eventually(async () => (await read(started.id)).result.code === '000.100.110', 'the notice comes')
  })
  it('is paid though the shopper never returns', async () => {
    const started = await begin(sofort())
    await makeShopper().walk(`${started.redirect.url}?auto=leavePaid`, gateway.baseUrl)
    await eventually(async () => (await read(started.id)).result.code === '000.100.110', 'the notice comes')
  })
  it('asks the bank before it ends: money that came without a word counts', async () => {
    const started = await begin(sofort())
    await makeShopper().walk(`${started.redirect.url}?auto=leaveSilently`, gateway.baseUrl)
    await gateway.advance('30m')
    is(await read(started.id), 'succeededInTestMode')
  })
  it('is refunded', async () => {
    const body = await finish(await begin(sofort()), 'approve')
    is((await gateway.refer(body.id, { paymentType: 'RF', amount: '92.00', currency: 'EUR' })).body, 'succeededInTestMode')
    assert.equal((await gateway.refer(body.id, { paymentType: 'RV' })).body.result.code, '700.400.300')
  })
  it('comes in more brands by configuration alone', async () => {
    is(await finish(await begin(sofort({ paymentBrand: 'GIROPAY' })), 'approve'), 'succeededInTestMode')
    assert.equal((await gateway.pay({ ...sofort({ currency: 'USD' }), shopperResultUrl: shop })).body.result.code, '600.200.500')
  })
})

describe('nobody comes back', () => {
  for (const [what, fields, minutes, result] of [
    ['a challenge', secure('4200000000000018'), 10, 'threeDSecureAbandoned'],
    ['the wallet', paypal(), 30, 'pendingTimedOut'],
    ['a transfer', sofort(), 30, 'onlineTransferTimedOut'],
  ] as const) {
    it(`${what} ends after ${minutes} minutes as ${result}, not before, and is announced`, async () => {
      const started = await begin(fields)
      await gateway.advance(`${minutes * 60_000 - 5_000}ms`)
      assert.equal((await read(started.id)).result.code, '000.200.000')
      await gateway.advance('5s')
      is(await read(started.id), result)
      const { rows } = await gateway.pool.query('select sequence, action from events where payment_id = $1 order by sequence', [
        started.id,
      ])
      assert.deepEqual(rows, [
        { sequence: 1, action: null },
        { sequence: 2, action: 'UPDATED' },
      ])
      const { rows: left } = await gateway.pool.query('select 1 from continuations where payment_id = $1', [started.id])
      assert.equal(left.length, 0)
      atShop(await makeShopper().walk(started.redirect.url, gateway.baseUrl), started.id)
    })
  }
})

describe('who comes back wrongly', () => {
  const audited = (line: string, id: string) =>
    gateway.logged.filter(text => text.includes(`"audit":"${line}"`) && text.includes(id)).length
  const stillPending = async (id: string) => assert.equal((await read(id)).result.code, '000.200.000')
  const tokenOf = ({ redirect }: Body) => redirect.url.split('/').at(-1) as string

  /** A shopper who stands on the issuer’s page, with what the browser was given to post there. */
  async function atIssuer() {
    const started = await begin(secure('4200000000000018', browser))
    const shopper = makeShopper()
    const seen = await shopper.open(started.redirect.url)
    const creq = JSON.parse(Buffer.from(/name="creq" value="([^"]+)"/.exec(seen.text)![1]!, 'base64url').toString())
    const back = `${gateway.baseUrl}/r/return/${tokenOf(started)}`
    return { started, shopper, seen, creq, back }
  }
  const cres = (creq: Body, more: object = {}) =>
    Buffer.from(
      JSON.stringify({
        ...creq,
        challengeWindowSize: undefined,
        messageType: 'CRes',
        transStatus: 'Y',
        challengeCompletionInd: 'Y',
        ...more,
      }),
    ).toString('base64url')

  it('a forged CRes that says Y authorizes nothing', async () => {
    const { started, shopper, creq, back } = await atIssuer()
    const seen = await shopper.walk(back, gateway.baseUrl, { cres: cres(creq) })
    assert.equal(seen.status, 200)
    assert.match(seen.text, /has not confirmed yet/)
    await stillPending(started.id)
    assert.equal(audited('forgedReturn', started.id), 1)
  })
  it('a CRes of another transaction is refused, and so is one that is none', async () => {
    const { started, shopper, creq, back } = await atIssuer()
    for (const sent of [
      cres(creq, { acsTransID: crypto.randomUUID() }),
      cres(creq, { threeDSServerTransID: crypto.randomUUID() }),
      'garbage',
      '',
    ]) {
      const seen = await shopper.open(back, { cres: sent })
      assert.equal(seen.status, 400, sent)
      assert.match(seen.text, /could not be verified/)
    }
    await stillPending(started.id)
    assert.equal(audited('forgedReturn', started.id), 4)
  })
  it('another payment’s wallet token, or none, is refused', async () => {
    const [mine, other] = [await begin(paypal()), await begin(paypal())]
    const shopper = makeShopper()
    await shopper.open(mine.redirect.url)
    for (const token of [other.redirect.parameters[1].value, 'EC-00000000000000000', '']) {
      const seen = await shopper.open(`${gateway.baseUrl}/r/return/${tokenOf(mine)}?token=${token}&PayerID=ABCDEFGHIJKLM`)
      assert.equal(seen.status, 400)
    }
    await stillPending(mine.id)
    assert.equal(audited('forgedReturn', mine.id), 3)
  })
  it('what stands behind more than a few parameters is not looked at', async () => {
    const started = await begin(paypal())
    const shopper = makeShopper()
    await shopper.open(started.redirect.url)
    const named = `token=${started.redirect.parameters[1].value}&PayerID=ABCDEFGHIJKLM`
    const behind = (count: number) =>
      shopper.open(`${gateway.baseUrl}/r/return/${tokenOf(started)}?${'a=b&'.repeat(count)}${named}`)
    assert.equal((await behind(limits.shoppersParametersMax)).status, 400)
    await stillPending(started.id)
    atShop(await behind(limits.shoppersParametersMax - 2), started.id)
    is(await read(started.id), 'declinedByWallet')
  })
  it('a payer that the wallet does not know pays nothing', async () => {
    const started = await begin(paypal())
    const shopper = makeShopper()
    await shopper.open(started.redirect.url)
    const token = started.redirect.parameters[1].value
    atShop(await shopper.open(`${gateway.baseUrl}/r/return/${tokenOf(started)}?token=${token}&PayerID=ABCDEFGHIJKLM`), started.id)
    is(await read(started.id), 'declinedByWallet')
  })
  it('under HTTPS the cookie has the prefix that no page without it may set, and stays with HTTPS', async () => {
    const cookieOf = async (server: TestGateway) => {
      const { body } = await server.pay({ shopperResultUrl: shop, ...secure('4012888888881881') })
      const page = await fetch(server.baseUrl + new URL(body.redirect.url).pathname, { redirect: 'manual' })
      return page.headers.getSetCookie()[0]!
    }
    const safe = await testGateway({ environment: { PUBLIC_URL: 'https://pay.example' } })
    try {
      assert.match(await cookieOf(safe), /^__Secure-tollgate_[0-9a-f]{12}=\S{22}; Path=\/r; .*HttpOnly; SameSite=Lax; Secure$/)
    } finally {
      await safe.stop()
    }
    assert.match(await cookieOf(gateway), /^tollgate_[0-9a-f]{12}=\S{22}; Path=\/r; .*HttpOnly; SameSite=Lax$/)
  })
  it('another browser is refused, with or without a cookie of its own', async () => {
    const started = await begin(paypal())
    const shopper = makeShopper()
    await shopper.open(started.redirect.url)
    const stranger = makeShopper()
    stranger.cookies.set([...shopper.cookies.keys()][0]!, 'AAAAAAAAAAAAAAAAAAAAAA')
    const address = `${gateway.baseUrl}/r/return/${tokenOf(started)}?token=${started.redirect.parameters[1].value}&PayerID=ABCDEFGHIJKLM`
    for (const one of [makeShopper(), stranger]) {
      const seen = await one.open(address)
      assert.equal(seen.status, 403)
      assert.match(seen.text, /begun elsewhere/)
    }
    await stillPending(started.id)
    assert.equal(audited('wrongSession', started.id), 2)
  })
  it('a notice needs its own secret address, the right ids and a good form', async () => {
    const { started, creq } = await atIssuer()
    const rreq = {
      messageType: 'RReq',
      messageVersion: '2.2.0',
      threeDSServerTransID: creq.threeDSServerTransID,
      acsTransID: creq.acsTransID,
      dsTransID: crypto.randomUUID(),
      messageCategory: '01',
      transStatus: 'Y',
      authenticationValue: 'AAABBZEEBgAAAAAAAAQGAAAAAAA=',
      interactionCounter: '01',
    }
    const response = await fetch(`${gateway.baseUrl}/r/notice/${tokenOf(started)}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(rreq),
    })
    assert.equal(response.status, 404)
    await stillPending(started.id)
  })
  it('a token that is none gets a page, not a hint', async () => {
    for (const token of [
      'x',
      `${'A'.repeat(22)}.zz`,
      tokenOf(await begin(paypal())).replace(/^./, c => (c === 'A' ? 'B' : 'A')),
    ]) {
      const seen = await makeShopper().open(`${gateway.baseUrl}/r/${token}`)
      assert.equal(seen.status, 404)
      assert.match(seen.headers.get('content-type')!, /^text\/html/)
    }
  })
  it('says nothing about money that it cannot know, and leads back to the shop where it is known', async () => {
    const paid = await begin(paypal())
    is(await finish(paid, 'approve'), 'succeededInTestMode')
    const open = await begin(paypal())
    for (const { code: language, texts } of languages.values()) {
      const shopper = makeShopper(language)
      const mistyped = await shopper.open(paid.redirect.url.replace(/.$/, (last: string) => (last === '0' ? '1' : '0')))
      await shopper.open(open.redirect.url)
      const forged = await shopper.open(`${gateway.baseUrl}/r/return/${tokenOf(open)}?token=EC-00000000000000000`)
      const stranger = await makeShopper(language).open(`${gateway.baseUrl}/r/return/${tokenOf(open)}`)
      assert.deepEqual([mistyped.status, forged.status, stranger.status], [404, 400, 403])
      const back = `${shop}&id=${open.id}&resourcePath=%2Fv1%2Fpayments%2F${open.id}`
      for (const seen of [forged, stranger]) {
        const [, href, text] = /<a class="button[^"]*" href="([^"]*)">([^<]*)<\/a>\s*<\/main>/.exec(seen.text)!
        assert.deepEqual([decode(href!), text], [back, texts.shopButton], language)
      }
      for (const seen of [mistyped, forged, stranger])
        assert.doesNotMatch(seen.text, /charged|belastet|débit|cobrad|يُخصم|خُصم/i, seen.text)
    }
  })
  it('an address beyond ASCII is written whole, and ends nothing', async () => {
    const far = 'https://shop.example/ü?a=é#中'
    const { body } = await gateway.pay({ shopperResultUrl: far, ...paypal() })
    const seen = await makeShopper().walk(`${body.redirect.url}?auto=cancel`, gateway.baseUrl)
    const tail = `id=${body.id}&resourcePath=%2Fv1%2Fpayments%2F${body.id}`
    assert.deepEqual([seen.status, seen.location], [303, `https://shop.example/%C3%BC?a=%C3%A9&${tail}#%E4%B8%AD`])
  })
  it('one for which a proxy may have no room in the head of an answer is led to by a page', async () => {
    const far = `https://shop.example/?a=${'é"'.repeat(1000)}`
    const { body } = await gateway.pay({ shopperResultUrl: far, ...paypal() })
    const seen = await makeShopper().walk(`${body.redirect.url}?auto=cancel`, gateway.baseUrl)
    const address = `https://shop.example/?a=${'%C3%A9%22'.repeat(1000)}&id=${body.id}&resourcePath=%2Fv1%2Fpayments%2F${body.id}`
    assert.deepEqual([seen.status, seen.location, seen.headers.get('referrer-policy')], [200, undefined, 'no-referrer'])
    for (const leads of [/ content="0;url=([^"]*)"/, / href="([^"]*)"/]) assert.equal(decode(leads.exec(seen.text)![1]!), address)
    const head = [...seen.headers].reduce((bytes, [name, value]) => bytes + name.length + value.length + 4, 0)
    assert.ok(head < 1000, `${head}`)
    const app = `app://"><b>'&lt;/?a=1&b=2`
    const { body: page } = shortHead({ status: 303, body: '', headers: { Location: app } })
    assert.doesNotMatch(String(page), /<b>|"">|b=2"[^>]/)
    for (const leads of [/ content="0;url=([^"]*)"/, / href="([^"]*)"/]) assert.equal(decode(leads.exec(String(page))![1]!), app)
    assert.throws(() => shortHead({ status: 200, body: '' }), /too long/)
  })
  it('nothing in a request changes where the shopper ends', async () => {
    const started = await begin(paypal())
    const seen = await makeShopper().walk(
      `${started.redirect.url}?auto=cancel&shopperResultUrl=https://evil.example&url=https://evil.example`,
      gateway.baseUrl,
    )
    atShop(seen, started.id)
  })
})

describe('at the same time', () => {
  it('a double click on the way back pays once', async () => {
    const started = await begin(paypal())
    const shopper = makeShopper()
    const page = await shopper.walk(started.redirect.url, gateway.baseUrl)
    const action = page.url.replace(/checkout.*/, 'decide')
    const token = started.redirect.parameters[1].value
    const agreed = await shopper.open(action, { token, action: 'agree', buyer: 'slow' })
    const seen = await Promise.all(Array.from({ length: 5 }, () => shopper.walk(agreed.location!, gateway.baseUrl)))
    for (const one of seen) atShop(one, started.id)
    is(await read(started.id), 'succeededInTestMode')
    // The back button, much later, leads to the shop again.
    atShop(await shopper.walk(agreed.location!, gateway.baseUrl), started.id)
    atShop(await shopper.walk(started.redirect.url, gateway.baseUrl), started.id)
    const { rows } = await gateway.pool.query('select 1 from journal where payment_id = $1', [started.id])
    assert.equal(rows.length, 1)
  })
  it('return and notice together end a transfer once', async () => {
    for (let round = 0; round < 5; round++) {
      const body = await finish(await begin(sofort()), 'approve')
      is(body, 'succeededInTestMode')
      const { rows } = await gateway.pool.query('select sequence from events where payment_id = $1', [body.id])
      assert.equal(rows.length, 2)
    }
  })
  it('the end of time and the return race for one continuation', async () => {
    const started = await begin(paypal())
    const shopper = makeShopper()
    const page = await shopper.walk(started.redirect.url, gateway.baseUrl)
    const [seen] = await Promise.all([
      shopper.press(page, 'agree', gateway.baseUrl, { buyer: 'verified' }),
      gateway.advance('31m'),
    ])
    atShop(seen, started.id)
    const body = await read(started.id)
    assert.ok(['000.100.110', '100.396.103'].includes(body.result.code), body.result.code)
  })
  it('the same Idempotency-Key gets the very same redirect', async () => {
    const send = () =>
      gateway.post(
        '/v1/payments',
        { entityId: sandbox.entityId, paymentType: 'DB', amount: '9.00', currency: 'EUR', shopperResultUrl: shop, ...paypal() },
        { 'Idempotency-Key': 'twice' },
      )
    const [one, two] = await Promise.all([send(), send()])
    assert.equal(one.text, two.text)
    assert.equal((await send()).text, one.text)
  })
})

describe('the merchant hears of it', () => {
  it('twice: that the payment is pending, and how it ended', async () => {
    const heard: string[] = []
    const receiver = http.createServer((incoming, outgoing) => {
      heard.push(incoming.method!)
      incoming.resume()
      outgoing.end()
    })
    await new Promise<void>(resolve => receiver.listen(0, '127.0.0.1', resolve))
    const notificationUrl = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`
    const started = await begin(secure('4200000000000018', { notificationUrl }))
    await eventually(async () => heard.length === 1, 'the pending payment is announced')
    is(await finish(started, 'approve'), 'succeededInTestMode')
    await eventually(async () => heard.length === 2, 'its end is announced')
    receiver.closeAllConnections()
    receiver.close()
  })
})

describe('what stays behind', () => {
  it('the CVV is sealed during the challenge and gone after it', async () => {
    const started = await begin(secure('4200000000000018', { 'card.cvv': '789' }))
    const held = await gateway.pool.query(
      'select s.sealed as secret, c.sealed from continuations c join challenge_secrets s using (merchant_id, payment_id) where payment_id = $1',
      [started.id],
    )
    assert.ok(held.rows[0].secret.length > 90)
    assert.ok(!/\b789\b/.test(held.rows[0].secret) && !held.rows[0].sealed.includes('4200000000000018'))
    is(await finish(started, 'approve'), 'succeededInTestMode')
    for (const table of ['continuations', 'challenge_secrets']) {
      const after = await gateway.pool.query(`select 1 from ${table} where payment_id = $1`, [started.id])
      assert.equal(after.rows.length, 0)
    }
  })
  it('recovery leaves a payment alone while its shopper is away, also after a restart', async () => {
    const started = await begin(secure('4200000000000018'))
    await gateway.restart()
    const shopper = makeShopper()
    await stays(started.id)
    started.redirect.url = `${gateway.baseUrl}/r/${started.redirect.url.split('/').at(-1)}`
    is(await finish(started, 'approve', shopper), 'succeededInTestMode')
  })
  it('a shopper who takes his time at the issuer, after the step before it, is left alone', async () => {
    const started = await begin(secure('4200000000000018'))
    const shopper = makeShopper()
    const atIssuer = await shopper.walk(started.redirect.url, gateway.baseUrl) // past the page that looks at the browser
    await gateway.advance('5m')
    assert.equal((await read(started.id)).result.code, '000.200.000')
    atShop(await shopper.press(atIssuer, 'approve', gateway.baseUrl), started.id)
    is(await read(started.id), 'succeededInTestMode')
  })
  const stays = async (id: string) => {
    const { rows } = await gateway.pool.query(`select 1 from due_work where kind = 'recover' and subject_id = $1`, [id])
    assert.equal(rows.length, 0)
  }
  it('no token is in any table, while the shopper is away and after', async () => {
    const away = await begin(paypal())
    const done = await begin(paypal())
    await finish(done, 'approve')
    const tokens = [away, done].flatMap(({ redirect }) => [
      redirect.url.split('/').at(-1).slice(0, 22),
      redirect.parameters[1].value,
    ])
    const { rows: tables } = await gateway.pool.query(
      `select format('%I', tablename) as name from pg_tables where schemaname = 'public'`,
    )
    for (const { name } of tables) {
      const { rows } = await gateway.pool.query(`select t::text as line from ${name} t`)
      const text = rows.map(({ line }) => line).join('\n')
      for (const token of tokens) assert.ok(!text.includes(token), name)
    }
  })
  it('no token, card number or CVV is in the logs', () => {
    const all = gateway.logged.join('\n')
    assert.doesNotMatch(all, /EC-[0-9A-F]{17}|\/r\/[A-Za-z0-9_-]{22}\.|42000000000000|"789"/)
  })
})
