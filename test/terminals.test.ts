// Trace numbers: there are enough for a crowd that comes at one moment, none comes twice at an acquirer, and a terminal is held by one process.

import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import type { Message } from '../src/connectors/cards/iso8583/codec.ts'
import { type Lease, type LeaseParts, leaseTraces } from '../src/connectors/cards/terminals/lease.ts'
import { countBlocks, passTraceNumbers } from '../src/connectors/cards/terminals/store.ts'
import { type Clock, systemClock, systemRandom, type Timer } from '../src/platform/clock.ts'
import { connect, type Database } from '../src/platform/database/connect.ts'
import { makeDatabase, type TestDatabase } from './support/database.ts'
import { eventually, testGateway } from './support/gateway.ts'
import { acquirersFile } from './support/host.ts'
import { answerAll, startPeer } from './support/peer.ts'

const numbers = { from: 1, to: 999_999 }
const silent = { clock: systemClock, random: systemRandom, onError: () => {}, lines: () => '[]' }
const north = (terminals: readonly string[] = ['T1']) => ({
  name: 'north',
  account: { acquirerId: '423935' },
  terminals,
  traceNumbers: numbers,
})
const still = { cancel() {}, unref: () => still } as unknown as Timer
type Drawn = { readonly terminal: string; readonly stan: string }
const draw = (lease: Lease, count: number): Drawn[] =>
  Array.from({ length: count }, () => lease.next()).filter(one => one !== undefined)

it('gives out thousands of numbers at one moment, again and again, none twice', async () => {
  const made = await makeDatabase()
  const database = connect(made.connection, systemClock, () => {})
  const said: string[] = []
  const lease = () => leaseTraces({ ...silent, db: database.work, onError: error => said.push(error.message) }, north())
  const first = await lease()
  const second = await lease()
  try {
    assert.equal(second.next(), undefined)
    assert.match(said[0]!, /no terminal of north is free/)
    const seen = new Set<string>()
    for (let round = 1; round <= 3; round++) {
      const drawn = draw(first, 2000)
      assert.equal(drawn.length, 2000)
      for (const { terminal, stan } of drawn) seen.add(`${terminal} ${stan}`)
      assert.equal(seen.size, 2000 * round)
      await eventually(async () => (await countBlocks(database.work, '423935')) >= 2 * round + 3, 'there are enough again')
    }
  } finally {
    await first.stop()
    await second.stop()
    await database.close()
    await made.drop()
  }
})

describe('at an acquirer', () => {
  let made: TestDatabase
  let database: Database
  const leases: Lease[] = []
  beforeEach(async () => {
    made = await makeDatabase()
    database = connect(made.connection, systemClock, () => {})
  })
  afterEach(async () => {
    for (const lease of leases.splice(0)) await lease.stop()
    await database.close()
    await made.drop()
  })
  async function lease(of: Partial<ReturnType<typeof north>>, parts: Partial<LeaseParts> = {}): Promise<Lease> {
    const one = await leaseTraces({ ...silent, db: database.work, ...parts }, { ...north(['T1', 'T2', 'T3']), ...of })
    leases.push(one)
    return one
  }
  async function drawInTime(one: Lease, count: number): Promise<number[]> {
    const drawn: Drawn[] = []
    await eventually(async () => drawn.push(...draw(one, count - drawn.length)) >= count, `${count} numbers`)
    return stans(drawn)
  }
  const stans = (drawn: readonly Drawn[]) => drawn.map(({ stan }) => Number(stan))

  it('no two processes give a number, whatever terminals and names they have there', async () => {
    const all = [await lease({}), await lease({}), await lease({ name: 'again', terminals: ['T9'] })]
    const drawn = all.flatMap(one => draw(one, 3000))
    assert.equal(new Set(drawn.map(({ terminal }) => terminal)).size, 3)
    assert.equal(new Set(stans(drawn)).size, 9000)
    const zeros = await lease({ name: 'zeros', account: { acquirerId: '00000423935' }, terminals: ['T8'] })
    const [beside] = draw(zeros, 1)
    assert.ok(!drawn.some(({ stan }) => stan === beside!.stan))
    // Another acquirer counts for itself.
    const other = await lease({ name: 'south', account: { acquirerId: '423936' }, terminals: ['T1'] })
    assert.equal(draw(other, 1)[0]!.stan, '000001')
  })

  it('cells that divide the numbers give each their own, also when those begin anew', async () => {
    const one = await lease({ traceNumbers: { from: 1, to: 100_000 } })
    const two = await lease({ traceNumbers: { from: 100_001, to: 999_999 } })
    await database.work.query('update trace_numbers set blocks = 99')
    const [ours, theirs] = [await drawInTime(one, 9000), await drawInTime(two, 9000)]
    assert.ok(Math.max(...ours) <= 100_000 && Math.min(...theirs) > 100_000 && Math.max(...theirs) <= 999_999)
    assert.ok(ours.includes(1) && ours.includes(100_000))
  })

  it('numbers begin far behind those that terminals gave out, or give out beside it, by themselves', async () => {
    await database.work.query(
      `insert into terminals (acquirer, terminal, next_trace) values ('north', 'T1', 7001), ('north', 'T2', 12001)`,
    )
    assert.deepEqual(stans(draw(await lease({}), 1)), [511_001])
  })

  it('a process that sends little lets go of its numbers before the others come to them', async () => {
    let renewed = 0
    const renewals: (() => void)[] = []
    const every: Clock['every'] = (_, work) => {
      renewals.push(work)
      return still
    }
    const lines = () => `[${renewed++}]`
    const one = await lease({}, { clock: { ...systemClock, every }, lines })
    assert.deepEqual(stans(draw(one, 1)), [1])
    // One that a database which was put back gives again is let go of too.
    await passTraceNumbers(database.work)
    assert.equal(await countBlocks(database.work, '423935'), 236)
    for (const [blocks, next] of [
      [400, 2],
      [1200, 201_001],
    ] as const) {
      await database.work.query('update trace_numbers set blocks = $1', [blocks])
      const before = renewed
      await eventually(async () => {
        renewals[0]!() // does nothing while another is under way
        return renewed >= before + 2
      }, 'it has renewed')
      assert.deepEqual(stans(draw(one, 1)), [next])
    }
  })
})

it('of two processes the host has no original data and no reference twice', async () => {
  const heard: Message[] = []
  const peer = await startPeer((socket, message) => {
    heard.push(message)
    answerAll(socket, message)
  })
  const file = acquirersFile({ north: [peer.port] })
  const gateway = await testGateway({ environment: { ACQUIRERS_FILE: file.path } })
  const beside = await gateway.another()
  try {
    const processes = [gateway, beside]
    await Promise.all(Array.from({ length: 60 }, (_, at) => processes[at % 2]!.pay({ testMode: 'EXTERNAL' })))
    const count = (fields: readonly number[]) =>
      new Set(heard.map(({ type, fields: all }) => [type, ...fields.map(field => all.get(field))].join())).size
    assert.equal(new Set(heard.map(({ fields }) => fields.get(41))).size, 2)
    assert.deepEqual([heard.length, count([11, 7, 32]), count([37])], [60, 60, 60])
  } finally {
    await beside.stop()
    await gateway.stop()
    peer.stop()
    file.remove()
  }
})

describe('a process that slept through its lease', () => {
  const minute = 61_000
  async function slept(woken: Partial<Clock>) {
    const made = await makeDatabase()
    const database = connect(made.connection, systemClock, () => {})
    const lease = (clock: Clock) => leaseTraces({ ...silent, db: database.work, clock }, north())
    const sleeper: Clock = { ...systemClock, every: () => still }
    const first = await lease(sleeper)
    const second = await lease({ ...systemClock, real: () => Date.now() + minute })
    Object.assign(sleeper, woken)
    return {
      first,
      second,
      async end() {
        await first.stop()
        await second.stop()
        await database.close()
        await made.drop()
      },
    }
  }

  it('gets no trace of a terminal that another took', async () => {
    const { first, second, end } = await slept({ elapsed: () => systemClock.elapsed() + minute })
    assert.equal(first.next(), undefined)
    assert.equal(second.next()?.terminal, 'T1')
    await end()
  })

  it('asks for one again as soon as a payment wants a number', async () => {
    const made = await makeDatabase()
    const database = connect(made.connection, systemClock, () => {})
    let late = 0
    const clock: Clock = { ...systemClock, every: () => still, elapsed: () => systemClock.elapsed() + late }
    const lease = await leaseTraces({ ...silent, db: database.work, clock }, north())
    late = minute
    assert.equal(lease.next(), undefined)
    await eventually(() => Promise.resolve(lease.next() !== undefined), 'it has a terminal again')
    await lease.stop()
    await database.close()
    await made.drop()
  })

  it('gets no new numbers for it, even if its clock slept too', async () => {
    const { first, second, end } = await slept({})
    const drawn = Array.from({ length: 3000 }, () => first.next()?.stan)
    await eventually(async () => first.next() === undefined, 'there are no more')
    const seen = new Set(drawn)
    for (let at = 0; at < 3000; at++) assert.ok(!seen.has(second.next()?.stan))
    await end()
  })
})

it('a process that is alone takes the terminal of the dead at once', async () => {
  const first = await testGateway({ environment: { ACQUIRERS_FILE: acquirersFile({ north: [1] }).path } })
  // As a kill leaves it: the lease runs on.
  await first.pool.query(`update terminals set leased_by = gen_random_uuid(), leased_until = now() + interval '1 minute'`)
  await first.restart()
  const { rows } = await first.pool.query<{ fence: number }>('select fence from terminals where leased_until is not null')
  assert.equal(rows.length, 1)
  await first.stop()
})
