// Random faults between gateway and host, on a real PostgreSQL and real sockets: stories of payments whose process dies at random awaits, while the
// host loses, delays, doubles and cuts. Afterwards recovery runs to its end, and the books of the host and of the gateway must be the same.

import assert from 'node:assert/strict'
import type pg from 'pg'
import { thisProcess } from '../../src/audit/entry.ts'
import type { AcquirerOptions } from '../../src/connectors/cards/acquirer.ts'
import { exampleDialect } from '../../src/connectors/cards/iso8583/dialects.ts'
import { transmitted } from '../../src/connectors/cards/iso8583/versions.ts'
import { readForm } from '../../src/contract/form.ts'
import { formChecker } from '../../src/contract/formCheck.ts'
import { requests } from '../../src/contract/requests.ts'
import type { Channel } from '../../src/merchants/directory.ts'
import { applySeed, readSeed, type Seed, sandboxSeed } from '../../src/merchants/seed.ts'
import { closeCase } from '../../src/payments/cases/cases.ts'
import { findCases } from '../../src/payments/cases/store.ts'
import { followUp } from '../../src/payments/followUps/followUp.ts'
import { pay } from '../../src/payments/initial/pay.ts'
import { sweepUnanswered } from '../../src/payments/store/sweep.ts'
import { clockWith, systemClock, systemRandom } from '../../src/platform/clock.ts'
import { connect } from '../../src/platform/database/connect.ts'
import type { DueItem } from '../../src/platform/due/store.ts'
import { runItem } from '../../src/platform/due/worker.ts'
import type { Fault } from '../../src/sandbox/acquirerHost/decide.ts'
import { type Host, type HostOptions, startHost } from '../../src/sandbox/acquirerHost/host.ts'
import { type Ledger, openLedger } from '../../src/sandbox/acquirerHost/ledger.ts'
import { isPossible } from '../../src/sandbox/acquirerHost/randomFaults.ts'
import { sandboxAcquirer, startAcquirers } from '../../src/start/acquirers.ts'
import { assemble, dueHandlers, type Gateway } from '../../src/start/assemble.ts'
import { readConfig } from '../../src/start/config.ts'
import { makeDatabase, testPool } from '../support/database.ts'
import { takeAnyDue } from '../support/due.ts'
import { sandbox, testKeys, visa } from '../support/gateway.ts'
import { crashing } from './crash.ts'
import { type Dice, dice } from './random.ts'

export type Report = {
  stories: number
  payments: number
  crashed: number
  crashedInRecovery: number
  recovered: number
  /** Operations that merchants read as done. */
  approved: number
  faults: Record<string, number>
  tombstones: number
  repeatsAtHost: number
  milliseconds: number
}

const answerWithin = 0.12
const rates: readonly (readonly [Fault, number])[] = [
  ['requestLost', 0.04],
  ['answerLost', 0.06],
  ['late', 0.05],
  ['twice', 0.05],
  ['slow', 0.1],
  ['lineCut', 0.004],
  ['otherAmount', 0.01],
  ['partly', 0.01],
]
/** What a hostile host does beside: by the thousand, because one silent line is many payments. */
const hostileRates: readonly (readonly [Fault, number])[] = [
  ...rates,
  ['again94', 0.08],
  ['again96', 0.08],
  ['again09', 0.05],
  ['otherCurrency', 0.01],
  ['bookedOther', 0.02],
  ['noCode', 0.02],
  ['halfFrame', 0.003],
  ['signOff', 0.003],
  ['silent', 0.003],
]

/** `hostile`: two acquirers with two lines each, which forget, repeat themselves and fall silent. */
export async function simulate(
  stories: number,
  seed: number,
  together: number,
  say: (text: string) => void,
  hostile = false,
): Promise<Report> {
  const began = performance.now()
  const luck = dice(seed)
  const world = await makeWorld(dice(seed + 1), hostile)
  const report: Report = {
    stories,
    payments: 0,
    crashed: 0,
    crashedInRecovery: 0,
    recovered: 0,
    approved: 0,
    faults: world.faults,
    tombstones: 0,
    repeatsAtHost: 0,
    milliseconds: 0,
  }
  try {
    for (let done = 0; done < stories; ) {
      const size = Math.min(stories - done, 500)
      let next = 0
      const teller = async () => {
        while (next < size) {
          next++
          if (await tell(world, dice(luck.whole(2 ** 31)))) report.crashed++
        }
      }
      await Promise.all(Array.from({ length: together }, teller))
      await recoverAll(world, luck, report)
      await compare(world)
      world.wild = true
      done += size
      say(`${done} stories, ${Math.round((performance.now() - began) / 1000)} s`)
    }
    const { rows } = await world.pool.query<{ count: number }>('select count(*) from payments')
    report.payments = rows[0]!.count
    report.approved = (await world.pool.query('select 1 from answers where approved')).rowCount ?? 0
    report.tombstones = [...world.ledger.entries()].filter(({ line }) => line.kind === 'tombstone').length
    report.repeatsAtHost = world.host.counters.repeated
    report.milliseconds = performance.now() - began
    return report
  } finally {
    await world.stop()
  }
}

/** No faults, but a death at every single step, before and after it takes effect, of stories that use every operation. */
export async function dieEverywhere(): Promise<number> {
  const world = await makeWorld(dice(1))
  const stories: readonly (readonly [type: string, ...(readonly Record<string, string>[])])[] = [
    [
      'PA',
      { paymentType: 'CP', amount: '40.00' },
      { paymentType: 'CP', amount: '10.00' },
      { paymentType: 'RF', amount: '10.00' },
    ],
    ['DB', { paymentType: 'RF', amount: '10.00' }, { paymentType: 'RF', amount: '90.00' }],
    ['PA', { paymentType: 'RV', amount: '10.00' }, { paymentType: 'RV' }, { paymentType: 'RV' }],
  ]
  world.wild = false
  let deaths = 0
  try {
    for (const [type, ...followers] of stories) {
      for (let at = 1, died = true; died; at++) {
        died = false
        for (const after of [false, true]) {
          const crash = crashing(world.gateway, at, after)
          const told = (async () => {
            const { id } = await first(crash.gateway, { paymentType: type, amount: '92.00', ...visa })
            for (const fields of followers) await refer(crash.gateway, id, fields)
            return 'told' as const
          })()
          if ((await Promise.race([told, crash.died])) === 'died') died = true
        }
        deaths++
      }
    }
    await recoverAll(world, dice(1), { recovered: 0, crashedInRecovery: 0 })
    await compare(world)
    return deaths
  } finally {
    await world.stop()
  }
}

export type World = {
  readonly gateway: Gateway
  readonly pool: pg.Pool
  readonly ledger: Ledger
  readonly host: Host
  readonly faults: Record<string, number>
  readonly errors: readonly string[]
  /** Faults happen only while this is true. */
  wild: boolean
  advance(milliseconds: number): void
  stop(): Promise<void>
}

async function makeWorld(luck: Dice, hostile = false): Promise<World> {
  const database = await makeDatabase()
  const pool = testPool(database.connection, 3)
  let ahead = 0
  const clock = clockWith(() => Date.now() + ahead)
  const seed = readSeed(sandboxSeed) as { -readonly [Key in keyof Seed]: Seed[Key] }
  if (hostile) seed.divisions![0]!.merchants![0]!.channels![0]!.settings = { routes: [{ acquirers: ['sandbox', 'south'] }] }
  await applySeed(pool, testKeys, clock, systemRandom, seed)
  const faults: Record<string, number> = {}
  const ledger = openLedger(undefined)
  const hostOptions: HostOptions = {
    dialect: exampleDialect('1987'),
    ledger,
    host: '127.0.0.1',
    port: 0,
    delay: 0,
    slowMilliseconds: 250,
    lateMilliseconds: 900,
    faults(message) {
      if (!world.wild) return undefined
      let rest = luck.roll()
      for (const [fault, rate] of hostile ? hostileRates : rates) {
        rest -= rate
        if (rest >= 0) continue
        if (!isPossible(fault, message)) return undefined
        faults[fault] = (faults[fault] ?? 0) + 1
        return fault
      }
      return undefined
    },
    hostile,
    say: () => {},
  }
  const host = await startHost(hostOptions)
  // One book for both, in which each has its own terminals and its own number.
  const south = hostile ? await startHost(hostOptions) : undefined
  const toHost = ({ port }: Host): AcquirerOptions => {
    const options = sandboxAcquirer(async () => ({ host: '127.0.0.1', port }))
    return {
      ...options,
      addresses: hostile ? [...options.addresses, ...options.addresses] : options.addresses,
      answerWithinSeconds: answerWithin,
      recoverAfterSeconds: 1,
      breakerTimeouts: hostile ? 12 : 1_000_000,
      breakerSeconds: 0.05,
      echoSeconds: hostile ? 0.4 : options.echoSeconds,
      echoAnswerSeconds: hostile ? 0.3 : 1,
    }
  }
  const options = [toHost(host)]
  if (south) {
    const second = toHost(south)
    options.push({
      ...second,
      name: 'south',
      terminals: second.terminals.map(name => name.replace('TOLL', 'STH-')),
      account: { ...second.account, acquirerId: '777777' },
    })
  }
  const opened = connect(database.connection, systemClock, () => {})
  const errors: string[] = []
  const quiet = {
    debug() {},
    info() {},
    warn() {},
    error(fields: object, message: string) {
      errors.push(`${message} ${JSON.stringify(fields)}`)
      errors.splice(20)
    },
  }
  const acquirers = await startAcquirers(options, {
    db: opened.work,
    clock,
    random: systemRandom,
    log: quiet,
    alone: true,
  })
  const assembly = await assemble({
    config: readConfig({}, '/nonexistent'),
    keys: testKeys,
    clock,
    random: systemRandom,
    database: opened,
    log: quiet,
    publicUrl: () => '',
    onError: () => {},
    network: {
      call: () => Promise.reject(new Error('the simulation calls nobody')),
      transport: () => Promise.reject(new Error('the simulation has acquirers only')),
      acquirers: acquirers.connectors,
    },
  })
  const world: World = {
    gateway: assembly.gateway,
    pool,
    ledger,
    host,
    faults,
    errors,
    wild: true,
    advance(milliseconds) {
      ahead += milliseconds
    },
    async stop() {
      await acquirers.stop()
      await assembly.stop()
      await opened.close()
      await host.stop()
      await south?.stop()
      await pool.end()
      await database.drop()
    },
  }
  return world
}

/** One merchant's story: a payment and what follows, in a process that may die. True when it did. */
async function tell(world: World, luck: Dice): Promise<boolean> {
  const crash = crashing(world.gateway, luck.chance(0.5) ? 1 + luck.whole(22) : 0, luck.chance(0.5))
  const told = story(crash.gateway, luck).then(
    () => 'told' as const,
    (error: Error) => {
      // Its caller would read 503: on a slow machine the connections are all in use.
      if (!error.message.includes('timeout exceeded when trying to connect')) throw error
      return 'told' as const
    },
  )
  return (await Promise.race([told, crash.died])) === 'died'
}

async function story(gateway: Gateway, luck: Dice): Promise<void> {
  const type = luck.chance(0.6) ? 'PA' : 'DB'
  const amount = 100 + luck.whole(100_000)
  const card = luck.chance(0.05) ? '4000000000009995' : '4200000000000000'
  const { id, code } = await first(gateway, { paymentType: type, amount: text(amount), ...visa, 'card.number': card })
  if (code !== '000.100.112') return
  const part = () => text(1 + luck.whole(amount))
  const followers: readonly (readonly Record<string, string>[])[] =
    type === 'PA'
      ? [
          [],
          [{ paymentType: 'CP', amount: text(amount) }],
          [{ paymentType: 'CP', amount: part() }],
          [
            { paymentType: 'CP', amount: text(amount) },
            { paymentType: 'RF', amount: part() },
            { paymentType: 'RF', amount: part() },
          ],
          [{ paymentType: 'RV' }],
          [
            { paymentType: 'RV', amount: part() },
            { paymentType: 'CP', amount: part() },
          ],
          [{ paymentType: 'RV', amount: part() }, { paymentType: 'RV' }],
        ]
      : [
          [],
          [{ paymentType: 'RF', amount: part() }],
          [
            { paymentType: 'RF', amount: part() },
            { paymentType: 'RF', amount: part() },
          ],
          [{ paymentType: 'RV' }],
          [{ paymentType: 'RV', amount: part() }],
        ]
  for (const fields of luck.pick(followers)) await refer(gateway, id, fields)
}

const text = (hundredths: number) => `${Math.floor(hundredths / 100)}.${String(hundredths % 100).padStart(2, '0')}`

const check = { payment: formChecker(requests.payment), followUp: formChecker(requests.followUp) }

function requestOf(gateway: Gateway, kind: keyof typeof check, fields: Record<string, string>) {
  const form = readForm(new URLSearchParams({ entityId: sandbox.entityId, ...fields }).toString())
  if (typeof form === 'string') throw new Error(form)
  const { values, known, errors } = check[kind](form, false)
  if (errors.length > 0) throw new Error(JSON.stringify(errors))
  return { channel: gateway.directory.entity(sandbox.entityId) as Channel, values, known, ndc: 'simulation', publicUrl: '' }
}

async function first(gateway: Gateway, fields: Record<string, string>): Promise<{ id: string; code: string }> {
  const said = await pay(gateway, requestOf(gateway, 'payment', { currency: 'EUR', testMode: 'EXTERNAL', ...fields }))
  if (!('body' in said)) throw new Error(said.refused)
  const body = JSON.parse(said.body)
  return { id: body.id, code: body.result.code }
}

const refer = (gateway: Gateway, referenceId: string, fields: Record<string, string>) =>
  followUp(gateway, {
    ...requestOf(gateway, 'followUp', { ...(fields.amount !== undefined && { currency: 'EUR' }), ...fields }),
    referenceId,
  })

/** Another process finds what is unanswered and does what is due until nothing is left. It may die in between, too. */
async function recoverAll(world: World, luck: Dice, report: Pick<Report, 'recovered' | 'crashedInRecovery'>): Promise<void> {
  const { gateway } = world
  const db = gateway.database.work
  world.advance(100_000)
  await sweepUnanswered(db, gateway.clock.real(), gateway.clock.real())
  for (let round = 0; ; round++) {
    world.wild &&= round < 6
    const items = await takeAnyDue(db, gateway.clock.real(), 100, [...dueHandlers.keys()])
    if (items.length === 0) {
      const { rowCount } = await db.query('select 1 from due_work limit 1')
      if (rowCount === 0) break
      world.advance(70_000) // the next attempts, and leases of the dead
      continue
    }
    await Promise.all(items.map(item => work(item)))
    if (round > 200)
      throw new Error(
        `recovery does not come to an end: ${JSON.stringify((await db.query('select * from due_work')).rows)} ${world.errors.join('; ')}`,
      )
  }
  world.wild = false
  // The host may still hold messages that are slow or late; what they bring is settled too.
  await new Promise(resolve => setTimeout(resolve, 1000))
  await decideCases(world)
  if ((await db.query('select 1 from due_work limit 1')).rowCount !== 0) return recoverAll(world, luck, report)
  report.recovered = (await db.query("select 1 from answers where result = 'timeoutReversed'")).rowCount ?? 0

  async function work(item: DueItem): Promise<void> {
    const crash = crashing(gateway, world.wild && luck.chance(0.2) ? 1 + luck.whole(8) : 0, luck.chance(0.5))
    if ((await Promise.race([runItem(crash.gateway, dueHandlers, item), crash.died])) === 'died') report.crashedInRecovery++
  }
}

/** An operator asks the acquirer, whose books know. */
async function decideCases({ gateway, ledger }: World): Promise<void> {
  const { clock, random, database } = gateway
  const by = { keys: testKeys, clock, random, by: thisProcess('commandLine'), database }
  for (const { id, kind, details } of await findCases(database.work, false, 1000)) {
    if (kind !== 'answerUnproven') continue
    const sent = JSON.parse(details).sent as { at: string; stan: string; terminal: string }[]
    const isBooked = [...ledger.entries()].some(
      ({ line }) =>
        line.kind !== 'declined' &&
        sent.some(({ at, stan, terminal }) => line.key.trim().endsWith(` ${stan} ${transmitted(Number(at))} ${terminal}`)),
    )
    await closeCase(by, id, 'ann', 'the acquirer was asked', isBooked ? 'carriedOut' : 'notCarriedOut')
  }
}

type Chain = { root: string; expectedHeld: bigint; expectedCleared: bigint; held: bigint; cleared: bigint; rows: string[] }

/** Chain by chain and in total: what the host holds and has cleared is what our payments and our journal say. */
export async function compare({ pool, ledger }: World): Promise<void> {
  const { rows } = await pool.query<{
    id: string
    root: string
    type: string
    amount: number
    approved: boolean | null
    result: string | null
    record: string
  }>(
    `select p.id, coalesce(p.root_id, p.id) as root, p.payment_type as type, p.amount, a.approved, a.result, p.record
       from payments p left join answers a on a.merchant_id = p.merchant_id and a.payment_id = p.id where p.mode = 'external' order by p.id`,
  )
  assert.deepEqual(
    rows.filter(row => row.approved === null).map(({ id }) => id),
    [],
    'payments without an answer',
  )
  const byReference = new Map(
    [...ledger.entries()]
      .filter(({ line }) => line.kind !== 'reversal')
      .map(entry => [entry.line.key.split(' ').slice(1).join(' ').trim(), entry]),
  )
  const chains = new Map<string, Chain>()
  for (const { root, type, amount, approved, result, record } of rows) {
    const chain = chains.get(root) ?? { root, expectedHeld: 0n, expectedCleared: 0n, held: 0n, cleared: 0n, rows: [] }
    chains.set(root, chain)
    chain.rows.push(`${type} ${amount} ${result}`)
    for (const { at, stan, terminal } of (JSON.parse(record).prepared ?? []) as {
      at: string
      stan: string
      terminal: string
    }[]) {
      const entry = byReference.get(`${stan} ${transmitted(Number(at))} ${terminal}`)
      if (entry) {
        chain.held += entry.held
        chain.cleared += entry.cleared - entry.refunded
      }
    }
    if (!approved) continue
    const money = BigInt(amount)
    const ofHold = rows.find(row => row.id === root)!.type === 'PA'
    if (type === 'PA') chain.expectedHeld += money
    if (type === 'DB') chain.expectedCleared += money
    if (type === 'CP') {
      chain.expectedHeld = 0n
      chain.expectedCleared += money
    }
    if (type === 'RF') chain.expectedCleared -= money
    if (type === 'RV' && ofHold) chain.expectedHeld -= money
    if (type === 'RV' && !ofHold) chain.expectedCleared -= money
  }
  const wrong = [...chains.values()].filter(one => one.held !== one.expectedHeld || one.cleared !== one.expectedCleared)
  for (const one of wrong.slice(0, 3)) {
    const { rows: ids } = await pool.query<{ id: string; record: string }>(
      'select id, record from payments where id = $1 or root_id = $1',
      [one.root],
    )
    const { rows: due } = await pool.query('select kind, subject_id, attempts from due_work')
    console.log(one.root, JSON.stringify(ids.map(row => JSON.parse(row.record).prepared)), JSON.stringify(due))
    const stans = ids.flatMap(row => (JSON.parse(row.record).prepared ?? []).map((way: { stan: string }) => way.stan))
    for (const { line, held, captured, cleared } of ledger.entries())
      if (stans.some(stan => line.key.includes(stan))) console.log(JSON.stringify(line), held, captured, cleared)
  }
  assert.deepEqual(
    wrong.map(
      one =>
        `${one.root}: host holds ${one.held} and cleared ${one.cleared}, we say ${one.expectedHeld} and ${one.expectedCleared}: ${one.rows.join(', ')}`,
    ),
    [],
  )
  const { rows: journal } = await pool.query<{ holds: number; acquirer: number }>(
    `select coalesce(sum(amount) filter (where credit = 'holds'), 0) - coalesce(sum(amount) filter (where debit = 'holds'), 0) as holds,
            coalesce(sum(amount) filter (where debit = 'acquirer'), 0) - coalesce(sum(amount) filter (where credit = 'acquirer'), 0) as acquirer
       from journal where state = 'posted' and mode = 'external'`,
  )
  const { held, cleared } = ledger.totals().get('978') ?? { held: 0n, cleared: 0n }
  assert.deepEqual([BigInt(journal[0]!.holds), BigInt(journal[0]!.acquirer)], [held, cleared], 'journal and host')
}
