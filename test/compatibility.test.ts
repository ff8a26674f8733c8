// What existing clients of the interface send and expect, byte by byte where a library would tidy it up.

import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { catalogue } from '../src/contract/results/catalogue.ts'
import { isGood, results } from '../src/contract/results/results.ts'
import { type Body, sandbox, type TestGateway, testGateway } from './support/gateway.ts'

let gateway: TestGateway
before(async () => {
  gateway = await testGateway()
})
after(() => gateway.stop())

type Raw = { readonly head: string; readonly body: Body; readonly chunks: number }

/** Sends bytes as they are and reads one answer. */
function send(text: string, encoding: 'utf8' | 'latin1' = 'utf8'): Promise<Raw> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(gateway.baseUrl).port), '127.0.0.1')
    let got = Buffer.alloc(0)
    let chunks = 0
    socket.setTimeout(15_000, () => socket.destroy(new Error(`no answer to ${text.slice(0, 200)}; got ${got}`)))
    socket.on('error', reject)
    socket.on('data', chunk => {
      chunks++
      got = Buffer.concat([got, chunk])
      const end = got.indexOf('\r\n\r\n')
      const length = Number(/content-length: *(\d+)/i.exec(got.toString('latin1', 0, end))?.[1] ?? Number.NaN)
      if (end < 0 || got.length < end + 4 + length) return
      socket.destroy()
      resolve({ head: got.toString('latin1', 0, end), body: JSON.parse(got.toString('utf8', end + 4)), chunks })
    })
    socket.write(text, encoding)
  })
}

const authorization = `Authorization: Bearer ${sandbox.accessToken}`
const request = (line: string, headers: readonly string[], body = '') =>
  `${[`${line} HTTP/1.1`, 'Host: localhost', authorization, ...headers, ...(body === '' ? [] : [`Content-Length: ${Buffer.byteLength(body)}`])].join('\r\n')}\r\n\r\n${body}`

const form = 'Content-Type: application/x-www-form-urlencoded'
/** A payment whose body is given one character a byte. */
const latin1 = (header: string, body: string) =>
  send(request('POST /v1/payments', [header], body).replace(/Content-Length: \d+/, `Content-Length: ${body.length}`), 'latin1')
const payment = `entityId=${sandbox.entityId}&paymentType=DB&amount=92.00&currency=EUR&paymentBrand=VISA&card.number=4200000000000000&card.expiryMonth=05&card.expiryYear=2034&card.cvv=123`

async function check(raw: Promise<Raw>, status: number, code: string): Promise<Raw> {
  const answer = await raw
  assert.equal(`${answer.head.split(' ')[1]} ${answer.body.result.code}`, `${status} ${code}`, JSON.stringify(answer.body))
  return answer
}

const answers = async (raw: Promise<Raw>, status: number, code: string): Promise<void> => void (await check(raw, status, code))

describe('content types', () => {
  for (const type of [
    'application/x-www-form-urlencoded',
    'application/x-www-form-urlencoded;charset=UTF-8',
    'application/x-www-form-urlencoded; charset=UTF-8',
    'application/x-www-form-urlencoded; charset=utf-8',
    'application/x-www-form-urlencoded ; charset=UTF-8',
    'Application/X-WWW-Form-Urlencoded',
  ]) {
    it(type, () => answers(send(request('POST /v1/payments', [`Content-Type: ${type}`], payment)), 200, '000.100.110'))
  }
  it('none', () => answers(send(request('POST /v1/payments', [], payment)), 200, '000.100.110'))
  it('application/json on a GET without a body', async () => {
    const path = `GET /v1/payments/${'0'.repeat(32)}?entityId=${sandbox.entityId}`
    await check(send(request(path, ['Content-Type: application/json'])), 404, '700.400.580')
    await check(send(request(path, [form, 'Content-Length: 0'])), 404, '700.400.580')
  })
  it('a form on a DELETE is no reason to fail otherwise than by method', () =>
    answers(
      send(request(`DELETE /v1/payments/${'0'.repeat(32)}?entityId=${sandbox.entityId}`, [form], 'testMode=EXTERNAL')),
      405,
      '200.300.403',
    ))
})

describe('bodies that are not URL-encoded', () => {
  it('spaces, brackets, number signs, addresses and umlauts stay what they are', async () => {
    const body = `${payment}&card.holder=Jane Jones&descriptor=Order #7 [a/b]: é?&customParameters[SHOPPER_url]=https://shop.example/x?y&shopperResultUrl=https://shop.example/back#top`
    const { body: record } = await check(send(request('POST /v1/payments', [form], body)), 200, '000.100.110')
    assert.equal(record.card.holder, 'Jane Jones')
    assert.equal(record.descriptor, 'Order #7 [a/b]: é?')
    assert.equal(record.customParameters.SHOPPER_url, 'https://shop.example/x?y')
  })
  it('a plus is a space, an encoded plus a plus, a lonely percent sign itself', async () => {
    const { body } = await check(
      send(request('POST /v1/payments', [form], `${payment}&descriptor=a+b%2Bc 100% d`)),
      200,
      '000.100.110',
    )
    assert.equal(body.descriptor, 'a b+c 100% d')
  })
  it('encoded names are names', async () => {
    const { body } = await check(
      send(request('POST /v1/payments', [form], `${payment}&customParameters%5Bshop%5D=x&card%2Eholder=Jane+Jones`)),
      200,
      '000.100.110',
    )
    assert.equal(body.customParameters.shop, 'x')
    assert.equal(body.card.holder, 'Jane Jones')
  })
  it('encoded and raw bytes are the same: in UTF-8, and refused alike when they are none', async () => {
    const query = `GET /v1/query?entityId=${sandbox.entityId}&merchantTransactionId`
    for (const text of ['caf\xc3\xa9-order', 'caf%C3%A9-order']) {
      const { body } = await check(latin1(form, `${payment}&merchantTransactionId=${text}`), 200, '000.100.110')
      assert.equal(body.merchantTransactionId, 'café-order')
    }
    const { body: found } = await check(send(request(`${query}=caf%C3%A9-order`, [])), 200, '000.000.100')
    assert.equal(found.payments.length, 2)
    for (const text of ['caf\xe9', 'caf%E9']) {
      const { body } = await check(latin1(form, `${payment}&descriptor=${text}`), 400, '200.300.404')
      assert.deepEqual(body.result.parameterErrors, [{ name: 'descriptor', message: 'must be UTF-8' }])
    }
    await check(send(request(`${query}=caf%E9`, [])), 400, '200.300.404')
  })
  it('a charset of the content type is read as such', async () => {
    for (const [charset, bytes, text] of [
      ['ISO-8859-1', 'caf\xe9', 'café'],
      ['ISO-8859-1', 'caf%E9', 'café'],
      ['"windows-1252"', '10 \x80', '10 €'],
      ['windows-1252', '%93x%94', '“x”'],
      ['UTF-8', 'caf\xc3\xa9', 'café'],
      ['utf8', 'caf%C3%A9', 'café'],
    ] as const) {
      const { body } = await check(latin1(`${form}; charset=${charset}`, `${payment}&descriptor=${bytes}`), 200, '000.100.110')
      assert.equal(body.descriptor, text, charset)
    }
    await check(latin1(`${form}; charset=ISO-8859-1`, `${payment}&descriptor=10 \x80`), 400, '200.300.404')
  })
  it('two bodies that differ in one bad byte are two bodies under an Idempotency-Key', async () => {
    const lenient = payment.replace(sandbox.entityId, sandbox.lenientEntityId)
    const key = 'Idempotency-Key: one-bad-byte'
    const first = await check(latin1([form, key].join('\r\n'), `${lenient}&descriptor=a\xe9`), 200, '000.100.110')
    const again = await check(latin1([form, key].join('\r\n'), `${lenient}&descriptor=a%E9`), 200, '000.100.110')
    assert.equal(again.body.id, first.body.id)
    await check(latin1([form, key].join('\r\n'), `${lenient}&descriptor=a\xe8`), 400, '200.300.404')
  })
  it('empty pairs, a leading and a trailing ampersand are nothing', () =>
    answers(send(request('POST /v1/payments', [form], `&&${payment}&&=x&novalue&`)), 200, '000.100.110'))
})

describe('paths and queries', () => {
  const missing = '0'.repeat(32)
  for (const path of [
    `//v1/payments/${missing}?entityId=${sandbox.entityId}`,
    `/v1//payments///${missing}?entityId=${sandbox.entityId}`,
    `/v1/payments/${missing}/?entityId=${sandbox.entityId}`,
    `/v1/payments/${missing}?&entityId=${sandbox.entityId}`,
    `/v1/payments/${missing}?&&entityId=${sandbox.entityId}&`,
    `/v1/payments/${missing}?authentication.entityId=${sandbox.entityId}&entityId=`,
  ]) {
    it(`GET ${path.replaceAll(missing, '{id}').replaceAll(sandbox.entityId, '{entityId}')}`, () =>
      answers(send(request(`GET ${path}`, [])), 404, '700.400.580'))
  }
  it('POST //v1/payments', () => answers(send(request('POST //v1/payments', [form], payment)), 200, '000.100.110'))
  it('a whole address as the target, as proxies send it', () =>
    answers(send(request(`GET http://localhost/v1/payments/${missing}?entityId=${sandbox.entityId}`, [])), 404, '700.400.580'))
})

describe('answers', () => {
  it('come in one write, with their length and the headers of the live platform', async () => {
    const { head, chunks, body } = await send(request('POST /v1/payments', [form], payment))
    assert.equal(chunks, 1)
    const length = Number(/\r\nContent-Length: (\d+)\r\n/.exec(`${head}\r\n`)![1])
    assert.equal(length, Buffer.byteLength(JSON.stringify(body)))
    assert.doesNotMatch(head, /transfer-encoding/i)
    for (const header of [
      /\r\nContent-Type: application\/json;charset=UTF-8\r\n/,
      /\r\nCache-Control: private, no-cache, no-store\r\n/,
      /\r\nPragma: no-cache\r\n/,
      /\r\nStrict-Transport-Security: max-age=63072000; includeSubdomains; preload\r\n/i,
      /\r\nX-Content-Type-Options: nosniff\r\n/,
      /\r\nX-XSS-Protection: 1; mode=block\r\n/,
    ])
      assert.match(`${head}\r\n`, header)
  })

  it('hold nothing but texts, lists and structures: no number, no true, no null', async () => {
    const rich = `${payment}&customParameters[simulateRiskScore]=100&cart.items[0].quantity=2&cart.items[0].price=10&recurring.numberOfInstallments=3`
    const { body: paid } = await send(request('POST /v1/payments', [form], rich))
    const bodies = [
      paid,
      (await gateway.refer(paid.id, { paymentType: 'RF', amount: '1', currency: 'EUR' })).body,
      (await gateway.refer(paid.id, { paymentType: 'RF' })).body,
      (await gateway.get(`/v1/payments/${paid.id}`, { entityId: sandbox.entityId })).body,
      (await gateway.get(`/v3/query/${paid.id}`, { entityId: sandbox.entityId, includeLinkedTransactions: 'true' })).body,
      (
        await gateway.get('/v3/query', {
          entityId: sandbox.entityId,
          'date.from': '2000-01-01',
          'date.to': '2099-01-01',
          limit: '5',
        })
      ).body,
      (await gateway.get('/v1/resultcodes')).body,
      (await gateway.get('/nowhere')).body,
      (await gateway.advance('0s')).body,
    ]
    for (const body of bodies) assert.deepEqual(strangers(body), [], JSON.stringify(body).slice(0, 500))
    assert.deepEqual(
      [paid.amount, paid.risk.score, paid.card.expiryMonth, paid.cart.items[0].quantity],
      ['92.00', '100', '05', '2'],
    )
  })

  it('carry the same buildNumber', async () => {
    const answers = [await gateway.pay(), await gateway.get('/nowhere'), await gateway.get('/v1/resultcodes')]
    assert.equal(new Set(answers.map(({ body }) => body.buildNumber)).size, 1)
  })

  it('carry a buildNumber in the form of the live platform', async () => {
    assert.match((await gateway.pay()).body.buildNumber, /^[0-9a-f]{40}@\S/)
  })

  it('a record never shows a redirect when it is final, and captures, refunds and reversals have what clients need', async () => {
    const needed = [
      'id',
      'referencedId',
      'paymentType',
      'amount',
      'currency',
      'descriptor',
      'result',
      'buildNumber',
      'timestamp',
      'ndc',
    ]
    const pa = (await gateway.pay({ paymentType: 'PA' })).body
    const money = { amount: '1.00', currency: 'EUR' }
    const answers = [
      pa,
      (await gateway.refer((await gateway.pay({ paymentType: 'PA' })).body.id, { paymentType: 'RV' })).body,
      (await gateway.refer(pa.id, { paymentType: 'CP', ...money })).body,
      (await gateway.refer(pa.id, { paymentType: 'RF', ...money })).body,
    ]
    for (const body of answers) {
      assert.equal('redirect' in body, false)
      assert.deepEqual(
        needed.filter(name => !(name in body) && !(name === 'referencedId' && body === pa)),
        [],
      )
      if ('resultDetails' in body) assert.equal(typeof body.resultDetails.ExtendedDescription, 'string')
    }
  })
})

describe('result codes', () => {
  const known = new Set<string>(Object.values(catalogue).map(([code]) => code))

  it('only those of the catalogue are ever answered', () => {
    for (const { name, code } of Object.values(results)) assert.ok(known.has(code), `${name} has ${code}`)
  })

  // The expressions by which clients decide; older ones know only the first.
  const success = [/^(000\.000\.|000\.100\.1|000\.[36])/, /^(000\.000\.|000\.100\.1|000\.[36]|000\.400\.[1][12]0)/]
  const review = /^(000\.400\.0[^3]|000\.400\.100)/
  const pending = /^(000\.200|800\.400\.5|100\.400\.500)/

  it('clients judge each of our codes as we do', () => {
    const judged = (code: string) =>
      success[1]!.test(code) ? 'success' : review.test(code) ? 'review' : pending.test(code) ? 'pending' : 'failure'
    const differing = Object.values(results)
      .filter(({ code, outcome }) => judged(code) !== (isGood(outcome) ? outcome : 'failure'))
      .map(({ code }) => code)
    // In no group of the platform; they report a success, and no payment of ours ends with them.
    assert.deepEqual(new Set(differing), new Set(['000.500.000', '000.500.100']))
  })

  it('the success of each mode is a success to the oldest of them', () => {
    for (const name of ['succeeded', 'succeededInTestMode', 'succeededInConnectorTestMode', 'requestSucceeded'] as const)
      for (const expression of success) assert.match(results[name].code, expression)
  })

  it('the texts that clients compare are kept', () => {
    const kept = {
      succeeded: 'Transaction succeeded',
      requestSucceeded: 'successful request',
      succeededInTestMode: "Request successfully processed in 'Merchant in Integrator Test Mode'",
      succeededInConnectorTestMode: "Request successfully processed in 'Merchant in Connector Test Mode'",
      pending: 'transaction pending',
      invalidParameter: 'invalid or missing parameter',
      transactionNotFound: 'cannot find transaction',
      unauthenticated: 'invalid authentication information',
      cardNumberChecksum: 'invalid creditcard, bank account number or bank name',
      missingCvv: 'empty CVV for VISA,MASTER, AMEX not allowed',
      declinedCardInvalid: 'transaction declined (invalid card)',
      tooManyReads: 'Too many requests. Please try again later.',
    } as const
    for (const [name, text] of Object.entries(kept)) assert.equal(results[name as keyof typeof kept].description, text)
  })
})

function strangers(value: unknown, path = ''): string[] {
  if (typeof value === 'string') return []
  if (value === null || typeof value !== 'object') return [`${path}: ${value}`]
  return Object.entries(value).flatMap(([name, inner]) => strangers(inner, `${path}.${name}`))
}
