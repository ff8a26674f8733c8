// The other side on its own: the wallet's endpoint as a client without our code would meet it, and an issuer that takes nothing for granted.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import { encodeMessage, wrongFields } from '../src/connectors/cards/threeDSecure/messages.ts'
import { english } from '../src/pages/languages/languages.ts'
import { bank } from '../src/sandbox/bank/bank.ts'
import {
  expiring,
  keptBytesMost,
  type PageAnswer,
  type PageRequest,
  type Simulator,
  type World,
} from '../src/sandbox/exchange.ts'
import type { Simulators } from '../src/sandbox/serve.ts'
import { issuer } from '../src/sandbox/threeDSecure/issuer.ts'
import { simulatorCredentials, walletSimulator } from '../src/sandbox/wallet/paypal.ts'
import { type Fields, type TestGateway, testGateway } from './support/gateway.ts'
import { testSimulators } from './support/simulators.ts'

let time = 0
let drawn = 0
const world: World = {
  time: () => time,
  uuid: () => `00000000-0000-4000-8000-${String(++drawn).padStart(12, '0')}`,
  bytes: count => Buffer.alloc(count, ++drawn),
  wait: async () => {},
  post: async () => ({ status: 200, body: '' }),
  publicUrl: () => 'https://pay.example/simulators',
  isOfPayment: (address): address is string => address?.startsWith('https://pay.example/r/') === true,
}
const asked = (method: string, path: string, body: string, query = ''): PageRequest => ({
  method,
  path,
  body,
  query: new URLSearchParams(query),
  headers: {},
  language: english,
})

const wallet = walletSimulator(world)
const { user, password, signature } = simulatorCredentials
const callTo =
  (wallet: Simulator) =>
  async (METHOD: string, pairs: Record<string, string>, credentials: Record<string, string> = {}) => {
    const form = new URLSearchParams({
      USER: user,
      PWD: password,
      SIGNATURE: signature,
      VERSION: '124.0',
      METHOD,
      ...pairs,
      ...credentials,
    })
    const { body } = (await wallet(asked('POST', '/wallet/nvp', form.toString()))) as PageAnswer
    return Object.fromEntries(new URLSearchParams(body))
  }
const call = callTo(wallet)
const order = (more: Record<string, string> = {}) => ({
  PAYMENTREQUEST_0_AMT: '92.00',
  PAYMENTREQUEST_0_CURRENCYCODE: 'EUR',
  PAYMENTREQUEST_0_PAYMENTACTION: 'Sale',
  RETURNURL: 'https://pay.example/r/return/x',
  CANCELURL: 'https://pay.example/r/cancel/x',
  ...more,
})
/** A checkout that a buyer has agreed to. */
async function agreed(buyer = 'verified') {
  const { TOKEN } = await call('SetExpressCheckout', order())
  const form = new URLSearchParams({ token: TOKEN!, action: 'agree', buyer })
  const { headers } = (await wallet(asked('POST', '/wallet/decide', form.toString()))) as PageAnswer
  return { TOKEN: TOKEN!, PAYERID: new URL(headers.Location!).searchParams.get('PayerID')! }
}

describe('the doors of bank, wallet and issuer', () => {
  let gateway: TestGateway
  let simulators: Simulators
  before(async () => {
    simulators = await testSimulators(() => gateway)
    gateway = await testGateway({ simulatorsUrl: simulators.url })
  })
  after(async () => {
    await gateway.stop()
    await simulators.stop()
  })
  const transfer = (more: Record<string, string>, at = simulators.url) => {
    const ours = `${gateway.baseUrl}/r/return/a.b`
    const fields = { reference: 'r', amount: '92.00', currency: 'EUR', success_url: ours, abort_url: ours, ...more }
    return fetch(`${at}/bank/transfers`, { method: 'POST', body: new URLSearchParams(fields) })
  }
  it('lead browsers and notices only to what a payment has at the gateway, never to the office, the interface or another page', async () => {
    const ask = async (url: string, body: string) => (await fetch(url, { method: 'POST', body })).text()
    const wallet = async (more: object) => {
      const pairs = { USER: user, PWD: password, SIGNATURE: signature, METHOD: 'SetExpressCheckout', ...order(more as Fields) }
      return new URLSearchParams(await ask(`${simulators.url}/wallet/nvp`, new URLSearchParams(pairs).toString()))
    }
    /** Who is led there by each door: nobody is asked for a leave at that of the hidden frame. */
    const led = async (address: string): Promise<boolean[]> => {
      const ours = `${gateway.baseUrl}/r/return/a.b`
      const data = Buffer.from(JSON.stringify({ threeDSMethodNotificationURL: address })).toString('base64url')
      const method = new URLSearchParams({ threeDSMethodData: data })
      const frame = await fetch(`${gateway.baseUrl}/simulators/acs/method`, { method: 'POST', body: method })
      const directory = async (more: object) => {
        const told = { ...areq, threeDSServerURL: ours, notificationURL: ours, ...more }
        return JSON.parse(await ask(`${simulators.url}/ds`, JSON.stringify(told))).messageType === 'ARes'
      }
      return [
        (await frame.text()).includes('<form'),
        (await transfer({ success_url: address })).status === 201,
        (await transfer({ abort_url: address })).status === 201,
        (await transfer({ notification_url: address })).status === 201,
        (await wallet({ RETURNURL: address, CANCELURL: ours })).get('ACK') === 'Success',
        (await wallet({ RETURNURL: ours, CANCELURL: address })).get('ACK') === 'Success',
        await directory({ notificationURL: address }),
        await directory({ threeDSServerURL: address }),
      ]
    }
    for (const home of [gateway.baseUrl, gateway.baseUrl.replace('127.0.0.1', 'localhost')]) {
      for (const path of ['', 'return/', 'cancel/', 'methodDone/', 'notice/'])
        assert.deepEqual(await led(`${home}/r/${path}a.b`), Array(8).fill(true), home + path)
      for (const path of [
        '',
        '/office/sign-out',
        '/office/console/clock',
        '/v1/payments',
        '/sandbox/clock',
        '/pay/x',
        '/slips/x',
      ])
        assert.deepEqual(await led(home + path), Array(8).fill(false), home + path)
      for (const path of [
        '/r',
        '/risk/x',
        '/r/../office/x',
        '/r/%2e%2e/office/x',
        '/r/x/..\\../office/x',
        '//r/x',
        '/office/r/x',
      ])
        assert.deepEqual(await led(home + path), Array(8).fill(false), home + path)
    }
    for (const elsewhere of ['https://evil.example/r/x', '/r/x', 'r/x'])
      assert.deepEqual(await led(elsewhere), Array(8).fill(false), elsewhere)
  })
  it('send shoppers and notices only to addresses of the gateway, and outlive what is none', async () => {
    for (const more of [
      { notification_url: 'nonsense' },
      { notification_url: 'https://evil.example/' },
      { success_url: 'https://evil.example/' },
      { success_url: 'javascript:alert(1)' },
      { abort_url: '//evil.example' },
      { amount: '1' },
      { currency: 'euro' },
    ]) {
      const response = await transfer(more)
      assert.equal(response.status, 400, JSON.stringify(more))
      assert.match(((await response.json()) as { reason: string }).reason, new RegExp(Object.keys(more)[0]!))
    }
    const split = await transfer({ success_url: `${gateway.baseUrl}/r/return/a.b\r\nX-Injected: 1` })
    const { payment_url } = (await split.json()) as { payment_url: string }
    const gone = await fetch(`${payment_url}&auto=approve`, { redirect: 'manual' })
    assert.equal(gone.headers.get('x-injected'), null)
    assert.ok(gone.headers.get('location')!.startsWith(`${gateway.baseUrl}/r/return/`))
    assert.equal((await transfer({ notification_url: `${gateway.baseUrl}/r/notice/a.b` })).status, 201)
    assert.equal((await gateway.pay()).status, 200)
  })
  it('make a refund that is asked for twice once', async () => {
    const { transaction_id: id, payment_url } = (await (await transfer({})).json()) as Record<string, string>
    await fetch(`${payment_url}&auto=approve`, { redirect: 'manual' })
    const refund = async (reference: string) => {
      const body = new URLSearchParams({ reference, amount: '60.00', currency: 'EUR' })
      const response = await fetch(`${simulators.url}/bank/transfers/${id}/refunds`, { method: 'POST', body })
      return (await response.json()) as Record<string, string>
    }
    const [first, again, other] = [await refund('one'), await refund('one'), await refund('two')]
    assert.deepEqual([first.status, again, other.status], ['received', first, 'declined'])
  })
})

describe('what servers ask each other', () => {
  let gateway: TestGateway
  let simulators: Simulators
  before(async () => {
    simulators = await testSimulators(() => gateway)
    gateway = await testGateway({ simulatorsUrl: simulators.url })
  })
  after(async () => {
    await gateway.stop()
    await simulators.stop()
  })
  it('is no page: the address that browsers know leads to none of it, however it is written', async () => {
    const back = `${gateway.baseUrl}/r/return/a.b`
    const form = new URLSearchParams({ reference: 'r', amount: '92.00', currency: 'EUR', success_url: back, abort_url: back })
    const begun = await fetch(`${simulators.url}/bank/transfers`, { method: 'POST', body: form })
    const { transaction_id: id, payment_url } = (await begun.json()) as Record<string, string>
    const signed = new URLSearchParams({ USER: user, PWD: password, SIGNATURE: signature, METHOD: 'SetExpressCheckout' })
    for (const [name, value] of Object.entries(order({ RETURNURL: back, CANCELURL: back }))) signed.set(name, value)
    for (const [method, path, body, own] of [
      ['POST', '/bank/transfers', form.toString(), 201],
      ['GET', `/bank/transfers/${id}`, undefined, 200],
      ['POST', `/bank/transfers/${id}/refunds`, 'reference=r&amount=1.00', 400],
      ['POST', '/wallet/nvp', signed.toString(), 200],
      ['POST', '/ds', '{}', 200],
    ] as const) {
      // As a page of another site would post: no word of it needs a leave.
      const ask = (url: string) => fetch(url, { method, headers: { 'Content-Type': 'text/plain' }, ...(body && { body }) })
      assert.equal((await ask(simulators.url + path)).status, own, path)
      assert.ok([404, 415].includes((await ask(`${gateway.baseUrl}/simulators${path}`)).status), path)
      for (const way of ['acs/..', 'acs/%2e%2e', 'acs/..%2f', 'bank/pay/..', '.', ''])
        assert.ok((await ask(`${gateway.baseUrl}/simulators/${way}${path}`)).status >= 400, way + path)
    }
    assert.equal((await fetch(payment_url!)).status, 200)
  })
})

describe('what is kept', () => {
  const padding = 'x'.repeat(100_000)
  const others = 200

  it('has a bound in number and in bytes, the newest stay, and what is replaced counts once', () => {
    const size = 100_000
    const kept = expiring<{ text: string }>(() => 0, 1)
    const left = (names: string[]) => names.filter(name => kept.get(name) !== undefined)
    const large = Array.from({ length: 1000 }, (_, at) => `large ${at}`)
    for (const name of large) kept.set(name, { text: 'x'.repeat(size) })
    const stayed = left(large)
    assert.ok(stayed.length * size <= keptBytesMost, `${stayed.length} stayed`)
    assert.deepEqual(stayed, large.slice(-stayed.length))
    assert.ok(stayed.length > 10)
    for (let times = 0; times < 1000; times++) kept.set(large.at(-1)!, { text: 'x'.repeat(size) })
    assert.deepEqual(left(large), stayed)
    const small = Array.from({ length: 10_001 }, (_, at) => `small ${at}`)
    const many = expiring<object>(() => 0, 1)
    for (const name of small) many.set(name, {})
    assert.deepEqual([many.get(small[0]!), many.get(small[1]!)], [undefined, {}])
    for (const name of small) many.set(`${name}${'x'.repeat(10_000)}`, {})
    assert.equal(small.filter(name => many.get(`${name}${'x'.repeat(10_000)}`)).length < keptBytesMost / 10_000, true)
  })
  it('is of a transfer what is read of it, each up to a length', async () => {
    const door = bank(world)
    const begin = async (more: Record<string, string>) => {
      const back = 'https://pay.example/r/return/x'
      const form = new URLSearchParams({
        reference: 'r',
        amount: '9.00',
        currency: 'EUR',
        success_url: back,
        abort_url: back,
        ...more,
      })
      return (await door(asked('POST', '/bank/transfers', form.toString()))) as PageAnswer
    }
    const first = JSON.parse((await begin({})).body).transaction_id
    for (let at = 0; at < others; at++)
      assert.equal((await begin({ creditor_account: padding, [`more${at}`]: padding })).status, 201)
    assert.match(((await door(asked('GET', `/bank/transfers/${first}`, ''))) as PageAnswer).body, /opened/)
    for (const name of ['reference', 'purpose', 'creditor_name']) {
      assert.equal((await begin({ [name]: 'x'.repeat(2048) })).status, 201)
      assert.match((await begin({ [name]: 'x'.repeat(2049) })).body, new RegExp(`wrong: ${name}"`))
    }
    const pay = new URLSearchParams({ transaction: first, action: 'pay' })
    await door(asked('POST', '/bank/decide', pay.toString()))
    const refund = async (reference: string) => {
      const form = new URLSearchParams({ reference, amount: '0.01' })
      return ((await door(asked('POST', `/bank/transfers/${first}/refunds`, form.toString()))) as PageAnswer).status
    }
    assert.equal(await refund('x'.repeat(2049)), 400)
    for (let at = 0; at < 100; at++) assert.equal(await refund(`refund ${at}`), 200)
    assert.deepEqual([await refund('one more'), await refund('refund 0')], [400, 200])
  })
  it('is of a wallet’s checkout what is read of it', async () => {
    const call = callTo(walletSimulator({ ...world, bytes: randomBytes }))
    const { TOKEN } = await call('SetExpressCheckout', order())
    for (let at = 0; at < others; at++) {
      const more = Object.fromEntries(Array.from({ length: 49 }, (_, one) => [`NOTE${one}`, 'x'.repeat(2048)]))
      assert.equal((await call('SetExpressCheckout', order(more))).ACK, 'Success')
    }
    assert.equal((await call('GetExpressCheckoutDetails', { TOKEN: TOKEN! })).ACK, 'Success')
    assert.equal((await call('SetExpressCheckout', order({ BRANDNAME: 'x'.repeat(2049) }))).L_ERRORCODE0, '10004')
    assert.equal((await call('RefundTransaction', { MSGSUBID: 'x'.repeat(2049) })).L_SHORTMESSAGE0, 'MSGSUBID is too long')
  })
  it('is of an authentication what its challenge reads', async () => {
    const door = issuer(world)
    const authenticate = async (more: object = {}) => {
      const { body } = (await door(asked('POST', '/ds', JSON.stringify({ ...areq, ...more })))) as PageAnswer
      return JSON.parse(body)
    }
    const first = await authenticate({
      messageExtension: [null, { id: 'tollgate-simulator', data: { unavailable: 'constructor' } }],
    })
    assert.equal(first.transStatus, 'C', JSON.stringify(first))
    for (let at = 0; at < others; at++)
      assert.equal((await authenticate({ messageExtension: [{ id: 'other', data: padding }] })).transStatus, 'C')
    assert.equal((await authenticate({ messageExtension: [{ id: 'other', data: padding }], more: padding })).messageType, 'Erro')
    const creq = encodeMessage({
      messageType: 'CReq',
      messageVersion: '2.2.0',
      threeDSServerTransID: first.threeDSServerTransID,
      acsTransID: first.acsTransID,
      challengeWindowSize: '05',
    })
    const page = (await door(asked('POST', '/acs/challenge', `creq=${creq}`))) as PageAnswer
    assert.equal(page.status, 200)
    assert.match(page.body, /Coffee &amp; Co[\s\S]*0018/)
  })
})

describe('the wallet', () => {
  it('checks credentials, methods and addresses', async () => {
    for (const wrong of [{ USER: 'x' }, { PWD: 'x' }, { SIGNATURE: '' }])
      assert.equal((await call('SetExpressCheckout', order(), wrong)).L_ERRORCODE0, '10002')
    assert.equal((await call('toString', order())).L_ERRORCODE0, '81002')
    for (const elsewhere of ['nowhere', 'https://evil.example/', 'javascript:alert(1)'])
      for (const name of ['RETURNURL', 'CANCELURL'])
        assert.equal((await call('SetExpressCheckout', order({ [name]: elsewhere }))).L_ERRORCODE0, '10471')
  })
  it('wants sums that add up, to the hundredth', async () => {
    const cart = (item: string, total: string) =>
      order({
        L_PAYMENTREQUEST_0_AMT0: item,
        L_PAYMENTREQUEST_0_QTY0: '2',
        PAYMENTREQUEST_0_ITEMAMT: total,
        PAYMENTREQUEST_0_SHIPPINGAMT: '2.00',
      })
    assert.equal((await call('SetExpressCheckout', cart('45.00', '90.00'))).ACK, 'Success')
    for (const [item, total] of [
      ['45.01', '90.00'],
      ['45.00', '90.01'],
      ['45.00', '89.99'],
    ] as const)
      assert.equal((await call('SetExpressCheckout', cart(item, total))).L_ERRORCODE0, '10413')
  })
  it('a token lives three hours, not longer', async () => {
    const { TOKEN } = await call('SetExpressCheckout', order())
    time += 3 * 3_600_000 - 1
    assert.equal((await call('GetExpressCheckoutDetails', { TOKEN: TOKEN! })).ACK, 'Success')
    time += 1
    assert.equal((await call('GetExpressCheckoutDetails', { TOKEN: TOKEN! })).L_ERRORCODE0, '10411')
    assert.equal((await call('DoExpressCheckoutPayment', { ...order(), TOKEN: TOKEN!, PAYERID: 'X' })).L_ERRORCODE0, '10411')
  })
  it('pays once: the same message again is the same answer, another one is 10415', async () => {
    const checkout = await agreed()
    const first = await call('DoExpressCheckoutPayment', { ...order(), ...checkout, MSGSUBID: 'one' })
    const again = await call('DoExpressCheckoutPayment', { ...order(), ...checkout, MSGSUBID: 'one' })
    assert.equal(first.PAYMENTINFO_0_TRANSACTIONID, again.PAYMENTINFO_0_TRANSACTIONID)
    assert.equal((await call('DoExpressCheckoutPayment', { ...order(), ...checkout, MSGSUBID: 'two' })).L_ERRORCODE0, '10415')
  })
  it('pays nothing for another payer, another amount, or a buyer who has not agreed', async () => {
    const checkout = await agreed()
    assert.equal((await call('DoExpressCheckoutPayment', { ...order(), ...checkout, PAYERID: 'OTHER' })).L_ERRORCODE0, '10419')
    assert.equal(
      (await call('DoExpressCheckoutPayment', { ...order({ PAYMENTREQUEST_0_AMT: '92.01' }), ...checkout })).L_ERRORCODE0,
      '10413',
    )
    const { TOKEN } = await call('SetExpressCheckout', order())
    assert.equal((await call('DoExpressCheckoutPayment', { ...order(), TOKEN: TOKEN!, PAYERID: '' })).L_ERRORCODE0, '10419')
  })
  it('refunds no more than was paid, and a repeated refund only once', async () => {
    const checkout = await agreed()
    const { PAYMENTINFO_0_TRANSACTIONID: TRANSACTIONID } = await call('DoExpressCheckoutPayment', { ...order(), ...checkout })
    const refund = (AMT: string, MSGSUBID: string) =>
      call('RefundTransaction', { TRANSACTIONID: TRANSACTIONID!, REFUNDTYPE: 'Partial', AMT, CURRENCYCODE: 'EUR', MSGSUBID })
    assert.equal((await refund('50.00', 'a')).ACK, 'Success')
    assert.equal((await refund('50.00', 'a')).ACK, 'Success')
    assert.equal((await refund('42.01', 'b')).L_ERRORCODE0, '10009')
    assert.equal((await refund('42.00', 'c')).ACK, 'Success')
  })
})

const areq = {
  messageType: 'AReq',
  messageVersion: '2.2.0',
  threeDSServerTransID: world.uuid(),
  threeDSServerRefNumber: 'REF',
  threeDSServerURL: 'https://pay.example/r/result',
  threeDSRequestorID: 'ID',
  threeDSRequestorName: 'NAME',
  threeDSRequestorURL: 'https://shop.example/',
  threeDSRequestorAuthenticationInd: '01',
  deviceChannel: '03',
  messageCategory: '02',
  acctNumber: '4200000000000018',
  merchantName: 'Coffee & Co',
  purchaseAmount: '9200',
  purchaseCurrency: '978',
  purchaseExponent: '2',
  notificationURL: 'https://pay.example/r/return/x',
}

describe('the issuer', () => {
  const acs = issuer(world)
  const ds = async (message: object) =>
    JSON.parse(((await acs(asked('POST', '/ds', JSON.stringify(message)))) as PageAnswer).body)
  const preq = { messageType: 'PReq', messageVersion: '2.2.0', threeDSServerTransID: world.uuid(), threeDSServerRefNumber: 'REF' }

  it('names its ranges, and refuses malformed messages by field', async () => {
    const ranges = await ds(preq)
    assert.deepEqual(wrongFields('PRes', ranges), [])
    assert.ok(ranges.cardRangeData.length > 30)
    const { threeDSServerRefNumber: _left, ...without } = preq
    const error = await ds(without)
    assert.deepEqual([error.messageType, error.errorCode, error.errorDescription], ['Erro', '203', 'threeDSServerRefNumber'])
    assert.equal((await ds({ messageType: 'CReq' })).errorCode, '101')
    assert.equal((await ds([])).messageType, 'Erro')
    assert.equal((await ds({ ...areq, more: Array(25_000).fill(0) })).errorCode, '101', 'more parts than a message has')
    assert.equal((await ds({ ...preq, messageType: 'AReq', notificationURL: { toString: 1 } })).errorCode, '203')
  })
  it('knows no challenge that it did not make', async () => {
    const creq = {
      messageType: 'CReq',
      messageVersion: '2.2.0',
      threeDSServerTransID: world.uuid(),
      acsTransID: world.uuid(),
      challengeWindowSize: '05',
    }
    for (const body of [`creq=${encodeMessage(creq)}`, 'creq=x', '']) {
      const { status } = (await acs(asked('POST', '/acs/challenge', body))) as PageAnswer
      assert.equal(status, 404)
    }
  })
})
