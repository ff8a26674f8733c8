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

export type KillReport = { payments: number; reversed: number; approvals: number; types: Record<string, number> }

/** Every operation that moves money, as merchants chain them. */
const stories: readonly (readonly [type: string, ...followers: Readonly<Record<string, string>>[]])[] = [
  ['PA', { paymentType: 'CP', amount: '92.00' }, { paymentType: 'RF', amount: '12.00' }],
  ['DB', { paymentType: 'RF', amount: '40.00' }, { paymentType: 'RF', amount: '50.00' }],
  ['PA', { paymentType: 'CP', amount: '30.00' }, { paymentType: 'RF', amount: '30.00' }],
  ['CD'],
  ['PA', { paymentType: 'RV', amount: '20.00' }, { paymentType: 'RV' }],
  ['DB', { paymentType: 'RV' }],
]

/** Kills so many times. A run in which hardly anything reached the host proves nothing, and fails. */
export async function killRuns(runs: number, seed: number): Promise<KillReport> {
  const luck = dice(seed)
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-kill-'))
  const host = await testHost({ delay: 60 })
  const file = acquirersFile({ north: [host.port] }, { answerWithinSeconds: 3, recoverAfterSeconds: 1 })
  let running: ChildProcess | undefined
  const approved = () =>
    [...host.ledger.entries()].filter(({ line }) => line.kind !== 'declined' && line.kind !== 'tombstone').length
  try {
    for (let run = 0; run < runs; run++) {
      const gateway = await start(folder, file.path)
      running = gateway.child
      const [received, approvals] = [host.counters.received, approved()]
      const tales = Array.from({ length: together }, (_, at) => stories[at % stories.length]!)
      const told = tales.map(story => tell(gateway.baseUrl, story).catch(() => {}))
      // Not later than all of them have reached the host.
      const moment = together + luck.whole(tales.flat().length - together)
      await moments(() => host.counters.received - received >= moment && approved() - approvals >= together / 2)
      gateway.child.kill('SIGKILL')
      await once(gateway.child, 'exit')
      await Promise.all(told)
    }
    const gateway = await start(folder, file.path)
    running = gateway.child
    const records = await settled(gateway.baseUrl)
    const expected = expectedOf(records)
    // Reversals go on after the payments are settled.
    for (const until = Date.now() + patienceMilliseconds; ; await new Promise(resolve => setTimeout(resolve, 100))) {
      const { held, cleared } = host.ledger.totals().get('978') ?? { held: 0n, cleared: 0n }
      if ((held !== expected.held || cleared !== expected.cleared) && Date.now() < until) continue
      assert.deepEqual({ held, cleared }, expected, `seed ${seed}: the host's books and ours`)
      break
    }
    const types: Record<string, number> = {}
    for (const { paymentType } of good(records)) types[paymentType] = (types[paymentType] ?? 0) + 1
    const reversed = records.filter(({ result }) => result.code === '900.100.301').length
    return { payments: records.length, reversed, approvals: approved(), types }
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

const good = (records: readonly Found[]) => records.filter(({ result }) => result.code === '000.100.112')

/** What the host must hold and have cleared, if all that merchants read is true. */
function expectedOf(records: readonly Found[]): { held: bigint; cleared: bigint } {
  const roots = new Map(records.map(record => [record.id, record]))
  let [held, cleared] = [0n, 0n]
  for (const { paymentType, amount, referencedId } of good(records)) {
    const money = BigInt(amount.replace('.', ''))
    const isHold = roots.get(referencedId ?? '')?.paymentType === 'PA'
    if (paymentType === 'PA') held += money
    if (paymentType === 'DB') cleared += money
    if (paymentType === 'RF' || paymentType === 'CD') cleared -= money
    if (paymentType === 'CP') {
      cleared += money
      // A capture ends the hold, whatever it takes of it.
      held -= BigInt(roots.get(referencedId!)!.amount.replace('.', ''))
    }
    if (paymentType === 'RV' && isHold) held -= money
    if (paymentType === 'RV' && !isHold) cleared -= money
  }
  return { held, cleared }
}

/** Looks again and again, so closely that little more happens. */
async function moments(reached: () => boolean): Promise<void> {
  for (const until = Date.now() + 60_000; !reached(); await new Promise(resolve => setTimeout(resolve, 1)))
    if (Date.now() > until) throw new Error('the moment of the kill never came')
}

async function start(folder: string, acquirers: string): Promise<{ child: ChildProcess; baseUrl: string }> {
  const child = spawn(process.execPath, ['--min-semi-space-size=16', 'src/main.ts'], {
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

async function tell(baseUrl: string, [paymentType, ...followers]: (typeof stories)[number]): Promise<void> {
  const common = { entityId: sandbox.entityId, currency: 'EUR' }
  const first = await send(`${baseUrl}/v1/payments`, { ...common, paymentType, amount: '92.00', testMode: 'EXTERNAL', ...visa })
  for (const { amount, ...rest } of followers)
    await send(`${baseUrl}/v1/payments/${first.id}`, {
      entityId: sandbox.entityId,
      ...rest,
      ...(amount !== undefined && { amount, currency: 'EUR' }),
    })
}

async function send(url: string, fields: Record<string, string>): Promise<Found> {
  return (await (await fetch(url, { method: 'POST', headers, body: new URLSearchParams(fields) })).json()) as Found
}

type Found = {
  readonly id: string
  readonly paymentType: string
  readonly amount: string
  readonly referencedId?: string
  readonly result: { readonly code: string }
}

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
    const records: Found[] = []
    for (let page = 1, full = true; full; page++) {
      query.set('pageNo', String(page))
      const found = (await (await fetch(`${baseUrl}/v3/query?${query}`, { headers })).json()) as { records: Found[] }
      records.push(...found.records)
      full = found.records.length === 500
    }
    if (records.every(({ result }) => result.code !== '000.200.000')) return records
    await new Promise(resolve => setTimeout(resolve, 200))
  }
  throw new Error('payments stay pending')
}
