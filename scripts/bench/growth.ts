// Does it get slower as payments pile up? The product's own statements on an empty database, a small one and a large one, in turns.

import { randomUUID } from 'node:crypto'
import pg from 'pg'
import type { Payment } from '../../src/payments/payment.ts'
import { answerLane } from '../../src/payments/store/answers.ts'
import { paymentLane } from '../../src/payments/store/payments.ts'
import { findChain, findPayment } from '../../src/payments/store/read.ts'
import { findPage, findPayments, type Search } from '../../src/payments/store/search.ts'
import { systemClock, systemRandom, timeOrderedId } from '../../src/platform/clock.ts'
import { connect, type Database } from '../../src/platform/database/connect.ts'
import { startEmbedded } from '../../src/platform/database/embedded.ts'
import { claimFolder } from '../../src/platform/database/folder.ts'
import { migrate } from '../../src/platform/database/migrate.ts'
import { makeDataFolder } from './gateway.ts'
import { spread } from './measures.ts'
import { columns } from './report.ts'

export type GrowthOptions = { readonly small: number; readonly large: number; readonly rounds: number; readonly seconds: number }

const merchantId = '6'.repeat(32)
const channelId = '7'.repeat(32)
const begin = Date.UTC(2026, 0, 1)
// So many payments are a day, whatever the size: a list of one day is as long in the small database as in the large one.
const perDay = 20_000
const document = 'x'.repeat(700)

type Measure = {
  readonly name: string
  run(database: Database, size: number): Promise<unknown>
  readonly rows: number
  readonly together: number
}

export async function growth({ small, large, rounds, seconds }: GrowthOptions): Promise<void> {
  const folder = makeDataFolder()
  const claim = claimFolder(folder.path)
  const server = await startEmbedded({ dataDir: folder.path, say })
  const connection = { host: server.host, port: server.port, user: server.user, ssl: false }
  try {
    const databases = new Map<string, { readonly size: number; readonly database: Database }>()
    let template = 'template1'
    for (const [name, from, to] of [
      ['empty', 0, 0],
      ['small', 0, small],
      ['large', small, large],
    ] as const) {
      await inDatabase(connection, 'postgres', client => client.query(`create database ${name} template ${template}`))
      await fill({ ...connection, database: name }, from, to)
      template = name
      say(`${name}: ${to} payments`)
    }
    for (const [name, size] of [
      ['empty', 0],
      ['small', small],
      ['large', large],
    ] as const)
      databases.set(name, { size, database: connect({ ...connection, database: name }, systemClock, () => {}) })
    const found: Record<string, Record<string, number>[]> = {}
    // The first round only warms up: statements are prepared, and the pages that a checkpoint left are logged whole once.
    for (let round = 0; round <= rounds; round++) {
      for (const measure of measures) {
        const speeds: Record<string, number> = {}
        for (const [name, { database, size }] of databases) {
          if (size > 0 || measure === insert) speeds[name] = await speedOf(measure, database, size, seconds)
        }
        if (round > 0) found[measure.name] = [...(found[measure.name] ?? []), speeds]
      }
    }
    say(`\n${table(found)}`)
    for (const { database } of databases.values()) await database.close()
  } finally {
    await server.stop()
    claim.release()
    folder.remove()
  }
}

/** Goals 9 to 11. */
const limits = [
  { number: '9', name: 'insert', of: 'large', by: 'empty', goal: 0.8 },
  { number: '10', name: 'look-up by id', of: 'large', by: 'small', goal: 0.9 },
  { number: '10', name: 'look-up by merchantTransactionId', of: 'large', by: 'small', goal: 0.9 },
  { number: '10', name: 'look-up of a chain', of: 'large', by: 'small', goal: 0.9 },
  { number: '11', name: 'page of 100', of: 'large', by: 'small', goal: 0.75 },
]

function table(found: Record<string, Record<string, number>[]>): string {
  const middle = (name: string, size: string) => spread(found[name]!.map(speeds => speeds[size]))?.[1].toFixed(0) ?? ''
  return columns([
    ['#', 'rows or calls a second', 'empty', 'small', 'large', 'ratio', 'min', 'median', 'max', 'goal', 'met'],
    ...limits.map(({ number, name, of, by, goal }) => {
      const ratios = spread(found[name]!.map(speeds => speeds[of]! / speeds[by]!))!
      const speeds = ['empty', 'small', 'large'].map(size => middle(name, size))
      return [
        number,
        name,
        ...speeds,
        `${of} ÷ ${by}`,
        ...ratios.map(ratio => ratio.toFixed(2)),
        `≥ ${goal}`,
        ratios[1] >= goal ? 'yes' : 'no',
      ]
    }),
  ])
}

async function speedOf(measure: Measure, database: Database, size: number, seconds: number): Promise<number> {
  let calls = 0
  const began = performance.now()
  const end = began + seconds * 1000
  await Promise.all(
    Array.from({ length: measure.together }, async () => {
      for (; performance.now() < end; calls++) await measure.run(database, size)
    }),
  )
  return (calls * measure.rows * 1000) / (performance.now() - began)
}

const lanes = new WeakMap<Database, { payments: ReturnType<typeof paymentLane>; answers: ReturnType<typeof answerLane> }>()

/** Batches of 32 payments with their answers. */
const insert: Measure = {
  name: 'insert',
  rows: 32,
  together: 1,
  async run(database) {
    const { payments, answers } = lanes.get(database) ?? {
      payments: paymentLane(database.paymentLane, systemClock),
      answers: answerLane(database.answerLane, systemClock),
    }
    lanes.set(database, { payments, answers })
    const batch = Array.from({ length: 32 }, newPayment)
    const sealedCard = { sealed: Buffer.alloc(190, 7), eraseAfter: '2030-01-01' }
    await Promise.all(batch.map(payment => payments({ payment, sealedCard })))
    await Promise.all(
      batch.map(payment =>
        answers({
          payment,
          answer: {
            result: 'succeededInTestMode',
            approved: true,
            kept: {},
            body: document + document,
            answeredAt: payment.receivedAt,
          },
          transfers: [{ line: 1, debit: 'acquirer', credit: 'merchant', amount: 9200, state: 'posted' }],
          announced: true,
          recordedAt: payment.recordedAt,
        }),
      ),
    )
  },
}

const some = (size: number) => Math.floor(Math.random() * size)
const lookUp = (name: string, run: Measure['run']): Measure => ({ name, run, rows: 1, together: 8 })

const measures: readonly Measure[] = [
  insert,
  lookUp('look-up by id', ({ work }, size) => findPayment(work, merchantId, idOf(some(size)))),
  lookUp('look-up by merchantTransactionId', ({ work }, size) =>
    page(work, { merchantId, merchantTransactionId: `growth-${some(size)}` }, 1),
  ),
  lookUp('look-up of a chain', ({ work }, size) => findChain(work, merchantId, idOf(some(size)))),
  lookUp('page of 100', ({ work }, size) => {
    const from = begin + Math.floor(some(size) / perDay) * 86_400_000
    return page(work, { merchantId, channelId, from, to: from + 86_400_000 }, 100)
  }),
]

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

/** The id of a payment by its number: time-ordered like real ones. `fill` makes the same in SQL. */
const idOf = (number: number): string => `${(begin + number).toString(16).padStart(12, '0')}7${'0'.repeat(19)}`

async function fill(connection: pg.PoolConfig, from: number, to: number): Promise<void> {
  const pool = new pg.Pool({ ...connection, max: 1 })
  if (from === 0) await migrate(pool, new Date(begin).toISOString())
  const step = 100_000
  for (let at = from; at < to; at += step) {
    await pool.query(
      `with numbered as (
         select number, (lpad(to_hex($1::bigint + number), 12, '0') || '7' || repeat('0', 19))::uuid as id,
                to_timestamp($1::bigint / 1000) + number * interval '1 day' / ${perDay} as at
           from generate_series($2::bigint, $3::bigint - 1) as number),
       paid as (
         insert into payments (merchant_id, id, channel_id, payment_type, brand, amount, currency, mode, connector, merchant_transaction_id,
                               received_at, recorded_at, record)
         select $4::uuid, id, $5::uuid, 'DB', 'VISA', 9200, 'EUR', 'internal', 'simulator', 'growth-' || number, at, at,
                '{"ndc":"","fields":[["customer.givenName","' || $6::text || '"]]}'
           from numbered),
       answered as (
         insert into answers (merchant_id, payment_id, result, approved, reply, body, answered_at)
         select $4, id, 'succeededInTestMode', true, '{}', $6 || $6, at from numbered),
       booked as (
         insert into journal (merchant_id, payment_id, line, mode, currency, debit, credit, amount, state, booked_at)
         select $4, id, 1, 'internal', 'EUR', 'acquirer', 'merchant', 9200, 'posted', at from numbered)
       insert into events (merchant_id, payment_id, sequence, type, channel_id, root_id, occurred_at, recorded_at)
       select $4, id, 2, 'PAYMENT', $5, id, at, at from numbered`,
      [begin, at, Math.min(at + step, to), merchantId, channelId, document],
    )
  }
  await pool.query('vacuum analyze')
  await pool.query('checkpoint')
  await pool.end()
}

async function inDatabase(
  connection: pg.PoolConfig,
  database: string,
  work: (client: pg.Client) => Promise<unknown>,
): Promise<void> {
  const client = new pg.Client({ ...connection, database })
  await client.connect()
  await work(client)
  await client.end()
}

function say(text: string): void {
  process.stdout.write(`${text}\n`)
}

async function page(db: pg.Pool, search: Search, limit: number): Promise<unknown> {
  const found = await findPage(db, search, limit, 0)
  return findPayments(
    db,
    search.merchantId,
    found.map(({ id }) => id),
  )
}
