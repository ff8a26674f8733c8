// How fast is it, against what this machine allows? `npm run bench` runs the gateway and its limits in turns and prints their ratios.
//   --quick     two short rounds          --rounds N, --seconds N
//   --write     writes the tables into docs/performance.md
//   --records all|failed|none   REQUEST_RECORDS of the gateways; as in live mode (failed) when absent
//   --profile DIRECTORY   lets Node write a processor profile of each load; its figures are those of a gateway that is being watched

import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, renameSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import pg from 'pg'
import type { CommitJob, CommitOrder, CommitResult } from './commits.ts'
import { makeDataFolder, nodeOptions, type RunningGateway, startGatewayProcess } from './gateway.ts'
import type { LoadJob, LoadResult } from './load.ts'
import type { Figures, Round } from './measures.ts'
import { type Part, processorTime, residentMegabytes, serverTime, startPart } from './parts.ts'
import type { PlainOrder, SampleAnswer } from './plain.ts'
import { report, writeTables } from './report.ts'
import { type Account, type FirstType, firstPayment, followUp, mixedRequests, type RequestPieces } from './request.ts'
import type { StubOrder } from './stubbed.ts'
import { type Sent, verify, verifyPlain } from './verify.ts'

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
    rounds: { type: 'string' },
    seconds: { type: 'string' },
    records: { type: 'string', default: 'failed' },
    profile: { type: 'string' },
  },
})
const profiles = options.profile === undefined ? undefined : resolve(options.profile)
if (profiles !== undefined) {
  if (options.write) throw new Error('--profile slows what it looks at: its figures are not written.')
  mkdirSync(profiles, { recursive: true })
}
const watched =
  profiles === undefined
    ? []
    : ['--import', `${new URL('profile.ts', import.meta.url)}?${new URLSearchParams({ folder: profiles })}`]
/** A profile begins with all functions that there are, which is not what is measured. */
const profileBeginMilliseconds = 500
process.exitCode = await bench()

type Measured = Omit<Round, 'start' | 'emptyStart'>
type Listening = { readonly port: number }
/** What is measured, and what was sent to it. */
type Target = {
  readonly pids: readonly number[]
  readonly port: number
  /** Of the server that it writes to. */
  readonly postmaster?: number | undefined
  /** Resolves when nothing waits that its payments have left to be done. */
  settled?(): Promise<void>
  readonly account: Account
  readonly sent: Sent[]
}
type Bench = {
  readonly load: Part<object, LoadJob, LoadResult>
  readonly commits: Part<object, CommitJob, CommitResult>
  readonly gateway: Target
  readonly two: Target
  readonly stubbed: Target
  readonly plain: Target
}

async function bench(): Promise<number> {
  const rounds = Number(options.rounds ?? (options.quick ? 2 : 5))
  const seconds = Number(options.seconds ?? (options.quick ? 1.5 : 4))
  const folders = [makeDataFolder(), makeDataFolder()] as const
  const gateways: RunningGateway[] = []
  const parts: { stop(): Promise<void> }[] = []
  const started = async <One extends { stop(): Promise<void> }>(part: Promise<One>): Promise<One> => {
    parts.push(await part)
    return part
  }
  try {
    for (const [at, folder] of folders.entries())
      gateways.push(
        await startGatewayProcess(folder.path, watched, { REQUEST_RECORDS: options.records, ...(at > 0 && { WORKERS: '2' }) }),
      )
    const [one, two] = gateways as [RunningGateway, RunningGateway]
    say(`first start, with the making of the database: ${(one.startMilliseconds / 1000).toFixed(1)} s`)
    const sample = await sampleAnswer(one)
    const { connection, postmaster } = one
    const like = [...nodeOptions, ...watched]
    const commitOrder: CommitOrder = { connection, document: sample.answer }
    const plainOrder: PlainOrder = { connection, ...sample }
    const stubOrder: StubOrder = { dataDir: folders[0].path, connection }
    const load = await started(startPart<object, LoadJob, LoadResult>('load.ts'))
    const commits = await started(startPart<object, CommitJob, CommitResult>('commits.ts', commitOrder, like))
    const stubbed = await started(startPart<Listening>('stubbed.ts', stubOrder, like))
    const plain = await started(startPart<Listening>('plain.ts', plainOrder, like))
    const limit = ({ pid, ready }: typeof plain) => ({ pids: [pid], port: ready.port, account: one, sent: [] })
    const settlings = gateways.map(({ connection }) => settling(connection))
    parts.push(...settlings)
    const running: Bench = {
      load,
      commits,
      gateway: { ...one, settled: settlings[0]!.settled, account: one, sent: [] },
      two: { ...two, settled: settlings[1]!.settled, account: two, sent: [] },
      stubbed: limit(stubbed),
      plain: { ...limit(plain), postmaster },
    }
    await warmUp(running, seconds)
    const measured: Measured[] = []
    for (let number = 1; number <= rounds; number++) {
      const now = await round(running, seconds, `r${number}`)
      measured.push(now)
      const told = { gateway: 'gateway', plain: 'only HTTP and two plain rows', stubbed: 'without storage', two: 'two processes' }
      const speeds = Object.entries(told).map(
        ([load, name]) => `${name} ${Math.round(now[load as keyof typeof told].perSecond)}/s`,
      )
      say(`round ${number}: ${speeds.join(', ')}`)
    }
    const verdicts = [
      await verify(connection, running.gateway.sent),
      await verify(two.connection, running.two.sent),
      await verifyPlain(connection, running.plain.sent),
    ]
    for (const part of parts.splice(0)) await part.stop()
    for (const gateway of gateways.splice(0)) await gateway.stop()
    const starts = await measureStarts(folders[0].path, rounds)
    const text = report(measured.map((round, at) => ({ ...round, ...starts[at]! })))
    say(`\n${text}`)
    const targets = [running.gateway, running.two, running.stubbed, running.plain]
    const failed = targets.flatMap(({ sent }) => sent).reduce((sum, load) => sum + load.failed.length, 0)
    if (failed > 0) say(`${failed} requests were not answered as they should be.`)
    const wrong = verdicts.flatMap(one => one.wrong)
    for (const sentence of wrong) say(`WRONG: ${sentence}`)
    if (wrong.length > 0 || failed > 0) return 1
    if (options.write) writeTables('bench', text)
    if (profiles !== undefined) say(`The profiles are in ${profiles}.`)
    say(
      `All ${verdicts[0]!.answered + verdicts[1]!.answered} answered payments are in the databases, each with its answer, journal lines and event; the books agree.`,
    )
    return 0
  } finally {
    for (const part of parts) await part.stop()
    for (const gateway of gateways) await gateway.stop()
    for (const folder of folders) folder.remove()
  }
}

/** The loads of a round stand close together, so that whatever else the machine does falls on all of them. */
async function round(bench: Bench, seconds: number, name: string): Promise<Measured> {
  const { gateway, stubbed, plain, two } = bench
  const crowd = { connections: 128, seconds }
  const alone = { connections: 1, seconds: seconds / 2 }
  const closed = await drive(bench, gateway, `${name}-closed-`, crowd)
  const rate = { ...crowd, rate: Math.round(closed.perSecond / 2) }
  const short = { ...crowd, seconds: seconds / 2 }
  return {
    gateway: closed,
    plain: await drive(bench, plain, `${name}-plain-`, crowd),
    stubbed: await drive(bench, stubbed, `${name}-stub-`, crowd),
    two: await drive(bench, two, `${name}-two-`, crowd),
    commits: await commit(bench, `${name}-commits-`, { connections: 8, seconds }),
    gatewayAlone: await drive(bench, gateway, `${name}-one-`, alone),
    commitsAlone: await commit(bench, `${name}-commit-`, alone),
    gatewayOpen: await drive(bench, gateway, `${name}-open-`, rate),
    stubbedOpen: await drive(bench, stubbed, `${name}-stubopen-`, rate),
    gatewayWide: await drive(bench, gateway, `${name}-wide-`, { ...short, connections: 512 }),
    captures: await driveFollowUps(bench, `${name}-cp-`, 'CP', 'PA', short),
    refunds: await driveFollowUps(bench, `${name}-rf-`, 'RF', 'DB', short),
    reversals: await driveFollowUps(bench, `${name}-rv-`, 'RV', 'PA', short),
    mixed: await driveMixed(bench, `${name}-mix-`, crowd),
  }
}

type How = Pick<LoadJob, 'connections' | 'seconds' | 'rate' | 'keeps'>

/** First payments are made before the clock starts, and each is followed once. They are faster than what follows them, so that as long is enough. */
async function driveFollowUps(
  bench: Bench,
  prefix: string,
  type: 'CP' | 'RF' | 'RV',
  first: FirstType,
  how: How,
): Promise<Figures> {
  const { gateway } = bench
  await drive(bench, gateway, `${prefix}first-`, { ...how, keeps: true }, [firstPayment(gateway.account, first)])
  return drive(bench, gateway, prefix, how, [followUp(gateway.account, type, first)])
}

/** Debits and preauthorizations are captured, refunded and read a moment later; a few are made before, so that there are some from the first moment on. */
async function driveMixed(bench: Bench, prefix: string, how: How): Promise<Figures> {
  const { gateway } = bench
  const first = (['DB', 'PA'] as const).map(type => firstPayment(gateway.account, type))
  await drive(bench, gateway, `${prefix}first-`, { ...how, seconds: how.seconds / 8, keeps: true }, first)
  return drive(bench, gateway, prefix, { ...how, keeps: true }, mixedRequests(gateway.account))
}

async function drive(
  { load }: Bench,
  target: Target,
  prefix: string,
  how: How,
  requests: readonly RequestPieces[] = [firstPayment(target.account, 'DB')],
): Promise<Figures> {
  const { port, pids } = target
  const { result, each } = await measured(prefix, target, () => load.ask({ ...how, requests, port, prefix }))
  target.sent.push({ prefix, types: requests.map(({ type }) => type), sent: result.sent, failed: result.failed })
  const { perSecond, p50, p99, p999, answered } = result
  return { perSecond, p50, p99, p999, ...each(answered), megabytes: residentMegabytes(pids) }
}

async function commit({ commits, gateway }: Bench, name: string, job: CommitJob): Promise<Figures> {
  const { result, each } = await measured(name, { pids: [commits.pid], postmaster: gateway.postmaster }, () => commits.ask(job))
  return { ...result, ...each(result.perSecond * job.seconds) }
}

type Times = Readonly<Record<'node' | 'server' | 'behind', number | undefined>>

/** The processor time of a piece of work and of what is done behind it, microseconds; with --profile also where the first went. */
async function measured<Result>(
  name: string,
  { pids, postmaster, settled }: Pick<Target, 'pids' | 'postmaster' | 'settled'>,
  work: () => Promise<Result>,
): Promise<{ readonly result: Result; each(count: number): Times }> {
  const signal = () => profiles !== undefined && pids.forEach(pid => void process.kill(pid, 'SIGWINCH'))
  const times = () => [processorTime(pids), postmaster && serverTime(postmaster)] as const
  signal()
  if (profiles !== undefined) await pause(profileBeginMilliseconds)
  const before = times()
  const result = await work()
  const after = times()
  signal()
  if (profiles !== undefined) for (const pid of pids) await keepProfile(profiles, name, pid)
  await settled?.()
  const [node, server] = after.map((time, at) => time && time - before[at]!)
  const behind = settled && times().reduce<number>((sum, time, at) => sum + (time ?? 0) - (after[at] ?? 0), 0)
  const each = (count: number) => ({
    node: node && node / count,
    server: server && server / count,
    behind: behind && behind / count,
  })
  return { result, each }
}

/** Waits until a gateway has told everybody of its payments: no load pays for what the one before has left. */
function settling(connection: pg.PoolConfig): { settled(): Promise<void>; stop(): Promise<void> } {
  const pool = new pg.Pool({ ...connection, max: 1, application_name: 'bench' })
  const waits = `select exists (select from events where notified is null) or exists (select from events where searched is null) as any`
  return {
    async settled() {
      while ((await pool.query(waits)).rows[0].any) await pause(100)
    },
    stop: () => pool.end(),
  }
}

/** A process writes its profile under its own id. */
async function keepProfile(folder: string, name: string, pid: number): Promise<void> {
  const written = join(folder, `${pid}.cpuprofile`)
  while (!existsSync(written)) await pause(10)
  renameSync(written, join(folder, `${name}${pid}.cpuprofile`))
}

/** Compiled code and prepared statements first: what is measured is a gateway that has been running for a while. */
async function warmUp(bench: Bench, seconds: number): Promise<void> {
  for (const name of ['gateway', 'two', 'stubbed', 'plain'] as const)
    await drive(bench, bench[name], `warm-${name}-`, { connections: 128, seconds })
  await driveMixed(bench, 'warm-mix-', { connections: 128, seconds })
  await bench.commits.ask({ connections: 8, seconds: 1 })
}

/** An answer of the gateway, with the headers that the limit sends too; Node adds the others by itself. */
async function sampleAnswer(gateway: RunningGateway): Promise<SampleAnswer> {
  const { start, before, after } = firstPayment(gateway, 'DB')
  const [head, body] = `${start}${before}${'sample'.padEnd(24, '-')}${after}`.split('\r\n\r\n') as [string, string]
  const authorization = /Authorization: (.*)\r\n/.exec(head)![1]!
  const answer = await fetch(`http://127.0.0.1:${gateway.port}/v1/payments`, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/x-www-form-urlencoded' },
    body,
  })
  const text = await answer.text()
  if (answer.status !== 200) throw new Error(`the gateway refuses the payment of the bench: ${text}`)
  const own = ['connection', 'content-length', 'date', 'keep-alive']
  return { answer: text, headers: Object.fromEntries([...answer.headers].filter(([name]) => !own.includes(name))) }
}

/** Start to listening, with the options of `npm start` and in turns with a Node that does nothing. */
async function measureStarts(dataDir: string, times: number): Promise<Pick<Round, 'start' | 'emptyStart'>[]> {
  const starts: Pick<Round, 'start' | 'emptyStart'>[] = []
  for (let number = 0; number < times; number++) {
    const began = performance.now()
    spawnSync(process.execPath, [...nodeOptions, '-e', '0'])
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
