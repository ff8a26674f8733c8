// Searches: a page of records, oldest first. What one can cost is bounded (decisions, 67): how deep it reaches, how many bytes a page has, how
// many of one token and of one merchant run at a time. The wire counts pages, so that a deep page has to count all before it. A page is found by its keys first; its records are then read some at a time, as the caller takes them.

import { limits } from '../../contract/limits.ts'
import type { ResultName } from '../../contract/results/results.ts'
import { WriteTimeout } from '../../platform/database/errors.ts'
import { ReportingAway, type ReportingDatabase } from '../../platform/database/reporting.ts'
import type { PaymentParts } from '../parts.ts'
import type { PaymentState } from '../payment.ts'
import { storedJson, UnreadableRow } from '../store/read.ts'
import { countUpTo, findChains, findPage, findPayments, type Search, type SearchHit } from '../store/search.ts'
import { givenText, readable } from './status.ts'

const atOnceBytes = 256 * 1024
const linkedMost = 10_000
export type FoundPayments = { readonly count: number; payments(): AsyncIterable<PaymentState> }

export type SearchPage = {
  readonly count: number
  readonly bytes: number
  /** The records as JSON texts with commas between them. */
  texts(): AsyncIterable<string>
}

/** `tooManySearches`: others of the same token, or of the same merchant, have not ended. `pageTooLarge`: fewer records at a time can be had. */
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
  /** Where a search is read, and in whose turn. Who names a payment asks whether it was made, and may send it again: only the gateway's own database knows that for sure. */
  const placeOf = (tokenId: string, { merchantId, id, merchantTransactionId }: Search): ReadingPlace => {
    const { database } = parts
    const isNamed = id !== undefined || merchantTransactionId !== undefined
    const turns = isNamed ? database.turns.lookups : database.turns.searches
    const db = isNamed ? database.lookups : database.reporting
    return { db, merchantId, inTurn: work => turns(tokenId, merchantId, work).catch(tooMany) }
  }

  function pageOf(place: ReadingPlace, found: readonly SearchHit[]): SearchPage | 'pageTooLarge' {
    const bytes = found.reduce((sum, one) => sum + one.bytes, 0)
    if (found.length > linkedMost || (bytes > limits.pageMaxBytes && found.length > 1)) return 'pageTooLarge'
    return {
      count: found.length,
      bytes,
      async *texts() {
        let comma = ''
        for (const ids of portions(found)) {
          const payments = await portionOf(place, ids)
          const texts = new Map((await readable(parts, payments)).map(payment => [payment.id, givenText(parts, payment)]))
          yield comma + ids.map(id => texts.get(id)).join(',')
          comma = ','
        }
      },
    }
  }

  async function* paymentsOf(place: ReadingPlace, found: readonly SearchHit[]): AsyncGenerator<PaymentState[]> {
    for (const ids of portions(found)) {
      const byId = new Map((await portionOf(place, ids)).map(payment => [payment.id, payment]))
      yield ids.map(id => byId.get(id)!)
    }
  }

  return {
    async all(tokenId, search, most) {
      const place = placeOf(tokenId, search)
      const found = await place.inTurn(() => findPage(place.db, search, most + 1, 0))
      if (found === 'tooManySearches') return found
      if (found.length > most) return 'pageTooLarge'
      return {
        count: found.length,
        async *payments() {
          for await (const some of paymentsOf(place, found)) yield* some
        },
      }
    },
    async page(tokenId, search, limit, pageNo, linked) {
      const place = placeOf(tokenId, search)
      const { db } = place
      const found = await place.inTurn(async () => {
        const page = await findPage(db, search, limit, (pageNo - 1) * limit)
        if (!linked || page.length === 0) return page
        const roots = [...new Set(page.map(({ rootId }) => rootId))]
        const { merchantId, keptTo } = search
        const kept = { merchantId, ...(keptTo !== undefined && { keptTo }) }
        const all = Map.groupBy(await findChains(db, kept, roots, linkedMost + 1), ({ rootId }) => rootId)
        return roots.flatMap(root => all.get(root) ?? [])
      })
      return found === 'tooManySearches' ? found : pageOf(place, found)
    },
    async pages(tokenId, search, limit) {
      const { db, inTurn } = placeOf(tokenId, search)
      const count = await inTurn(() => countUpTo(db, search, limits.searchReach + 1))
      return count === 'tooManySearches' ? count : Math.max(1, Math.ceil(count / limit))
    },
    async chain(tokenId, search, rootId) {
      const place = placeOf(tokenId, { ...search, id: rootId })
      const found = await place.inTurn(() => findChains(place.db, search, [rootId], linkedMost + 1))
      return found === 'tooManySearches' ? found : pageOf(place, found)
    },
  }
}

function tooMany(error: unknown): 'tooManySearches' {
  if (error instanceof WriteTimeout) return 'tooManySearches'
  throw error
}

type ReadingPlace = {
  readonly db: ReportingDatabase
  readonly merchantId: string
  inTurn<Value>(work: () => Promise<Value>): Promise<Value | 'tooManySearches'>
}

async function portionOf({ db, merchantId, inTurn }: ReadingPlace, ids: readonly string[]): Promise<PaymentState[]> {
  const payments = await inTurn(() => paymentsIn(db, merchantId, ids))
  if (payments === 'tooManySearches') throw new Error('another search of the merchant took too long')
  return payments
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
