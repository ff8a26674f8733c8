// What is done to databases of different sizes: the product's own statements, at payments that chance picks.

import { randomUUID } from 'node:crypto'
import type { PaymentParts } from '../../src/payments/parts.ts'
import type { Payment } from '../../src/payments/payment.ts'
import { makeSearches } from '../../src/payments/read/search.ts'
import { answerLane } from '../../src/payments/store/answers.ts'
import { paymentLane } from '../../src/payments/store/payments.ts'
import { findChain, findPayment } from '../../src/payments/store/read.ts'
import type { Search } from '../../src/payments/store/search.ts'
import { systemClock, systemRandom, timeOrderedId } from '../../src/platform/clock.ts'
import { connect, type Database } from '../../src/platform/database/connect.ts'
import { project, searchPayments } from '../../src/reporting/search/search.ts'
import { type SearchTerms, understand } from '../../src/reporting/search/terms.ts'
import {
  amountOf,
  begin,
  binOf,
  brands,
  channelId,
  dayMilliseconds,
  document,
  email,
  idOf,
  keys,
  lastFourOf,
  merchantId,
  perDay,
  referenceOf,
} from './growthData.ts'

/** A database of one size, and what a gateway has on it. */
export type Grown = {
  readonly size: number
  readonly database: Database
  readonly payments: ReturnType<typeof paymentLane>
  readonly answers: ReturnType<typeof answerLane>
  readonly searches: ReturnType<typeof makeSearches>
  /** What came to it meanwhile. */
  inserted: number
  madeSearchable: number
}

export type GrowthMeasure = {
  readonly name: string
  /** So many run at a time. */
  readonly together: number
  /** Returns how much was done; 0: there is no more to do. */
  run(grown: Grown): Promise<number>
}

export function openGrown(connection: Parameters<typeof connect>[0], size: number): Grown {
  const database = connect(connection, systemClock, () => {})
  return {
    size,
    database,
    payments: paymentLane(database.paymentLane, systemClock),
    answers: answerLane(database.answerLane, systemClock),
    // All that a search of answered payments uses.
    searches: makeSearches({ clock: systemClock, database } as PaymentParts),
    inserted: 0,
    madeSearchable: 0,
  }
}

const batch = 32
const pageSize = 50
const listSize = 100

const some = (count: number) => Math.floor(Math.random() * count)
/** A search that finds nothing where there is something is not the one that was meant. */
const filled = (count: number, least: number): number => {
  if (count < least) throw new Error(`found ${count} where there are ${least}`)
  return 1
}

const lookUp = (name: string, run: GrowthMeasure['run']): GrowthMeasure => ({ name, together: 8, run })

/** As `GET /v3/query` does: a page, its records, and how many pages there are. Searches of one token wait for each other, so each has its own. */
const query = (
  name: string,
  search: (number: number) => Omit<Search, 'merchantId'>,
  least: number,
  pageNo = 1,
): GrowthMeasure => ({
  name: `/v3/query: ${name}`,
  together: 3,
  async run({ searches, size }) {
    const [token, asked] = [randomUUID(), { merchantId, ...search(some(size)) }]
    const page = await searches.page(token, asked, listSize, pageNo, false)
    if (typeof page === 'string') throw new Error(page)
    for await (const _ of page.texts());
    await searches.pages(token, asked, listSize)
    return filled(page.count, least)
  },
})

const day = (number: number) => {
  const from = begin + Math.floor(number / perDay) * dayMilliseconds
  return { channelId, from, to: from + dayMilliseconds }
}

/** As a page of the back office does, for somebody who sees two merchants. */
const office = (name: string, terms: (number: number) => readonly SearchTerms[], least = pageSize): GrowthMeasure => ({
  name: `back office: ${name}`,
  together: 3,
  async run({ database, size }) {
    const merchants = [merchantId, randomUUID().replaceAll('-', '')]
    return filled((await searchPayments({ database, keys }, merchants, terms(some(size)), pageSize)).length, least)
  },
})

const dateOf = (number: number) => new Date(day(number).from).toISOString().slice(0, 10)
const amountText = (number: number) => (amountOf(number) / 100).toFixed(2)

export const growthMeasures: readonly GrowthMeasure[] = [
  { name: 'insert, batches of 32 with their answers', together: 1, run: insert },
  // Behind the inserts, whose events wait for it.
  { name: 'made searchable for the back office', together: 1, run: makeSearchable },
  lookUp('look-up by id', async ({ database, size }) =>
    filled((await findPayment(database.work, merchantId, idOf(some(size)))) ? 1 : 0, 1),
  ),
  lookUp('look-up of a chain', async ({ database, size }) =>
    filled((await findChain(database.work, merchantId, idOf(50 * some(size / 50) + 48))).length, 2),
  ),
  query('a merchantTransactionId', number => ({ merchantTransactionId: `growth-${number}` }), 1),
  query('a day, its first page of 100', day, listSize),
  query('a day, its 100th page', day, listSize, 100),
  office('the newest', () => [{}]),
  office('an id', number => understand(idOf(number)), 1),
  office('an order number', number => understand(`growth-${number}`), 1),
  office('an amount', number => understand(amountText(number))),
  office('an amount and a brand', number => understand(`${amountText(number)} ${brands[some(3)]}`)),
  office('last four digits', number => understand(`****${lastFourOf(number)}`)),
  office('a whole card', number => [{ bin: binOf(number), lastFour: lastFourOf(number) }]),
  office('an e-mail address', () => understand(email)),
  office('an e-mail address that nobody has', () => understand('john@example.org'), 0),
  office('a reference', number => understand(referenceOf(number)), 1),
  office('refunds of a day', number => understand(`RF ${dateOf(number)}`)),
  office('what was declined', () => understand('rejected')),
  office('what nobody has had', () => understand('error'), 0),
  office('nothing that there is', () => understand('nothing-like-this'), 0),
]

async function insert(grown: Grown): Promise<number> {
  const { payments, answers } = grown
  const rows = Array.from({ length: batch }, newPayment)
  const sealedCard = { sealed: Buffer.alloc(190, 7), eraseAfter: '2030-01-01' }
  await Promise.all(rows.map(payment => payments({ payment, sealedCard })))
  await Promise.all(
    rows.map(payment =>
      answers({
        payment,
        answer: {
          result: 'succeededInTestMode',
          approved: true,
          kept: {},
          body: document + document,
          answeredAt: payment.receivedAt,
        },
        transfers: [{ line: 1, debit: 'acquirer', credit: 'merchant', amount: payment.amount, state: 'posted' }],
        announced: true,
        recordedAt: payment.recordedAt,
      }),
    ),
  )
  grown.inserted += batch
  return batch
}

async function makeSearchable(grown: Grown): Promise<number> {
  const { taken } = await project({ database: grown.database, keys, clock: systemClock })
  grown.madeSearchable += taken
  return taken
}

/** Sentences about what is not there; none when all is. */
export async function missing({ size, database, inserted, madeSearchable }: Grown): Promise<string[]> {
  const { rows } = await database.reports.query(
    `select (select count(*) from payments) as payments, (select count(*) from answers) as answers, (select count(*) from events) as events,
            (select count(*) from journal where payment_id in (select id from payments where merchant_transaction_id like 'new-%')) as "journal lines",
            (select count(*) from searched_payments) as "searchable payments"`,
  )
  const all = size + inserted
  const expected = {
    payments: all,
    answers: all,
    events: all,
    'journal lines': inserted,
    'searchable payments': size + madeSearchable,
  }
  return Object.entries(expected)
    .filter(([what, count]) => rows[0][what] !== count)
    .map(([what, count]) => `of ${count} ${what} ${rows[0][what]} are there`)
}

function newPayment(): Payment {
  const now = Date.now()
  return {
    merchantId,
    id: timeOrderedId(now, systemRandom),
    channelId,
    type: 'DB',
    brand: 'VISA',
    amount: 9200,
    currency: 'EUR',
    mode: 'internal',
    connector: 'simulator',
    merchantTransactionId: `new-${randomUUID()}`,
    receivedAt: now,
    recordedAt: now,
    record: { ndc: merchantId, fields: [['customer.givenName', document]] },
  }
}
