// How fast is it, against what this machine allows? `npm run bench` runs the gateway and its limits in turns and prints their ratios.
//   --quick     two short rounds          --rounds N, --seconds N
//   --write     writes the tables into docs/performance.md
//   --profile DIRECTORY   lets Node write a processor profile of the gateway
//   growth      the same statements on an empty, a small and a large database; --small N, --large N

import { spawnSync } from 'node:child_process'
import { parseArgs } from 'node:util'
import type { CommitJob, CommitOrder, CommitResult } from './commits.ts'
import type { EchoOrder } from './echo.ts'
import { makeDataFolder, type RunningGateway, startGatewayProcess } from './gateway.ts'
import type { LoadJob, LoadResult } from './load.ts'
import type { Figures, Round } from './measures.ts'
import { type Part, processorTime, residentMegabytes, serverTime, startPart } from './parts.ts'
import { report, writeBetweenMarks } from './report.ts'
import { paymentRequest, type RequestPieces } from './request.ts'
import type { StubOrder } from './stubbed.ts'
import { type Sent, verify } from './verify.ts'

const { values: options, positionals } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
    rounds: { type: 'string' },
    seconds: { type: 'string' },
    profile: { type: 'string' },
    small: { type: 'string', default: '1000000' },
    large: { type: 'string', default: '5000000' },
  },
  allowPositionals: true,
})
if (positionals[0] === 'growth') {
  const { growth } = await import('./growth.ts')
  const { small, large, rounds = 5, seconds = 2 } = options
  await growth({ small: Number(small), large: Number(large), rounds: Number(rounds), seconds: Number(seconds) })
} else process.exitCode = await bench()

type Listening = { readonly port: number }
type Target = { readonly port: number; readonly pid: number; readonly postmaster?: number }
type Bench = {
  readonly load: Part<object, LoadJob, LoadResult>
  readonly commits: Part<object, CommitJob, CommitResult>
  readonly gateway: Target
  readonly stubbed: Target
  readonly echo: Target
  readonly request: RequestPieces
  readonly sent: Sent[]
}

async function bench(): Promise<number> {
  const rounds = Number(options.rounds ?? (options.quick ? 2 : 5))
  const seconds = Number(options.seconds ?? (options.quick ? 1.5 : 4))
  const folder = makeDataFolder()
  const profile = options.profile ? ['--cpu-prof', `--cpu-prof-dir=${options.profile}`] : []
  let gateway: RunningGateway | undefined
  const parts: { stop(): Promise<void> }[] = []
  try {
    gateway = await startGatewayProcess(folder.path, profile)
    say(`first start, with the making of the database: ${(gateway.startMilliseconds / 1000).toFixed(1)} s`)
    const request = paymentRequest(gateway.entityId, gateway.accessToken)
    const { answer, headers } = await sampleAnswer(gateway.port, request)
    const load = await startPart<object, LoadJob, LoadResult>('load.ts')
    const commits = await startPart<object, CommitJob, CommitResult>('commits.ts', {
      connection: gateway.connection,
      document: answer,
    } satisfies CommitOrder)
    const stubbed = await startPart<Listening>('stubbed.ts', {
      dataDir: folder.path,
      connection: gateway.connection,
    } satisfies StubOrder)
    const echo = await startPart<Listening>('echo.ts', { answer, headers } satisfies EchoOrder)
    parts.push(load, commits, stubbed, echo)
    const running: Bench = {
      load,
      commits,
      gateway,
      stubbed: { port: stubbed.ready.port, pid: stubbed.pid },
      echo: { port: echo.ready.port, pid: echo.pid },
      request,
      sent: [],
    }
    await warmUp(running, seconds)
    const measured: Omit<Round, 'start' | 'emptyStart'>[] = []
    for (let number = 1; number <= rounds; number++) {
      measured.push(await round(running, seconds, `r${number}`))
      const { gateway: ours, stubbed: without, echo: http, commits: single } = measured.at(-1)!
      say(
        `round ${number}: gateway ${Math.round(ours.perSecond)}/s, without storage ${Math.round(without.perSecond)}/s, ` +
          `only HTTP ${Math.round(http.perSecond)}/s, single commits ${Math.round(single.perSecond)}/s`,
      )
    }
    const { answered, wrong } = await verify(gateway.connection, running.sent)
    for (const part of parts.splice(0)) await part.stop()
    await gateway.stop()
    gateway = undefined
    const starts = await measureStarts(folder.path, rounds)
    const text = report(measured.map((round, at) => ({ ...round, ...starts[at]! })))
    say(`\n${text}`)
    if (options.write) writeBetweenMarks(new URL('../../docs/performance.md', import.meta.url), text)
    const failed = running.sent.reduce((sum, load) => sum + load.failed.length, 0)
    if (failed > 0) say(`${failed} requests were not answered as they should be.`)
    for (const sentence of wrong) say(`WRONG: ${sentence}`)
    if (wrong.length === 0)
      say(`All ${answered} answered payments are in the database, each with its answer, journal line and event.`)
    return wrong.length === 0 ? 0 : 1
  } finally {
    for (const part of parts) await part.stop()
    await gateway?.stop()
    folder.remove()
  }
}

/** The loads of a round stand close together, so that whatever else the machine does falls on all of them. */
async function round(bench: Bench, seconds: number, name: string): Promise<Omit<Round, 'start' | 'emptyStart'>> {
  const { gateway, stubbed, echo } = bench
  const crowd = { connections: 128, seconds }
  const alone = { connections: 1, seconds: seconds / 2 }
  const closed = await drive(bench, gateway, `${name}-closed-`, crowd)
  const rate = { ...crowd, rate: Math.round(closed.perSecond / 2) }
  return {
    gateway: closed,
    stubbed: await drive(bench, stubbed, `${name}-stub-`, crowd),
    echo: await drive(bench, echo, `${name}-echo-`, crowd),
    commits: await commit(bench, { connections: 8, seconds }),
    gatewayAlone: await drive(bench, gateway, `${name}-one-`, alone),
    commitsAlone: await commit(bench, alone),
    gatewayOpen: await drive(bench, gateway, `${name}-open-`, rate),
    stubbedOpen: await drive(bench, stubbed, `${name}-stubopen-`, rate),
    gatewayWide: await drive(bench, gateway, `${name}-wide-`, { ...crowd, connections: 512, seconds: seconds / 2 }),
  }
}

async function drive(
  { load, request, sent, gateway }: Bench,
  target: Target,
  prefix: string,
  how: Pick<LoadJob, 'connections' | 'seconds' | 'rate'>,
): Promise<Figures> {
  const { port, pid, postmaster } = target
  const before = [processorTime(pid), postmaster && serverTime(postmaster)]
  const result = await load.ask({ ...request, ...how, port, prefix })
  const after = [processorTime(pid), postmaster && serverTime(postmaster)]
  if (target === gateway) sent.push({ prefix, sent: result.sent, failed: result.failed })
  else if (result.failed.length > 0) throw new Error(`${prefix}: ${result.failed.length} requests failed`)
  const [node, server] = after.map((time, at) => time && (time - before[at]!) / result.answered)
  const { perSecond, p50, p99, p999 } = result
  return { perSecond, p50, p99, p999, node, server, megabytes: residentMegabytes(pid) }
}

async function commit({ commits, gateway }: Bench, job: CommitJob): Promise<Figures> {
  const times = () => [processorTime(commits.pid), serverTime(gateway.postmaster!)]
  const before = times()
  const figures = await commits.ask(job)
  const [node, server] = times().map((time, at) => time && (time - before[at]!) / (figures.perSecond * job.seconds))
  return { ...figures, node, server }
}

/** Compiled code and prepared statements first: what is measured is a gateway that has been running for a while. */
async function warmUp(bench: Bench, seconds: number): Promise<void> {
  for (const target of [bench.gateway, bench.stubbed, bench.echo])
    await drive(bench, target, `warm-${target.port}-`, { connections: 128, seconds })
  await bench.commits.ask({ connections: 8, seconds: 1 })
}

/** An answer of the gateway, with the headers that the limit sends too; Node adds the others by itself. */
async function sampleAnswer(port: number, { before, after }: RequestPieces): Promise<EchoOrder> {
  const [head, body] = `${before}${'sample'.padEnd(24, '-')}${after}`.split('\r\n\r\n') as [string, string]
  const authorization = /Authorization: (.*)\r\n/.exec(head)![1]!
  const answer = await fetch(`http://127.0.0.1:${port}/v1/payments`, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/x-www-form-urlencoded' },
    body,
  })
  const text = await answer.text()
  if (answer.status !== 200) throw new Error(`the gateway refuses the payment of the bench: ${text}`)
  const own = ['connection', 'content-length', 'date', 'keep-alive']
  return { answer: text, headers: Object.fromEntries([...answer.headers].filter(([name]) => !own.includes(name))) }
}

/** Start to listening, in turns with a Node that does nothing. */
async function measureStarts(dataDir: string, times: number): Promise<Pick<Round, 'start' | 'emptyStart'>[]> {
  const starts: Pick<Round, 'start' | 'emptyStart'>[] = []
  for (let number = 0; number < times; number++) {
    const began = performance.now()
    spawnSync(process.execPath, ['-e', '0'])
    const emptyStart = performance.now() - began
    const gateway = await startGatewayProcess(dataDir)
    await gateway.stop()
    starts.push({ start: gateway.startMilliseconds, emptyStart })
  }
  return starts
}

function say(text: string): void {
  process.stdout.write(`${text}\n`)
}
