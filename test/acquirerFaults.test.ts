// The state machine of an authorization under random faults and crashes; `npm run simulate -- 10000` plays many more.

import assert from 'node:assert/strict'
import { it } from 'node:test'
import { dieEverywhere, simulate } from './simulation/acquirer.ts'

const seed = Number(process.env.SIMULATION_SEED ?? Math.floor(Math.random() * 2 ** 31))

it(`whatever is lost, late, doubled or killed, host and gateway end with the same books (SIMULATION_SEED=${seed})`, async () => {
  await simulate(400, seed, 60, () => {})
})

it('a process may die at every single step of every operation', async () => {
  assert.ok((await dieEverywhere()) > 30)
})
