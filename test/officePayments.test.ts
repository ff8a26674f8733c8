// The pages about payments, as support uses them: paste something, read what became of it, give money back; and what others may not.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { applySeed, readSeed, sandboxSeed } from '../src/merchants/seed.ts'
import { stepsOf } from '../src/pages/office/payments/sequence.ts'
import { paymentWords } from '../src/pages/office/payments/words.ts'
import { personRequestsMost } from '../src/pages/office/route.ts'
import type { Readable } from '../src/payments/read/status.ts'
import { systemClock, systemRandom } from '../src/platform/clock.ts'
import { connect, type Database } from '../src/platform/database/connect.ts'
import { exportBytesMost, exportsOfOneMost, exportsTogetherMost, makeExport } from '../src/reporting/exports/export.ts'
import { findExport, insertExport } from '../src/reporting/exports/store.ts'
import { violations } from './support/axe.ts'
import { growChain } from './support/chains.ts'
import { launchBrowser } from './support/chromium.ts'
import { addEndpoint } from './support/endpoints.ts'
import { decode } from './support/entities.ts'
import { eventually, type Fields, sandbox, type TestGateway, testGateway, testKeys, visa } from './support/gateway.ts'
import { type Clerk, signedIn } from './support/office.ts'
import { type Receiver, startReceiver } from './support/receiver.ts'
import { boleto } from './support/slips.ts'

let gateway: TestGateway
let receiver: Receiver
let finance: Clerk
let stranger: Clerk
const elsewhere = 'f0'.repeat(16)
let id: string
const pageOf = (payment = id) => `/office/payments/${sandbox.merchantId}/${payment}`
const allTaken = () =>
  eventually(
    async () => (await gateway.pool.query('select from events where searched is null')).rowCount === 0,
    'events are taken',
  )

before(async () => {
  const merchants = [
    { id: elsewhere, name: 'Elsewhere', channels: [{ id: 'f2'.repeat(16), name: 'Elsewhere' }] },
    { id: 'fa'.repeat(16), name: 'Bulk', channels: [] },
  ]
  gateway = await testGateway({
    seed: {
      psp: { id: '5a11d0000000000000000000000000a0', name: 'Sandbox' },
      divisions: [{ id: 'f1'.repeat(16), name: 'Other', merchants }],
    },
  })
  receiver = await startReceiver()
  await addEndpoint(gateway.pool, { url: receiver.url })
  finance = await signedIn(gateway, 'admin', [sandbox.merchantId])
  stranger = await signedIn(gateway, 'admin', [elsewhere])
  id = (
    await gateway.pay({
      amount: '92.00',
      merchantTransactionId: '=SUM(A1:A9)',
      'customer.givenName': '<b>Jane</b>'.replace(/[<>/]/g, ''),
      'customer.surname': 'Jones',
      'customer.email': 'jane@example.org',
      amuont: '1.00',
    })
  ).body.id
  assert.ok(id)
  await allTaken()
})
after(async () => {
  await receiver.close()
  await gateway.stop()
})

let pressed = 0
const once = () => `${++pressed}`.padStart(32, '0')
const order = (word: string, fields: Record<string, string>, clerk = finance, payment = id) =>
  clerk.post(`${pageOf(payment)}/${word}`, {
    amount: '1.00',
    reason: 'shoes came back',
    confirmed: 'yes',
    once: once(),
    ...fields,
  })
const followers = async (payment = id) =>
  (
    await gateway.pool.query('select payment_type as type, amount from payments where root_id = $1 order by recorded_at', [
      payment,
    ])
  ).rows

describe('the box', () => {
  it('leads from an id to its payment', async () => {
    assert.equal((await finance.post('/office/payments', { q: ` ${id.toUpperCase()} ` })).location, pageOf())
  })

  it('finds by what was pasted, and no card number comes to stand in an address', async () => {
    const { location } = await finance.post('/office/payments', { q: '4200 0000 0000 0000' })
    assert.ok(location!.startsWith('/office/payments?q='))
    assert.doesNotMatch(decodeURIComponent(location!).replace(/[ +]/g, ''), /\d{12}/)
    assert.ok((await finance.ask(location!)).text.includes(pageOf()))
    const asked = await finance.ask(`/office/payments?q=${encodeURIComponent('4200000000000000')}&type=DB`)
    assert.ok(asked.text.includes(pageOf()) && !asked.text.includes('4200000000000000'))
  })

  it('leads from a reference or a slip number to its payment, also where that passes for the number of a card', async () => {
    const [reference, slip] = ['632612345678', '4200000000000000']
    for (const [column, text] of [
      ['reference', reference],
      ['slip_number', slip],
    ] as const) {
      await gateway.pool.query(`update searched_payments set ${column} = $1 where payment_id = $2`, [text, id])
      assert.equal((await finance.post('/office/payments', { q: ` ${text} ` })).location, pageOf(), text)
      const { location } = await stranger.post('/office/payments', { q: text })
      assert.doesNotMatch(decodeURIComponent(location!), /\d{11}/)
      await gateway.pool.query(`update searched_payments set ${column} = null where payment_id = $1`, [id])
    }
  })

  it('finds by an order number as it was typed, though it passes for the number of a card, and no address holds it', async () => {
    const paid = async (fields: Record<string, string>) => (await gateway.pay(fields)).body.id as string
    const [order, invoice, named, twice] = [
      '4539578763621486',
      'INV-4539-5787-6362-1486',
      'order/374245455400126/x',
      '6759649826438453',
    ]
    for (const [fields, text] of [
      [{ merchantTransactionId: order }, order],
      [{ merchantInvoiceId: invoice }, invoice],
      [{ merchantTransactionId: named }, named],
      [{ merchantTransactionId: 'CVC-2345-22' }, undefined],
    ] as const) {
      const one = await paid(fields)
      await allTaken()
      if (text === undefined) {
        const { location } = await finance.post('/office/payments', { q: 'CVC-2345-22' })
        assert.ok((await finance.ask(location!)).text.includes(one))
        continue
      }
      assert.equal((await finance.post('/office/payments', { q: ` ${text} ` })).location, pageOf(one), text)
      const { location } = await stranger.post('/office/payments', { q: text })
      assert.doesNotMatch(decodeURIComponent(location!).replace(/\D/g, ''), /\d{12}/)
    }
    const both = [await paid({ merchantTransactionId: twice }), await paid({ merchantInvoiceId: twice })]
    await allTaken()
    const list = await finance.post('/office/payments', { q: twice })
    assert.equal(list.status, 200)
    for (const one of both) assert.ok(list.text.includes(pageOf(one)))
    assert.ok(!list.text.includes(`value="${twice}"`) && !list.text.includes(`q=${twice}`))
    assert.doesNotMatch((await stranger.post('/office/payments', { q: twice })).location!, /\d{12}/)
  })

  for (const q of ['jane@example.org', '92.00 VISA', '=SUM(A1:A9)', '****0000'])
    it(`finds by ${q}`, async () =>
      assert.ok((await finance.ask(`/office/payments?${new URLSearchParams({ q })}`)).text.includes(pageOf())))

  it('shows whole days, both ends inclusive', async () => {
    const today = new Date().toISOString().slice(0, 10)
    const yesterday = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10)
    assert.ok((await finance.ask(`/office/payments?from=${today}&to=${today}`)).text.includes(pageOf()))
    assert.ok(!(await finance.ask(`/office/payments?to=${yesterday}`)).text.includes(pageOf()))
  })

  it('says no name of an entity that is out of reach', async () => {
    assert.match((await finance.ask(`/office/payments?merchant=${sandbox.merchantId}`)).text, /Narrowed to: Sandbox/i)
    for (const clerk of [finance, stranger]) {
      const other = clerk === finance ? elsewhere : sandbox.merchantId
      const { text } = await clerk.ask(`/office/payments?merchant=${other}`)
      assert.ok(text.includes(other))
      assert.doesNotMatch(text, clerk === finance ? /Elsewhere/ : /Narrowed to: Sandbox/i)
    }
  })

  it('shows nothing of another merchant', async () => {
    for (const path of [`/office/payments?q=${id}`, '/office/payments'])
      assert.ok(!(await stranger.ask(path)).text.includes(pageOf()))
    assert.equal((await stranger.post('/office/payments', { q: id })).location, `/office/payments?q=${id}`)
  })
})

describe('a file to take away', () => {
  it('has every payment that the filter finds, and no formula', async () => {
    const { text, headers } = await finance.ask('/office/payments.csv?outcome=success')
    assert.match(headers.get('content-disposition')!, /attachment/)
    const line = text.split('\r\n').find(one => one.startsWith(id))!
    assert.ok(line.includes(`'=SUM(A1:A9)`) && line.includes('92.00,EUR'))
    const { rows } = await gateway.pool.query(`select actor from audit where action = 'paymentsExported'`)
    assert.deepEqual(rows, [{ actor: finance.id }])
  })
  it('is told of with what was read of its filter: addresses hidden, and no more of a long text than is looked for', async () => {
    const told = async (q: string) => {
      assert.equal((await finance.ask(`/office/payments.csv?${new URLSearchParams({ q, type: 'DB' })}`)).status, 200)
      const { rows } = await gateway.pool.query(
        `select details::json ->> 'filter' as filter from audit where action = 'paymentsExported' order by sequence desc limit 1`,
      )
      return rows[0].filter
    }
    assert.equal(await told('jane@example.org or joe@example.org'), 'q=…@example.org or …@example.org&type=DB')
    assert.equal(await told(' '.repeat(4000)), 'type=DB')
    assert.equal(await told('x'.repeat(4000)), `q=${'x'.repeat(255)}&type=DB`)
    const sent = await finance.post('/office/payments', { q: 'x'.repeat(30_000) })
    assert.equal(sent.location, `/office/payments?q=${'x'.repeat(255)}`)
    assert.equal((await finance.post('/office/payments', { q: 'x'.repeat(33_000) })).status, 413, 'more than people write')
  })
  it('is not taken by whoever only asks whether it is there, and no row tells that it was', async () => {
    const cookie = [...finance.cookies].map(pair => pair.join('=')).join('; ')
    const told = () => gateway.pool.query(`select 1 from audit where action in ('paymentsExported', 'reportTaken')`)
    for (const path of ['/office/payments.csv', `/office/reports/${sandbox.merchantId}/file`]) {
      const before = (await told()).rowCount!
      const { status } = await fetch(gateway.baseUrl + path, { method: 'HEAD', headers: { Cookie: cookie } })
      assert.deepEqual([status, (await told()).rowCount], [405, before], path)
      assert.equal((await finance.ask(path)).status, 200)
      assert.equal((await told()).rowCount, before + 1, path)
    }
  })
  it('is taken by no link of another site or of a page for shoppers, and no row tells that it was', async () => {
    const told = async () =>
      (await gateway.pool.query(`select 1 from audit where action in ('paymentsExported', 'reportTaken')`)).rowCount
    const navigates = { 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'document' }
    for (const path of ['/office/payments.csv?q=evil', `/office/reports/${sandbox.merchantId}/file`]) {
      for (const site of ['cross-site', 'same-site', 'what-comes-later']) {
        const before = await told()
        const named = { 'Sec-Fetch-Site': site, Referer: 'https://evil.example/office/payments' }
        const { status, headers, text } = await finance.ask(path, { ...navigates, ...named })
        assert.deepEqual([status, headers.get('content-disposition'), await told()], [403, null, before], `${path} ${site}`)
        assert.match(text, /This came from another site/)
      }
      // Our pages for shoppers have the same origin, and lead wherever a shop says.
      for (const page of [undefined, '/', '/r/x', '/officer', '/pay/office/payments']) {
        const before = await told()
        const headers = { ...navigates, 'Sec-Fetch-Site': 'same-origin', ...(page && { Referer: gateway.baseUrl + page }) }
        assert.deepEqual([(await finance.ask(path, headers)).status, await told()], [403, before], `${path} ${page}`)
      }
      const ours = (page: string) => ({ 'Sec-Fetch-Site': 'same-origin', Referer: gateway.baseUrl + page })
      for (const own of [ours('/office'), ours('/office?q=1'), ours('/office/payments?q=1'), { 'Sec-Fetch-Site': 'none' }, {}]) {
        const before = (await told())!
        const { status, headers } = await finance.ask(path, own)
        assert.deepEqual([status, await told()], [200, before + 1], JSON.stringify(own))
        assert.match(headers.get('content-disposition')!, /attachment/)
      }
    }
    // To a page a link may lead, as from a mail that is read in a browser.
    assert.equal((await finance.ask('/office/payments', { ...navigates, 'Sec-Fetch-Site': 'cross-site' })).status, 200)
  })
  it('is for those who may take it, and of the own merchant', async () => {
    const viewer = await signedIn(gateway, 'viewer', [sandbox.merchantId])
    assert.equal((await viewer.ask('/office/payments.csv')).status, 403)
    assert.equal((await stranger.ask('/office/payments.csv')).text.split('\r\n').length, 2)
  })
})

describe('a file that takes long', () => {
  const bulk = 'fa'.repeat(16)
  const many = 12_345
  const numberOf = (at: number) => `order-${String(at).padStart(5, '0')}`
  let clerk: Clerk
  let database: Database
  const parts = (more: Partial<Database> = {}, elapsed = () => 0) => ({
    clock: { ...systemClock, elapsed },
    random: systemRandom,
    database: { ...database, ...more },
  })
  const source = { kind: 'payments', merchants: [bulk], any: [{ from: 0 }] } as const
  /** One that no worker knows of. */
  async function insertedExport(by = clerk.id!): Promise<string> {
    const exportId = systemRandom.uuid().replaceAll('-', '')
    const now = Date.now()
    const row = { id: exportId, askedBy: by, askedAt: now, endsAt: now + 86_400_000, merchants: [bulk], name: 'payments.csv' }
    await insertExport(gateway.pool, row, source)
    return exportId
  }
  const step = (exportId: string, more?: Partial<Database>, elapsed?: () => number) =>
    makeExport(parts(more, elapsed), { subjectId: exportId } as never)
  const stateOf = async (exportId: string) => (await findExport(gateway.pool, exportId))!
  const orders = (text: string) =>
    text
      .split('\r\n')
      .slice(1, -1)
      .map(row => row.split(',')[12])
  const all = Array.from({ length: many }, (_, at) => numberOf(many - at))

  before(async () => {
    database = connect(gateway.connection, systemClock, () => {})
    clerk = await signedIn(gateway, 'finance', [bulk])
    await gateway.pool.query(
      `insert into searched_payments (merchant_id, payment_id, root_id, channel_id, received_at, mode, payment_type, amount, currency, result, outcome, merchant_transaction_id)
       select $1, lpad(to_hex(n), 32, '0')::uuid, lpad(to_hex(n), 32, '0')::uuid, $1, '2026-01-01'::timestamptz + (n / 7) * interval '1 second', 'internal', 'DB', 100, 'EUR',
              '000.100.110', 'success', 'order-' || lpad(n::text, 5, '0') from generate_series(1, $2) n`,
      [bulk, many],
    )
  })
  after(() => database.close())

  it('is made beside the page that asks, and has every payment once; who took it is told', async () => {
    const asked = await clerk.ask('/office/payments.csv?outcome=success')
    assert.match(asked.headers.get('content-type')!, /html/)
    assert.ok(asked.text.includes('action="/office/payments.csv"><input type="hidden" name="outcome" value="success">'))
    const { location } = await clerk.post('/office/payments.csv', { outcome: 'success' })
    assert.match(location!, /^\/office\/exports\/[0-9a-f]{32}$/)
    await eventually(async () => (await clerk.ask(location!)).text.includes(`ready: ${many} lines`), 'it is made')
    const file = await clerk.ask(`${location}/file`)
    assert.match(file.headers.get('content-disposition')!, /attachment; filename="payments.csv"/)
    assert.deepEqual(orders(file.text), all)
    const { rows } = await gateway.pool.query(`select action, actor from audit where subject = $1 order by sequence`, [
      location!.split('/').at(-1),
    ])
    assert.deepEqual(
      rows,
      ['exportAsked', 'exportTaken'].map(action => ({ action, actor: clerk.id })),
    )
    // What is short is answered at once.
    assert.equal((await clerk.ask(`/office/payments.csv?q=${numberOf(77)}`)).text.split('\r\n').length, 3)
  })

  it('is work of those who act for the same, whoever of them asks', async () => {
    const ownerOf = async (one: Clerk) => {
      const exportId = (await one.post('/office/payments.csv')).location!.split('/').at(-1)
      const { rows } = await gateway.pool.query(
        `select merchant_id as owner from due_work where kind = 'export' and subject_id = $1`,
        [exportId],
      )
      await one.post(`/office/exports/${exportId}/end`)
      return rows[0].owner
    }
    assert.equal(await ownerOf(clerk), clerk.id)
    const colleague = await signedIn(gateway, 'finance', [bulk])
    const ours = await ownerOf(clerk)
    assert.equal(ours, [clerk.id, colleague.id].sort()[0]) // their ids come in no order
    assert.equal(await ownerOf(colleague), ours)
    assert.equal(await ownerOf(stranger), stranger.id)
    // What was ended before its work began is work for nobody.
    await eventually(
      async () =>
        (await gateway.pool.query(`select from due_work where kind = 'export' and merchant_id = $1 and due_at <= now()`, [ours]))
          .rowCount === 0,
      'nothing is left to do',
    )
  })

  it('of movements too', async () => {
    const { id: paid } = (await gateway.pay({ amount: '1.00', currency: 'NOK' })).body
    const copies = (table: string, column: string) =>
      gateway.pool.query(
        `insert into ${table} select copy.* from ${table} one cross join generate_series(1, 10050) n
           cross join lateral jsonb_populate_record(one, jsonb_build_object($2::text, lpad(to_hex(n), 32, '0')::uuid)) copy where one.${column} = $1`,
        [paid, column],
      )
    await copies('payments', 'id')
    await copies('journal', 'payment_id')
    const { text } = await finance.ask('/office/reports?currency=NOK')
    const address = decode(/href="(\/office\/reports\/[0-9a-f]{32}\/[0-9a-f]{32}\?type=SETTLED)"/.exec(text)![1]!).replace(
      '?',
      '/file?',
    )
    const asked = (await finance.ask(address)).text
    assert.ok(asked.includes('name="type" value="SETTLED"'))
    const { location } = await finance.post(/action="([^"]+\/file)"/.exec(asked)![1]!, { type: 'SETTLED' })
    await eventually(async () => (await finance.ask(location!)).text.includes('ready: 10051 lines'), 'it is made')
    const ids = (await finance.ask(`${location}/file`)).text
      .split('\r\n')
      .slice(1, -1)
      .map(row => row.split(',')[0])
    assert.deepEqual([ids.length, new Set(ids).size, ids.includes(paid)], [10_051, 10_051, true])
    await gateway.pool.query(`delete from journal where currency = 'NOK'`)
    await gateway.pool.query(`delete from payments where id::text like '00000000-%'`)
  })

  it('goes on where it was when its process dies, whatever it dies in, and when two are at it', async () => {
    const exportId = await insertedExport()
    let steps = 0
    const ticking = () => steps++ * 1000
    // Dies at the end of a transaction: what it has written is gone with it.
    const dying = async (taken?: never) => {
      if (taken) return database.work.connect(taken)
      const client = await database.work.connect()
      const query = client.query.bind(client)
      const broken = async (text: string, values?: unknown[]) => {
        if (text !== 'commit') return query(text, values)
        await query('rollback')
        throw new Error('killed')
      }
      return Object.assign(Object.create(client), { query: broken, release: () => client.release() })
    }
    const work = Object.assign(Object.create(database.work), { connect: dying })
    for (let turn = 0; (await stateOf(exportId)).state === 'making'; turn++) {
      if (turn % 3 === 0) await assert.rejects(step(exportId, { work }, ticking), /killed/)
      if (turn % 3 === 1) await Promise.all([step(exportId, {}, ticking), step(exportId, {}, ticking)])
      if (turn % 3 === 2) await step(exportId, {}, ticking)
      assert.ok(turn < 40)
    }
    assert.equal((await stateOf(exportId)).records, many)
    assert.deepEqual(orders((await clerk.ask(`/office/exports/${exportId}/file`)).text), all)
    // Ended while it is taken: what has gone by then does not look whole.
    await gateway.pool.query('delete from file_pieces where file_id = $1 and number > 0', [exportId])
    await assert.rejects(clerk.ask(`/office/exports/${exportId}/file`), /terminated/)
    await clerk.post(`/office/exports/${exportId}/end`)
  })

  it('other work has its turn while it is made, and it fails nowhere', async () => {
    const exportId = await insertedExport()
    let elapsed = 0
    const slow = () => (elapsed += 300)
    const { again, well } = (await step(exportId, {}, slow)) as { again: number; well: boolean }
    assert.ok(again <= Date.now() && well)
    assert.ok((await stateOf(exportId)).records < many)
    await clerk.post(`/office/exports/${exportId}/end`)
  })

  it('is seen to grow without a reload, is cancelled, and nothing of it stays', async () => {
    const exportId = await insertedExport()
    const browser = await launchBrowser()
    try {
      const context = await browser.newContext({ locale: 'en-GB', viewport: { width: 360, height: 740 } })
      await context.addCookies([...clerk.cookies].map(([name, value]) => ({ name, value, url: gateway.baseUrl })))
      const page = await context.newPage()
      page.setDefaultTimeout(60_000)
      await page.goto(`${gateway.baseUrl}/office/exports/${exportId}`)
      await page.getByText('waits for its turn').waitFor()
      let steps = 0
      await step(exportId, {}, () => steps++ * 1000)
      await page.getByText(`1000 of ${many} lines`).waitFor()
      assert.deepEqual(await violations(page), [])
      await step(exportId)
      await page.getByText(`ready: ${many} lines`).waitFor()
      assert.deepEqual(await violations(page), [])
      for (const path of ['/office/exports', '/office/payments.csv', '/office/payments?outcome=success']) {
        await page.goto(gateway.baseUrl + path)
        assert.deepEqual(await violations(page), [], path)
        assert.ok(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), path)
        if (process.env.SCREENSHOTS)
          await page.screenshot({ path: `${process.env.SCREENSHOTS}/long${path.replace(/\W/g, '-')}.png`, fullPage: true })
      }
      await page.goto(`${gateway.baseUrl}/office/exports/${exportId}`)
      await page.getByRole('button', { name: 'Delete' }).click()
      await page.getByRole('heading', { name: 'Exports' }).waitFor()
    } finally {
      await browser.close()
    }
    assert.equal(await findExport(gateway.pool, exportId), undefined)
    assert.equal((await gateway.pool.query('select from file_pieces where file_id = $1', [exportId])).rowCount, 0)
    assert.equal(await step(exportId), 'done')
  })

  it('is taken away after some days, and is too large at some size', async () => {
    const exportId = await insertedExport()
    await step(exportId)
    await gateway.pool.query(`update exports set ends_at = '2026-01-01' where id = $1`, [exportId])
    assert.equal(await step(exportId), 'done')
    assert.equal((await gateway.pool.query('select from file_pieces where file_id = $1', [exportId])).rowCount, 0)
    const large = await insertedExport()
    await gateway.pool.query('update exports set bytes = $2 where id = $1', [large, exportBytesMost])
    await step(large)
    assert.equal((await stateOf(large)).state, 'tooLarge')
    assert.ok((await clerk.ask(`/office/exports/${large}`)).text.includes('Too large'))
    assert.equal((await clerk.ask(`/office/exports/${large}/file`)).status, 404)
    await clerk.post(`/office/exports/${large}/end`)
  })

  it('is of whoever asked, or of an administrator of the same reach', async () => {
    const exportId = await insertedExport()
    const page = `/office/exports/${exportId}`
    const statuses = async (one: Clerk) => [(await one.ask(page)).status, (await one.ask('/office/exports')).text.includes(page)]
    assert.deepEqual(await statuses(clerk), [200, true])
    assert.deepEqual(await statuses(await signedIn(gateway, 'admin', [bulk])), [200, true])
    assert.deepEqual(await statuses(await signedIn(gateway, 'finance', [bulk])), [404, false])
    for (const one of [stranger, finance]) {
      assert.deepEqual(await statuses(one), [404, false])
      for (const path of ['file', 'progress']) assert.equal((await one.ask(`${page}/${path}`)).status, 404)
      assert.equal((await one.post(`${page}/end`)).status, 404)
    }
    await gateway.pool.query('update staff set entities = $2 where id = $1', [clerk.id, [elsewhere]])
    assert.deepEqual(await statuses(clerk), [404, false])
    await gateway.pool.query('update staff set entities = $2 where id = $1', [clerk.id, [bulk]])
    await clerk.post(`${page}/end`)
  })

  it('is one of a few, of a person and of those who act for the same; what others ask for stops nobody', async () => {
    const begin = async (one: Clerk) => (await one.post('/office/payments.csv')).status
    const own = (await gateway.pool.query('select from exports where asked_by = $1', [clerk.id])).rowCount!
    for (let at = own; at < exportsOfOneMost; at++) assert.equal(await begin(clerk), 303)
    assert.equal(await begin(clerk), 409)
    const of = async () => (await gateway.pool.query('select from exports where $1 = any (merchants)', [bulk])).rowCount!
    const colleague = await signedIn(gateway, 'finance', [bulk])
    while ((await of()) < exportsTogetherMost) await insertedExport(colleague.id!)
    assert.equal(await begin(await signedIn(gateway, 'finance', [bulk])), 409)
    assert.equal(await of(), exportsTogetherMost)
    assert.equal(await begin(stranger), 303)
    const above = [readSeed(sandboxSeed).psp.id, 'f1'.repeat(16)]
    for (const entity of above) assert.equal(await begin(await signedIn(gateway, 'admin', [entity])), 303)
    assert.equal(await begin(await signedIn(gateway, 'finance', [bulk, elsewhere])), 303)
    await gateway.pool.query('delete from exports')
  })
})

describe('saved filters', () => {
  const names = async (one: Clerk) =>
    [...(await one.ask('/office/payments')).text.matchAll(/<a href="(\/office\/payments[^"]*)"[^>]*><bdi>([^<]*)</g)].map(
      ([, path, name]) => [decode(name!), decode(path!)],
    )
  const save = (name: string, query: string, one = finance) =>
    one.post('/office/payments/filters', { name, ...Object.fromEntries(new URLSearchParams(query)) })

  it('are kept by name beside the box, open by one click, and are nobody else’s', async () => {
    const query = 'q=jane%40example.org&outcome=success'
    assert.equal((await save(' Jane’s <b> ', `${query}&behind=1-2&evil=1`)).location, `/office/payments?${query}`)
    assert.deepEqual(await names(finance), [['Jane’s <b>', `/office/payments?${query}`]])
    assert.ok((await finance.ask(`/office/payments?${query}`)).text.includes(pageOf()))
    assert.deepEqual(await names(stranger), [])
    await save('Jane’s <b>', 'q=92.00')
    await save('cards', 'q=4200000000000000')
    assert.deepEqual(await names(finance), [
      ['cards', '/office/payments?q=420000%E2%80%A60000'],
      ['Jane’s <b>', '/office/payments?q=92.00'],
    ])
    await stranger.post('/office/payments/filters/remove', { name: 'cards' })
    await finance.post('/office/payments/filters/remove', { name: 'Jane’s <b>' })
    assert.deepEqual(
      (await names(finance)).map(([name]) => name),
      ['cards'],
    )
  })

  it('are few and short', async () => {
    for (const [name, query] of [
      ['', 'q=1'],
      ['x'.repeat(61), 'q=1'],
      ['bell\u0007', 'q=1'],
      ['long', `q=${'ç'.repeat(255)}`],
    ] as const)
      assert.equal((await save(name, query)).status, 400, name)
    for (let at = 1; at < 30; at++) assert.equal((await save(`filter ${at}`, 'q=1')).status, 303)
    assert.equal((await save('one more', 'q=1')).status, 400)
    assert.equal((await save('cards', 'q=2')).status, 303, 'one that is there is changed')
    assert.equal((await names(finance)).length, 30)
    await gateway.pool.query('delete from saved_filters')
  })
})

describe('the page of a payment', () => {
  it('tells what it is, what was sent and what became of it', async () => {
    await eventually(async () => receiver.received.length >= 2, 'the merchant is told')
    const text = await eventually(async () => {
      const { text } = await finance.ask(pageOf())
      return text.includes('amuont') && text.includes('acknowledged') && decode(text)
    }, 'the request is recorded, the notification told')
    for (const part of [id, 'did you mean amount?', 'card.number=420000•••0000', receiver.url, 'acquirer', 'merchant'])
      assert.ok(text.includes(part), part)
    assert.doesNotMatch(text, /4200000000000000/)
  })

  it('says of a refusal who has to act', async () => {
    const declined = (await gateway.pay({ 'card.number': '4000000000000002' })).body
    const { text } = await finance.ask(pageOf(declined.id))
    assert.ok(text.includes(declined.result.code) && text.includes(declined.result.description))
    assert.match(text, /The shopper can mend this|The issuer of the card decides/)
  })

  it('is not there for others', async () => {
    assert.equal((await stranger.ask(pageOf())).status, 404)
    assert.equal((await stranger.ask(`/office/payments/${elsewhere}/${id}`)).status, 404)
    assert.equal((await finance.ask(`${pageOf('0'.repeat(32))}`)).status, 404)
    assert.equal((await finance.ask(`${pageOf('x')}`)).status, 404)
  })

  it('hides requests from those who may not read them', async () => {
    const viewer = await signedIn(gateway, 'viewer', [sandbox.merchantId])
    const { status, text } = await viewer.ask(pageOf())
    assert.equal(status, 200)
    assert.doesNotMatch(text, /card\.number=|Refund<|\/replay/)
  })
})

describe('money is given back', () => {
  it('only with an amount, a reason and a tick', async () => {
    for (const wrong of [
      { amount: '0.00' },
      { amount: '1' },
      { amount: '-1.00' },
      { reason: ' a ' },
      { confirmed: '' },
      { once: 'x' },
    ])
      assert.equal((await order('refund', wrong)).status, 400, JSON.stringify(wrong))
    assert.deepEqual(await followers(), [])
  })

  it('by those who may, of their own merchant, from our own page', async () => {
    for (const role of ['viewer', 'developer'] as const)
      assert.equal((await order('refund', {}, await signedIn(gateway, role, [sandbox.merchantId]))).status, 403)
    assert.equal((await order('refund', {}, stranger)).status, 404)
    const foreign = await finance.post(
      `${pageOf()}/refund`,
      { amount: '1.00', reason: 'abc', confirmed: 'yes', once: once() },
      { Origin: 'https://evil.example' },
    )
    assert.equal(foreign.status, 403)
    assert.equal(
      (
        await stranger.post(`/office/payments/${elsewhere}/${id}/refund`, {
          amount: '1.00',
          reason: 'abc',
          confirmed: 'yes',
          once: once(),
        })
      ).status,
      404,
    )
    assert.deepEqual(await followers(), [])
  })

  it('once, however often the button is pressed, and the merchant hears of it', async () => {
    const key = { once: 'ab'.repeat(16), amount: '10.00' }
    const before = receiver.received.length
    const replies = await Promise.all([order('refund', key), order('refund', key)])
    assert.deepEqual(
      replies.map(({ location }) => location),
      Array(2).fill(`${pageOf()}?done=refund&amount=10.00`),
    )
    assert.deepEqual(await followers(), [{ type: 'RF', amount: 1000 }])
    await eventually(async () => receiver.received.length > before, 'the merchant is told')
    const { rows } = await gateway.pool.query(
      `select actor, subject, details from audit where action = 'followUpOrdered' limit 1`,
    )
    assert.deepEqual([rows[0].actor, rows[0].subject], [finance.id, id])
    assert.deepEqual(JSON.parse(rows[0].details), { type: 'RF', amount: '10.00', currency: 'EUR', reason: 'shoes came back' })
  })

  it('is said to be done by no link of another site, of a mail, to our door or on a page of ours for shoppers', async () => {
    for (const done of ['refund&amount=92.00', 'capture', 'replay', 'transfer']) {
      const saysSo = async (headers: Record<string, string>) =>
        (await finance.ask(`${pageOf()}?done=${done}`, headers)).text.includes('class="message')
      for (const site of ['cross-site', 'same-site', 'none']) assert.equal(await saysSo({ 'Sec-Fetch-Site': site }), false, site)
      const from = (page: string) => ({ 'Sec-Fetch-Site': 'same-origin', Referer: gateway.baseUrl + page })
      const doors = [`/office/sign-in?to=${encodeURIComponent(pageOf())}`, '/office/prove', '/office', '/r/x']
      for (const headers of [{ 'Sec-Fetch-Site': 'same-origin' }, ...doors.map(from)])
        assert.equal(await saysSo(headers), false, JSON.stringify(headers))
      for (const ours of [from(pageOf()), from(`${pageOf()}?done=capture`), from(`${pageOf()}/refund`), {}])
        assert.ok(await saysSo(ours), done)
    }
  })

  it('never more than is left', async () => {
    const { status, text } = await order('refund', { amount: '82.01' })
    assert.equal(status, 400)
    assert.ok(text.includes('700.400.200') || /refund/i.test(text))
    assert.ok((await finance.ask(pageOf())).text.includes('value="82.00"'))
  })

  it('of a large amount only after both factors were proven anew', async () => {
    const large = (await gateway.pay({ amount: '1000.00' })).body.id
    const clerk = await signedIn(gateway, 'finance', [sandbox.merchantId])
    await gateway.pool.query(`update staff_sessions set proven_at = proven_at - interval '1 hour' where staff_id = $1`, [
      clerk.id,
    ])
    assert.match((await order('refund', { amount: '1000.00' }, clerk, large)).location!, /^\/office\/prove\?/)
    assert.deepEqual(await followers(large), [])
    assert.match((await order('refund', { amount: '999.99' }, clerk, large)).location!, /done=refund/)
    assert.match((await order('refund', { amount: '0.01' }, clerk, large)).location!, /^\/office\/prove\?/, 'small ones add up')
  })

  it('also when many small ones come at a time', async () => {
    const paid = (await gateway.pay({ amount: '3000.00' })).body.id
    const clerk = await signedIn(gateway, 'finance', [sandbox.merchantId])
    await gateway.pool.query(`update staff_sessions set proven_at = proven_at - interval '1 hour' where staff_id = $1`, [
      clerk.id,
    ])
    await Promise.all(Array.from({ length: personRequestsMost }, () => clerk.ask('/office/account'))) // connections that are open already
    const replies = await Promise.all(
      Array.from({ length: personRequestsMost }, () => order('refund', { amount: '300.00' }, clerk, paid)),
    )
    assert.deepEqual(replies.map(({ location }) => /done=refund|prove/.exec(location!)![0]).sort(), [
      ...Array(3).fill('done=refund'),
      ...Array(personRequestsMost - 3).fill('prove'),
    ])
    assert.equal((await followers(paid)).length, 3)
  })

  it('only after a colleague has approved it, where the channel says so', async () => {
    const paid = (await gateway.pay({ amount: '60.00' })).body.id
    const seed = readSeed(sandboxSeed)
    Object.assign(seed.divisions![0]!.merchants![0]!.channels![0]!.settings!, { approvalFrom: 5000 })
    await applySeed(gateway.pool, testKeys, systemClock, systemRandom, seed)
    await gateway.restart()
    const waiting = async (payment: string) =>
      (await gateway.pool.query('select amount from staff_orders where payment_id = $1 and waits', [payment])).rows.length
    const form = { amount: '50.00', once: 'cd'.repeat(16) }
    const pressed = await Promise.all([1, 2, 3].map(() => order('refund', form, finance, paid)))
    assert.deepEqual(
      pressed.map(({ location }) => location),
      Array(3).fill('/office/approvals'),
    )
    assert.deepEqual([await followers(paid), await waiting(paid)], [[], 1], 'one form is one order')
    assert.ok((await finance.ask('/office/approvals')).text.includes(paid))
    const many = (await gateway.pay({ amount: '92.00' })).body.id
    const orders = await Promise.all(Array.from({ length: 6 }, () => order('refund', { amount: '15.00' }, finance, many)))
    const begun = orders.filter(({ location }) => location?.includes('done=refund'))
    assert.deepEqual(
      [begun.length, (await followers(many)).length, await waiting(many)],
      [3, 3, 3],
      'many small ones are a large one',
    )
    // What could only be refused does not wait, and hides nothing of others.
    const above = await order('refund', { amount: '92.01' }, finance, many)
    assert.deepEqual([above.status, /does not allow this any more/.test(above.text)], [409, true])
    const noCapture = await order('capture', { amount: '60.00' }, finance, many)
    assert.deepEqual([noCapture.status, await waiting(many)], [409, 3])
    const flooded = (await gateway.pay({ amount: '92.00' })).body.id
    const flood: Awaited<ReturnType<typeof order>>[] = []
    while (flood.length < 24)
      flood.push(
        ...(await Promise.all(
          Array.from({ length: personRequestsMost }, () => order('refund', { amount: '50.00' }, finance, flooded)),
        )),
      )
    assert.deepEqual([flood.filter(({ status }) => status === 409).length, await waiting(flooded)], [4, 20])
    assert.match(flood.find(({ status }) => status === 409)!.text, /20 orders about this payment wait for a colleague already/)
    await applySeed(gateway.pool, testKeys, systemClock, systemRandom, readSeed(sandboxSeed))
    await gateway.restart()
  })

  it('by a capture and a reversal of what was authorized', async () => {
    const held = (await gateway.pay({ paymentType: 'PA', amount: '20.00' })).body.id
    assert.match((await order('capture', { amount: '15.00' }, finance, held)).location!, /done=capture/)
    const other = (await gateway.pay({ paymentType: 'PA', amount: '20.00' })).body.id
    assert.match((await order('reverse', { amount: '20.00' }, finance, other)).location!, /done=reverse/)
    assert.deepEqual(
      [await followers(held), await followers(other)],
      [[{ type: 'CP', amount: 1500 }], [{ type: 'RV', amount: 2000 }]],
    )
    const said = (await finance.ask(pageOf(held))).text.replace(/<[^>]+>/g, '')
    assert.match(said, /Merchant → Gateway: asks for PA 20\.00 EUR/)
    assert.match(said, /Gateway → Gateway: begins CP 15\.00 EUR, as ordered here/)
    assert.doesNotMatch((await finance.ask(pageOf(other))).text, /\/(capture|refund|reverse)"/)
  })
})

describe('the page of a payment with a long chain', () => {
  it('draws the first, its own and the newest, leads to the others, and acts on all', async () => {
    const paid = (await gateway.pay({ amount: '92.00' })).body.id
    const old = (await gateway.refer(paid, { paymentType: 'RF', amount: '0.01', currency: 'EUR' })).body.id
    await growChain(gateway.pool, old, 700)
    const newest = (await gateway.refer(paid, { paymentType: 'RF', amount: '2.00', currency: 'EUR' })).body.id
    for (const [payment, drawn] of [
      [paid, 101],
      [old, 102],
    ] as const) {
      const { text } = await finance.ask(pageOf(payment))
      const chain = /<ol class="timeline">[\s\S]*?<\/ol>/.exec(text)![0]
      assert.equal(chain.match(/<li/g)!.length, drawn)
      assert.ok([paid, payment, newest].every(one => one === payment || chain.includes(pageOf(one))))
      assert.match(chain, /aria-current="true"/)
      assert.ok(text.includes(`<a href="/office/payments?q=${paid}">${703 - drawn} more of this chain</a>`))
      assert.ok(text.length < 250_000, `${text.length} characters`)
    }
    assert.ok((await finance.ask(pageOf(paid))).text.includes('value="82.99"'), 'all refunds count')
    assert.match((await order('refund', { amount: '82.99' }, finance, paid)).location!, /done=refund/)
  })

  it('shows the newest of what was said to a server that never took it', async () => {
    const paid = (await gateway.pay({ amount: '92.00' })).body.id
    const deliveries = `from deliveries where payment_id = '${paid}'`
    await eventually(async () => (await gateway.pool.query(`select ${deliveries}`)).rowCount !== 0, 'it is told')
    await gateway.pool.query(
      `insert into delivery_attempts (merchant_id, endpoint_id, position, attempt, attempted_at, milliseconds, status, answer, acknowledged)
       select merchant_id, endpoint_id, position, n, now() + n * interval '1 second', 7, 500, 'no', false from (select * ${deliveries} limit 1) one, generate_series(100, 3000) n`,
    )
    const { text } = await finance.ask(pageOf(paid))
    assert.ok(text.includes('attempt 3000') && text.length < 250_000, `${text.length} characters`)
  })
})

it('days that no calendar has, and signs that no text has, find nothing and break nothing', async () => {
  for (const query of [
    'from=0000-01-01',
    'to=9999-12-31',
    'from=2026-02-31',
    'q=%00',
    'q=a%00b',
    'q=9999-12-31',
    'q=9998-12-31..9999-12-31',
    'since=0000-01-01',
  ])
    for (const path of ['/office/payments', '/office/payments.csv', '/office/audit'])
      assert.equal((await finance.ask(`${path}?${query}`)).status, 200, `${path} ${query}`)
})

it('what only a file told of was asked by nobody', () => {
  const told = { type: 'CB', amount: 900, currency: 'EUR', connector: '', receivedAt: 5, referenceId: id } as Readable
  const [step, ...others] = stepsOf({ chain: [told], told: [] }, paymentWords('en'))
  assert.deepEqual([step, others], [{ at: 5, from: 'otherSide', to: 'gateway', what: 'reports CB 9.00 EUR' }, []])
})

it('a notification is sent again by hand', async () => {
  const before = receiver.received.filter(({ text }) => text !== '').length
  const { rows } = await gateway.pool.query(`select replace(id::text, '-', '') as id from endpoints where kind = 'webhook'`)
  assert.match((await finance.post(`${pageOf()}/replay`, { endpoint: rows[0].id })).location!, /done=replay/)
  // No such payment, no such endpoint, no id at all.
  const [none, line] = [randomUUID().replaceAll('-', ''), '%0a']
  for (const [named, endpoint, status] of [
    [none, rows[0].id, 404],
    [line, rows[0].id, 404],
    [id, line, 404],
    [id, none, 409],
  ] as const)
    assert.equal((await finance.post(`/office/payments/${sandbox.merchantId}/${named}/replay`, { endpoint })).status, status)
  await eventually(async () => receiver.received.length > before, 'it came again')
  assert.equal((await stranger.post(`${pageOf()}/replay`, { endpoint: rows[0].id })).status, 404)
})

/** The page of a refund of a receipt, which waits for bank data. */
async function transferPage(): Promise<string> {
  const { body: slip } = await gateway.post('/v1/payments', boleto)
  const headers = { 'Content-Type': 'application/x-www-form-urlencoded' }
  await fetch(`${slip.resultDetails.EXTERNAL_SYSTEM_LINK}/pay`, { method: 'POST', redirect: 'manual', headers })
  const { rows } = await gateway.pool.query(`select id from payments where payment_type = 'RC' and reference_id = $1`, [slip.id])
  const { body } = await gateway.refer(rows[0].id, { paymentType: 'RF', amount: '123.45', currency: 'BRL' })
  return `/office/payments/${sandbox.merchantId}/${body.id}`
}

describe('in a browser', () => {
  let browser: Browser
  let page: Page
  before(async () => {
    browser = await launchBrowser()
  })
  after(() => browser?.close())

  for (const [look, options] of [
    ['light', { colorScheme: 'light', viewport: { width: 1280, height: 900 } }],
    ['dark', { colorScheme: 'dark', viewport: { width: 1280, height: 900 } }],
    ['phone', { colorScheme: 'light', viewport: { width: 360, height: 740 }, locale: 'pt-BR' }],
  ] as const)
    it(`nothing is wrong with the pages: ${look}`, async () => {
      const context = await browser.newContext(options)
      page = await context.newPage()
      page.setDefaultTimeout(60_000)
      const errors: string[] = []
      page.on('console', one => one.type() === 'error' && errors.push(one.text()))
      await context.addCookies([...finance.cookies].map(([name, value]) => ({ name, value, url: gateway.baseUrl })))
      for (const [name, path] of [
        ['payments', '/office/payments'],
        ['payment', pageOf()],
        ['transfer', await transferPage()],
      ] as const) {
        await page.goto(gateway.baseUrl + path)
        for (const one of await page.locator('details.order:not([open]) summary').all()) await one.click()
        if (process.env.SCREENSHOTS)
          await page.screenshot({ path: `${process.env.SCREENSHOTS}/${name}-${look}.png`, fullPage: true })
        assert.deepEqual(await violations(page), [])
        assert.ok(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), 'no wider than the window')
      }
      assert.deepEqual(errors, [])
      await context.close()
    })

  it('somebody finds a payment by its amount and refunds a part of it by keyboard and mouse', async () => {
    const paid = (await gateway.pay({ amount: '37.31' })).body.id
    await allTaken()
    const context = await browser.newContext({ locale: 'en-GB' })
    page = await context.newPage()
    page.setDefaultTimeout(60_000)
    await context.addCookies([...finance.cookies].map(([name, value]) => ({ name, value, url: gateway.baseUrl })))
    await page.goto(`${gateway.baseUrl}/office/payments`)
    await page.getByRole('searchbox').fill('37.31')
    await page.keyboard.press('Enter')
    await page.locator(`a[href$="${paid}"]`).click()
    await page.locator('summary', { hasText: 'Refund' }).click()
    await page.locator('#refund-amount').fill('7.31')
    await page.locator('#refund-reason').fill('one shoe missing')
    await page.locator('form[action$="/refund"] input[type=checkbox]').check()
    await page.locator('form[action$="/refund"] button').click()
    await page.getByRole('status').waitFor()
    assert.match(await page.getByRole('status').innerText(), /Done: refund 7\.31/)
    assert.deepEqual(await followers(paid), [{ type: 'RF', amount: 731 }])
    await context.close()
  })

  it('a file is taken and a deed told of where a page of the office leads there, and where a page for shoppers does nothing is done', async () => {
    const context = await browser.newContext({ locale: 'en-GB', bypassCSP: true })
    page = await context.newPage()
    page.setDefaultTimeout(60_000)
    await context.addCookies([...finance.cookies].map(([name, value]) => ({ name, value, url: gateway.baseUrl })))
    const told = async () => (await gateway.pool.query(`select 1 from audit where action = 'paymentsExported'`)).rowCount!
    const before = await told()
    await page.goto(`${gateway.baseUrl}/office/payments`)
    const taken = page.waitForEvent('download')
    await page.locator('a[href^="/office/payments.csv"]').click()
    assert.equal((await taken).suggestedFilename(), 'payments.csv')
    assert.equal(await told(), before + 1)

    const leave = async (shopperResultUrl: string, fields: Fields) =>
      (
        await gateway.post('/v1/payments', {
          entityId: sandbox.entityId,
          paymentType: 'DB',
          amount: '1.00',
          currency: 'EUR',
          shopperResultUrl,
          ...fields,
        })
      ).body.redirect.url as string
    const frictionless = {
      ...visa,
      'card.number': '4200000000000026',
      'customParameters[3DS2_enrolled]': 'true',
      'customParameters[3DS2_flow]': 'frictionless',
    }
    await page.goto(await leave(`${gateway.baseUrl}/office/payments.csv`, frictionless))
    await page.waitForURL(/payments\.csv/)
    assert.match(await page.locator('main').innerText(), /This came from another site/)
    assert.equal(await told(), before + 1)

    const said = `${gateway.baseUrl}${pageOf()}?done=refund&amount=92.00`
    const url = await leave(said, { paymentBrand: 'PAYPAL' })
    await page.goto(url.replace('/r/', '/r/return/'))
    await page.locator('a.button').click()
    await page.waitForURL(/done=refund/)
    assert.equal(await page.locator('main .message').count(), 0)

    // Whatever such a page might send: its forms have no origin to show.
    await page.goto(`${gateway.baseUrl}/r/nowhere`)
    await page.evaluate(`document.body.innerHTML = '<form method="post" action="/office/sign-out"><button>on</button></form>'`)
    const sent = page.waitForRequest(/sign-out/)
    await page.locator('button').click()
    const headers = await (await sent).allHeaders()
    assert.deepEqual([headers['sec-fetch-site'], headers.origin], ['same-origin', 'null'])
    await page.waitForURL(/sign-out/)
    assert.match(await page.locator('main').innerText(), /This came from another site/)
    assert.equal((await finance.ask('/office/payments')).status, 200)
    await context.close()
  })
})
