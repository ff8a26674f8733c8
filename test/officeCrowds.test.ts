// Many requests of the back office at once: what one person may have under way, and that pages and what is written down in the audit keep no payment, no reading
// of merchants and no revocation waiting.

import assert from 'node:assert/strict'
import http from 'node:http'
import { after, before, test } from 'node:test'
import type pg from 'pg'
import { makeToken, revokeByHand, tokenByChance } from '../src/merchants/access/tokens.ts'
import { personRequestsMost } from '../src/pages/office/route.ts'
import { systemClock, systemRandom } from '../src/platform/clock.ts'
import { sizes } from '../src/platform/database/connect.ts'
import { eventually, patient, sandbox, type TestGateway, testGateway, testKeys } from './support/gateway.ts'
import { lockWaiters, untilWaiting } from './support/locks.ts'
import { type Clerk, type OfficeReply, signedIn, signedInAgain } from './support/office.ts'

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
