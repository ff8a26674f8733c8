// The terminal that this process holds at an acquirer, and its trace numbers. Numbers are drawn in memory from blocks that the database gave out,
// so that a payment needs no extra write for its number; the payment's own row keeps it (decisions, 48). All processes draw from the same numbers of an
// acquirer: neither the original data of a follow-up nor a reference names the terminal.

import type { Clock, Random } from '../../../platform/clock.ts'
import type { Connection } from '../../../platform/database/connect.ts'
import type { AcquirerOptions, Traces } from '../acquirer.ts'
import { blockSize, blocksIn, countBlocks, giveBackTerminal, type HeldTerminal, leaseTerminal, takeBlock } from './store.ts'

export type Lease = Traces & { stop(): Promise<void> }

const leaseSeconds = 60
const renewSeconds = 20
/** After its end, when somebody wants a number: payments need not wait for the next renewal where the database was away. */
const retrySeconds = 1
/** Blocks are fetched while fewer numbers are left. A thousand requests may come at one moment, before the database has answered. */
const fetchBelow = 3 * blockSize

type Block = { next: number; readonly end: number; readonly at: number }

/** Numbers are counted by the acquirer's id. */
type Leasable = Pick<AcquirerOptions, 'name' | 'terminals' | 'traceNumbers'> & {
  readonly account: { readonly acquirerId: string }
}

export type LeaseParts = {
  readonly db: Connection
  readonly clock: Clock
  readonly random: Random
  onError(error: Error): void
  /** JSON, what people may see of the holder's lines. */
  lines(): string
}

export async function leaseTraces(
  { db, clock, random, onError, lines }: LeaseParts,
  { name: acquirer, account: { acquirerId }, terminals, traceNumbers }: Leasable,
): Promise<Lease> {
  const holder = random.uuid()
  let held: HeldTerminal | undefined
  let heldUntil = 0
  let blocks: Block[] = []
  let fetching: Promise<void> | undefined
  let renewing: Promise<void> | undefined
  let triedAt = Number.NEGATIVE_INFINITY

  async function renew(): Promise<void> {
    const now = clock.real()
    const began = clock.elapsed()
    const found = await leaseTerminal(db, acquirer, terminals, holder, now, now + leaseSeconds * 1000, lines())
    if (found === undefined) onError(new Error(`no terminal of ${acquirer} is free: there are more processes than terminals`))
    // Numbers of a holding that ended meanwhile belong to whoever held the terminal since.
    if (found?.terminal !== held?.terminal || found?.fence !== held?.fence) blocks = []
    // The others may be about to begin anew where this one, which sends little, has not been yet; or the database was put back, and gives these again.
    const taken = await countBlocks(db, acquirerId)
    blocks = blocks.filter(({ at }) => at < taken && taken - at < blocksIn(traceNumbers) * 0.75)
    held = found
    heldUntil = began + leaseSeconds * 1000
    await fetchEnough()
  }

  async function fetchBlock(): Promise<void> {
    const holding = held
    const block = holding && (await takeBlock(db, acquirer, holding, acquirerId, traceNumbers))
    if (block === undefined) held = undefined
    else if (holding === held) blocks.push({ next: block.first, end: block.first + blockSize, at: block.at })
  }

  const left = () => blocks.reduce((total, { next, end }) => total + end - next, 0)
  const fetchEnough = async () => {
    while (held !== undefined && left() < fetchBelow) await fetchBlock()
  }
  const fetchMore = () => {
    fetching ??= fetchEnough()
      .catch(onError)
      .finally(() => {
        fetching = undefined
      })
  }
  function renewSoon(): void {
    triedAt = clock.elapsed()
    renewing ??= renew()
      .catch(onError)
      .finally(() => {
        renewing = undefined
      })
  }
  const renewal = clock.every(renewSeconds * 1000, renewSoon)
  renewSoon()
  await renewing
  return {
    next() {
      // Who slept through its lease, or could not renew it, does not know whose the terminal is now.
      if (clock.elapsed() >= heldUntil) {
        if (clock.elapsed() >= triedAt + retrySeconds * 1000) renewSoon()
        return undefined
      }
      blocks = blocks.filter(block => block.next < block.end)
      const [block] = blocks
      if (left() < fetchBelow) fetchMore()
      return block && held && { terminal: held.terminal, stan: String(block.next++).padStart(6, '0') }
    },
    async stop() {
      renewal.cancel()
      await renewing
      await fetching
      await giveBackTerminal(db, acquirer, holder).catch(onError)
    },
  }
}
