// The messages of 3-D Secure field by field, what each status does, and what goes into an authentication request.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { withThreeDSecure } from '../src/connectors/cards/threeDSecure/authenticate.ts'
import { authenticationAlone } from '../src/connectors/cards/threeDSecure/authenticationAlone.ts'
import { browserGiven, buildAReq, buildCReq, challengeInd, methodData } from '../src/connectors/cards/threeDSecure/build.ts'
import { type DirectoryServer, directoryServer } from '../src/connectors/cards/threeDSecure/directory.ts'
import {
  decodeMessage,
  encodeMessage,
  type MessageType,
  type ThreeDSecureMessage,
  wrongFields,
} from '../src/connectors/cards/threeDSecure/messages.ts'
import {
  type AuthenticationAction,
  actionOf,
  eciKnown,
  eciOf,
  type Status,
} from '../src/connectors/cards/threeDSecure/statuses.ts'
import type { Operation } from '../src/connectors/connector.ts'
import { channelSettings } from '../src/merchants/settings.ts'
import { systemClock, systemRandom } from '../src/platform/clock.ts'
import { makeLog } from '../src/platform/log.ts'
import { read } from '../src/platform/schema.ts'

const id = '8a829417-4b7e-4b28-814b-9699220015ca'
const other = '12341234-1234-1234-1234-123412341234'
const ids = { messageVersion: '2.2.0', threeDSServerTransID: id }
const cavv = 'AAABBZEEBgAAAAAAAAQGAAAAAAA='

const fields = new Map([
  ['customer.browser.acceptHeader', 'text/html'],
  ['customer.browser.userAgent', 'Mozilla/5.0'],
  ['customer.browser.language', 'de'],
  ['customer.browser.screenHeight', '900'],
  ['customer.browser.screenWidth', '1600'],
  ['customer.browser.screenColorDepth', '30'],
  ['customer.browser.timezone', '-60'],
  ['customer.browser.javaEnabled', 'false'],
  ['customer.browser.challengeWindow', '2'],
  ['customer.email', 'jane@buyer.example'],
  ['billing.street1', 'Long Street 1'],
  ['merchantInvoiceId', 'never-onward'],
])
const operation = (more: Partial<Operation> = {}): Operation => ({
  type: 'DB',
  merchantId: '0'.repeat(32),
  paymentId: '1'.repeat(32),
  channel: { id: '2'.repeat(32), settings: read(channelSettings, {}, 'test') },
  shopName: 'Shop',
  mode: 'external',
  brand: 'VISA',
  amount: 9250,
  currency: 'EUR',
  card: { number: '4200000000000018', expiryMonth: '05', expiryYear: '2034', holder: 'Jane Jones', cvv: '123' },
  fields,
  receivedAt: Date.UTC(2026, 10, 21, 6, 7, 8),
  attempt: 1,
  addresses: {
    page: 'https://pay.example/r/a.b',
    back: 'https://pay.example/r/return/a.b',
    cancel: 'https://pay.example/r/cancel/a.b',
    notice: 'https://pay.example/r/notice/c.b',
    method: 'https://pay.example/r/method/a.b',
    methodDone: 'https://pay.example/r/methodDone/a.b',
  },
  ...more,
})
const requestor = {
  id: 'requestor',
  name: 'Requestor',
  url: 'https://shop.example/',
  referenceNumber: 'REF',
  acquirerBin: '400000',
  acquirerMerchantId: 'M1',
  merchantCountryCode: '276',
  mcc: '5999',
}
const areq = (more: Partial<Operation> = {}) =>
  buildAReq(operation(more), requestor, { transId: id, version: '2.2.0' }, 'Y', browserGiven(fields)!)

/** One good message of each type. */
const good: Readonly<Record<MessageType, ThreeDSecureMessage>> = {
  PReq: { messageType: 'PReq', ...ids, threeDSServerRefNumber: 'REF' },
  PRes: { messageType: 'PRes', ...ids, cardRangeData: [], dsStartProtocolVersion: '2.1.0', dsEndProtocolVersion: '2.2.0' },
  AReq: areq(),
  ARes: {
    messageType: 'ARes',
    ...ids,
    acsTransID: other,
    dsTransID: other,
    acsReferenceNumber: 'ACS',
    dsReferenceNumber: 'DS',
    transStatus: 'C',
    acsChallengeMandated: 'N',
    authenticationType: '02',
    acsURL: 'https://issuer.example/challenge',
  },
  CReq: buildCReq({ transId: id, acsTransId: other, version: '2.2.0' }, '2'),
  CRes: { messageType: 'CRes', ...ids, acsTransID: other, transStatus: 'Y', challengeCompletionInd: 'Y' },
  RReq: {
    messageType: 'RReq',
    ...ids,
    acsTransID: other,
    dsTransID: other,
    messageCategory: '01',
    transStatus: 'Y',
    authenticationValue: cavv,
    interactionCounter: '01',
  },
  RRes: { messageType: 'RRes', ...ids, acsTransID: other, dsTransID: other, resultsStatus: '01' },
  Erro: { messageType: 'Erro', messageVersion: '2.2.0', errorCode: '203', errorComponent: 'D', errorDescription: 'a field' },
}

/** What must be there in these samples; everything else of theirs may be left out. */
const required: Readonly<Record<MessageType, string>> = {
  PReq: 'messageVersion threeDSServerTransID threeDSServerRefNumber',
  PRes: 'messageVersion threeDSServerTransID cardRangeData',
  AReq:
    'messageVersion threeDSServerTransID threeDSServerRefNumber threeDSServerURL threeDSRequestorID threeDSRequestorName threeDSRequestorURL ' +
    'threeDSRequestorAuthenticationInd threeDSCompInd acquirerBIN acquirerMerchantID merchantName mcc merchantCountryCode acctNumber ' +
    'deviceChannel messageCategory purchaseAmount purchaseCurrency purchaseExponent purchaseDate notificationURL browserAcceptHeader ' +
    'browserJavascriptEnabled browserLanguage browserUserAgent browserJavaEnabled browserColorDepth browserScreenHeight browserScreenWidth browserTZ',
  ARes: 'messageVersion threeDSServerTransID acsTransID dsTransID acsReferenceNumber dsReferenceNumber transStatus acsChallengeMandated authenticationType acsURL',
  CReq: 'messageVersion threeDSServerTransID acsTransID challengeWindowSize',
  CRes: 'messageVersion threeDSServerTransID acsTransID transStatus',
  RReq: 'messageVersion threeDSServerTransID acsTransID dsTransID messageCategory transStatus authenticationValue interactionCounter',
  RRes: 'messageVersion threeDSServerTransID acsTransID dsTransID resultsStatus',
  Erro: 'messageVersion errorCode errorComponent errorDescription',
}

describe('the messages', () => {
  for (const type of Object.keys(good) as MessageType[]) {
    it(`${type}: the sample is good, and each required field is missed and checked`, () => {
      assert.deepEqual(wrongFields(type, good[type]), [])
      const needs = required[type].split(' ')
      for (const name of Object.keys(good[type])) {
        const { [name]: _left, ...rest } = good[type]
        const wrong = wrongFields(type, rest)
        if (name === 'messageType') assert.deepEqual(wrong, ['messageType'])
        else assert.equal(wrong.includes(name), needs.includes(name), `${type} without ${name}: ${wrong}`)
        if (name !== 'messageType')
          assert.ok(wrongFields(type, { ...good[type], [name]: { not: 'this' } }).includes(name), `${type}.${name}`)
      }
    })
  }
  it('takes no other type, no list, no text, nothing', () => {
    for (const message of [good.CReq, [], 'text', null, undefined, 7]) assert.notDeepEqual(wrongFields('CRes', message), [])
  })
  it('knows both sides of its limits', () => {
    for (const [type, more, fits] of [
      ['AReq', { acctNumber: '4'.repeat(13) }, true],
      ['AReq', { acctNumber: '4'.repeat(12) }, false],
      ['AReq', { acctNumber: '4'.repeat(20) }, false],
      ['AReq', { notificationURL: `https://a.example/${'a'.repeat(256 - 18)}` }, true],
      ['AReq', { notificationURL: `https://a.example/${'a'.repeat(257 - 18)}` }, false],
      ['AReq', { notificationURL: 'javascript:alert(1)' }, false],
      ['AReq', { messageVersion: '2.1.0' }, true],
      ['AReq', { messageVersion: '2.3.1' }, false],
      ['PRes', { messageVersion: '2.3.1', dsEndProtocolVersion: '2.3.1' }, true],
      ['PRes', { dsEndProtocolVersion: '3.0.0' }, false],
      ['PRes', { dsEndProtocolVersion: '2.3' }, false],
      ['ARes', { messageVersion: '2.3.1' }, false],
      ['CReq', { challengeWindowSize: '05' }, true],
      ['CReq', { challengeWindowSize: '06' }, false],
      ['RReq', { authenticationValue: cavv.slice(1) }, false],
      ['RReq', { transStatus: 'C' }, false],
      ['RReq', { messageCategory: '02' }, false],
      ['ARes', { messageCategory: '02', transStatus: 'Y', authenticationValue: undefined }, false],
      ['RReq', { transStatus: 'N', authenticationValue: undefined, transStatusReason: '01' }, true],
      ['RReq', { transStatus: 'N', authenticationValue: undefined }, false],
      ['ARes', { transStatus: 'C', acsURL: undefined }, false],
      ['ARes', { transStatus: 'A', acsURL: undefined, authenticationValue: cavv }, true],
      ['ARes', { transStatus: 'Y' }, false],
    ] as const)
      assert.equal(wrongFields(type, { ...good[type], ...more }).length === 0, fits, `${type} ${JSON.stringify(more)}`)
  })
  it('travels through browsers as base64url without padding', () => {
    const encoded = encodeMessage(good.CReq)
    assert.match(encoded, /^[A-Za-z0-9_-]+$/)
    assert.deepEqual(decodeMessage('CReq', encoded), good.CReq)
    assert.equal(decodeMessage('CReq', `${encoded}!`), undefined)
    assert.equal(decodeMessage('CReq', ''), undefined)
    // Others indent their JSON: what counts is what it says.
    const indented = Buffer.from(JSON.stringify(good.CReq, null, 4)).toString('base64url')
    assert.deepEqual(decodeMessage('CReq', indented), good.CReq)
    const data = JSON.parse(Buffer.from(methodData(id, 'https://pay.example/m'), 'base64url').toString())
    assert.deepEqual(data, { threeDSServerTransID: id, threeDSMethodNotificationURL: 'https://pay.example/m' })
  })
})

describe('the authentication request', () => {
  it('carries the payment, the card and the browser, and never the invoice or the CVV', () => {
    const message = areq()
    assert.deepEqual(
      [message.purchaseAmount, message.purchaseCurrency, message.purchaseExponent, message.purchaseDate],
      ['9250', '978', '2', '20261121060708'],
    )
    assert.deepEqual([message.cardExpiryDate, message.browserColorDepth, message.browserTZ], ['3405', '24', '-60'])
    assert.equal(message.threeDSServerURL, 'https://pay.example/r/notice/c.b')
    const text = JSON.stringify(message)
    assert.doesNotMatch(text, /never-onward|"123"/)
    assert.equal(message.messageExtension, undefined)
  })
  it('names risk.amount, else threeDSecure.amount, else the amount, in the currency’s own unit', () => {
    const amountWith = (more: Record<string, string>, currency = 'EUR', amount = 9200) =>
      areq({ amount, currency, fields: new Map([...fields, ...Object.entries(more)]) }).purchaseAmount
    assert.equal(amountWith({}), '9200')
    assert.equal(amountWith({ 'threeDSecure.amount': '11' }), '1100')
    assert.equal(amountWith({ 'risk.amount': '10.00' }), '1000')
    assert.equal(amountWith({ 'risk.amount': '10.00', 'threeDSecure.amount': '11' }), '1000')
    assert.equal(amountWith({}, 'JPY'), '92')
    assert.equal(amountWith({}, 'KWD'), '92000')
    assert.equal(amountWith({ 'threeDSecure.currency': 'JPY' }), '92')
  })
  it('never rounds: an amount that its currency cannot express does not leave', () => {
    assert.throws(() => areq({ amount: 9250, currency: 'JPY' }), /amountFinerThanCurrency/)
  })
  it('asks for a challenge as the merchant, the exemption or a new agreement wants', () => {
    const indicator = (...pairs: readonly [string, string][]) => challengeInd(new Map(pairs))
    assert.equal(indicator(), '01')
    assert.equal(indicator(['threeDSecure.challengeIndicator', '4']), '04')
    assert.equal(indicator(['standingInstruction.mode', 'INITIAL'], ['standingInstruction.source', 'CIT']), '04')
    assert.equal(indicator(['standingInstruction.mode', 'REPEATED']), '01')
    for (const [flag, wanted] of [
      ['01', '02'],
      ['2', '05'],
      ['03', '08'],
      ['04', '02'],
    ] as const)
      assert.equal(indicator(['threeDSecure.exemptionFlag', flag]), wanted)
    assert.equal(indicator(['threeDSecure.exemptionFlag', '01'], ['threeDSecure.challengeIndicator', '03']), '03')
  })
  it('says no more of a browser without scripts than it knows', () => {
    const message = buildAReq(operation(), requestor, { transId: id, version: '2.2.0' }, 'N', {
      userAgent: 'x',
      acceptHeader: '*/*',
      language: 'en',
    })
    assert.deepEqual(wrongFields('AReq', message), [])
    assert.deepEqual([message.browserJavascriptEnabled, message.browserScreenHeight], [false, undefined])
  })
})

describe('the statuses', () => {
  const shift: AuthenticationAction = { kind: 'authorize', shifts: true }
  const rows: readonly (readonly [
    status: Status,
    reason: string | undefined,
    challenged: boolean,
    cancel: string | undefined,
    action: AuthenticationAction,
  ])[] = [
    ['Y', undefined, false, undefined, shift],
    ['Y', undefined, true, undefined, shift],
    ['A', undefined, false, undefined, shift],
    ['I', undefined, false, undefined, { kind: 'authorize', shifts: false }],
    ['U', '03', false, undefined, { kind: 'unavailable', refusal: 'threeDSecureRejectedAsUnavailable' }],
    ['N', '01', false, undefined, { kind: 'refuse', refusal: 'threeDSecureIssuerRejected' }],
    ['N', '01', true, undefined, { kind: 'refuse', refusal: 'userAuthenticationFailed' }],
    ['N', '13', false, undefined, { kind: 'authorize', shifts: false }],
    ['N', '13', true, undefined, { kind: 'refuse', refusal: 'userAuthenticationFailed' }],
    ['N', '19', true, undefined, { kind: 'refuse', refusal: 'threeDSecureTooManyAttempts' }],
    ['N', '01', true, '01', { kind: 'refuse', refusal: 'threeDSecureAbandoned' }],
    ['R', '11', false, undefined, { kind: 'refuse', refusal: 'threeDSecureSuspectedFraud' }],
    ['R', '01', true, undefined, { kind: 'refuse', refusal: 'threeDSecureIssuerRejected' }],
    ['C', undefined, false, undefined, { kind: 'challenge', decoupled: false }],
    ['D', undefined, false, undefined, { kind: 'challenge', decoupled: true }],
  ]
  for (const [status, reason, challenged, cancel, action] of rows)
    it(`${status} ${reason ?? ''} ${challenged ? 'after a challenge' : ''} ${cancel ?? ''}`, () =>
      assert.deepEqual(actionOf(status, reason, challenged, cancel), action))

  it('have the schemes’ indicators', () => {
    const of = (brand: string) => ['Y', 'A', 'N', 'R', 'I'].map(status => eciOf(brand, status as Status, undefined, undefined))
    for (const brand of ['VISA', 'AMEX', 'JCB', 'DINERS', 'ELO']) assert.deepEqual(of(brand), ['05', '06', '07', '07', '07'])
    for (const brand of ['MASTER', 'MAESTRO']) assert.deepEqual(of(brand), ['02', '01', '00', '00', '04'])
    assert.equal(eciOf('VISA', 'U', '03', undefined), undefined)
    assert.equal(eciOf('VISA', 'Y', undefined, '06'), '06')
    assert.deepEqual([eciOf('VISA', 'U', '03', '07'), eciOf('MASTER', 'Y', undefined, '06')], ['07', '06'])
    // What no scheme knows, or what would shift the liability where nobody was authenticated, is not passed on.
    assert.deepEqual([eciOf('VISA', 'Y', undefined, '99'), eciOf('MASTER', 'A', undefined, '05')], ['05', '01'])
    assert.deepEqual([eciOf('VISA', 'U', '03', '05'), eciOf('MASTER', 'U', '03', '01')], [undefined, undefined])
    assert.deepEqual([eciOf('VISA', 'N', '13', '05'), eciOf('VISA', 'I', undefined, '06')], ['06', '07'])
    assert.deepEqual([eciKnown('MASTER', '07'), eciKnown('VISA', '02'), eciKnown('MASTER', '05')], [true, false, false])
  })
})

describe('without a directory server', () => {
  const cards = { ...authenticationAlone('external'), name: 'cards external' }
  const asked = (withoutAuthentication: string) => {
    const settings = read(channelSettings, { threeDSecure: 'always', withoutAuthentication }, 'test')
    const channel = { id: '2'.repeat(32), name: 'Shop', settings }
    return withThreeDSecure(cards, undefined).perform(operation({ channel }), new AbortController().signal)
  }
  it('a channel that refuses what is not authenticated refuses', async () => {
    const reply = await asked('refuse')
    assert.ok(reply.kind === 'answer' && reply.result === 'threeDSecureRejectedByConfiguration')
  })
  it('another one authorizes, and says that there was no authentication', async () => {
    const reply = await asked('authorize')
    assert.ok(
      reply.kind === 'answer' &&
        reply.structures?.threeDSecure?.errorCode === '405' &&
        reply.structures.threeDSecure.eci === undefined,
    )
  })
})

describe('where an issuer has shoppers go', () => {
  const web = (scheme: string, length: number) => `${scheme}://issuer.example/`.padEnd(length, 'a')
  const bad = [
    'javascript:alert(1)//https://a.example',
    'data:text/html,x',
    '//issuer.example/',
    'https:issuer.example',
    'https://',
    'https://issuer.example/ a',
    'https://issuer.example/\n',
    '',
    7,
    { toString: 'https://issuer.example/' },
    null,
  ]
  /** As the shopper's browser is told, by a directory server that says so. */
  async function flow(said: { method?: unknown; acsURL?: unknown }, httpsOnly = false) {
    const range = {
      startRange: '4200000000000018',
      endRange: '4200000000000018',
      acsEndProtocolVersion: '2.2.0',
      threeDSMethodURL: said.method,
    }
    const directory = directoryServer({
      requestor,
      url: () => 'https://directory.example/',
      httpsOnly,
      clock: systemClock,
      random: systemRandom,
      log: makeLog('silent'),
      transport: async ({ body }) => {
        const asked = JSON.parse(body!) as ThreeDSecureMessage
        const own = { threeDSServerTransID: asked.threeDSServerTransID }
        const answer =
          asked.messageType === 'PReq'
            ? { ...good.PRes, ...own, cardRangeData: [range] }
            : { ...good.ARes, ...own, transStatus: 'C', acsURL: said.acsURL }
        return { status: 200, body: JSON.stringify(answer) }
      },
    })
    const settings = read(channelSettings, { threeDSecure: 'always', withoutAuthentication: 'refuse' }, 'test')
    const asked = operation({ channel: { id: '2'.repeat(32), settings } })
    return withThreeDSecure(authenticationAlone('external'), directory).perform(asked, new AbortController().signal)
  }
  // Without an address for the hidden frame the cardholder is authenticated at once.
  const acsURL = 'https://issuer.example/challenge'
  const framed = async (method: unknown, httpsOnly = false) => {
    const reply = await flow({ method, acsURL }, httpsOnly)
    assert.equal(reply.kind, 'redirect')
    return reply.kind === 'redirect' && reply.hop.kind === 'browser' ? reply.hop.method?.url : undefined
  }
  it('in the hidden frame is an address of the web, or nowhere', async () => {
    for (const url of [web('https', 256), web('http', 256)]) assert.equal(await framed(url), url)
    for (const url of [...bad, web('https', 257)]) assert.equal(await framed(url), undefined, String(JSON.stringify(url)))
    assert.equal(await framed(web('https', 256), true), web('https', 256))
    assert.equal(await framed(web('http', 256), true), undefined)
  })
  it('with the whole page is an address of the web, or there is no authentication', async () => {
    const sent = async (url: unknown, httpsOnly = false) => {
      const reply = await flow({ acsURL: url }, httpsOnly)
      if (reply.kind === 'redirect') return reply.hop.kind === 'post' ? reply.hop.url : reply.hop.kind
      assert.ok(reply.kind === 'answer' && reply.result === 'threeDSecureRejectedByTechnicalError', JSON.stringify(reply))
      return undefined
    }
    for (const url of [web('https', 2048), web('http', 2048)]) assert.equal(await sent(url), url)
    for (const url of [...bad, web('https', 2049)]) assert.equal(await sent(url), undefined, String(JSON.stringify(url)))
    assert.equal(await sent(web('https', 2048), true), web('https', 2048))
    assert.equal(await sent(web('http', 2048), true), undefined)
  })
})

describe('how long an answer is waited for', () => {
  const inner = authenticationAlone('external')
  const connector = withThreeDSecure(inner, undefined)
  const { addresses: _none, ...direct } = operation()
  it('as long as the connector inside declares, and longer only where an authentication goes before', () => {
    assert.equal(connector.answerWithinSeconds, inner.answerWithinSeconds)
    for (const [one, step, seconds] of [
      [direct, undefined, 0],
      [operation({ recovering: true }), undefined, 0],
      [operation({ attempt: 2 }), undefined, 0],
      [operation(), undefined, 12],
      [operation(), 'browser', 12],
      [operation(), 'challenge', 0],
    ] as const)
      assert.equal(connector.secondsBefore!(one, step), seconds)
  })
})

describe('returns and notices', () => {
  const directory = { requestor, random: { uuid: () => id, bytes: Buffer.alloc } } as unknown as DirectoryServer
  const connector = withThreeDSecure(authenticationAlone('external'), directory)
  const data = { transId: id, acsTransId: other, dsTransId: other, version: '2.2.0' }
  const returned = (cres: object) =>
    connector.readReturn!({ step: 'challenge', data, values: new Map([['cres', encodeMessage({ ...good.CRes, ...cres })]]) }).kind

  it('a result that names success and the indicator of failure is none, where the channel wants one', async () => {
    const concluded = async (eci: string, withoutAuthentication: string, brand = 'VISA') => {
      const settings = read(channelSettings, { threeDSecure: 'always', withoutAuthentication }, 'test')
      const event = { transStatus: 'Y', authenticationValue: cavv, eci }
      const asked = operation({ channel: { id: '2'.repeat(32), settings }, brand })
      const reply = await connector.resume!(asked, { step: 'challenge', data, event }, new AbortController().signal)
      assert.ok(reply.kind === 'answer')
      return [reply.result, reply.structures?.threeDSecure?.eci, reply.structures?.threeDSecure?.verificationId]
    }
    assert.deepEqual(await concluded('05', 'refuse'), ['succeeded', '05', cavv])
    assert.deepEqual(await concluded('07', 'refuse'), ['threeDSecureRejectedAsUnavailable', '07', undefined])
    assert.deepEqual(await concluded('07', 'authorize'), ['succeeded', '07', undefined])
    assert.deepEqual(await concluded('00', 'authorize', 'MASTER'), ['succeeded', '00', undefined])
    assert.deepEqual(await concluded('07', 'refuse', 'MASTER'), ['succeeded', '07', cavv])
  })
  it('a CRes only ends the waiting, whatever it says', () => {
    for (const transStatus of ['Y', 'N']) assert.equal(returned({ transStatus }), 'wait')
  })
  it('a CRes of another transaction or version is forged', () => {
    for (const cres of [{ threeDSServerTransID: other }, { acsTransID: id }, { messageVersion: '2.1.0' }, { transStatus: 'X' }])
      assert.equal(returned(cres), 'forged')
  })
  const noticed = (message: object, step = 'challenge') => connector.readNotice!({ step, data, body: JSON.stringify(message) })
  it('an RReq of ours is the result, and is acknowledged', () => {
    const { kind, answer } = noticed(good.RReq)
    assert.equal(kind, 'resume')
    assert.deepEqual(wrongFields('RRes', JSON.parse(answer)), [])
  })
  it('any other RReq is answered with an error', () => {
    for (const message of [
      { ...good.RReq, dsTransID: id },
      { ...good.RReq, acsTransID: id },
      { ...good.RReq, threeDSServerTransID: other },
      good.CRes,
      {},
    ]) {
      const { kind, answer } = noticed(message)
      assert.equal(kind, 'forged')
      assert.deepEqual(wrongFields('Erro', JSON.parse(answer)), [])
    }
    assert.equal(noticed(good.RReq, 'browser').kind, 'forged')
  })
})

it('a result that must be understood further, or contradicts itself, is not taken', () => {
  const [trans, acs, ds] = ['1', '2', '3'].map(digit => `${digit.repeat(8)}-1111-4111-8111-111111111111`)
  const request = {
    messageType: 'RReq',
    messageVersion: '2.2.0',
    threeDSServerTransID: trans,
    acsTransID: acs,
    dsTransID: ds,
    messageCategory: '01',
    transStatus: 'Y',
    authenticationValue: `${'A'.repeat(27)}=`,
    eci: '05',
    interactionCounter: '01',
  }
  const connector = withThreeDSecure({ operations: {} } as never, undefined)
  const told = (more: object) => {
    const data = { transId: trans!, acsTransId: acs!, dsTransId: ds!, version: '2.2.0' }
    const said = connector.readNotice!({ step: 'challenge', data, body: JSON.stringify({ ...request, ...more }) })
    return [said.kind, JSON.parse(said.answer).errorCode]
  }
  const extension = (criticalityIndicator: unknown) => ({ messageExtension: [null, { id: 'i', criticalityIndicator, data: {} }] })
  assert.deepEqual(told({}), ['resume', undefined])
  assert.deepEqual(told(extension(false)), ['resume', undefined])
  assert.deepEqual(told(extension(true)), ['forged', '202'])
  for (const transStatus of ['Y', 'A']) assert.deepEqual(told({ transStatus, challengeCancel: '01' }), ['forged', '203'])
})
