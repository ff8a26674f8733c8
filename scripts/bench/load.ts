// The load generator, a process of its own. It writes requests to plain sockets and looks at answers no closer than it must,
// so that most of the machine is left to what is measured.

import { connect, type Socket } from 'node:net'
import { takeJobs } from './parts.ts'
import { type FirstType, type RequestPieces, transactionId } from './request.ts'

export type LoadJob = {
  /** Sent in turns: request number n is the n-th of them, and behind the last comes the first. */
  readonly requests: readonly RequestPieces[]
  /** First payments are remembered, for this and later jobs to follow, each once. */
  readonly keeps?: boolean
  readonly port: number
  readonly connections: number
  readonly seconds: number
  /** Requests a second, whatever the answers do (open loop). Absent: each connection sends as soon as it is answered (closed loop). */
  readonly rate?: number
  /** Begins every merchantTransactionId; a number follows. */
  readonly prefix: string
  /** The code of an approved payment; absent: that of testMode=INTERNAL. */
  readonly approved?: string
}

export type LoadResult = {
  /** Full 200 answers of approved payments that came within the time, per second. */
  readonly perSecond: number
  /** Requests sent, numbered from 0, and how many were answered, also after the time was up. */
  readonly sent: number
  readonly answered: number
  /** Numbers of requests that were not answered as they should be. */
  readonly failed: readonly number[]
  /** Milliseconds; in an open loop counted from the moment the request was due. */
  readonly p50: number
  readonly p99: number
  readonly p999: number
}

const drainSeconds = 15
const approvedInternally = '000.100.110'

/** Ids of first payments that nothing has followed yet. */
const kept: Readonly<Record<FirstType, string[]>> = { DB: [], PA: [] }

if (import.meta.main) takeJobs({}, runLoad)

async function runLoad(job: LoadJob): Promise<LoadResult> {
  const latencies: number[] = []
  const failed: number[] = []
  const due: number[] = [] // open loop: when the requests were due that wait for a free connection
  let sent = 0
  let inTime = 0
  const lines = await Promise.all(Array.from({ length: job.connections }, () => openLine(job.port)))
  const free = [...lines]
  const begin = performance.now()
  let end = begin + job.seconds * 1000
  const approved = `"code":"${job.approved ?? approvedInternally}"`

  function send(line: Line, from: number): void {
    const { type, start, follows, before, after } = job.requests[sent % job.requests.length]!
    const followed = follows === undefined ? '' : kept[follows].pop()
    if (followed === undefined) {
      end = Math.min(end, from) // nothing is left to follow: what was measured ends here
      return
    }
    line.number = sent++
    line.from = from
    const id = transactionId(job.prefix, line.number)
    line.expected = followed || id // a follow-up and a reading answer with the payment that was asked about
    line.approved = approved
    line.keeps = job.keeps && (type === 'DB' || type === 'PA') ? kept[type] : undefined
    line.socket.write(start + followed + before + (after === undefined ? '' : id + after), 'latin1')
  }

  function answered(line: Line, good: boolean): void {
    const now = performance.now()
    if (good) {
      latencies.push(now - line.from)
      if (now <= end) inTime++
    } else failed.push(line.number)
    line.number = -1
    if (line.broken) return
    if (job.rate !== undefined) {
      const next = due.shift()
      if (next === undefined) free.push(line)
      else send(line, next)
    } else if (now < end) send(line, now)
  }

  for (const line of lines) line.done = good => answered(line, good)
  if (job.rate === undefined) for (const line of lines) send(line, performance.now())
  else
    await keepRate(job.rate, begin, end, at => {
      const line = free.pop()
      if (line) send(line, at)
      else due.push(at)
    })
  await pause(end - performance.now())
  for (const until = performance.now() + drainSeconds * 1000; performance.now() < until; await pause(5)) {
    if (due.length === 0 && lines.every(({ number }) => number < 0)) break
  }
  for (const { number, socket } of lines) {
    if (number >= 0) failed.push(number)
    socket.destroy()
  }
  if (end === begin) throw new Error(`${job.prefix}: there is nothing to follow`)
  const sorted = Float64Array.from(latencies).sort()
  const share = (part: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN
  return {
    perSecond: (inTime * 1000) / (end - begin),
    sent,
    answered: latencies.length,
    failed,
    p50: share(0.5),
    p99: share(0.99),
    p999: share(0.999),
  }
}

/** Calls once for every moment at which a request is due. */
async function keepRate(rate: number, begin: number, end: number, call: (at: number) => void): Promise<void> {
  for (let number = 0; ; await pause(1)) {
    for (;;) {
      const at = begin + (number * 1000) / rate
      if (at >= end) return
      if (at > performance.now()) break
      call(at)
      number++
    }
  }
}

const pause = (milliseconds: number) => new Promise(resolve => setTimeout(resolve, Math.max(0, milliseconds)))

/** One connection and the request that is on it; number -1 when none is. */
type Line = {
  readonly socket: Socket
  number: number
  from: number
  expected: string
  approved: string
  /** Where the id of the answered payment goes. */
  keeps: string[] | undefined
  broken: boolean
  done: (good: boolean) => void
}

function openLine(port: number): Promise<Line> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    const line: Line = {
      socket,
      number: -1,
      from: 0,
      expected: '',
      approved: '',
      keeps: undefined,
      broken: false,
      done: () => {},
    }
    let begun: Buffer | undefined
    socket.once('connect', () => resolve(line))
    socket.on('error', reject) // without effect once the promise is settled
    socket.once('close', () => {
      line.broken = true
      if (line.number >= 0) line.done(false)
    })
    socket.on('data', chunk => {
      const answer = begun ? Buffer.concat([begun, chunk]) : chunk
      const length = answerLength(answer)
      if (length === undefined || answer.length < length) {
        begun = answer
        return
      }
      begun = undefined
      const good = isGood(answer, length, line)
      if (good) line.keeps?.push(idIn(answer))
      line.done(good)
    })
  })
}

function answerLength(answer: Buffer): number | undefined {
  const head = answer.indexOf('\r\n\r\n')
  if (head < 0) return undefined
  const found = /content-length: (\d+)/i.exec(answer.toString('latin1', 0, head))
  return found ? head + 4 + Number(found[1]) : head + 4
}

const isGood = (answer: Buffer, length: number, { expected, approved }: Line): boolean =>
  answer.length === length &&
  answer.toString('latin1', 0, 13) === 'HTTP/1.1 200 ' &&
  answer.includes(approved, 0, 'latin1') &&
  answer.includes(expected, 0, 'latin1')

const idKey = '"id":"'
/** Of a payment, as its answer names it first. */
function idIn(answer: Buffer): string {
  const from = answer.indexOf(idKey, 0, 'latin1') + idKey.length
  return answer.toString('latin1', from, from + 32)
}
