// The search over payments: a projection that is written behind the events, and read by terms.

import { consume, consumers, noRound, type OutboxEvent, type Round, roundAfterRound } from '../../payments/outbox/outbox.ts'
import { countWaiting, type EventPlace, unmarkEvents } from '../../payments/outbox/store.ts'
import { findPayments } from '../../payments/store/search.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Connection, Database } from '../../platform/database/connect.ts'
import { type Repetition, repeat } from '../../platform/due/repeat.ts'
import type { Log } from '../../platform/log.ts'
import type { Keys } from '../../vault/keys.ts'
import { emailHashes, type FoundPayment, searchedPayment } from './found.ts'
import { findSearched, putSearched, type SearchCondition, type SearchPlace } from './store.ts'
import type { SearchTerms } from './terms.ts'

type SearchParts = { readonly database: Pick<Database, 'work' | 'reporting'>; readonly keys: Keys }

const projectedAtOnce = 500

/** Takes the next events, behind the merchants of the last ones. None also when another process is at it and `wait` is not set. */
export const project = (
  parts: Pick<SearchParts, 'keys'> & { readonly database: Pick<Database, 'work'>; readonly clock: Clock },
  how: { readonly wait?: boolean; readonly behind?: Round } = {},
): Promise<Round> =>
  consume(parts.database.work, consumers.search, projectedAtOnce, (db, events) => write(parts, db, events), how)

/** Each payment as it is now, however old the event is that leads to it. */
async function write(
  { keys, clock }: { readonly keys: Keys; readonly clock: Clock },
  db: Connection,
  events: readonly OutboxEvent[],
): Promise<void> {
  const ofMerchant = Map.groupBy(
    events.filter(({ type }) => type === 'PAYMENT'),
    ({ merchantId }) => merchantId,
  )
  for (const [merchantId, own] of ofMerchant) {
    const ids = [...new Set(own.map(({ paymentId }) => paymentId))]
    const payments = await findPayments(db, merchantId, ids)
    await putSearched(
      db,
      payments.map(payment => searchedPayment(keys, payment)),
      clock.real(),
    )
  }
}

// Payments come first: nobody looks for one in the second in which it is made.
const gatherMilliseconds = 1000

export const startProjecting = (parts: SearchParts & { readonly clock: Clock; readonly log: Log }): Repetition =>
  repeat(
    parts.clock,
    roundAfterRound(behind => project(parts, { behind }), projectedAtOnce),
    error => parts.log.warn({ why: error.message }, 'payments could not be made searchable'),
    { batch: projectedAtOnce, milliseconds: gatherMilliseconds },
  )

const unmarkedAtOnce = 2000

/**
 * Writes the projection anew beside whatever runs: the marks are taken away in small steps, and each payment is overwritten, so that what is there is found
 * all the while. `told` hears how many events are still to be taken.
 */
export async function rebuildSearch(
  parts: SearchParts & { readonly clock: Clock },
  told: (waiting: number) => void,
): Promise<void> {
  const db = parts.database.work
  const first: EventPlace = { merchantId: '0'.repeat(32), paymentId: '0'.repeat(32), sequence: -1 }
  for (let place: EventPlace | undefined = first; place; ) place = await unmarkEvents(db, consumers.search, place, unmarkedAtOnce)
  for (let round = noRound; ; ) {
    told(await countWaiting(db, consumers.search, null))
    for (let taken = 0; taken < 20 * projectedAtOnce; ) {
      round = await project(parts, { wait: true, behind: round })
      if (round.taken === 0) return told(0)
      taken += round.taken
    }
  }
}

/** The newest payments of some merchants that any of the terms describe. */
export const searchPayments = (
  { database, keys }: SearchParts,
  merchantIds: readonly string[],
  any: readonly SearchTerms[],
  limit: number,
  behind?: SearchPlace,
): Promise<FoundPayment[]> => findSearched(database.reporting, merchantIds, conditionsOf(keys, any), limit, behind)

/** As the projection is compared with them: an e-mail address by its hashes. */
export const conditionsOf = (keys: Keys, any: readonly SearchTerms[]): SearchCondition[] =>
  any.map(({ email, ...terms }) => ({ ...terms, ...(email !== undefined && { emailHashes: emailHashes(keys, email) }) }))
