// Attacks on the edge, each bounded and on loopback: what one connection can cost, whom a request is meant for, and whose page sends it.

import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import http, { createServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { after, before, describe, it } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { readForm } from '../src/contract/form.ts'
import { returnUrl, url } from '../src/contract/formats.ts'
import { parseUrl } from '../src/contract/url.ts'
import { requestsMost, unfinishedMost, watchConnections } from '../src/http/connections.ts'
import { hostRefusal, reachedAt } from '../src/http/host.ts'
import { networkConnectionsMost } from '../src/http/places.ts'
import { systemClock } from '../src/platform/clock.ts'
import { endParsing, stopParsing } from '../src/platform/parsing.ts'
import { costsMilliseconds, costsTimes } from './support/costs.ts'
import { ended } from './support/ended.ts'
import { type Body, eventually, sandbox, type TestGateway, testGateway, visa } from './support/gateway.ts'

let gateway: TestGateway
before(async () => {
  gateway = await testGateway({ environment: { SANDBOX_HOSTS: 'gateway.internal, pay.local' } })
})
after(() => gateway.stop())

const lines = (...all: string[]) => `${all.join('\r\n')}\r\n\r\n`
const host = 'Host: localhost'
const codes = lines('GET /v1/resultcodes HTTP/1.1', host)

async function open(): Promise<Socket> {
  const socket = connect(Number(new URL(gateway.baseUrl).port), '127.0.0.1')
  socket.on('error', () => {}) // a reset is what some of these are about
  await once(socket, 'connect')
  return socket
}

/** Sends bytes and reads until the other side closes. */
async function exchange(text: string): Promise<string> {
  const socket = await open()
  let got = ''
  socket.setEncoding('latin1').on('data', chunk => {
    got += chunk
  })
  socket.write(text)
  await ended(socket)
  return got
}

const check = async (text: string, status: number, code: string): Promise<void> => {
  const got = await exchange(text)
  assert.equal(`${got.split(' ')[1]} ${/"code":"([\d.]+)"/.exec(got)?.[1]}`, `${status} ${code}`, `${text}\n${got}`)
}

describe('what one connection can cost', () => {
  const post = (...more: string[]) => lines('POST /v1/payments HTTP/1.1', host, ...more)

  it('a request that never comes whole is given up, whatever it waits for, and its connection with it', async () => {
    const short = post('Content-Length: 10')
    const chunked = post('Transfer-Encoding: chunked')
    const [waits, ...malformed] = await Promise.all([
      exchange(`${short}a`), // after the time for a whole request
      exchange(`${chunked}ZZ\r\n`),
      exchange(`${codes}${chunked}ZZ\r\n`), // behind a request that has its answer
      (async () => {
        const socket = await open()
        socket.end(`${short}a`)
        socket.resume()
        await ended(socket)
        return '400'
      })(),
    ])
    assert.match(waits, /^HTTP\/1\.1 408 /)
    for (const got of malformed) assert.match(got, /400/)
  })

  it('nobody is led through to another server, and hears so', async () => {
    const asked = 'CONNECT shop.example:443 HTTP/1.1\r\nHost: shop.example:443\r\n\r\n'
    const got = await exchange(asked)
    assert.match(got, /^HTTP\/1\.1 405 [\s\S]*Allow: GET, POST\r\n[\s\S]*200\.300\.403/)
    assert.ok(!(await exchange(`${asked}${codes}`)).includes('HTTP/1.1 200'), 'what stands behind it is not looked at')
  })

  it('a body in the smallest pieces holds no more than itself', async () => {
    const used = () => {
      const { heapUsed, external, arrayBuffers } = process.memoryUsage()
      return (heapUsed + external + arrayBuffers) / 2 ** 20
    }
    const earlier = used()
    const sockets = await Promise.all(Array.from({ length: 6 }, open))
    for (const socket of sockets) socket.write(post('Transfer-Encoding: chunked') + '1\r\na\r\n'.repeat(100_000))
    const began = performance.now()
    let most = 0
    while (performance.now() - began < 3000) {
      most = Math.max(most, used() - earlier)
      await new Promise(resolve => setTimeout(resolve, 50))
    }
    for (const socket of sockets) socket.destroy()
    assert.ok(most < 150, `${Math.round(most)} MiB are held for 600 000 bytes`)
  })

  it('a body in pieces of a few bytes is taken, and thousands of single ones in a second close their connections', async () => {
    const form = `entityId=${sandbox.entityId}&amount=92.00&currency=EUR&paymentType=DB&paymentBrand=VISA&customParameters[x.y]=${'z'.repeat(300)}`
    const pieces = (size: number) =>
      Array.from({ length: Math.ceil(form.length / size) }, (_, at) => form.slice(at * size, (at + 1) * size))
    const chunked = (size: number) =>
      `${pieces(size)
        .map(one => `${one.length.toString(16)}\r\n${one}\r\n`)
        .join('')}0\r\n\r\n`
    const head = post(`Authorization: Bearer ${sandbox.accessToken}\r\nConnection: close\r\nTransfer-Encoding: chunked`)
    assert.match(await exchange(head + chunked(20)), /^HTTP\/1\.1 400 [\s\S]*card\.number/)
    // However few of them each request has.
    const some = `${post('Transfer-Encoding: chunked')}${'1\r\na\r\n'.repeat(300)}0\r\n\r\n`
    const got = await exchange(some.repeat(30))
    assert.ok(got.split('HTTP/1.1 ').length < 30, 'it is closed before all are answered')
    assert.match(
      await exchange(`${post('Connection: close', 'Content-Length: 1')}a`),
      /^HTTP\/1\.1 /,
      'others are heard in that second',
    )
  })

  it('what came with a request that was one too many is parsed no further, and the next connection is parsed as ever', async () => {
    let told = 0
    const small = createServer((request, response) => {
      if (++told % 10 === 0) return endParsing(request.socket)
      request.on('data', () => ++told % 10 === 0 && endParsing(request.socket))
      request.on('error', () => {})
      if (request.headers.connection === 'close') request.on('end', () => response.end('heard'))
    }).listen(0, '127.0.0.1')
    await once(small, 'listening')
    const { port } = small.address() as AddressInfo
    const many = ['1\r\na\r\n'.repeat(10_000), 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(2000)]
    for (const [round, more] of [...many, ...many].entries()) {
      const start = round % 2 === 0 ? 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n' : ''
      told = 0
      const socket = connect(port, '127.0.0.1').resume()
      socket.on('error', () => {})
      const closed = ended(socket)
      socket.write(start + more)
      await closed
      assert.equal(told, 10)
      // Node gives the parser of a connection that has ended to the next one.
      told = 0
      const answer = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: 'abc', headers: { Connection: 'close' } })
      assert.equal(await answer.text(), 'heard')
      assert.equal(told, 2)
    }
    small.close()
  })

  it('one that is to be closed is heard no more, and what it asked before is answered', async () => {
    let told = 0
    let answer = () => {}
    const small = createServer((request, response) => {
      told++
      stopParsing(request.socket)
      answer = () => response.end('heard')
    }).listen(0, '127.0.0.1')
    await once(small, 'listening')
    const socket = connect((small.address() as AddressInfo).port, '127.0.0.1').setEncoding('latin1')
    let got = ''
    socket.on('data', (text: string) => (got += text))
    socket.on('error', () => {})
    const more = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'
    socket.write(more)
    await eventually(async () => told === 1, 'the first is told of')
    for (let at = 0; at < 20; at++) await new Promise(resolve => socket.write(more.repeat(1000), resolve))
    answer()
    await eventually(async () => got.endsWith('heard'), 'it is answered')
    assert.equal(told, 1)
    socket.destroy()
    small.close()
  })

  it('thousands of requests that are sent at once and never read hold no memory', async () => {
    const used = () => {
      const { heapUsed, external, arrayBuffers } = process.memoryUsage()
      return (heapUsed + external + arrayBuffers) / 2 ** 20
    }
    const flood = codes.repeat(Math.floor(65_536 / codes.length))
    const earlier = used()
    const sockets = await Promise.all([open(), open()])
    const closed = Promise.all(sockets.map(socket => ended(socket.pause())))
    for (const socket of sockets) socket.write(flood)
    // Whatever the gateway makes of them, it answers others meanwhile.
    assert.equal((await fetch(`${gateway.baseUrl}/v1/resultcodes`)).status, 200)
    const held = used() - earlier
    assert.ok(held < 64, `${Math.round(held)} MiB are held for two connections`)
    for (const socket of sockets) socket.resume()
    await closed
  })

  it('bodies that were read are let go, however long the answers before them take', { timeout: 120_000 }, async () => {
    const slow = `entityId=${sandbox.entityId}&name=slow&wait=5`
    const first = lines(
      'POST /sandbox/notifications HTTP/1.1',
      host,
      `Authorization: Bearer ${sandbox.accessToken}`,
      'Content-Type: application/x-www-form-urlencoded',
      `Content-Length: ${slow.length}`,
    )
    const size = 192 * 1024
    const large = `${lines('POST /v1/nothing HTTP/1.1', host, `Authorization: Bearer ${sandbox.accessToken}`, `Content-Length: ${size}`)}${'a'.repeat(size)}`
    setFlagsFromString('--expose-gc')
    const held = () => {
      runInNewContext('gc')()
      return process.memoryUsage().arrayBuffers / 2 ** 20
    }
    // They would be 23 MiB together, which may come in a second.
    const earlier = held()
    const sockets = await Promise.all(Array.from({ length: 4 }, open))
    await Promise.all(
      sockets.map(async socket => {
        socket.write(first + slow)
        for (let at = 1; at < unfinishedMost; at++) await new Promise(resolve => socket.write(large, resolve))
      }),
    )
    const answered = new Set(sockets.filter(socket => socket.bytesRead > 0))
    assert.equal(answered.size, 0, 'the first answers must still be awaited, or nothing is seen')
    await eventually(async () => held() - earlier < 12, 'the bodies are let go')
    assert.equal(sockets.filter(socket => socket.bytesRead > 0).length, 0)
    for (const socket of sockets) socket.destroy()
  })

  it('whoever opens too many connections closes the oldest idle one of its own', { timeout: 120_000 }, async () => {
    await gateway.pay() // a stranger opens fewer
    const many: Socket[] = []
    const closed: number[] = []
    for (let at = 0; at < networkConnectionsMost; at++) {
      // In one second are no more.
      if (at === networkConnectionsMost / 2) await systemClock.sleep(1100)
      const socket = await open()
      socket.once('close', () => closed.push(at))
      many.push(socket)
    }
    assert.equal(closed.filter(at => at > 100).length, 0)
    for (const path of ['/v1/resultcodes', '/health'])
      assert.match(await exchange(lines(`GET ${path} HTTP/1.1`, host, 'Connection: close')), /^HTTP\/1\.1 200 OK/)
    await eventually(async () => closed.length >= 1, 'an idle connection is closed')
    assert.ok(
      closed.every(at => at < 100),
      `closed: ${closed}`,
    )
    for (const socket of many) socket.destroy()
  })

  it('a body of bytes that are no UTF-8 costs hardly more than any other', async () => {
    const forms = [
      `a=${'\xe9'.repeat(250_000)}`,
      Array(1999)
        .fill(`a=${'\xff'.repeat(120)}`)
        .join('&'),
      `a=${'%'.repeat(250_000)}`,
      `a=${'%ff'.repeat(80_000)}`,
    ]
    for (const charset of ['utf-8', 'iso-8859-1', 'windows-1252'] as const)
      for (const form of forms) await costsMilliseconds(100, () => readForm(form, charset), `${form.slice(0, 8)}… in ${charset}`)
  })

  it('as many requests as may wait are answered in their order', async () => {
    const got = await exchange(codes.repeat(unfinishedMost - 1) + codes.replace(host, `${host}\r\nConnection: close`))
    assert.equal(got.split('HTTP/1.1 200 OK').length - 1, unfinishedMost)
  })

  it('what still comes of a body that is too large is taken in: a reset would be taken for a server that is down', async () => {
    // As a proxy, which goes on sending when it has heard the end.
    const socket = connect({ port: Number(new URL(gateway.baseUrl).port), host: '127.0.0.1', allowHalfOpen: true })
    let failure: Error | undefined
    let seen = ''
    socket.on('error', error => {
      failure = error
    })
    socket.on('data', bytes => {
      seen += bytes
    })
    const length = 4 * 1024 * 1024
    socket.write(lines('POST /r/return/x HTTP/1.1', host, `Content-Length: ${length}`))
    const piece = Buffer.alloc(64 * 1024, 'a')
    for (let sent = 0; sent < length; sent += piece.length) await new Promise<void>(taken => socket.write(piece, () => taken()))
    socket.end()
    await ended(socket)
    assert.equal(failure, undefined)
    assert.match(seen, /^HTTP\/1\.1 413 /)
  })

  it('the last request that a connection may ask is answered, and what comes behind it is not', async () => {
    const live = lines('GET /health/live HTTP/1.1', host)
    const socket = (await open()).setEncoding('latin1')
    let rest = ''
    let answered = 0
    let last = ''
    let behind = ''
    const told = new EventEmitter()
    socket.on('data', (text: string) => {
      const parts = (rest + text).split('HTTP/1.1 ')
      answered += parts.length - 1
      rest = parts.at(-1)!
      last = answered === requestsMost ? rest : last
      behind = answered > requestsMost ? rest : behind
      told.emit('more')
    })
    const closed = ended(socket)
    const before = requestsMost - 10
    for (let asked = 1; asked <= before; asked++) {
      socket.write(live)
      while (answered < asked && !socket.closed) await Promise.race([once(told, 'more'), closed])
      // No more in a second than a network may send behind one another.
      if (asked % 3000 === 0) await systemClock.sleep(1100)
    }
    assert.equal(socket.closed, false)
    socket.write(live.repeat(1000))
    await closed
    assert.deepEqual([answered, behind], [requestsMost, ''])
    assert.match(last, /^200 OK[\s\S]*\r\nConnection: close\r\n/)
  })

  it('a request for another protocol is answered, and is the last of its connection', async () => {
    const asks = codes.replace(host, `${host}\r\nConnection: Upgrade\r\nUpgrade: websocket`)
    const got = await exchange(asks + codes)
    assert.match(got, /^HTTP\/1\.1 200 OK[\s\S]*\r\nConnection: close\r\n/)
    assert.equal(got.split('HTTP/1.1 200 OK').length - 1, 1)
  })

  it('all answers to what is public share their bytes', async () => {
    const read = async () => (await fetch(`${gateway.baseUrl}/v1/resultcodes`)).json() as Promise<Record<string, unknown>>
    const [one, other] = [await read(), await read()]
    assert.deepEqual(one.resultCodes, other.resultCodes)
    assert.notEqual(one.ndc, other.ndc)
    assert.deepEqual(Object.keys(one), ['resultCodes', 'result', 'buildNumber', 'timestamp', 'ndc'])
  })

  it('what is no HTTP behind a request is no answer to that request', async () => {
    const body = `entityId=${sandbox.entityId}&paymentType=DB&amount=1.00&currency=EUR&paymentBrand=VISA&card.number=4200000000000000&card.expiryMonth=05&card.expiryYear=2034&card.cvv=123&customParameters[simulateDelay]=100`
    const payment = lines(
      'POST /v1/payments HTTP/1.1',
      host,
      `Authorization: Bearer ${sandbox.accessToken}`,
      `Content-Length: ${body.length}`,
    )
    const got = await exchange(`${payment}${body}\x00nonsense\r\n\r\n`)
    assert.match(got, /^HTTP\/1\.1 200 OK/)
    assert.match(got, /"code":"000\.100\.110"/)
  })
})

describe('connections that are kept busy with nothing', () => {
  // The rules by a short patience, on a server of nothing else.
  const patience = { answerSeconds: 0.3, idleSeconds: 0.3, handshakeSeconds: 0.3, lookEverySeconds: 0.05 }

  /** Gives the client's side and resolves when the server's side is closed. */
  async function outlived(work: (socket: Socket) => void): Promise<void> {
    const connections = watchConnections(systemClock, patience)
    const server = http.createServer((incoming, outgoing) => {
      if (connections.asked(incoming, outgoing, '127.0.0.1')) outgoing.end(Buffer.alloc(16 * 2 ** 20))
    })
    server.on('connection', connections.opened)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const accepted = once(server, 'connection')
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {})
    const [served] = (await accepted) as [Socket]
    const asked = once(server, 'request')
    const closed = once(served, 'close')
    socket.write(lines('GET / HTTP/1.1', host))
    await asked
    const dripping = setInterval(() => work(socket), 20)
    await closed
    clearInterval(dripping)
    socket.destroy()
    connections.stop()
    server.close()
  }

  it('an answer that is not taken ends with its connection, also when a byte is taken now and then', { timeout: 120_000 }, () =>
    outlived(socket => void socket.pause().read(1)),
  )

  it('an empty line now and then keeps no connection open', { timeout: 120_000 }, () =>
    outlived(socket => void socket.resume().write('\r\n')),
  )
})

describe('whom a request is meant for', () => {
  const get = (...headers: string[]) => lines('GET /v1/resultcodes HTTP/1.1', ...headers, 'Connection: close')
  it('two Hosts, and what is no Host, are refused', async () => {
    for (const headers of [
      [host, host],
      [host, 'Host: shop.example'],
      ['Host:'],
      ['Host: local host'],
      ['Host: localhost/'],
      ['Host: user@localhost'],
      ['Host: localhost:80:80'],
      ['Host: localhost, shop.example'],
      ['Host: [::1'],
    ])
      await check(get(...headers), 400, '200.100.101')
  })
  it('a sandbox answers to localhost, to addresses of its machine and to names that the setting lists', async () => {
    const own = Object.values(networkInterfaces())
      .flat()
      .map(one => (one!.family === 'IPv6' ? `[${one!.address}]` : one!.address))
    for (const name of [
      'localhost',
      'LOCALHOST:8080',
      '127.0.0.1',
      '127.9.9.9:1',
      '[::1]:80',
      'gateway.internal',
      'Pay.Local:8080',
      ...own,
    ])
      await check(get(`Host: ${name}`), 200, '000.000.000')
    for (const name of [
      'evil.example',
      'localhost.evil.example',
      'gateway.internal.evil.example',
      '192.0.2.7',
      '[2001:db8::7]',
      '0x7f.1',
    ])
      await check(get(`Host: ${name}`), 400, '200.100.101')
  })
  it('a target that is a whole address is the Host', async () => {
    const target = (name: string) => get(host).replace('/v1/resultcodes', `http://${name}/v1/resultcodes`)
    await check(target('localhost:80'), 200, '000.000.000')
    for (const name of ['evil.example', 'user@localhost', '']) await check(target(name), 400, '200.100.101')
  })
  /** What is not ASCII in a name, in so many characters. */
  const signs = (count: number) => Array.from({ length: count }, (_, at) => String.fromCodePoint(0x4e00 + at)).join('')
  const asked = (authority: string, url = '/') =>
    ({ httpVersion: '1.1', url, headers: { host: authority }, rawHeaders: ['Host', authority] }) as unknown as IncomingMessage

  it('a Host that is longer than any, or none, is refused and not parsed', async () => {
    const longest = 'a'.repeat(255)
    assert.equal(hostRefusal(asked(`${longest}:65535`), {}), undefined)
    assert.equal(reachedAt('http', asked(`${longest}:65535`)), `http://${longest}:65535`)
    const strange = encodeURIComponent(signs(1700))
    for (const wrong of [asked(`${longest}a:65535`), asked(strange), asked('localhost', `http://${strange}/`)]) {
      assert.equal(hostRefusal(wrong, {}), 'malformedRequest')
      assert.equal(reachedAt('http', wrong), undefined)
    }
    const tenAsked = () => {
      for (let at = 0; at < 10; at++) reachedAt('http', asked(strange))
    }
    await costsTimes(1 / 2, () => URL.parse(`http://${strange}`), tenAsked, 'ten such Hosts')
  })

  it('no address with a longer host is parsed, however it is written', async () => {
    const longest = 'a'.repeat(255)
    const path = `/${signs(1000)}`
    for (const start of ['https://', 'https:', 'HTTPS:\\\\', '\t ht\ntps:////', 'app://', '//']) {
      assert.equal(parseUrl(`${start}${longest}:65535${path}`, 'http://a')?.hostname, longest, start)
      assert.equal(parseUrl(`${start}${longest}a:65535${path}`, 'http://a'), null, start)
    }
    assert.equal(parseUrl(path, 'http://a')?.hostname, 'a')
    assert.equal(parseUrl('nothing'), null)
    const long = `https://${signs(1900)}`
    for (const { also, label } of [url, returnUrl]) {
      const tenJudged = () => {
        for (let at = 0; at < 10; at++) assert.equal(also?.(long), false)
      }
      await costsTimes(1 / 2, () => URL.parse(long), tenJudged, `${label}: ten such addresses`)
    }
  })

  it('another transfer coding than chunked is not understood', async () => {
    const post = (coding: string) =>
      `${lines('POST /v1/payments HTTP/1.1', host, `Transfer-Encoding: ${coding}`, 'Connection: close')}3\r\na=b\r\n0\r\n\r\n`
    // Who speaks an older HTTP does not know where such a body ends: what follows is not answered.
    const older = post('chunked').replace('HTTP/1.1', 'HTTP/1.0').replace('close', 'keep-alive')
    const got = await exchange(`${older}GET /v1/resultcodes HTTP/1.0\r\nHost: localhost\r\n\r\n`)
    assert.equal(got.split('HTTP/1.1 ').length - 1, 1)
    assert.match(got, /^HTTP\/1\.1 400 [\s\S]*"200\.100\.101"/)
    assert.doesNotMatch(await exchange('GET /health\r\n\r\n'), /200 OK/)
    await check(post('gzip, chunked'), 501, '200.100.103')
    await check(post('chunked'), 401, '800.900.300')
    await check(post('Chunked'), 401, '800.900.300')
  })
})

describe('whose page sends it', () => {
  const clock = (headers: Record<string, string>) =>
    fetch(`${gateway.baseUrl}/sandbox/clock`, {
      method: 'POST',
      headers: {
        Authorization: `Bearer ${sandbox.accessToken}`,
        'Content-Type': 'application/x-www-form-urlencoded',
        ...headers,
      },
      body: `entityId=${sandbox.entityId}`,
    })
  it("the sandbox's own endpoints take nothing from pages of other sites", async () => {
    for (const Origin of ['https://evil.example', 'null', 'http://localhost:1'])
      assert.equal((await clock({ Origin })).status, 403, Origin)
    assert.equal((await clock({})).status, 200)
    assert.equal((await clock({ Origin: gateway.baseUrl })).status, 200)
  })
  it('nor does any call that the public credentials could make', async () => {
    const payments = async () => Number((await gateway.pool.query('select count(*) from payments')).rows[0].count)
    const before = await payments()
    const fields = {
      entityId: sandbox.entityId,
      paymentType: 'DB',
      amount: '10.00',
      currency: 'EUR',
      ...visa,
      'authentication.userId': sandbox.userId,
      'authentication.password': sandbox.password,
    }
    const post = (path: string, body: Record<string, string>, Origin: string) =>
      fetch(`${gateway.baseUrl}${path}`, { method: 'POST', headers: { Origin }, body: new URLSearchParams(body) })
    for (const path of ['/v1/payments', '/v1/threeDSecure', `/v1/payments/${'0'.repeat(32)}`]) {
      const answer = await post(path, fields, 'https://evil.example')
      assert.equal(answer.status, 403, path)
      assert.equal(((await answer.json()) as Body).result.description, 'Pages of other sites may not do this')
    }
    // A page may show what is asked for by GET as an image or a link: no Origin, but the browser says whose page it is.
    const query = new URLSearchParams({
      entityId: sandbox.entityId,
      'authentication.userId': sandbox.userId,
      'authentication.password': sandbox.password,
    })
    const shown = (site: string) => fetch(`${gateway.baseUrl}/v1/resultcodes?${query}`, { headers: { 'Sec-Fetch-Site': site } })
    const asked = (site: string) => fetch(`${gateway.baseUrl}/v1/query?${query}`, { headers: { 'Sec-Fetch-Site': site } })
    assert.equal((await asked('cross-site')).status, 403)
    assert.notEqual((await asked('same-origin')).status, 403)
    assert.equal((await shown('cross-site')).status, 200, 'what is public is shown to everybody')
    assert.equal(await payments(), before)
    const own = await post('/v1/payments', fields, gateway.baseUrl)
    assert.equal(own.status, 200, await own.text())
    assert.equal(await payments(), before + 1)
  })
  it('an answer to a program loads nothing and stands in no frame when a browser shows it', async () => {
    for (const path of ['/v1/resultcodes', '/v1/payments', '/nowhere'])
      assert.equal(
        (await fetch(gateway.baseUrl + path)).headers.get('content-security-policy'),
        "default-src 'none'; frame-ancestors 'none'",
      )
  })
  it('so does a script, a picture, and what is no page', async () => {
    const policyOf = async (path: string, init: RequestInit = {}) => {
      const { headers, status } = await fetch(gateway.baseUrl + path, { redirect: 'manual', ...init })
      return [status, headers.get('content-security-policy')]
    }
    const none = "default-src 'none'; frame-ancestors 'none'"
    assert.deepEqual(await policyOf('/v1/paymentWidgets.js'), [200, none])
    assert.deepEqual(await policyOf('/v1/static/x/img/VISA.png'), [200, none])
    assert.deepEqual(await policyOf('/v1/static/x/y'), [404, none])
    assert.deepEqual(await policyOf('/r/notice/x', { method: 'POST' }), [404, none])
  })
  it('answers to credentials are for no script of another site', async () => {
    const reply = await gateway.pay()
    assert.equal(reply.headers.get('access-control-allow-origin'), null)
    assert.equal((await fetch(`${gateway.baseUrl}/v1/resultcodes`)).headers.get('access-control-allow-origin'), '*')
  })
})
