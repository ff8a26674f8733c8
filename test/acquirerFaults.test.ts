// The state machine of an authorization under random faults and crashes; `npm run simulate -- 10000` plays many more.

import assert from 'node:assert/strict'
import { it } from 'node:test'
import { faultNames } from '../src/sandbox/acquirerHost/decide.ts'
import { randomFaults } from '../src/sandbox/acquirerHost/randomFaults.ts'
import { dieEverywhere, simulate } from './simulation/acquirer.ts'

const seed = Number(process.env.SIMULATION_SEED ?? Math.floor(Math.random() * 2 ** 31))

it(`whatever is lost, late, doubled or killed, host and gateway end with the same books (SIMULATION_SEED=${seed})`, async () => {
  await simulate(400, seed, 60, () => {})
})

it(`the same with two hosts that forget, repeat themselves and fall silent (SIMULATION_SEED=${seed})`, async () => {
  const { faults, approved } = await simulate(400, seed, 40, () => {}, true)
  assert.ok(approved > 0, `${approved} approved`) // on a slow machine most time out
  assert.ok((faults.again94 ?? 0) > 0 && (faults.bookedOther ?? 0) > 0, JSON.stringify(faults))
})

it('a process may die at every single step of every operation', async () => {
  assert.ok((await dieEverywhere()) > 30)
})

it('faults at random are the same for the same seed, and only what is authorized comes back with another amount', () => {
  const message = (type: string, processing = '000000') => ({ type, fields: new Map([[3, processing]]) })
  const draw = (seed: number, ...given: [string, string?]) => {
    const faults = randomFaults(['otherAmount', 'partly'], 50, seed)
    return Array.from({ length: 1000 }, () => faults(message(...given)))
  }
  assert.deepEqual(draw(1, '0100'), draw(1, '0100'))
  assert.notDeepEqual(draw(1, '0100'), draw(2, '0100'))
  const hit = draw(1, '0200').filter(fault => fault !== undefined).length
  assert.ok(hit > 400 && hit < 600, `${hit} of 1000`)
  for (const other of [draw(1, '0220'), draw(1, '0400'), draw(1, '0200', '200000')])
    assert.deepEqual(new Set(other), new Set([undefined]))
  assert.ok(
    randomFaults(faultNames, 0, 1)(message('0100')) === undefined &&
      randomFaults(faultNames, 100, 1)(message('0100')) !== undefined,
  )
})
