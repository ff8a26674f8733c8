// Many requests of the back office at once: what one person may have under way, and that pages and what is written down in the audit keep no payment, no reading
// of merchants and no revocation waiting.

import assert from 'node:assert/strict'
import http from 'node:http'
import net from 'node:net'
import { after, before, test } from 'node:test'
import type pg from 'pg'
import type { Request } from '../src/http/answer.ts'
import { unfinishedBytesMost } from '../src/http/connections.ts'
import { makeToken, revokeByHand, tokenByChance } from '../src/merchants/access/tokens.ts'
import { readSeed, sandboxSeed } from '../src/merchants/seed.ts'
import type { OfficeParts } from '../src/pages/office/parts.ts'
import { officeRoute, personRequestsMost } from '../src/pages/office/route.ts'
import { systemClock, systemRandom } from '../src/platform/clock.ts'
import { sizes } from '../src/platform/database/connect.ts'
import { eventually, patient, sandbox, type TestGateway, testGateway, testKeys } from './support/gateway.ts'
import { lockWaiters, untilWaiting } from './support/locks.ts'
import { type Clerk, type OfficeReply, signedIn, signedInAgain } from './support/office.ts'

const { psp } = readSeed(sandboxSeed)
let gateway: TestGateway
before(async () => {
  gateway = await testGateway({ clock: patient })
})
after(() => gateway.stop())

const finance = () => signedIn(gateway, 'finance', [sandbox.merchantId])

/** The pools of the connections that wait for a lock. */
const waiting = async (): Promise<string[]> => (await lockWaiters(gateway.pool)).map(({ name }) => name)

/** What the audit tells of, and no line in memory. */
const take = (clerk: Clerk): Promise<OfficeReply> => clerk.ask('/office/payments.csv')

/** While a lock is held that nobody of these tests takes but by what is tested. */
async function holding<Value>(lock: string, work: () => Promise<Value>): Promise<Value> {
  const holder: pg.PoolClient = await gateway.pool.connect()
  try {
    await holder.query(`begin; ${lock}`)
    return await work()
  } finally {
    await holder.query('rollback')
    holder.release()
  }
}
const endOfAudit = 'select from audit_head for update'

test('one person has eight under way, in however many sessions; who asks for more is told to come again, and others are not', async () => {
  const [clerk, colleague] = [await finance(), await finance()]
  const again = await signedInAgain(gateway, { id: clerk.id!, name: clerk.name })
  const answered: OfficeReply[] = []
  const begun = await holding(endOfAudit, async () => {
    const all = Array.from({ length: personRequestsMost + 12 }, (_, at) =>
      take(at % 2 ? clerk : again).then(reply => answered.push(reply)),
    )
    await eventually(async () => answered.length === 12, 'those above the limit are answered')
    assert.equal((await colleague.ask('/office/risk')).status, 200)
    return all
  })
  for (const { status, headers, text } of answered) {
    assert.deepEqual([status, headers.get('retry-after'), headers.get('content-type')], [429, '1', 'text/html;charset=UTF-8'])
    assert.match(text, /Too much at once/)
  }
  await Promise.all(begun)
  assert.deepEqual(
    answered.slice(12).map(({ status }) => status),
    Array.from({ length: personRequestsMost }, () => 200),
  )
  assert.equal((await clerk.ask('/office/risk')).status, 200, 'what was answered is not under way any more')
})

test('what waits for the end of the audit keeps neither pages nor payments waiting, and holds few connections', async () => {
  const clerks = await Promise.all(Array.from({ length: 4 }, finance))
  const { body } = await gateway.pay()
  const begun = await holding(endOfAudit, async () => {
    const all = clerks.flatMap(clerk => Array.from({ length: personRequestsMost - 1 }, () => take(clerk)))
    const most = sizes.officeWrites.max
    await eventually(async () => (await waiting()).length === most, 'some wait for the lock')
    // What these ask for is answered while none of those above is.
    const asked = { entityId: sandbox.entityId }
    for (let at = 0; at < sizes.work.max; at++) assert.equal((await gateway.get(`/v1/payments/${body.id}`, asked)).status, 200)
    const refund = await gateway.refer(body.id, { paymentType: 'RF', amount: '1.00', currency: 'EUR' })
    assert.equal(refund.status, 200)
    assert.equal((await clerks[0]!.ask('/office/risk')).status, 200)
    assert.deepEqual(
      await waiting(),
      Array.from({ length: most }, () => 'tollgate officeWrites'),
    )
    return all
  })
  for (const { status } of await Promise.all(begun)) assert.equal(status, 200)
})

test('strangers who ask whose a session or a link is keep only each other waiting', async () => {
  const clerk = await finance()
  for (const kind of ['link', 'session'] as const) {
    const answered: (number | undefined)[] = []
    const stranger = () =>
      new Promise<void>((done, failed) => {
        const chance = systemRandom.bytes(32).toString('base64url')
        const path = kind === 'link' ? `/office/invitation/${chance}` : '/office'
        const headers = kind === 'link' ? {} : { Cookie: `tollgate_office=${chance}` }
        http
          .get(`${gateway.baseUrl}${path}`, { localAddress: '127.0.0.9', agent: false, headers }, response => {
            answered.push(response.statusCode)
            response.resume().on('end', done)
          })
          .on('error', failed)
      })
    const allHaveCome = async () => (await fetch(`${gateway.baseUrl}/v1/resultcodes`)).text()
    const table = kind === 'link' ? 'staff_links' : 'staff_sessions'
    const [crowd, page] = await holding(`lock table ${table} in access exclusive mode`, async () => {
      const crowd = Array.from({ length: 120 }, stranger)
      await untilWaiting(gateway.pool, table, sizes.office.max)
      await allHaveCome()
      const page = clerk.ask('/office').then(({ location }) => ({ location, before: answered.length }))
      await allHaveCome()
      return [crowd, page]
    })
    const { location, before } = await page
    assert.ok(location?.startsWith('/office/') && location !== '/office/sign-in', location)
    assert.ok(before < 60, `${before} strangers came before`)
    await Promise.all(crowd)
    assert.ok(answered.includes(kind === 'link' ? 410 : 303))
  }
})

test('a token that is revoked while all other connections wait is known to be, and so are settings that changed', async () => {
  const sent = tokenByChance(systemRandom)
  const recorder = { keys: testKeys, clock: systemClock, random: systemRandom }
  const { id } = await makeToken(gateway.pool, recorder, { sent, label: 'revoked', entities: [sandbox.merchantId] })
  const asStranger = { Authorization: `Bearer ${sent}` }
  const { body } = await gateway.pay()
  // Refused without a look into the database: a lenient channel forgives one of the two.
  const wrong = async () => {
    const reply = await gateway.post('/v1/payments', { entityId: sandbox.entityId, 'customer.email': 'none' })
    return (reply.body.result.parameterErrors as { name: string }[]).some(({ name }) => name === 'customer.email')
  }
  assert.equal(await wrong(), true)
  const reads = await holding('lock table answers in access exclusive mode', async () => {
    const all = Array.from({ length: sizes.work.max + 5 }, () =>
      gateway.get(`/v1/payments/${body.id}`, { entityId: sandbox.entityId }),
    )
    await eventually(async () => (await waiting()).length === sizes.work.max, 'all connections for reads wait')
    await gateway.pool.query(`update entities set settings = settings || '{"lenient": true}' where id = $1`, [sandbox.entityId])
    await revokeByHand(gateway.pool, recorder, id)
    await eventually(async () => !(await wrong()), 'the settings are known')
    assert.equal((await waiting()).length, sizes.work.max, 'while they wait')
    return all
  })
  assert.equal((await gateway.post('/v1/payments', { entityId: sandbox.entityId }, asStranger)).status, 403)
  await Promise.all(reads)
})

const boundary = '----a-file'
const beginning = `--${boundary}\r\nContent-Disposition: form-data; name="what"\r\n\r\nchargebacks\r\n--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="slow.csv"\r\n\r\nreport,line\n`
const end = `\r\n--${boundary}--\r\n`

/** Sends the head of a file that is handed in; what is told comes to stand in `told`. */
async function handIn(cookies: Map<string, string>, bytes: number, headers: Record<string, string> = {}) {
  const { host, hostname, port } = new URL(gateway.baseUrl)
  const socket = net.connect({ host: hostname, port: Number(port), localAddress: '127.0.0.9' })
  const one = { socket, told: '' }
  socket.on('data', chunk => (one.told += chunk)).on('error', () => {})
  const sent = {
    Host: host,
    Cookie: [...cookies].map(pair => pair.join('=')).join('; '),
    'Sec-Fetch-Site': 'same-origin',
    Origin: gateway.baseUrl,
    'Content-Type': `multipart/form-data; boundary=${boundary}`,
    'Content-Length': String(bytes),
    ...headers,
  }
  const lines = Object.entries(sent).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`POST /office/files HTTP/1.1\r\n${lines.join('')}\r\n`)
  return one
}

test('a file is read of those alone who may hand one in: all others are answered by the head of what they send, the last on their connection', async () => {
  const clerk = await signedIn(gateway, 'finance', [psp.id])
  const forged = new Map(
    [...clerk.cookies].map(([name, value]) => [name, value.replace(/.$/, last => (last === 'A' ? 'E' : 'A'))]),
  )
  const support = await signedIn(gateway, 'support', [psp.id])
  const own = await signedIn(gateway, 'finance', [sandbox.merchantId])
  for (const [cookies, status, headers] of [
    [new Map(), 401, {}],
    [forged, 401, {}],
    [support.cookies, 403, {}],
    [own.cookies, 403, {}],
    [clerk.cookies, 403, { Origin: 'https://shop.example', 'Sec-Fetch-Site': 'cross-site' }],
  ] as const) {
    const { socket } = await answeredByHead(await handIn(cookies, 4_000_000, headers), status)
    socket.destroy()
  }
  const signedInStill = await handIn(clerk.cookies, 4_000_000)
  await new Promise(resolve => setTimeout(resolve, 300))
  assert.equal(signedInStill.told, '', 'it is waited for')
  signedInStill.socket.destroy()
})

test('of one session so many files are looked at together, and no more ask the database whose it is', async () => {
  const [clerk, stranger] = [await signedIn(gateway, 'finance', [psp.id]), new Map([['tollgate_office', 'A'.repeat(43)]])]
  const [crowd, other] = await holding('lock table staff_sessions in access exclusive mode', async () => {
    const crowd = await Promise.all(Array.from({ length: personRequestsMost + 4 }, () => handIn(stranger, 4_000_000)))
    const told = () => crowd.filter(one => one.told.includes('</html>'))
    await eventually(async () => told().length === 4, 'those above the limit are answered')
    for (const one of told()) assert.match(one.told, /^HTTP\/1\.1 429 /)
    return [crowd, await handIn(clerk.cookies, 10)]
  })
  await eventually(async () => crowd.every(one => one.told.includes('</html>')), 'all are answered')
  assert.equal(crowd.filter(one => one.told.startsWith('HTTP/1.1 401 ')).length, personRequestsMost)
  other.socket.write('x'.repeat(10))
  await eventually(async () => other.told.startsWith('HTTP/1.1 400 '), 'the colleague’s is read')
  for (const { socket } of [...crowd, other]) socket.destroy()
})

test('a file of a session that has too much under way is not asked of the database', async () => {
  const parts = { clock: systemClock, publicUrl: () => 'http://gateway.example', officeUnderWay: () => false }
  const { admits } = officeRoute(parts as unknown as OfficeParts, {
    ...{ method: 'POST', path: '/files', action: 'importFiles', takesFiles: true },
    answer: () => ({ status: 200, body: '' }),
  })
  const headers = { cookie: `tollgate_office=${'A'.repeat(43)}`, origin: 'http://gateway.example' }
  assert.equal(await admits!({ headers } as unknown as Request), undefined)
})

async function answeredByHead(one: Awaited<ReturnType<typeof handIn>>, status: number) {
  await eventually(async () => one.told.includes('</html>'), `it is told ${status}`)
  assert.match(one.told, new RegExp(`^HTTP/1.1 ${status} `))
  assert.match(one.told, /\r\nconnection: close\r\n/i)
  one.socket.write('x'.repeat(100_000)) // what comes still is taken in, and no request
  await eventually(async () => one.socket.readableEnded, 'nothing more comes')
  assert.equal(one.told.split('HTTP/1.1 ').length, 2)
  return one
}

test('what a colleague hands in is read to its end, however slowly it comes and however much strangers send meanwhile', async () => {
  const clerk = await signedIn(gateway, 'finance', [psp.id])
  const size = 3 * 1024 * 1024
  const line = `${'x'.repeat(1023)}\n`
  const one = await handIn(clerk.cookies, beginning.length + size + end.length)
  const write = (text: string) => new Promise(resolve => one.socket.write(text, resolve))
  await write(beginning + line.repeat(size / 2048))
  const { host, hostname, port } = new URL(gateway.baseUrl)
  const each = 250 * 1024
  const head = `POST /v1/payments HTTP/1.1\r\nHost: ${host}\r\nContent-Length: ${each + 1}\r\n\r\n`
  let closed = 0
  const crowd = Array.from({ length: Math.ceil(unfinishedBytesMost / each) + 40 }, (_, at) => {
    const socket = net.connect({ host: hostname, port: Number(port), localAddress: `127.0.2.${1 + (at % 64)}` })
    socket.on('error', () => {}).on('close', () => closed++)
    socket.write(head + 'a'.repeat(each))
    return socket
  })
  try {
    await eventually(async () => closed >= 30, 'there are too many of them')
    await write(line.repeat(size / 2048) + end)
    await eventually(async () => one.told.includes('</html>'), 'it is answered')
    assert.match(one.told, /^HTTP\/1\.1 400 /)
    assert.match(one.told, /Nothing of slow\.csv was read/)
  } finally {
    for (const socket of [...crowd, one.socket]) socket.destroy()
  }
})
