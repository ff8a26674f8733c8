// What slips show the operator.

import type { SlipAccounts } from '../connectors/slips/accounts.ts'
import type { Database } from '../platform/database/connect.ts'
import type { FigureValue, Measure } from '../platform/metrics.ts'
import { endOfNumbers } from './numbers.ts'
import { readCounters } from './store.ts'

export function measureSlipNumbers({ work }: Pick<Database, 'work'>, accounts: SlipAccounts): Measure {
  let left: readonly FigureValue[] = []
  return {
    name: 'slip numbers',
    figures: [
      {
        kind: 'gauge',
        name: 'tollgate_slip_numbers_left',
        help: 'Numbers for slips that an account still has, where this cell gives them out.',
        read: () => left,
      },
    ],
    async measure() {
      const counters = new Map((await readCounters(work)).map(counter => [counter.account, counter]))
      left = [...accounts.values()].flatMap((account): FigureValue[] => {
        const { next, elsewhere } = counters.get(account.name) ?? { next: 1, elsewhere: false }
        return elsewhere ? [] : [[{ account: account.name }, Math.max(0, endOfNumbers(account) - next)]]
      })
    },
  }
}
