// Searches: a page of records, oldest first. What one can cost is bounded (decisions, 67): how deep it reaches, how many bytes a page has, how
// many of one token run at a time. The wire counts pages, so that a deep page has to count all before it. A page is found by its keys first; its records are then read some at a time, as the caller takes them.

import { limits } from '../../contract/limits.ts'
import type { ResultName } from '../../contract/results/results.ts'
import type { Connection } from '../../platform/database/connect.ts'
import { WriteTimeout } from '../../platform/database/errors.ts'
import { ReportingAway, type ReportingDatabase } from '../../platform/database/reporting.ts'
import { takeTurns } from '../../platform/database/turns.ts'
import type { PaymentParts } from '../parts.ts'
import type { PaymentState } from '../payment.ts'
import { storedJson, UnreadableRow } from '../store/read.ts'
import { countUpTo, findChains, findPage, findPayments, type Search, type SearchHit } from '../store/search.ts'
import { givenText, readable } from './status.ts'

const atOnceBytes = 256 * 1024
const linkedMost = 10_000
const turnSeconds = 10
const waitingMost = 20

export type FoundPayments = { readonly count: number; payments(): AsyncIterable<PaymentState> }

export type SearchPage = {
  readonly count: number
  readonly bytes: number
  /** The records as JSON texts with commas between them. */
  texts(): AsyncIterable<string>
}

/** `tooManySearches`: others of the same token have not ended. `pageTooLarge`: fewer records at a time can be had. */
export type SearchRefusal = Extract<ResultName, 'tooManySearches' | 'pageTooLarge'>

export type Searches = {
  /** With linked transactions each payment brings the rest of its chain. */
  page(tokenId: string, search: Search, limit: number, pageNo: number, linked: boolean): Promise<SearchPage | SearchRefusal>
  /** All that is found, oldest first, unless there is more of it. */
  all(tokenId: string, search: Search, most: number): Promise<FoundPayments | SearchRefusal>
  /** How many pages there are, up to where a search reaches. */
  pages(tokenId: string, search: Search, limit: number): Promise<number | SearchRefusal>
  /** A payment's chain. */
  chain(
    tokenId: string,
    search: Pick<Search, 'merchantId' | 'types' | 'brands'>,
    rootId: string,
  ): Promise<SearchPage | SearchRefusal>
}

export function makeSearches(parts: PaymentParts): Searches {
  const turns = takeTurns(parts.clock, turnSeconds, waitingMost)
  const home = () => parts.database.searches
  // Who names a payment asks whether it was made, and may send it again: only the gateway's own database knows that for sure.
  const dbFor = ({ id, merchantTransactionId }: Search): Connection =>
    id === undefined && merchantTransactionId === undefined ? parts.database.reporting : home()
  const inTurn = <Value>(tokenId: string, work: () => Promise<Value>): Promise<Value | 'tooManySearches'> =>
    turns(tokenId, work).catch(error => {
      if (error instanceof WriteTimeout) return 'tooManySearches'
      throw error
    })

  function pageOf(db: Connection, tokenId: string, merchantId: string, found: readonly SearchHit[]): SearchPage | 'pageTooLarge' {
    const bytes = found.reduce((sum, one) => sum + one.bytes, 0)
    if (found.length > linkedMost || (bytes > limits.pageMaxBytes && found.length > 1)) return 'pageTooLarge'
    return {
      count: found.length,
      bytes,
      async *texts() {
        let comma = ''
        for (const ids of portions(found)) {
          const payments = await inTurn(tokenId, () => paymentsIn(db, merchantId, ids))
          if (payments === 'tooManySearches') throw new Error('another search of the token took too long')
          const texts = new Map((await readable(parts, payments)).map(payment => [payment.id, givenText(parts, payment)]))
          yield comma + ids.map(id => texts.get(id)).join(',')
          comma = ','
        }
      },
    }
  }

  async function* paymentsOf(
    db: Connection,
    tokenId: string,
    merchantId: string,
    found: readonly SearchHit[],
  ): AsyncGenerator<PaymentState[]> {
    for (const ids of portions(found)) {
      const payments = await inTurn(tokenId, () => paymentsIn(db, merchantId, ids))
      if (payments === 'tooManySearches') throw new Error('another search of the token took too long')
      const byId = new Map(payments.map(payment => [payment.id, payment]))
      yield ids.map(id => byId.get(id)!)
    }
  }

  return {
    async all(tokenId, search, most) {
      const db = dbFor(search)
      const found = await inTurn(tokenId, () => findPage(db, search, most + 1, 0))
      if (found === 'tooManySearches') return found
      if (found.length > most) return 'pageTooLarge'
      return {
        count: found.length,
        async *payments() {
          for await (const some of paymentsOf(db, tokenId, search.merchantId, found)) yield* some
        },
      }
    },
    async page(tokenId, search, limit, pageNo, linked) {
      const db = dbFor(search)
      const found = await inTurn(tokenId, async () => {
        const page = await findPage(db, search, limit, (pageNo - 1) * limit)
        if (!linked || page.length === 0) return page
        const roots = [...new Set(page.map(({ rootId }) => rootId))]
        const all = Map.groupBy(
          await findChains(db, { merchantId: search.merchantId }, roots, linkedMost + 1),
          ({ rootId }) => rootId,
        )
        return roots.flatMap(root => all.get(root) ?? [])
      })
      return found === 'tooManySearches' ? found : pageOf(db, tokenId, search.merchantId, found)
    },
    async pages(tokenId, search, limit) {
      const count = await inTurn(tokenId, () => countUpTo(dbFor(search), search, limits.searchReach + 1))
      return count === 'tooManySearches' ? count : Math.max(1, Math.ceil(count / limit))
    },
    async chain(tokenId, search, rootId) {
      const found = await inTurn(tokenId, () => findChains(home(), search, [rootId], linkedMost + 1))
      return found === 'tooManySearches' ? found : pageOf(home(), tokenId, search.merchantId, found)
    },
  }
}

/** What a database that follows says is for others to keep right: where it is no payment, it is as if it were away. */
async function paymentsIn(db: ReportingDatabase, merchantId: string, ids: readonly string[]): Promise<PaymentState[]> {
  try {
    const payments = await findPayments(db, merchantId, ids)
    if (db.follows) for (const { id, answer } of payments) if (answer) storedJson(id, 'body', answer.body) // it goes out as it stands there
    return payments
  } catch (error) {
    throw db.follows && error instanceof UnreadableRow ? new ReportingAway(error.message) : error
  }
}

/** The keys of as many records as are read at once. */
function* portions(found: readonly SearchHit[]): Generator<string[]> {
  let ids: string[] = []
  let bytes = 0
  for (const one of found) {
    if (ids.length > 0 && bytes + one.bytes > atOnceBytes) {
      yield ids
      ids = []
      bytes = 0
    }
    ids.push(one.id)
    bytes += one.bytes
  }
  if (ids.length > 0) yield ids
}
