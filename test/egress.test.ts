// Which addresses are called for a merchant: every hostile form is refused, and nothing is followed, read or waited for without end.

import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import http from 'node:http'
import net, { type AddressInfo, BlockList, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import tls from 'node:tls'
import { httpTransport, NotSent } from '../src/connectors/transport.ts'
import { type Clock, systemClock, type Timer } from '../src/platform/clock.ts'
import { type Egress, findTarget, mayCall, type Resolve } from '../src/platform/egress/address.ts'
import { caller } from '../src/platform/egress/call.ts'
import { ask } from '../src/platform/http.ts'
import { receiversTls } from '../src/platform/tls.ts'
import { readConfig } from '../src/start/config.ts'
import { hasOpenssl, makeCertificate } from './support/certificate.ts'
import { costsMilliseconds } from './support/costs.ts'
import { eventually } from './support/gateway.ts'

const live: Egress = { allow: new BlockList(), httpsOnly: true, standardPortsOnly: true }
const sandboxed = readConfig({}, '/nonexistent').egress

/** Names of a small world, so that no test asks a real name server. */
const names: Readonly<Record<string, readonly string[]>> = {
  'merchant.example': ['93.184.216.34'],
  'six.example': ['2606:2800:220:1:248:1893:25c8:1946'],
  'inside.example': ['10.0.0.5'],
  'half.example': ['93.184.216.34', '127.0.0.1'],
  'six-half.example': ['93.184.216.34', '::1'],
  'mapped.example': ['::ffff:10.0.0.5'],
  'zoned.example': ['fe80::1%lo0'],
  'none.example': [],
  localhost: ['127.0.0.1', '::1'],
}
const resolve: Resolve = async name => {
  const found = names[name]
  if (!found) throw Object.assign(new Error('no such name'), { code: 'ENOTFOUND' })
  return found.map(address => ({ address, family: net.isIP(address) }))
}
const servers: { close(): unknown }[] = []
after(() => {
  for (const server of servers) server.close()
})

/** A certificate that nobody has signed but its owner, with its key. */
function receiverFiles(): { cert: Buffer; key: Buffer } {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-egress-'))
  const { cert, key } = makeCertificate(folder, 'receiver')
  const files = { cert: readFileSync(cert), key: readFileSync(key) }
  rmSync(folder, { recursive: true })
  return files
}

test('no receiver chooses the group of a key exchange, whose size is our cost', {
  skip: !hasOpenssl && 'openssl is missing on this machine',
}, async () => {
  const files = receiverFiles()
  const why = async (chosen: tls.TlsOptions): Promise<string | undefined> => {
    const server = tls.createServer({ ...files, ...chosen }).listen(0, '127.0.0.1')
    servers.push(server.on('tlsClientError', () => {}))
    await once(server, 'listening')
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/`
    return (await caller(systemClock, sandboxed, async () => [])({ owner: 'a', method: 'POST', url, headers: {}, body: 'x' }))
      .failure
  }
  const old = (ciphers: string) => why({ dhparam: 'auto', ciphers, maxVersion: 'TLSv1.2' })
  assert.equal(await old('DHE-RSA-AES128-GCM-SHA256'), 'EPROTO')
  assert.equal(await old('ECDHE-RSA-AES128-SHA'), 'DEPTH_ZERO_SELF_SIGNED_CERT', 'an old one is spoken to')
  assert.equal(await why({ ecdhCurve: 'ffdhe3072' }), 'EPROTO')
  for (const ecdhCurve of ['X25519', 'P-256', 'P-384', 'P-521', 'auto'])
    assert.equal(await why({ ecdhCurve }), 'DEPTH_ZERO_SELF_SIGNED_CERT', ecdhCurve)
})

test('no receiver begins the handshake of a connection anew', {
  skip: !hasOpenssl && 'openssl is missing on this machine',
}, async () => {
  const files = receiverFiles()
  const server = tls.createServer({ ...files, maxVersion: 'TLSv1.2' }).listen(0, '127.0.0.1')
  servers.push(server)
  await once(server, 'listening')
  const begunAnew = new Promise<boolean>(resolve => {
    server.once('secureConnection', socket => {
      const answer = 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n'
      socket.on('error', () => {}).once('close', () => resolve(false))
      socket.once('data', () => {
        socket.write(answer)
        socket.renegotiate({}, error => resolve(!error))
      })
    })
  })
  const url = `https://localhost:${(server.address() as AddressInfo).port}/`
  const request = ask(url, { ...receiversTls, ca: files.cert }, 1000).on('error', () => {})
  request.end()
  assert.equal(await begunAnew, false)
  request.destroy()
})

test('whoever’s receivers make handshakes costly waits with the next one, and nobody else does', {
  skip: !hasOpenssl && 'openssl is missing on this machine',
}, async t => {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-egress-'))
  const { cert, key } = makeCertificate(folder, 'receiver')
  const server = tls.createServer({ cert: readFileSync(cert), key: readFileSync(key) }).listen(0, '127.0.0.1')
  rmSync(folder, { recursive: true })
  servers.push(server.on('tlsClientError', () => {}))
  await once(server, 'listening')
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const rests: { readonly milliseconds: number; readonly act: () => void }[] = []
  const never: Timer = { cancel() {}, unref: () => never }
  const after: Clock['after'] = (milliseconds, act) => {
    if (milliseconds >= 2000) return systemClock.after(milliseconds, act)
    rests.push({ milliseconds, act })
    return never
  }
  const place = caller({ ...systemClock, after }, sandboxed, async () => [])
  const called = async (owner: string) => {
    const { failure } = await place({ owner, method: 'POST', url, headers: {}, body: 'x' })
    assert.equal(failure, 'DEPTH_ZERO_SELF_SIGNED_CERT')
  }
  let costs = 0
  t.mock.method(process, 'cpuUsage', (before?: NodeJS.CpuUsage) => {
    const user = before ? costs : 0
    if (before) costs = 0
    return { user, system: 0 }
  })
  costs = 8000
  await called('a')
  await called('a')
  assert.equal(rests.length, 0)
  costs = 8000 + 5000
  let over = 0
  const count = () => {
    over++
  }
  const waiting = [called('a').then(count), called('a').then(count)]
  await eventually(async () => rests.length > 0, 'they rest')
  for (let others = 0; others < 5; others++) await called('b')
  assert.equal(over, 0)
  assert.deepEqual(
    rests.map(({ milliseconds }) => milliseconds),
    [50],
  )
  rests[0]!.act()
  await Promise.all(waiting)
})

test('a name of so many addresses is called, and none of more, whatever they are', async () => {
  const found = async (count: number) => {
    const asked: number[] = []
    const addresses = Array.from({ length: count }, (_, at) => ({
      family: 4,
      get address() {
        asked.push(at)
        return `93.184.216.${at}`
      },
    }))
    const target = await findTarget('https://many.example/', live, async () => addresses)
    return { target, looked: new Set(asked).size }
  }
  const most = await found(64)
  assert.ok('address' in most.target)
  assert.equal(most.looked, 64)
  assert.deepEqual(await found(65), { target: { refused: 'resolves to more than 64 addresses' }, looked: 0 })
})

test('in live mode only public addresses over https are called', async () => {
  const allowed = [
    'https://merchant.example/hook',
    'https://six.example',
    'https://MERCHANT.example.:443/a?b=c',
    'https://93.184.216.34/',
  ]
  for (const url of allowed) assert.ok('address' in (await findTarget(url, live, resolve)), url)
  const refused = [
    'http://merchant.example/',
    'file:///etc/passwd',
    'ftp://merchant.example/',
    'gopher://merchant.example/',
    'javascript:alert(1)',
    'merchant.example/hook',
    '',
    'https://',
    'https://user@merchant.example/',
    'https://user:secret@merchant.example/',
    'https://merchant.example:22/',
    'https://merchant.example:8443/',
    'https://127.0.0.1/',
    'https://2130706433/',
    'https://0x7f.1/',
    'https://0177.0.0.1/',
    'https://127.1/',
    'https://①②⑦.⓪.⓪.①/',
    'https://127。0。0。1/',
    'https://0/',
    'https://0.0.0.0/',
    'https://[::1]/',
    'https://[::]/',
    'https://[::ffff:127.0.0.1]/',
    'https://[::ffff:7f00:1]/',
    'https://[64:ff9b::7f00:1]/',
    'https://[2002:7f00:1::]/',
    'https://[2001:db8::1]/',
    'https://[2001::1]/',
    'https://[fd00::1]/',
    'https://[fe80::1]/',
    'https://[ff02::1]/',
    'https://[100::1]/',
    'https://169.254.169.254/latest/meta-data/',
    'https://10.1.2.3/',
    'https://172.16.0.1/',
    'https://172.31.255.255/',
    'https://192.168.0.1/',
    'https://100.64.0.1/',
    'https://198.18.0.1/',
    'https://192.0.2.1/',
    'https://203.0.113.9/',
    'https://224.0.0.1/',
    'https://255.255.255.255/',
    'https://localhost/',
    'https://LOCALHOST./',
    'https://inside.example/',
    'https://half.example/',
    'https://six-half.example/',
    'https://mapped.example/',
    'https://zoned.example/',
    'https://none.example/',
    'https://unknown.example/',
  ]
  for (const url of refused) assert.ok('refused' in (await findTarget(url, live, resolve)), url)
})

test('both sides of the special networks', () => {
  for (const [inside, outside] of [
    ['9.255.255.255', undefined],
    ['172.32.0.0', '172.31.255.255'],
    ['172.15.255.255', '172.16.0.0'],
    ['100.63.255.255', '100.64.0.0'],
    ['100.128.0.0', '100.127.255.255'],
    ['169.253.255.255', '169.254.0.0'],
    ['223.255.255.255', '224.0.0.0'],
    ['2001:200::', '2001:1ff:ffff::'],
    ['2003::', '2002:ffff::'],
    ['2000::1', '1fff:ffff::1'],
    ['3ffe::1', '3fff:fff::1'],
  ] as const) {
    assert.equal(mayCall(inside, live), true, inside)
    if (outside !== undefined) assert.equal(mayCall(outside, live), false, outside)
  }
})

test('a sandbox calls its own machine and network, but not the metadata of a cloud', async () => {
  for (const url of [
    'http://127.0.0.1:3000/',
    'http://[::1]:3000/',
    'http://localhost/',
    'http://10.0.0.5/',
    'https://inside.example:8443/',
  ])
    assert.ok('address' in (await findTarget(url, sandboxed, resolve)), url)
  for (const url of ['http://169.254.169.254/', 'http://127.0.0.1:22/', 'file:///etc/passwd', 'http://[::ffff:169.254.169.254]/'])
    assert.ok('refused' in (await findTarget(url, sandboxed, resolve)), url)
})

test('no setting opens the way to the metadata of a cloud, however its address is written', () => {
  const everything = readConfig({ EGRESS_ALLOW: '0.0.0.0/0,::/0' }, '/nonexistent').egress
  assert.equal(mayCall('fd00::1', everything), true)
  for (const address of [
    '169.254.169.254',
    '::ffff:169.254.169.254',
    '::ffff:a9fe:a9fe',
    '::a9fe:a9fe',
    '64:ff9b::a9fe:a9fe',
    '64:ff9b:1::169.254.169.254',
    '2002:a9fe:a9fe::',
    '2002:a9fe:a9fe::1',
    '::ffff:0:a9fe:a9fe',
    // Behind prefixes of one's own: /32, /40, /48, /56, /64; and by Teredo.
    '2a00:1:a9fe:a9fe::',
    '2a00:1:0a9:fea9:fe::',
    '64:ff9b:1:a9fe:a9:fe00::',
    '2a00:1:2:3a9:fe:a9fe::',
    '2a00:1:2:3:a9:fea9:fe00::',
    '2001:0:1:2::5601:5601',
    'fd00:c1::a9fe:a9fe',
    'fd00:42::42',
    'fd00:ec2:0:0::254',
    'fd00:ec2::253',
    '100.96.0.96',
    '169.254.0.23',
    '169.254.42.42',
  ])
    assert.equal(mayCall(address, everything), false, address)
})

test('the setting names what live mode may call beside the public internet', () => {
  const key = (name: string) => hash('sha256', `a key for tests, ${name}`)
  const environment = {
    MODE: 'live',
    PUBLIC_URL: 'https://pay.example',
    TRUSTED_PROXY: '10.0.0.1',
    SEAL_KEY: key('seal'),
    LOOKUP_KEY: key('lookup'),
  }
  assert.equal(mayCall('10.2.0.1', readConfig(environment, '/nonexistent').egress), false)
  const { egress } = readConfig({ ...environment, EGRESS_ALLOW: '10.2.0.0/16' }, '/nonexistent')
  assert.equal(mayCall('10.2.0.1', egress), true)
  assert.equal(mayCall('10.3.0.1', egress), false)
  assert.throws(() => readConfig({ EGRESS_ALLOW: 'everything' }, '/nonexistent'), /EGRESS_ALLOW/)
})

test('the connection goes to the address that was checked, not to what the name says later', async () => {
  const port = await serving((_, response) => response.end('here'))
  const answers = [['127.0.0.1'], ['203.0.113.9']]
  let asked = 0
  const rebinding: Resolve = async () => answers[Math.min(asked++, 1)]!.map(address => ({ address, family: 4 }))
  const called = await caller(
    systemClock,
    sandboxed,
    rebinding,
  )({ owner: 'a', method: 'GET', url: `http://rebinding.example:${port}/`, headers: {} })
  assert.deepEqual([called.status, called.answer, asked], [200, 'here', 1])
})

const short = { answerBytes: 16, bodySeconds: 0.3 }
const call = (port: number, seconds = 1) =>
  caller(systemClock, sandboxed, resolve, undefined, { ...short, seconds })({
    owner: 'a',
    method: 'POST',
    url: `http://127.0.0.1:${port}/`,
    headers: {},
    body: 'x',
  })

test('a redirect is an answer, and is not followed', async () => {
  let asked = 0
  const port = await serving((_, response) => {
    asked += 1
    response.writeHead(307, { Location: 'http://169.254.169.254/' }).end()
  })
  assert.deepEqual([(await call(port)).status, asked], [307, 1])
})

test('an endless answer is cut off', async () => {
  const port = await serving((_, response) => {
    const more = () => response.write('x'.repeat(65_536), error => void (error ? undefined : setImmediate(more)))
    more()
  })
  const called = await call(port)
  assert.deepEqual([called.status, called.answer], [200, 'x'.repeat(16)])
})

for (const [what, said, why] of [
  ['that an answer will come', 'HTTP/1.1 103 Early Hints\r\n\r\n', /too often/],
  ['to go on', 'HTTP/1.1 100 Continue\r\n\r\n', /too often/],
  ['nothing, at length', '\r\n'.repeat(1000), /too long/],
] as const)
  test(`whoever goes on saying ${what} is left`, async () => {
    let told = 0
    const server = createServer(socket => {
      const more = () =>
        socket.write(said.repeat(100), error => {
          told += 100
          if (!error) setImmediate(more)
        })
      socket.on('error', () => {}).once('data', more)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const called = await call(port, 20)
    assert.match(called.failure!, why)
    const transported = httpTransport(
      { method: 'POST', url: `http://127.0.0.1:${port}/`, body: 'x' },
      AbortSignal.timeout(20_000),
    )
    await assert.rejects(
      transported,
      error => error instanceof Error && !(error instanceof NotSent) && /no answer/.test(error.message),
    )
    assert.ok(told > 0)
    server.close()
  })

test('whoever goes on in another protocol has not answered', async () => {
  const server = createServer(socket => {
    socket
      .on('error', () => {})
      .on('data', () => socket.write('HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nmore'))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const closed = new Promise(resolve => server.once('connection', socket => socket.once('close', resolve)))
  assert.match((await call(port, 20)).failure!, /another protocol/)
  await closed
  await assert.rejects(
    httpTransport({ method: 'POST', url: `http://127.0.0.1:${port}/`, body: 'x' }, AbortSignal.timeout(20_000)),
    error => error instanceof Error && !(error instanceof NotSent) && /no answer/.test(error.message),
  )
  server.close()
})

test('a body that stalls is not waited for, an answer that never comes is a failure in time', async () => {
  const stalled = await call(await serving((_, response) => void response.write('begun')))
  assert.deepEqual([stalled.status, stalled.answer], [200, 'begun'])
  assert.ok(stalled.milliseconds < 900)
  const silent = await call(await serving(() => {}))
  assert.deepEqual([silent.status, silent.failure], [undefined, 'no answer within 1 s'])
  const refused = await call(await closedPort())
  assert.deepEqual([refused.status, refused.failure], [undefined, 'ECONNREFUSED'])
})

test('an answer whose body is still open when the time of the call is over has come in time', async () => {
  const port = await serving((_, response) => void response.write('begun'))
  const late: { milliseconds: number; act: () => void }[] = []
  const clock: Clock = {
    ...systemClock,
    after: (milliseconds, act) => {
      const timer = { milliseconds, act }
      late.push(timer)
      const made: Timer = { cancel: () => void late.splice(late.indexOf(timer), 1), unref: () => made }
      return made
    },
  }
  const called = caller(clock, sandboxed, resolve, undefined, { ...short, seconds: 1 })({
    owner: 'a',
    method: 'POST',
    url: `http://127.0.0.1:${port}/`,
    headers: {},
  })
  await eventually(async () => late.some(one => one.milliseconds === 300), 'the head has come')
  for (const one of [...late]) if (one.milliseconds === 1000) one.act()
  for (const one of [...late]) if (one.milliseconds === 300) one.act()
  assert.deepEqual([(await called).status, (await called).failure], [200, undefined])
})

test('what a receiver writes is kept printable', async () => {
  const port = await serving((_, response) => response.end('a\u0000b\u001b[31m\n'))
  assert.equal((await call(port)).answer, 'a\ufffdb\ufffd[31m\n')
})

describe('of what a receiver writes no card number and no CVV is kept', () => {
  const card = '4539578763621486'
  const calling = async (answer: http.RequestListener) =>
    caller(systemClock, sandboxed, resolve, undefined, { seconds: 20, answerBytes: 512, bodySeconds: 0.3 })({
      owner: 'a',
      method: 'POST',
      url: `http://127.0.0.1:${await serving(answer)}/`,
      headers: {},
      body: 'x',
    })
  for (const [said, kept] of [
    [card, 'xxxxxxxxxxxx1486'],
    [`refused card ${card} cvv 987`, 'refused card xxxxxxxxxxxx1486 cvv xxx'],
    [`{"number":"4539 5787 6362 1486","cvc":"987"}`, '{"number":"xxxx xxxx xxxx 1486","cvc":"xxx"}'],
    ['<p>cvv: 987</p>', '<p>cvv: xxx</p>'],
    ['order 4539578763621487, CVC 9421', 'order 4539578763621487, CVC 9421'],
    ['<h1>Error 500</h1>', '<h1>Error 500</h1>'],
  ] as const)
    for (const status of [200, 500])
      test(`${status}: ${said}`, async () => {
        assert.equal((await calling((_, response) => response.writeHead(status).end(said))).answer, kept)
      })

  test('a number is known wherever the answer is cut', async () => {
    // It begins where the last bytes that are kept end, crosses that place, ends there, and stands before and behind it.
    for (let before = 490; before <= 515; before++) {
      const kept = (
        await calling((_, response) => response.end(`${'é'.repeat(100)}${'a'.repeat(before - 100)} ${card} and more`))
      ).answer
      assert.equal(kept, `${'é'.repeat(100)}${'a'.repeat(before - 100)} xxxxxxxxxxxx1486 and more`.slice(0, kept.length))
      assert.ok(kept.length > 480 && kept.length <= 512)
    }
  })

  test('so it is where the receiver goes no further, or has not yet', async () => {
    for (const sent of [8, 15]) {
      const stalled = await calling((_, response) => void response.write(`refused ${card.slice(0, sent)}`))
      assert.equal(stalled.answer, 'refused ')
      const lost = await calling((_, response) => response.write(`refused ${card.slice(0, sent)}`, () => response.destroy()))
      assert.equal(lost.answer, 'refused ')
    }
    const halves = await calling((_, response) => {
      response.write(`${'a'.repeat(500)} ${card.slice(0, 11)}`, () =>
        setTimeout(() => response.end(`${card.slice(11)} there`), 50),
      )
    })
    assert.equal(halves.answer, `${'a'.repeat(500)} xxxxxxxxxxx`)
    const whole = await calling((_, response) => response.end('order 453957876'))
    assert.equal(whole.answer, 'order 453957876', 'what ends by itself is whole')
  })

  test('a long hostile answer costs milliseconds', async () => {
    for (const text of ['4 2 '.repeat(250_00), '%2542%2530%34'.repeat(8000), '<4'.repeat(50_000)])
      await costsMilliseconds(400, () => calling((_, response) => response.end(text)), text.slice(0, 5))
  })
})

async function serving(answer: http.RequestListener): Promise<number> {
  const server = http.createServer(answer)
  servers.push({
    close() {
      server.close()
      server.closeAllConnections()
    },
  })
  await new Promise<void>(ready => server.listen(0, '127.0.0.1', ready))
  return (server.address() as AddressInfo).port
}

async function closedPort(): Promise<number> {
  const server = net.createServer()
  await new Promise<void>(ready => server.listen(0, '127.0.0.1', ready))
  const { port } = server.address() as AddressInfo
  await new Promise(done => server.close(done))
  return port
}

test('where clouds give out credentials is never called, whatever is allowed', () => {
  const allow = new BlockList()
  allow.addSubnet('0.0.0.0', 0, 'ipv4')
  allow.addSubnet('::', 0, 'ipv6')
  const open: Egress = { allow, httpsOnly: false, standardPortsOnly: false }
  for (const address of [
    '169.254.169.254',
    '169.254.170.2',
    '100.100.100.200',
    'fd00:ec2::254',
    'FD00:0EC2:0::0254',
    'fd20:ce::254',
    '168.63.129.16',
  ])
    for (const egress of [open, sandboxed]) assert.ok(!mayCall(address, egress), address)
  assert.ok(!mayCall('::ffff:169.254.169.254', open))
  assert.ok(!mayCall('::ffff:a9fe:a9fe', open))
  for (const address of ['10.0.0.5', 'fd00::5']) assert.ok(mayCall(address, sandboxed), address)
})
