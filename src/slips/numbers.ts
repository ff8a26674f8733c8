// The numbers of slips: taken in the database as slips are issued, those that are wanted at one moment together. No process has any in memory, so that the
// database alone says how far an account's numbers have come, and whether this cell gives them out.

import type { SlipAccount, SlipAccounts } from '../connectors/slips/accounts.ts'
import type { SlipNumbers } from '../connectors/slips/slip.ts'
import { storeReference } from '../connectors/slips/storeNumber.ts'
import type { Clock } from '../platform/clock.ts'
import type { Connection } from '../platform/database/connect.ts'
import { type GroupCommit, groupCommit } from '../platform/database/groupCommit.ts'
import { findGivenNumbers, takeNumbers } from './store.ts'

/** As long as a request waits for its slip. */
const patienceSeconds = 5

/** An account whose numbers have all been given out has none any more, and its slips are refused. */
export function slipNumbers(db: Connection, accounts: SlipAccounts, clock: Clock, onError: (error: Error) => void): SlipNumbers {
  const lanes = new Map([...accounts.values()].map(account => [account.name, numberLane(db, account, clock, onError)]))
  let wanted = 0
  return { take: async ({ name }) => lanes.get(name)?.(wanted++) }
}

function numberLane(
  db: Connection,
  account: SlipAccount,
  clock: Clock,
  onError: (error: Error) => void,
): GroupCommit<number, string | undefined> {
  return groupCommit<number, string | undefined>({
    clock,
    patienceSeconds,
    key: String,
    async write(wanted) {
      const numbers = await takeFree(db, account, wanted.length)
      if (numbers) return numbers
      // Each is then tried alone, and gets one of the last.
      if (wanted.length > 1) throw new Error(`${account.name} has fewer numbers for slips than are wanted`)
      onError(new Error(`${account.name} has no numbers for slips any more, or another cell gives them out`))
      return [undefined]
    },
  })
}

/** Undefined when there are not so many. A number that a slip has, because a counter was set back, is passed over: more are taken each time, so that this ends soon. */
async function takeFree(db: Connection, account: SlipAccount, count: number): Promise<string[] | undefined> {
  for (let more = count; ; more *= 2) {
    const first = await takeNumbers(db, account.name, more, endOfNumbers(account))
    if (first === undefined) return undefined
    const numbers = Array.from({ length: more }, (_, at) => numberOf(account, first + at))
    const given = await findGivenNumbers(db, account.name, numbers)
    const free = numbers.filter(number => !given.has(number))
    if (free.length >= count) return free.slice(0, count)
  }
}

/** As long as the account's numbers are; those of stores have a digit of their own. */
function numberOf(account: SlipAccount, next: number): string {
  if (account.kind === 'chain') return storeReference(String(next))
  return String(next).padStart(account.bank.numberLength(account), '0')
}

/** The first number that is too long; none is beyond what is counted exactly. */
export const endOfNumbers = (account: SlipAccount): number =>
  10 ** Math.min(15, account.kind === 'chain' ? 11 : account.bank.numberLength(account))
