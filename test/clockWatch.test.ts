// A machine whose clock is set by a step, by hours or by years: nothing is taken, handed over or erased by a time that the database does not share, and what a
// wrong clock has written keeps nobody from anything once the time is right.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { leaseTerminal } from '../src/connectors/cards/terminals/store.ts'
import { startDelivering } from '../src/notifications/deliveries/deliver.ts'
import type { NotificationParts } from '../src/notifications/parts.ts'
import type { PaymentParts } from '../src/payments/parts.ts'
import { startSweeping } from '../src/payments/recover.ts'
import { systemClock, type Timer } from '../src/platform/clock.ts'
import { sharedTime } from '../src/platform/database/clocks.ts'
import type { Connection } from '../src/platform/database/connect.ts'
import { addDue, firstDue, leaseSeconds } from '../src/platform/due/store.ts'
import { watchClock } from '../src/start/clockWatch.ts'
import { takeAnyDue } from './support/due.ts'
import { eventually, sandbox, type TestGateway, testGateway, visa } from './support/gateway.ts'

const day = 86_400_000
const never: Timer = { cancel() {}, unref: () => never }
const silent = { debug() {}, info() {}, warn() {}, error() {} }

describe('a gateway whose clock is set ahead', () => {
  let gateway: TestGateway
  let ahead = 0
  let erasing: (() => void)[] = []
  const clock = {
    ...systemClock,
    real: () => systemClock.real() + ahead,
    // The minute between two comparisons does not end here, and what erases goes on when it is told to.
    every: (milliseconds: number, act: () => void) => (milliseconds === 60_000 ? never : systemClock.every(milliseconds, act)),
    after: (milliseconds: number, act: () => void) => {
      if (milliseconds !== 5000 && milliseconds !== 60_000) return systemClock.after(milliseconds, act)
      erasing.push(act)
      return never
    },
  }
  before(async () => {
    gateway = await testGateway({ clock, watched: true })
  })
  after(() => gateway.stop())

  const rows = async (text: string) => (await gateway.pool.query(text)).rowCount
  /** Every loop that waits for five seconds or a minute goes one round. */
  const round = async () => {
    const before = erasing
    erasing = []
    for (const act of before) act()
    await eventually(async () => erasing.length >= before.length, 'the round is over')
  }
  const fields = { entityId: sandbox.entityId, paymentType: 'PA', amount: '92.00', currency: 'EUR', ...visa }
  const order = () => gateway.post('/v1/payments', fields, { 'Idempotency-Key': 'order-1' })

  it('refuses at once, erases nothing, and takes an order no second time when it is right again', async () => {
    const { body } = await order()
    for (const jump of [401 * day, -401 * day, 31_000]) {
      ahead = jump
      assert.equal((await order()).status, 503)
      await round()
      assert.equal(await rows('select from sealed_cards'), 1)
      assert.equal(await rows('select from idempotency_keys'), 1)
      ahead = 0
      const again = await eventually(async () => {
        const answer = await order()
        return answer.status !== 503 && answer
      }, 'it is trusted again')
      assert.equal(again.body.id, body.id)
    }
  })
})

describe('a payment that is under way while the clock of its gateway is set', () => {
  let gateway: TestGateway
  let ahead = 0
  const clock = { ...systemClock, real: () => systemClock.real() + ahead }
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-clock-'))
  /** A bank that is asked to begin a payment, and answers when the test lets it. */
  let asked = Promise.withResolvers<http.ServerResponse>()
  const bank = http.createServer((_, outgoing) => asked.resolve(outgoing))
  before(async () => {
    await new Promise<void>(resolve => bank.listen(0, '127.0.0.1', resolve))
    const base = `http://127.0.0.1:${(bank.address() as AddressInfo).port}`
    const method = {
      external: { start: `${base}/begin`, status: `${base}/look/{transactionId}` },
      fields: { order: '{paymentId}' },
      answer: { transactionId: 'ref', redirect: 'go', status: 'state' },
      statuses: { PAID: '000.000.000', WAITING: '000.200.000', NO: '800.100.100' },
    }
    writeFileSync(join(folder, 'methods.json'), JSON.stringify({ PAYSTAR: method }))
    gateway = await testGateway({ clock, watched: true, environment: { REDIRECT_METHODS_FILE: join(folder, 'methods.json') } })
  })
  after(async () => {
    await gateway.stop()
    bank.closeAllConnections()
    bank.close()
    rmSync(folder, { recursive: true })
  })
  const request = {
    entityId: sandbox.entityId,
    ...{ paymentType: 'DB', amount: '92.00', currency: 'EUR', paymentBrand: 'PAYSTAR', testMode: 'EXTERNAL' },
    shopperResultUrl: 'https://shop.example/',
  }
  let transactions = 0
  const trusted = () => eventually(async () => (await gateway.get('/health/ready')).status === 200, 'it is trusted again')
  /** A comparison that began at another time may end after it, and refuse one more payment. */
  const begin = async () => {
    for (;;) {
      asked = Promise.withResolvers()
      const paid = gateway.post('/v1/payments', request)
      const first = await Promise.race([asked.promise, paid])
      if (!('status' in first)) return { paid, answer: first }
      assert.equal(first.status, 503, JSON.stringify(first.body))
      await trusted()
    }
  }
  /** The payment when the bank has answered, at whatever time of the machine. */
  const pay = async (jump: number, state: string | undefined) => {
    const { paid, answer } = await begin()
    ahead = jump
    if (state === undefined) answer.destroy()
    else
      answer.end(
        JSON.stringify({ ref: `tx${++transactions}`, ...(state === 'WAITING' && { go: 'https://bank.example/shopper' }), state }),
      )
    const { body } = await paid
    const { rows } = await gateway.pool.query(
      `select kind as what, due_at as at from due_work where subject_id = $1 union all
       select 'deadline', deadline from continuations where payment_id = $1 union all
       select 'answer', answered_at from answers where payment_id = $1 union all
       select 'event', recorded_at from events where payment_id = $1`,
      [body.id],
    )
    ahead = 0
    await trusted()
    return Object.fromEntries(rows.map(({ what, at }) => [what, Math.round((at - Date.now()) / day) + 0]))
  }

  it('has its records, its deadlines and what is left to do at the time that was trusted', async () => {
    for (const jump of [401 * day, -401 * day]) {
      const [shopper, silence, refused] = [await pay(jump, 'WAITING'), await pay(jump, undefined), await pay(jump, 'NO')]
      assert.deepEqual(shopper, { redirectExpiry: 0, deadline: 0, event: 0 })
      assert.deepEqual(silence, { recover: 0, event: 0 })
      assert.deepEqual(refused, { answer: 0, event: 0 })
    }
  })
})

describe('what a wrong clock must not take, and what it has taken', () => {
  it('no notification is tried or given up by a clock that is not trusted', async () => {
    let trusted = false
    let taken = 0
    const query = async () => {
      taken++
      return { rows: [] }
    }
    const parts = { clock: systemClock, log: silent, database: { work: { query } } }
    const delivering = startDelivering(
      parts as unknown as NotificationParts,
      async () => undefined,
      false,
      () => trusted,
    )
    await systemClock.sleep(500)
    assert.equal(taken, 0)
    trusted = true
    await eventually(async () => taken > 0, 'it looks again')
    await delivering.stop()
  })

  let gateway: TestGateway
  before(async () => {
    gateway = await testGateway()
  })
  after(() => gateway.stop())
  const merchant = sandbox.merchantId
  const subject = '01a1fcaebec47bdc9003acd45c0c06f4'

  it('a payment that is under way goes to nobody by a time that is not trusted', async () => {
    await gateway.pool.query('insert into unanswered values ($1, $2, $3)', [merchant, subject, new Date()])
    const waits = async () => (await gateway.pool.query('select from unanswered where payment_id = $1', [subject])).rowCount
    const rounds: (() => void)[] = []
    let trusted = false
    const sweep = async () => {
      const clock = {
        ...systemClock,
        real: () => systemClock.real() + day,
        every: (_: number, act: () => void) => {
          rounds.push(act)
          return never
        },
      }
      const parts = { database: { work: gateway.pool }, clock, connectors: new Map(), log: silent } as unknown as PaymentParts
      const sweeping = await startSweeping(parts, false, () => trusted)
      rounds.pop()!()
      await sweeping.stop()
    }
    await sweep()
    assert.equal(await waits(), 1)
    trusted = true
    await sweep()
    assert.equal(await waits(), 0)
    await gateway.pool.query('delete from due_work where subject_id = $1', [subject])
  })

  it('due work is free again as soon as no trusted clock can have taken it', async () => {
    const now = Date.now() + day // later than the gateway's own worker looks
    const lease = leaseSeconds * 1000
    await addDue(gateway.pool, 'reverse', merchant, subject, now)
    const takenUntil = (at: number) =>
      gateway.pool.query('update due_work set leased_until = $2 where subject_id = $1', [subject, new Date(at)])
    const take = async () => (await takeAnyDue(gateway.pool, now, 10, ['reverse'])).length
    const isBusy = async () => (await firstDue(gateway.pool, merchant, now, now))!.busy
    await takenUntil(now + 2 * lease)
    assert.deepEqual([await isBusy(), await take()], [true, 0])
    await takenUntil(now + 401 * day)
    assert.deepEqual([await isBusy(), await take()], [false, 1])
    assert.deepEqual([await isBusy(), await take()], [true, 0])
  })

  it('and so is a terminal', async () => {
    const now = Date.now()
    const lease = (holder: string, at: number) =>
      leaseTerminal(gateway.pool, 'north', ['T1'], holder.repeat(32), at, at + 60_000, '[]')
    assert.equal((await lease('1', now + 60_000))?.terminal, 'T1')
    assert.equal(await lease('2', now), undefined)
    assert.equal((await lease('1', now + 401 * day))?.terminal, 'T1')
    assert.deepEqual(await lease('2', now), { terminal: 'T1', fence: 2 })
    assert.equal(await lease('1', now), undefined)
  })
})

describe('the watch over a clock', () => {
  /** A machine and its database, each with a time of its own. */
  const machine = async (ahead = 0, ...tell: [] | [(why: string) => void]) => {
    const at = { real: 1_800_000_000_000 + ahead, elapsed: 5000, database: 1_800_000_000_000 }
    const lines: string[] = []
    let asked = 0
    let isAway = false
    const query = async () => {
      asked++
      if (isAway) throw new Error('the database is away')
      return { rows: [{ at: at.database }] }
    }
    const line = (_: object, message: string) => void lines.push(message)
    const log = { debug: line, info: line, warn: line, error: line }
    const clock = { ...systemClock, real: () => at.real, elapsed: () => at.elapsed, every: () => never }
    const watch = await watchClock({ query } as unknown as Connection, clock, log, ...tell)
    return {
      at,
      lines,
      watch,
      asked: () => asked,
      goAway: (away: boolean) => {
        isAway = away
      },
      settle: () => new Promise(setImmediate),
    }
  }

  it('asks the database nothing while both clocks of the machine go on alike', async () => {
    const { at, watch, asked } = await machine()
    for (let second = 0; second < 100; second++) {
      at.real += 1000
      at.elapsed += 1000
      assert.equal(watch.isTrusted(), true)
    }
    at.real += 30_000
    assert.deepEqual([watch.isTrusted(), asked()], [true, 1])
    at.real += 1
    assert.deepEqual([watch.isTrusted(), asked()], [false, 2])
  })

  it('compares at once after a sleep, in which only one of them stands still', async () => {
    const { at, watch, settle, asked } = await machine()
    at.real += 8 * 3_600_000
    at.database += 8 * 3_600_000
    at.elapsed += 1000
    assert.equal(watch.isTrusted(), false)
    assert.equal(watch.isTrusted(), false)
    await settle()
    assert.deepEqual([watch.isTrusted(), asked()], [true, 2])
  })

  it('trusts a clock that stays wrong no more, and asks again when it is set again and every five seconds', async () => {
    const { at, watch, settle, asked } = await machine()
    at.real += 40_000
    for (let second = 0; second < 10; second++) {
      at.elapsed += 1000
      at.real += 1000
      at.database += 1000
      assert.equal(watch.isTrusted(), false)
      assert.equal(await watch.time(), undefined)
      await settle()
    }
    assert.equal(asked(), 3)
    at.real -= 40_000
    assert.equal(watch.isTrusted(), false)
    await settle()
    assert.deepEqual([watch.isTrusted(), await watch.time()], [true, at.real])
  })

  it('trusts again within seconds when the clock of the database was the wrong one, and is set right', async () => {
    const { at, watch, settle, asked } = await machine()
    at.elapsed += 1000
    at.real += 41_000
    at.database += 86_400_000
    watch.isTrusted() // a step of ours, so that it asks at once
    await settle()
    assert.equal(watch.isTrusted(), false)
    at.database = at.real
    for (let second = 0; second < 5; second++) {
      assert.equal(watch.isTrusted(), false)
      for (const which of ['real', 'elapsed', 'database'] as const) at[which] += 1000
    }
    assert.equal(watch.isTrusted(), false)
    await settle()
    assert.deepEqual([watch.isTrusted(), asked()], [true, 3])
  })

  it('adds a step to the difference that it knew', async () => {
    const { at, watch, settle } = await machine()
    at.real += 31_000
    at.database += 11_000
    assert.equal(watch.isTrusted(), false)
    for (const which of ['real', 'elapsed', 'database'] as const) at[which] += 1000
    watch.isTrusted()
    await settle()
    assert.equal(watch.isTrusted(), true, '20 seconds are not refused')
    at.real += 11_000
    assert.equal(watch.isTrusted(), false, '31 are, though the step was a small one')
  })

  it('trusts nothing while the database is away, and asks it once a second', async () => {
    const { at, watch, settle, asked, goAway } = await machine()
    at.real += 40_000
    at.database += 40_000
    goAway(true)
    at.elapsed += 1000
    for (let step = 0; step < 100; step++) {
      at.elapsed += 100
      at.real += 100
      at.database += 100
      assert.equal(watch.isTrusted(), false)
      await settle()
    }
    assert.ok(asked() <= 12, `${asked()}`)
    goAway(false)
    at.elapsed += 1000
    watch.isTrusted()
    await settle()
    assert.equal(watch.isTrusted(), true, 'both have gone on alike')
  })

  it('gives a time that takes a step when the database has confirmed it, and no step that it denies', async () => {
    const { at, watch, settle, goAway } = await machine()
    const { clock } = watch
    const begin = at.real
    const pass = (milliseconds: number) => {
      for (const which of ['real', 'elapsed', 'database'] as const) at[which] += milliseconds
    }
    at.real += 29_000
    assert.equal(clock.real(), begin + 29_000, 'a small step is followed')
    goAway(true)
    at.real += 8 * 3_600_000
    at.database += 29_000 + 8 * 3_600_000
    assert.equal(clock.real(), begin + 29_000)
    pass(1000.5)
    assert.equal(clock.real(), begin + 30_000, 'whole milliseconds')
    await settle()
    goAway(false)
    pass(1000)
    assert.equal(clock.real(), begin + 31_000)
    await settle()
    assert.equal(clock.real(), at.real, 'it was asked without anybody looking for trust')
    const confirmed = at.real
    for (const step of [401 * day, -802 * day]) {
      at.real += step
      pass(1000)
      const held = clock.real()
      await settle()
      assert.equal(clock.real(), held)
    }
    assert.equal(clock.real(), Math.floor(confirmed + 2000))
    at.real += 401 * day
    pass(1000)
    clock.real()
    await settle()
    assert.equal(clock.real(), at.real)
  })

  it('lets nobody begin with a wrong clock, but who goes by the time of the database', async () => {
    await assert.rejects(machine(401 * day), /clock of this machine is 34646400.0 seconds ahead/)
    const told: string[] = []
    const { at, watch, settle } = await machine(401 * day, why => told.push(why))
    assert.deepEqual([told.length, watch.isTrusted(), await watch.time()], [1, false, undefined])
    assert.equal(watch.clock.real(), at.database)
    for (const which of ['real', 'elapsed', 'database'] as const) at[which] += 4000
    assert.equal(watch.clock.real(), at.database)
    at.real -= 401 * day
    watch.isTrusted()
    await settle()
    assert.deepEqual([watch.isTrusted(), watch.clock.real()], [true, at.real])
  })

  it('gives the earlier of both times, and none when they are far apart', async () => {
    const shared = (ours: number, database: number) =>
      sharedTime({ query: async () => ({ rows: [{ at: database }] }) } as unknown as Connection, () => ours)
    assert.equal(await shared(100_000, 100_000), 100_000)
    assert.equal(await shared(130_000, 100_000), 100_000)
    assert.equal(await shared(100_000, 130_000), 100_000)
    assert.equal(await shared(130_001, 100_000), undefined)
    assert.equal(await shared(100_000, 130_001), undefined)
  })
})
