// The state machine of an authorization under random faults and crashes; `npm run simulate -- 10000` plays many more.

import { it } from 'node:test'
import { simulate } from './simulation/acquirer.ts'

const seed = Number(process.env.SIMULATION_SEED ?? Math.floor(Math.random() * 2 ** 31))

it(`whatever is lost, late, doubled or killed, host and gateway end with the same books (SIMULATION_SEED=${seed})`, async () => {
  await simulate(400, seed, 60, () => {})
})
