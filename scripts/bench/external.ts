// What the way to an acquirer costs: `npm run bench:external -- 3` for three rounds. Payments of testMode=INTERNAL and EXTERNAL take turns,
// against a host that answers at once and one that answers after 300 ms. Two gateways, each with its own database and host, because a gateway has one.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { examine } from '../../src/payments/ledger/doctor.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { connect } from '../../src/platform/database/connect.ts'
import { makeDataFolder, type RunningGateway, startGatewayProcess } from './gateway.ts'
import type { LoadJob, LoadResult } from './load.ts'
import { spread } from './measures.ts'
import { ended, startPart } from './parts.ts'
import { columns } from './report.ts'
import { firstPayment } from './request.ts'

const rounds = Number(process.argv[2] ?? 3)
const seconds = 2
const slowMilliseconds = 300
const rate = 150

type Load = { readonly name: string; readonly host: 'fast' | 'slow'; readonly mode: 'INTERNAL' | 'EXTERNAL' } & Pick<
  LoadJob,
  'connections' | 'rate'
>
const loads: readonly Load[] = [
  { name: 'INTERNAL, 32 connections', host: 'fast', mode: 'INTERNAL', connections: 32 },
  { name: 'EXTERNAL at once, 32 connections', host: 'fast', mode: 'EXTERNAL', connections: 32 },
  { name: `INTERNAL, ${rate}/s`, host: 'fast', mode: 'INTERNAL', connections: 64, rate },
  { name: `EXTERNAL at once, ${rate}/s`, host: 'fast', mode: 'EXTERNAL', connections: 64, rate },
  { name: `EXTERNAL after ${slowMilliseconds} ms, ${rate}/s`, host: 'slow', mode: 'EXTERNAL', connections: 128, rate },
  { name: `EXTERNAL after ${slowMilliseconds} ms, 1000 in flight`, host: 'slow', mode: 'EXTERNAL', connections: 1000 },
]
const approved = { INTERNAL: '000.100.110', EXTERNAL: '000.100.112' } as const

const say = (text: string) => process.stdout.write(`${text}\n`)
const cleanUps: (() => unknown)[] = []
try {
  const sides = { fast: await startSide(0), slow: await startSide(slowMilliseconds) }
  const load = await startPart<object, LoadJob, LoadResult>('load.ts')
  cleanUps.push(() => load.stop())
  const measured = loads.map((): LoadResult[] => [])
  // The first round warms up and is not counted.
  for (let round = 0; round <= rounds; round++) {
    for (const [at, { host, mode, connections, rate }] of loads.entries()) {
      const gateway = sides[host]
      const result = await load.ask({
        requests: [firstPayment(gateway, 'DB', mode)],
        approved: approved[mode],
        port: gateway.port,
        connections,
        seconds: round === 0 ? 1 : seconds,
        ...(rate !== undefined && { rate }),
        prefix: `x${round}a${at}n`,
      })
      if (result.failed.length > 0) say(`${loads[at]!.name}: ${result.failed.length} were not approved`)
      if (round > 0) measured[at]!.push(result)
    }
  }
  const middle = (results: readonly LoadResult[], of: (one: LoadResult) => number) => spread(results.map(of))![1]
  const failed = measured.flat().reduce((sum, one) => sum + one.failed.length, 0)
  say(
    columns([
      ['', 'per second', 'p50 ms', 'p99 ms'],
      ...loads.map(({ name }, at) => [
        name,
        middle(measured[at]!, one => one.perSecond).toFixed(0),
        middle(measured[at]!, one => one.p50).toFixed(1),
        middle(measured[at]!, one => one.p99).toFixed(1),
      ]),
    ]),
  )
  const [internal, external, late] = [2, 3, 4].map(at => middle(measured[at]!, one => one.p50)) as [number, number, number]
  say(`\nThe way to the host adds ${(external - internal).toFixed(1)} ms at ${rate}/s (medians);`)
  say(`beyond its own ${slowMilliseconds} ms the slow host adds ${(late - internal - slowMilliseconds).toFixed(1)} ms.`)
  for (const [name, { connection }] of Object.entries(sides)) {
    const database = connect(connection, systemClock, () => {})
    const { findings, payments } = await examine(database.work)
    await database.close()
    say(`${name}: ${payments} payments, ${findings.length} findings of the doctor.`)
    if (findings.length > 0) process.exitCode = 1
  }
  if (failed > 0) process.exitCode = 1
} finally {
  for (const cleanUp of cleanUps.reverse()) await cleanUp()
}

/** A gateway, and the host that its acquirer is. */
async function startSide(delay: number): Promise<RunningGateway> {
  const folder = makeDataFolder()
  cleanUps.push(() => folder.remove())
  const program = fileURLToPath(new URL('../../src/sandbox/acquirerHost/main.ts', import.meta.url))
  const host = spawn(process.execPath, ['--disable-sigusr1', program, 'child', `delay=${delay}`], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  cleanUps.push(() => ended(host, () => host.stdin.end()))
  const file = join(folder.path, 'acquirers.json')
  writeFileSync(file, acquirers(await portOf(host)))
  const gateway = await startGatewayProcess(join(folder.path, 'gateway'), [], { ACQUIRERS_FILE: file })
  cleanUps.push(() => gateway.stop())
  return gateway
}

async function portOf(host: ChildProcess): Promise<number> {
  const [line] = await once(createInterface({ input: host.stdout! }), 'line')
  return JSON.parse(String(line)).port
}

function acquirers(port: number): string {
  return JSON.stringify({
    acquirers: [
      {
        name: 'bench',
        modes: ['external'],
        lines: [{ host: '127.0.0.1', port }],
        acquirerId: '423935',
        merchantId: 'BENCH',
        terminals: ['TERM0001'],
      },
    ],
  })
}
