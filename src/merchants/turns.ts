// What people change by hand, and what is counted before more of it is written. The database takes one at a time: whoever waits does so here, and holds none of
// the connections that payments and their reads need.

import type { Clock } from '../platform/clock.ts'
import { NoTurn } from '../platform/database/errors.ts'
import { takeTurns } from '../platform/database/turns.ts'

const turnSeconds = 5
const waitingMost = 4
const peopleMost = 100
const merchantsMost = 100

/** By who changes something, and by whose it is that changes. */
export type PeopleTurns = <Value>(person: string, owner: string, work: () => Promise<Value>) => Promise<Value>

/** The turn did not come in time, or too many wait already: nothing was begun. What is begun may want turns of its own, and says so by NoTurn alone. */
export class NotBegun extends NoTurn {}

/** One at a time of each owner; each person has one place in that line, so that one who sends many keeps only his own waiting. Throws NotBegun. */
export function turnsOfPeople(clock: Clock): PeopleTurns {
  const ofPerson = takeTurns(clock, turnSeconds, waitingMost)
  const ofOwner = takeTurns(clock, turnSeconds, peopleMost)
  return inLines((person, owner, work) => ofPerson(person, () => ofOwner(owner, work)))
}

/** The same, where there is one line for all: each owner, a merchant, has one place in it. */
export function turnsOfMerchants(clock: Clock): PeopleTurns {
  const ofPeople = turnsOfPeople(clock)
  const ofAll = takeTurns(clock, turnSeconds, merchantsMost)
  return inLines((person, merchantId, work) => ofPeople(person, merchantId, () => ofAll('', work)))
}

const inLines =
  (lines: PeopleTurns): PeopleTurns =>
  async (person, owner, work) => {
    let isBegun = false
    try {
      return await lines(person, owner, () => {
        isBegun = true
        return work()
      })
    } catch (error) {
      throw error instanceof NoTurn && !isBegun ? new NotBegun(error.message) : error
    }
  }
