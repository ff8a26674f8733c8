// A limit: payments written straight into the same PostgreSQL, one a commit. One prepared statement inserts one row like those of
// payments, as long as a payment and its answer, and one like those of events.

import pg from 'pg'
import { systemRandom } from '../../src/platform/clock.ts'
import { valuesList } from '../../src/platform/database/groupCommit.ts'
import { orderOf, takeJobs } from './parts.ts'
import { makeTables, rowColumns, rowOf, rowTypes } from './rows.ts'

export type CommitOrder = { readonly connection: pg.PoolConfig; readonly document: string }
export type CommitJob = { readonly connections: number; readonly seconds: number }
export type CommitResult = { readonly perSecond: number; readonly p50: number; readonly p99: number; readonly p999: number }

const { connection, document } = orderOf<CommitOrder>()

const insert = `
  with stored as (
    insert into bench.payments (${rowColumns}) values ${valuesList(rowTypes, 1)} returning merchant_id, id, channel_id, received_at, recorded_at)
  insert into bench.events (merchant_id, payment_id, sequence, type, channel_id, root_id, occurred_at, recorded_at)
  select merchant_id, id, 2, 'PAYMENT', channel_id, id, received_at, recorded_at from stored`

const prepared = new pg.Client(connection)
await prepared.connect()
await makeTables(prepared, { payments: 'payments', events: 'events' })
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
        const values = rowOf(`commit-${systemRandom.uuid().slice(0, 17)}`, document)
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
