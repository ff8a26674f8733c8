// What people do in the back office, and what becomes of it: cases, webhooks, settings, tokens, people, the audit.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { readSeed, sandboxSeed } from '../src/merchants/seed.ts'
import { openCase } from '../src/payments/cases/cases.ts'
import { systemClock, systemRandom } from '../src/platform/clock.ts'
import { decode } from './support/entities.ts'
import { eventually, sandbox, type TestGateway, testGateway } from './support/gateway.ts'
import { type Clerk, type OfficeReply, signedIn, textOf } from './support/office.ts'
import { startReceiver } from './support/receiver.ts'

let gateway: TestGateway
let admin: Clerk
let finance: Clerk
const { psp } = readSeed(sandboxSeed)
before(async () => {
  gateway = await testGateway()
  admin = await signedIn(gateway, 'admin', [psp.id])
  finance = await signedIn(gateway, 'finance', [sandbox.merchantId])
})
after(() => gateway.stop())

const linkIn = ({ text }: OfficeReply, pattern: RegExp): string => {
  const found = pattern.exec(text)?.[0]
  assert.ok(found, `${pattern} is not in ${text.slice(text.indexOf('<main'))}`)
  return found
}
const newCase = async (kind: 'clearingLine' | 'answerUnproven', subject: string) => {
  await openCase(
    gateway.pool,
    { clock: systemClock, random: systemRandom },
    { kind, merchantId: sandbox.merchantId, subject, details: { line: '<b>17</b>' } },
  )
  return linkIn(
    await finance.ask('/office/cases'),
    new RegExp(`/office/cases/[0-9a-f]{32}/[0-9a-f]{32}(?=(?:(?!<tr>).)*${subject})`),
  )
}
const caseRow = async (path: string) =>
  (await gateway.pool.query('select * from operator_cases where id = $1', [path.split('/').at(-1)])).rows[0]
const lastAudit = async () => (await gateway.pool.query('select * from audit order by sequence desc limit 1')).rows[0]

test('a case is taken over, spoken of, and closed with a reason by whoever did it', async () => {
  const path = await newCase('clearingLine', 'line-one')
  const page = await finance.ask(path)
  assert.match(page.text, /&lt;b&gt;17&lt;\/b&gt;/)
  assert.equal((await finance.post(`${path}/take`)).location, path)
  assert.equal((await caseRow(path)).owner, finance.name)
  await finance.post(`${path}/note`, { text: 'asked the acquirer <today>' })
  assert.equal((await finance.post(`${path}/close`, { reason: ' ' })).status, 400)
  assert.equal((await caseRow(path)).closed_at, null)
  assert.equal((await finance.post(`${path}/close`, { reason: 'it was another shop' })).location, path)
  const { closed_by, reason } = await caseRow(path)
  assert.deepEqual([closed_by, reason], [finance.name, 'it was another shop'])
  const { text } = await finance.ask(path)
  assert.match(text, /wrote: asked the acquirer &lt;today&gt;/)
  assert.match(text, /closed it: it was another shop/)
  assert.equal((await finance.post(`${path}/take`)).status, 400, 'nobody takes over what is closed')
  assert.ok(!(await finance.ask('/office/cases')).text.includes(path))
  assert.ok((await finance.ask('/office/cases?all=1')).text.includes(path))
  const told = await lastAudit()
  assert.deepEqual([told.actor_kind, told.actor, told.action], ['user', finance.id, 'caseClosed'])
})

test('what settles a payment is closed with a decision alone', async () => {
  const operator = await signedIn(gateway, 'finance', [psp.id])
  const subject = 'a'.repeat(32)
  const path = await newCase('answerUnproven', subject)
  assert.equal((await operator.post(`${path}/close`, { reason: 'they say so' })).status, 400)
  assert.equal((await caseRow(path)).closed_at, null)
  assert.doesNotMatch((await finance.ask(path)).text, /name="decision"/)
  assert.equal((await finance.post(`${path}/close`, { reason: 'we say so', decision: 'carriedOut' })).status, 400)
  assert.equal((await caseRow(path)).closed_at, null, 'no merchant decides what the other side did with its money')
  await operator.post(`${path}/close`, { reason: 'they say so, card 4200.0000.0000.0000 CVV 123', decision: 'notCarriedOut' })
  assert.ok((await caseRow(path)).closed_at)
  assert.equal((await caseRow(path)).reason, 'they say so, card 420000…0000 CVV …')
  const told = await lastAudit()
  assert.equal(JSON.parse(told.details).decision, 'notCarriedOut')
})

test('a webhook is made, its secret shown once; it is activated, told, rotated, and what was given up is sent again', async () => {
  const receiver = await startReceiver()
  try {
    const developer = await signedIn(gateway, 'developer', [sandbox.merchantId])
    assert.equal((await developer.post('/office/webhooks', { url: 'ftp://x', entity: sandbox.merchantId })).status, 400)
    const made = await developer.post('/office/webhooks', { url: receiver.url, entity: sandbox.merchantId, wrapper: 'plain' })
    const secret = /class="secret">([0-9A-F]{64})</.exec(made.text)![1]!
    const path = linkIn(made, /\/office\/webhooks\/[0-9a-f]{32}\/[0-9a-f]{32}/)
    assert.ok(!(await developer.ask(path)).text.includes(secret))
    assert.match((await developer.post(`${path}/activate`)).text, /HTTP 200/)
    const { body } = await gateway.pay()
    await eventually(async () => receiver.received.some(one => one.text.includes(body.id)), 'the payment is told')
    await eventually(async () => (await developer.ask(path)).text.includes(body.id), 'the page shows it')
    const rotated = await developer.post(`${path}/rotate`, { step: 'begin' })
    assert.equal(rotated.text.match(/class="secret"/g)!.length, 2)
    assert.equal((await developer.post(`${path}/rotate`, { step: 'finish' })).text.match(/class="secret"/g)!.length, 1)
    await gateway.pool.query(`update deliveries set state = 'scheduled', settled_at = null, due_at = '2099-01-01'`)
    const [, waiting, count] = /href="(\/office\/deliveries[^"]*)">(\d+)</.exec((await developer.ask('/office/overview')).text)!
    const underWay = await developer.ask(decode(waiting!))
    assert.ok(underWay.text.includes(body.id) && !underWay.text.includes('/replay"'))
    assert.equal(underWay.text.split('<tr>').length - 2, Number(count), 'the figure of the overview is this list')
    await gateway.pool.query(`update deliveries set state = 'given up', settled_at = '2026-01-01'`)
    const queue = await developer.ask('/office/deliveries')
    const again = linkIn(queue, /\/office\/deliveries\/[0-9a-f]{32}\/[0-9a-f]{32}\/[0-9a-f]{32}\/replay/)
    const told = () => receiver.received.filter(one => one.text.includes(body.id)).length
    const before = told()
    assert.equal((await developer.post(again)).location, path)
    await eventually(async () => told() > before, 'it is told again')
    assert.equal((await developer.post(`${path}/delete`)).location, '/office/webhooks')
    assert.equal((await developer.ask(path)).status, 404)
  } finally {
    await receiver.close()
  }
})

test('settings are changed by the rules of a seed file, count at once, and are not written over unseen', async () => {
  const path = `/office/entities/${sandbox.entityId}`
  const field = (reply: OfficeReply) => decode(/name="shown" value="([^"]*)"/.exec(reply.text)![1]!)
  const shown = field(await admin.ask(path))
  const change = (settings: unknown, seen = shown) =>
    admin.post(path, {
      name: 'Renamed',
      settings: typeof settings === 'string' ? settings : JSON.stringify(settings),
      shown: seen,
    })
  for (const [wrong, says] of [
    ['{', 'is not JSON'],
    [{ lenint: true }, 'did you mean lenient?'],
    [{ brands: ['VISSA'] }, 'did you mean VISA?'],
    [{ lenient: 'yes' }, 'must be true or false'],
  ] as const) {
    const refused = await change(wrong)
    assert.equal(refused.status, 400)
    assert.ok(decode(refused.text).includes(says), says)
  }
  assert.equal((await gateway.pay()).status, 200)
  assert.equal((await change({ ...JSON.parse(shown), brands: ['MASTER'] }, shown.replaceAll('\n', '\r\n'))).location, path)
  await eventually(async () => (await gateway.pay()).status === 400, 'a VISA card is refused')
  const stale = await change(JSON.parse(shown))
  assert.equal(stale.status, 400)
  assert.match(stale.text, /Somebody changed the settings meanwhile/)
  const told = await lastAudit()
  assert.deepEqual([told.actor, told.action], [admin.id, 'entityChanged'])
  assert.deepEqual(JSON.parse(told.details).brands, [null, ['MASTER']])
  await change(JSON.parse(shown), field(await admin.ask(path)))
  await eventually(async () => (await gateway.pay()).status === 200, 'as it was')
})

test('a token is shown once, works, and is revoked', async () => {
  const path = `/office/entities/${sandbox.entityId}`
  const made = await admin.post(`${path}/tokens`, { label: 'New shop' })
  const token = textOf(made, 'token')
  assert.match(token, /^[A-Za-z0-9_-]{43}$/)
  const page = await admin.ask(path)
  assert.match(page.text, /New shop/)
  assert.ok(!page.text.includes(token))
  const asked = () => gateway.get('/v1/query', { entityId: sandbox.entityId }, { Authorization: `Bearer ${token}` })
  await eventually(async () => (await asked()).status !== 403, 'the gateway knows it')
  await admin.post(linkIn(page, new RegExp(`${path}/tokens/[0-9a-f]{32}/revoke`)))
  await eventually(async () => (await asked()).status === 403, 'the gateway knows it no more')
})

test('what asks for both factors asks an admin whose proof is old', async () => {
  const clerk = await signedIn(gateway, 'admin', [psp.id])
  await gateway.pool.query(`update staff_sessions set proven_at = proven_at - interval '6 minutes' where staff_id = $1`, [
    clerk.id,
  ])
  for (const [path, fields] of [
    [`/office/entities/${sandbox.entityId}`, { name: 'x', settings: '{}' }],
    [`/office/entities/${sandbox.entityId}/tokens`, { label: 'x' }],
    ['/office/staff', { name: 'x@office.example', role: 'admin', entity: psp.id }],
    [`/office/staff/${finance.id}/reset`, {}],
    [`/office/staff/${finance.id}/remove`, {}],
  ] as const)
    assert.match((await clerk.post(path, fields)).location ?? '', /^\/office\/prove\?/, path)
  assert.equal((await finance.ask('/office/account')).status, 200)
})

test('who is added gets a link, and the audit says who did it', async () => {
  const added = await admin.post('/office/staff', { name: 'New@Office.example', role: 'support', entity: sandbox.merchantId })
  const link = new URL(textOf(added, 'link')).pathname
  assert.equal((await admin.ask(link)).status, 200)
  assert.equal((await admin.post('/office/staff', { name: 'new@office.example', role: 'support', entity: psp.id })).status, 400)
  assert.equal((await admin.post('/office/staff', { name: 'no address', role: 'support', entity: psp.id })).status, 400)
  const audit = await admin.ask('/office/audit?action=staffAdded')
  assert.match(audit.text, /new@office\.example/)
  assert.ok(audit.text.includes(admin.name))
  assert.ok(!audit.text.includes(link.split('/').at(-1)!))
  const { rows } = await gateway.pool.query(`select actor from audit where action = 'staffAdded'`)
  assert.deepEqual(rows, [{ actor: admin.id }])
})

test('work that was tried again and again is shown, without what it holds', async () => {
  await gateway.pool.query(
    `insert into due_work (kind, merchant_id, subject_id, due_at, attempts, details) values
     ('recover', $1, $2, '2099-01-01', 7, '{"sealed":"c2VjcmV0"}'), ('recover', $1, $3, '2099-01-01', 2, '{}')`,
    [sandbox.merchantId, 'b'.repeat(32), 'c'.repeat(32)],
  )
  const { text } = await admin.ask('/office/work')
  assert.ok(text.includes('b'.repeat(32)))
  assert.ok(!text.includes('c'.repeat(32)) && !text.includes('c2VjcmV0'))
})

test('the office speaks the language of the browser, or the one that was chosen', async () => {
  const asked = await admin.ask('/office/cases', { 'Accept-Language': 'fr, pt-BR;q=0.9, en;q=0.5' })
  assert.match(asked.text, /<html lang="pt-BR">[\s\S]*Casos/)
  const clerk = await signedIn(gateway, 'admin', [psp.id])
  assert.equal((await clerk.post('/office/language', { language: 'pt', to: '/office/audit' })).location, '/office/audit')
  assert.match((await clerk.ask('/office/audit')).text, /Auditoria/)
})
