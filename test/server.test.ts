// The edge, spoken to over raw sockets: what is slow, too large, ambiguous or not HTTP at all, and what happens to requests in flight
// when the gateway stops. Every answer is JSON with result, buildNumber, timestamp and ndc, whatever came in.

import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import { once } from 'node:events'
import http from 'node:http'
import { BlockList, connect, type Socket } from 'node:net'
import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import type { HttpAnswer, Request } from '../src/http/answer.ts'
import { authenticator } from '../src/http/authenticate.ts'
import type { Patience } from '../src/http/connections.ts'
import { noteFailure } from '../src/http/failure.ts'
import type { HttpParts } from '../src/http/parts.ts'
import { networkConnectionsMost } from '../src/http/places.ts'
import { largeBodyBytes, largeBytesMost, networkBytesMost, networkOpeningsMost } from '../src/http/rates.ts'
import type { Router } from '../src/http/router.ts'
import { bodyMax, makeServer } from '../src/http/server.ts'
import { clockWith, systemClock, systemRandom, type Timer } from '../src/platform/clock.ts'
import { ServedElsewhere } from '../src/platform/database/elsewhere.ts'
import { NoTurn } from '../src/platform/database/errors.ts'
import type { Gateway } from '../src/start/assemble.ts'
import { routesOf } from '../src/start/routes.ts'
import { makeKeys } from '../src/vault/keys.ts'
import { ended } from './support/ended.ts'
import { type Body, eventually, sandbox, type TestGateway, testGateway } from './support/gateway.ts'

let gateway: TestGateway
before(async () => {
  gateway = await testGateway()
})
after(() => gateway.stop())

type Answer = { readonly status: number; readonly head: string; readonly body: Body }
type Line = { readonly socket: Socket; write(text: string): void; next(toHead?: boolean): Promise<Answer>; closed: Promise<void> }

/** A connection of which the answers are read one by one. */
function open(port = Number(new URL(gateway.baseUrl).port)): Line {
  const socket = connect(port, '127.0.0.1')
  let got = Buffer.alloc(0)
  let wake = () => {}
  let ended = false
  const closed = new Promise<void>(resolve => {
    socket.once('close', () => {
      ended = true
      resolve()
      wake()
    })
  })
  socket.on('error', () => {}) // a reset shows as an answer that never came
  socket.on('data', chunk => {
    got = Buffer.concat([got, chunk])
    wake()
  })
  return {
    socket,
    closed,
    write: text => void socket.write(text),
    async next(toHead = false) {
      for (const until = Date.now() + 20_000; ; ) {
        const end = got.indexOf('\r\n\r\n')
        const head = got.toString('latin1', 0, Math.max(end, 0))
        const status = Number(head.split(' ')[1])
        const length = toHead || status < 200 ? 0 : Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0)
        if (end >= 0 && got.length >= end + 4 + length) {
          const text = got.toString('utf8', end + 4, end + 4 + length)
          got = got.subarray(end + 4 + length)
          return { status, head, body: text === '' ? undefined : JSON.parse(text) }
        }
        if (ended || Date.now() > until) throw new Error(`no whole answer; got ${JSON.stringify(got.toString('latin1'))}`)
        await new Promise<void>(resolve => {
          wake = resolve
          setTimeout(resolve, 1000).unref()
        })
      }
    },
  }
}

const host = 'Host: localhost'
const authorization = `Authorization: Bearer ${sandbox.accessToken}`
const form = 'Content-Type: application/x-www-form-urlencoded'
const payment = `entityId=${sandbox.entityId}&paymentType=DB&amount=92.00&currency=EUR&paymentBrand=VISA&card.number=4200000000000000&card.expiryMonth=05&card.expiryYear=2034&card.cvv=123`
const lines = (...all: string[]) => `${all.join('\r\n')}\r\n\r\n`
const post = (body: string, ...more: string[]) =>
  lines('POST /v1/payments HTTP/1.1', host, authorization, form, `Content-Length: ${Buffer.byteLength(body)}`, ...more) + body
const missing = lines(`GET /v1/payments/${'0'.repeat(32)}?entityId=${sandbox.entityId} HTTP/1.1`, host, authorization)

function check({ status, body, head }: Answer, wanted: number, code: string): Answer {
  assert.equal(`${status} ${body?.result.code}`, `${wanted} ${code}`, `${head}\n${JSON.stringify(body)}`)
  for (const name of ['buildNumber', 'timestamp', 'ndc'])
    assert.equal(typeof body[name], 'string', `${name} of ${JSON.stringify(body)}`)
  assert.match(head, /\r\ncontent-type: application\/json;charset=UTF-8/i)
  for (const line of ["content-security-policy: default-src 'none'; frame-ancestors 'none'", 'x-content-type-options: nosniff'])
    assert.ok(head.toLowerCase().includes(`\r\n${line}\r\n`), head)
  return { status, body, head }
}

async function ask(text: string, status: number, code: string): Promise<Line> {
  const line = open()
  line.write(text)
  check(await line.next(), status, code)
  return line
}

const close = (line: Line) => void line.socket.destroy()

const never: Timer = { cancel() {}, unref: () => never }
/** No second ends. */
const standing = { ...systemClock, every: () => never }

describe('sizes', () => {
  it('a body of the largest size is taken, one byte more is a 413', async () => {
    const filled = (size: number) => `${payment}&unknown=${'x'.repeat(size - payment.length - '&unknown='.length)}`
    close(await ask(post(filled(bodyMax)), 200, '000.100.110'))
    close(await ask(post(filled(bodyMax + 1)), 413, '200.100.103'))
    close(await ask(post(filled(8 * bodyMax)), 413, '200.100.103'))
  })
  it('a 413 behind another answer comes after it, and is the last', async () => {
    const line = open()
    const tooLarge = post(`${payment}&unknown=${'x'.repeat(bodyMax)}`)
    line.write(post(`${payment}&customParameters[simulateDelay]=300`) + tooLarge + missing)
    check(await line.next(), 200, '000.100.110')
    check(await line.next(), 413, '200.100.103')
    await line.closed
  })
  it('what comes from browsers, and from other sides, is small', async () => {
    const send = async (path: string, size: number) => {
      const line = open()
      line.write(lines(`POST ${path} HTTP/1.1`, host, form, `Content-Length: ${size}`) + 'x'.repeat(size))
      const { status } = await line.next(true)
      close(line)
      return status
    }
    for (const [path, most] of [
      ['/v1/checkouts/x.y/payment', 32],
      ['/v1/checkouts/x.y/registration', 32],
      ['/r/x', 32],
      ['/r/cancel/x', 32],
      ['/r/method/x', 32],
      ['/r/methodDone/x', 32],
      ['/r/return/x', 128],
      ['/r/notice/x', 128],
    ] as const) {
      assert.notEqual(await send(path, most * 1024), 413, path)
      assert.equal(await send(path, most * 1024 + 1), 413, path)
    }
  })
  it('a body without an announced end is cut off too', async () => {
    const line = open()
    line.write(lines('POST /v1/payments HTTP/1.1', host, authorization, form, 'Transfer-Encoding: chunked'))
    for (let sent = 0; sent <= bodyMax; sent += 0x8000) line.write(`8000\r\n${'x'.repeat(0x8000)}\r\n`)
    check(await line.next(), 413, '200.100.103')
    await line.closed
  })
  it('a body that reads like the name of a result is a body', async () => {
    close(await ask(post('bodyTooLarge'), 400, '200.300.407'))
  })
  it('headers above the limit are a 431, and so is a URL', async () => {
    await (await ask(lines('GET / HTTP/1.1', host, `X-Large: ${'x'.repeat(20_000)}`), 431, '200.100.103')).closed
    await (await ask(lines(`GET /${'x'.repeat(20_000)} HTTP/1.1`, host), 431, '200.100.103')).closed
  })
  it('a hundred headers are taken, one more is a 431, and nothing behind it is answered', async () => {
    const headers = Array.from({ length: 99 }, (_, at) => `X-${at}: a`)
    const full = lines('GET /v1/resultcodes HTTP/1.1', host, ...headers)
    const line = await ask(full, 200, '000.000.100')
    line.write(lines('GET /v1/resultcodes HTTP/1.1', host, ...headers, 'X-More: a') + full.repeat(3))
    check(await line.next(), 431, '200.100.103')
    await line.closed
    await assert.rejects(line.next(), /no whole answer; got ""/)
    // What was asked before is answered, and that is the end of the connection.
    const before = open()
    const slow = post(`${payment}&customParameters[simulateDelay]=200`)
    before.write(slow + lines('GET /v1/resultcodes HTTP/1.1', host, ...headers, 'X-More: a') + full)
    check(await before.next(), 200, '000.100.110')
    await before.closed
    await assert.rejects(before.next(), /no whole answer; got ""/)
    const chunked = lines('POST /v1/payments HTTP/1.1', host, ...headers, 'Transfer-Encoding: chunked')
    await (await ask(`${chunked}1\r\na\r\n`, 431, '200.100.103')).closed
  })
  it('2000 parameters are taken, one more is a 400', async () => {
    const many = (count: number) => `${payment}${'&a=b'.repeat(count - payment.split('&').length)}`
    close(await ask(post(many(2000)), 200, '000.100.110'))
    close(await ask(post(many(2001)), 400, '200.100.103'))
  })
})

describe('ways to send', () => {
  it('a body that comes in drops is read to its end', async () => {
    const line = open()
    const text = post(payment)
    for (let at = 0; at < text.length; at += 40) {
      line.write(text.slice(at, at + 40))
      await new Promise(resolve => setTimeout(resolve, 5))
    }
    check(await line.next(), 200, '000.100.110')
    close(line)
  })
  it('a chunked body', async () => {
    const chunks = [payment.slice(0, 50), payment.slice(50)].map(part => `${part.length.toString(16)}\r\n${part}\r\n`).join('')
    close(
      await ask(
        `${lines('POST /v1/payments HTTP/1.1', host, authorization, form, 'Transfer-Encoding: chunked')}${chunks}0\r\n\r\n`,
        200,
        '000.100.110',
      ),
    )
  })
  it('pipelined requests are answered in their order, each once', async () => {
    const line = open()
    line.write(post(`${payment}&customParameters[simulateDelay]=150`) + missing + post(payment))
    check(await line.next(), 200, '000.100.110')
    check(await line.next(), 404, '700.400.580')
    check(await line.next(), 200, '000.100.110')
    close(line)
  })
  it('Expect: 100-continue gets its go-ahead before the body is sent', async () => {
    const line = open()
    const text = post(payment, 'Expect: 100-continue')
    const end = text.indexOf('\r\n\r\n') + 4
    line.write(text.slice(0, end))
    assert.equal((await line.next()).status, 100)
    line.write(text.slice(end))
    check(await line.next(), 200, '000.100.110')
    close(line)
  })
  it('any other expectation is not a reason to answer without JSON', async () => {
    close(await ask(post(payment, 'Expect: wonders'), 200, '000.100.110'))
  })
  it('HTTP/1.0 without a Host', async () => {
    close(await ask(missing.replace('HTTP/1.1', 'HTTP/1.0').replace(`${host}\r\n`, ''), 404, '700.400.580'))
  })
  it('HEAD is answered where GET is, with its headers and without a body', async () => {
    const line = open()
    for (const request of [lines('GET /v1/resultcodes HTTP/1.1', host), missing]) {
      line.write(request)
      const { status, head } = await line.next()
      const length = /content-length: \d+/i.exec(head)![0]
      // What follows a HEAD is the next answer: there is no body between them.
      line.write(request.replace('GET', 'HEAD') + lines('GET /nowhere HTTP/1.1', host))
      const asked = await line.next(true)
      assert.deepEqual([asked.status, asked.body, /content-length: \d+/i.exec(asked.head)![0]], [status, undefined, length])
      check(await line.next(), 404, '200.100.199')
    }
    line.write(lines('HEAD /sandbox/clock HTTP/1.1', host))
    assert.match((await line.next(true)).head, /405[\s\S]*\r\nAllow: POST\r\n/)
    close(line)
  })
})

describe('headers that say what to do', () => {
  const answer = async (text: string, status: number, code: string): Promise<string> => {
    const line = open()
    line.write(text)
    const { head } = check(await line.next(), status, code)
    close(line)
    return head
  }
  it('401 names the scheme', async () => {
    assert.match(await answer(missing.replace(/Authorization.*\r\n/, ''), 401, '800.900.300'), /\r\nWWW-Authenticate: Bearer\b/)
  })
  it('405 names the methods of the path', async () => {
    for (const [target, allow] of [
      ['/v1/payments', 'POST, GET, HEAD'],
      [`/v1/payments/${'0'.repeat(32)}`, 'POST, GET, HEAD'],
      ['/v1/threeDSecure', 'POST'],
      ['/v1/query', 'GET, HEAD'],
      ['/v1/resultcodes', 'GET, HEAD, OPTIONS'],
    ])
      assert.match(await answer(lines(`PUT ${target} HTTP/1.1`, host), 405, '200.300.403'), new RegExp(`\r\nAllow: ${allow}\r\n`))
  })
  it('a browser that asks first is answered where browsers come, and refused elsewhere', async () => {
    const asks = ['Origin: https://shop.example', 'Access-Control-Request-Method: GET']
    for (const path of ['/v1/resultcodes', '/r/0123', '/r/return/0123']) {
      const line = open()
      line.write(lines(`OPTIONS ${path} HTTP/1.1`, host, ...asks))
      const { status, head } = await line.next()
      assert.equal(status, 200, path)
      assert.match(head, /\r\nAccess-Control-Allow-Origin: \*\r\n/)
      assert.match(head, /\r\nAccess-Control-Allow-Methods: [A-Z, ]*GET/)
      assert.doesNotMatch(head, /Access-Control-Allow-Credentials/i)
      close(line)
    }
    for (const path of ['/v1/payments', '/v1/query', '/sandbox/clock', '/health', '/r/notice/0123'])
      assert.doesNotMatch(await answer(lines(`OPTIONS ${path} HTTP/1.1`, host, ...asks), 405, '200.300.403'), /Allow-Methods/)
  })
})

describe('what is not well-formed', () => {
  for (const [name, text] of [
    [
      'Content-Length with Transfer-Encoding',
      lines('POST /v1/payments HTTP/1.1', host, authorization, form, 'Content-Length: 5', 'Transfer-Encoding: chunked') +
        '0\r\n\r\n',
    ],
    [
      'two lengths',
      `${lines('POST /v1/payments HTTP/1.1', host, authorization, form, 'Content-Length: 5', 'Content-Length: 6')}hello`,
    ],
    ['no Host', missing.replace(`${host}\r\n`, '')],
    ['no HTTP', 'hello\r\n\r\n'],
    ['TLS on a plain port', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
    ['a method that nobody knows', missing.replace('GET', 'BREW')],
    ['a header without a colon', lines('GET / HTTP/1.1', host, 'nonsense')],
  ] as const) {
    it(`${name}: 400, and the connection ends`, async () => {
      await (await ask(text, 400, '200.100.101')).closed
    })
  }
  it('the gateway goes on', async () => close(await ask(missing, 404, '700.400.580')))
})

describe('other methods', () => {
  for (const method of ['PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND'])
    it(`${method}: 405`, async () =>
      close(await ask(lines(`${method} /v1/payments HTTP/1.1`, host, authorization), 405, '200.300.403')))
  it('a method is judged after the path', async () =>
    close(await ask(lines('PUT /v1/nowhere HTTP/1.1', host), 404, '200.100.199')))
})

describe('a caller that goes away', () => {
  it('in the middle of its body leaves no payment and no harm', async () => {
    const line = open()
    line.write(post(payment).slice(0, -20))
    await new Promise(resolve => setTimeout(resolve, 50))
    close(line)
    await line.closed
    close(await ask(missing, 404, '700.400.580'))
  })
})

describe('stopping', () => {
  it('answers what is in flight, tells later requests to come again, and loses nothing', async () => {
    const body = `${payment}&merchantTransactionId=in-flight-1&customParameters[simulateDelay]=700`
    const [flying, idle, later] = [open(), open(), open()]
    idle.write(missing)
    check(await idle.next(), 404, '700.400.580')
    later.write(post(payment).slice(0, -1))
    flying.write(post(body))
    await new Promise(resolve => setTimeout(resolve, 200))
    const restarted = gateway.restart()
    await idle.closed
    later.write('3')
    const refused = check(await later.next(), 503, '800.800.801')
    assert.match(refused.head, /\r\nconnection: close/i)
    const answered = check(await flying.next(), 200, '000.100.110')
    assert.match(answered.head, /\r\nconnection: close/i)
    await restarted
    const { body: found } = await gateway.get(`/v1/payments/${answered.body.id}`, { entityId: sandbox.entityId })
    assert.deepEqual([found.id, found.result.code], [answered.body.id, '000.100.110'])
  })
})

const patient = { answerSeconds: 60, idleSeconds: 60, handshakeSeconds: 60, lookEverySeconds: 60 }

it('a server that stops waits for answers, and for nobody whose request does not come', { timeout: 30_000 }, async () => {
  let answerIt: (() => void) | undefined
  const answer = () =>
    new Promise<HttpAnswer>(resolve => {
      answerIt = () => resolve({ status: 200, body: '{}' })
    })
  const server = serverOf((_, path) => ({ name: path, answer }), patient)
  const port = await server.listen(0, '127.0.0.1')
  const asking = open(port)
  asking.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  const silent = ['', 'GET / HTTP/1.1\r\nHost: x\r\n', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\na'].map(text => {
    const line = open(port)
    if (text !== '') line.write(text)
    return line
  })
  await eventually(async () => answerIt !== undefined, 'it is asked')
  const stopped = server.close()
  for (const { closed } of silent) await closed
  answerIt!()
  assert.equal((await asking.next()).status, 200)
  await stopped
})

it('a server that stops lets be taken what it has answered, and what waits behind that', { timeout: 30_000 }, async () => {
  let asked = 0
  const body = 'x'.repeat(500_000)
  const answer = () => {
    asked++
    return { status: 200, body }
  }
  const server = serverOf((_, path) => ({ name: path, answer }), patient)
  const port = await server.listen(0, '127.0.0.1')
  const slow = connect(port, '127.0.0.1').pause()
  slow.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(24))
  await eventually(async () => asked > 0, 'it is asked')
  await new Promise(resolve => setTimeout(resolve, 500))
  const owed = asked
  const stopped = server.close()
  await new Promise(resolve => setTimeout(resolve, 500))
  let taken = 0
  slow.on('data', bytes => (taken += bytes.length)).resume()
  await new Promise(resolve => slow.on('close', resolve))
  await stopped
  assert.ok(taken >= owed * body.length, `${taken} bytes of ${owed} answers`)
})

it('a server that stops answers all that it carries out of one connection, and carries out nothing more', {
  timeout: 30_000,
}, async () => {
  const waiting: (() => void)[] = []
  const answer = () => new Promise<HttpAnswer>(resolve => waiting.push(() => resolve({ status: 200, body: '{}' })))
  const server = serverOf((_, path) => ({ name: path, answer }), patient)
  const port = await server.listen(0, '127.0.0.1')
  const request = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'
  const [line, half] = [open(port), open(port)]
  line.write(request.repeat(8))
  half.write(request.slice(0, -1))
  await eventually(async () => waiting.length === 8, 'they are carried out')
  const stopped = server.close()
  line.write(request.repeat(8))
  half.write(`\n${request.repeat(8)}`)
  const said = async (of: typeof line) => {
    const { status, head } = await of.next()
    return `${status}${/\r\nconnection: close/i.test(head) ? ' and closes' : ''}`
  }
  for (let at = 0; at <= 8; at++) assert.equal(await said(half), at === 8 ? '503 and closes' : '503')
  for (const answerIt of [...waiting.slice(1), waiting[0]!]) answerIt()
  for (let at = 0; at < 8; at++) assert.equal(await said(line), at === 7 ? '200 and closes' : '200')
  await Promise.all([line.closed, half.closed, stopped])
  assert.equal(waiting.length, 8)
})

it('carries out nothing that stands behind what may be read in two ways', { timeout: 30_000 }, async () => {
  for (const [bad, told] of [
    ['POST /bad HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n', 501],
    ['POST /bad HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n', 400],
    ['GET /bad HTTP/1.1\r\nHost: x y\r\n\r\n', 400],
  ] as const) {
    const asked: string[] = []
    const answer = (path: string) => {
      asked.push(path)
      return { status: 200, body: '{}' }
    }
    const server = serverOf((_, path) => ({ name: path, answer: () => answer(path) }), patient)
    const line = open(await server.listen(0, '127.0.0.1'))
    line.write(`GET /before HTTP/1.1\r\nHost: x\r\n\r\n${bad}${'GET /behind HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(4)}`)
    assert.equal((await line.next()).status, 200, bad)
    const { status, head } = await line.next()
    assert.deepEqual([status, /\r\nconnection: close/i.test(head)], [told, true], bad)
    await line.closed
    await server.close()
    assert.deepEqual(asked, ['/before'], bad)
  }
})

it('every route for tokens asks for one, and no other does', async () => {
  const routes = routesOf({ sandbox: true, publicUrl: () => '', database: {}, clock: systemClock } as unknown as Gateway, [])
  for (const { method, path, callers } of routes) {
    if (path.startsWith('/health')) continue
    const address = `${gateway.baseUrl}${path.replace(/\{\w+\}/, '0'.repeat(32))}`
    const { status } = await fetch(address, { method, ...(method === 'POST' && { body: new URLSearchParams({ a: 'b' }) }) })
    assert.equal(status === 401, callers === 'token', `${method} ${path}: ${status}`)
  }
})

/** It stands before what `serverOf` makes. */
const proxyOfServer = '127.0.0.9'
/** Without a gateway behind it. */
function serverOf(find: Router, patience?: Patience, clock = patience ? systemClock : clockWith(() => 0)) {
  const quiet = () => {}
  const directory = {
    token: (sent: string) => (sent === 'of-one' ? { legacy: false, entities: ['one'] } : undefined),
    entity: (id: string) => ({ id }),
  }
  const parts = { random: systemRandom, clock, build: 'test', count: { request: quiet }, publicUrl: () => '', directory }
  const log = { debug: quiet, info: quiet, warn: quiet, error: quiet }
  const trustedProxies = new BlockList()
  trustedProxies.addAddress(proxyOfServer)
  const options = {
    trustedProxies,
    requireForwardedTls: false,
    hosts: {},
    refusal: () => undefined,
    ...(patience && { patience }),
  }
  return makeServer({ ...parts, log } as unknown as HttpParts, find, options)
}

it('what is done after requests have waited comes of each network in turn', async () => {
  const much = 200 * 1024
  const crowds: Record<string, (at: number) => readonly [string, number]> = {
    'one address': () => ['192.0.2.1', much],
    'each has a /64 of one network': at => [`2001:db8:7:${at}::1`, much],
  }
  for (const [name, crowd] of Object.entries(crowds)) {
    const done: string[] = []
    const all = Promise.withResolvers<void>()
    let come = 0
    const server = serverOf(() => ({
      name: 'x',
      async answer(request) {
        if (++come === 7) all.resolve()
        await all.promise
        return request.inTurn(() => {
          done.push(request.address)
          return { status: 200, body: '{}' }
        })
      },
    }))
    const port = await server.listen(0, '127.0.0.1')
    const post = (address: string, bytes: number) =>
      new Promise<number>(answered => {
        const headers = { 'Content-Type': 'application/x-www-form-urlencoded', 'X-Forwarded-For': address }
        const options = { port, path: '/x', method: 'POST', localAddress: proxyOfServer, headers, agent: false }
        http.request(options, response => answered(response.resume().statusCode!)).end('a'.repeat(bytes))
      })
    const asked = Array.from({ length: 5 }, (_, at) => post(...crowd(at)))
    await eventually(async () => come === 5, 'the crowd has come')
    const others = [post('198.51.100.7', much), post('198.51.100.8', 100)]
    await Promise.all([...asked, ...others])
    await server.close()
    assert.equal(done.length, 7)
    for (const other of ['198.51.100.7', '198.51.100.8']) assert.ok(done.indexOf(other) <= 4, `${name}: ${done}`)
  }
})

it('what is done after requests have waited is done in their contexts, and what fails there fails', async () => {
  const [come, done]: [Request[], string[]] = [[], []]
  const context = new AsyncLocalStorage<string>()
  const all = Promise.withResolvers<void>()
  const seen: number[] = []
  const server = serverOf((_, path) => ({
    name: path,
    async answer(request) {
      if (come.push(request) === 4) all.resolve()
      await all.promise
      const made = context.run(path, () =>
        request.inTurn(() => {
          done.push(context.getStore()!)
          if (path === '/3') throw new Error('it fails there')
          return { status: 200, body: '{}' }
        }),
      )
      seen.push(done.length)
      return made
    },
  }))
  const port = await server.listen(0, '127.0.0.1')
  const post = (path: string, at: number) =>
    new Promise<number>(answered =>
      http
        .request(
          {
            port,
            path,
            method: 'POST',
            localAddress: `127.0.0.${at + 2}`,
            headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
          },
          response => answered(response.resume().statusCode!),
        )
        .end('a'.repeat(200 * 1024)),
    )
  const paths = ['/1', '/2', '/3', '/other']
  const statuses = await Promise.all(paths.map(post))
  await server.close()
  assert.deepEqual(statuses, [200, 200, 500, 200])
  // Each is more than half of what a line has in a turn.
  assert.ok(seen[3]! <= 2, `${seen}`)
  assert.deepEqual(
    done,
    come.map(({ path }) => path),
    'in the order in which they came',
  )
})

it('what a request has to do is done at once in the turn in which it was begun, and in another when it has waited', async () => {
  for (const headers of [{ Authorization: 'Bearer of-one' }, {}]) {
    const all = Promise.withResolvers<void>()
    const atOnce: boolean[][] = []
    let come = 0
    const server = serverOf(() => ({
      name: 'x',
      async answer(request) {
        let done = false
        const work = () => {
          done = true
          return { status: 200, body: '{}' }
        }
        const first = request.inTurn(work)
        const seen = [done]
        done = false
        if (++come === 3) all.resolve()
        await all.promise
        const second = request.inTurn(work)
        seen.push(done)
        atOnce.push(seen)
        await first
        return second
      },
    }))
    const port = await server.listen(0, '127.0.0.1')
    const post = () =>
      fetch(`http://127.0.0.1:${port}/x`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/x-www-form-urlencoded', ...headers },
        body: 'a'.repeat(200 * 1024),
      })
    const statuses = await Promise.all([post(), post(), post()].map(async one => (await one).status))
    await server.close()
    assert.deepEqual(statuses, [200, 200, 200])
    assert.deepEqual(
      atOnce.map(([first]) => first),
      [true, true, true],
    )
    // Each is more than half of what a line has in a turn.
    assert.ok(atOnce.filter(([, second]) => second).length <= 1, `${atOnce}`)
  }
})

it('who is refused and asks again at once has few turns for it', async () => {
  const refusedIn: number[] = []
  let turn = 0
  const server = serverOf((_, path) => ({
    name: path,
    answer: () => {
      refusedIn.push(turn)
      return { status: 429, body: '{}' }
    },
  }))
  const port = await server.listen(0, '127.0.0.1')
  const crowd = Array.from({ length: 20 }, () => {
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    socket.resume()
    return socket.on('connect', () => socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(30)))
  })
  while (refusedIn.length < 600) {
    await new Promise(resolve => setImmediate(resolve))
    turn++
  }
  for (const socket of crowd) socket.destroy()
  await server.close()
  const turns = refusedIn.at(-1)! - refusedIn[0]!
  assert.ok(turns >= 100, `600 refusals in ${turns} turns`)
})

it('where all places are taken, what a browser waits for makes room, and what a merchant’s server waits for does not', async () => {
  const begun = { token: 0, browser: 0 }
  const server = serverOf(
    (_, path) => {
      const callers = path === '/page' ? 'browser' : 'token'
      const answer = (request: Request) => {
        begun[callers]++
        if (path === '/server') request.isServers(sandbox.merchantId)
        return new Promise<never>(() => {})
      }
      return { name: path, answer, route: { method: 'GET', path, callers, answer } }
      // All come at their leisure.
    },
    undefined,
    { ...systemClock, every: (milliseconds, act) => systemClock.every(milliseconds / 50, act) },
  )
  const port = await server.listen(0, '127.0.0.1')
  const gone = { token: 0, browser: 0, late: 0 }
  const open = (localAddress: string, asked: string, who: keyof typeof gone) => {
    const socket = connect({ port, host: '127.0.0.1', localAddress }).on('error', () => {})
    socket.on('close', () => gone[who]++)
    socket.write(`GET ${asked} HTTP/1.1\r\nHost: x\r\n\r\n`)
    return socket
  }
  const crowd: Socket[] = []
  for (const [address, asked, who] of [
    ['127.0.0.2', '/server', 'token'],
    ['127.0.0.3', '/page', 'browser'],
    ['127.0.0.4', '/page', 'browser'],
    ['127.0.0.7', '/page', 'browser'],
    ['127.0.0.5', '/wrong', 'browser'], // its token is nobody's
  ] as const) {
    for (let at = 1; at <= networkConnectionsMost; at++) {
      crowd.push(open(address, asked, who))
      if (at % 256 === 0) await eventually(async () => begun.token + begun.browser === crowd.length, 'all have begun')
    }
  }
  const late = Array.from({ length: 12 }, () => open('127.0.0.6', '/server', 'late'))
  await eventually(async () => begun.token + gone.late === (2 * crowd.length) / 5 + late.length, 'those who came late have begun')
  await eventually(async () => gone.token + gone.browser === late.length, 'others have made room')
  assert.deepEqual(gone, { token: 0, browser: late.length, late: 0 })
  for (const socket of [...crowd, ...late]) socket.destroy()
  await server.close()
})

it('while many strangers send too much behind others, a new connection is closed behind its first answer, and nothing behind it is begun', async () => {
  const begun: string[] = []
  const held = new Promise<never>(() => {})
  const server = serverOf(
    (_, path) => {
      const answer = (request: Request) => {
        begun.push(path)
        if (path === '/server') request.isServers(sandbox.merchantId)
        return path === '/held' ? held : { status: 200, body: request.body }
      }
      return { name: path, answer, route: { method: path === '/form' ? 'POST' : 'GET', path, callers: 'browser', answer } }
    },
    { answerSeconds: 60, idleSeconds: 60, handshakeSeconds: 60, lookEverySeconds: 60 },
  )
  const port = await server.listen(0, '127.0.0.1')
  const ask = (localAddress: string, text: string) => {
    const one = { told: '', closed: false }
    const socket = connect({ port, host: '127.0.0.1', localAddress }).on('error', () => {})
    socket.on('data', bytes => (one.told += bytes))
    socket.on('close', () => (one.closed = true))
    socket.write(text)
    return Object.assign(one, { socket })
  }
  const get = (path: string, more = '') => `GET ${path} HTTP/1.1\r\nHost: x\r\n${more}\r\n`
  const kept = ask('127.0.0.9', get('/kept'))
  const shop = ask('127.0.0.7', get('/server'))
  await eventually(async () => [kept, shop].every(({ told }) => told.startsWith('HTTP/1.1 200')), 'they are answered')
  const long = get('/held', Array.from({ length: 98 }, (_, at) => `h${at}: 1\r\n`).join('')).repeat(32)
  // Of one network they are not too many.
  const crowd = Array.from({ length: 60 }, (_, at) => ask(`127.0.1.${1 + (at % 12)}`, long))
  await eventually(async () => crowd.some(({ closed }) => closed), 'these are too many')
  const fresh = ask('127.0.0.8', get('/first') + get('/second'))
  const merchants = ask('127.0.0.7', ['/third', '/fourth'].map(path => get(path, 'Authorization: Bearer of-one\r\n')).join(''))
  const form = 'a=b'.repeat(8000)
  const post = `POST /form HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ${form.length}\r\n\r\n`
  const sent = ask('127.0.0.8', post)
  sent.socket.write(form + get('/behind'))
  kept.told = ''
  kept.socket.write(get('/again'))
  const isAnswered = () => fresh.closed && sent.closed && kept.told !== '' && merchants.told.split('HTTP/1.1 200').length === 3
  await eventually(async () => isAnswered(), 'all are answered')
  const answered = begun.filter(path => path !== '/held').sort()
  assert.deepEqual(answered, ['/again', '/first', '/form', '/fourth', '/kept', '/server', '/third'])
  assert.equal(fresh.told.split('HTTP/1.1 200').length, 2)
  assert.match(fresh.told, /^connection: close\r$/im)
  assert.ok(sent.told.endsWith(form))
  assert.deepEqual([kept.closed, merchants.closed], [false, false])
  for (const { socket } of [kept, shop, merchants, ...crowd]) socket.destroy()
  await server.close()
})

it('an answer that is taken slowly and all the time is taken whole, whether it stands ready or is made on the way', async () => {
  const piece = 'x'.repeat(1024 * 1024)
  const pieces = 20
  async function* made() {
    for (let count = 0; count < pieces; count++) yield piece
  }
  const server = serverOf(
    (_, path) => ({
      name: path,
      answer: () => ({ status: 200, body: path === '/ready' ? piece.repeat(pieces) : made() }),
    }),
    { answerSeconds: 2, idleSeconds: 60, handshakeSeconds: 60, lookEverySeconds: 0.05 },
  )
  const port = await server.listen(0, '127.0.0.1')
  const taken = async (path: string) => {
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    const began = Date.now()
    let bytes = 0
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    for await (const chunk of socket) {
      bytes += chunk.length
      await new Promise(resolve => setTimeout(resolve, chunk.length / 5000)) // five megabytes a second
    }
    assert.ok(Date.now() - began > 2000, 'it takes longer than an answer may be left untaken')
    return bytes
  }
  for (const bytes of await Promise.all(['/ready', '/made'].map(taken))) assert.ok(bytes > pieces * piece.length, `${bytes}`)
  await server.close()
})

it('an answer that is made while it is sent is under way until it is taken, or its connection is gone, whatever stands before it', async () => {
  const [begun, done]: [string[], string[]] = [[], []]
  const server = serverOf((_, path) => ({
    name: path,
    answer(request) {
      begun.push(path)
      request.whenAnswered.push(() => done.push(path))
      async function* body() {
        for (let count = 0; path !== '/short' && count < 1000; count++) yield 'x'.repeat(65_536)
      }
      return { status: 200, body: body() }
    },
  }))
  const port = await server.listen(0, '127.0.0.1')
  const [unread, read] = [open(port), open(port)]
  unread.socket.pause()
  for (const path of ['/first', '/second', '/third']) unread.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
  await eventually(async () => begun.length === 3, 'all are begun')
  read.write('GET /short HTTP/1.1\r\nHost: x\r\n\r\n')
  await eventually(async () => done.length > 0, 'what is taken is done')
  assert.deepEqual(done, ['/short'])
  unread.socket.destroy()
  await eventually(async () => done.length === 4, 'nobody takes them any more')
  read.socket.destroy()
  await server.close()
})

it('connections beyond those that a network may open in a second are closed, whatever became of the others', async () => {
  const server = serverOf((_, name) => ({ name, answer: () => ({ status: 200, body: 'x' }) }), undefined, standing)
  const port = await server.listen(0, '127.0.0.1')
  const isServed = async (): Promise<boolean> => {
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    socket.write('GET /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
    const closed = ended(socket)
    let isAnswered = false
    socket.on('data', () => {
      isAnswered = true
    })
    await closed
    return isAnswered
  }
  let served = 0
  for (let round = 0; round < 22; round++)
    for (const one of await Promise.all(Array.from({ length: 100 }, isServed))) served += Number(one)
  assert.equal(served, networkOpeningsMost)
  await server.close()
})

describe('bytes of large bodies in a second', () => {
  /** Some that lie in the kernel, on their way. */
  const onTheWay = 16 * 1024 * 1024
  const body = 'a'.repeat(bodyMax)
  const headOf = (length: number, ...more: string[]) =>
    lines('POST / HTTP/1.1', ...(more.length > 0 ? more : ['Host: x']), form, `Content-Length: ${length}`)
  let server: ReturnType<typeof serverOf>
  let port: number
  beforeEach(async () => {
    const answer = () => ({ status: 200, body: '{}' })
    server = serverOf((_, name) => ({ name, answer }), undefined, standing)
    port = await server.listen(0, '127.0.0.1')
  })
  afterEach(() => server.close())

  const statusOf = async (request: string): Promise<number> => {
    const line = open(port)
    line.write(request)
    const status = await line.next().then(
      answer => answer.status,
      () => 0,
    )
    close(line)
    return status
  }

  it('are so many of a stranger, and then only small ones are taken', async () => {
    let taken = 0
    while ((await statusOf(headOf(bodyMax) + body)) === 200) taken++
    assert.equal(taken, networkBytesMost / bodyMax)
    assert.equal(await statusOf(headOf(bodyMax) + body), 0)
    assert.equal(await statusOf(`${headOf(1)}a`), 200)
  })

  it('are a merchant’s where his token comes with them, and he is told', async () => {
    const withToken = headOf(bodyMax, 'Host: x', 'Authorization: Bearer of-one') + body
    let taken = 0
    for (let status = 200; status === 200; ) {
      status = await statusOf(withToken)
      if (status === 200) taken++
      else assert.equal(status, 429)
    }
    assert.equal(taken, largeBytesMost / bodyMax)
    assert.equal(await statusOf(headOf(bodyMax) + body), 200)
  })

  it('are not those of small ones', async () => {
    const small = headOf(largeBodyBytes) + 'a'.repeat(largeBodyBytes)
    const line = open(port)
    for (let bytes = 0; bytes < networkBytesMost + small.length; bytes += largeBodyBytes) {
      line.write(small)
      assert.equal((await line.next()).status, 200)
    }
    close(line)
  })

  it('are taken in of a proxy behind the last answer, whose caller sends them: a reset would be taken for a server that is down', async () => {
    const socket = connect({ port, host: '127.0.0.1', localAddress: proxyOfServer, allowHalfOpen: true })
    socket.on('error', () => {})
    socket.write(lines('POST / HTTP/1.1', 'Host: x', 'X-Forwarded-For: 192.0.2.7', 'Transfer-Encoding: gzip, chunked'))
    await once(socket, 'data')
    for (let sent = 0; sent < networkBytesMost + onTheWay; sent += bodyMax)
      await new Promise<void>(taken => socket.write(body, () => taken()))
    assert.equal(socket.destroyed, false)
    socket.destroy()
  })

  const refused: Record<string, readonly [number, string]> = {
    'that is meant for another': [400, headOf(2 ** 40, 'Host: x', 'Host: y')],
    'whose coding nobody knows': [501, lines('POST / HTTP/1.1', 'Host: x', 'Transfer-Encoding: gzip, chunked')],
    'that is no HTTP': [400, 'none of it\r\n\r\n'],
  }
  for (const [name, [status, head]] of Object.entries(refused))
    it(`are those too that come behind a request ${name}`, { timeout: 60_000 }, async () => {
      const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
      const closed = ended(socket)
      socket.write(head)
      const [answer] = await once(socket, 'data')
      assert.match(`${answer}`, new RegExp(`^HTTP/1.1 ${status} `))
      const send = () => {
        while (!socket.destroyed && socket.write(body));
      }
      socket.on('drain', send)
      send()
      await closed
      const { bytesWritten } = socket
      assert.ok(bytesWritten > networkBytesMost && bytesWritten < networkBytesMost + onTheWay, `${bytesWritten} bytes`)
    })
})

it('an answer that cannot be written is one 500, and the next request is answered', async () => {
  const bad = { Location: 'https://shop.example/#\u4e2d' }
  const server = serverOf((_, path) => ({
    name: path,
    answer: () => ({ status: 200, body: '{"result":{}}', ...(path === '/bad' && { headers: bad }) }),
  }))
  const port = await server.listen(0, '127.0.0.1')
  const line = open(port)
  const get = (path: string) => line.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
  get('/good')
  assert.equal((await line.next()).status, 200)
  get('/bad')
  const { status, body } = await line.next()
  assert.equal(status, 500)
  assert.match(body.ndc, /[0-9a-f]{32}$/)
  line.socket.destroy()
  const next = open(port)
  next.write('GET /good HTTP/1.1\r\nHost: x\r\n\r\n')
  assert.equal((await next.next()).status, 200)
  next.socket.destroy()
  await server.close()
})

it('who asks is a merchant’s server when its token was found, and not before', async () => {
  let found = 0
  const [entityId, merchantId] = ['c'.repeat(32), 'b'.repeat(32)]
  const directory = {
    token: (sent: string) => (sent === 'good' ? { id: 'a', entities: [entityId] } : undefined),
    entity: () => ({ kind: 'channel', id: entityId, merchantId }),
    revokedToken: () => undefined,
    may: () => true,
    merchant: () => undefined,
    mustServe() {},
    businessTime: () => 0,
  }
  const failures = { count: async () => false, mustWait: () => false }
  const parts = {
    directory,
    failures,
    clock: { real: () => 0 },
    build: 'test',
    keys: makeKeys([], Buffer.alloc(32, 2)),
  } as unknown as HttpParts
  const authenticate = authenticator(parts)
  const ask = async (authorization?: string) => {
    const headers = authorization === undefined ? {} : { authorization }
    const request = { headers, seen: {}, isServers: () => found++ } as unknown as Request
    await authenticate(request, { pairs: [['entityId', entityId]], broken: new Set() }, 'read')
    return [found, request.seen.caller]
  }
  assert.deepEqual(await ask(), [0, undefined])
  assert.deepEqual(await ask('Bearer wrong'), [0, undefined])
  assert.deepEqual(await ask('Bearer good'), [1, { merchantId, entityId, tokenId: 'a' }])
})

it('of what fails the log says for which route, as an error where callers do not cause it at will, and nothing of a merchant who is moved', () => {
  const lines: [level: string, about: object, message: string][] = []
  const log = {
    warn: (about: object, message: string) => lines.push(['warn', about, message]),
    error: (about: object, message: string) => lines.push(['error', about, message]),
  }
  const request = { number: '7', method: 'GET', address: '192.0.2.7', path: '/slip/secret' }
  const full = new Error('timeout exceeded when trying to connect')
  const failures = [new NoTurn('late'), full, new ServedElsewhere('moved'), Object.assign(new Error('broken'), { code: 'XX000' })]
  for (const error of failures) noteFailure({ log } as unknown as HttpParts, request as Request, '/slip', error)
  const about = { ndc: '7', method: 'GET', route: '/slip' }
  assert.deepEqual(lines, [
    ['warn', { ...about, address: '192.0.2.7', why: 'late' }, 'a caller found no turn'],
    ['warn', { ...about, address: '192.0.2.7', why: full.message }, 'a caller found no turn'],
    ['error', { ...about, why: 'XX000 broken' }, 'a request failed'],
  ])
})
