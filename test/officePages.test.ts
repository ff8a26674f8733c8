// What people do in the back office, and what becomes of it: cases, webhooks, settings, tokens, people, the audit.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { changeEntity, makeEntity, settingsOf, settingsText } from '../src/merchants/change.ts'
import { readSeed, sandboxSeed } from '../src/merchants/seed.ts'
import { settingsFor } from '../src/merchants/settings.ts'
import { kindsInPortuguese } from '../src/pages/office/cases/words.ts'
import { readSettings, writeSettings } from '../src/pages/office/entities/settingForm.ts'
import { settingRows } from '../src/pages/office/entities/settingWords.ts'
import { caseKinds, openCase } from '../src/payments/cases/cases.ts'
import { systemClock, systemRandom } from '../src/platform/clock.ts'
import { fieldsOf } from '../src/platform/schemaFields.ts'
import { decode } from './support/entities.ts'
import { eventually, sandbox, type TestGateway, testGateway, testKeys, visa } from './support/gateway.ts'
import { untilWaiting } from './support/locks.ts'
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

test('the history of a case has an end, and each word of it is told', async () => {
  const path = await newCase('clearingLine', 'line-long')
  const id = path.split('/').at(-1)
  await Promise.all(Array.from({ length: 5 }, () => finance.post(`${path}/note`, { text: 'again' })))
  const told = await gateway.pool.query(`select 1 from audit where action = 'caseNoted' and subject = $1`, [id])
  assert.equal(told.rowCount, 5)
  await gateway.pool.query(
    `insert into case_notes (merchant_id, case_id, id, written_at, written_by, kind, text)
     select merchant_id, id, gen_random_uuid(), now(), 'somebody', 'note', '<' from operator_cases, generate_series(6, 199) where id = $1`,
    [id],
  )
  const replies = await Promise.all(['note', 'take', 'release'].map(word => finance.post(`${path}/${word}`, { text: 'more' })))
  assert.deepEqual(replies.map(({ status }) => status).sort(), [303, 400, 400])
  assert.match(replies.find(({ status }) => status === 400)!.text, /no more is kept: close it/)
  const { rows } = await gateway.pool.query('select count(*)::integer as count from case_notes where case_id = $1', [id])
  assert.deepEqual(rows, [{ count: 200 }])
})

test('an entity has so many valid tokens, and people so many colleagues, and no more', async () => {
  const admin = await signedIn(gateway, 'admin', [psp.id])
  const path = `/office/entities/${sandbox.entityId}/tokens`
  await gateway.pool.query(
    `insert into access_tokens (token_hash, id, merchant_id, label, entities, legacy, created_at)
     select sha256(n::text::bytea), gen_random_uuid(), $1, 'many', array[$2::uuid], false, now() from generate_series(1, 100) n`,
    [sandbox.merchantId, sandbox.entityId],
  )
  const full = await admin.post(path, { label: 'one more' })
  assert.equal(full.status, 409)
  assert.match(full.text, /has 100 valid tokens: revoke one/)
  await gateway.pool.query(`update access_tokens set revoked_at = now() where label = 'many'`)
  assert.equal((await admin.post(path, { label: 'one more' })).status, 200)
  await gateway.pool.query(
    `insert into staff (id, name, role, entities, made_at)
     select gen_random_uuid(), 'many' || n || '@shop.example', 'viewer', array[$1::uuid], now() from generate_series(1, 1000) n`,
    [sandbox.merchantId],
  )
  const refused = await admin.post('/office/staff', { name: 'last@shop.example', role: 'viewer', entity: sandbox.merchantId })
  assert.match(refused.text, /nobody can be added/)
  await gateway.pool.query(
    `delete from staff where name like 'many%'; delete from access_tokens where label in ('many', 'one more')`,
  )
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
  await operator.post(`${path}/close`, {
    reason: 'they say so, card 42000\u0000000000\u000000000 CVV 123',
    decision: 'notCarriedOut',
  })
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

test('a webhook is called at the address that was typed, whatever passes for a card number in it; pages shorten it', async () => {
  const receiver = await startReceiver()
  try {
    const developer = await signedIn(gateway, 'developer', [sandbox.merchantId])
    for (const [address, shown] of [
      ['/hook/4539578763621486/in', '/hook/453957…1486/in'],
      ['/in?shop=4539578763621486&amp=1', '/in?shop=453957…1486'],
      ['/cvv/2024/x', '/cvv/…/x'],
      ['/hook/4539578763621487/in', '/hook/4539578763621487/in'],
      ['/a%20b/%63', '/a%20b/%63'],
    ] as const) {
      const url = `${receiver.url}${address}`
      const made = await developer.post('/office/webhooks', { url, entity: sandbox.merchantId, wrapper: 'plain' })
      const path = linkIn(made, /\/office\/webhooks\/[0-9a-f]{32}\/[0-9a-f]{32}/)
      const { rows } = await gateway.pool.query('select url from endpoints where id = $1', [path.split('/').at(-1)])
      assert.equal(rows[0].url, url)
      const activated = await developer.post(`${path}/activate`)
      assert.equal(receiver.received.at(-1)!.path, address)
      const { body } = await gateway.pay()
      await eventually(
        async () => receiver.received.some(one => one.path === address && one.text.includes(body.id)),
        'it is told',
      )
      const pages = [
        made,
        activated,
        await developer.ask(path),
        await developer.ask('/office/webhooks'),
        await finance.ask(`/office/payments/${sandbox.merchantId}/${body.id}`),
      ]
      for (const { text } of pages) {
        assert.ok(decode(text).includes(shown), shown)
        assert.ok(!text.includes('4539578763621486') && !text.includes('/cvv/2024'))
      }
      await developer.post(`${path}/delete`)
    }
    const { rows } = await gateway.pool.query<{ details: string }>('select details::text as details from audit')
    assert.ok(!rows.some(({ details }) => details.includes('4539578763621486')))
    const wrong = await developer.post('/office/webhooks', { url: 'ftp://x/4539578763621486', entity: sandbox.merchantId })
    assert.equal(wrong.status, 400)
    assert.ok(wrong.text.includes('value="ftp://x/4539578763621486"'), 'who typed it may mend it')
  } finally {
    await receiver.close()
  }
})

test('what a receiver answers is kept and shown without card numbers and CVVs', async () => {
  const said = 'refused card 4539578763621486 cvv 987'
  const kept = 'refused card xxxxxxxxxxxx1486 cvv xxx'
  const server = createServer((_, response) => response.writeHead(500).end(said)).listen(0, '127.0.0.1')
  try {
    await once(server, 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    const developer = await signedIn(gateway, 'developer', [sandbox.merchantId])
    const made = await developer.post('/office/webhooks', { url, entity: sandbox.merchantId })
    const path = linkIn(made, /\/office\/webhooks\/[0-9a-f]{32}\/[0-9a-f]{32}/)
    const { body } = await gateway.pay({ notificationUrl: `${url}?of=4539578763621486` })
    const attempts = async () =>
      (await gateway.pool.query<{ answer: string }>('select answer from delivery_attempts where status = 500')).rows
    await eventually(async () => (await attempts()).length > 0, 'it was told')
    assert.deepEqual([...new Set((await attempts()).map(({ answer }) => answer))], [kept])
    const pages = [
      await developer.post(`${path}/test`),
      await developer.post(`${path}/activate`),
      await finance.ask(`/office/payments/${sandbox.merchantId}/${body.id}`),
    ]
    for (const { text } of pages) assert.ok(text.includes(kept) && !/4539578763621486|cvv 987/.test(text), text)
  } finally {
    server.close()
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

test('settings as fields are written as they are read, whatever they are', () => {
  const fields = fieldsOf(settingsFor(new Set(['VISA', 'MASTER'])).group)
  const settings = {
    brands: ['VISA', 'MASTER'],
    mode: 'test',
    lenient: false,
    currencies: ['EUR', 'USD'],
    paymentTypes: [],
    proofFrom: 1,
    approvalFrom: 123_456,
    checkoutMinutesMost: 60,
    shopName: 'A & B "Shop"',
    bankAccount: { holder: 'Shop Ltd', number: '123' },
    receiptFiles: { host: 'sftp.example', port: 2222, user: 'us', hostKey: 'ssh-ed25519 AAAA', forms: ['xml'] },
    routes: [{ acquirers: ['north'], amountFrom: 100 }],
    slipAccounts: { BOLETO: ['itau-1'] },
  }
  assert.deepEqual(readSettings(fields, writeSettings(fields, settings)), { settings, mistakes: [] })
  assert.deepEqual(readSettings(fields, new URLSearchParams()), { settings: {}, mistakes: [] })
  assert.deepEqual(
    [...fields.keys()].filter(name => !Object.hasOwn(settingRows, name)),
    [],
    'each has its words',
  )
})

test('settings are chosen in fields: what is above is an explicit choice, mistakes stand beside their field', async () => {
  const path = `/office/entities/${sandbox.entityId}`
  const division = `/office/entities/${sandbox.divisionId}`
  const shownOf = (reply: OfficeReply) => decode(/name="shown" value="([^"]*)"/.exec(reply.text)![1]!)
  /** The fields of a browser that has the page open, with some of them chosen otherwise. */
  const send = async (at: string, fields: readonly (readonly [string, string])[]) => {
    const page = await admin.ask(at)
    const { settings, kind } = (await gateway.pool.query('select * from entities where id = $1', [at.split('/').at(-1)])).rows[0]
    const values = writeSettings(fieldsOf(settingsOf(kind, new Set())), settings)
    for (const [name] of fields) values.delete(name)
    for (const [name, value] of fields) values.append(name, value)
    return admin.post(at, new URLSearchParams([['name', 'Named'], ['shown', shownOf(page)], ...values]))
  }
  const fieldset = ({ text }: OfficeReply, name: string) =>
    decode(new RegExp(`id="setting-${name}"[\\s\\S]*?</fieldset>`).exec(text)![0])
  const before = JSON.parse(shownOf(await admin.ask(path)))

  const wrong = await send(path, [
    ['currencies', 'own'],
    ['currencies.own', 'EUR\r\nEURO'],
    ['proofFrom', 'own'],
    ['proofFrom.own', '1,5'],
    ['mode', 'dark'],
  ])
  assert.equal(wrong.status, 400)
  assert.match(fieldset(wrong, 'proofFrom'), /must be an amount such as 1000\.00/)
  const wrongAgain = await send(path, [
    ['currencies', 'own'],
    ['currencies.own', 'EUR\r\nEURO'],
    ['mode', 'dark'],
    ['bankAccount', 'own'],
    ['bankAccount.own.holder', 'Shop & Co'],
  ])
  assert.match(fieldset(wrongAgain, 'currencies'), /\[1\] must be a currency code/)
  assert.match(fieldset(wrongAgain, 'currencies'), /EURO<\/textarea>/, 'as it was written')
  assert.match(fieldset(wrongAgain, 'currencies'), /aria-describedby="currencies-hint currencies-wrong" aria-invalid="true"/)
  assert.match(fieldset(wrongAgain, 'mode'), /must be test or live/)
  assert.match(fieldset(wrongAgain, 'bankAccount'), /number must be a text of 3 to 64 characters/)
  assert.match(fieldset(wrongAgain, 'bankAccount'), /name="bankAccount.own.number"[^>]*aria-invalid/)
  assert.doesNotMatch(fieldset(wrongAgain, 'bankAccount'), /name="bankAccount.own.holder"[^>]*aria-invalid/)
  assert.ok(!fieldset(wrongAgain, 'brands').includes('class="wrong"'))

  assert.equal(
    (
      await send(division, [
        ['lenient', 'true'],
        ['statusReadsPerMinute', 'own'],
        ['statusReadsPerMinute.own', '60'],
      ])
    ).location,
    division,
  )
  const inheriting = await admin.ask(path)
  const { name } = (await gateway.pool.query('select name from entities where id = $1', [sandbox.divisionId])).rows[0]
  assert.ok(fieldset(inheriting, 'statusReadsPerMinute').includes(`Use what is above: 60 (from ${name})`))
  assert.match(fieldset(inheriting, 'requireCvv'), /Use what is above: yes \(default\)/)
  const clerk = await signedIn(gateway, 'developer', [sandbox.merchantId])
  assert.ok(fieldset(await clerk.ask(path), 'statusReadsPerMinute').includes('60 (from an entity above)'), 'others are not named')

  const chosen = [
    ['brands', 'own'],
    ['brands.own', 'MASTER'],
    ['brands.own', 'AMEX'],
    ['statusReadsPerMinute', 'above'],
    ['approvalFrom', 'own'],
    ['approvalFrom.own', '12.34'],
  ] as const
  assert.equal((await send(path, chosen)).location, path)
  assert.deepEqual(JSON.parse(shownOf(await admin.ask(path))), { ...before, brands: ['MASTER', 'AMEX'], approvalFrom: 1234 })
  assert.match(fieldset(await admin.ask(path), 'brands'), /value="AMEX" checked/)
  await eventually(async () => (await gateway.pay()).status === 400, 'a VISA card is refused')
  assert.equal(
    (
      await send(path, [
        ['brands', 'above'],
        ['approvalFrom', 'above'],
      ])
    ).location,
    path,
  )
  assert.deepEqual(JSON.parse(shownOf(await admin.ask(path))), before)
  await send(division, [
    ['lenient', 'above'],
    ['statusReadsPerMinute', 'above'],
  ])
  await eventually(async () => (await gateway.pay()).status === 200, 'as it was')
  assert.ok(!(await clerk.ask(path)).text.includes('<button>Save'), 'who may not change sees, and cannot send')
})

test('who acts for one merchant changes nothing that bounds it, by fields or as JSON', async () => {
  const path = `/office/entities/${sandbox.entityId}`
  const clerk = await signedIn(gateway, 'admin', [sandbox.merchantId])
  const page = await clerk.ask(path)
  const shown = decode(/name="shown" value="([^"]*)"/.exec(page.text)![1]!)
  assert.match(page.text, /id="setting-mode"[^>]* disabled>/)
  assert.match(page.text, /id="setting-paymentTypes"[^>]* disabled>/)
  assert.doesNotMatch(page.text, /id="setting-lenient"[^>]* disabled>/)
  await gateway.pool.query(
    `update entities set settings = settings || '{"lenient":true,"riskRules":"","paymentTypes":["DB"]}' where id = $1`,
    [sandbox.entityId],
  )
  const now = decode(/name="shown" value="([^"]*)"/.exec((await clerk.ask(path)).text)![1]!)
  for (const more of [{ mode: 'live' }, { approvalFrom: 1 }, { riskRules: undefined }, { paymentTypes: undefined }]) {
    const refused = await clerk.post(path, {
      name: 'Named',
      shown: now,
      settings: JSON.stringify({ ...JSON.parse(now), ...more }),
    })
    assert.equal(refused.status, 400)
    assert.match(refused.text, /is changed by the staff of the PSP alone/)
  }
  const own = { ...JSON.parse(now), lenient: false }
  assert.equal((await clerk.post(path, { name: 'Named', shown: now, settings: JSON.stringify(own) })).location, path)
  const after = decode(/name="shown" value="([^"]*)"/.exec((await clerk.ask(path)).text)![1]!)
  // A browser sends nothing of what is disabled, and somebody else might.
  assert.equal((await clerk.post(path, { name: 'Named', shown: after, lenient: 'true', mode: 'live' })).location, path)
  const { settings } = (await gateway.pool.query('select settings from entities where id = $1', [sandbox.entityId])).rows[0]
  assert.deepEqual(settings, { lenient: true, riskRules: '', paymentTypes: ['DB'] })
  await gateway.pool.query('update entities set settings = $2 where id = $1', [sandbox.entityId, shown])
  await gateway.pool.query(`select pg_notify('tollgate_directory', '')`)
})

test('of two who save at once one is told', async () => {
  const path = `/office/entities/${sandbox.entityId}`
  const shown = decode(/name="shown" value="([^"]*)"/.exec((await admin.ask(path)).text)![1]!)
  const save = (minutes: number) =>
    admin.post(path, { name: 'Named', shown, settings: JSON.stringify({ ...JSON.parse(shown), checkoutMinutesMost: minutes }) })
  const replies = await Promise.all([31, 32, 33, 34].map(save))
  assert.deepEqual(replies.map(({ status }) => status).sort(), [303, 400, 400, 400])
})

test('of two who save at once in two processes one is told', async () => {
  const id = sandbox.entityId
  const { name, settings } = (await gateway.pool.query('select name, settings from entities where id = $1', [id])).rows[0]
  const recorder = { keys: testKeys, clock: systemClock, by: { kind: 'user', id: admin.id!, address: '' } } as const
  const rules = { brands: new Set<string>(), isOperator: true, refusal: () => undefined }
  const save = (minutes: number) =>
    changeEntity(
      gateway.pool,
      recorder,
      rules,
      id,
      { name, settings: { ...settings, checkoutMinutesMost: minutes } },
      settingsText({ settings }),
    )
  const holder = await gateway.pool.connect()
  try {
    // Both can read, and neither can write before both have read or wait for their turn.
    await holder.query('begin; lock table entities in share mode')
    const saves = Promise.all([35, 36].map(save))
    await untilWaiting(gateway.pool, 'entities', 2)
    await holder.query('rollback')
    assert.deepEqual((await saves).map(({ length }) => length).sort(), [0, 1])
  } finally {
    holder.release(true)
  }
})

test('a division, its merchant and a channel are made, and take payments at once', async () => {
  const below = async (id: string, name: string) =>
    (await admin.post(`/office/entities/${id}/below`, { name })).location!.split('/').at(-1)!
  const division = await below(psp.id, 'New <division>')
  const merchant = await below(division, 'New merchant')
  const channel = await below(merchant, 'New channel')
  const page = await admin.ask(`/office/entities/${channel}`)
  assert.equal(page.status, 200)
  assert.equal((await admin.post(`/office/entities/${channel}/below`, { name: 'x' })).status, 400, 'nothing is below a channel')
  assert.equal((await admin.post(`/office/entities/${merchant}/below`, { name: ' ' })).status, 400)
  assert.equal((await finance.post(`/office/entities/${sandbox.merchantId}/below`, { name: 'x' })).status, 403)
  const ofMerchant = await signedIn(gateway, 'admin', [sandbox.merchantId])
  assert.equal(
    (await ofMerchant.post(`/office/entities/${sandbox.merchantId}/below`, { name: 'unbounded' })).status,
    403,
    'a new channel would have none of the bounds of the others',
  )
  const refusal = () => 'nobody serves it'
  const recorder = { keys: testKeys, clock: systemClock, random: systemRandom }
  assert.equal(await makeEntity(gateway.pool, recorder, merchant, 'refused', refusal), undefined)
  const token = textOf(await admin.post(`/office/entities/${merchant}/tokens`, { label: 'New' }), 'token')
  const pay = () =>
    gateway.post(
      '/v1/payments',
      { entityId: channel, paymentType: 'DB', amount: '1.00', currency: 'EUR', ...visa },
      { Authorization: `Bearer ${token}` },
    )
  await eventually(async () => (await pay()).status === 200, 'the channel takes payments')
  const { rows } = await gateway.pool.query(
    `select actor, subject, details from audit where action = 'entityMade' and actor = $1 order by sequence`,
    [admin.id],
  )
  assert.deepEqual(
    rows.map(({ subject }) => subject),
    [division, merchant, channel],
  )
  assert.equal(JSON.parse(rows[1].details).kind, 'merchant')
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
    [`/office/entities/${sandbox.entityId}/tokens/${'0'.repeat(32)}/revoke`, {}],
    ['/office/webhooks', { url: 'https://hook.example/', entity: sandbox.merchantId }],
    [`/office/webhooks/${sandbox.merchantId}/${'0'.repeat(32)}/activate`, {}],
    [`/office/webhooks/${sandbox.merchantId}/${'0'.repeat(32)}/disable`, {}],
    [`/office/webhooks/${sandbox.merchantId}/${'0'.repeat(32)}/delete`, {}],
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
  for (const alike of [
    'new\ufe0f@office.example',
    'n\u034few@office.example',
    'new\u2800@office.example',
    'new\u3164@office.example',
    'ｎｅｗ@office.example',
  ])
    assert.equal((await admin.post('/office/staff', { name: alike, role: 'support', entity: psp.id })).status, 400, escape(alike))
  const audit = await admin.ask('/office/audit?action=staffAdded')
  assert.match(audit.text, /new@office\.example/)
  assert.ok(audit.text.includes(admin.name))
  assert.ok(!audit.text.includes(link.split('/').at(-1)!))
  const { rows } = await gateway.pool.query(`select actor from audit where action = 'staffAdded'`)
  assert.deepEqual(rows, [{ actor: admin.id }])
})

test('a report of chargebacks that is handed in is recorded once', async () => {
  const clerk = await signedIn(gateway, 'finance', [psp.id])
  const { body } = await gateway.pay({ paymentType: 'DB' })
  const bytes = `report,line,type,acquirer,reference,amount,currency,reason,date\nhanded-in,1,CB,,${body.id},92.00,EUR,10.4,${body.timestamp.slice(0, 10)}\n`
  const handIn = () => clerk.upload('/office/files', { what: 'chargebacks' }, { name: 'report.csv', bytes })
  assert.match((await handIn()).text, /report\.csv is read to its end: 1 recorded/)
  assert.match((await handIn()).text, /was read before, and is known: 0 recorded, 1 known already/)
  const { rowCount } = await gateway.pool.query(`select from payments where payment_type = 'CB' and reference_id = $1`, [body.id])
  assert.equal(rowCount, 1)
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

test('every kind of case has words of its own in each language', () => {
  assert.deepEqual(Object.keys(kindsInPortuguese).sort(), Object.keys(caseKinds).sort())
  const all = [...Object.values(kindsInPortuguese), ...Object.values(caseKinds)]
  assert.equal(new Set(all).size, all.length)
})

test('the office speaks the language of the browser, or the one that was chosen', async () => {
  const asked = await admin.ask('/office/cases', { 'Accept-Language': 'fr, pt-BR;q=0.9, en;q=0.5' })
  assert.match(asked.text, /<html lang="pt-BR">[\s\S]*Casos/)
  const clerk = await signedIn(gateway, 'admin', [psp.id])
  assert.equal((await clerk.post('/office/language', { language: 'pt', to: '/office/audit' })).location, '/office/audit')
  assert.match((await clerk.ask('/office/audit')).text, /Auditoria/)
})

test('of lists and texts that nobody writes by hand a page reads and draws the beginning, and says so', async () => {
  const path = `/office/entities/${sandbox.entityId}`
  const shown = decode(/name="shown" value="([^"]*)"/.exec((await admin.ask(path)).text)![1]!)
  const words = Array.from({ length: 20_000 }, (_, at) => at.toString(36).padStart(4, 'x').toUpperCase())
  const drawn = await admin.post(path, { name: '', shown, brands: 'own', 'brands.own': words.join(' ') })
  assert.equal(drawn.status, 400)
  assert.match(drawn.text, /must hold at most 500/)
  const boxes = drawn.text.match(/name="brands\.own" value=/g)!.length
  assert.ok(boxes > 500 && boxes < 600, String(boxes))
  const one = await admin.post(
    path,
    new URLSearchParams([
      ['name', ''],
      ['shown', shown],
      ['brands', 'own'],
      ...words.slice(0, 700).map(word => ['brands.own', word]),
    ] as [string, string][]),
  )
  assert.match(one.text, /must hold at most 500/)
  for (const settings of [{ brands: words.slice(0, 6000) }, Object.fromEntries(words.slice(0, 6000).map(word => [word, 1]))]) {
    const { text } = await admin.post(path, { name: 'Named', shown, settings: JSON.stringify(settings) })
    assert.match(text, /What you wrote must be at most 32768 characters/)
  }
  const strange = Object.fromEntries(words.slice(0, 150).map(word => [word, 1]))
  const named = decode((await admin.post(path, { name: 'Named', shown, settings: JSON.stringify(strange) })).text)
  assert.equal(named.match(/ is not known/g)!.length, 100, 'no more than anybody reads')
})

test('cases and lists of others lead to their next page', async () => {
  await gateway.pool.query(
    `insert into operator_cases (merchant_id, id, kind, subject, details, opened_at)
     select $1, gen_random_uuid(), 'clearingLine', 'flood ' || n, '{}', now() - interval '1 day' from generate_series(1, 230) n`,
    [sandbox.merchantId],
  )
  const first = await finance.ask('/office/cases')
  const next = /href="([^"]*page=2)"/.exec(first.text)![1]!
  const [one, two] = [first.text, (await finance.ask(decode(next))).text].map(text => text.match(/flood \d+/g)!.length)
  assert.equal(one! + two!, 230)
  await gateway.pool.query(`delete from operator_cases where subject like 'flood %'`)

  await gateway.pool.query(
    `insert into risk_entries (owner_id, kind, value, id, list, shown, network, reason, added_by, added_at)
     select $1, 'ip', n::text, gen_random_uuid(), 'block', n::text, '192.0.2.1'::inet, 'flood', 'somebody', now() from generate_series(1, 10000) n`,
    [sandbox.merchantId],
  )
  const fields = { entity: sandbox.merchantId, list: 'block', kind: 'email', value: 'one@shop.example', reason: 'too many' }
  assert.match((await admin.post('/office/risk', fields)).text, /10000 values are listed for this entity already/)
  await gateway.pool.query(`delete from risk_entries where reason = 'flood'`)
  assert.equal((await admin.post('/office/risk', fields)).status, 303)

  // An administrator finds own files among many of others.
  await gateway.pool.query(
    `insert into exports (id, asked_by, asked_at, ends_at, merchants, name, source, state)
     select gen_random_uuid(), 'other', now() + interval '1 hour', now() + interval '1 day', array[gen_random_uuid()], 'theirs.csv', '{}'::jsonb, 'made' from generate_series(1, 250) n
     union all select gen_random_uuid(), $1, now(), now() + interval '1 day', array[$2::uuid], 'mine.csv', '{}'::jsonb, 'made'`,
    [admin.id, sandbox.merchantId],
  )
  assert.match((await admin.ask('/office/exports')).text, /mine\.csv/)
  await gateway.pool.query(`delete from exports where name in ('mine.csv', 'theirs.csv')`)
})

test('settings that no process would serve are refused for each channel that would have them', async () => {
  const rules = {
    brands: new Set<string>(),
    isOperator: true,
    refusal: ({ threeDSecure }: { threeDSecure: string }) => (threeDSecure === 'always' ? 'there is nobody to ask' : undefined),
  }
  const recorder = { keys: testKeys, clock: systemClock, by: { kind: 'user', id: admin.id!, address: '' } } as const
  const row = async () =>
    (await gateway.pool.query(`select name, settings::text from entities where id = $1`, [sandbox.divisionId])).rows[0]
  const before = await row()
  const shown = settingsText({ settings: JSON.parse(before.settings) })
  const given = { name: before.name, settings: { ...JSON.parse(before.settings), threeDSecure: 'always' } }
  const mistakes = await changeEntity(gateway.pool, recorder, rules, sandbox.divisionId, given, shown)
  const told = mistakes.map(({ rule }) => rule)
  assert.ok(told.includes('Sandbox lenient: there is nobody to ask') && told.length >= 2, told.join())
  assert.deepEqual(await row(), before)
})
