// What people change by hand, and what is counted before more of it is written. The database takes one at a time: whoever waits does so here, and holds none of
// the connections that payments and their reads need.

import type { Clock } from '../platform/clock.ts'
import { type Turns, takeTurns } from '../platform/database/turns.ts'

const turnSeconds = 5
const waitingMost = 4
const merchantsMost = 100

/** By whose it is that changes. Throws NoTurn when the turn did not come in time, or too many wait already. */
export const turnsOfOwners = (clock: Clock): Turns => takeTurns(clock, turnSeconds, waitingMost)

/** The same, by merchant, where there is one line for all: each has one place in it, so that one who sends many keeps only its own waiting. */
export function turnsOfMerchants(clock: Clock): Turns {
  const ofMerchant = turnsOfOwners(clock)
  const ofAll = takeTurns(clock, turnSeconds, merchantsMost)
  return (merchantId, work) => ofMerchant(merchantId, () => ofAll('', work))
}
