// The pages of slips: a scanner reads what they show, on a screen and on paper; they are private, and true about how the slip stands.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { crc32, inflateSync } from 'node:zlib'
import { barcodePng } from '../src/pages/slip/barcodePng.ts'
import { barPlaces, barsOf, modulesOf } from '../src/pages/slip/bars.ts'
import { slipPapers } from '../src/pages/slip/pdf.ts'
import type { SlipView } from '../src/pages/slip/view.ts'
import { systemClock } from '../src/platform/clock.ts'
import { violations } from './support/axe.ts'
import { launchBrowser, pictureOf } from './support/chromium.ts'
import { type Body, type Fields, sandbox, type TestGateway, testGateway } from './support/gateway.ts'
import { boleto, oxxo } from './support/slips.ts'

let gateway: TestGateway
let folder: string
before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tollgate-slips-'))
  const file = join(folder, 'slips.json')
  const beneficiary = {
    name: 'Loja Ltda.',
    taxId: '11222333000181',
    street: 'Rua 1',
    city: 'Sao Paulo',
    state: 'SP',
    postcode: '01310100',
  }
  const itau = {
    name: 'itau',
    bank: '341',
    modes: ['internal'],
    agency: '0057',
    account: '12345',
    accountDigit: '7',
    wallet: '110',
    beneficiary,
  }
  const banks = [{ ...itau, pix: { key: '11222333000181' } }]
  writeFileSync(file, JSON.stringify({ banks, chains: [{ name: 'oxxo', modes: ['internal'], prefix: '20' }] }))
  gateway = await testGateway({ environment: { SLIPS_FILE: file } })
})
after(async () => {
  await gateway?.stop()
  rmSync(folder, { recursive: true })
})

const issue = async (fields: Fields): Promise<Body> => {
  const { status, body } = await gateway.post('/v1/payments', fields)
  assert.equal(status, 200, JSON.stringify(body.result))
  return body.resultDetails
}
const page = async (url: string, headers: Record<string, string> = {}) => {
  const answer = await fetch(url, { headers, redirect: 'manual' })
  return { status: answer.status, headers: answer.headers, text: await answer.text() }
}
const bytes = async (url: string) => Buffer.from(await (await fetch(url)).arrayBuffer())

const missing = ['zbarimg', 'pdftoppm', 'pdftotext'].filter(name => spawnSync(name, ['--version']).error)
const scanners = missing.length === 0 ? false : `${missing.join(' and ')} missing: apt-get install zbar-tools poppler-utils`
/** What a scanner reads, sorted. */
function scanned(image: string): string[] {
  const { stdout } = spawnSync('zbarimg', ['-q', '-Si25.enable=1', '--nodbus', image], { encoding: 'utf8' })
  return stdout.split('\n').filter(Boolean).sort()
}

describe('bars', () => {
  it('interleaved 2 of 5, by the example of a bank: the first of each pair in the bars, the second in the spaces', () => {
    const bars = barsOf('interleaved2of5', '0123')
    assert.equal(
      bars
        .slice(4, -3)
        .map(width => 'EL'[width === 3 ? 1 : 0])
        .join(''),
      'ELEELELEELELLLEEEELE',
    )
  })

  it('44 digits are 405 modules wide, 30 digits in pairs 200', () => {
    assert.equal(modulesOf(barsOf('interleaved2of5', '0'.repeat(44))), 405)
    assert.equal(modulesOf(barsOf('code128', '0'.repeat(30))), 200)
    assert.deepEqual(barPlaces([1, 2, 3, 4, 1]), [
      [0, 1],
      [3, 3],
      [10, 1],
    ])
    assert.throws(() => barsOf('code128', '123'), /pairs/)
  })
})

describe('the image of a barcode', () => {
  it('is a whole PNG: white, the bars in pixels of their own, and the digits', () => {
    for (const [kind, digits] of [
      ['code128', '0123456789'.repeat(3)],
      ['interleaved2of5', '0123456789'.repeat(4)],
    ] as const) {
      const image = barcodePng(kind, digits)
      const chunks = new Map<string, Buffer>()
      for (let at = 8; at < image.length; ) {
        const length = image.readUInt32BE(at)
        const named = image.subarray(at + 4, at + 8 + length)
        assert.equal(image.readUInt32BE(at + 8 + length), crc32(named))
        chunks.set(named.subarray(0, 4).toString(), named.subarray(4))
        at += 12 + length
      }
      assert.deepEqual([...chunks.keys()], ['IHDR', 'IDAT', 'IEND'])
      const [width, height] = [chunks.get('IHDR')!.readUInt32BE(0), chunks.get('IHDR')!.readUInt32BE(4)]
      const bars = barsOf(kind, digits)
      assert.equal(width, (modulesOf(bars) + 30) * 3)
      const written = inflateSync(chunks.get('IDAT')!)
      const bytes = written.length / height
      assert.equal(bytes, 1 + Math.ceil(width / 8))
      const rows = Array.from({ length: height }, (_, at) =>
        [...written.subarray(at * bytes + 1, (at + 1) * bytes)]
          .map(byte => byte.toString(2).padStart(8, '0'))
          .join('')
          .slice(0, width),
      )
      const drawn = bars.map((wide, at) => (at % 2 === 0 ? '0' : '1').repeat(wide * 3)).join('')
      assert.equal(rows.filter(row => row === `${'1'.repeat(45)}${drawn}${'1'.repeat(45)}`).length, 110)
      assert.equal(rows.filter(row => !row.includes('0')).length, 39)
      assert.equal(rows.length, 39 + 110 + 21)
    }
  })
})

it('papers are drawn one at a time, everybody else has a turn between, and a crowd waits for all others', async () => {
  const view = {
    slip: { issuedAt: 0, dueOn: '2034-05-01', amount: 12345, currency: 'MXN', line: '0123456789', barcode: '0123456789' },
    account: { kind: 'chain', country: 'MX', title: 'OXXO' },
    shop: { name: 'Tienda' },
    payer: { name: 'Ana' },
  } as unknown as SlipView
  const draw = slipPapers(systemClock)
  await draw('192.0.2.1', view) // loads the library
  let turn = 0
  let next = setImmediate(function count() {
    turn++
    next = setImmediate(count)
  })
  const crowd = Array.from({ length: 12 }, () => draw('192.0.2.1', view).then(() => turn))
  const other = await draw('192.0.2.2', view).then(() => turn)
  const turns = await Promise.all(crowd)
  clearImmediate(next)
  assert.equal(new Set([...turns, other]).size, 13, turns.join(' '))
  assert.ok(other < turns[3]!, `${other}: ${turns}`)
})

describe('a scanner reads', () => {
  const onPaper = (pdf: Buffer) => {
    writeFileSync(join(folder, 'slip.pdf'), pdf)
    spawnSync('pdftoppm', ['-r', '300', '-gray', '-png', '-singlefile', join(folder, 'slip.pdf'), join(folder, 'slip')])
    const { stdout } = spawnSync('pdftotext', [join(folder, 'slip.pdf'), '-'], { encoding: 'utf8' })
    return { read: scanned(join(folder, 'slip.png')), text: stdout }
  }

  it('the paper of a bank slip: bars and Pix, and people the line', { skip: scanners }, async () => {
    const details = await issue(boleto)
    const { read, text } = onPaper(await bytes(`${details.EXTERNAL_SYSTEM_LINK}/slip.pdf`))
    assert.equal(read.length, 2)
    assert.equal(read[0], `I2/5:${details.EXTERNAL_SYSTEM_BARCODE_NUMBER}`)
    assert.match(read[1]!, /^QR-Code:000201.*br\.gov\.bcb\.pix.*5406123\.45/)
    for (const word of [
      details.DigitableLine,
      details.ConnectorTxID1,
      '341-7',
      'João da Silva',
      '111.444.777-35',
      '123,45',
      'Ficha de Compensação',
    ])
      assert.ok(text.includes(word), word)
  })

  it('the bars of the paper are 103 × 13 mm', async () => {
    const details = await issue(boleto)
    const pdf = (await bytes(`${details.EXTERNAL_SYSTEM_LINK}/slip.pdf`)).toString('latin1')
    const start = pdf.indexOf('stream\n') + 7
    const content = inflateSync(Buffer.from(pdf.slice(start, pdf.indexOf('endstream', start)), 'latin1')).toString('latin1')
    const drawn = [...content.matchAll(/^([\d.]+) ([\d.]+) ([\d.]+) ([\d.]+) re$/gm)].map(([, ...numbers]) => numbers.map(Number))
    const bars = drawn.filter(([, , , high]) => Math.abs(high! - (13 * 72) / 25.4) < 0.01)
    assert.equal(bars.length, 2 + 22 * 5 + 2)
    const [first, last] = [bars[0]!, bars.at(-1)!]
    assert.ok(Math.abs(last[0]! + last[2]! - first[0]! - (103 * 72) / 25.4) < 0.05)
  })

  it('the paper and the image of a store slip', { skip: scanners }, async () => {
    const details = await issue(oxxo)
    const expected = [`CODE-128:${details.EXTERNAL_SYSTEM_BARCODE_NUMBER}`]
    assert.deepEqual(onPaper(await bytes(`${details.EXTERNAL_SYSTEM_LINK}/slip.pdf`)).read, expected)
    writeFileSync(join(folder, 'image.png'), await bytes(details.EXTERNAL_SYSTEM_BARCODE_IMAGE))
    assert.deepEqual(scanned(join(folder, 'image.png')), expected)
  })

  it('the screen of a phone, light and dark; the page is free of barriers, and copies its line', { skip: scanners }, async () => {
    const [slip, store] = [await issue(boleto), await issue(oxxo)]
    const browser = await launchBrowser()
    try {
      for (const [details, colorScheme] of [
        [slip, 'light'],
        [store, 'dark'],
      ] as const) {
        const context = await browser.newContext({ viewport: { width: 390, height: 844 }, deviceScaleFactor: 3, colorScheme })
        const screen = await context.newPage()
        const problems: string[] = []
        screen.on('console', message => message.type() === 'error' && problems.push(message.text()))
        await screen.goto(details.EXTERNAL_SYSTEM_LINK)
        writeFileSync(join(folder, 'screen.png'), await pictureOf(screen))
        assert.ok(scanned(join(folder, 'screen.png')).some(one => one.endsWith(`:${details.EXTERNAL_SYSTEM_BARCODE_NUMBER}`)))
        assert.ok(await screen.evaluate('document.documentElement.scrollWidth <= innerWidth'), 'nothing is cut off')
        await screen.click('[data-copies=line]')
        assert.equal(await screen.evaluate('String(getSelection())'), details.DigitableLine ?? details.Reference)
        assert.deepEqual(await violations(screen), [])
        assert.deepEqual(problems, [])
        await context.close()
      }
    } finally {
      await browser.close()
    }
  })
})

describe('the page', () => {
  it('is private: no store keeps it, no other page is told of it, nobody guesses it', async () => {
    const { EXTERNAL_SYSTEM_LINK: link } = await issue(boleto)
    for (const address of [link, `${link}/slip.pdf`, `${link}/barcode.png`]) {
      const { status, headers } = await page(address)
      assert.deepEqual(
        [status, headers.get('cache-control'), headers.get('referrer-policy')],
        [200, 'private, no-store', 'no-referrer'],
      )
      assert.match(headers.get('content-security-policy')!, /frame-ancestors 'none'$/)
    }
    const other = link.replace(/slip\/./, (begins: string) => `slip/${begins.endsWith('_') ? '-' : '_'}`)
    for (const address of [other, `${other}/slip.pdf`, `${gateway.baseUrl}/slip/x`, `${gateway.baseUrl}/slip/x/barcode.png`])
      assert.equal((await page(address)).status, 404, address)
    const { rows } = await gateway.pool.query('select * from slips')
    assert.ok(!JSON.stringify(rows).includes(link.split('/').at(-1)))
  })

  it('that waits for the database for too long says when to come again, as the page of a redirect does', async () => {
    const { EXTERNAL_SYSTEM_LINK: link } = await issue(boleto)
    const away = {
      shopperResultUrl: 'https://shop.example/',
      'card.number': '4200000000000018',
      'customParameters[3DS2_enrolled]': 'true',
    }
    const { body } = await gateway.pay(away)
    const client = await gateway.pool.connect()
    try {
      await client.query('begin; lock table slips, continuations in access exclusive mode')
      const answers = await Promise.all([link, `${link}/slip.pdf`, body.redirect.url].map(url => page(url)))
      assert.deepEqual(
        answers.map(({ status, headers }) => [status, headers.get('retry-after'), headers.get('content-type')]),
        Array(3).fill([503, '2', 'text/html;charset=UTF-8']),
      )
    } finally {
      await client.query('rollback')
      client.release()
    }
    assert.equal((await page(link)).status, 200)
  })

  it('shows no tax id, and what a shop wrote as what it is', async () => {
    const product = "D'Água - 1. edição"
    const { EXTERNAL_SYSTEM_LINK: link } = await issue({ ...boleto, 'customParameters[product]': product })
    const { text } = await page(link)
    assert.ok(!/111\.?444\.?777/.test(text) && text.includes('***444777**'))
    assert.ok(text.includes('D&#39;Água'))
  })

  it('a logo of the shop is fetched by the browser alone, and only from where the page says', async () => {
    const logo = 'https://cdn.example/logo.png'
    const { EXTERNAL_SYSTEM_LINK: link } = await issue({ ...oxxo, 'customParameters[url_logo]': logo })
    const { text, headers } = await page(link)
    assert.ok(text.includes(`<img src="${logo}"`))
    assert.match(headers.get('content-security-policy')!, /img-src data: https:\/\/cdn\.example;/)
    const { body } = await gateway.post('/v1/payments', { ...oxxo, 'customParameters[url_logo]': 'http://cdn.example/logo.png' })
    assert.equal(body.result.parameterErrors[0].name, 'customParameters[url_logo]')
  })

  const spoken: readonly (readonly [wanted: string, fields: Fields, tag: string])[] = [
    ['', boleto, 'pt'],
    ['de-DE', boleto, 'pt'],
    ['de-DE', oxxo, 'es'],
    ['en-GB,de', oxxo, 'en'],
    ['es-MX', boleto, 'es'],
  ]
  for (const [wanted, fields, tag] of spoken)
    it(`${fields.paymentBrand} for a browser that wants ${wanted || 'nothing'} is in ${tag}`, async () => {
      const { EXTERNAL_SYSTEM_LINK: link } = await issue(fields)
      assert.match((await page(link, { 'Accept-Language': wanted })).text, new RegExp(`<html lang="${tag}"`))
    })

  it('payable, overdue, and paid by the button of the sandbox, once', async () => {
    const { EXTERNAL_SYSTEM_LINK: link } = await issue(boleto)
    const state = async () => /class="state (\w+)"/.exec((await page(link)).text)![1]
    assert.equal(await state(), 'payable')
    await gateway.advance('200h')
    assert.equal(await state(), 'overdue')
    assert.equal((await page(`${link}/slip.pdf`)).status, 200)
    const press = () =>
      fetch(`${link}/pay`, {
        method: 'POST',
        redirect: 'manual',
        headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
      })
    assert.deepEqual([(await press()).status, (await press()).status], [303, 303])
    const { rowCount } = await gateway.pool.query(`select 1 from payments where payment_type = 'RC'`)
    assert.equal(rowCount, 1)
    assert.equal(await state(), 'paid')
    assert.ok(!(await page(link)).text.includes('data-copies="'))
    assert.equal((await page(`${link}/slip.pdf`)).status, 303)
  })

  it('withdrawn by the shop, it cannot be printed any more', async () => {
    const { body } = await gateway.post('/v1/payments', boleto)
    const link = body.resultDetails.EXTERNAL_SYSTEM_LINK
    await gateway.refer(body.id, { paymentType: 'RV' })
    assert.match((await page(link)).text, /class="state writtenOff"/)
    assert.equal((await page(`${link}/slip.pdf`)).status, 303)
  })

  it('of another merchant shows nothing under this one', async () => {
    const { EXTERNAL_SYSTEM_LINK: link } = await issue(boleto)
    const foreign = link.replace(/\.[0-9a-z]+$/, `.${BigInt(`0x${sandbox.divisionId}`).toString(36)}`)
    assert.equal((await page(foreign)).status, 404)
  })
})

describe('in the payment form', () => {
  const begin = async (fields: Fields): Promise<string> => {
    const made = await gateway.post('/v1/checkouts', {
      entityId: sandbox.entityId,
      amount: '50.00',
      currency: 'BRL',
      shopperResultUrl: `${gateway.baseUrl}/health`,
      ...fields,
    })
    assert.equal(made.status, 200, made.text)
    return made.body.id
  }

  it('a slip is offered where it can be issued, by its type and currency', async () => {
    const offers = async (fields: Fields) =>
      (await page(`${gateway.baseUrl}/pay/${await begin(fields)}`)).text.match(/way-(BOLETO|OXXO)/g) ?? []
    assert.deepEqual(await offers({ paymentType: 'PA' }), ['way-BOLETO'])
    assert.deepEqual(await offers({ paymentType: 'DB' }), [])
    assert.deepEqual(await offers({ paymentType: 'DB', 'overridePaymentType[BOLETO]': 'PA' }), ['way-BOLETO'])
    assert.deepEqual(await offers({ paymentType: 'PA', currency: 'MXN' }), ['way-OXXO'])
  })

  it('the shopper says what the merchant has not, is told what is wrong, and gets the slip', async () => {
    const id = await begin({
      paymentType: 'DB',
      'overridePaymentType[BOLETO]': 'PA',
      'customer.givenName': 'Ana',
      'customer.surname': 'Lima',
    })
    const browser = await launchBrowser()
    try {
      const screen = await browser.newPage({ viewport: { width: 390, height: 844 }, locale: 'pt-BR' })
      screen.setDefaultTimeout(30_000)
      await screen.goto(`${gateway.baseUrl}/pay/${id}`)
      await screen.check('#way-BOLETO')
      assert.equal(await screen.locator('[name="customer.givenName"]').count(), 0)
      await screen.click('#pay')
      assert.equal(await screen.locator('[id="BOLETO-billing.city-error"]').textContent(), 'Preencha este campo.')
      const typed: Fields = {
        'customer.email': 'ana@example.com',
        'customer.identificationDocId': '111.444.777-36',
        'billing.street1': 'Rua 1',
        'billing.city': 'Recife',
        'billing.state': 'PE',
        'billing.postcode': '50030-230',
      }
      for (const [name, value] of Object.entries(typed)) await screen.fill(`[name="${name}"]`, value)
      assert.deepEqual(await violations(screen), [])
      await screen.click('#pay')
      await screen.getByText('Confira este campo.').waitFor()
      await screen.fill('[name="customer.identificationDocId"]', '111.444.777-35')
      await screen.click('#pay')
      await screen.waitForURL(/\/slip\//)
      assert.match((await screen.locator('h1').textContent()) ?? '', /^Pagar até/)
      assert.equal(
        await screen.locator('a.plain').getAttribute('href'),
        `${gateway.baseUrl}/health?id=${id}&resourcePath=${encodeURIComponent(`/v1/checkouts/${id}/payment`)}`,
      )
    } finally {
      await browser.close()
    }
    const { body } = await gateway.get(`/v1/checkouts/${id}/payment`, { entityId: sandbox.entityId })
    assert.deepEqual(
      [body.paymentType, body.paymentBrand, body.customer.givenName, body.billing.country],
      ['PA', 'BOLETO', 'Ana', 'BR'],
    )
    assert.equal(body.customer.ip, '127.0.0.1')
  })

  it('where the merchant has said who pays, no shopper says otherwise', async () => {
    const said = Object.fromEntries(Object.entries(boleto).filter(([name]) => /^(customer|billing|customParameters)/.test(name)))
    const id = await begin({ ...said, paymentType: 'PA' })
    const answer = await fetch(`${gateway.baseUrl}/v1/checkouts/${id}/payment`, {
      method: 'POST',
      headers: { Accept: 'application/json', 'Content-Type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ paymentBrand: 'BOLETO', 'customer.givenName': 'Eve', 'billing.city': 'Elsewhere' }),
    })
    const { redirect } = (await answer.json()) as Body
    assert.match(redirect.url, /\/slip\//)
    const { body } = await gateway.get(`/v1/checkouts/${id}/payment`, { entityId: sandbox.entityId })
    assert.deepEqual([body.customer.givenName, body.billing.city], ['João', 'São Paulo'])
  })
})
