// The numbers of slips: drawn in memory from blocks that the database gave out, so that a payment needs no extra write for its number; the payment's
// own row keeps it. What a dead process had left is lost, which is harmless.

import type { SlipAccount, SlipAccounts } from '../connectors/slips/accounts.ts'
import type { SlipNumbers } from '../connectors/slips/slip.ts'
import type { Connection } from '../platform/database/connect.ts'
import { takeNumbers } from './store.ts'

const blockSize = 100
/** Requests may come at one moment, before the database has answered. */
const fetchBelow = 50

type NumberBlock = { next: number; readonly end: number }

/** An account whose numbers have all been given out has none any more, and its slips are refused. */
export async function leaseNumbers(
  db: Connection,
  accounts: SlipAccounts,
  onError: (error: Error) => void,
): Promise<SlipNumbers & { stop(): Promise<void> }> {
  const leased = new Map(
    [...accounts.values()].map(account => [account.name, { blocks: [] as NumberBlock[], end: endOf(account), fetching: false }]),
  )
  const under = new Set<Promise<void>>()

  function fetchMore(name: string): void {
    const one = leased.get(name)!
    if (one.fetching || left(one.blocks) >= fetchBelow) return
    one.fetching = true
    const fetched = takeNumbers(db, name, blockSize, one.end)
      .then(first => {
        if (first === undefined) throw new Error(`${name} has no numbers for slips any more, or another cell gives them out`)
        one.blocks.push({ next: first, end: first + blockSize })
      })
      .catch(onError)
      .finally(() => {
        one.fetching = false
        under.delete(fetched)
      })
    under.add(fetched)
  }

  for (const name of leased.keys()) fetchMore(name)
  await Promise.all(under)
  return {
    next(account) {
      const one = leased.get(account)
      if (!one) return undefined
      one.blocks = one.blocks.filter(block => block.next < block.end)
      const block = one.blocks[0]
      const number = block && block.next++
      fetchMore(account)
      return number
    },
    stop: async () => void (await Promise.all(under)),
  }
}

const left = (blocks: readonly NumberBlock[]): number => blocks.reduce((total, { next, end }) => total + end - next, 0)

/** The first number that is too long; none is beyond what is counted exactly. */
const endOf = (account: SlipAccount): number =>
  10 ** Math.min(15, account.kind === 'chain' ? 11 : account.bank.numberLength(account))
