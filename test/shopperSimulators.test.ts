// The other side on its own: the wallet's endpoint as a client without our code would meet it, and an issuer that takes nothing for granted.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { encodeMessage, wrongFields } from '../src/connectors/cards/threeDSecure/messages.ts'
import { english } from '../src/pages/languages/languages.ts'
import type { PageAnswer, PageRequest, World } from '../src/sandbox/exchange.ts'
import { issuer } from '../src/sandbox/threeDSecure/issuer.ts'
import { simulatorCredentials, walletSimulator } from '../src/sandbox/wallet/paypal.ts'
import { type TestGateway, testGateway } from './support/gateway.ts'

let time = 0
let drawn = 0
const world: World = {
  time: () => time,
  uuid: () => `00000000-0000-4000-8000-${String(++drawn).padStart(12, '0')}`,
  bytes: count => Buffer.alloc(count, ++drawn),
  wait: async () => {},
  post: async () => ({ status: 200, body: '' }),
  publicUrl: () => 'https://pay.example/simulators',
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
const call = async (METHOD: string, pairs: Record<string, string>, credentials: Record<string, string> = {}) => {
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
const order = (more: Record<string, string> = {}) => ({
  PAYMENTREQUEST_0_AMT: '92.00',
  PAYMENTREQUEST_0_CURRENCYCODE: 'EUR',
  PAYMENTREQUEST_0_PAYMENTACTION: 'Sale',
  RETURNURL: 'https://pay.example/back',
  CANCELURL: 'https://pay.example/cancel',
  ...more,
})
/** A checkout that a buyer has agreed to. */
async function agreed(buyer = 'verified') {
  const { TOKEN } = await call('SetExpressCheckout', order())
  const form = new URLSearchParams({ token: TOKEN!, action: 'agree', buyer })
  const { headers } = (await wallet(asked('POST', '/wallet/decide', form.toString()))) as PageAnswer
  return { TOKEN: TOKEN!, PAYERID: new URL(headers.Location!).searchParams.get('PayerID')! }
}

describe('the door of the bank', () => {
  let gateway: TestGateway
  before(async () => {
    gateway = await testGateway()
  })
  after(() => gateway.stop())
  const transfer = (more: Record<string, string>) => {
    const ours = `${gateway.baseUrl}/r/return/a.b`
    const fields = { reference: 'r', amount: '92.00', currency: 'EUR', success_url: ours, abort_url: ours, ...more }
    return fetch(`${gateway.baseUrl}/simulators/bank/transfers`, { method: 'POST', body: new URLSearchParams(fields) })
  }
  it('sends shoppers and notices only to addresses of the gateway, and outlives what is none', async () => {
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
  it('makes a refund that is asked for twice once', async () => {
    const { transaction_id: id, payment_url } = (await (await transfer({})).json()) as Record<string, string>
    await fetch(`${payment_url}&auto=approve`, { redirect: 'manual' })
    const refund = async (reference: string) => {
      const body = new URLSearchParams({ reference, amount: '60.00', currency: 'EUR' })
      const response = await fetch(`${gateway.baseUrl}/simulators/bank/transfers/${id}/refunds`, { method: 'POST', body })
      return (await response.json()) as Record<string, string>
    }
    const [first, again, other] = [await refund('one'), await refund('one'), await refund('two')]
    assert.deepEqual([first.status, again, other.status], ['received', first, 'declined'])
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
