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
import { type RuleSet, readRiskRules } from '../src/payments/risk/rules.ts'
import { countAttempt } from '../src/payments/risk/store.ts'
import { systemRandom, timeOrderedId } from '../src/platform/clock.ts'
import { OperatorError } from '../src/platform/errors.ts'
import { type TestGateway, testGateway } from './support/gateway.ts'

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
        'rules\\[0\\] needs one of',
        'rules\\[1\\].name is missing',
        'rules\\[1\\].in',
        'colour',
        'rules\\[1\\].deny',
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
    writeFileSync(path, JSON.stringify({ lists: { bad: ['thief@example.com'] }, sets: { test: { rules: byDay } } }))
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
