// Overview and reports in the back office: the figures are those of the payments, they change without a reload, each leads to what is behind it, and
// nobody sees what belongs to others.

import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import type { Browser, BrowserContext } from 'playwright-core'
import { recordChargeback } from '../src/clearing/chargebacks/chargebacks.ts'
import { openDirectory } from '../src/merchants/directory.ts'
import { clockWith, systemRandom } from '../src/platform/clock.ts'
import { connect } from '../src/platform/database/connect.ts'
import { roles } from '../src/staff/permissions.ts'
import { violations } from './support/axe.ts'
import { launchBrowser } from './support/chromium.ts'
import { decode } from './support/entities.ts'
import { eventually, sandbox, type TestGateway, testGateway, testKeys, visa } from './support/gateway.ts'
import { type Clerk, sandboxDeveloper, signedIn } from './support/office.ts'

const other = {
  merchantId: 'c0ffee000000000000000000000000e1',
  channelId: 'c0ffee000000000000000000000000c1',
  token: 'token-of-another-merchant',
}
// Noon, so that nothing crosses an hour or a day.
const clock = clockWith(() => Date.UTC(2030, 2, 31, 12))
const today = '2030-03-31'
const psp = '5a11d0000000000000000000000000a0'
let gateway: TestGateway
let browser: Browser
before(async () => {
  const seed = {
    psp: { id: psp, name: 'Sandbox' },
    divisions: [
      {
        id: 'c0ffee000000000000000000000000d1',
        name: 'Another',
        merchants: [{ id: other.merchantId, name: 'Another & Co', channels: [{ id: other.channelId, name: 'Another' }] }],
      },
    ],
    tokens: [{ label: 'another', token: other.token, entities: [other.merchantId] }],
  }
  ;[gateway, browser] = await Promise.all([testGateway({ seed, clock }), launchBrowser()])
  const { body: db } = await gateway.pay({ amount: '92.00', merchantTransactionId: '<b>order</b>' })
  await gateway.refer(db.id, { paymentType: 'RF', amount: '12.00', currency: 'EUR' })
  await gateway.pay({ amount: '1000.00', currency: 'BRL' })
  await gateway.pay({ paymentType: 'PA', amount: '8.00' })
  for (const code of ['800.100.152', '800.100.152', '800.100.153', '600.200.500'])
    await gateway.pay({ 'customParameters[forceResultCode]': code })
  const bearer = { Authorization: `Bearer ${other.token}` }
  await gateway.post(
    '/v1/payments',
    { entityId: other.channelId, paymentType: 'DB', amount: '7.77', currency: 'EUR', ...visa },
    bearer,
  )
})
after(async () => {
  await browser?.close()
  await gateway?.stop()
})

const plain = (text: string) => decode(text.replace(/<style[\s\S]*?<\/style>|<[^>]+>/g, ' ')).replace(/\s+/g, ' ')

async function opened(clerk: Clerk, options: object = {}): Promise<BrowserContext> {
  const context = await browser.newContext({ locale: 'en-US', ...options })
  await context.addCookies([...clerk.cookies].map(([name, value]) => ({ name, value, url: gateway.baseUrl })))
  return context
}

describe('the overview', () => {
  it('says how many payments came, how many were approved, for how much, and why not', async () => {
    const clerk = await signedIn(gateway, 'viewer', [sandbox.merchantId], clock)
    const { status, text } = await clerk.ask('/office/overview')
    assert.equal(status, 200)
    const said = plain(text)
    for (const expected of [
      'Payments 7 ',
      'Approved 50% of what was approved or declined', // 3 of 3 + 3
      'Volume €100.00 R$1,000.00 ',
      'Notifications under way 0 ',
      '800.100.152 The authorization system declined the payment 2 28.6%',
      '800.100.153 Declined because the CVV is wrong 1 14.3%',
      '600.200.500 Invalid payment data: the channel is not set up for this currency, country or brand 1 14.3%',
    ])
      assert.ok(said.includes(expected), `${expected} in ${said}`)
    assert.ok(said.includes('Time to an answer median 0 ms one in twenty above 0 ms'), said) // this clock stands still
    assert.match(text, /<title>[^<]*: 3 \/ 3 \/ 1<\/title>/)
    assert.equal(text.match(/<g><title>/g)!.length, 24)
    assert.equal((await clerk.ask('/office/overview?by=day')).text.match(/<g><title>/g)!.length, 30)
  })

  it('adds up all merchants within reach, or one of them, and nothing else', async () => {
    const payments = async (clerk: Clerk, query = '') =>
      /Payments (\d+) /.exec(plain((await clerk.ask(`/office/overview/figures${query}`)).text))![1]
    const all = await signedIn(gateway, 'finance', [psp], clock)
    const one = await signedIn(gateway, 'viewer', [other.merchantId], clock)
    assert.equal(await payments(all), '8')
    assert.equal(await payments(all, `?merchant=${other.merchantId}`), '1')
    assert.equal(await payments(one), '1')
    assert.equal(await payments(one, `?merchant=${sandbox.merchantId}`), '1')
    assert.doesNotMatch((await one.ask('/office/overview')).text, new RegExp(`1,000|${sandbox.merchantId}`))
  })

  it('counts what comes while somebody looks, and keeps open what was opened', async () => {
    const context = await opened(await sandboxDeveloper(gateway, clock))
    try {
      const page = await context.newPage()
      await page.goto(`${gateway.baseUrl}/office/overview`)
      assert.equal((await page.locator('.figure').first().textContent())!.trim(), '8')
      await page.click('summary:has-text("table")')
      await page.evaluate('document.activeElement.blur()')
      await gateway.pay()
      const first = page.locator('.figure').first()
      await eventually(async () => (await first.textContent())!.trim() === '9', 'the figure changes', 60)
      assert.equal(await page.locator('details[data-name=table]').getAttribute('open'), '')
    } finally {
      await context.close()
    }
  })

  it('is in Portuguese for whoever wants that', async () => {
    const clerk = await signedIn(gateway, 'viewer', [sandbox.merchantId], clock)
    const { text } = await clerk.ask('/office/overview', { 'Accept-Language': 'pt-BR' })
    assert.match(plain(text), /Visão geral .*Por que não/)
  })
})

describe('the reports', () => {
  const dayLink = (text: string, type: string) =>
    decode(new RegExp(`href="(/office/reports/[0-9a-f]{32}/[0-9a-f]{32})\\?type=${type}"`).exec(text)![1]!)

  it('sum up the days as the interface does, and lead to the payments', async () => {
    const clerk = await signedIn(gateway, 'finance', [sandbox.merchantId], clock)
    const { text } = await clerk.ask('/office/reports')
    const { body } = await gateway.get('/reports/v1/reconciliations/aggregations', {
      entityId: sandbox.merchantId,
      'date.from': today,
      'date.to': today,
    })
    assert.ok(body.aggregations.length >= 2)
    for (const { id, credit, debit, amount } of body.aggregations) {
      assert.ok(text.includes(id))
      assert.ok(plain(text).includes(`${credit} ${debit} ${amount}`), `${credit} ${debit} ${amount}`)
    }
    const day = await clerk.ask(`/office/reports/${sandbox.merchantId}/${body.aggregations[1].id}`)
    const records = (
      await gateway.get(`/reports/v1/reconciliations/aggregations/${body.aggregations[1].id}`, { entityId: sandbox.merchantId })
    ).body.records
    assert.ok(records.length >= 3)
    for (const { id, amount } of records) assert.ok(plain(day.text).includes(id) && plain(day.text).includes(`${amount} EUR`), id)
    assert.ok(day.text.includes('&lt;b&gt;order') && !day.text.includes('<b>order'))
    assert.match(dayLink(text, 'SETTLED'), /^\/office\/reports\//)
  })

  it('each figure of overview and reports leads to the payments and journal lines that make it', async () => {
    const clerk = await signedIn(gateway, 'finance', [psp], clock)
    const { body: charged } = await gateway.pay({ amount: '31.00', currency: 'USD', merchantTransactionId: 'charged back' })
    const database = connect(gateway.connection, clock, () => {})
    const directory = await openDirectory(database, testKeys, clock, () => {})
    const parts = { database, directory, clock, random: systemRandom, keys: testKeys, build: 'test' }
    const line = { report: 'r', line: 1, type: 'CB', reference: charged.id, amount: 2500, currency: 'USD', date: today } as const
    await recordChargeback(parts, { ...line, reason: '10.4' })
    await directory.close()
    await database.close()
    const allTaken = async () => (await gateway.pool.query('select from events where searched is null')).rowCount === 0
    await eventually(allTaken, 'events are taken')
    for (const [table, key] of [
      ['payments', 'id'],
      ['searched_payments', 'payment_id'],
    ])
      await gateway.pool.query(`update ${table} set received_at = received_at - interval '3 hours' where ${key} = $1`, [
        charged.id,
      ])

    const linksIn = (text: string, to: string) =>
      [...text.matchAll(new RegExp(`<a[^>]* ?href="(/office/${to}[^"]*)"[^>]*>([^<]*)</a>`, 'g'))].map(
        ([, path, figure]) => [decode(path!), decode(figure!)] as const,
      )
    /** Amounts in hundredths, as the pages behind a link show them, from the first to the last. */
    const behind = async (path: string, amounts: RegExp): Promise<number[]> => {
      const { status, text } = await clerk.ask(path)
      assert.equal(status, 200, path)
      const next = /href="([^"]+)"(?: rel="next")?>(?:Older|Next)</.exec(text)
      const here = [...text.matchAll(amounts)].map(([, amount]) => Math.round(Number(amount) * 100))
      return [...here, ...(next ? await behind(decode(next[1]!), amounts) : [])]
    }
    const sum = (amounts: readonly number[]) => amounts.reduce((total, one) => total + one, 0)

    let figures = 0
    for (const query of ['', '?by=day', `?merchant=${other.merchantId}`])
      for (const [path, figure] of linksIn((await clerk.ask(`/office/overview${query}`)).text, 'payments\\?')) {
        const amounts = await behind(path, /<span class="amount">(-?[\d.]+) [A-Z]{3}</g)
        if (/^\d+$/.test(figure)) assert.equal(amounts.length, Number(figure), `${figure} ${path}`)
        else if (/^[^\d]+[\d.,]+$/.test(figure))
          assert.equal(String(sum(amounts)), figure.replace(/\D/g, ''), `${figure} ${path}`)
        else assert.ok(amounts.length > 0, `${figure} ${path}`)
        figures++
      }
    assert.ok(figures > 20)

    const kinds = new Set<string>()
    for (const merchant of [sandbox.merchantId, other.merchantId])
      for (const row of (await clerk.ask(`/office/reports?entity=${merchant}`)).text.split('<tr>').slice(2)) {
        const links = linksIn(row.split('</tr>')[0]!, 'reports/')
        const [count, credit, debit, together, matched] = links.map(([, figure]) => figure)
        assert.equal(links.length, 5)
        const movements = await behind(links[0]![0], /<span class="code whole">(-?[\d.]+) [A-Z]{3}</g)
        const money = (amounts: readonly number[]) => (Math.abs(sum(amounts)) / 100).toFixed(2)
        assert.equal(String(movements.length), count)
        assert.deepEqual(
          [money(movements.filter(one => one > 0)), money(movements.filter(one => one < 0)), money(movements)],
          [credit, debit, together!.replace('-', '')],
        )
        assert.equal(matched, `${count} / ${count}`)
        kinds.add(/type=([A-Z+]+)/.exec(links[0]![0])![1]!)
        const payments = linksIn((await clerk.ask(links[0]![0])).text, 'payments/')
        assert.equal(payments.length, movements.length)
        for (const [at, [path, id]] of payments.entries()) {
          const line = (await clerk.ask(path)).text.split('<tr>').find(one => one.includes(id) && one.includes('posted'))
          assert.ok(line?.includes(money([movements[at]!])), `${path} has no line of ${movements[at]}`)
        }
      }
    assert.deepEqual([...kinds].sort(), ['CHARGEBACK', 'SETTLED'])
  })

  it('a file is the file of the interface, and who took it is told', async () => {
    const clerk = await signedIn(gateway, 'finance', [sandbox.merchantId], clock)
    const query = `entityId=${sandbox.merchantId}&date.from=${today}&date.to=${today}`
    const given = await fetch(`${gateway.baseUrl}/reports/v1/reconciliations/aggregations?${query}`, {
      headers: { Authorization: `Bearer ${sandbox.accessToken}`, Accept: 'text/csv' },
    })
    const taken = await clerk.ask(`/office/reports/${sandbox.merchantId}/file?from=${today}&to=${today}`)
    assert.equal(taken.text, await given.text())
    assert.match(taken.headers.get('content-disposition')!, /attachment/)
    const link = dayLink((await clerk.ask('/office/reports')).text, 'SETTLED')
    assert.match((await clerk.ask(`${link}/file`)).text, /^id,referencedId,/)
    const { rows } = await gateway.pool.query(`select actor, entity_id from audit where action = 'reportTaken'`)
    assert.deepEqual(rows, Array(2).fill({ actor: clerk.id, entity_id: sandbox.merchantId }))
  })

  it('nothing of another merchant is found, whoever asks and whatever the address', async () => {
    const own = await signedIn(gateway, 'admin', [sandbox.merchantId], clock)
    const link = dayLink((await own.ask('/office/reports')).text, 'SETTLED')
    const [, , , , id] = link.split('/')
    const foreign = await signedIn(gateway, 'admin', [other.merchantId], clock)
    for (const path of [link, `${link}/file`, `/office/reports/${sandbox.merchantId}/file`])
      assert.equal((await foreign.ask(path)).status, 404, path)
    for (const path of [`/office/reports/${other.merchantId}/${id}`, `/office/reports/${other.merchantId}/${id}/file`])
      assert.equal((await foreign.ask(path)).status, 404, path)
    const page = await foreign.ask(`/office/reports?entity=${sandbox.merchantId}`)
    assert.ok(page.text.includes('7.77') && !page.text.includes('1000.00'))
    assert.equal((await own.ask(`/office/reports/${sandbox.divisionId}/file`)).status, 404)
  })

  it('who may read and who may take away is the table of permissions', async () => {
    const allowed: Readonly<Record<string, readonly string[]>> = {
      '/office/overview': ['viewer', 'support', 'finance', 'developer', 'admin'],
      '/office/overview/figures': ['viewer', 'support', 'finance', 'developer', 'admin'],
      '/office/reports': ['viewer', 'finance', 'admin'],
      [`/office/reports/${sandbox.merchantId}/file`]: ['finance', 'admin'],
    }
    for (const role of roles) {
      const clerk = await signedIn(gateway, role, [sandbox.merchantId], clock)
      for (const [path, may] of Object.entries(allowed))
        assert.equal((await clerk.ask(path)).status, may.includes(role) ? 200 : 403, `${role} ${path}`)
      const links = (await clerk.ask('/office/reports')).text.includes('/file?')
      assert.equal(links, ['finance', 'admin'].includes(role), role)
    }
  })

  it('days that make no report are said, and stay in the form', async () => {
    const clerk = await signedIn(gateway, 'finance', [sandbox.merchantId], clock)
    const { status, text } = await clerk.ask('/office/reports?from=2026-02-02&to=2026-02-01')
    assert.equal(status, 400)
    assert.ok(plain(text).includes('must not be after date.to') && text.includes('value="2026-02-02"'))
    assert.match(plain((await clerk.ask('/office/reports?from=2001-01-01&to=2001-01-02')).text), /Nothing was booked/)
    assert.equal((await clerk.ask('/office/reports?from=x&to=2026-13-45&currency=%22%3E&mode=live')).status, 200)
  })
})

describe('looks', () => {
  for (const colorScheme of ['light', 'dark'] as const)
    it(`${colorScheme}: axe finds nothing, and nothing runs out of a phone`, async () => {
      const clerk = await sandboxDeveloper(gateway, clock)
      const context = await opened(clerk, { colorScheme })
      try {
        const page = await context.newPage()
        const { text } = await clerk.ask('/office/reports')
        const link = decode(/href="(\/office\/reports\/[0-9a-f]{32}\/[0-9a-f]{32}\?type=SETTLED)"/.exec(text)![1]!)
        for (const [name, path] of [
          ['overview', '/office/overview'],
          ['reports', '/office/reports'],
          ['movements', link],
        ] as const) {
          await page.goto(gateway.baseUrl + path)
          await page.evaluate(`for (const one of document.querySelectorAll('details')) one.open = true`)
          for (const width of [1280, 320]) {
            await page.setViewportSize({ width, height: 900 })
            assert.deepEqual(await violations(page), [], `${name} at ${width}`)
            assert.ok(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), `${name} at ${width}`)
            if (process.env.SCREENSHOTS === undefined) continue
            mkdirSync(process.env.SCREENSHOTS, { recursive: true })
            await page.screenshot({ path: `${process.env.SCREENSHOTS}/${name}-${colorScheme}-${width}.png`, fullPage: true })
          }
        }
      } finally {
        await context.close()
      }
    })
})
