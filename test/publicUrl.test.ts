// Under which address a caller reaches a sandbox is how the addresses begin that it is given, to the end of the payment: on this machine, from another, and
// through a port that is forwarded. One that listens on every address names none of them by 0.0.0.0.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { networkInterfaces } from 'node:os'
import { after, before, describe, it } from 'node:test'
import type { OperatorError } from '../src/platform/errors.ts'
import { callable } from '../src/platform/network.ts'
import { readConfig } from '../src/start/config.ts'
import { ended } from './support/ended.ts'
import { type Body, eventually, type Fields, sandbox, type TestGateway, testGateway, visa } from './support/gateway.ts'
import { sandboxDeveloper, signedIn } from './support/office.ts'
import { makeShopper } from './support/shopper.ts'

const shop = 'https://shop.example/back'
let gateway: TestGateway
let forward: Server
let port: number
before(async () => {
  gateway = await testGateway({ environment: { HOST: '0.0.0.0', SANDBOX_OPEN: 'yes', SANDBOX_HOSTS: 'pay.local' } })
  port = Number(new URL(gateway.baseUrl).port)
  forward = createServer(near => {
    const far = connect(port, '127.0.0.1')
    for (const socket of [near, far]) socket.on('error', () => {})
    near.pipe(far).pipe(near)
  })
  await once(forward.listen(0, 'localhost'), 'listening')
})
after(async () => {
  forward?.close()
  await gateway?.stop()
})

/** Of this machine in its network; where there is none, another of the machine itself. */
const ofNetwork = (): string =>
  Object.values(networkInterfaces())
    .flat()
    .find(one => one?.family === 'IPv4' && !one.internal)?.address ?? '127.0.0.2'

const ways: readonly (readonly [name: string, base: () => string])[] = [
  ['this machine', () => `http://127.0.0.1:${port}`],
  ['its address in the network', () => `http://${ofNetwork()}:${port}`],
  ['a port that is forwarded', () => `http://localhost:${(forward.address() as AddressInfo).port}`],
]

async function ask(base: string, path: string, fields: Fields): Promise<Body> {
  const response = await fetch(`${base}${path}`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${sandbox.accessToken}` },
    body: new URLSearchParams({ entityId: sandbox.entityId, ...fields }),
  })
  return response.json()
}

const debit = { amount: '92.00', currency: 'EUR', paymentType: 'DB', shopperResultUrl: shop }
const payer = {
  'customer.givenName': 'Joao',
  'customer.surname': 'da Silva',
  'customer.merchantCustomerId': 'customer-1',
  'customer.email': 'joao@example.com',
  'customer.ip': '192.0.2.1',
  'billing.street1': 'Rua São José 12',
  'billing.city': 'São Paulo',
  'billing.state': 'SP',
  'billing.postcode': '01310100',
  'billing.country': 'BR',
  'customParameters[CUSTOM_CPF_number]': '11144477735',
  'customParameters[merchant_sitename]': 'Loja',
  'customParameters[product]': 'Livro',
}
const redirecting: Readonly<Record<string, Fields>> = {
  'a challenge of 3-D Secure with its hidden frame': {
    ...visa,
    'card.number': '4200000000000042',
    'customParameters[3DS2_enrolled]': 'true',
  },
  'the wallet': { paymentBrand: 'PAYPAL' },
  'an online transfer': { paymentBrand: 'SOFORTUEBERWEISUNG' },
}

for (const [name, base] of ways)
  describe(`through ${name}`, () => {
    for (const [what, fields] of Object.entries(redirecting))
      it(`${what} begins and ends there`, async () => {
        const asked: string[] = []
        const shopper = makeShopper('en', url => {
          asked.push(url)
          return url
        })
        const { id, redirect } = await ask(base(), '/v1/payments', { ...debit, ...fields })
        assert.ok(redirect?.url.startsWith(`${base()}/r/`), redirect?.url)
        const { location } = await shopper.walk(`${redirect.url}?auto=approve`, base())
        assert.equal(new URL(location!).origin, new URL(shop).origin, location)
        assert.deepEqual(
          asked.filter(url => !url.startsWith(`${base()}/`)),
          [],
        )
        assert.ok(asked.some(url => url.startsWith(`${base()}/simulators/`)))
        const read = await gateway.get(`/v1/payments/${id}`, { entityId: sandbox.entityId })
        assert.equal(read.body.result.code, '000.100.110', read.text)
      })

    it('links of slips and checkouts, the reference and pages lead there', async () => {
      const slip = await ask(base(), '/v1/payments', {
        ...debit,
        paymentType: 'PA',
        currency: 'BRL',
        paymentBrand: 'BOLETO',
        ...payer,
      })
      assert.ok(slip.resultDetails?.EXTERNAL_SYSTEM_LINK?.startsWith(`${base()}/slip/`), JSON.stringify(slip))
      const page = await (await fetch(slip.resultDetails.EXTERNAL_SYSTEM_LINK)).text()
      assert.ok(page.includes(`${base()}/slip/`), 'its page names its own address')
      const checkout = await ask(base(), '/v1/checkouts', { ...debit, validMinutes: '30' })
      assert.ok(checkout.link?.startsWith(`${base()}/pay/`), JSON.stringify(checkout))
      const { servers } = (await (await fetch(`${base()}/openapi.json`)).json()) as { servers: { url: string }[] }
      assert.deepEqual(servers, [{ url: base() }])
    })
  })

/** The address of a redirect that a request with these lines is given. */
async function redirectUrl(version: string, ...lines: string[]): Promise<string> {
  const body = new URLSearchParams({ entityId: sandbox.entityId, ...debit, paymentBrand: 'PAYPAL' }).toString()
  const head = [
    `POST ${lines[0]!.startsWith('http') ? lines.shift() : '/v1/payments'} HTTP/${version}`,
    ...lines,
    `Authorization: Bearer ${sandbox.accessToken}`,
    'Content-Type: application/x-www-form-urlencoded',
    `Content-Length: ${body.length}`,
    'Connection: close',
  ]
  const socket = connect(port, '127.0.0.1').setEncoding('utf8')
  let got = ''
  socket.on('data', text => {
    got += text
  })
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
  await ended(socket)
  return /"url":"([^"]*)\/r\//.exec(got)?.[1] ?? got.split('\r\n')[0]!
}

it('a Host that is accepted is followed as it is meant, and no other', async () => {
  const own = `http://127.0.0.1:${port}`
  const rows: readonly (readonly [expected: string, version: string, ...lines: string[]])[] = [
    ['http://localhost:8443', '1.1', 'Host: LOCALHOST:8443'],
    ['http://localhost', '1.1', 'Host: localhost:80'],
    ['http://pay.local', '1.1', 'Host: pay.local'],
    ['http://[::1]:9', '1.1', 'Host: [::1]:9'],
    // A target that is a whole address names the host; what stands in Host is not looked at.
    ['http://localhost:7', '1.1', `http://localhost:7/v1/payments`, 'Host: evil.example'],
    // Where nothing can be followed stands the address of HOST and PORT, and never 0.0.0.0.
    [own, '1.0', 'X-Nothing: here'],
    [own, '1.1', 'Host: 0.0.0.0:8080'],
    [own, '1.1', 'Host: localhost:99999'],
    // Only a proxy that is trusted tells of TLS.
    ['http://localhost:1', '1.1', 'Host: localhost:1', 'X-Forwarded-Proto: https'],
    ['HTTP/1.1 400 Bad Request', '1.1', 'Host: evil.example'],
  ]
  for (const [expected, version, ...lines] of rows) assert.equal(await redirectUrl(version, ...lines), expected, lines.join())
})

it('simulators send nobody away from the gateway, under whichever of its addresses', async () => {
  const sent = async (url: string) => {
    const threeDSMethodData = Buffer.from(
      JSON.stringify({ threeDSServerTransID: 'x', threeDSMethodNotificationURL: url }),
    ).toString('base64url')
    const body = new URLSearchParams({ threeDSMethodData })
    return (await fetch(`${gateway.baseUrl}/simulators/acs/method`, { method: 'POST', body })).status
  }
  for (const [, base] of ways) assert.equal(await sent(`${base()}/r/methodDone/x`), 200)
  for (const url of ['https://evil.example/r/x', 'http://localhost.evil.example/r/x', 'http://192.0.2.1/r/x', 'nowhere'])
    assert.equal(await sent(url), 404, url)
})

it('a trusted proxy’s TLS is followed, PUBLIC_URL before any Host, and without either the address that is listened on', async () => {
  const url = async (environment: Record<string, string>, base: string, headers: Record<string, string>) => {
    const other = await testGateway({ environment })
    try {
      const { body } = await other.post('/v1/payments', { entityId: sandbox.entityId, ...debit, paymentBrand: 'PAYPAL' }, headers)
      return body.redirect.url.replace(other.baseUrl.slice('http://'.length), base).split('/r/')[0]
    } finally {
      await other.stop()
    }
  }
  assert.equal(await url({ TRUSTED_PROXY: '127.0.0.1' }, 'here', { 'X-Forwarded-Proto': 'https' }), 'https://here')
  assert.equal(await url({ PUBLIC_URL: 'http://pay.invalid' }, 'here', {}), 'http://pay.invalid')
})

it('PUBLIC_URL is as browsers write an origin, however it was spelled', () => {
  for (const [given, origin] of [
    ['https://Pay.Example:443', 'https://pay.example'],
    ['http://pay.example:80', 'http://pay.example'],
    ['https://bücher.example', 'https://xn--bcher-kva.example'],
    ['https://pay.example:8443', 'https://pay.example:8443'],
  ] as const)
    assert.equal(readConfig({ PUBLIC_URL: given, SANDBOX_OPEN: 'yes' }, '/nonexistent').publicUrl, origin)
  for (const given of [
    'https://pay.example;',
    'https://pay.example,',
    "https://'pay.example'",
    'https://pay.example&x',
    'https://[::1',
  ])
    assert.throws(
      () => readConfig({ PUBLIC_URL: given, SANDBOX_OPEN: 'yes' }, '/nonexistent'),
      /PUBLIC_URL must be a scheme and a host/,
      given,
    )
  for (const given of ['https://[fd00::1]:8443', 'https://pay_1.internal', 'https://10.0.0.1'])
    assert.equal(readConfig({ PUBLIC_URL: given, SANDBOX_OPEN: 'yes' }, '/nonexistent').publicUrl, given)
})

it('what listens on every address is reached at the own machine', () => {
  const rows: Readonly<Record<string, string>> = {
    '0.0.0.0': '127.0.0.1',
    '0': '127.0.0.1',
    '::': '[::1]',
    '::0': '[::1]',
    '::ffff:0.0.0.0': '127.0.0.1',
    '127.0.0.1': '127.0.0.1',
    'fd00::1': '[fd00::1]',
    'pay.internal': 'pay.internal',
  }
  for (const [host, expected] of Object.entries(rows)) {
    assert.equal(callable(host), expected)
    const { publicUrl } = readConfig({ HOST: host, PORT: '8080', SANDBOX_OPEN: 'yes', DATA_DIR: '/nonexistent' }, '/nonexistent')
    assert.equal(publicUrl, `http://${expected}:8080`)
  }
  assert.throws(
    () => readConfig({ MODE: 'live' }, '/nonexistent'),
    (error: OperatorError) => /PUBLIC_URL is required/.test(error.message),
  )
})

describe('the console', () => {
  it('shows the address of a redirect as a QR code, to who may see the payment and while its shopper is awaited', async () => {
    const developer = await sandboxDeveloper(gateway)
    const [, base] = ways[1]!
    const { id, redirect } = await ask(base(), '/v1/payments', { ...debit, paymentBrand: 'PAYPAL' })
    const address = `/office/console/code/${sandbox.merchantId}/${id}`
    const listed = async () => (await developer.ask('/office/console')).text.includes(address)
    await eventually(listed, 'the payment is listed with its code')
    const page = await developer.ask(address)
    assert.match(page.text, /<svg[^>]*>\s*<path/)
    assert.ok(page.text.includes(redirect.url))
    const other = await signedIn(gateway, 'developer', ['5a11d0000000000000000000000000ff'])
    assert.equal((await other.ask(address)).status, 404)
    await makeShopper().walk(`${redirect.url}?auto=approve`, base())
    await eventually(async () => !(await listed()), 'the code is gone')
    assert.equal((await developer.ask(address)).status, 404)
  })
})
