// The pages for developers: every request of the interface has one, its examples run, its form sends; codes are found; events happen; all by keyboard,
// on a phone, in light and dark.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { operations } from '../src/contract/operations.ts'
import { resultOfCode, results } from '../src/contract/results/results.ts'
import type { Request } from '../src/http/answer.ts'
import { programs, type SampleRequest } from '../src/pages/developers/browser/programs.ts'
import { findCodes } from '../src/pages/developers/codes.ts'
import { operationNamed, operationPage } from '../src/pages/developers/reference.ts'
import { developerRoutes } from '../src/pages/developers/routes.ts'
import { sampleOf } from '../src/pages/developers/samples.ts'
import type { OfficeParts } from '../src/pages/office/parts.ts'
import { ownPath } from '../src/pages/office/route.ts'
import { violations } from './support/axe.ts'
import { launchBrowser } from './support/chromium.ts'
import { decode } from './support/entities.ts'
import { eventually, sandbox, type TestGateway, testGateway } from './support/gateway.ts'

let gateway: TestGateway
let browser: Browser
let page: Page
before(async () => {
  ;[gateway, browser] = await Promise.all([testGateway(), launchBrowser()])
  page = await (await browser.newContext({ locale: 'en-US' })).newPage()
})
after(async () => {
  await browser?.close()
  await gateway?.stop()
})

const get = (path: string) => fetch(`${gateway.baseUrl}${path}`)
const open = (path: string) => page.goto(`${gateway.baseUrl}${path}`)
/** What the page says once it has said something else than before. */
const said = async (pattern: RegExp) => {
  const status = page.locator('#status')
  await eventually(async () => pattern.test((await status.textContent()) ?? ''), String(pattern), 30)
  return (await page.locator('#answer').textContent()) ?? ''
}
const paths = ['/docs/api', '/docs/api/pay', '/docs/api/searchPayments', '/docs/codes?q=800.100.15', '/docs/events']

describe('the reference', () => {
  it('has a page for every request, and each but those of shoppers can be tried', async () => {
    const index = await (await get('/docs/api')).text()
    for (const { id, path, says, byBrowser } of operations) {
      assert.ok(index.includes(`href="/docs/api/${id}"`), id)
      const response = await get(`/docs/api/${id}`)
      const text = decode(await response.text())
      assert.equal(response.status, 200, id)
      assert.ok(text.includes(`<h1>${says}</h1>`) && text.includes(path), id)
      assert.equal(text.includes('id="try"'), !byBrowser && id !== 'queryXml', id)
    }
    assert.equal((await get('/docs/api/nowhere')).status, 404)
  })

  it('names every parameter of a payment, with its format', async () => {
    const text = decode(await (await get('/docs/api/pay')).text())
    for (const name of ['card.number', 'cart.items[n].price', 'customParameters[name]', 'merchantTransactionId'])
      assert.ok(text.includes(`<code>${name}</code></td>`), name)
    assert.ok(text.includes('AN255, 8 to 255'))
  })

  it('a form pays, and what it answered can be referred to on the next page', async () => {
    await open('/docs/api/pay')
    await page.fill('[name=amount]', '41.00')
    assert.match((await page.locator('#program-0').textContent())!, /amount=41\.00/)
    await page.click('#try button')
    const paid = JSON.parse(await said(/^HTTP 200, result 000\.100\.110$/))
    assert.equal(paid.amount, '41.00')
    await open('/docs/api/followUpPayment')
    assert.equal(await page.inputValue('#id'), paid.id)
    assert.match((await page.locator('#program-1').textContent())!, new RegExp(`/v1/payments/${paid.id}'`))
    await page.click('#try button')
    const refunded = JSON.parse(await said(/^HTTP 200, result 000\.100\.110$/))
    assert.deepEqual([refunded.referencedId, refunded.paymentType, refunded.amount], [paid.id, 'RF', '10.00'])
    await page.fill('[name=amount]', '1000.00')
    await page.fill('#more-name', 'custmer.givenName')
    await page.fill('#more-value', 'Jane')
    await page.press('#more-value', 'Enter')
    const refused = JSON.parse(await said(/^HTTP 400, result 700\.400\.200$/))
    assert.equal(refused.result.description, results.refundAboveCleared.description)
  })

  it('a blank field is left out, and an id that is missing is asked for', async () => {
    await open('/docs/api/pay')
    await page.fill('[name=currency]', '')
    await page.click('#try button')
    const { result } = JSON.parse(await said(/^HTTP 400/))
    assert.deepEqual(
      result.parameterErrors.map(({ name }: { name: string }) => name),
      ['currency'],
    )
    await open('/docs/api/readPayment')
    await page.fill('#id', '')
    await page.click('#try button')
    await said(/^Fill in \{id\} first/)
    assert.equal(await page.evaluate('document.activeElement.id'), 'id')
  })

  it('reads, searches and reports by GET', async () => {
    for (const id of ['searchPayments', 'reportSettlement', 'queryPayments', 'health', 'listResultCodes']) {
      await open(`/docs/api/${id}`)
      await page.click('#try button')
      await said(/^HTTP 200, result 000\.000\.100$/)
    }
  })
})

describe('the examples', () => {
  const runs: Readonly<Record<string, readonly [program: string, ...words: string[]]>> = {
    curl: ['sh', '-c'],
    'Node.js': [process.execPath, '--input-type=module', '-e'],
    Python: ['python3', '-c'],
    PHP: ['php', '-r'],
  }
  for (const [language, write] of Object.entries(programs))
    it(`in ${language} run as they stand: a payment, a search, a deletion, and odd characters`, async t => {
      const [program, ...words] = runs[language]!
      if (spawnSync(language === 'curl' ? 'curl' : program, ['--version'], { stdio: 'ignore' }).status !== 0)
        return t.skip(`${language} is missing on this machine`)
      const url = gateway.baseUrl
      const odd = `it's "odd" \\ & 100% $HOME <ä> -`
      const operation = (id: string) => operations.find(one => one.id === id)!
      const run = async (id: string, method: SampleRequest['method'], path: string, more: readonly [string, string][] = []) => {
        const fields = [...sampleOf(operation(id), sandbox.entityId, '2026-01-01')!, ...more]
        const text = write({ method, url: url + path, token: sandbox.accessToken, fields })
        const child = await runProgram(program, [...words, text.replace(/^<\?php\n/, '')])
        return child
      }
      const paid = await run('pay', 'POST', '/v1/payments', [['customParameters[odd]', odd]])
      assert.match(paid, /000\.100\.110/)
      const id = /\b[0-9a-f]{32}\b/.exec(paid)![0]
      const { body } = await gateway.get(`/v1/payments/${id}`, { entityId: sandbox.entityId })
      assert.equal(body.customParameters.odd, odd)
      assert.match(await run('queryPayments', 'GET', '/v1/query'), /000\.000\.100/)
      const checkout = (
        await gateway.post('/v1/checkouts', { entityId: sandbox.entityId, amount: '1.00', currency: 'EUR', paymentType: 'DB' })
      ).body.id
      assert.match(await run('deleteCheckout', 'DELETE', `/v1/checkouts/${checkout}`), /000\.\d{3}\.\d{3}/)
      assert.match(await run('readPayment', 'GET', '/v1/payments/00000000000000000000000000000000'), /700\.400\.580/)
      const health = write({ method: 'GET', url: `${url}/health`, fields: [] })
      assert.match(await runProgram(program, [...words, health.replace(/^<\?php\n/, '')]), /000\.000\.100/)
    })
})

/** The gateway is in this process, so that it must not wait for the program. */
async function runProgram(program: string, words: readonly string[]): Promise<string> {
  const { spawn } = await import('node:child_process')
  const child = spawn(program, words, { stdio: ['ignore', 'pipe', 'pipe'] })
  let text = ''
  child.stdout.on('data', part => (text += part))
  child.stderr.on('data', part => (text += part))
  await new Promise(resolve => child.once('close', resolve))
  return text
}

describe('result codes', () => {
  it('are found by code, by its beginning, by name, by words and by outcome', () => {
    const names = (asked: string, outcome = '') => findCodes(asked, outcome).map(({ name }) => name)
    assert.ok(names('').length > resultOfCode.size)
    assert.deepEqual(names('800.100.152'), ['declinedByAuthorization'])
    assert.ok(names('800.100.').every(name => results[name].code.startsWith('800.100.')))
    assert.ok(names('alreadycaptured').includes('alreadyCaptured'))
    assert.ok(names('CAPTURED preauthorization').includes('alreadyCaptured'))
    assert.deepEqual(names('alreadyCaptured', 'success'), [])
    assert.ok(names('', 'pending').every(name => results[name].outcome === 'pending'))
    assert.deepEqual(names('no such words at all'), [])
  })

  it('are found in the page without a script, and say who must act', async () => {
    const text = decode(await (await get('/docs/codes?q=800.100.152&outcome=rejected')).text())
    assert.match(text, /<article id="declinedByAuthorization">/)
    assert.match(text, /One result\./)
    assert.match(text, /Who must act: the bank that issued the card/)
    const odd = await (await get('/docs/codes?q=%22%3E%3Cscript%3E')).text()
    assert.match(odd, /No code fits/)
    assert.doesNotMatch(odd, /"><script>/)
  })
})

describe('events', () => {
  it('happen at the press of a button', async () => {
    await open('/docs/events')
    await page.click('[aria-label="Make it happen: capture"]')
    const log = await said(/^HTTP 200, result 000\.100\.110, payment [0-9a-f]{32}$/)
    await eventually(
      async () => /"paymentType": "CP"/.test((await page.locator('#answer').textContent()) ?? ''),
      'the capture',
      30,
    )
    assert.match(log, /POST \/v1\/payments/)
    await page.click('[aria-label="Make it happen: payment.declined"]')
    await said(/^HTTP 400, result 800\.100\.15/)
  })
})

it('the document of the interface is served as it is, with this address', async () => {
  const response = await get('/openapi.json')
  const document = (await response.json()) as { servers: { url: string }[]; paths: object }
  assert.equal(response.headers.get('access-control-allow-origin'), '*')
  assert.deepEqual(document.servers, [{ url: gateway.baseUrl }])
  assert.deepEqual(Object.keys(document.paths).length, new Set(operations.map(({ path }) => path)).size)
})

it('pages let nothing in from elsewhere', async () => {
  for (const path of paths) {
    const policy = (await get(path)).headers.get('content-security-policy')!
    assert.match(policy, /^default-src 'none'; script-src 'nonce-[^']+'; style-src 'nonce-[^']+'; connect-src 'self'/)
    assert.doesNotMatch(policy, /unsafe|http|\*/)
  }
})

it('in live mode only who works here reads them, and nothing can be sent', async () => {
  const routes = developerRoutes({ sandbox: false, publicUrl: () => 'https://pay.example' } as OfficeParts, undefined)
  assert.deepEqual(
    routes.map(({ path }) => path),
    ['/openapi.json', '/docs/api', '/docs/api/{operation}', '/docs/codes'],
  )
  const stranger: Request = {
    path: '/docs/api',
    query: '',
    method: 'GET',
    headers: {},
    address: '',
    networks: [''],
    lines: [''],
    publicUrl: 'https://pay.example',
    number: '',
    charset: 'utf-8',
    body: '',
    isGone: () => false,
    isServers: () => {},
    inTurn: work => work(),
    whenAnswered: [],
    seen: {},
  }
  for (const { answer, path } of routes) {
    const { status, headers } = await answer({ ...stranger, path }, {})
    assert.deepEqual([status, headers?.Location?.slice(0, 20)], [303, '/office/sign-in?to=%'], path)
    // A proxy with no room for a longer head would take the gateway for one that is down.
    for (const query of ['a'.repeat(6000), "'".repeat(1000)]) {
      const long = await answer({ ...stranger, path, query }, {})
      assert.deepEqual([long.status, long.headers?.Location], [303, '/office/sign-in?to=%2Foffice'])
    }
    const short = await answer({ ...stranger, path, query: `a=${'b'.repeat(1000)}` }, {})
    assert.equal(new URL(short.headers!.Location!, 'http://x').searchParams.get('to'), `${path}?a=${'b'.repeat(1000)}`)
  }
  // Nobody is led to a file, of which the audit would tell that he took it.
  for (const path of [
    '/office/payments.csv',
    '/office/payments.csv/',
    '/office/x/%2e%2e/payments.csv/.',
    '/office/reports/a/b/file',
    '/office/exports/a/file?x=1',
    // Nor to what leads on to another host, or signs him in as somebody else.
    '/',
    '/r/0123456789abcdef',
    '/office/../r/0123456789abcdef',
    '/office/%2e%2e/pay/x',
    '/officer',
    '/office/enter/0123456789abcdef',
    // A server makes one slash of several.
    '/office//enter/0123456789abcdef',
    '/office/x/..//enter/0123456789abcdef',
    '/office//payments.csv',
  ])
    assert.equal(ownPath(path), '/office', path)
  for (const path of ['/office', '/office?a=/r/x', '/office/payments?q=a.csv', '/office/profile'])
    assert.equal(ownPath(path), path)
  const page = operationPage(operationNamed('pay')!, 'https://pay.example', '2026-01-01', undefined).html
  assert.ok(page.includes('Bearer ACCESS_TOKEN') && page.includes('entityId=ENTITY_ID'))
  assert.doesNotMatch(page, /id="try"|5a11d0/)
})

describe('looks', () => {
  for (const colorScheme of ['light', 'dark'] as const)
    it(`${colorScheme}: axe finds nothing, and nothing runs out of a phone`, async () => {
      const context = await browser.newContext({ locale: 'en-US', colorScheme })
      try {
        const looked = await context.newPage()
        for (const path of paths) {
          await looked.goto(gateway.baseUrl + path)
          await looked.setViewportSize({ width: 1280, height: 900 })
          await looked.evaluate(`for (const one of document.querySelectorAll('details')) one.open = true`)
          assert.deepEqual(await violations(looked), [], path)
          for (const width of [320, 1280]) {
            await looked.setViewportSize({ width, height: 900 })
            assert.ok(await looked.evaluate('document.documentElement.scrollWidth <= innerWidth'), `${path} at ${width}`)
            if (process.env.SCREENSHOTS === undefined) continue
            mkdirSync(process.env.SCREENSHOTS, { recursive: true })
            await looked.evaluate(
              `for (const one of document.querySelectorAll('details')) one.open = one.querySelector('#program-0') !== null`,
            )
            await looked.screenshot({
              path: `${process.env.SCREENSHOTS}/${path.replace(/\W+/g, '-')}-${colorScheme}-${width}.png`,
            })
          }
        }
      } finally {
        await context.close()
      }
    })
})
