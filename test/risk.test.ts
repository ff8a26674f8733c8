// The risk check: rules as a table, their order, counts at the edge of their window and under concurrency, and what the merchant reads.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { results } from '../src/contract/results/results.ts'
import { readSeed, type Seed, sandboxSeed } from '../src/merchants/seed.ts'
import { factsOf, type ScreenedPayment, velocitiesOf } from '../src/payments/risk/facts.ts'
import { judge } from '../src/payments/risk/judge.ts'
import { listable } from '../src/payments/risk/lists/lists.ts'
import { countListedCards, fittingEntries, rehashEntry } from '../src/payments/risk/lists/store.ts'
import { type RuleSet, readRiskRules } from '../src/payments/risk/rules.ts'
import { countAttempt } from '../src/payments/risk/store.ts'
import { systemRandom, timeOrderedId } from '../src/platform/clock.ts'
import { OperatorError } from '../src/platform/errors.ts'
import { makeKeys } from '../src/vault/keys.ts'
import { type Body, type Client, sandbox, type TestGateway, testGateway, testKeys } from './support/gateway.ts'
import { type Clerk, type OfficeReply, signedIn } from './support/office.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollgate-risk-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const noon = Date.UTC(2026, 10, 20, 12)
const payment: ScreenedPayment = {
  fields: new Map(),
  brand: 'VISA',
  cardNumber: '4200000000000000',
  amount: 9200,
  currency: 'EUR',
  now: noon,
}

const rules = [
  { name: 'blocked', fact: 'customer.email', in: '@bad', deny: 'riskAccountOnBlacklist', score: 1 },
  { name: 'blocked network', fact: 'customer.ip', inNetwork: ['10.0.0.0/8', '2001:db8::/32'], deny: 'riskDeclined', score: 2 },
  { name: 'trusted', fact: 'customer.merchantCustomerId', is: 'friend', allow: true },
  { name: 'large', fact: 'amount', above: 1000, score: 50 },
  { name: 'huge', fact: 'amount', above: 10_000, score: 50 },
  { name: 'abroad', fact: 'countries.cardAndBilling', is: 'different', score: 60 },
  { name: 'shipped elsewhere', fact: 'countries.billingAndShipping', is: 'different', score: 20 },
  { name: 'disposable', fact: 'email.disposable', is: 'true', score: 40 },
  { name: 'good', fact: 'customer.status', is: 'EXISTING', score: -30 },
  { name: 'soon', fact: 'hoursToDeparture', below: 24, score: 50 },
  { name: 'at night', fact: 'hour', below: 5, score: 50 },
  { name: 'card tried often', fact: 'attempts.card.10m', above: 5, score: 100 },
  { name: 'too much', fact: 'sum.card.24h', above: 50_000, score: 100 },
  { name: 'heavy', fact: 'risk.parameters[heavy]', is: 'yes', score: 100_000_000 },
]
const set = setOf({
  lists: { bad: ['thief@example.com'] },
  sets: { test: { cardCountries: { '4200': 'US', '42': 'GB' }, disposableDomains: ['mailinator.com'], rules } },
})

describe('rules', () => {
  const rows: [what: string, fields: Record<string, string>, more: Partial<ScreenedPayment>, score: number, outcome: string][] = [
    ['nothing known', {}, {}, 0, 'pass'],
    ['amount at the limit', {}, { amount: 100_000 }, 0, 'pass'],
    ['amount above the limit', {}, { amount: 100_001 }, 50, 'review'],
    ['amount above both', {}, { amount: 1_000_001 }, 100, 'riskDeclined'],
    ['the risk amount counts', { 'risk.amount': '20000.00' }, {}, 100, 'riskDeclined'],
    ['a listed address in other letters', { 'customer.email': 'Thief@Example.com' }, {}, 1, 'riskAccountOnBlacklist'],
    ['inside the network', { 'customer.ip': '10.200.3.4' }, {}, 2, 'riskDeclined'],
    ['inside the other network', { 'customer.ip': '2001:db8::1' }, {}, 2, 'riskDeclined'],
    ['outside', { 'customer.ip': '11.0.0.1' }, {}, 0, 'pass'],
    ['no address at all', { 'customer.ip': 'somewhere' }, {}, 0, 'pass'],
    ['the longest prefix tells the country', { 'billing.country': 'US' }, {}, 0, 'pass'],
    ['another country', { 'billing.country': 'GB' }, {}, 60, 'review'],
    ['a card of unknown country', { 'billing.country': 'GB' }, { cardNumber: '5454545454545454' }, 0, 'pass'],
    ['shipped elsewhere', { 'billing.country': 'US', 'shipping.country': 'de' }, {}, 20, 'pass'],
    ['disposable address', { 'customer.email': 'a@mailinator.com' }, {}, 40, 'pass'],
    ['scores add up', { 'customer.email': 'a@mailinator.com', 'billing.country': 'GB' }, {}, 100, 'riskDeclined'],
    [
      'good news counts too',
      { 'customer.email': 'a@mailinator.com', 'billing.country': 'GB', 'customer.status': 'EXISTING' },
      {},
      70,
      'review',
    ],
    ['a friend passes', { 'customer.merchantCustomerId': 'friend' }, { amount: 1_000_001 }, 100, 'pass'],
    ['but not from the network', { 'customer.merchantCustomerId': 'friend', 'customer.ip': '10.0.0.1' }, {}, 2, 'riskDeclined'],
    ['flight within a day', { 'airline.passengers[0].legs[0].departureDate': '2026-11-21' }, {}, 50, 'review'],
    ['flight later', { 'airline.passengers[0].legs[0].departureDate': '2026-11-22' }, {}, 0, 'pass'],
    ['at night', {}, { now: Date.UTC(2026, 10, 20, 4, 59) }, 50, 'review'],
    ['in the morning', {}, { now: Date.UTC(2026, 10, 20, 5) }, 0, 'pass'],
    ['the score has five digits', { 'risk.parameters[heavy]': 'yes' }, {}, 99_999, 'riskDeclined'],
  ]
  for (const [what, fields, more, score, outcome] of rows) {
    it(what, () => {
      const screened = { ...payment, ...more, fields: new Map(Object.entries(fields)) }
      const facts = factsOf(screened, set, new Map())
      const verdict = judge(set, facts)
      assert.deepEqual([verdict.score, verdict.result ?? verdict.outcome], [score, outcome])
      // The order of the rules makes no difference.
      for (let at = 1; at < set.rules.length; at++)
        assert.deepEqual(judge({ ...set, rules: [...set.rules.slice(at), ...set.rules.slice(0, at)] }, facts), verdict)
    })
  }

  it('a rules file with mistakes names them all', () => {
    try {
      setOf({
        sets: {
          test: {
            whenBroken: 'maybe',
            rules: [
              { name: 'x', fact: 'amount', score: 1 },
              { name: 'y', list: 'block', is: 'x', score: 1 },
              { name: 'z', list: 'block', fact: 'amount', score: 1 },
              { name: 'w', list: 'grey', score: 1 },
              { fact: 'ip', in: '@none', colour: 'red', deny: 'succeeded' },
            ],
          },
        },
      })
      assert.fail('it was read')
    } catch (error) {
      assert.ok(error instanceof OperatorError)
      for (const part of [
        'whenBroken',
        'rules\\[0\\] needs a fact and one of',
        'rules\\[1\\] needs .*, or a list and none of these',
        'rules\\[2\\] needs .*, or a list and none of these',
        'rules\\[3\\].list must be block or allow',
        'rules\\[4\\].name is missing',
        'rules\\[4\\].in',
        'colour',
        'rules\\[4\\].deny',
      ])
        assert.match(error.message, new RegExp(part))
    }
  })

  it('the rules that come with the program can be read', () => {
    assert.ok(readRiskRules('seeds/risk-rules.json').get('standard')!.rules.length > 10)
  })
})

describe('through the interface', () => {
  let gateway: TestGateway
  const path = join(folder, 'interface.json')
  before(async () => {
    const byDay = rules.filter(({ name }) => name !== 'at night') // whatever the hour of this run
    const lists = [
      { name: 'blocked by the staff', list: 'block', deny: 'riskAccountOnBlacklist' },
      { name: 'allowed by the staff', list: 'allow', allow: true },
    ]
    const sets = { test: { rules: [...byDay, ...lists] } }
    writeFileSync(path, JSON.stringify({ lists: { bad: ['thief@example.com'] }, sets }))
    const seed = readSeed(sandboxSeed) as { -readonly [Key in keyof Seed]: Seed[Key] }
    seed.divisions![0]!.merchants![0]!.channels![0]!.settings = { riskRules: 'test' }
    gateway = await testGateway({ seed, environment: { RISK_RULES_FILE: path } })
  })
  after(() => gateway.stop())

  const person = { 'customer.givenName': 'Jane', 'customer.surname': 'Jones' }

  it('a payment that passes carries its score', async () => {
    const { status, body } = await gateway.pay({ 'card.number': '4200000000000042' })
    assert.deepEqual([status, body.result.code, body.risk], [200, '000.100.110', { score: '0' }])
  })

  it('a denied one has its own result and score, and never went to the connector', async () => {
    const { status, body } = await gateway.pay({ ...person, 'customer.email': 'thief@example.com', testMode: 'EXTERNAL' })
    assert.deepEqual([status, body.result.code, body.risk, body.resultDetails], [400, '100.400.121', { score: '1' }, undefined])
    const stored = await gateway.pool.query(
      'select connector, approved, (select count(*) from sealed_cards where payment_id = id) as sealed from payments join answers on payment_id = id where id = $1',
      [body.id],
    )
    assert.deepEqual(stored.rows, [{ connector: '', approved: false, sealed: 0 }])
  })

  it('one in between succeeds for review, and can be captured', async () => {
    const { body } = await gateway.pay({ paymentType: 'PA', amount: '1000.01', 'card.number': '4200000000000091' })
    assert.deepEqual([body.result.code, body.risk], ['000.400.000', { score: '50' }])
    const captured = await gateway.refer(body.id, { paymentType: 'CP', amount: '1000.01', currency: 'EUR' })
    assert.equal(captured.status, 200)
    assert.match(captured.body.result.code, /^000\.100\.110$/)
  })

  it('fields that the screening service does not take so long are refused by name', async () => {
    for (const [name, fits, result] of [
      ['risk.channelId', 'x'.repeat(12), 'riskChannelIdTooLong'],
      ['risk.serviceId', 'x', 'riskServiceIdTooLong'],
    ] as const) {
      assert.equal((await gateway.pay({ [name]: fits, 'card.number': '4200000000000109' })).status, 200)
      const { body } = await gateway.pay({ [name]: `${fits}x`, 'card.number': '4200000000000109' })
      assert.deepEqual([body.result.description, body.result.parameterErrors[0].name], [results[result].description, name])
    }
  })

  it('a channel without rules takes anything, and answers the score of the other side', async () => {
    const { body } = await gateway.post('/v1/payments', {
      entityId: '5a11d0000000000000000000000000c2',
      paymentType: 'DB',
      amount: '20000.00',
      currency: 'EUR',
      paymentBrand: 'VISA',
      'card.number': '4200000000000000',
      'card.expiryMonth': '05',
      'card.expiryYear': '2034',
      'risk.channelId': 'x'.repeat(40),
    })
    assert.deepEqual([body.result.code, body.risk], ['000.100.110', { score: '0' }])
  })

  it('of twenty payments with one card at the same time exactly five pass', async () => {
    const many = await Promise.all(Array.from({ length: 20 }, () => gateway.pay({ 'card.number': '4242424242424242' })))
    assert.equal(many.filter(({ body }) => body.result.code === '000.100.110').length, 5)
    assert.equal(many.filter(({ body }) => body.result.code === '100.400.020').length, 15)
  })

  it('attempts are counted at both edges of their window, and sums by currency', async () => {
    const subjects = new Map([['card', [Buffer.from('edge')]]] as const)
    const asked = velocitiesOf(set)
    const count = async (at: number, currency = 'EUR') =>
      countAttempt(
        gateway.pool,
        {
          merchantId: '5a11d0000000000000000000000000e1',
          paymentId: timeOrderedId(Date.now(), systemRandom),
          at,
          amount: 1_000_000,
          currency,
          subjects,
        },
        asked,
      )
    const ten = 600_000
    assert.deepEqual([...(await count(noon))].sort(), [
      ['attempts.card.10m', 1],
      ['sum.card.24h', 10_000],
    ])
    assert.equal((await count(noon + ten - 1)).get('attempts.card.10m'), 2)
    assert.equal((await count(noon + ten)).get('attempts.card.10m'), 2) // the first one left the window in this moment
    assert.equal((await count(noon + ten, 'USD')).get('sum.card.24h'), 10_000)
  })

  it('attempts under the lookup key of before are counted with those under the newest', async () => {
    const [older, newer] = [Buffer.from('under the older key'), Buffer.from('under the newer key')]
    const count = (hashes: Buffer[]) =>
      countAttempt(
        gateway.pool,
        {
          merchantId: '5a11d0000000000000000000000000e1',
          paymentId: timeOrderedId(Date.now(), systemRandom),
          at: noon,
          amount: 100,
          currency: 'EUR',
          subjects: new Map([['card', hashes]] as const),
        },
        velocitiesOf(set),
      )
    await count([older])
    await count([older, newer])
    assert.equal((await count([newer, older])).get('attempts.card.10m'), 3)
  })

  describe('lists of the staff', () => {
    let clerk: Clerk
    let others: Client
    before(async () => {
      clerk = await signedIn(gateway, 'finance', [sandbox.merchantId])
      others = await gateway.another()
    })
    after(() => others.stop())
    const add = (kind: string, value: string, more: Record<string, string> = {}) =>
      clerk.post('/office/risk', { list: 'block', kind, value, entity: sandbox.merchantId, reason: 'a chargeback', ...more })
    const codeOf = async ({ body }: { body: Body }) => body.result.code
    const blocked = '100.400.121'
    const rowOf = (reply: OfficeReply, shown: string) =>
      new RegExp(`<tr>(?:(?!</tr>).)*<code>${shown.replace(/[.…]/g, '\\$&')}</code>(?:(?!</tr>).)*</tr>`, 's').exec(
        reply.text,
      )?.[0]
    const remove = async (shown: string) => {
      const path = /action="([^"]*remove)"/.exec(rowOf(await clerk.ask('/office/risk'), shown)!)![1]!
      assert.equal((await clerk.post(path)).location, '/office/risk')
    }
    const card = '4111111111111111'
    const email = { ...person, 'customer.email': 'Bad.Buyer@Example.org' }
    const kinds: readonly (readonly [kind: string, value: string, fields: Record<string, string>, shown: string])[] = [
      ['email', 'BAD.buyer@example.org', email, 'bad.buyer@example.org'],
      ['email', '@example.org', email, '@example.org'],
      ['ip', '198.51.100.0/24', { ...email, 'customer.ip': '198.51.100.77' }, '198.51.100.0/24'],
      ['ip', '2001:DB9:1::/48', { ...email, 'customer.ip': '2001:db9:1::7' }, '2001:db9:1::/48'],
      ['bin', '41111111', { 'card.number': card }, '41111111'],
      ['card', '4111 1111 1111 1111', { 'card.number': card }, '411111…1111'],
      ['customer', 'C-77', { ...person, 'customer.merchantCustomerId': 'c-77' }, 'c-77'],
      ['device', 'd-1', { ...person, 'customer.browserFingerprint.id': 'd-1' }, 'd-1'],
    ]
    for (const [kind, value, fields, shown] of kinds)
      it(`${kind} ${value}: counts for the next payment, in every process, until it is removed`, async () => {
        const more = { 'card.number': '4200000000000117', ...fields }
        assert.equal(await codeOf(await gateway.pay(more)), '000.100.110')
        assert.equal((await add(kind, value)).location, '/office/risk')
        assert.equal(await codeOf(await gateway.pay(more)), blocked)
        assert.equal(await codeOf(await others.pay(more)), blocked)
        assert.match(rowOf(await clerk.ask('/office/risk'), shown)!, new RegExp(`block.*a chargeback.*${clerk.name}`, 's'))
        assert.equal((await add(kind, value, { list: 'allow' })).status, 400, 'it is listed already')
        await remove(shown)
        await gateway.pool.query('delete from risk_attempts')
        assert.equal(await codeOf(await others.pay(more)), '000.100.110')
      })

    it('keep of a card its keyed hash alone, and find it by its number and under an older key', async () => {
      await add('card', card)
      const everything = await gateway.pool.query(
        `select e::text as line from risk_entries e union all select a::text from audit a`,
      )
      assert.ok(!everything.rows.some(({ line }) => line.includes(card)))
      assert.ok(rowOf(await clerk.post('/office/risk/search', { q: card }), '411111…1111'))
      assert.equal(rowOf(await clerk.post('/office/risk/search', { q: '4242424242424242' }), '411111…1111'), undefined)
      const renewed = makeKeys([Buffer.alloc(32, 1)], Buffer.alloc(32, 9), Buffer.alloc(32, 2))
      const screened = { ...payment, cardNumber: card }
      const found = await fittingEntries(gateway.pool, [sandbox.merchantId], listable(renewed, screened), noon)
      assert.equal(found.length, 1)
      const [newest, older] = listable(renewed, screened).cardHashes as [string, string]
      await rehashEntry(gateway.pool, [sandbox.merchantId], older, newest, 'newest')
      assert.deepEqual(await countListedCards(gateway.pool), [['newest', 1]])
      await rehashEntry(gateway.pool, [sandbox.merchantId], newest, older, testKeys.lookup[0]!.id)
      await remove('411111…1111')
    })

    it('end with their days, and make room then', async () => {
      const fields = { ...person, 'customer.merchantCustomerId': 'c-days', 'card.number': '4200000000000125' }
      await add('customer', 'c-days', { days: '2' })
      assert.equal(await codeOf(await gateway.pay(fields)), blocked)
      assert.match(rowOf(await clerk.ask('/office/risk'), 'c-days')!, /until /)
      await gateway.pool.query(`update risk_entries set ends_at = now() where shown = 'c-days'`)
      assert.equal(await codeOf(await gateway.pay(fields)), '000.100.110')
      assert.match(rowOf(await clerk.ask('/office/risk'), 'c-days')!, /ended /)
      assert.equal((await add('customer', 'c-days', { days: '1' })).location, '/office/risk')
      assert.equal(await codeOf(await gateway.pay(fields)), blocked)
      await remove('c-days')
    })

    it('allow what scores too high, and not what is blocked', async () => {
      const fields = { amount: '20000.00', ...person, 'customer.merchantCustomerId': 'c-good', 'card.number': '4200000000000133' }
      assert.equal(await codeOf(await gateway.pay(fields)), '100.400.020')
      await add('customer', 'c-good', { list: 'allow' })
      assert.equal(await codeOf(await gateway.pay(fields)), '000.100.110')
      await add('bin', '420000')
      assert.equal(await codeOf(await gateway.pay(fields)), blocked)
      await remove('420000')
      await remove('c-good')
    })

    it('count for an entity and what is below it, and for no other', async () => {
      const fields = { ...person, 'customer.merchantCustomerId': 'c-scope', 'card.number': '4200000000000141' }
      await add('customer', 'c-scope', { entity: sandbox.lenientEntityId })
      assert.equal(await codeOf(await gateway.pay(fields)), '000.100.110', 'it is listed for another channel')
      await remove('c-scope')
      assert.equal((await add('customer', 'c-scope', { entity: sandbox.divisionId })).status, 404, 'beyond reach')
      const whole = await signedIn(gateway, 'admin', [readSeed(sandboxSeed).psp.id])
      const entry = { list: 'block', kind: 'customer', value: 'c-scope', entity: sandbox.divisionId, reason: 'all of us' }
      assert.equal((await whole.post('/office/risk', entry)).location, '/office/risk')
      assert.equal(await codeOf(await gateway.pay(fields)), blocked)
      assert.equal(rowOf(await clerk.ask('/office/risk'), 'c-scope'), undefined)
      const path = /action="([^"]*remove)"/.exec(rowOf(await whole.ask('/office/risk'), 'c-scope')!)![1]!
      assert.equal((await clerk.post(path)).status, 404)
      const ids = path.split('/')
      assert.equal((await clerk.post(`/office/risk/${sandbox.merchantId}/${ids[4]}/remove`)).status, 404, 'under another owner')
      assert.equal((await whole.post(path)).location, '/office/risk')
    })

    it('take nothing that cannot be, say why beside the field, and tell the audit', async () => {
      const wrongs: readonly (readonly [kind: string, value: string, more?: Record<string, string>, field?: string])[] = [
        ['email', 'nobody'],
        ['ip', '0.0.0.0/0'],
        ['ip', '10.0.0.0/7'],
        ['ip', '::/0'],
        ['ip', '10.0.0.0/33'],
        ['ip', '300.1.1.1'],
        ['bin', '42000'],
        ['card', '4111111111111112'],
        ['customer', 'a\u202eb'],
        ['customer', ' '],
        ['customer', card],
        ['customer', 'c', { reason: 'no' }, 'reason'],
        ['customer', 'c', { reason: `paid with ${card}` }, 'reason'],
        ['customer', 'c', { days: '0' }, 'days'],
        ['customer', 'c', { days: '3651' }, 'days'],
      ]
      for (const [kind, value, more = {}, field = 'value'] of wrongs) {
        const refused = await add(kind, value, more)
        assert.equal(refused.status, 400, value)
        assert.match(refused.text, new RegExp(`name="${field}"[^>]*aria-invalid="true"`))
        assert.ok(!refused.text.includes(card))
      }
      assert.equal((await gateway.pool.query('select from risk_entries')).rowCount, 0)
      const { rows } = await gateway.pool.query(
        `select action, details from audit where actor = $1 and action like 'risk%' order by sequence limit 2`,
        [clerk.id],
      )
      assert.deepEqual(
        rows.map(({ action, details }) => [action, JSON.parse(details).value]),
        [
          ['riskListed', 'b…@example.org'],
          ['riskUnlisted', 'b…@example.org'],
        ],
      )
    })
  })

  it('when the check itself fails the rules say whether payments go on', async () => {
    await gateway.pool.query('alter table risk_attempts rename to gone')
    try {
      const open = await gateway.pay({})
      assert.equal(open.body.result.code, '000.400.080')
      writeFileSync(path, JSON.stringify({ lists: { bad: [] }, sets: { test: { whenBroken: 'closed', rules } } }))
      await gateway.restart()
      const closed = await gateway.pay({})
      assert.deepEqual([closed.status, closed.body.result.code], [400, '100.400.325'])
    } finally {
      await gateway.pool.query('alter table gone rename to risk_attempts')
    }
  })
})

function setOf(file: object): RuleSet {
  const path = join(folder, 'rules.json')
  writeFileSync(path, JSON.stringify(file))
  return readRiskRules(path).get('test')!
}
