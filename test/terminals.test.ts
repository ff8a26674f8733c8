// Trace numbers: there are enough for a crowd that comes at one moment, none comes twice, and a terminal is held by one process.

import assert from 'node:assert/strict'
import { it } from 'node:test'
import { leaseTraces } from '../src/connectors/cards/terminals/lease.ts'
import { systemClock, systemRandom } from '../src/platform/clock.ts'
import { connect } from '../src/platform/database/connect.ts'
import { makeDatabase } from './support/database.ts'
import { eventually } from './support/gateway.ts'

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
