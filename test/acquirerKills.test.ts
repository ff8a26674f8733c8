// Two true kills; `node scripts/killRuns.ts` makes more.

import assert from 'node:assert/strict'
import { it } from 'node:test'
import { killRuns } from './simulation/killRuns.ts'

const seed = Number(process.env.SIMULATION_SEED ?? Math.floor(Math.random() * 2 ** 31))

it(`a gateway that is killed leaves nothing behind at the host (SIMULATION_SEED=${seed})`, async () => {
  const { payments, approvals } = await killRuns(2, seed)
  assert.ok(payments >= 40 && approvals >= 30, `${payments} payments, ${approvals} approvals`)
})
