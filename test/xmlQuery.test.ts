// The query of the old XML interface: what its clients read, what it refuses, what nobody gets of others, and documents that are meant to do harm.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { XMLParser, XMLValidator } from 'fast-xml-parser'
import { loadBytesMost, loadElementsMost, readXmlQuery, WrongXmlQuery } from '../src/http/xml/queryRequest.ts'
import { leaf, xmlElement } from '../src/payments/read/xmlRecord.ts'
import { clockWith } from '../src/platform/clock.ts'
import { type Body, sandbox, type TestGateway, testGateway } from './support/gateway.ts'

let now = Date.UTC(2030, 10, 22, 12)
const otherMerchant = 'c0ffee000000000000000000000000e1'
const otherChannel = 'c0ffee000000000000000000000000c1'
const otherToken = 'token-of-the-other-merchant-of-these-tests'
let gateway: TestGateway
before(async () => {
  gateway = await testGateway({
    clock: clockWith(() => now++),
    seed: {
      psp: { id: '5a11d0000000000000000000000000a0', name: 'Sandbox' },
      divisions: [
        {
          id: 'c0ffee000000000000000000000000d1',
          name: 'Other',
          merchants: [{ id: otherMerchant, name: 'Other', channels: [{ id: otherChannel, name: 'Other' }] }],
        },
      ],
      tokens: [{ label: 'other', token: otherToken, entities: [otherMerchant] }],
    },
  })
})
after(() => gateway.stop())

const user = `<User login="${sandbox.userId}" pwd="${sandbox.password}"/>`
const today = '<Period from="2030-11-22" to="2030-11-22"/>'
const asked = ({
  mode = 'INTEGRATOR_TEST',
  level = 'CHANNEL',
  entity = sandbox.entityId,
  type = 'STANDARD',
  inner = user + today,
} = {}) =>
  `<Request version="1.0"><Header><Security sender="x"/></Header><Query mode="${mode}" level="${level}" entity="${entity}" type="${type}">${inner}</Query></Request>`

type XmlReply = { readonly status: number; readonly text: string; readonly headers: Headers; readonly result: Body }
const parser = new XMLParser({
  ignoreAttributes: false,
  attributeNamePrefix: '@',
  parseTagValue: false,
  htmlEntities: true,
  isArray: name => name === 'Transaction',
})

async function ask(load: string, headers: Record<string, string> = {}): Promise<XmlReply> {
  const response = await fetch(`${gateway.baseUrl}/payment/query`, {
    method: 'POST',
    headers,
    body: new URLSearchParams({ load }),
  })
  const text = await response.text()
  return { status: response.status, text, headers: response.headers, result: parser.parse(text).Response?.Result }
}
const idsOf = ({ result }: XmlReply): string[] => (result.Transaction ?? []).map((one: Body) => one.Identification.UniqueID)

describe('a query', () => {
  let db: string
  let declined: string
  let rf: string
  before(async () => {
    const merchantTransactionId = `order <1> & "two" 'three' ä`
    db = (await gateway.pay({ merchantTransactionId, 'customParameters[x12]': 'y' })).body.id
    declined = (await gateway.pay({ amount: '7.00', 'customParameters[forceResultCode]': '800.100.152' })).body.id
    rf = (await gateway.refer(db, { paymentType: 'RF', amount: '2.00', currency: 'EUR' })).body.id
    await gateway.pay({ testMode: 'EXTERNAL', amount: '3.00' })
  })

  it('by period shows what old clients read: identification, amount, and a processing code', async () => {
    const reply = await ask(asked())
    assert.equal(reply.status, 200)
    assert.equal(reply.headers.get('content-type'), 'text/xml;charset=UTF-8')
    assert.equal(reply.result['@count'], '3')
    assert.deepEqual(idsOf(reply), [db, declined, rf])
    const [first, second, third] = reply.result.Transaction
    assert.equal(first.Identification.TransactionID, `order <1> & "two" 'three' ä`)
    assert.deepEqual([first['@mode'], first['@channel']], ['INTEGRATOR_TEST', sandbox.entityId])
    assert.deepEqual(
      [first.Payment['@code'], first.Payment.Clearing.Amount, first.Payment.Clearing.Currency],
      ['CC.DB', '92.00', 'EUR'],
    )
    assert.equal(first.Payment.Clearing.FxRate, '1.0')
    assert.equal(first.Processing['@code'], 'CC.DB.90.00')
    assert.deepEqual([first.Processing.Result, first.Processing.Return['@code']], ['ACK', '000.100.110'])
    assert.deepEqual([second.Processing['@code'], second.Processing.Result], ['CC.DB.60.00', 'NOK'])
    assert.equal(second.Processing.Return['@code'], '800.100.152')
    assert.deepEqual([third.Processing['@code'], third.Identification.ReferenceID], ['CC.RF.90.00', db])
    assert.doesNotMatch(reply.text, /4200000000000000|sandbox-only/)
  })

  it('goes by id, by transaction id, by type and by mode, each for itself and together', async () => {
    const cases: readonly (readonly [inner: string, ids: readonly string[], mode?: string])[] = [
      [`<Identification><UniqueID>${db}</UniqueID></Identification>`, [db]],
      [`<Identification><UniqueID>${db}</UniqueID></Identification>`, [], 'CONNECTOR_TEST'],
      ['<Identification><UniqueID>abc</UniqueID></Identification>', []],
      [`<Identification><TransactionID>order &lt;1&gt; &amp; "two" 'three' ä</TransactionID></Identification>`, [db, rf]],
      [`<Identification><TransactionID>order &#60;1> &#38; "two" 'three' &#xe4;</TransactionID></Identification>`, [db, rf]],
      [
        `<Identification><TransactionID>order &lt;1&gt; &amp; "two" 'three' ä</TransactionID></Identification><Types><Type code="RF"/></Types>`,
        [rf],
      ],
      [`${today}<Types><Type code="RF"/><Type code="CB"/></Types>`, [rf]],
      ['<Period from="2030-11-21" to="2030-11-21"/>', []],
      ['<Period from="2030-11-23" to="2030-11-23"/>', []],
      [today, [], 'LIVE'],
    ]
    for (const [inner, ids, mode] of cases) {
      const reply = await ask(asked({ inner: user + inner, ...(mode && { mode }) }))
      assert.deepEqual([reply.status, idsOf(reply)], [200, ids], inner)
      assert.equal(reply.result['@count'], String(ids.length))
    }
  })

  it('of a merchant has all of its channels, of a channel that one', async () => {
    const lenient = (await gateway.pay({ entityId: sandbox.lenientEntityId })).body.id
    assert.ok(!idsOf(await ask(asked())).includes(lenient))
    const all = idsOf(await ask(asked({ level: 'MERCHANT', entity: sandbox.merchantId })))
    assert.ok(all.includes(lenient) && all.includes(db))
    assert.deepEqual(idsOf(await ask(asked({ entity: sandbox.lenientEntityId }))), [lenient])
  })

  it('needs credentials, and shows nothing of another merchant', async () => {
    const bare = { inner: today }
    const bearer = { Authorization: `Bearer ${otherToken}` }
    const refused = async (load: string, status: number, code: string, headers = {}) => {
      const reply = await ask(load, headers)
      assert.deepEqual([reply.status, reply.result.Error['@code'], reply.result['@count']], [status, code, '0'])
      assert.equal(reply.result.Transaction, undefined)
    }
    await refused(asked(bare), 401, '800.900.300')
    await refused(asked({ inner: `<User login="${sandbox.userId}" pwd="wrong"/>${today}` }), 403, '800.900.300')
    await refused(asked(bare), 403, '800.900.201', bearer)
    await refused(asked({ entity: otherChannel }), 403, '800.900.201')
    await refused(asked({ entity: otherMerchant, level: 'MERCHANT' }), 403, '800.900.201')
    const theirs = `<Identification><UniqueID>${db}</UniqueID></Identification>`
    for (const [level, entity] of [
      ['CHANNEL', otherChannel],
      ['MERCHANT', otherMerchant],
    ] as const)
      for (const inner of [today, theirs]) {
        const reply = await ask(asked({ level, entity, inner }), bearer)
        assert.deepEqual([reply.status, reply.result['@count']], [200, '0'])
      }
    assert.equal((await ask(asked(bare), { Authorization: `Bearer ${sandbox.accessToken}` })).status, 200)
  })

  it('that finds more than it may bring brings nothing, and says so', async () => {
    await gateway.pool.query(
      `insert into payments select (jsonb_populate_record(p, jsonb_build_object('id', md5(n::text)::uuid, 'merchant_transaction_id', 'very many'))).*
         from payments p, generate_series(1, 201) n where p.id = $1`,
      [db],
    )
    const inner = `${user}<Identification><TransactionID>very many</TransactionID></Identification>`
    const reply = await ask(asked({ inner }))
    assert.equal(reply.status, 400)
    assert.equal(reply.result.Error['#text'], 'more than 200 are found: narrow the query')
    await gateway.pool.query('delete from payments where id = md5($1)::uuid', ['201'])
    const all = await ask(asked({ inner }))
    assert.deepEqual([all.status, all.result['@count'], all.result.Transaction.length], [200, '200', 200])
    assert.equal(all.result.Transaction[0].Processing['@code'], 'CC.DB.80.00', 'without an answer it waits')
  })
})

describe('what is asked', () => {
  const wrong = (load: string, message: string) =>
    assert.rejects(readXmlQuery(load), (error: Error) => error instanceof WrongXmlQuery && error.message === message, load)
  const period = (from: string, to: string, types = '') => asked({ inner: `<Period from="${from}" to="${to}"/>${types}` })
  const receipts = '<Types><Type code="RC"/></Types>'

  it('is refused by the rule that it breaks', async () => {
    await wrong(asked({ mode: 'TEST' }), 'Query mode must be LIVE or CONNECTOR_TEST or INTEGRATOR_TEST')
    await wrong(asked({ level: 'PSP' }), 'Query level must be CHANNEL or MERCHANT or DIVISION')
    await wrong(asked({ level: 'DIVISION' }), 'Query level DIVISION is not offered: ask for each merchant')
    await wrong(asked({ type: 'LINKED_TRANSACTIONS' }), 'Query type must be STANDARD')
    await wrong(asked({ entity: '' }), 'Query needs the attribute entity')
    await wrong(asked({ inner: user }), 'Query needs a Period, or an Identification with a UniqueID or a TransactionID')
    await wrong(asked({ inner: `<User login="x"/>${today}` }), 'User needs the attribute pwd')
    await wrong(asked({ inner: today + today }), 'Period must stand once')
    await wrong(asked({ inner: `${today}<Types><Type/></Types>` }), 'Type needs the attribute code')
    await wrong(asked({ inner: `${today}<Types/>` }), 'Type needs the attribute code')
    await wrong(asked({ inner: `${today}<Types><Type code="RC'"/></Types>` }), 'Type code must be a payment type such as RC')
    await wrong(
      asked({ inner: '<Identification><UniqueID>a</UniqueID><UniqueID>b</UniqueID></Identification>' }),
      'UniqueID must stand once, with 1 to 255 characters',
    )
    await wrong(
      asked({ inner: '<Identification><UniqueID>a</UniqueID><TransactionID>b</TransactionID></Identification>' }),
      'Identification takes a UniqueID or a TransactionID, not both',
    )
    await wrong('<Response/>', 'Request must stand once')
    await wrong('<Request><Query mode="LIVE"/><Query/></Request>', 'Query must stand once')
  })

  it('has periods with both sides of each limit', async () => {
    const dayOnly = 'Period may be longer than one day for the types CB, CR and RC only'
    await wrong(period('2026-02-30', '2026-03-01'), 'Period from must be a day, yyyy-MM-dd')
    await wrong(period('2026-3-1', '2026-03-01'), 'Period from must be a day, yyyy-MM-dd')
    await wrong(period('2026-03-02', '2026-03-01', receipts), 'Period from must not be after to')
    await wrong(period('2026-03-01', '2026-03-02'), dayOnly)
    await wrong(period('2026-03-01', '2026-03-02', '<Types><Type code="RC"/><Type code="DB"/></Types>'), dayOnly)
    await wrong(period('2026-03-01', '2026-04-01', receipts), 'Period must not be longer than 31 days')
    assert.equal((await readXmlQuery(period('2026-03-01', '2026-03-31', receipts))).most, 2000)
    assert.equal((await readXmlQuery(period('2026-03-01', '2026-03-08', receipts))).most, 2000)
    assert.equal((await readXmlQuery(period('2026-03-01', '2026-03-07', receipts))).most, 10_000)
    assert.equal((await readXmlQuery(period('2026-03-01', '2026-03-01'))).most, 2000)
    const identified = async (inner: string) =>
      (await readXmlQuery(asked({ inner: `<Identification>${inner}</Identification>` }))).most
    assert.deepEqual(
      [await identified('<UniqueID>a</UniqueID>'), await identified('<TransactionID>a</TransactionID>')],
      [2000, 200],
    )
    const { from, to } = await readXmlQuery(period('2026-03-01', '2026-03-01'))
    assert.deepEqual([from, to], [Date.UTC(2026, 2, 1), Date.UTC(2026, 2, 2)])
  })

  it('does no harm: no document type, no entity, no depth, no size, no prototype', async () => {
    const declared = 'load must have neither a document type nor other declarations'
    const malformed = 'load must be a well-formed XML document of no great depth'
    await wrong(`<!DOCTYPE Request [<!ENTITY x SYSTEM "file:///etc/passwd">]>${asked()}`, declared)
    await wrong(`<!doctype r><Request/>`, declared)
    const laughs = Array.from({ length: 10 }, (_, at) => `<!ENTITY l${at + 1} "${`&l${at};`.repeat(10)}">`).join('')
    await wrong(`<!DOCTYPE x [<!ENTITY l0 "ha">${laughs}]><Request>&l10;</Request>`, declared)
    await wrong(asked({ inner: '<Identification><UniqueID><![CDATA[x]]></UniqueID></Identification>' }), declared)
    for (const load of ['', 'no XML', '<Request>', '<Request></Query>', '<Request a=b/>', '<Request/><Request/>', '\0'])
      await assert.rejects(readXmlQuery(load), WrongXmlQuery, load)
    await wrong(`${'<a>'.repeat(50)}${'</a>'.repeat(50)}`, malformed)
    await wrong(asked({ inner: ' '.repeat(loadBytesMost) }), `load must not be longer than ${loadBytesMost} bytes`)
    for (const name of ['__proto__', 'constructor', 'prototype', 'toString'])
      await assert.rejects(readXmlQuery(`<Request><${name}><Query mode="LIVE"/></${name}></Request>`), WrongXmlQuery)
    assert.equal(({} as { Query?: unknown }).Query, undefined)
  })

  it('of a stranger is not parsed when it is larger than any query, or has more in it', async t => {
    const validate = t.mock.method(XMLValidator, 'validate')
    const elements = (count: number) => asked({ inner: user + today + '<b/>'.repeat(count) })
    const within = loadElementsMost - (elements(0).split('<').length - 1)
    for (const [load, status, times] of [
      ['<a>'.repeat(5) + '<b/>'.repeat(4060) + '</a>'.repeat(5), 400, 0],
      [elements(within + 1), 400, 0],
      [elements(0).padEnd(loadBytesMost + 1), 400, 0],
      [elements(within), 200, 1],
      [elements(0).padEnd(loadBytesMost), 200, 2],
    ] as const)
      assert.deepEqual([(await ask(load)).status, validate.mock.callCount()], [status, times])
    await wrong(elements(within + 1), `load must not have more than ${loadElementsMost} signs <`)
    // The longest query that makes sense: all types, each with an end of its own.
    const types = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ'].map(letter => `  <Type code="R${letter}">\r\n  </Type>\r\n`).join('')
    assert.equal((await readXmlQuery(asked({ inner: `${user}${today}<Types>\r\n${types}</Types>` }))).types?.length, 26)
  })

  it('counts wrong credentials among the failed attempts to log in', async () => {
    const failures = async () =>
      Number(
        (await gateway.pool.query(`select coalesce(sum(failures), 0) as sum from log_in_failures where kind = 'user'`)).rows[0]
          .sum,
      )
    const before = await failures()
    for (let guess = 0; guess < 3; guess++)
      await ask(asked({ inner: `<User login="${sandbox.userId}" pwd="guess ${guess}"/>${today}` }))
    assert.equal(await failures(), before + 3)
  })

  it('is answered in XML whatever it was', async () => {
    for (const load of ['<!DOCTYPE x><x/>', '<x>', asked({ level: 'PSP' })]) {
      const reply = await ask(load)
      assert.deepEqual([reply.status, reply.result.Error['@code'], reply.result['@count']], [400, '200.300.404', '0'])
    }
    assert.doesNotMatch((await ask(asked({ mode: '4200000000000000' }))).text, /4200000000000000/)
  })
})

describe('what is written', () => {
  it('is what a parser reads back, and nothing that breaks out', async () => {
    const nasty = `<&>"' \t\n\r ]]> ä😀`
    const parsed = parser.parse(xmlElement('a', { b: nasty }, [leaf('c', nasty)]))
    assert.equal(parsed.a.c.trim(), nasty.trim())
    assert.equal(leaf('c', 'a\0b\ud800c\ufffed\x1b'), '<c>ab\ufffdcd</c>')
    assert.equal(leaf('c', undefined), '')
    assert.equal(leaf('c', `]]><x a="1" b='2'>`), '<c>]]&gt;&lt;x a=&quot;1&quot; b=&apos;2&apos;&gt;</c>')
  })
})
