// A limit: payments written straight into the same PostgreSQL, one a commit. One prepared statement inserts one row like those of
// payments, as long as a payment and its answer, and one like those of events.

import pg from 'pg'
import { systemRandom, timeOrderedId } from '../../src/platform/clock.ts'
import { orderOf, takeJobs } from './parts.ts'

export type CommitOrder = { readonly connection: pg.PoolConfig; readonly document: string }
export type CommitJob = { readonly connections: number; readonly seconds: number }
export type CommitResult = { readonly perSecond: number; readonly p50: number; readonly p99: number; readonly p999: number }

const { connection, document } = orderOf<CommitOrder>()
const merchantId = '0'.repeat(32)

const insert = `
  with stored as (
    insert into bench.payments (merchant_id, id, channel_id, payment_type, brand, amount, currency, mode, connector,
                                merchant_transaction_id, received_at, recorded_at, record)
    values ($1, $2, $1, 'DB', 'VISA', 9200, 'EUR', 'internal', 'simulator', $3, $4, $4, $5) returning merchant_id, id)
  insert into bench.events (merchant_id, payment_id, sequence, type, channel_id, root_id, occurred_at, recorded_at)
  select merchant_id, id, 2, 'PAYMENT', $1, id, $4, $4 from stored`

const prepared = new pg.Client(connection)
await prepared.connect()
await prepared.query(`
  create schema if not exists bench;
  create table if not exists bench.payments (like payments including all);
  create table if not exists bench.events (like events including all)`)
await prepared.end()
takeJobs({}, runCommits)

async function runCommits({ connections, seconds }: CommitJob): Promise<CommitResult> {
  const clients = await Promise.all(
    Array.from({ length: connections }, async () => {
      const client = new pg.Client(connection)
      await client.connect()
      return client
    }),
  )
  const latencies: number[] = []
  const end = performance.now() + seconds * 1000
  await Promise.all(
    clients.map(async client => {
      for (let from = performance.now(); from < end; ) {
        const id = timeOrderedId(Date.now(), systemRandom)
        const values = [merchantId, id, `commit-${id.slice(0, 17)}`, new Date().toISOString(), document]
        await client.query({ name: 'insert', text: insert, values })
        const now = performance.now()
        latencies.push(now - from)
        from = now
      }
      await client.end()
    }),
  )
  const sorted = Float64Array.from(latencies).sort()
  const share = (part: number) => sorted[Math.floor(sorted.length * part)] ?? Number.NaN
  return { perSecond: sorted.length / seconds, p50: share(0.5), p99: share(0.99), p999: share(0.999) }
}
