// Cells behind a real HAProxy: whatever a request is known by leads to the cell of its merchant, and what is known by nothing reaches none.

import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import http2 from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { divisionId, type Shop, seedOf, shopOf, spanningToken } from '../scripts/cells/shops.ts'
import { limits } from '../src/contract/limits.ts'
import { applySeed } from '../src/merchants/seed.ts'
import { systemClock, systemRandom } from '../src/platform/clock.ts'
import { renewMap } from '../src/start/cellMap.ts'
import { startCells, startProxy, type TestCells, withoutHaproxy } from './support/cells.ts'
import { hasOpenssl, makeCertificate } from './support/certificate.ts'
import { type Body, eventually, type Fields, testGateway, testKeys, visa } from './support/gateway.ts'
import { commandLine } from './support/process.ts'

const [one, two] = [shopOf(1), shopOf(2)]
let cells: TestCells

type Asked = { readonly status: number; readonly body: Body; readonly text: string; readonly headers: Headers }

async function ask(path: string, init: RequestInit & { duplex?: 'half' } = {}): Promise<Asked> {
  const answer = await fetch(`${cells.url}${path}`, { redirect: 'manual', ...init })
  const text = await answer.text()
  const body = answer.headers.get('content-type')?.startsWith('application/json') ? JSON.parse(text) : undefined
  return { status: answer.status, body, text, headers: answer.headers }
}
const bearer = (token: string) => ({ Authorization: `Bearer ${token}` })
const post = (path: string, token: string, fields: Fields, headers = {}) =>
  ask(path, { method: 'POST', body: new URLSearchParams(fields), headers: { ...bearer(token), ...headers } })
const debit = { paymentType: 'DB', amount: '92.00', currency: 'EUR', ...visa }
const pay = (shop: Shop, fields: Fields = {}) =>
  post('/v1/payments', shop.token, { entityId: shop.channelId, ...debit, ...fields })

/** In which cells a payment is. */
async function cellsWith(id: string): Promise<string[]> {
  const found = await Promise.all(
    Object.entries(cells.gateways).map(async ([name, { pool }]) => {
      const { rowCount } = await pool.query('select from payments where id = $1', [id])
      return rowCount === 0 ? [] : [name]
    }),
  )
  return found.flat()
}
/** What gateways answered since the last look, but to the proxy itself. */
let looked: Record<string, number> = {}
function answeredByCells(): string[] {
  const since = looked
  looked = Object.fromEntries(Object.entries(cells.gateways).map(([name, { logged }]) => [name, logged.length]))
  return Object.entries(cells.gateways)
    .flatMap(([name, { logged }]) => logged.slice(since[name] ?? 0))
    .filter(line => !line.includes('/health/ready'))
}

describe('before three cells', { skip: withoutHaproxy }, () => {
  before(async () => {
    cells = await startCells({ one: [1], two: [2], three: [3] })
  })
  after(() => cells?.stop())

  it('a payment goes to the cell of its channel, and to no other', async () => {
    for (const [name, shop] of Object.entries({ one, two, three: shopOf(3) })) {
      const { status, body } = await pay(shop)
      assert.equal(status, 200, JSON.stringify(body))
      assert.deepEqual(await cellsWith(body.id), [name])
      const read = await ask(`/v1/payments/${body.id}?entityId=${shop.channelId}`, { headers: bearer(shop.token) })
      assert.equal(read.body.result.code, '000.100.110')
    }
  })

  it('by the older name of the entity, by an entity that is written with percent signs, and by one at the end of a long body', async () => {
    const { entityId, ...older } = { entityId: '', ...debit, 'authentication.entityId': two.channelId }
    assert.equal((await post('/v1/payments', two.token, older)).status, 200)
    const written = [...two.channelId].map(sign => `%${sign.charCodeAt(0).toString(16)}`).join('')
    const form = (length: number) => `${new URLSearchParams(debit)}&filler=${'x'.repeat(length)}&entityId=${written}`
    const headers = { ...bearer(spanningToken), 'Content-Type': 'application/x-www-form-urlencoded' }
    for (const length of [0, 20_000, 261_000]) {
      const { status, body, text } = await ask('/v1/payments', { method: 'POST', headers, body: form(length) })
      assert.equal(status, 200, text)
      assert.deepEqual(await cellsWith(body.id), ['two'], `${length}`)
    }
    const stream = new Blob([form(200_000)]).stream()
    const inPieces = await ask('/v1/payments', { method: 'POST', headers, body: stream, duplex: 'half' })
    assert.equal(inPieces.status, 200, inPieces.text)
    const over = await ask('/v1/payments', { method: 'POST', headers, body: form(263_000) })
    assert.equal(over.status, 413)
    assert.equal(over.body.result.code, '200.100.103')
  })

  it('by the token, where no entity is named', async () => {
    const { body } = await pay(two)
    const { entityId: _, ...without } = { entityId: '', ...debit }
    const made = await post('/v1/payments', two.token, without)
    assert.equal(made.status, 200, made.text)
    assert.deepEqual(await cellsWith(made.body.id), ['two'])
    assert.equal((await ask(`/v1/payments/${body.id}`, { headers: bearer(two.token) })).status, 200)
    assert.equal((await ask(`/v1/payments/${body.id}`, { headers: { Authorization: `bearer  ${two.token}` } })).status, 200)
  })

  it('a token of before proxies asked for it is known when it was sent once; a password never is', async () => {
    const { pool } = cells.gateways.two!
    const known = async () =>
      (await pool.query(`select label from access_tokens where route_hash is not null order by label`)).rows
    const all = await known()
    assert.deepEqual(all, [{ label: '2' }, { label: 'all' }])
    await pool.query(`update access_tokens set route_hash = null`)
    await pool.query(`select pg_notify('tollgate_directory', '')`)
    await eventually(async () => (await pay(two)).status === 200 && (await known()).length === 1, 'it was sent')
    assert.deepEqual(await known(), [{ label: '2' }])
    await cells.gateways.two!.pay()
    assert.equal((await pay({ ...two, token: spanningToken })).status, 200)
    await eventually(async () => (await known()).length === 2, 'the other one too')
    assert.deepEqual(await known(), all)
    // What an older gateway took for one of chance, and kept so that it could be found by trying.
    const passwords = `update access_tokens set route_hash = token_hash, legacy = false where legacy returning id`
    const { rows } = await pool.query(passwords)
    assert.equal(rows.length, 1)
    await pool.query(`select pg_notify('tollgate_directory', '')`)
    await eventually(async () => {
      await cells.gateways.two!.pay()
      return (await known()).length === 2
    }, 'its hash is gone')
    assert.deepEqual(await known(), all)
    const { rows: again } = await pool.query('select id from access_tokens where legacy')
    assert.deepEqual(again, rows)
  })

  it('a token that spans the cells is good in each, and needs an entity', async () => {
    for (const shop of [one, two]) {
      const { status, body } = await pay({ ...shop, token: spanningToken })
      assert.equal(status, 200)
      assert.equal(
        (await ask(`/v1/payments/${body.id}?entityId=${shop.channelId}`, { headers: bearer(spanningToken) })).status,
        200,
      )
      answeredByCells()
      const without = await ask(`/v1/payments/${body.id}`, { headers: bearer(spanningToken) })
      assert.equal(without.status, 400)
      assert.equal(without.body.result.code, '200.300.407')
      assert.deepEqual(answeredByCells(), [])
    }
  })

  it('a token for merchants of two cells is answered as by one installation, whatever is asked, by the proxy and by each gateway', async () => {
    const token = 'Sp7anTz9KcXe2VbLyQhNu8GpJs6DfAo3Zk'
    const { psp, divisions } = seedOf([1, 2])
    const seed = { psp, divisions: divisions!, tokens: [{ label: 'two', token, entities: [one.merchantId, two.merchantId] }] }
    const file = `${cells.file}.seed`
    writeFileSync(file, JSON.stringify(seed), { mode: 0o600 })
    for (const _ of ['made', 'there already']) {
      const seeded = await commandLine({}, 'seed', file, '--cells', cells.file)
      assert.equal(seeded.code, 0, seeded.out)
    }
    const whole = await testGateway({ seed })
    try {
      const answered = async (base: string) => {
        const ask = async (method: string, path: string, fields: Fields, entityId?: string) => {
          const form = new URLSearchParams({ ...fields, ...(entityId && { entityId }) })
          const url = `${base}${path}${method === 'POST' ? '' : `?${form}`}`
          const answer = await fetch(url, { method, headers: bearer(token), ...(method === 'POST' && { body: form }) })
          const body = (await answer.json()) as Body
          return { id: body.id, told: [method, path.replace(/[0-9a-f]{32}/, 'ID'), answer.status, body.result.code] }
        }
        const told = []
        for (const { channelId } of [one, two]) {
          const { id, told: paid } = await ask('POST', '/v1/payments', debit, channelId)
          told.push(paid)
          const checkout = await ask('POST', '/v1/checkouts', { paymentType: 'DB', amount: '5.00', currency: 'EUR' }, channelId)
          const opened = `/v1/checkouts/${checkout.id}/payment`
          const named = (await ask('GET', opened, {})).told
          told.push(checkout.told, named.with(1, 'the checkout'))
          for (const [method, path, fields] of [
            ['GET', `/v1/payments/${id}`, {}],
            ['GET', `/v1/query/${id}`, {}],
            ['POST', `/v1/payments/${id}`, { paymentType: 'RF', amount: '1.00', currency: 'EUR' }],
            ['DELETE', `/v1/registrations/${id}`, {}],
          ] as const)
            for (const entityId of [undefined, channelId]) told.push((await ask(method, path, fields, entityId)).told)
        }
        for (const path of ['/v1/payments', '/v1/checkouts', '/v1/registrations'])
          told.push((await ask('POST', path, debit)).told)
        return told
      }
      const expected = await answered(whole.baseUrl)
      assert.equal(expected.filter(([, , status]) => status === 400).length, 2 * 4 + 3, JSON.stringify(expected))
      // The map is read by a reload, and until then its lines are those of before.
      await eventually(
        async () => (await ask('/v1/query/x', { headers: bearer(token) })).status === 400,
        'the token is led nowhere',
      )
      assert.deepEqual(await answered(cells.url), expected)
      for (const name of ['one', 'two']) {
        const { baseUrl } = cells.gateways[name]!
        const asked = await fetch(`${baseUrl}/v1/payments`, {
          method: 'POST',
          headers: bearer(token),
          body: new URLSearchParams(debit),
        })
        assert.deepEqual([asked.status, ((await asked.json()) as Body).result.code], [400, '200.300.407'], name)
      }
    } finally {
      await whole.stop()
    }
  })

  it("a shopper's browser, which names no entity, goes by the tail of its address", async () => {
    const shop = 'https://shop.example/back'
    const made = await post('/v1/checkouts', two.token, {
      entityId: two.channelId,
      paymentType: 'DB',
      amount: '5.00',
      currency: 'EUR',
    })
    const { id } = made.body
    for (const path of [`/pay/${id}`, `/v1/form/${id}`, `/v1/paymentWidgets.js?checkoutId=${id}`])
      assert.equal((await ask(path)).status, 200, path)
    const paid = await ask(`/v1/checkouts/${id}/payment`, {
      method: 'POST',
      body: new URLSearchParams({ ...visa, shopperResultUrl: shop }),
    })
    assert.ok(paid.status < 400, paid.text)
    const seen = await ask(`/v1/checkouts/${id}/payment?entityId=${two.channelId}`, { headers: bearer(two.token) })
    assert.equal(seen.body.result.code, '000.100.110', seen.text)
    assert.deepEqual(await cellsWith(seen.body.id), ['two'])

    const challenge = { 'card.number': '4200000000000042', 'customParameters[3DS2_enrolled]': 'true', shopperResultUrl: shop }
    const { redirect } = (await pay(two, challenge)).body
    assert.ok(redirect.url.startsWith(`${cells.url}/r/`), redirect.url)
    const page = await ask(new URL(redirect.url).pathname)
    assert.equal(page.status, 200, page.text)
  })

  it('the old interface goes by the entity in its document', async () => {
    const { body } = await pay(two)
    const load = `<?xml version="1.0" encoding="UTF-8"?>\n<Request version="1.0">\n <Query mode="LIVE" level="CHANNEL"\n entity="${two.channelId}" type="STANDARD"><Identification><UniqueID>${body.id}</UniqueID></Identification></Query></Request>`
    const asked = await ask('/payment/query', { method: 'POST', headers: bearer(two.token), body: new URLSearchParams({ load }) })
    assert.match(asked.headers.get('content-type')!, /text\/xml/, asked.text)
    assert.ok(answeredByCells().some(line => line.includes('"route":"/payment/query","status":200')))
  })

  it('what is known by nothing, or by something that no cell has, is answered clearly and reaches no cell', async () => {
    answeredByCells()
    const stranger = shopOf(99)
    const nobody = await pay(stranger)
    assert.deepEqual([nobody.status, nobody.body.result.code], [403, '800.900.201'])
    assert.match(nobody.body.timestamp, /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\+0000$/)
    assert.match(nobody.body.ndc, /^[0-9a-f]{32}$/)
    const spans = await post('/v1/registrations', spanningToken, { entityId: divisionId, ...visa })
    assert.equal(spans.status, 403)
    const nothing = await ask('/v1/query/00000000000000000000000000000000', { headers: bearer(stranger.token) })
    assert.deepEqual([nothing.status, nothing.body.result.code], [400, '200.300.407'])
    for (const path of ['/r/AAAAAAAAAAAAAAAAAAAAAA.zzzz', '/slip/AAAA', '/pay/ABC.zz', `//r//AAAA.zz`, '/simulators/wallet'])
      assert.equal((await ask(path)).status, 404, path)
    assert.deepEqual(answeredByCells(), [])
  })

  it('what is the same in every cell is answered by any', async () => {
    for (let turn = 0; turn < 6; turn++) assert.equal((await ask('/v1/resultcodes')).status, 200)
    assert.equal((await ask('/health')).status, 200)
  })

  it('the back office asks once which cell is meant; a file that is larger than any buffer goes through', async () => {
    const choice = await ask('/office/payments')
    assert.match(choice.text, /href="\?cell=two"/)
    const chosen = await ask('/office/payments?cell=two')
    assert.equal(chosen.status, 303)
    assert.equal(chosen.headers.get('location'), '/office/payments')
    const Cookie = chosen.headers.get('set-cookie')!.split(';')[0]!
    assert.equal((await ask('/office/sign-in', { headers: { Cookie } })).status, 200)
    const before = cells.gateways.two!.logged.length
    const sent = new FormData()
    sent.append('file', new Blob(['x'.repeat(4_000_000)]), 'file.csv')
    const upload = await ask('/office/files', { method: 'POST', headers: { Cookie }, body: sent })
    assert.ok(upload.status === 303 || upload.status === 403, `${upload.status} ${upload.text}`)
    assert.ok(upload.headers.get('content-security-policy') ?? upload.headers.get('location'), 'a gateway answered')
    assert.ok(cells.gateways.two!.logged.length >= before)
  })

  it("gateways count each network's failures behind the proxy, whatever its callers write into X-Forwarded-For", async () => {
    const attempt = (localAddress: string, headers = {}) =>
      new Promise<number>((resolve, reject) => {
        const guess = { ...bearer('nobody-has-this-token-0000'), ...headers }
        const path = `${cells.url}/v1/query/x?entityId=${one.channelId}`
        http
          .get(path, { localAddress, headers: guess, agent: false }, answer => {
            answer.resume()
            resolve(answer.statusCode!)
          })
          .on('error', reject)
      })
    const minute = () => Math.floor(Date.now() / 60_000)
    /** Undefined when a minute ended meanwhile: failures are counted by the minute of the clock. */
    const guess = async (address: string) => {
      const began = minute()
      const answers: number[] = []
      for (let turn = 0; turn < limits.failuresPerCredential; turn++) answers.push(await attempt(address))
      for (const named of [undefined, '127.0.0.1', '127.0.0.3', '192.0.2.1, 127.0.0.1', '192.0.2.2,'])
        answers.push(await attempt(address, named === undefined ? {} : { 'X-Forwarded-For': named }))
      return minute() === began ? answers : undefined
    }
    assert.deepEqual((await guess('127.0.0.2')) ?? (await guess('127.0.0.4')), [
      ...Array<number>(limits.failuresPerCredential).fill(403),
      ...Array<number>(5).fill(429),
    ])
    assert.equal(await attempt('127.0.0.3'), 403)
  })

  it('a payment goes through TLS and HTTP/2', { skip: !hasOpenssl && 'openssl is missing' }, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-h2-'))
    const { cert, key } = makeCertificate(folder, 'pay')
    const certificate = join(folder, 'pay.pem')
    writeFileSync(certificate, readFileSync(cert, 'utf8') + readFileSync(key, 'utf8'), { mode: 0o600 })
    const { proxy, port } = await startProxy(cells.given, folder, { certificate })
    const session = http2.connect(`https://localhost:${port}`, { ca: readFileSync(cert) })
    try {
      const headers = { authorization: `Bearer ${two.token}`, 'content-type': 'application/x-www-form-urlencoded' }
      const stream = session.request({ ':method': 'POST', ':path': '/v1/payments', ...headers })
      stream.end(new URLSearchParams({ entityId: two.channelId, ...debit }).toString())
      const body: Body = JSON.parse(Buffer.concat(await stream.toArray()).toString())
      assert.equal(body.result.code, '000.100.110')
      assert.deepEqual(await cellsWith(body.id), ['two'])
    } finally {
      session.destroy()
      proxy.kill('SIGTERM')
      rmSync(folder, { recursive: true, force: true })
    }
  })

  it('a merchant who is new is known when the map is written, and reloads lose no request', async () => {
    let isPaying = true
    const failed: string[] = []
    let answered = 0
    const agent = new http.Agent({ keepAlive: true, maxSockets: 20 })
    const body = new URLSearchParams({ entityId: one.channelId, ...debit }).toString()
    const shopper = async (): Promise<void> => {
      while (isPaying)
        await new Promise<void>(done => {
          const request = http.request(
            `${cells.url}/v1/payments`,
            { method: 'POST', agent, headers: { ...bearer(one.token), 'Content-Type': 'application/x-www-form-urlencoded' } },
            answer => {
              if (answer.statusCode === 200) answered++
              else answer.setEncoding('utf8').on('data', text => failed.push(`${answer.statusCode} ${text}`))
              answer.resume().on('end', done)
            },
          )
          request.on('error', error => {
            failed.push(error.message)
            done()
          })
          request.end(body)
        })
    }
    const paying = Promise.all(Array.from({ length: 8 }, shopper))
    for (let number = 10; number < 15; number++) {
      const shop = shopOf(number)
      assert.equal((await pay(shop)).status, 403)
      await applySeed(cells.gateways.three!.pool, testKeys, systemClock, systemRandom, seedOf([number]))
      assert.equal((await renewMap(cells.given)).changed, true)
      await eventually(async () => (await pay(shop)).status === 200, 'the new merchant is known', 20)
    }
    isPaying = false
    await paying
    agent.destroy()
    assert.deepEqual(failed, [])
    assert.ok(answered > 50, `${answered}`)
    assert.equal((await renewMap(cells.given)).changed, false)
  })

  it('a proxy that did not read the map is told of, and asked again by the next call', async () => {
    const told = `${cells.given.map}.told`
    await applySeed(cells.gateways.three!.pool, testKeys, systemClock, systemRandom, seedOf([20]))
    await assert.rejects(
      renewMap({ ...cells.given, reload: ['sh', '-c', 'echo no proxy here >&2; exit 3'] }),
      /cells\.map is written, and the proxy has not read it: sh .* failed: no proxy here/,
    )
    assert.match(readFileSync(cells.given.map, 'utf8'), new RegExp(`^${shopOf(20).merchantId} three$`, 'm'))
    const again = await renewMap({ ...cells.given, reload: ['touch', told] })
    assert.equal(again.changed, false)
    assert.ok(existsSync(told))
    writeFileSync(told, '')
    await renewMap({ ...cells.given, reload: ['rm', told] })
    assert.ok(existsSync(told), 'it has read the map, and is left alone')
  })

  it('a cell without a gateway is answered for, with when to come again, and the others go on', async () => {
    await cells.gateways.two!.stop()
    const { body, headers } = await eventually(async () => {
      const asked = await pay(two)
      return asked.status === 503 && asked.body && asked
    }, 'its gateway is missed')
    assert.equal(body.result.code, '800.800.801')
    assert.equal(headers.get('retry-after'), '5')
    for (let turn = 0; turn < 5; turn++) assert.equal((await pay(one)).status, 200)
    for (let turn = 0; turn < 6; turn++) assert.equal((await ask('/v1/resultcodes')).status, 200)
  })
})
