// What strangers may ask of the proxy before cells: no pattern of it reads a body twice, no network takes what all need, and what reaches a gateway is what the
// proxy itself read. The gateways behind it are ears only.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import http2 from 'node:http2'
import net, { type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import { limits } from '../src/contract/limits.ts'
import { callerHeader, ofMerchant } from '../src/http/address.ts'
import { loadBytesMost } from '../src/http/xml/queryRequest.ts'
import type { Cells } from '../src/start/cells.ts'
import { type ProxyOptions, proxyConfiguration } from '../src/start/proxy.ts'
import { proxyTime, startProxy, withoutHaproxy, workersOf } from './support/cells.ts'
import { hasOpenssl, makeCertificate } from './support/certificate.ts'
import { eventually } from './support/gateway.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollgate-proxy-'))
const [entity, other] = ['a', 'b'].map(sign => sign.repeat(32)) as [string, string]
type Heard = { readonly cell: string; readonly url: string; readonly headers: http.IncomingHttpHeaders; readonly body: string }
let heard: Heard[] = []
/** Of those that have not come whole too. */
let begun: string[] = []
/** More than any system keeps for one connection. */
const largeBytes = 16 * 1024 * 1024
/** What a gateway has not answered yet. */
const held: http.ServerResponse[] = []
const ears: http.Server[] = []
const proxies: { kill(signal: 'SIGTERM'): unknown }[] = []
let given: Cells

type Proxy = Awaited<ReturnType<typeof proxyWith>>
async function proxyWith(options: Partial<ProxyOptions> = {}, change?: (text: string) => string) {
  const started = await startProxy(given, mkdtempSync(join(folder, 'proxy-')), options, undefined, change)
  proxies.push(started.proxy)
  return started
}

async function connect(
  { port }: { readonly port: number },
  text: string,
  localAddress = '127.0.0.1',
): Promise<net.Socket & { told: string }> {
  const socket = Object.assign(net.connect({ port, host: '127.0.0.1', localAddress, allowHalfOpen: true }), { told: '' })
  socket.on('data', chunk => (socket.told += chunk))
  socket.on('end', () => socket.end())
  await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject))
  socket.on('error', () => {}) // it was refused
  socket.write(text, 'latin1')
  return socket
}
const closeAll = (sockets: readonly net.Socket[]) => {
  for (const socket of sockets) socket.destroy()
}

/** By then those who were refused have heard of it. */
const answered = async (proxy: Pick<Proxy, 'port'>) => {
  for (let turn = 0; turn < 5; turn++) assert.equal((await ask(proxy, '/v1/resultcodes')).status, 200)
}

type Asked = { readonly status: number; readonly text: string; readonly headers: http.IncomingHttpHeaders }
const ask = (
  { port }: { readonly port: number },
  path: string,
  { body, headers, from = '127.0.0.1' }: { body?: string; headers?: http.OutgoingHttpHeaders; from?: string } = {},
) =>
  new Promise<Asked>((resolve, reject) => {
    const method = body === undefined ? 'GET' : 'POST'
    const form = body !== undefined && { 'Content-Type': 'application/x-www-form-urlencoded', 'Content-Length': body.length }
    const options = { port, host: '127.0.0.1', localAddress: from, path, method, agent: false, headers: { ...form, ...headers } }
    const request = http.request(options, answer => {
      let text = ''
      answer.on('data', chunk => (text += chunk))
      answer.on('end', () => resolve({ status: answer.statusCode!, text, headers: answer.headers }))
    })
    request.on('error', reject)
    request.end(body)
  })
const codeOf = ({ text }: Asked): string => JSON.parse(text).result.code
const query = (load: string) => ({ body: `load=${load}` })
/** Which cells heard what was just asked. */
const cellsOf = async (asked: Promise<unknown>) => {
  heard = []
  await asked
  return heard.map(({ cell }) => cell)
}

describe('the proxy before cells', { skip: withoutHaproxy }, () => {
  let plain: Proxy
  let reloadSocket: string
  let reloaded: { readonly proxy: Proxy; readonly since: number }
  before(async () => {
    const cells = []
    for (const name of ['one', 'two']) {
      const ear = http.createServer((request, answer) => {
        let body = ''
        begun.push(request.url!)
        request.on('data', chunk => (body += chunk))
        request.on('end', () => {
          if (request.url !== '/health/ready') heard.push({ cell: name, url: request.url!, headers: request.headers, body })
          if (request.url!.includes('held')) held.push(answer)
          else if (request.url!.includes('token')) answer.writeHead(400, { [callerHeader]: ofMerchant }).end()
          else answer.end(request.url === '/v1/large' ? Buffer.alloc(largeBytes) : 'heard')
        })
      })
      ears.push(ear.listen(0, '127.0.0.1'))
      await new Promise(resolve => ear.once('listening', resolve))
      const { port } = ear.address() as AddressInfo
      cells.push({ name, environment: { DATA_DIR: folder }, gateways: [`127.0.0.1:${port}`] })
    }
    given = { map: join(folder, 'cells.map'), cells }
    writeFileSync(given.map, `${entity} one\n${other} two\n`)
    plain = await proxyWith()
    reloadSocket = join(folder, 'reloads.sock')
    reloaded = { proxy: await proxyWith({ connections: 320, perNetwork: 200, reloadSocket }), since: Date.now() }
  })
  after(() => {
    for (const proxy of proxies) proxy.kill('SIGTERM')
    for (const ear of ears) ear.close()
    rmSync(folder, { recursive: true, force: true })
  })

  it('finds the entity of an old query wherever it stands in its element, and nowhere else', async () => {
    const tag = `<Query mode="LIVE" entity="${other}" level="CHANNEL">`
    for (const load of [
      tag,
      `<?xml version="1.0"?>\n<Request version='1.0'><Header/>\n${tag}<entity>${entity}</entity></Query>* entity="${entity}"`,
      `<Query\n\tentity = '${other}'/>`,
      `<Query notTheentity="${entity}" entity="${other}" entity="${entity}">`,
      `<Query entity="x" entity="${other}">`,
      `<!--${'-'.repeat(loadBytesMost - 200)}-->${tag}`,
    ])
      for (const written of [encodeURIComponent(load), percent(load)])
        assert.deepEqual(await cellsOf(ask(plain, '/payment/query', query(written))), ['two'], load.slice(-200))
    for (const load of [
      '',
      '<Query>',
      `<Query><Query entity="${other}">`,
      `<Quer entity="${other}">`,
      `<Query entity="${other.slice(1)}">`,
    ])
      assert.deepEqual(await cellsOf(ask(plain, '/payment/query', query(encodeURIComponent(load)))), [], load)
  })

  it('reads each sign of a request a few times at most, whatever it is made of', async () => {
    const long = limits.bodyMaxBytes - 1000
    const filled = (text: string, length = long) => text.repeat(Math.floor(length / text.length))
    const hostile: readonly (readonly [path: string, body: string])[] = [
      ['/payment/query', `load=${'<Query'.repeat(100)}${`+entity="${entity}`.repeat(60)}${'x'.repeat(500)}*`],
      ['/payment/query', `load=<Query${filled(`+entity="${entity}`)}*`],
      ['/payment/query', `load=<Query${filled('+entity=')}`],
      ['/payment/query', `load=<Query${filled(`+entity=${'+'.repeat(3000)}`)}`],
      ['/payment/query', `load=${filled('<Query')}`],
      ['/payment/query', `load=${filled('<Query+entity')}`],
      ['/v1/payments', filled('entityId')],
      ['/v1/payments', filled('entityI=&')],
      ['/v1/payments', `entityId=${filled('%61')}`],
      [`/v1/payments${filled('//a', 15_000)}`, 'x'],
      [`/v1/payments?${filled('entityI=&', 15_000)}`, 'x'],
    ]
    const turns = 20
    const timeOf = async (path: string, body: string) => {
      const began = proxyTime(plain.proxy)
      for (let turn = 0; turn < turns; turn++) await ask(plain, path, { body })
      return proxyTime(plain.proxy) - began
    }
    await timeOf('/v1/payments', 'x')
    for (const [path, body] of hostile) {
      const [harmless, taken] = [await timeOf('/v1/payments', 'x'.repeat(body.length)), await timeOf(path, body)]
      assert.ok(taken < 3 * harmless + turns * 2.5, `${path.slice(0, 30)} ${body.slice(0, 30)}: ${taken} ms, ${harmless} ms`)
    }
  })

  it('asks once which cell of the office is meant, however many there are', async () => {
    const [cell] = given.cells
    const many = Array.from({ length: 60 }, (_, at) => ({ ...cell!, name: `cell-${at}` }))
    const { port, proxy } = await startProxy({ ...given, cells: many }, mkdtempSync(join(folder, 'proxy-')))
    proxies.push(proxy)
    const timeOf = async (path: string, headers: http.OutgoingHttpHeaders) => {
      await ask({ port }, path, { headers })
      const began = proxyTime(proxy)
      for (let turn = 0; turn < 20; turn++) await ask({ port }, path, { headers })
      return proxyTime(proxy) - began
    }
    const harmless = await timeOf(`/office?${'x'.repeat(15_000)}`, {})
    for (const [path, headers] of [
      [`/office?${'cell=x&'.repeat(2_000)}`, {}],
      [`/office?${'x&'.repeat(7_000)}`, {}],
      ['/office', { Cookie: 'a=b;'.repeat(3_500) }],
    ] as const) {
      const taken = await timeOf(path, headers)
      assert.ok(
        taken < 3 * harmless + 20,
        `${path.slice(0, 20)} ${JSON.stringify(headers).slice(0, 20)}: ${taken} ms, ${harmless} ms`,
      )
    }
    const door = await ask({ port }, '/office/payments?cell=cell-59')
    assert.deepEqual([door.status, door.headers.location], [303, '/office/payments'])
    assert.match(String(door.headers['set-cookie']), /^tollgate-cell=cell-59; Path=\/office;/)
    assert.equal((await ask({ port }, '/office?cell=cell-60')).status, 200)
    assert.equal(
      (await ask({ port }, '/office', { headers: { Cookie: 'tollgate-cell=cell-60' } })).text.includes('Back office'),
      true,
    )
    assert.equal((await ask({ port }, '/office', { headers: { Cookie: 'tollgate-cell=cell-59' } })).text, 'heard')
  })

  it('refuses headers and addresses that no gateway takes, before it looks for anything in them', async () => {
    const large = 'a'.repeat(17_000)
    heard = []
    for (const [path, headers] of [
      [`/v1/payments/${large}?entityId=${entity}`, {}],
      [`/v1/payments?entityId=${entity}&x=${large}`, {}],
      [`/v1/payments?entityId=${entity}`, { Authorization: `Bearer ${large}` }],
      [`/office`, { Cookie: large }],
    ] as const) {
      const refused = await ask(plain, path, { headers })
      assert.deepEqual([refused.status, codeOf(refused)], [431, '200.100.103'])
    }
    assert.deepEqual(heard, [])
  })

  it('reads an entity where gateways read it, and nowhere else', async () => {
    const asking = async (method: string, path: string, body = '') => {
      const headers = `Host: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ${body.length}\r\nConnection: close`
      const socket = await connect(plain, `${method} ${path} HTTP/1.1\r\n${headers}\r\n\r\n${body}`)
      await new Promise(resolve => socket.once('close', resolve))
    }
    const named = `entityId=${other}`
    assert.deepEqual(await cellsOf(asking('GET', `/v1/payments?${named}`)), ['two'])
    assert.deepEqual(await cellsOf(asking('DELETE', `/v1/registrations/1?${named}`)), ['two'])
    assert.deepEqual(await cellsOf(asking('DELETE', '/v1/registrations/1', named)), ['two'])
    assert.deepEqual(await cellsOf(asking('POST', '/v1/payments', named)), ['two'])
    assert.deepEqual(await cellsOf(asking('POST', `/v1/payments?${named}`, 'x=1')), [])
    assert.deepEqual(await cellsOf(asking('GET', '/v1/payments', named)), [])
  })

  it('says of a body that is no form what gateways say, and nothing of its entity', async () => {
    const named = { body: `entityId=${entity}` }
    const codeAs = async (headers: http.OutgoingHttpHeaders, body = 'x') => {
      const { status, text } = await ask(plain, '/v1/payments', { body, headers: { 'Content-Length': body.length, ...headers } })
      return `${status} ${status === 200 ? text : JSON.parse(text).result.code}`
    }
    heard = []
    for (const type of [
      'multipart/form-data; boundary=x',
      'application/json',
      'text/plain',
      'application/x-www-form-urlencodedx',
    ])
      assert.equal(await codeAs({ 'Content-Type': type }), '415 200.100.103', type)
    assert.equal(await codeAs({ 'Content-Encoding': 'gzip' }), '415 200.100.103')
    for (const type of ['application/x-www-form-urlencoded', 'Application/X-WWW-Form-Urlencoded ; charset=utf-8', ''])
      assert.equal(await codeAs({ 'Content-Type': type }), '400 200.300.407', type)
    assert.equal(await codeAs({ 'Content-Encoding': 'Identity' }), '400 200.300.407')
    assert.deepEqual(heard, [])
    // Who is known goes to the gateway, which says it too.
    assert.deepEqual(await cellsOf(ask(plain, '/v1/payments', { ...named, headers: { 'Content-Type': 'text/plain' } })), ['one'])
  })

  it('takes so many connections of one network, and all of others', async () => {
    const half = 'GET /v1/resultcodes HTTP/1.1\r\nHost: x\r\n'
    const open = async (proxy: Proxy, count: number) => {
      const sockets = await Promise.all(Array.from({ length: count }, () => connect(proxy, half).catch(() => undefined)))
      return sockets.filter(socket => socket !== undefined)
    }
    const small = await proxyWith({ perNetwork: 20 })
    const sockets = await open(small, 60)
    await eventually(async () => sockets.filter(({ destroyed }) => !destroyed).length === 20, 'twenty are left')
    await assert.rejects(ask(small, '/v1/resultcodes'))
    assert.equal((await ask(small, '/v1/resultcodes', { from: '127.0.0.2' })).status, 200)
    closeAll(sockets)
    await eventually(
      () =>
        ask(small, '/v1/resultcodes').then(
          ({ status }) => status === 200,
          () => false,
        ),
      'there is room again',
    )

    const lifted = await proxyWith({ perNetwork: 0 })
    const told = await ask(lifted, `/v1/payments?entityId=${entity}&token`, { headers: { Authorization: 'Bearer x' } })
    assert.deepEqual([told.status, told.headers['x-tollgate-caller']], [400, undefined])
    const many = await open(lifted, 60)
    assert.equal((await ask(lifted, '/v1/resultcodes')).status, 200)
    assert.equal(many.filter(({ destroyed }) => !destroyed).length, 60)
    closeAll(many)
    assert.match(proxyConfiguration(given, { bind: ':80' }), /connection reject if \{ sc0_conn_cur\(Connections\) gt 1024 \}/)
  })

  it('gives a network fewer connections the fuller it is, so that a few networks do not keep all', async () => {
    const crowded = await proxyWith({ connections: 320, perNetwork: 200 })
    const asked = `GET /v1/payments?entityId=${entity}&held HTTP/1.1\r\nHost: x\r\n\r\n`
    const crowd: net.Socket[] = []
    const left = () => crowd.filter(({ destroyed }) => !destroyed).length
    const come = async (address: string, count: number) => {
      for (let at = 0; at < count; at += 10) {
        const opened = Array.from({ length: 10 }, () => connect(crowded, asked, address).catch(() => undefined))
        for (const socket of await Promise.all(opened)) if (socket) crowd.push(socket)
      }
    }
    await come('127.0.0.2', 200)
    await answered(crowded)
    assert.ok(left() <= 180, `${left()}: half of all`)
    for (let net = 3; net < 13; net++) await come(`127.0.0.${net}`, 20)
    await answered(crowded)
    assert.ok(left() <= 195, `${left()}: then three each`)
    closeAll(crowd)
    held.length = 0
    assert.doesNotMatch(proxyConfiguration(given, { bind: ':80', perNetwork: 0 }), /fe_conn/)
  })

  it('has an eighth left where ninety networks of strangers have all that they may, in whatever order they come, and forty places beside fifty-two and twelve of a merchant', () => {
    const configuration = proxyConfiguration(given, { bind: ':80' })
    const most = Number(/maxconn (\d+) # each takes/.exec(configuration)![1])
    const limits = [
      ...configuration.matchAll(
        /connection reject if (?:\{ fe_conn gt (\d+) \} )?\{ sc0_conn_cur\(Connections\) gt (\d+) \}( !)?/g,
      ),
    ].map(([, taken = '0', own, isStranger]) => ({
      taken: Number(taken),
      own: Number(own),
      isStranger: isStranger !== undefined,
    }))
    assert.equal(limits.length, 11)
    /** Each takes all that it may before the next one comes: later it may have fewer. */
    const takenBy = (networks: readonly ('stranger' | 'merchant')[]) => {
      let taken = 0
      for (const network of networks)
        for (let own = 1; taken < most; own++, taken++)
          if (limits.some(limit => taken + 1 > limit.taken && own > limit.own && !(limit.isStranger && network === 'merchant')))
            break
      return taken
    }
    const of = <Kind>(count: number, kind: Kind) => Array.from({ length: count }, () => kind)
    const [strangers, merchants] = [of(90, 'stranger' as const), of(12, 'merchant' as const)]
    assert.ok(takenBy(strangers) <= (most * 7) / 8, `${takenBy(strangers)} by strangers`)
    assert.ok(takenBy(of(64, 'stranger' as const)) < most - 700, `${takenBy(of(64, 'stranger' as const))} by 64 of them`)
    const together = [merchants, [...strangers.slice(0, 52), ...merchants], [...merchants, ...strangers.slice(0, 52)]]
    for (let at = 2; at <= 52; at += 2) together.push([...strangers.slice(0, at), ...merchants, ...strangers.slice(0, 52 - at)])
    for (const crowd of together) assert.ok(takenBy(crowd) <= most - 40, `${takenBy(crowd)} by both`)
    for (const { own } of limits) assert.ok(own >= 4, 'a browser has more than one connection')
  })

  // The proxy answers it by itself.
  const renewal = 'GET /v1/payments HTTP/1.1\r\nHost: x\r\n\r\n'
  /** How many each address opens, one after the other: these take all 320 places of a proxy. */
  const takers: readonly (readonly [net: number, count: number])[] = [
    [2, 160],
    ...Array.from({ length: 26 }, (_, at) => [3 + at, 3] as const),
    ...Array.from({ length: 82 }, (_, at) => [29 + at, 1] as const),
  ]
  /** The last eighth is free. */
  const takersOfMost = takers.slice(0, 69)
  /** Waits long for the head of a request: however slow a machine is, those who came first are there when the last one has come. */
  const waitForHeads = (text: string) => {
    const changed = text
      .replace('timeout http-request 5s', 'timeout http-request 80s')
      .replace('timeout client 10s', 'timeout client 80s')
    assert.equal(changed.length, text.length + 1)
    return changed
  }
  const isAnswered = (proxy: Proxy, from: string, within = 3000) =>
    Promise.race([
      ask(proxy, '/v1/resultcodes', { from }).then(
        ({ status }) => status === 200,
        () => false,
      ),
      new Promise<false>(resolve => setTimeout(resolve, within, false).unref()),
    ])

  it('waits for no body for long while half of all are taken, so that many networks, none of which has many, do not keep all', async () => {
    const crowded = await proxyWith({ connections: 320, perNetwork: 200 })
    const crowd: Awaited<ReturnType<typeof connect>>[] = []
    const slow = (method: string) =>
      `${method} /v1/payments?entityId=${entity}&held HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n`
    const methods = ['POST', 'GET', 'PUT', 'DELETE']
    for (let at = 0; at < 320; at++) {
      const socket = await connect(crowded, slow(methods[at % 4]!), `127.0.1.${1 + (at % 64)}`).catch(() => undefined)
      if (socket) crowd.push(socket)
    }
    try {
      // Who came before half of all was taken is waited for longer; who comes now is not, whatever he asks.
      const late = await Promise.all(methods.map((method, at) => connect(crowded, slow(method), `127.0.5.${1 + at}`)))
      const file = 'POST /office/files HTTP/1.1\r\nHost: x\r\nCookie: tollgate-cell=one\r\nContent-Length: 90000\r\n\r\n'
      const colleague = await connect(crowded, `${file}x`, '127.0.5.9')
      await eventually(async () => late.every(({ told }) => told.startsWith('HTTP/1.1 408 ')), 'two seconds are enough', 10)
      colleague.write('x'.repeat(89_999))
      await eventually(async () => colleague.told.startsWith('HTTP/1.1 200 '), 'a file of the back office is not cut off')
      assert.equal(await isAnswered(crowded, '127.0.0.250', 12_000), true)
      await eventually(async () => crowd.every(({ destroyed }) => destroyed), 'no gateway waits for any of them')
      const told = crowd.filter(({ told }) => told !== '').map(({ told }) => told)
      assert.ok(told.length > 100, `${told.length} of 320 had a place`)
      for (const answer of told) {
        assert.match(answer, /^HTTP\/1\.1 408 /)
        assert.equal(JSON.parse(answer.split('\r\n\r\n')[1]!).result.code, '200.100.101')
      }
    } finally {
      closeAll(crowd)
    }
  })

  it('keeps no place for whoever asks now and then while half of all are taken, and each connection else', async () => {
    const limits = { connections: 320, perNetwork: 200 }
    const [half, crowded] = await Promise.all([proxyWith(limits), proxyWith(limits, waitForHeads)])
    const crowd: Awaited<ReturnType<typeof connect>>[] = []
    const left = () => crowd.filter(({ destroyed }) => !destroyed).length
    for (let at = 0; at < 150; at++) crowd.push(await connect(half, renewal, '127.0.0.2'))
    for (let turn = 2; turn < 4; turn++) {
      await eventually(
        async () => crowd.every(({ told }) => told.split('HTTP/1.1 400').length === turn),
        `all are answered: ${turn}`,
      )
      for (const socket of crowd) socket.write(renewal)
    }
    assert.equal(left(), 150)
    closeAll(crowd.splice(0))

    // Heads that are not whole: all are taken before anybody asks.
    const come = async (net: number, count: number) => {
      for (let at = 0; at < count; at++) {
        const socket = await connect(crowded, renewal.slice(0, -2), `127.0.0.${net}`).catch(() => undefined)
        if (socket) crowd.push(socket)
      }
    }
    for (const [net, count] of takers) await come(net, count)
    // The proxy takes them two at a time, not always as they came: it may have refused one of a larger network for a later one.
    for (let net = 111; net < 160 && (await isAnswered(crowded, '127.0.0.249', 1000)); net++) await come(net, 1)
    for (const socket of crowd) socket.write('\r\n')
    const answers = () => crowd.filter(({ told }) => told.includes('HTTP/1.1 400')).length
    await eventually(async () => answers() >= 300, 'each is answered')
    await eventually(async () => {
      for (const socket of crowd) if (socket.writable) socket.write(renewal)
      return isAnswered(crowded, '127.0.0.250')
    }, 'there is room')
    assert.ok(left() <= 165, `${left()} of 320`)
    closeAll(crowd)
  })

  it('keeps the last eighth for networks that have few, and for merchants’ servers, of whom none takes it all', async () => {
    const crowded = await proxyWith({ connections: 320, perNetwork: 200 }, waitForHeads)
    const path = `/v1/payments?entityId=${entity}`
    const headers = { Authorization: 'Bearer x' }
    const told = await ask(crowded, `${path}&token`, { headers, from: '127.0.0.200' })
    assert.equal(told.headers['x-tollgate-caller'], undefined, 'it is told by nobody but the gateway, to nobody but the proxy')
    const fooling = { ...headers, 'X-Tollgate-Caller': 'merchant' }
    await ask(crowded, path, { headers: fooling, from: '127.0.0.201' })
    await ask(crowded, `/v1/checkouts/x.${entity}/payment/`, { headers: fooling, from: '127.0.0.201' })
    const crowd: Awaited<ReturnType<typeof connect>>[] = []
    const come = async (net: number, count: number) => {
      const opened = []
      for (let at = 0; at < count; at++)
        opened.push(await connect(crowded, renewal.slice(0, -2), `127.0.0.${net}`).catch(() => undefined))
      crowd.push(...opened.filter(socket => socket !== undefined))
      return opened
    }
    const left = async (coming: ReturnType<typeof come>) => {
      const opened = await coming
      await new Promise(resolve => setTimeout(resolve, 200)) // who is refused has heard of it
      return opened.filter(socket => socket && !socket.destroyed).length
    }
    for (const [net, count] of takersOfMost) await come(net, count)
    // The proxy takes them two at a time, not always as they came: it may have refused some.
    const taken = () => left(Promise.resolve(crowd))
    for (let net = 111, lacks = 280 - (await taken()); lacks > 0; net++, lacks--) await come(net, 1)
    const [stranger, merchant] = [await left(come(201, 12)), await left(come(200, 24))]
    assert.equal(stranger, 1)
    assert.ok(merchant >= 4 && merchant <= 15, `${merchant} of a merchant`)
    closeAll(crowd)
  })

  it('knows merchants’ servers behind a reload too', async () => {
    const { proxy, since } = reloaded
    assert.equal(statSync(reloadSocket).mode & 0o777, 0o600)
    assert.throws(() => proxyConfiguration(given, { bind: ':80', reloadSocket: 'a b' }), /--reload-socket must be the path/)
    const marking = await ask(proxy, `/v1/payments?entityId=${entity}&token`, {
      headers: { Authorization: 'Bearer x' },
      from: '127.0.0.200',
    })
    assert.equal(marking.status, 400)
    // A proxy that has just begun asks for what one before it knows, and tells another nothing until then.
    await new Promise(resolve => setTimeout(resolve, Math.max(0, since + 11_000 - Date.now())))
    const before = workersOf(proxy.proxy)
    proxy.proxy.kill('SIGUSR2')
    await eventually(async () => !workersOf(proxy.proxy).some(one => before.includes(one)), 'the one before has gone')
    await answered(proxy)
    const crowd: Awaited<ReturnType<typeof connect>>[] = []
    const come = async (from: string, count: number) => {
      const opened = []
      for (let at = 0; at < count; at++) {
        const socket = await connect(proxy, renewal.slice(0, -2), from).catch(() => undefined)
        if (socket) opened.push(socket)
      }
      crowd.push(...opened)
      await new Promise(resolve => setTimeout(resolve, 200)) // who is refused has heard of it
      return opened.filter(socket => !socket.destroyed).length
    }
    await come('127.0.0.2', 170)
    assert.equal(await come('127.0.0.201', 12), 3, 'a stranger, while half is taken')
    assert.equal(await come('127.0.0.200', 12), 12, 'a merchant')
    closeAll(crowd)
  })

  it('knows merchants’ servers however many others come', async () => {
    const proxy = await proxyWith({ connections: 32, perNetwork: 32 })
    const marking = { headers: { Authorization: 'Bearer x' }, from: '127.0.0.200' }
    await ask(proxy, `/v1/payments?entityId=${entity}&token`, marking)
    for (let at = 0; at < 150; at++) await ask(proxy, '/v1/resultcodes', { from: `127.0.6.${1 + at}` })
    const come = async (count: number, from: string) => {
      const coming = Array.from({ length: count }, () => connect(proxy, renewal.slice(0, -2), from).catch(() => undefined))
      const opened = (await Promise.all(coming)).filter(socket => socket !== undefined)
      await new Promise(resolve => setTimeout(resolve, 200)) // who is refused has heard of it
      return opened.filter(socket => !socket.destroyed)
    }
    const crowd = await come(20, '127.0.0.2')
    const two = await come(2, '127.0.0.200')
    assert.equal(two.length, 2)
    closeAll([...crowd, ...two])
  })

  it('closes a line on which no handshake comes, and waits longer for a gateway, and for who takes an answer slowly', async () => {
    const configuration = proxyConfiguration(given, { bind: ':80' })
    assert.match(configuration, /timeout client 10s/)
    const asked = ask(plain, `/v1/payments?entityId=${entity}&held`)
    await eventually(async () => held.length > 0, 'it is asked')
    const slow = http.get({ port: plain.port, host: '127.0.0.1', path: '/v1/large', agent: false })
    const [answer] = (await once(slow, 'response')) as [http.IncomingMessage]
    let taken = 0
    answer.on('data', chunk => {
      taken += chunk.length
      if (Date.now() > fast) return
      answer.pause()
      setTimeout(() => answer.resume(), chunk.length / 60) // 60 kB a second
    })
    const fast = Date.now() + 13_000
    await new Promise(resolve => setTimeout(resolve, 13_000))
    for (const answer of held.splice(0)) (answer as http.ServerResponse).end('late')
    assert.equal((await asked).text, 'late')
    await once(answer, 'end')
    assert.equal(taken, largeBytes, 'nothing of it was cut off')
  })

  it('keeps no place for it over HTTP/2 either, but the few that a network needs', async () => {
    const [crowded, full] = await Promise.all([1, 2].map(() => proxyWith({ connections: 320, perNetwork: 200 })))
    const crowd: { readonly from: string; readonly session: http2.ClientHttp2Session }[] = []
    const askOn = (session: http2.ClientHttp2Session) =>
      new Promise<number | undefined>(resolve => {
        if (session.destroyed || session.closed) return resolve(undefined)
        const stream = session.request({ ':path': '/v1/payments' })
        stream.on('response', answer => stream.resume().on('end', () => resolve(answer[':status'])))
        stream.on('error', () => resolve(undefined)).on('close', () => resolve(undefined))
      })
    const open = async ({ port }: Proxy, from: string) => {
      const localAddress = `127.0.0.${from}`
      const session = http2.connect(`http://127.0.0.1:${port}`, {
        createConnection: () => net.connect({ port, host: '127.0.0.1', localAddress }),
      })
      session.on('error', () => {})
      crowd.push({ from, session })
      return askOn(session)
    }
    // Five fewer than it takes: whoever asked whether the proxy is there may still have a place.
    for (const [net, count] of [[2, 155] as const, ...takersOfMost.slice(1)])
      for (let at = 0; at < count; at++) assert.equal(await open(crowded!, String(net)), 400, `${at} of ${net}`)
    const again = await Promise.all(crowd.map(async ({ from, session }) => ({ from, status: await askOn(session) })))
    assert.ok(
      again.every(({ from, status }) => Number(from) < 29 || status === 400),
      'who has few connections keeps them',
    )
    const went = again.filter(({ status }) => status === undefined).length
    assert.ok(went >= 30, `${went} went: a quarter of all is free`)
    assert.equal(await isAnswered(crowded!, '127.0.0.250'), true)
    // Of many networks, none of which has many, each keeps two where that is taken too.
    for (let at = 0; at < 320; at++) await open(full!, String(30 + (at % 32)))
    assert.equal(await isAnswered(full!, '127.0.0.250'), true)
    for (const { session } of crowd) session.destroy()
  })

  it('gives a gateway so many requests of browsers, of those that wait first one whose network has few, and of others all', async () => {
    const { port } = await proxyWith()
    const sessions = Array.from({ length: 130 }, (_, at) =>
      http2.connect(`http://127.0.0.1:${port}`, {
        createConnection: () => net.connect({ port, host: '127.0.0.1', localAddress: `127.0.0.${2 + (at % 2)}` }),
      }),
    )
    const paths = [`/pay/1.${entity}?held`, `/v1/paymentWidgets.js?checkoutId=1.${entity}&held`, `//pay/1.${entity}?held`]
    for (const session of sessions)
      for (let stream = 0; stream < 8; stream++)
        session
          .request({ ':path': paths[stream % paths.length] })
          .on('error', () => {})
          .resume()
    const answers: Promise<Asked>[] = []
    try {
      await eventually(async () => held.length === 1024, '1024 of 1040 have come')
      heard = []
      assert.equal((await ask({ port }, '/v1/payments', { body: `entityId=${entity}` })).status, 200)
      assert.equal((await ask({ port }, '/v1/resultcodes')).status, 200)
      answers.push(ask({ port }, `/pay/2.${entity}`, { from: '127.0.0.4' }))
      answers.push(ask({ port }, '/office', { from: '127.0.0.5', headers: { Cookie: 'tollgate-cell=one' } }))
      await answered({ port })
      assert.deepEqual([held.length, heard.filter(({ url }) => /^.(pay|office)/.test(url)).length], [1024, 0])
      held.shift()!.end()
      await Promise.all(answers)
      assert.equal(held.length, 1023, 'none of the crowd came between')
    } finally {
      for (const session of sessions) session.destroy()
      for (const answer of held.splice(0)) answer.end()
    }
    // Whatever else fails: a gateway that is slow to say that it is ready is none that is down.
    assert.doesNotMatch(proxyConfiguration(given, { bind: ':80' }), /on-error|observe/)
  })

  it('waits for what browsers send itself: slow bodies of one network keep no places at a gateway', async () => {
    const proxy = await proxyWith()
    const slow = (path: string) =>
      `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\na=`
    const sockets = await Promise.all(Array.from({ length: 1024 }, () => connect(proxy, slow(`/pay/1.${entity}`), '127.0.0.7')))
    try {
      heard = []
      assert.equal((await ask(proxy, `/pay/2.${entity}`)).status, 200)
      assert.equal((await ask(proxy, '/v1/resultcodes')).status, 200)
      assert.equal((await ask(proxy, `/pay/2.${entity}`, { body: 'a=b' })).status, 200)
      assert.equal(heard.length, 3)
    } finally {
      closeAll(sockets)
    }
  })

  it('keeps places at a gateway for pages while large bodies come to the back office, and lets none come from shoppers', async () => {
    const proxy = await proxyWith()
    const cookie = { Cookie: 'tollgate-cell=one' }
    const large = (path: string, size: string) =>
      `POST ${path} HTTP/1.1\r\nHost: x\r\nCookie: tollgate-cell=one\r\nContent-Type: text/plain\r\n${size}\r\n\r\n`
    begun = []
    const piece = 'x'.repeat(limits.bodyMaxBytes + 80 * 1024)
    const file = large('/office/files', 'Content-Length: 4000000')
    const uploads = () => begun.filter(url => url === '/office/files').length
    const come = (count: number, text: string) =>
      Promise.all(Array.from({ length: count }, (_, at) => connect(proxy, text, `127.0.3.${1 + (at % 70)}`)))
    // Of most of them the gateway hears the head alone.
    const sockets = [...(await come(70, file)), ...(await come(70, file + piece))]
    try {
      await eventually(async () => uploads() === 140, 'all have come, and more would')
      const colleague = await connect(
        proxy,
        `${large('/office/ours', 'Content-Length: 20000')}${'x'.repeat(20_000)}`,
        '127.0.0.5',
      )
      await eventually(async () => colleague.told.startsWith('HTTP/1.1 200 '), 'a colleague’s file')
      const third = await connect(proxy, file, '127.0.3.1')
      await eventually(async () => third.told.startsWith('HTTP/1.1 429 '), 'one network has two at a time')
      // Of such lengths the last 32 bits are small, none at all, or less than that.
      const long = await Promise.all(
        ['4294967297', '4294967296', '2147483649', '00004294967297']
          .map(length => large('/office/sign-in', `Content-Length: ${length}`))
          .flatMap(text => [text, text.replace('POST', 'GET')])
          .map(text => connect(proxy, text, '127.0.3.2')),
      )
      await eventually(async () => long.every(({ told }) => told.startsWith('HTTP/1.1 429 ')), 'none is small')
      assert.ok(!begun.includes('/office/sign-in'))
      closeAll([third, colleague, ...long])
      for (let net = 1; net <= 190; net++)
        for (let at = 0; at < 2; at++) sockets.push(await connect(proxy, file, `127.0.4.${net}`))
      await eventually(async () => uploads() === 512, 'these are all places that there are')
      await new Promise(resolve => setTimeout(resolve, 200))
      assert.equal(uploads(), 512)
      assert.equal((await ask(proxy, '/office/overview', { headers: cookie, from: '127.0.0.5' })).status, 200)
      assert.equal((await ask(proxy, '/office/settings', { body: 'a=b', headers: cookie, from: '127.0.0.5' })).status, 200)
    } finally {
      closeAll(sockets)
    }
    for (const size of ['Content-Length: 4000000', 'Transfer-Encoding: chunked']) {
      const text = size.startsWith('T') ? `${piece.length.toString(16)}\r\n${piece}` : piece
      const refused = await connect(proxy, large(`/pay/1.${entity}`, size) + text)
      await eventually(async () => refused.told.startsWith('HTTP/1.1 413 '), `it is refused: ${size}`)
      refused.destroy()
    }
    assert.ok(!begun.includes(`/pay/1.${entity}`))
  })

  it('has sockets left where strangers take no answers over HTTP/2, of whom each network has few then', async () => {
    const proxy = await proxyWith({ connections: 128, perNetwork: 100 })
    const sessions: http2.ClientHttp2Session[] = []
    const statuses: (number | undefined)[] = []
    const asked: Promise<void>[] = []
    // Six networks with five connections of eight requests: 240 sockets to gateways, where 128 connections have 256 in all.
    for (let at = 0; at < 30; at++) {
      const session = http2.connect(`http://127.0.0.1:${proxy.port}`, {
        settings: { initialWindowSize: 0 },
        createConnection: () => net.connect({ port: proxy.port, host: '127.0.0.1', localAddress: `127.0.7.${1 + (at % 6)}` }),
      })
      session.on('error', () => {})
      sessions.push(session)
      for (let stream = 0; stream < 8; stream++) {
        const request = session.request({ ':path': `/pay/x.${entity}` })
        request.on('error', () => {})
        asked.push(new Promise(resolve => request.on('response', answer => resolve(void statuses.push(answer[':status'])))))
      }
    }
    await Promise.all(asked)
    assert.equal(statuses.filter(status => status === 429).length, 240 - 6 * 32)
    for (let at = 0; at < 5; at++)
      assert.equal((await ask(proxy, `/v1/payments?entityId=${entity}`, { from: `127.0.8.${1 + at}` })).status, 200)
    for (const session of sessions) session.destroy()
  })

  it('keeps places of its own for the reference, which is long: who does not take it is in the way of no form', async () => {
    begun = []
    // Also where it names a checkout or a cell of the office, and however the path is written.
    const paths = ['/openapi.json', '/docs/api/x', '/openapi.json/', '//docs//codes', `/docs/codes?checkoutId=1.${entity}`]
    const open = (at: number, path = paths[at % paths.length]!) =>
      connect(
        plain,
        `GET ${path}${path.includes('?') ? '&' : '?'}held HTTP/1.1\r\nHost: x\r\nCookie: tollgate-cell=one\r\n\r\n`,
        `127.0.3.${1 + (at % 200)}`,
      )
    const count = () => begun.filter(url => url.endsWith('held')).length
    const sockets = await Promise.all(Array.from({ length: 520 }, (_, at) => open(at)))
    try {
      // Two cells have a gateway each.
      await eventually(async () => count() === 512, 'all places are taken')
      for (const path of ['/v1/paymentWidgets.js', `/pay/1.${entity}`, '/office/x'])
        assert.equal((await ask(plain, path, { from: '127.0.0.5', headers: { Cookie: 'tollgate-cell=one' } })).status, 200)
      await new Promise(resolve => setTimeout(resolve, 200))
      assert.equal(count(), 512)
      const fourth = await open(0)
      await eventually(async () => fourth.told.startsWith('HTTP/1.1 429 '), 'one network has three at a time')
      sockets.push(fourth)
    } finally {
      closeAll(sockets)
      held.splice(0)
    }
  })

  it('lets no body through over HTTP/2 of which no header says that there is one, but a small one', async () => {
    begun = []
    const session = http2.connect(`http://127.0.0.1:${plain.port}`)
    const send = (path: string, bytes: number, ends: boolean) =>
      new Promise<number | undefined>(resolve => {
        const stream = session.request({ ':path': path, ':method': 'GET', cookie: 'tollgate-cell=one' }, { endStream: false })
        stream.on('response', answer => resolve(answer[':status']))
        stream.on('error', () => {}) // refused, it takes nothing more
        stream.write('x'.repeat(bytes))
        if (ends) stream.end()
      })
    for (const [path, ends] of [
      ['/office/silent', false],
      ['/office/whole', true],
      [`/pay/1.${entity}`, false],
    ] as const)
      assert.equal(await send(path, 400_000, ends), 413)
    assert.equal(await send('/office/small', 1000, true), 200)
    assert.deepEqual(
      begun.filter(url => url !== '/health/ready'),
      ['/office/small'],
    )
    session.destroy()
  })

  it('waits for so many large bodies of one network, while its small ones and those of others go through', async () => {
    const large = (size: string, path: string) =>
      `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n${size}\r\n\r\n`
    for (const [size, path] of [
      ['Content-Length: 200000', '/v1/payments'],
      ['Transfer-Encoding: chunked', '/v1/payments'],
      ['Content-Length: 200000', '//v1//payments'],
      ['Content-Length: 200000', 'http://x//v1/payments'],
    ] as const) {
      const sockets = await Promise.all(Array.from({ length: 150 }, () => connect(plain, large(size, path))))
      const told = () => sockets.filter(({ told }) => told !== '')
      await eventually(async () => told().length === 22, '22 of 150 are answered')
      for (const one of told()) {
        assert.match(one.told, /^HTTP\/1\.1 429 .*\r\nretry-after: 1\r\n/is)
        assert.match(one.told, /"code":"800\.120\.100"/)
      }
      const body = `entityId=${entity}`
      assert.equal((await ask(plain, '/v1/payments', { body })).status, 200)
      const long = { body: `${body}&x=${'x'.repeat(100_000)}` }
      assert.equal((await ask(plain, '/v1/payments', long)).status, 429)
      assert.equal((await ask(plain, '/v1/payments', { ...long, from: '127.0.0.2' })).status, 200)
      closeAll(sockets)
      await eventually(async () => (await ask(plain, '/v1/payments', long)).status === 200, 'there is room again')
    }
  })

  it('a cell may have any name that the file takes; a map must have one that HAProxy takes', () => {
    const path = join(folder, 'names.cfg')
    const names = ['every', 'nowhere', 'tollgate', 'connections', 'requests', 'bodies', 'defaults', 'global', 'one-1', '0']
    writeFileSync(
      path,
      proxyConfiguration(
        { ...given, cells: names.map((name, at) => ({ ...given.cells[0]!, name, gateways: [`127.0.0.1:${at + 1}`] })) },
        { bind: ':1' },
      ),
    )
    const { status, stderr } = spawnSync('haproxy', ['-c', '-f', path], { encoding: 'utf8' })
    assert.equal(status, 0, stderr)
    assert.doesNotMatch(stderr, /WARNING/)
    for (const map of ['/etc/my files/m.map', '/etc/m,1.map', '/etc/m".map', '/etc/$m.map', '/etc/m#.map', '/etc/m)'])
      assert.throws(() => proxyConfiguration({ ...given, map }, { bind: ':1' }), {
        message: `The path of the map must be letters, digits and ._/-: it is ${map}.`,
      })
  })

  it('what is two requests to somebody is none to a gateway', async () => {
    const hidden = 'GET /v1/payments/hidden HTTP/1.1\r\nHost: x\r\nX-Hidden: 1\r\n\r\n'
    const body = `entityId=${entity}`
    const head = (...lines: string[]) =>
      ['POST /v1/payments HTTP/1.1', 'Host: shop', 'Content-Type: application/x-www-form-urlencoded', ...lines, '', ''].join(
        '\r\n',
      )
    const both = ['Transfer-Encoding: chunked', `Content-Length: ${body.length}`]
    const chunked = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
    for (const text of [
      head(...both) + chunked + hidden,
      head(...both.toReversed()) + chunked + hidden,
      head('Transfer-Encoding : chunked', both[1]!) + body + hidden,
      head('Transfer-Encoding: xchunked', both[1]!) + body + hidden,
      head('Transfer-Encoding: chunked, identity', both[1]!) + body + hidden,
      head('Transfer-Encoding: chunked', 'Transfer-Encoding: identity') + chunked + hidden,
      head('Transfer-Encoding:\x0bchunked', both[1]!) + body + hidden,
      head('X: 1', ' Transfer-Encoding: chunked', both[1]!) + body + hidden,
      head(`Content-Length: ${body.length}`, `Content-Length: ${body.length + hidden.length}`) + body + hidden,
      head(`Content-Length: ${body.length}, ${body.length + hidden.length}`) + body + hidden,
      head(`Content-Length: +${body.length}`) + body + hidden,
      head(`Content-Length: 0x${body.length.toString(16)}`) + body + hidden,
      head(`X: 1\nContent-Length: 0`, both[1]!) + body + hidden,
      head(`X: 1\rContent-Length: 0`, both[1]!) + body + hidden,
      head(`X: 1\0Content-Length: 0`, both[1]!) + body + hidden,
      head(': Content-Length: 0', both[1]!) + body + hidden,
      `${head('Transfer-Encoding: chunked')}${body.length.toString(16)};x=\n${body}\r\n0\r\n\r\n${hidden}`,
      `${head('Transfer-Encoding: chunked')}${body.length.toString(16)}\r\n${body}00\r\n\r\n${hidden}`,
      `${head('Transfer-Encoding: chunked')}fffffffffffffffff${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n${hidden}`,
      head('Host: other', both[1]!) + body,
      `POST http://elsewhere/v1/payments HTTP/1.1\r\nHost: shop\r\n${both[1]}\r\n\r\n${body}`,
    ]) {
      heard = []
      const socket = await connect(plain, text)
      await eventually(async () => socket.told !== '' || socket.destroyed, 'it is answered')
      assert.equal((await ask(plain, '/v1/payments', { body })).status, 200) // what it sent on is heard by now
      socket.destroy()
      for (const one of heard) {
        assert.deepEqual([one.url, one.headers['x-hidden']], ['/v1/payments', undefined], text)
        assert.ok(
          one.headers.host !== undefined && !('x' in one.headers && 'content-length' in one.headers && one.body !== body),
          text,
        )
        assert.equal(one.body, body, text)
      }
    }
  })

  it('over TLS and HTTP/2 too: one Host, no line breaks in headers, bodies as long as they say', {
    skip: !hasOpenssl && 'openssl is missing',
  }, async () => {
    const { cert, key } = makeCertificate(folder, 'pay')
    const certificate = join(folder, 'pay.pem')
    writeFileSync(certificate, readFileSync(cert, 'utf8') + readFileSync(key, 'utf8'), { mode: 0o600 })
    const { port } = await proxyWith({ certificate })
    const body = `entityId=${entity}`
    const asking = (headers: http2.OutgoingHttpHeaders, sent = body) =>
      new Promise<number | string>(resolve => {
        const session = http2.connect(`https://127.0.0.1:${port}`, { ca: readFileSync(cert) })
        const end = (how: number | string) => {
          session.destroy()
          resolve(how)
        }
        session.on('error', ({ message }) => end(message))
        const stream = session.request({ ':method': 'POST', ':path': '/v1/payments', ...headers }, { endStream: false })
        stream.on('response', answer => stream.resume().on('end', () => end(answer[':status']!)))
        stream.on('error', ({ message }) => end(message))
        stream.end(sent)
      })
    // What any stranger can ask for costs little.
    const handshake = (given: ConnectionOptions) =>
      new Promise<string>(resolve => {
        const socket = connectTls({
          port,
          host: '127.0.0.1',
          ca: readFileSync(cert),
          checkServerIdentity: () => undefined,
          ...given,
        })
        socket.on('secureConnect', () => resolve(`${socket.getProtocol()} ${socket.getCipher().name}`))
        socket.on('error', () => resolve('refused'))
        socket.on('close', () => resolve('closed'))
      })
    for (const ecdhCurve of ['X25519', 'P-256']) assert.match(await handshake({ ecdhCurve }), /^TLSv1\.3 TLS_/)
    for (const ecdhCurve of ['ffdhe2048', 'ffdhe8192', 'P-384', 'P-521', 'X448'])
      assert.equal(await handshake({ ecdhCurve }), 'refused', ecdhCurve)
    const older = { maxVersion: 'TLSv1.2' } as const
    assert.equal(await handshake(older), 'TLSv1.2 ECDHE-RSA-AES256-GCM-SHA384')
    for (const ciphers of ['AES128-SHA', 'AES256-GCM-SHA384', 'ECDHE-RSA-AES128-SHA'])
      assert.equal(await handshake({ ...older, ciphers }), 'refused', ciphers)
    const session = http2.connect(`https://127.0.0.1:${port}`, { ca: readFileSync(cert) })
    await new Promise(resolve => session.once('remoteSettings', resolve))
    assert.equal(session.remoteSettings.maxConcurrentStreams, 8)
    session.destroy()
    heard = []
    assert.equal(await asking({ ':authority': 'shop', 'x-forwarded-proto': 'http', 'x-forwarded-for': '192.0.2.1' }), 200)
    const [{ cell, headers }] = heard as [Heard]
    assert.deepEqual([cell, headers.host, headers['x-forwarded-proto']], ['one', 'shop', 'https'])
    assert.match(String(headers['x-forwarded-for']), /, 127\.0\.0\.1$/)

    const hidden = '\r\n\r\nGET /v1/payments/hidden HTTP/1.1\r\nX-Hidden: 1\r\n\r\n'
    for (const [given, sent] of [
      [{ 'x-value': `1${hidden}` }],
      [{ 'x-value': '1\nx-hidden: 1' }],
      [{ 'x-value': '1\0' }],
      [{ ':path': `/v1/payments${hidden}` }],
      [{ ':path': '/v1/payments HTTP/1.1\r\nX-Hidden: 1' }],
      [{ ':method': `POST /v1/payments/hidden HTTP/1.1${hidden}` }],
      [{ ':authority': `shop${hidden}` }],
      [{ ':authority': 'shop', host: 'elsewhere' }],
      [{ 'content-length': String(body.length - 5) }],
      [{ 'content-length': '0' }],
      [{ 'content-length': String(body.length + 5) }],
    ] as [http2.OutgoingHttpHeaders, string?][]) {
      heard = []
      const how = await asking({ ':authority': 'shop', ...given }, sent)
      for (const one of heard) {
        assert.deepEqual([one.url, one.headers['x-hidden'], one.body, how], ['/v1/payments', undefined, body, 200])
        assert.equal(one.headers.host, 'shop')
      }
    }
  })
})

const percent = (text: string): string => [...Buffer.from(text)].map(byte => `%${byte.toString(16).padStart(2, '0')}`).join('')
