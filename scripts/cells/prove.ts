// What cells promise, tried with real processes: one that dies leaves the others alone and comes back, a merchant moves while its shop pays, nothing is lost or
// doubled, and all cells together say what clients were told.

import { type Place, until, wait } from '../highAvailability/programs.ts'
import { startInstallation } from './installation.ts'
import { type ShopResult, startShops } from './load.ts'
import { shopOf } from './shops.ts'

export type ProofOptions = {
  readonly merchantsPerCell: number
  /** How many merchants of the first cell move to the last one. */
  readonly moves: number
  /** Between two payments of a shop. */
  readonly thinkMilliseconds: number
  readonly steadySeconds: number
}

type Counts = Readonly<Record<string, number>>
const isSome = (counts: Counts): boolean => Object.keys(counts).length > 0

export type Proof = {
  /** Seconds from the kill to the first payment of each merchant of the cell that died: the longest. */
  readonly killed: { readonly othersRefused: Counts; readonly ownRefused: Counts; readonly outageSeconds: number }
  readonly moved: readonly {
    readonly merchant: number
    readonly refused: Counts
    readonly pauseSeconds: number
  }[]
  /** Attempts of shops whose merchants neither moved nor were in the cell that died. */
  readonly othersRefusedInMoves: Counts
  readonly told: { readonly approved: number; readonly takenBack: number; readonly failed: number; readonly perSecond: number }
  readonly books: { readonly approved: number; readonly keysTwice: number; readonly missing: number; readonly findings: number }
}

export async function prove(place: Place, options: ProofOptions, say: (what: string) => void = () => {}): Promise<Proof> {
  const { merchantsPerCell: each, moves, thinkMilliseconds, steadySeconds } = options
  const numbers = (from: number) => Array.from({ length: each }, (_, at) => from + at)
  const { url, cells, tollgate } = await startInstallation(place, {
    one: numbers(1),
    two: numbers(1 + each),
    three: numbers(1 + 2 * each),
  })
  const [one, two] = cells as [(typeof cells)[0], (typeof cells)[0]]
  say(`${cells.length} cells with ${3 * each} merchants are ready behind ${url}`)
  const began = performance.now()
  const load = startShops(url, cells.flatMap(cell => cell.numbers).map(shopOf), thinkMilliseconds)
  const of = (wanted: readonly number[]) => {
    const ids = new Set(wanted.map(number => shopOf(number).merchantId))
    return load.results.filter(({ shop }) => ids.has(shop.merchantId))
  }
  const othersOf = (some: readonly ShopResult[]) => load.results.filter(one => !some.includes(one))
  const approvals = (some: readonly ShopResult[]) => some.reduce((sum, { approved }) => sum + approved.size, 0)
  /** What shops were answered in place of an outcome since it was last asked, and how often. */
  const refusals = (some: readonly ShopResult[]): Counts => {
    const counts: Record<string, number> = {}
    for (const [why, count] of some.flatMap(one => Object.entries(one.takeRefused()))) counts[why] = (counts[why] ?? 0) + count
    return counts
  }
  const everybodyPays = async (some: readonly ShopResult[]) => {
    const before = some.map(({ approved }) => approved.size)
    await until('everybody is paid', async () => some.every(({ approved }, at) => approved.size > before[at]!))
  }
  try {
    await everybodyPays(load.results)
    await wait(steadySeconds * 1000)
    const early = refusals(load.results)
    if (isSome(early)) throw new Error(`Payments were refused before anything happened: ${JSON.stringify(early)}`)

    const own = of(two.numbers)
    for (const shop of own) shop.takeLongestPause()
    two.kill()
    await wait(3000)
    await two.start()
    await everybodyPays(own)
    await wait(steadySeconds * 1000)
    const outageSeconds = Math.max(...own.map(shop => shop.takeLongestPause()))
    const killed = { othersRefused: refusals(othersOf(own)), ownRefused: refusals(own), outageSeconds }
    say(`two was killed: ${JSON.stringify(killed)}`)

    const moved: Proof['moved'][number][] = []
    for (const number of one.numbers.slice(0, moves)) {
      const [shop] = of([number]) as [ShopResult]
      shop.takeLongestPause()
      await tollgate('merchants', 'move', shopOf(number).merchantId, '--to', 'three')
      await everybodyPays([shop])
      moved.push({ merchant: number, refused: shop.takeRefused(), pauseSeconds: shop.takeLongestPause() })
      say(`merchant moved: ${JSON.stringify(moved.at(-1))}`)
    }
    await everybodyPays(load.results)
    const othersRefusedInMoves = refusals(load.results)
    await load.stop()
    const seconds = (performance.now() - began) / 1000

    for (const number of one.numbers.slice(0, moves)) await tollgate('merchants', 'forget', shopOf(number).merchantId)
    const keys = new Map<string, number>()
    let approved = 0
    for (const cell of cells)
      for (const row of await cell.sql<{ key: string; approved: boolean | null }>(
        `select merchant_transaction_id as key, approved from payments left join answers on payment_id = id and answers.merchant_id = payments.merchant_id
          where payment_type = 'DB'`,
      )) {
        keys.set(row.key, (keys.get(row.key) ?? 0) + 1)
        if (row.approved) approved++
      }
    const told = load.results.flatMap(one => [...one.approved.keys(), ...one.takenBack])
    const { findings } = JSON.parse(await tollgate('doctor', '--json')) as { findings: string[] }
    return {
      killed,
      moved,
      othersRefusedInMoves,
      told: {
        approved: approvals(load.results),
        takenBack: load.results.reduce((sum, { takenBack }) => sum + takenBack.length, 0),
        failed: load.results.reduce((sum, { failed }) => sum + failed.length, 0),
        perSecond: Math.round(approvals(load.results) / seconds),
      },
      books: {
        approved,
        keysTwice: [...keys.values()].filter(count => count > 1).length,
        missing: told.filter(key => !keys.has(key)).length,
        findings: findings.length,
      },
    }
  } finally {
    await load.stop()
  }
}

/** What did not come out as promised, a sentence each. */
export const brokenIn = ({ killed, othersRefusedInMoves, told, books }: Proof): string[] =>
  [
    [isSome(killed.othersRefused), 'Merchants of other cells were refused while one was dead.'],
    [isSome(othersRefusedInMoves), 'Merchants who did not move were refused while others did.'],
    [told.failed > 0, 'Payments were answered in a way that no client may repeat.'],
    [books.missing > 0, 'Payments that were answered are in no cell.'],
    [books.keysTwice > 0, 'Payments are there twice.'],
    [books.approved !== told.approved, 'The cells together have not the approvals that clients were told.'],
    [books.findings > 0, 'A doctor found something.'],
  ].flatMap(([isSo, sentence]) => (isSo ? [sentence as string] : []))
