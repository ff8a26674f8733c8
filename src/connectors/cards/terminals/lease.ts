// The terminal that this process holds at an acquirer, and its trace numbers. Numbers are drawn in memory from blocks that the database gave out,
// so that a payment needs no extra write for its number; the payment's own row keeps it (decisions, 48).

import type { Clock, Random } from '../../../platform/clock.ts'
import type { Connection } from '../../../platform/database/connect.ts'
import type { Traces } from '../acquirer.ts'
import { blockSize, giveBackTerminal, leaseTerminal, takeBlock } from './store.ts'

export type Lease = Traces & { stop(): Promise<void> }

const leaseSeconds = 60
const renewSeconds = 20
/** Blocks are fetched while fewer numbers are left. A thousand requests may come at one moment, before the database has answered. */
const fetchBelow = 3 * blockSize

type Block = { readonly terminal: string; next: number; readonly end: number }

export async function leaseTraces(
  db: Connection,
  clock: Clock,
  random: Random,
  acquirer: string,
  terminals: readonly string[],
  onError: (error: Error) => void,
): Promise<Lease> {
  const holder = random.uuid()
  let terminal: string | undefined
  let blocks: Block[] = []
  let fetching: Promise<void> | undefined

  async function renew(): Promise<void> {
    const now = clock.real()
    const held = await leaseTerminal(db, acquirer, terminals, holder, now, now + leaseSeconds * 1000)
    if (held === undefined) onError(new Error(`no terminal of ${acquirer} is free: there are more processes than terminals`))
    terminal = held
    await fetchEnough()
  }

  async function fetchBlock(): Promise<void> {
    if (terminal === undefined) return
    const first = await takeBlock(db, acquirer, terminal)
    blocks.push({ terminal, next: first, end: first + blockSize })
  }

  const left = () => blocks.reduce((total, { next, end }) => total + end - next, 0)
  const fetchEnough = async () => {
    while (terminal !== undefined && left() < fetchBelow) await fetchBlock()
  }
  const fetchMore = () => {
    fetching ??= fetchEnough()
      .catch(onError)
      .finally(() => {
        fetching = undefined
      })
  }
  const renewal = clock.every(renewSeconds * 1000, () => void renew().catch(onError))
  await renew().catch(onError)
  return {
    next() {
      blocks = blocks.filter(block => block.next < block.end)
      const [block] = blocks
      if (left() < fetchBelow) fetchMore()
      return block && { terminal: block.terminal, stan: String(block.next++).padStart(6, '0') }
    },
    async stop() {
      renewal.cancel()
      await fetching
      await giveBackTerminal(db, acquirer, holder).catch(onError)
    },
  }
}
