// True kills: the whole gateway as a process with its own database, shot with SIGKILL while payments are under way, started again on the same
// folder. The moment is one of what has happened, not of time: so many of them have reached the host, or so many were answered. Afterwards no payment may be pending, and the host's books must be what the gateway says.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { leaseSeconds } from '../../src/platform/due/store.ts'
import { sandbox, visa } from '../support/gateway.ts'
import { acquirersFile, testHost } from '../support/host.ts'
import { dice } from './random.ts'

const together = 20
/** What the dead process had taken is taken again when its lease has run out. */
const patienceMilliseconds = (leaseSeconds + 30) * 1000

const project = fileURLToPath(new URL('../..', import.meta.url))

/** Returns how many payments were under way or done when the process died, over all runs. */
export async function killRuns(runs: number, seed: number): Promise<{ payments: number; reversed: number }> {
  const luck = dice(seed)
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-kill-'))
  const host = await testHost({ delay: 60 })
  const file = acquirersFile({ north: [host.port] }, { answerWithinSeconds: 3, recoverAfterSeconds: 1 })
  let running: ChildProcess | undefined
  try {
    for (let run = 0; run < runs; run++) {
      const gateway = await start(folder, file.path)
      running = gateway.child
      const before = host.counters.received
      let answered = 0
      const payments = Array.from({ length: together }, (_, at) =>
        pay(gateway.baseUrl, at % 2 === 0 ? 'PA' : 'DB').then(
          () => answered++,
          () => undefined,
        ),
      )
      const moment = 1 + luck.whole(2 * together)
      await moments(() => host.counters.received - before >= Math.min(moment, together) && answered >= moment - together)
      gateway.child.kill('SIGKILL')
      await once(gateway.child, 'exit')
      await Promise.all(payments)
    }
    const gateway = await start(folder, file.path)
    running = gateway.child
    const records = await settled(gateway.baseUrl)
    const good = records.filter(({ result }) => result.code === '000.100.112')
    const sum = (type: string) => good.filter(({ paymentType }) => paymentType === type).length * 9200
    // Reversals go on after the payments are settled.
    for (const until = Date.now() + patienceMilliseconds; ; await new Promise(resolve => setTimeout(resolve, 100))) {
      const { held, cleared } = host.ledger.totals().get('978') ?? { held: 0n, cleared: 0n }
      const agrees = held === BigInt(sum('PA')) && cleared === BigInt(sum('DB'))
      if (!agrees && Date.now() < until) continue
      assert.deepEqual([held, cleared], [BigInt(sum('PA')), BigInt(sum('DB'))], `seed ${seed}: the host's books and ours`)
      break
    }
    return { payments: records.length, reversed: records.filter(({ result }) => result.code === '900.100.301').length }
  } finally {
    if (running?.exitCode === null && running.signalCode === null) {
      running.kill('SIGTERM')
      await once(running, 'exit')
    }
    await host.stop()
    file.remove()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Looks again and again, so closely that little more happens. */
async function moments(reached: () => boolean): Promise<void> {
  for (const until = Date.now() + 60_000; !reached(); await new Promise(resolve => setTimeout(resolve, 1)))
    if (Date.now() > until) throw new Error('the moment of the kill never came')
}

async function start(folder: string, acquirers: string): Promise<{ child: ChildProcess; baseUrl: string }> {
  const child = spawn(process.execPath, ['src/main.ts'], {
    cwd: project,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      ...process.env,
      PORT: '0',
      DATA_DIR: folder,
      ACQUIRERS_FILE: acquirers,
      LOG_LEVEL: 'silent',
      SEED_FILE: '',
      DATABASE_URL: '',
    },
  })
  let said = ''
  await new Promise<void>((resolve, reject) => {
    child.stdout!.on('data', text => {
      said += text
      if (said.includes('Ctrl-C stops it')) resolve()
    })
    child.once('exit', () => reject(new Error(`the gateway ended: ${said}`)))
  })
  return { child, baseUrl: JSON.parse(readFileSync(join(folder, 'sandbox.json'), 'utf8')).baseUrl }
}

const headers = { Authorization: `Bearer ${sandbox.accessToken}` }

async function pay(baseUrl: string, paymentType: string): Promise<void> {
  const body = new URLSearchParams({
    entityId: sandbox.entityId,
    paymentType,
    amount: '92.00',
    currency: 'EUR',
    testMode: 'EXTERNAL',
    ...visa,
  })
  await (await fetch(`${baseUrl}/v1/payments`, { method: 'POST', headers, body })).text()
}

type Found = { paymentType: string; result: { code: string } }

/** All payments, once none is pending any more. */
async function settled(baseUrl: string): Promise<Found[]> {
  const today = new Date()
  const query = new URLSearchParams({
    entityId: sandbox.entityId,
    limit: '500',
    'date.from': new Date(today.getTime() - 86_400_000).toISOString().slice(0, 10),
    'date.to': today.toISOString().slice(0, 10),
  })
  for (const until = Date.now() + patienceMilliseconds; Date.now() < until; ) {
    const { records } = (await (await fetch(`${baseUrl}/v3/query?${query}`, { headers })).json()) as { records: Found[] }
    if (records.every(({ result }) => result.code !== '000.200.000')) return records
    await new Promise(resolve => setTimeout(resolve, 200))
  }
  throw new Error('payments stay pending')
}
