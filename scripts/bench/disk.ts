// What a payment asks of the disk: `npm run bench:disk` lets a gateway take payments at several speeds and asks its database what was written: bytes of WAL, flushes and
// writes of it, pages of tables and indexes, and how much larger the database is. Whoever plans a machine multiplies.
//   --seconds N (of each load)   --write   writes the table into docs/performance.md

import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { makeDataFolder, startGatewayProcess } from './gateway.ts'
import type { LoadJob, LoadResult } from './load.ts'
import { startPart } from './parts.ts'
import { columns, writeTables } from './report.ts'
import { firstPayment, mixedRequests } from './request.ts'

const { values: options } = parseArgs({
  options: { seconds: { type: 'string', default: '20' }, write: { type: 'boolean', default: false } },
})
const seconds = Number(options.seconds)
const crowd = 128

/** Sums since the server began. */
type Written = Readonly<Record<'walBytes' | 'walWrites' | 'walFlushes' | 'pageWrites' | 'pageBytes' | 'size', number>>

const readWritten = `
  select (select wal_bytes from pg_stat_wal)::bigint as "walBytes",
         (select sum(writes) from pg_stat_io where object = 'wal')::bigint as "walWrites",
         (select sum(fsyncs) from pg_stat_io where object = 'wal')::bigint as "walFlushes",
         (select sum(writes + coalesce(extends, 0)) from pg_stat_io where object = 'relation')::bigint as "pageWrites",
         (select sum(write_bytes + coalesce(extend_bytes, 0)) from pg_stat_io where object = 'relation')::bigint as "pageBytes",
         pg_database_size(current_database()) as size`

const folder = makeDataFolder()
const gateway = await startGatewayProcess(folder.path, [], { REQUEST_RECORDS: 'failed' })
const load = await startPart<object, LoadJob, LoadResult>('load.ts')
const client = new pg.Client(gateway.connection)
const lines: string[][] = []
try {
  await client.connect()
  const payments = [firstPayment(gateway, 'DB')]
  await run('warm-up-load', { requests: payments, seconds: 3 })
  lines.push(await line('payments, 128 connections', { requests: payments }))
  const fastest = Number(lines[0]![1])
  for (const rate of [Math.round(fastest / 4), 50])
    lines.push(await line(`payments, ${rate} a second`, { requests: payments, rate }))
  await run('warm-mixed', { requests: payments.concat(firstPayment(gateway, 'PA')), seconds: seconds / 4, keeps: true })
  lines.push(await line('70 % DB, 10 % PA, 10 % CP, 5 % RF, 5 % reads', { requests: mixedRequests(gateway), keeps: true }))
  const text = `${seconds} seconds each, behind a checkpoint and with one after it; what is written behind the payments (search, events) is in it.

${columns([
  [
    '',
    'per second',
    'WAL bytes each',
    'WAL writes each',
    'flushes each',
    'flushes a second',
    'page writes each',
    'page bytes each',
    'stored bytes each',
    'GB stored a million',
  ],
  ...lines,
])}
`
  process.stdout.write(`\n${text}`)
  if (options.write) writeTables('disk', text)
} finally {
  await client.end()
  await load.stop()
  await gateway.stop()
  folder.remove()
}
process.exit()

type How = Partial<LoadJob> & Pick<LoadJob, 'requests'>

async function run(prefix: string, how: How): Promise<LoadResult> {
  const result = await load.ask({ connections: crowd, seconds, port: gateway.port, prefix: `${prefix}-`, ...how })
  if (result.failed.length > 0) throw new Error(`${result.failed.length} requests were not answered as they should be.`)
  const waits = 'select from events where notified is null or searched is null limit 1'
  while ((await client.query(waits)).rows.length > 0) await pause(100)
  return result
}

async function line(name: string, how: How): Promise<string[]> {
  const before = await writtenNow()
  const { answered, perSecond } = await run(`disk-load-${lines.length}`, how)
  const { walBytes, walWrites, walFlushes } = await statistics()
  const after = await writtenNow()
  const each = (value: number, from: number) => (value - from) / answered
  const flushes = each(walFlushes, before.walFlushes)
  const stored = each(after.size, before.size)
  return [
    name,
    perSecond.toFixed(0),
    each(walBytes, before.walBytes).toFixed(0),
    each(walWrites, before.walWrites).toFixed(2),
    flushes.toFixed(2),
    (flushes * perSecond).toFixed(0),
    each(after.pageWrites, before.pageWrites).toFixed(2),
    each(after.pageBytes, before.pageBytes).toFixed(0),
    stored.toFixed(0),
    (stored / 1000).toFixed(2),
  ]
}

/** After a checkpoint, which the role may ask for as the begin of a backup: all pages are written. */
async function writtenNow(): Promise<Written> {
  await client.query(`select pg_backup_start('bench', true)`)
  await client.query('select pg_backup_stop(false)')
  return statistics()
}

/** Processes of the server tell what they did when they rest, after a second or more. */
async function statistics(): Promise<Written> {
  await pause(2500)
  return (await client.query<Written>(readWritten)).rows[0]!
}
