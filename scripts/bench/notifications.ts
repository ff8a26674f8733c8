// How fast notifications reach receivers of which some fail and one hangs, and whether everything that was sent is what was received.
// `npm run bench:notifications -- 2000` for 2000 payments (20,000 notifications). The database is durable and new, the receivers are a process of their own.

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { applySeed, readSeed, sandboxSeed } from '../../src/merchants/seed.ts'
import { checkNotifications } from '../../src/notifications/deliveries/check.ts'
import { moveDeliveries } from '../../src/notifications/deliveries/store.ts'
import { systemClock, systemRandom } from '../../src/platform/clock.ts'
import { startEmbedded } from '../../src/platform/database/embedded.ts'
import { claimFolder } from '../../src/platform/database/folder.ts'
import { migrate } from '../../src/platform/database/migrate.ts'
import { readConfig } from '../../src/start/config.ts'
import { startGateway } from '../../src/start/serve.ts'
import { addEndpoint } from '../../test/support/endpoints.ts'
import { sandbox, testKeys, visa } from '../../test/support/gateway.ts'

const payments = Number(process.argv[2] ?? 2000)
const behaviours = ['0.01', '0.01', '0.01', '0.01', '0.2', '0.2', '0.2', '0.2', '0.2', 'hang']
const say = (text: string) => process.stdout.write(`${text}\n`)
const seconds = (since: number) => (performance.now() - since) / 1000

const folder = mkdtempSync(join(tmpdir(), 'tollgate-bench-'))
const claim = claimFolder(folder)
const server = await startEmbedded({ dataDir: folder, say: () => {} })
const { host, port, user, database } = server
const connection: pg.PoolConfig = { host, port, user, database, ssl: false, password: '' }
const pool = new pg.Pool({ ...connection, max: 4 })
pool.on('error', () => {})
await migrate(pool, new Date().toISOString())
await applySeed(pool, testKeys, systemClock, systemRandom, readSeed(sandboxSeed))
const receivers = fork(new URL('notificationReceiver.ts', import.meta.url))
const [{ port: receiverPort }] = (await once(receivers, 'message')) as [{ port: number }]
const gateway = await startGateway({
  config: readConfig({ PORT: '0', HOST: '127.0.0.1' }, '/nonexistent'),
  keys: testKeys,
  connection,
  clock: systemClock,
  random: systemRandom,
  log: { debug() {}, info() {}, warn() {}, error: (fields, message) => say(`${message} ${JSON.stringify(fields)}`) },
  alone: true,
})
try {
  const endpoints: string[] = []
  for (const [at, how] of behaviours.entries())
    endpoints.push((await addEndpoint(pool, { url: `http://127.0.0.1:${receiverPort}/${at}/${how}` })).id)
  await payOnce()
  await until(async () => (await numbers(endpoints)).acknowledged === endpoints.length, 'the first payment is told')
  receivers.send('arm')

  // The events of many payments at once: a backlog as after an outage. Their rows are copies of one that the gateway made.
  const started = performance.now()
  await backlog(payments - 1)
  await fannedOut()
  say(`fan-out       ${payments * 10} deliveries made of ${payments} events in ${seconds(started).toFixed(1)} s`)
  const healthy = endpoints.slice(0, 9)
  const tried = await until(async () => (await numbers(healthy)).untried === 0, 'the first attempts')
  const { acknowledged, scheduled } = await numbers(healthy)
  const firstPass = (tried - started) / 1000
  say(
    `first attempt ${payments * 9} deliveries to 9 endpoints in ${firstPass.toFixed(1)} s: ${Math.round((payments * 9) / firstPass)} notifications/s`,
  )
  say(`              ${acknowledged} acknowledged, ${scheduled} refused and scheduled again`)
  const drainStarted = performance.now()
  let skips = 0
  while ((await numbers(healthy)).scheduled > 0) {
    // Time is moved on to the next retries, so that they need not be waited for.
    await moveDeliveries(pool, sandbox.merchantId, 60_000)
    skips += 1
    await pause(250)
  }
  say(`drained       ${seconds(drainStarted).toFixed(1)} s for the refused ones, with ${skips} minutes skipped`)
  const left = await numbers(endpoints.slice(9))
  say(`hanging       ${left.scheduled} of its ${payments} deliveries wait`)
  await verify(endpoints)
} finally {
  receivers.disconnect()
  await gateway.stop()
  await pool.end()
  await server.stop()
  claim.release()
  rmSync(folder, { recursive: true, force: true })
}

async function payOnce(): Promise<void> {
  const fields = { entityId: sandbox.entityId, paymentType: 'DB', amount: '92.00', currency: 'EUR', ...visa }
  const response = await fetch(`http://127.0.0.1:${gateway.port}/v1/payments`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${sandbox.accessToken}`, 'Content-Type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams(fields).toString(),
  })
  if (response.status !== 200) throw new Error(await response.text())
}

async function backlog(count: number): Promise<void> {
  await pool.query(
    `with copies as (select gen_random_uuid() as copy, p.* from payments p, generate_series(1, $1)),
     paid as (
       insert into payments (merchant_id, id, channel_id, payment_type, brand, amount, currency, mode, connector, received_at, recorded_at, record)
       select merchant_id, copy, channel_id, payment_type, brand, amount, currency, mode, connector, received_at, recorded_at, record from copies),
     answered as (
       insert into answers (merchant_id, payment_id, result, approved, reply, body, answered_at)
       select c.merchant_id, copy, a.result, a.approved, a.reply, replace(a.body, replace(c.id::text, '-', ''), replace(copy::text, '-', '')), a.answered_at
         from copies c join answers a on a.merchant_id = c.merchant_id and a.payment_id = c.id)
     insert into events (merchant_id, payment_id, sequence, type, channel_id, root_id, occurred_at, recorded_at)
     select merchant_id, copy, 2, 'PAYMENT', channel_id, copy, received_at, recorded_at from copies`,
    [count],
  )
}

async function numbers(ids: readonly string[]): Promise<{ acknowledged: number; scheduled: number; untried: number }> {
  const { rows } = await pool.query(
    `select count(*) filter (where state = 'acknowledged') as acknowledged, count(*) filter (where state = 'scheduled') as scheduled,
            count(*) filter (where attempts = 0 or (attempts = 1 and leased_until is not null)) as untried
       from deliveries where endpoint_id = any ($1)`,
    [ids],
  )
  return rows[0]
}

async function fannedOut(): Promise<void> {
  await until(
    async () => (await pool.query('select 1 from events where notified is null limit 1')).rowCount === 0,
    'every event is fanned out',
  )
}

async function until(holds: () => Promise<boolean>, what: string): Promise<number> {
  for (const end = performance.now() + 300_000; performance.now() < end; await pause(50))
    if (await holds()) return performance.now()
  throw new Error(`never: ${what}`)
}

/** Every notification that the database calls acknowledged was acknowledged by its receiver, and the other way round. */
async function verify(endpoints: readonly string[]): Promise<void> {
  receivers.send('tell')
  type Told = { seen: [string, string[]][]; acknowledged: [string, string[]][] }
  const [told] = (await once(receivers, 'message')) as [Told]
  const of = (list: Told['seen'], at: number) => new Set(list.find(([which]) => which === String(at))?.[1] ?? [])
  let wrong = 0
  for (const [at, id] of endpoints.entries()) {
    const { rows } = await pool.query<{ id: string; state: string; attempts: number }>(
      'select notification_id as id, state, attempts from deliveries where endpoint_id = $1 and position > 1',
      [id],
    )
    const [seen, acknowledged] = [of(told.seen, at), of(told.acknowledged, at)]
    for (const one of rows) {
      if ((one.state === 'acknowledged') !== acknowledged.has(one.id)) wrong += 1
      if (one.attempts > 0 && !seen.has(one.id)) wrong += 1
    }
    const sent = new Set(rows.map(row => row.id))
    for (const one of seen) if (!sent.has(one)) wrong += 1
  }
  const { balanced } = await checkNotifications(pool)
  say(
    `verified      ${wrong === 0 ? 'every id that was sent is one that was received' : `${wrong} ids DIFFER`}; the books are ${balanced ? 'balanced' : 'NOT balanced'}`,
  )
  if (wrong > 0 || !balanced) process.exitCode = 1
}
