// Channels with a policy of their own: authentication always, refusal without it, live channels; and the ends of processes in the middle.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { channelSettings, type WrittenChannelSettings } from '../src/merchants/settings.ts'
import { originOf } from '../src/pages/html.ts'
import { OperatorError } from '../src/platform/errors.ts'
import { read as readSettings } from '../src/platform/schema.ts'
import { type Body, eventually, type Fields, sandbox, type TestGateway, testGateway, visa } from './support/gateway.ts'
import { makeShopper } from './support/shopper.ts'

const channels = {
  always: '5a11d0000000000000000000000000c3',
  strictest: '5a11d0000000000000000000000000c4',
  off: '5a11d0000000000000000000000000c5',
  live: '5a11d0000000000000000000000000c6',
  enrols: '5a11d0000000000000000000000000c7',
  app: '5a11d0000000000000000000000000c8',
}
const settings = {
  always: { threeDSecure: 'always' },
  strictest: { threeDSecure: 'always', withoutAuthentication: 'refuse' },
  off: { threeDSecure: 'off' },
  live: { mode: 'live' },
  enrols: { simulatorEnrols: true },
  app: { mode: 'live', appSchemes: ['com.example.shop'] },
} satisfies Record<string, WrittenChannelSettings>

let gateway: TestGateway
before(async () => {
  gateway = await testGateway({
    seed: {
      psp: { id: '5a11d0000000000000000000000000a0', name: 'Sandbox' },
      divisions: [
        {
          id: sandbox.divisionId,
          name: 'Sandbox division',
          merchants: [
            {
              id: sandbox.merchantId,
              name: 'Sandbox merchant',
              channels: (Object.keys(channels) as (keyof typeof channels)[]).map(name => ({
                id: channels[name],
                name,
                settings: settings[name],
              })),
            },
          ],
        },
      ],
    },
  })
})
after(() => gateway.stop())

const pay = async (channel: keyof typeof channels, number: string, more: Fields = {}): Promise<Body> => {
  const { body } = await gateway.pay({
    entityId: channels[channel],
    ...visa,
    'card.number': number,
    shopperResultUrl: 'https://shop.example/',
    ...more,
  })
  return body
}
const read = async (id: string, channel: keyof typeof channels): Promise<string> =>
  (await gateway.get(`/v1/payments/${id}`, { entityId: channels[channel] })).body.result.code
const finish = async (body: Body, channel: keyof typeof channels, auto: string): Promise<string> => {
  assert.equal(body.result.code, '000.200.000', JSON.stringify(body))
  await makeShopper().walk(`${body.redirect.url}?auto=${auto}`, gateway.baseUrl)
  return read(body.id, channel)
}

describe('the channel decides', () => {
  it('always: a challenge comes unasked, and cards that take no part go through', async () => {
    assert.equal(await finish(await pay('always', '4200000000000018'), 'always', 'approve'), '000.100.110')
    assert.equal((await pay('always', '4200000000000000')).result.code, '000.100.110')
    assert.equal((await pay('always', '4200000000000018', { 'threeDSecure.disable': 'true' })).result.code, '000.100.110')
    assert.equal(
      (await pay('always', '4200000000000018', { 'customParameters[3DS2_enrolled]': 'false' })).result.code,
      '000.100.110',
    )
  })
  it('refuse: whatever cannot be authenticated is not authorized', async () => {
    for (const [number, auto, code] of [
      ['4200000000000018', 'unavailable', '100.390.107'],
      ['4012001037461114', 'approve', '100.390.107'],
      ['4200000000000018', 'approve', '000.100.110'],
    ] as const)
      assert.equal(await finish(await pay('strictest', number), 'strictest', auto), code)
    assert.equal((await pay('strictest', '4532497088771651')).result.code, '100.390.110')
    const { rows } = await gateway.pool.query(
      `select count(*)::int as booked from journal where payment_id in (select payment_id from answers where result like 'threeDSecureRejected%')`,
    )
    assert.equal(rows[0].booked, 0)
  })
  it('always, where no directory server is configured: the setting decides, and says why', async () => {
    const external = { testMode: 'EXTERNAL' }
    const { body } = await gateway.post('/v1/threeDSecure', {
      entityId: channels.always,
      amount: '1.00',
      currency: 'EUR',
      ...visa,
      ...external,
      shopperResultUrl: 'https://shop.example/',
    })
    assert.equal(body.result.code, '600.200.201')
  })
  it('off: not even on request', async () => {
    assert.equal((await pay('off', '4200000000000018', { 'customParameters[3DS2_enrolled]': 'true' })).result.code, '000.100.110')
  })
  it('live: the way back must be https', async () => {
    for (const [url, code] of [
      ['http://shop.example/', '200.300.404'],
      ['https://shop.example/', '000.200.000'],
    ] as const) {
      const body = await pay('live', '4200000000000018', {
        'customParameters[3DS2_enrolled]': 'true',
        shopperResultUrl: url,
        testMode: 'INTERNAL',
      })
      assert.equal(body.result.code, code)
    }
  })
  it('a fraud warning of the issuer is never authorized, and data-only authentication is without a shift', async () => {
    const wished = (flow: string) => ({ 'customParameters[3DS2_enrolled]': 'true', 'customParameters[3DS2_flow]': flow })
    assert.equal(await finish(await pay('always', '4200000000000000', wished('fraud')), 'always', 'approve'), '100.390.118')
    assert.equal(await finish(await pay('always', '4200000000000000', wished('inform')), 'always', 'approve'), '000.100.110')
  })
})

describe('a channel that enrols the cards of the simulator', () => {
  it('does as the request says, where it says something', async () => {
    const off = await pay('enrols', '4200000000000000', { 'customParameters[3DS2_enrolled]': 'false' })
    assert.deepEqual([off.result.code, off.threeDSecure], ['000.100.110', undefined])
  })
  it('has every card authenticated without a word in the request', async () => {
    const started = await pay('enrols', '4200000000000000')
    await finish(started, 'enrols', 'approve')
    const { body } = await gateway.get(`/v1/payments/${started.id}`, { entityId: channels.enrols })
    assert.deepEqual([body.threeDSecure.eci, body.threeDSecure.authenticationStatus], ['05', 'Y'])
  })
})

describe('testMode=EXTERNAL', () => {
  it('obeys 3DS2_enrolled like INTERNAL: asked for, an authentication is tried, and not otherwise', async () => {
    const asked = { testMode: 'EXTERNAL', 'customParameters[3DS2_enrolled]': 'true' }
    const tried = await pay('always', '4200000000000018', asked)
    assert.equal(tried.threeDSecure.errorCode, '405', JSON.stringify(tried))
    const spared = await pay('always', '4200000000000018', { ...asked, 'customParameters[3DS2_enrolled]': 'false' })
    assert.deepEqual([spared.result.code, spared.threeDSecure], ['000.100.112', undefined])
  })
})

describe('the way back', () => {
  it('leads into an app where the channel lists its scheme, and nowhere else', async () => {
    const asked = { testMode: 'INTERNAL', 'customParameters[3DS2_enrolled]': 'true' }
    const back = (shopperResultUrl: string) => pay('app', '4200000000000018', { ...asked, shopperResultUrl })
    const started = await back('com.example.shop://paid/中?order=7#there')
    const seen = await makeShopper().walk(`${started.redirect.url}?auto=approve`, gateway.baseUrl)
    const tail = `id=${started.id}&resourcePath=%2Fv1%2Fpayments%2F${started.id}`
    assert.deepEqual([seen.status, seen.location], [303, `com.example.shop://paid/%E4%B8%AD?order=7&${tail}#there`])
    assert.match((await makeShopper().open(started.redirect.url)).location!, /^com\.example\.shop:/)
    assert.equal((await back('https://shop.example/')).result.code, '000.200.000')
    for (const url of ['com.example.other://paid', 'http://shop.example/', 'javascript://%0aalert(1)', 'data://text/html,x']) {
      const { result } = await back(url)
      assert.deepEqual([result.code, result.parameterErrors[0].name], ['200.300.404', 'shopperResultUrl'], url)
    }
  })
  it('the pages let forms through to the app', async () => {
    const started = await pay('app', '4200000000000018', {
      testMode: 'INTERNAL',
      'customParameters[3DS2_enrolled]': 'true',
      shopperResultUrl: 'com.example.shop://paid',
    })
    const { headers } = await makeShopper().open(started.redirect.url)
    assert.match(headers.get('content-security-policy')!, /form-action [^;]*com\.example\.shop:/)
  })
  it('what browsers run or fetch themselves is no app, and can be listed nowhere', () => {
    for (const scheme of ['javascript', 'data', 'vbscript', 'blob', 'file', 'about', 'http', 'https', 'JAVASCRIPT', 'a b', ''])
      assert.throws(() => readSettings(channelSettings, { appSchemes: [scheme] }, 'channel'), OperatorError, scheme)
    assert.ok(readSettings(channelSettings, { appSchemes: ['myapp', 'com.example.shop'] }, 'channel'))
  })
})

describe('an amount that its currency cannot express', () => {
  const yen = { amount: '12.34', currency: 'JPY' }
  const refused = (body: Body, name = 'amount') =>
    assert.deepEqual([body.result.code, body.result.parameterErrors?.[0].name], ['100.550.303', name], JSON.stringify(body))
  it('is refused on every way out, and nothing is rounded', async () => {
    const card = '4200000000000000'
    refused(await pay('off', card, yen))
    refused(await pay('off', card, { ...yen, paymentType: 'PA' }))
    refused(await pay('off', card, { ...yen, paymentType: 'CD' }))
    refused(await pay('off', card, { ...yen, testMode: 'EXTERNAL' }))
    refused(await pay('always', card, yen))
    refused(await pay('off', card, { ...yen, paymentBrand: 'PAYPAL' }))
    refused(await pay('off', card, { amount: '12.34', currency: 'HUF', paymentBrand: 'PAYPAL' }))
    assert.equal((await pay('off', card, { amount: '12.34', currency: 'HUF' })).result.code, '000.100.110')
  })
  it('nor asked of the shopper', async () => {
    const card = '4200000000000018'
    refused(await pay('always', card, { amount: '12', currency: 'JPY', 'risk.amount': '12.34' }), 'risk.amount')
    refused(await pay('always', card, { 'threeDSecure.amount': '12.34', 'threeDSecure.currency': 'JPY' }), 'threeDSecure.amount')
    const alone = { entityId: channels.always, ...visa, ...yen, shopperResultUrl: 'https://shop.example/' }
    refused((await gateway.post('/v1/threeDSecure', alone)).body)
  })
  it('nor captured or refunded', async () => {
    const pa = await pay('off', '4200000000000000', { amount: '100', currency: 'JPY', paymentType: 'PA' })
    const refer = async (paymentType: string, amount: string) =>
      (await gateway.post(`/v1/payments/${pa.id}`, { entityId: channels.off, paymentType, amount, currency: 'JPY' })).body.result
        .code
    assert.equal(await refer('CP', '92.50'), '100.550.303')
    assert.equal(await refer('CP', '92'), '000.100.110')
    assert.equal(await refer('RF', '0.50'), '100.550.303')
    assert.equal(await refer('RF', '92.00'), '000.100.110')
  })
})

describe('a public name that leads nowhere from the machine itself', () => {
  it('keeps neither challenge nor transfer from ending', async () => {
    const named = await testGateway({ environment: { PUBLIC_URL: 'http://pay.invalid' } })
    try {
      const shopper = makeShopper('en', url => url.replace('http://pay.invalid', named.baseUrl))
      for (const fields of [
        { 'card.number': '4200000000000042', 'customParameters[3DS2_enrolled]': 'true' },
        { paymentBrand: 'SOFORTUEBERWEISUNG', 'card.number': '', 'card.cvv': '' },
      ]) {
        const { body } = await named.pay({ shopperResultUrl: 'https://shop.example/', ...fields })
        assert.match(body.redirect.url, /^http:\/\/pay\.invalid\/r\//)
        const seen = await shopper.walk(`${body.redirect.url}?auto=approve`, 'http://pay.invalid')
        assert.match(seen.location!, /^https:\/\/shop\.example\//)
        const final = await named.get(`/v1/payments/${body.id}`, { entityId: sandbox.entityId })
        assert.equal(final.body.result.code, '000.100.110')
      }
    } finally {
      await named.stop()
    }
  })
})

describe('a process that dies', () => {
  it('after it took the continuation leaves the payment to recovery, which reverses it', async () => {
    const body = await pay('always', '4200000000000018')
    // What a process does last before it dies: the row is gone, recovery knows.
    await gateway.pool.query(
      `with taken as (delete from continuations where payment_id = $1 returning *)
       insert into due_work (kind, merchant_id, subject_id, due_at, details)
       select 'recover', merchant_id, payment_id, now() + interval '90 seconds', jsonb_build_object('sealed', encode(sealed, 'base64')) from taken`,
      [body.id],
    )
    await gateway.advance('2m')
    await eventually(async () => (await read(body.id, 'always')) === '900.100.301', 'recovery reverses')
  })
  it('before it stored the continuation leaves an orphan, which is found and ended', async () => {
    const body = await pay('always', '4200000000000018')
    await gateway.pool.query('delete from continuations where payment_id = $1', [body.id])
    await gateway.pool.query(`delete from due_work where subject_id = $1`, [body.id])
    await gateway.pool.query('insert into unanswered select merchant_id, id, recorded_at from payments where id = $1', [body.id])
    await gateway.restart()
    await eventually(async () => (await read(body.id, 'always')) === '900.100.301', 'the orphan is found')
  })
})

describe('an address in the policy of a page', () => {
  it('is its origin, and nothing where its host would say more than a host', () => {
    for (const [url, origins] of [
      ['https://shop.example/back?a=1', ['https://shop.example']],
      ['http://[::1]:8080/', ['http://[::1]:8080']],
      ['com.example.shop://back', ['com.example.shop:']],
      ["com.example://a;script-src'unsafe-inline'", []],
      ['com.example://a;frame-ancestors', []],
      ['no address', []],
    ] as const)
      assert.deepEqual(originOf(url), origins, url)
  })
})
