// The simulators' pages: what a tester may press stands apart from what shoppers would see, and every button keeps what it says.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import net, { type AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import type { Request } from '../src/http/answer.ts'
import { languages } from '../src/pages/languages/languages.ts'
import { forwardTo } from '../src/sandbox/forward.ts'
import { decode } from './support/entities.ts'
import { type Body, eventually, type Fields, sandbox, type TestGateway, testGateway, visa } from './support/gateway.ts'
import { makeShopper, type Seen, type Shopper } from './support/shopper.ts'

/** A channel whose own name no shopper may ever read. */
const technical = 'CH-7 ecom 3DS (do not show)'
const logo = 'https://cdn.shop.example/logo.svg'
const settings = { withoutAuthentication: 'refuse', shopName: 'Blumen Öz & Co', shopLogo: logo, shopColour: '#ffee00' } as const
const looks = { branded: '5a11d0000000000000000000000000c3', plain: '5a11d0000000000000000000000000c4' }

let gateway: TestGateway
before(async () => {
  const channels = [
    { id: looks.branded, name: technical, settings },
    { id: looks.plain, name: technical },
  ]
  const merchants = [{ id: sandbox.merchantId, name: 'Sandbox merchant', channels }]
  gateway = await testGateway({
    seed: {
      psp: { id: '5a11d0000000000000000000000000a0', name: 'Sandbox' },
      divisions: [{ id: sandbox.divisionId, name: 'Sandbox division', merchants }],
    },
  })
})
after(() => gateway.stop())

const shop = 'https://shop.example/back'

type Button = { readonly name: string; readonly value: string; readonly codes: readonly string[] }
type Open = { readonly id: string; readonly shopper: Shopper; readonly seen: Seen }

async function open(fields: Fields, language = 'en'): Promise<Open> {
  const { body } = await gateway.pay({ shopperResultUrl: shop, ...fields })
  assert.equal(body.result.code, '000.200.000', JSON.stringify(body))
  const shopper = makeShopper(language)
  return { id: body.id, shopper, seen: await shopper.walk(body.redirect.url, gateway.baseUrl) }
}

const panelOf = ({ text }: Seen): string => /<aside class="tester"[\s\S]*<\/aside>/.exec(text)?.[0] ?? ''
const mainOf = ({ text }: Seen): string => /<main>[\s\S]*<\/main>/.exec(text)?.[0] ?? ''
const buttonsOf = (seen: Seen): Button[] =>
  [...panelOf(seen).matchAll(/<button name="(\w+)" value="(\w+)">[\s\S]*?<code>([^<]+)<\/code>/g)].map(
    ([, name, value, codes]) => ({ name: name!, value: value!, codes: codes!.split(' → ') }),
  )

const codeOf = async (id: string, entityId = sandbox.entityId): Promise<string> =>
  ((await gateway.get(`/v1/payments/${id}`, { entityId })).body as Body).result.code

/** Presses a button of the tester's panel as a form does: its own name and value, and what is hidden beside it. */
async function pressTester({ shopper, seen }: Open, { name, value }: Button): Promise<Seen> {
  const panel = panelOf(seen)
  const hidden = [...panel.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)">/g)]
  const action = new URL(/<form method="post" action="(\w+)"/.exec(panel)![1]!, seen.url).href
  const form = { ...Object.fromEntries(hidden.map(([, key, one]) => [key!, decode(one!)])), [name]: value }
  return shopper.walk(action, gateway.baseUrl, form)
}

/** What has to happen before the second code of a button follows; elsewhere time is enough. */
const thereafter: Readonly<Record<string, (opened: Open, seen: Seen) => Promise<unknown>>> = {
  insufficient: ({ shopper }, seen) => shopper.press(seen, 'agree', gateway.baseUrl, { buyer: 'insufficient' }),
  broken: () => gateway.advance('2m'),
  leaveSilently: () => gateway.advance('30m'),
  leave: () => gateway.advance('30m'),
}

const challenge: Fields = { ...visa, 'card.number': '4200000000000018', 'customParameters[3DS2_enrolled]': 'true' }
const methods: readonly (readonly [what: string, fields: Fields, buttons: number])[] = [
  ['the issuer', challenge, 6],
  ['the wallet', { paymentBrand: 'PAYPAL' }, 8],
  ['the bank', { paymentBrand: 'SOFORTUEBERWEISUNG' }, 7],
]

for (const [what, fields, count] of methods)
  describe(what, () => {
    it('has a button with a result code for everything that can happen, and each is followed by it', async () => {
      const all = buttonsOf((await open(fields)).seen)
      assert.equal(all.length, count)
      for (const button of all) {
        const opened = await open(fields)
        const pressed = pressTester(opened, button)
        for (const [at, code] of button.codes.entries()) {
          if (at === 0 && button.value !== 'broken') await pressed
          if (at > 0) await thereafter[button.value]?.(opened, await (button.value === 'broken' ? opened.seen : pressed))
          await eventually(async () => (await codeOf(opened.id)) === code, `${button.value} is followed by ${code}`)
        }
        await pressed
      }
    })

    it('shows shoppers nothing of testing, and testers what nobody else would see, in every language', async () => {
      for (const { code, tag, direction, texts } of languages.values()) {
        const { seen } = await open(fields, tag)
        assert.match(seen.text, new RegExp(`<html lang="${tag}" dir="${direction}">`), code)
        const main = decode(mainOf(seen))
        for (const only of [texts.testerTitle, texts.testNotice, '000.100.110'])
          assert.ok(!main.includes(only), `${code}: ${only} stands in the shopper’s part`)
        // As a word: an id of chance may hold these digits.
        assert.doesNotMatch(main, /\b1234\b/, `${code}: the code stands in the shopper’s part`)
        assert.ok(decode(panelOf(seen)).includes(texts.testerTitle), code)
        assert.ok(!decode(seen.text).includes('{'.concat('amount')), code)
      }
    })
  })

describe('the issuer, further', () => {
  it('tells what follows when authentication is not to be had, as the channel has it', async () => {
    const fields = { ...challenge, entityId: looks.branded }
    const opened = await open(fields)
    const unavailable = buttonsOf(opened.seen).find(({ value }) => value === 'unavailable')!
    assert.deepEqual(unavailable.codes, ['100.390.107'])
    await pressTester(opened, unavailable)
    assert.equal(await codeOf(opened.id, looks.branded), '100.390.107')
  })
  it('takes the code as it is pasted, in the digits of any script', async () => {
    for (const otp of ['12 34', ' 1234\u200f', '١٢٣٤', '۱۲۳۴', '１２３４']) {
      const { id, shopper, seen } = await open(challenge)
      await shopper.press(seen, 'otp', gateway.baseUrl, { otp })
      assert.equal(await codeOf(id), '000.100.110', otp)
    }
  })
  it('marks a wrong code at its field', async () => {
    const { shopper, seen } = await open(challenge, 'de')
    assert.doesNotMatch(mainOf(seen), /aria-invalid/)
    assert.match(mainOf(seen), /<input type="text" id="otp"[^>]* autofocus/)
    const again = await shopper.press(seen, 'otp', gateway.baseUrl, { otp: '4321' })
    assert.match(
      mainOf(again),
      /<input type="text" id="otp"[^>]* autofocus aria-invalid="true" aria-describedby="wrong">\s*<p class="wrong" id="wrong" role="alert">Dieser Code ist falsch/,
    )
  })
})

describe('the shop', () => {
  /** Every page on the way, ours and the other side's. */
  async function pagesOf(fields: Fields): Promise<Seen[]> {
    const { body } = await gateway.pay({ shopperResultUrl: shop, ...fields })
    const shopper = makeShopper()
    const ours = await shopper.open(body.redirect.url)
    return [ours, await shopper.walk(body.redirect.url, gateway.baseUrl)]
  }
  const ways = [challenge, { paymentBrand: 'PAYPAL' }]

  it('goes by the name that shoppers know: of the request, of the channel’s setting, of the merchant; never of the channel', async () => {
    for (const way of ways)
      for (const [fields, name] of [
        [{ entityId: looks.plain }, 'Sandbox merchant'],
        [{ entityId: looks.branded }, 'Blumen Öz & Co'],
        [{ entityId: looks.branded, 'merchant.name': 'Stand 12' }, 'Stand 12'],
      ] as const)
        for (const { status, url, text } of await pagesOf({ ...way, ...fields })) {
          assert.ok(!decode(text).includes(technical), url)
          assert.ok(status === 303 || decode(text).includes(name), `${url} names ${name}`)
        }
  })

  it('has its logo and colour on our pages, and only its logo may be fetched from elsewhere', async () => {
    const [ours] = await pagesOf({ ...challenge, entityId: looks.branded })
    assert.ok(ours!.text.includes(`<img src="${logo}" alt="Blumen Öz &amp; Co">`))
    assert.match(ours!.text, /--accent: #ffee00; --on-accent: #000000; --button-line: #5b6877/)
    assert.match(ours!.headers.get('content-security-policy')!, /img-src data: https:\/\/cdn\.shop\.example;/)
    const [plain] = await pagesOf({ ...challenge, entityId: looks.plain })
    assert.match(plain!.headers.get('content-security-policy')!, /img-src data:;/)
  })
})

it('however many pages are asked for, a few connections hand them on: whatever else is asked there waits behind no crowd', async () => {
  let opened = 0
  const asked: (() => void)[] = []
  const server = http.createServer(({ method, url }, outgoing) => {
    asked.push(() => outgoing.writeHead(201, { 'Content-Type': 'text/html', 'X-Own': '1' }).end(`${method} ${url}`))
  })
  server.on('connection', () => opened++)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const forward = forwardTo(`http://127.0.0.1:${(server.address() as AddressInfo).port}/page`)
  const page = { method: 'POST', query: 'a=ü b', headers: {}, body: 'c=d' } as unknown as Request
  const answers = Array.from({ length: 200 }, () => forward(page, {}))
  for (let answered = 0; answered < answers.length; answered++) {
    await eventually(async () => asked.length > answered, 'it is asked')
    asked[answered]!()
  }
  for (const { status, body, headers } of await Promise.all(answers))
    assert.deepEqual([status, body, headers], [201, 'POST /page?a=%C3%BC%20b', { 'Content-Type': 'text/html' }])
  assert.equal(opened, 16)
  server.closeAllConnections()
  await new Promise(resolve => server.close(resolve))
})

it('a connection that breaks behind the head of an answer, or before it, ends nothing', async () => {
  const heads = ['HTTP/1.1 431 Too Large\r\nContent-Length: 2\r\n\r\nno', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf', '']
  let breaks: Promise<unknown> = Promise.resolve()
  for (const head of heads) {
    const server = net.createServer(socket => {
      breaks = new Promise(broken => socket.once('data', () => socket.write(head, () => broken(socket.resetAndDestroy()))))
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const forward = forwardTo(`http://127.0.0.1:${(server.address() as AddressInfo).port}/page`)
    const page = { method: 'GET', query: '', headers: {}, body: '' } as unknown as Request
    await Promise.allSettled([forward(page, {})])
    await breaks
    await new Promise(resolve => server.close(resolve))
  }
  const { host, hostname, port } = new URL(gateway.baseUrl)
  const socket = net.connect(Number(port), hostname)
  socket.write(`GET /simulators/bank/pay?${'"'.repeat(15_900)} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`, 'latin1')
  assert.match(`${(await once(socket, 'data'))[0]}`, /^HTTP\/1\.1 (431|500) /)
  socket.destroy()
  assert.equal((await gateway.pay()).status, 200)
})
