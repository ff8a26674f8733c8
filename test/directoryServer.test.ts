// A directory server that is right but not ours, over HTTP: what it may say of card ranges and transactions, what is asked of it, and what a payment
// becomes when it is silent. And what others write: nothing of it is stored or told as it came.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, it } from 'node:test'
import type { Worker } from 'node:worker_threads'
import { findRange } from '../src/connectors/cards/threeDSecure/cardRanges.ts'
import type { ThreeDSecureMessage } from '../src/connectors/cards/threeDSecure/messages.ts'
import { readRanges } from '../src/connectors/cards/threeDSecure/readRanges.ts'
import { type ResultName, results } from '../src/contract/results/results.ts'
import { writtenText, writtenTexts } from '../src/payments/read/written.ts'
import { clockWith } from '../src/platform/clock.ts'
import { sizes } from '../src/platform/database/connect.ts'
import { freePort } from './support/freePort.ts'
import { type Body, eventually, type Fields, sandbox, type TestGateway, testGateway } from './support/gateway.ts'
import { type AcquirersFile, acquirersFile, type TestHost, testHost } from './support/host.ts'
import { untilWaiting } from './support/locks.ts'

const cavv = 'AAABBZEEBgAAAAAAAAQGAAAAAAA='
const number = '4200000000000000'
const good = { transStatus: 'Y', authenticationValue: cavv }
const rejected = { transStatus: 'R', transStatusReason: '11' }
const range = (more: object = {}) => ({
  startRange: '4200000000000000',
  endRange: '4200009999999999',
  acsStartProtocolVersion: '2.1.0',
  acsEndProtocolVersion: '2.2.0',
  ...more,
})

type Said = ThreeDSecureMessage | string
/** What the directory server says next; both begin anew with each test. */
let ranges: (asked: ThreeDSecureMessage) => Said | Promise<Said>
let answer: (asked: ThreeDSecureMessage) => Said
let asked: ThreeDSecureMessage[] = []
let ahead = 0
let gateway: TestGateway
let host: TestHost
let file: AcquirersFile
let folder: string
let metricsPort: number
let directory: http.Server

const rangesOf = (list: readonly object[], more: object = {}) => ({ cardRangeData: list, ...more })
const of = (type: string) => asked.filter(({ messageType }) => messageType === type)
/** Whoever had no ranges asks again. */
const soon = () => {
  ahead += 3000
}
/** A day later no ranges are left. */
const tomorrow = () => {
  ahead += 25 * 3_600_000
}

before(async () => {
  directory = http.createServer((request, response) => {
    answerTo(request, response).catch((error: Error) => response.destroy(error))
  })
  async function answerTo(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    let body = ''
    for await (const chunk of request) body += chunk
    const message = JSON.parse(body) as ThreeDSecureMessage
    asked.push(message)
    const { messageVersion, threeDSServerTransID } = message
    const common = { messageVersion, threeDSServerTransID }
    const said = message.messageType === 'PReq' ? await ranges(message) : answer(message)
    if (said === '503') response.statusCode = 503
    const versions = { dsStartProtocolVersion: '2.1.0', dsEndProtocolVersion: '2.2.0' }
    const ids = { acsTransID: randomUUID(), dsTransID: randomUUID(), acsReferenceNumber: 'A', dsReferenceNumber: 'D' }
    const own = message.messageType === 'PReq' ? { messageType: 'PRes', ...versions } : { messageType: 'ARes', ...ids }
    response.end(typeof said === 'string' ? said : JSON.stringify({ ...own, ...common, ...said }))
  }
  await new Promise<void>(resolve => directory.listen(0, '127.0.0.1', resolve))
  folder = mkdtempSync(join(tmpdir(), 'directory-'))
  const path = join(folder, 'ds.json')
  const requestor = { id: 'r', name: 'R', url: 'https://shop.example/', referenceNumber: 'REF' }
  const acquirer = { acquirerBin: '400000', acquirerMerchantId: 'M1', merchantCountryCode: '276', mcc: '5999' }
  const url = `http://127.0.0.1:${(directory.address() as AddressInfo).port}/ds`
  writeFileSync(path, JSON.stringify({ external: { url, requestor: { ...requestor, ...acquirer } } }), { mode: 0o600 })
  metricsPort = await freePort()
  host = await testHost()
  file = acquirersFile({ north: [host.port] })
  gateway = await testGateway({
    clock: clockWith(() => Date.now() + ahead),
    environment: { THREE_D_SECURE_FILE: path, ACQUIRERS_FILE: file.path, METRICS_PORT: String(metricsPort) },
  })
})
after(async () => {
  await gateway.stop()
  await host.stop()
  file.remove()
  directory.close()
  rmSync(folder, { recursive: true })
})
beforeEach(() => {
  tomorrow()
  asked = []
  ranges = () => rangesOf([range()])
  answer = () => good
})

const browser = {
  'customer.browser.acceptHeader': 'text/html',
  'customer.browser.userAgent': 'Mozilla/5.0',
  'customer.browser.language': 'de',
}
const pay = async (more: Fields = {}): Promise<Body> =>
  (
    await gateway.pay({
      testMode: 'EXTERNAL',
      'customParameters[3DS2_enrolled]': 'true',
      shopperResultUrl: 'https://shop.example/back',
      ...browser,
      ...more,
    })
  ).body
const figures = async () => (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text()
const read = async (id: string): Promise<Body> => (await gateway.get(`/v1/payments/${id}`, { entityId: sandbox.entityId })).body
const is = ({ result, threeDSecure }: Body, name: ResultName): void =>
  assert.equal(result.code, results[name].code, JSON.stringify({ result, threeDSecure }))
const bins = (count: number, more: object = {}) =>
  Array.from({ length: count }, (_, at) => {
    const bin = String(500_000_000 + at)
    return range({ startRange: bin.padEnd(16, '0'), endRange: bin.padEnd(16, '9'), ...more })
  })

describe('card ranges', () => {
  /** What the issuer refuses is refused: it was asked, in this version. */
  async function asksIn(version: string, said: object): Promise<void> {
    ranges = () => said as ThreeDSecureMessage
    answer = () => rejected
    is(await pay(), 'threeDSecureSuspectedFraud')
    assert.deepEqual(
      of('AReq').map(({ messageVersion }) => messageVersion),
      [version],
    )
  }
  for (const [what, version, said] of [
    ['of a server that speaks 2.3.1, too', '2.2.0', rangesOf([range()], { dsEndProtocolVersion: '2.3.1' })],
    [
      'of a server that says nothing of itself',
      '2.2.0',
      rangesOf([range()], { dsStartProtocolVersion: undefined, dsEndProtocolVersion: undefined }),
    ],
    ['of an issuer that speaks 2.3.1, too', '2.2.0', rangesOf([range({ acsEndProtocolVersion: '2.3.1' })])],
    ['of an issuer that speaks 2.1 alone', '2.1.0', rangesOf([range({ acsEndProtocolVersion: '2.1.0' })])],
    ['of a server that speaks 2.1 alone', '2.1.0', rangesOf([range()], { dsEndProtocolVersion: '2.1.0' })],
    ['for which the server speaks 2.1 alone', '2.1.0', rangesOf([range({ dsEndProtocolVersion: '2.1.0' })])],
    ['in a message of 2.3.1', '2.2.0', rangesOf([range()], { messageVersion: '2.3.1' })],
    [
      'behind a byte-order mark',
      '2.2.0',
      `\ufeff${JSON.stringify({ messageType: 'PRes', messageVersion: '2.2.0', threeDSServerTransID: randomUUID(), cardRangeData: [range()] })}`,
    ],
    ['among what is none', '2.2.0', rangesOf([null, 1, 'x', [], { startRange: '1' }, range()] as object[])],
    [
      'of tens of thousands',
      '2.2.0',
      rangesOf([...bins(60_000, { threeDSMethodURL: `https://issuer.example/${'m'.repeat(100)}` }), range()]),
    ],
  ] as const)
    it(`${what} are used`, () => asksIn(version, said as unknown as object))

  it('longer than 32 MB are none, and hold nobody up', async () => {
    ranges = () => rangesOf([range({ more: 'x'.repeat(32_000_000) })])
    await eventually(async () => (await pay()).threeDSecure.errorCode === '405', 'there are none')
    soon()
    ranges = () => rangesOf([range({ more: 'x'.repeat(31_000_000) })])
    await eventually(async () => (await pay()).threeDSecure.eci === '05', 'they are read')
  })
  it('that are parts without an end are none: read, they would cost fifty times their bytes', async () => {
    const deep = 15_000_000
    for (const nonsense of [
      '['.repeat(deep) + ']'.repeat(deep),
      `[${'{},'.repeat(8_000_000)}{}]`,
      `[${'0,'.repeat(15_000_000)}0]`,
    ]) {
      ranges = ({ threeDSServerTransID: id }) =>
        `{"messageType":"PRes","messageVersion":"2.2.0","threeDSServerTransID":"${id}","cardRangeData":${nonsense}}`
      soon()
      const before = process.memoryUsage().rss
      // On a slow machine a payment may have waited long enough before they are read.
      await eventually(async () => (await pay()).threeDSecure.errorCode === '405', 'there are none')
      assert.ok(process.memoryUsage().rss - before < 600 * 2 ** 20)
    }
  })
  it('of issuers that speak none of our versions, and those that are taken away, take no part', async () => {
    for (const more of [{ acsStartProtocolVersion: '2.3.1', acsEndProtocolVersion: '2.3.1' }, { actionInd: 'D' }]) {
      tomorrow()
      ranges = () => rangesOf([range(more), ...bins(1)])
      const body = await pay()
      is(body, 'succeededInConnectorTestMode')
      assert.equal(body.threeDSecure?.errorCode, undefined)
    }
    assert.equal(of('AReq').length, 0)
  })
  it('end with their last number', async () => {
    ranges = () => rangesOf([range({ endRange: number }), range({ startRange: '4200000000000002' }), ...bins(3)])
    await pay()
    assert.equal(of('AReq').length, 1)
    tomorrow()
    ranges = () =>
      rangesOf([
        range({ startRange: '4200000000000001' }),
        range({ startRange: '4000000000000000', endRange: '4199999999999999' }),
      ])
    await pay()
    assert.equal(of('AReq').length, 1)
  })
  it('may lie within another: the narrower one counts', async () => {
    ranges = () =>
      rangesOf([
        range({ startRange: '4000000000000000', endRange: '4999999999999999', acsEndProtocolVersion: '2.1.0' }),
        range({ startRange: '4100000000000000', endRange: '4100000000000001' }),
        range({ startRange: '4200000000000000', endRange: '4200000000000000' }),
        range({ startRange: '4200000000000001', endRange: '4200000000000001' }),
      ])
    await pay()
    await pay({ 'card.number': '4200000000000018' })
    assert.deepEqual(
      of('AReq').map(({ messageVersion }) => messageVersion),
      ['2.2.0', '2.1.0'],
    )
  })
  it('are asked for once by all who wait', async () => {
    let give = () => {}
    const waits = new Promise<void>(resolve => {
      give = resolve
    })
    ranges = () => waits.then(() => rangesOf([range()]))
    answer = () => rejected
    const payments = Array.from({ length: 20 }, () => pay())
    // All are written before anybody is asked.
    const written = 'select count(*)::int as count from payments where received_at > $1'
    const since = [new Date(Date.now() + ahead - 3_600_000)]
    await eventually(async () => (await gateway.pool.query(written, since)).rows[0].count === 20, '20 payments are written')
    give()
    for (const body of await Promise.all(payments)) is(body, 'threeDSecureSuspectedFraud')
    assert.equal(of('PReq').length, 1)
  })
  it('are kept for a day when they cannot be had anew, and somebody is told once', async () => {
    is(await pay(), 'succeededInConnectorTestMode')
    answer = () => rejected
    ranges = () => '503'
    const warnings = () => gateway.logged.filter(line => /"level":"warn"/.test(line) && /card ranges/.test(line)).length
    const before = warnings()
    for (let hour = 0; hour < 23; hour++) {
      ahead += 3_600_000
      for (let times = 0; times < 3; times++) is(await pay(), 'threeDSecureSuspectedFraud')
    }
    assert.ok(warnings() > before, 'a warning')
    assert.ok(warnings() <= before + 23, 'not one for each payment')
    assert.ok(of('PReq').length <= 24, 'a server that is down is not asked by each payment')
    ahead += 2 * 3_600_000
    is(await pay(), 'succeededInConnectorTestMode')
    soon()
    ranges = () => rangesOf([range()])
    is(await pay(), 'threeDSecureSuspectedFraud')
  })
  it('that nobody has are asked for by a payment three seconds later, and one warning in ten minutes says so', async () => {
    ranges = () => '503'
    const warnings = (of: RegExp) => gateway.logged.filter(line => /"level":"warn"/.test(line) && of.test(line)).length
    const told = () => [warnings(/gave no card ranges/), warnings(/an authentication failed/)] as const
    const [preq, areq] = told()
    for (let times = 0; times < 9; times++) {
      if (times % 3 === 0) soon()
      assert.match((await pay()).threeDSecure.errorDescription, /no card ranges, but status 503$/)
    }
    assert.equal(of('PReq').length, 3)
    assert.deepEqual(told(), [preq + 1, areq])
    soon()
    ranges = () => rangesOf([range()])
    answer = () => 'nothing'
    for (let times = 0; times < 3; times++) await pay()
    assert.deepEqual(told(), [preq + 1, areq + 1])
    ahead += 600_000
    await pay()
    assert.deepEqual(told(), [preq + 1, areq + 2])
  })
  it('are not none: whoever names none has failed', async () => {
    ranges = () => rangesOf([])
    assert.match((await pay()).threeDSecure.errorDescription, /named no card range/)
  })
  it('are not replaced by none', async () => {
    await pay()
    answer = () => rejected
    for (const said of [rangesOf([]), rangesOf([{ startRange: 4200000000000000 }]), { cardRangeData: undefined }]) {
      ahead += 3_700_000
      ranges = () => said as ThreeDSecureMessage
      const before = of('PReq').length
      is(await pay(), 'threeDSecureSuspectedFraud')
      await eventually(async () => of('PReq').length === before + 1, 'ranges are asked for')
      is(await pay(), 'threeDSecureSuspectedFraud')
    }
  })
  it('are not replaced by far fewer until a day is over, and somebody is told', async () => {
    const warned = () => gateway.logged.filter(line => /named 1 card ranges, and 5 before/.test(line)).length
    ranges = () => rangesOf([range(), ...bins(4)])
    answer = () => rejected
    await pay()
    ranges = () => rangesOf(bins(1))
    for (let hour = 0; hour < 23; hour++) {
      ahead += 3_700_000
      is(await pay(), 'threeDSecureSuspectedFraud')
      await eventually(async () => of('PReq').length === hour + 2, 'ranges are asked for')
    }
    assert.ok(warned() > 0)
    ahead += 3_700_000
    is(await pay(), 'succeededInConnectorTestMode')
    assert.match(await figures(), /tollgate_card_ranges\{mode="external"\} 1\n/)
    // Half of them may be true.
    ranges = () => rangesOf([range(), ...bins(2)])
    tomorrow()
    await pay()
    ranges = () => rangesOf(bins(2))
    ahead += 3_700_000
    is(await pay(), 'threeDSecureSuspectedFraud')
    await eventually(async () => (await pay()).result.code === results.succeededInConnectorTestMode.code, 'they are replaced')
  })
  it('may say oddly from and to which version: what cannot be read bounds nothing', async () => {
    for (const from of [null, '', '1.0.2', 'two'])
      for (const to of [null, '', '2', undefined]) {
        tomorrow()
        ranges = () => rangesOf([range({ acsStartProtocolVersion: from, acsEndProtocolVersion: to })])
        answer = () => rejected
        is(await pay(), 'threeDSecureSuspectedFraud')
      }
    tomorrow()
    ranges = () => rangesOf([range({ acsStartProtocolVersion: '1.0.2', acsEndProtocolVersion: '1.0.2' })])
    is(await pay(), 'succeededInConnectorTestMode')
  })
  it('are read beside what else the process does, whatever stands among them', async () => {
    const names = `{${Array.from({ length: 400_000 }, (_, at) => `"n${at}":1`).join()}}`
    const list = (json: string) =>
      `{"messageType":"PRes","messageVersion":"2.2.0","threeDSServerTransID":"${randomUUID()}","cardRangeData":[${json}]}`
    let turns = 0
    let turning = setImmediate(function turn() {
      turns++
      turning = setImmediate(turn)
    })
    const { signal } = new AbortController()
    let [threads, most] = [0, 0]
    const began = (thread: Worker) => {
      most = Math.max(most, ++threads)
      thread.once('exit', () => threads--)
    }
    process.on('worker', began)
    const [read, none] = await Promise.all([
      readRanges(list(`${JSON.stringify(range())},${names}`), signal),
      readRanges('x'.repeat(200_000), signal),
    ])
    clearImmediate(turning)
    process.removeListener('worker', began)
    assert.equal(most, 1, 'one after the other')
    assert.deepEqual([read?.count, read?.unreadable, none], [1, 1, undefined])
    assert.equal(findRange(read!, number)?.version, '2.2.0')
    assert.ok(turns > 100, `${turns}`)
  })
  it('that take too long to read are given up', async () => {
    await assert.rejects(readRanges(`[${'0,'.repeat(100_000)}0]`, AbortSignal.timeout(1)), /took too long to read/)
    await assert.rejects(readRanges(`[${'0,'.repeat(100_000)}0]`, AbortSignal.abort()), /took too long to read/)
  })
  it('are counted', async () => {
    ranges = () => rangesOf([range(), ...bins(6)])
    await pay()
    const lookups = async (event: string) =>
      Number(
        new RegExp(`tollgate_card_range_lookups_total\\{mode="external",event="${event}"\\} (\\d+)`).exec(await figures())![1],
      )
    const before = [await lookups('within'), await lookups('outside')] as const
    await pay()
    await pay({ 'card.number': '4111111111111111' })
    assert.deepEqual([await lookups('within'), await lookups('outside')], [before[0] + 1, before[1] + 1])
    assert.match(await figures(), /tollgate_card_ranges\{mode="external"\} 7\n/)
    assert.match(
      await figures(),
      /tollgate_directory_server_messages_total\{mode="external",message="PReq",event="answered"\} \d/,
    )
  })
})

describe('an answer of the issuer', () => {
  const critical = { name: 'further', id: 'A000000004', criticalityIndicator: true, data: {} }
  for (const [what, said, name] of [
    ['R without a reason', { transStatus: 'R' }, 'threeDSecureIssuerRejected'],
    ['R with too long a text', { ...rejected, cardholderInfo: 'x'.repeat(129) }, 'threeDSecureSuspectedFraud'],
    ['R with a malformed indicator', { ...rejected, eci: '7' }, 'threeDSecureSuspectedFraud'],
    ['R with none', { ...rejected, eci: null }, 'threeDSecureSuspectedFraud'],
    ['R with an empty cryptogram', { ...rejected, authenticationValue: '' }, 'threeDSecureSuspectedFraud'],
    ['R with fields of an error', { ...rejected, errorCode: '405', errorSource: 'D' }, 'threeDSecureSuspectedFraud'],
    ['R that must be understood further', { ...rejected, messageExtension: [critical] }, 'threeDSecureSuspectedFraud'],
    ['R of no type', { ...rejected, messageType: undefined }, 'threeDSecureSuspectedFraud'],
    ['R in another version', { ...rejected, messageVersion: '2.3.1' }, 'threeDSecureSuspectedFraud'],
    [
      'N with too long an operator',
      { transStatus: 'N', transStatusReason: '01', acsOperatorID: 'x'.repeat(33) },
      'threeDSecureIssuerRejected',
    ],
    [
      'N that takes no part, and is malformed',
      { transStatus: 'N', transStatusReason: '13', eci: '7' },
      'threeDSecureIssuerRejected',
    ],
  ] as const)
    it(`${what} refuses`, async () => {
      answer = () => said
      is(await pay(), name)
    })
  for (const [what, said] of [
    ['Y with a malformed indicator', { ...good, eci: '7' }],
    ['Y without its cryptogram', { transStatus: 'Y' }],
    ['Y in another version', { ...good, messageVersion: '2.1.0' }],
    ['Y of another transaction', { ...good, threeDSServerTransID: randomUUID() }],
    ['R of another transaction', { ...rejected, threeDSServerTransID: randomUUID() }],
    ['Y that must be understood further', { ...good, messageExtension: [critical] }],
  ] as const)
    it(`${what} is no authentication`, async () => {
      answer = () => said
      const body = await pay()
      assert.deepEqual([body.threeDSecure.authenticationStatus, body.threeDSecure.eci], [undefined, undefined])
      assert.match(body.threeDSecure.errorCode, /^\d{3}$/)
    })
  it('that must be understood further is named as such; one that may be is taken', async () => {
    answer = () => ({ ...good, messageExtension: [critical] })
    assert.equal((await pay()).threeDSecure.errorCode, '202')
    answer = () => ({ ...good, messageExtension: [{ ...critical, criticalityIndicator: false }] })
    assert.equal((await pay()).threeDSecure.verificationId, cavv)
    const long = { ...critical, criticalityIndicator: false, data: { value: 'x'.repeat(80_000) } }
    answer = () => ({ ...good, messageExtension: [long] })
    assert.equal((await pay()).threeDSecure.verificationId, cavv)
    answer = () => ({ ...good, messageExtension: [long, long] })
    assert.equal((await pay()).threeDSecure.errorCode, '405')
  })
  it('that refuses proves nothing, whatever it brings', async () => {
    answer = () => ({ ...rejected, authenticationValue: cavv })
    const { threeDSecure } = await pay()
    assert.deepEqual([threeDSecure.authenticationStatus, threeDSecure.verificationId], ['R', undefined])
  })
  it('that names success and the indicator of failure is believed in the latter', async () => {
    answer = () => ({ ...good, eci: '07' })
    const { threeDSecure } = await pay()
    assert.deepEqual([threeDSecure.eci, threeDSecure.verificationId, threeDSecure.authenticationStatus], ['07', undefined, 'Y'])
    answer = () => ({ ...good, eci: '06' })
    assert.equal((await pay()).threeDSecure.verificationId, cavv)
  })
  it('may write ids in capitals, and begin with a byte-order mark', async () => {
    const whole = {
      messageType: 'ARes',
      acsTransID: randomUUID(),
      dsTransID: randomUUID(),
      acsReferenceNumber: 'A',
      dsReferenceNumber: 'D',
      ...good,
    }
    for (const say of [
      ({ threeDSServerTransID: id }: ThreeDSecureMessage) => ({ ...good, threeDSServerTransID: String(id).toUpperCase() }),
      ({ threeDSServerTransID, messageVersion }: ThreeDSecureMessage) =>
        `\ufeff${JSON.stringify({ ...whole, threeDSServerTransID, messageVersion })}`,
    ]) {
      answer = say
      assert.equal((await pay()).threeDSecure.eci, '05')
    }
  })
  it('that a card takes no part is believed of this transaction alone', async () => {
    const error = { messageType: 'Erro', errorCode: '305', errorComponent: 'A', errorDescription: 'x' }
    answer = () => error
    assert.equal((await pay()).threeDSecure?.errorCode, undefined)
    answer = () => ({ ...error, threeDSServerTransID: randomUUID() })
    assert.equal((await pay()).threeDSecure.errorCode, '101')
  })
})

describe('a result', () => {
  const post = async (url: unknown, message: object | string) => {
    const body = typeof message === 'string' ? message : JSON.stringify(message)
    return (await fetch(String(url), { method: 'POST', body })).json() as Promise<Body>
  }
  async function challenged() {
    const ids = { acsTransID: randomUUID(), dsTransID: randomUUID() }
    answer = () => ({
      ...ids,
      transStatus: 'C',
      acsChallengeMandated: 'Y',
      authenticationType: '02',
      acsURL: 'https://acs.example/c',
    })
    const { id } = await pay()
    const { threeDSServerURL: url, threeDSServerTransID } = of('AReq').at(-1)!
    const result = {
      messageType: 'RReq',
      messageVersion: '2.2.0',
      threeDSServerTransID,
      ...ids,
      messageCategory: '01',
      interactionCounter: '01',
      ...good,
    }
    return { id, url, result }
  }
  const ended = (id: string) =>
    eventually(async () => {
      const body = await read(id)
      return body.result.code !== '000.200.000' && body
    }, 'the payment ends')
  it('that comes again is acknowledged again, and one that contradicts it is not', async () => {
    const { id, url, result } = await challenged()
    const first = await post(url, result)
    assert.equal(first.messageType, 'RRes')
    assert.deepEqual(await post(url, result), first, 'while the payment goes on')
    const body = await ended(id)
    assert.deepEqual(await post(url, result), first, 'after its end')
    for (const more of [
      { transStatus: 'N', transStatusReason: '01', authenticationValue: undefined },
      { transStatus: 'A' },
      { messageVersion: '2.1.0' },
      { authenticationValue: cavv.replace('A', 'B') },
      { dsTransID: randomUUID() },
      { acsTransID: randomUUID() },
    ])
      assert.equal((await post(url, { ...result, ...more })).errorCode, '301', JSON.stringify(more))
    assert.deepEqual((await read(id)).threeDSecure, body.threeDSecure)
    assert.equal(body.threeDSecure.eci, '05')
  })
  it('that proves nothing is acknowledged again too', async () => {
    const { id, url, result } = await challenged()
    const first = await post(url, { ...result, eci: '07' })
    assert.equal(first.messageType, 'RRes')
    assert.equal((await ended(id)).threeDSecure.verificationId, undefined)
    assert.deepEqual(await post(url, { ...result, eci: '07' }), first)
  })
  it('of several that come at one moment is the one that is acknowledged, and no other', async () => {
    const { id, url, result } = await challenged()
    const holder = await gateway.pool.connect()
    const refused = { transStatus: 'N', transStatusReason: '01', authenticationValue: undefined }
    let all: Promise<Body[]>
    try {
      // All find that the payment waits for its result, and none can take it.
      await holder.query('begin')
      await holder.query('select from continuations where payment_id = $1 for update', [id])
      all = Promise.all([{}, refused, {}, refused, {}].map(more => post(url, { ...result, ...more })))
      await untilWaiting(gateway.pool, 'continuations', sizes.pages.max) // the fifth behind them
    } finally {
      await holder.query('rollback')
      holder.release()
    }
    const types = (await all).map(({ messageType }) => messageType)
    const { authenticationStatus } = (await ended(id)).threeDSecure
    const [one, other] = authenticationStatus === 'Y' ? ['RRes', 'Erro'] : ['Erro', 'RRes']
    assert.deepEqual(types, [one, other, one, other, one])
  })
  it('that comes again many times at once keeps four of a payment waiting for the end, and 32 of all', async () => {
    const all: Awaited<ReturnType<typeof challenged>>[] = []
    for (let payments = 0; payments < 9; payments++) all.push(await challenged())
    const holder = await gateway.pool.connect()
    const told: unknown[][] = all.map(() => [])
    const acknowledged = () => told.map(types => types.filter(type => type === 'RRes').length)
    const again = async (at: number) => told[at]!.push((await post(all[at]!.url, all[at]!.result)).messageType)
    const posts: Promise<unknown>[] = []
    try {
      await holder.query('begin; lock table answers in exclusive mode')
      for (const { url, result } of all) assert.equal((await post(url, result)).messageType, 'RRes')
      for (let times = 0; times < 9; times++) posts.push(again(0))
      await eventually(async () => told[0]!.length === 5, 'all but four are answered')
      for (let at = 1; at < all.length; at++) posts.push(again(at), again(at), again(at), again(at))
      await eventually(async () => told.flat().length === 9, 'four find too many')
      assert.deepEqual(acknowledged(), Array(9).fill(0))
    } finally {
      await holder.query('rollback')
      holder.release()
    }
    await Promise.all(posts)
    assert.equal(
      acknowledged().reduce((sum, one) => sum + one),
      32,
    )
    assert.equal(acknowledged()[0], 4)
    for (const { id } of all) await ended(id)
    await again(0)
    assert.equal(told[0]!.at(-1), 'RRes', 'none waits any more')
  })
  it('that comes after the end of time is acknowledged to nobody', async () => {
    const { id, url, result } = await challenged()
    ahead += 601_000
    await ended(id)
    assert.equal((await post(url, result)).errorCode, '301')
  })
  it('may write ids in capitals, and begin with a byte-order mark', async () => {
    const { id, url, result } = await challenged()
    const capitals = {
      ...result,
      acsTransID: result.acsTransID.toUpperCase(),
      threeDSServerTransID: String(result.threeDSServerTransID).toUpperCase(),
    }
    assert.equal((await post(url, `\ufeff${JSON.stringify(capitals)}`)).messageType, 'RRes')
    assert.equal((await ended(id)).threeDSecure.eci, '05')
  })
})

describe('what others write', () => {
  const tables = ['payments', 'answers', 'events', 'pending_answers', 'operator_cases', 'request_records']
  async function nowhere(text: RegExp): Promise<void> {
    for (const table of tables)
      for (const { row } of (await gateway.pool.query(`select t::text as row from ${table} t`)).rows)
        assert.doesNotMatch(row, text, table)
    assert.doesNotMatch(gateway.logged.join('\n'), text)
  }
  it('is stored and told without card numbers, control characters and half characters', async () => {
    for (const written of [number, '4200 0000 0000 0000', `x\ud800 ${number}`, `\u001b[31m${number}\u001b[0m`]) {
      answer = () => ({
        messageType: 'Erro',
        errorCode: '203',
        errorComponent: 'D',
        errorDescription: `acctNumber ${written} is bad`,
      })
      const failed = await pay()
      answer = () => ({ ...good, cardholderInfo: `card ${written} is fine` })
      const authenticated = await pay()
      const texts = [failed.threeDSecure.errorDescription, authenticated.threeDSecure.cardHolderInfo] as string[]
      for (const text of texts) {
        assert.ok(text.isWellFormed(), text)
        assert.doesNotMatch(text, /4200 ?0000 ?0000 ?0000|\p{Cc}/u)
        assert.match(text, /0000.* is (bad|fine)$/)
      }
      assert.equal(authenticated.threeDSecure.verificationId, cavv)
    }
    await nowhere(/4200 ?0000 ?0000 ?0000|\\ud800|\\u001b/)
  })
  it('is stored and told without the number of the payment itself, whatever digits stand beside it', async () => {
    const pairs = number.replace(/\d{2}(?=\d)/g, '$&,')
    for (const written of [`${number}0534`, `0534${number}`, pairs, `${number.slice(0, 8)}=${number.slice(8)}0534`]) {
      answer = () => ({
        messageType: 'Erro',
        errorCode: '203',
        errorComponent: 'D',
        errorDescription: `acctNumber ${written} is bad`,
      })
      const failed = await pay()
      answer = () => ({ ...good, cardholderInfo: `card ${written} is fine` })
      const authenticated = await pay()
      const texts = [failed.threeDSecure.errorDescription, authenticated.threeDSecure.cardHolderInfo] as string[]
      for (const text of texts) assert.ok(!text.replace(/\D/g, '').includes(number) && /is (bad|fine)$/.test(text), text)
      assert.equal(authenticated.threeDSecure.verificationId, cavv)
    }
    await nowhere(/4200000000000000|42,00,00,00|42000000=00/)
  })
  it('keeps numbers that somebody has to use, though they pass for card numbers', () => {
    const numbers = {
      ConnectorTxID1: number,
      DigitableLine: number,
      number,
      verificationId: cavv,
      EXTERNAL_SYSTEM_LINK: `https://x/${number}`,
    }
    assert.deepEqual(writtenTexts({ ...numbers, ExtendedDescription: `card ${number}`, strange: number }), {
      ...numbers,
      ExtendedDescription: 'card xxxxxxxxxxxx0000',
      strange: 'xxxxxxxxxxxx0000',
    })
    // No CVV is part of a number, and no address of mail passes for one.
    assert.deepEqual(writtenTexts({ accountId: `jane+${number}@shop.example`, TAXID: `${number} cvv: 942`, number: 'cvv 942' }), {
      accountId: 'jane+xxxxxxxxxxxx0000@shop.example',
      TAXID: `${number} cvv: xxx`,
      number: 'cvv xxx',
    })
  })
})

it('what another side writes is cut where no address would be longer', () => {
  assert.equal(writtenText('x'.repeat(900_000)).length, 2048)
  assert.equal(writtenText(`${'a'.repeat(2040)}4200000000000000`), `${'a'.repeat(2040)}xxxxxxxx`)
})
