// Which acquirer carries a payment, and what happens when one cannot be reached: through the interface, with two hosts.

import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import { routeOf } from '../src/connectors/cards/routing.ts'
import type { OperationRequest } from '../src/connectors/connector.ts'
import { readSeed, type Seed, sandboxSeed } from '../src/merchants/seed.ts'
import { channelSettings } from '../src/merchants/settings.ts'
import { OperatorError } from '../src/platform/errors.ts'
import { read } from '../src/platform/schema.ts'
import { readAcquirers } from '../src/start/acquirers.ts'
import { eventually, type TestGateway, testGateway } from './support/gateway.ts'
import { type AcquirersFile, acquirersFile, type TestHost, testHost } from './support/host.ts'

describe('routes', () => {
  const routes = [
    { brands: ['AMEX'], acquirers: ['south'] },
    { currencies: ['JPY'], acquirers: ['east', 'north'] },
    { bins: ['4', '510000-559999'], amountFrom: 10_000, acquirers: ['west'] },
    { amountTo: 100, acquirers: ['gone'] },
  ]
  const rows: [Partial<OperationRequest>, readonly string[]][] = [
    [{ brand: 'AMEX' }, ['south']],
    [{ currency: 'JPY' }, ['east', 'north']],
    [{ bin: '42000000', amount: 10_000 }, ['west']],
    [{ bin: '42000000', amount: 9_999 }, ['north']],
    [{ bin: '55555555', amount: 10_000 }, ['west']],
    [{ bin: '56000000', amount: 10_000 }, ['north']],
    [{ amount: 100 }, []],
    [{ amount: 101 }, ['north']],
  ]
  for (const [asked, expected] of rows) {
    it(`${JSON.stringify(asked)} goes to ${expected.join(', ') || 'nobody: the acquirer is not configured'}`, () => {
      const settings = read(channelSettings, { routes }, 'test')
      const whole: OperationRequest = {
        type: 'PA',
        channel: { settings },
        mode: 'external',
        brand: 'VISA',
        currency: 'EUR',
        amount: 9200,
        bin: '60000000',
        now: 0,
        ...asked,
      }
      assert.deepEqual(routeOf(whole, ['north', 'south', 'east', 'west']), expected)
    })
  }
  it('without routes the first acquirer carries everything', () => {
    const settings = read(channelSettings, {}, 'test')
    assert.deepEqual(
      routeOf({ type: 'PA', channel: { settings }, mode: 'live', brand: 'VISA', currency: 'EUR', amount: 1, now: 0 }, [
        'north',
        'south',
      ]),
      ['north'],
    )
  })
  it('a malformed route is refused with the settings', () => {
    for (const route of [{}, { acquirers: [] }, { acquirers: ['a'], bins: ['x'] }, { acquirers: ['a'], other: 1 }]) {
      assert.throws(() => read(channelSettings, { routes: [route] }, 'test'), OperatorError)
    }
  })
})

describe('two acquirers', () => {
  let gateway: TestGateway
  let south: TestHost
  let east: TestHost
  let file: AcquirersFile
  before(async () => {
    south = await testHost()
    east = await testHost()
    const north = await testHost()
    await north.stop()
    const ports = { north: [north.port], south: [south.port], east: [east.port] }
    file = acquirersFile(ports, { answerWithinSeconds: 8, recoverAfterSeconds: 1 })
    const seed = readSeed(sandboxSeed) as { -readonly [Key in keyof Seed]: Seed[Key] }
    const channel = seed.divisions![0]!.merchants![0]!.channels![0]!
    channel.settings = {
      routes: [
        { currencies: ['USD'], acquirers: ['north'] },
        { currencies: ['GBP'], acquirers: ['south', 'east'] },
        { acquirers: ['north', 'south'] },
      ],
      acquirerAccounts: { south: { merchantId: 'CHANNEL-ACCOUNT', category: '4722' } },
    }
    gateway = await testGateway({ seed, environment: { ACQUIRERS_FILE: file.path } })
  })
  after(async () => {
    await gateway.stop()
    await south.stop()
    await east.stop()
    file.remove()
  })

  it('the second takes over when nothing was sent to the first, and what follows stays with it', async () => {
    const paid = await gateway.pay({ testMode: 'EXTERNAL', paymentType: 'PA' })
    assert.equal(paid.body.result.code, '000.100.112')
    assert.equal(paid.body.resultDetails.clearingInstituteName, 'Bank south')
    const captured = await gateway.refer(paid.body.id, { paymentType: 'CP', amount: '92.00', currency: 'EUR' })
    assert.equal(captured.body.result.code, '000.100.112')
    assert.deepEqual(
      [...south.ledger.entries()].map(({ line }) => line.kind),
      ['hold', 'capture'],
    )
  })

  it('when no acquirer of the route can be reached, nothing was sent and nothing is pending', async () => {
    const paid = await gateway.pay({ testMode: 'EXTERNAL', currency: 'USD' })
    assert.equal(paid.body.result.code, '900.100.600')
    assert.equal(paid.status, 400)
  })

  it('a payment that may have arrived at the first is never sent to the second', async () => {
    const cut = await gateway.pay({ testMode: 'EXTERNAL', currency: 'GBP', amount: '7770.05' })
    assert.equal(cut.body.result.code, '000.200.000')
    await eventually(
      async () => [...east.ledger.entries()].some(({ line }) => line.kind === 'tombstone'),
      'the second has been told that nothing shall come',
    )
    await eventually(async () => south.ledger.totals().get('826')!.cleared === 0n, 'the first has given it back')
    assert.deepEqual(
      [...east.ledger.entries()].map(({ line }) => line.kind),
      ['tombstone'],
    )
  })

  it('a payment is taken back only when every acquirer that may have it has heard', async () => {
    const { ledger, port } = east
    const before = [...ledger.entries()].length
    await east.stop()
    const { body } = await gateway.pay({ testMode: 'EXTERNAL', currency: 'GBP', amount: '7770.05' })
    const side = await eventually(async () => {
      const { rows } = await gateway.pool.query<{ side: string }>(
        `select side from due_work where subject_id = $1 and kind = 'reverse' and attempts > 0 and leased_until is null`,
        [body.id],
      )
      return rows[0]?.side
    }, 'the first attempt has ended')
    assert.equal(side, 'acquirer:south+east', 'it waits in the places of those who are told, and of nobody else')
    assert.equal([...ledger.entries()].length, before)
    east = await testHost({ ledger, port })
    await eventually(async () => [...ledger.entries()].at(before)?.line.kind === 'tombstone', 'the second has heard after all')
  })

  it('a credit, which is repeated until it is acknowledged, goes to the first or to nobody', async () => {
    const paid = await gateway.pay({ testMode: 'EXTERNAL', paymentType: 'CD' })
    assert.equal(paid.body.result.code, '900.100.600')
    assert.ok([...south.ledger.entries()].every(({ line }) => line.kind !== 'credit'))
  })

  it('an unknown outcome is taken back wherever the message may have arrived', async () => {
    const [held] = [south.ledger.totals().get('978')!.held]
    const pending = await gateway.pay({ testMode: 'EXTERNAL', paymentType: 'PA', amount: '7770.05' })
    assert.equal(pending.body.result.code, '000.200.000')
    const { body } = await eventually(async () => {
      const read = await gateway.get(`/v1/payments/${pending.body.id}`, { entityId: pending.body.ndc.slice(0, 32) })
      return read.body.result.code === '900.100.301' && read
    }, 'the payment is settled')
    assert.equal(body.amount, '7770.05')
    await eventually(async () => south.ledger.totals().get('978')!.held === held, 'the host has let it go')
  })
})

describe('ACQUIRERS_FILE', () => {
  it('names every mistake', () => {
    const file = acquirersFile({ north: [70_000] }, { profile: { like: '2003' }, colour: 'blue', merchantId: undefined })
    assert.throws(() => readAcquirers(file.path), { message: /dialect must be one of[\s\S]*|lines/ })
    try {
      readAcquirers(file.path)
    } catch (error) {
      for (const name of ['profile.like', 'lines', 'merchantId is missing', 'acquirers\\[0\\].colour is not known'])
        assert.match((error as Error).message, new RegExp(name))
    }
    file.remove()
  })
  it('gives an installation so many trace numbers that none comes twice within a lap of it', () => {
    for (const [from, to, isEnough] of [
      [1, 300_000, true],
      [700_000, 999_999, true],
      [1, 299_999, false],
      [300_000, 1, false],
    ] as const) {
      const file = acquirersFile({ north: [1] })
      writeFileSync(file.path, JSON.stringify({ ...JSON.parse(readFileSync(file.path, 'utf8')), traceNumbers: { from, to } }))
      const read = () => readAcquirers(file.path)
      if (isEnough) assert.deepEqual(read()[0]!.traceNumbers, { from, to })
      else assert.throws(read, /traceNumbers must be 300000 numbers or more/)
      file.remove()
    }
  })
})
