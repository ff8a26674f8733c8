// Trace numbers: there are enough for a crowd that comes at one moment, none comes twice, and a terminal is held by one process.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { leaseTraces } from '../src/connectors/cards/terminals/lease.ts'
import { type Clock, systemClock, systemRandom, type Timer } from '../src/platform/clock.ts'
import { connect } from '../src/platform/database/connect.ts'
import { makeDatabase } from './support/database.ts'
import { eventually, testGateway } from './support/gateway.ts'
import { acquirersFile } from './support/host.ts'

it('gives out thousands of numbers at one moment, again and again, none twice', async () => {
  const made = await makeDatabase()
  const database = connect(made.connection, systemClock, () => {})
  const said: string[] = []
  const lease = (terminals: string[]) =>
    leaseTraces(database.work, systemClock, systemRandom, 'north', terminals, error => said.push(error.message))
  const first = await lease(['T1'])
  const second = await lease(['T1'])
  try {
    assert.equal(second.next(), undefined)
    assert.match(said[0]!, /no terminal of north is free/)
    const seen = new Set<string>()
    const draw = (count: number) => Array.from({ length: count }, () => first.next()).filter(one => one !== undefined)
    for (let round = 1; round <= 3; round++) {
      const drawn = draw(2000)
      assert.equal(drawn.length, 2000)
      for (const { terminal, stan } of drawn) seen.add(`${terminal} ${stan}`)
      assert.equal(seen.size, 2000 * round)
      const taken = async () =>
        (await database.work.query<{ next: number }>('select next_trace as next from terminals')).rows[0]!.next
      await eventually(async () => (await taken()) > 2000 * round + 2999, 'there are enough again')
    }
  } finally {
    await first.stop()
    await second.stop()
    await database.close()
    await made.drop()
  }
})

describe('a process that slept through its lease', () => {
  const minute = 61_000
  async function slept(woken: Partial<Clock>) {
    const made = await makeDatabase()
    const database = connect(made.connection, systemClock, () => {})
    const lease = (clock: Clock) => leaseTraces(database.work, clock, systemRandom, 'north', ['T1'], () => {})
    const still = { cancel() {}, unref: () => still } as unknown as Timer
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
    const still = { cancel() {}, unref: () => still } as unknown as Timer
    let late = 0
    const clock: Clock = { ...systemClock, every: () => still, elapsed: () => systemClock.elapsed() + late }
    const lease = await leaseTraces(database.work, clock, systemRandom, 'north', ['T1'], () => {})
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
