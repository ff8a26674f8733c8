// The processes of a bench: how they are started, given jobs and stopped, and what they use of the machine.

import { type ChildProcess, fork } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** A process of the bench. `ready` is the first thing that it said. */
export type Part<Ready, Job, Result> = {
  readonly pid: number
  readonly ready: Ready
  ask(job: Job): Promise<Result>
  stop(): Promise<void>
}

/** Starts one of the files beside this one; it finds its order with `orderOf`. */
export async function startPart<Ready, Job = never, Result = never>(
  file: string,
  order: unknown = {},
  nodeOptions: readonly string[] = [],
): Promise<Part<Ready, Job, Result>> {
  const child = fork(fileURLToPath(new URL(file, import.meta.url)), [JSON.stringify(order)], {
    execArgv: ['--disable-sigusr1', ...nodeOptions],
  })
  const ready = await nextMessage<Ready>(child, file)
  return {
    pid: child.pid!,
    ready,
    ask(job) {
      const answer = nextMessage<Result>(child, file)
      child.send(job as object)
      return answer
    },
    stop: () => ended(child, () => child.disconnect()),
  }
}

/** Waits for the end of a process after something was done to end it. */
export function ended(child: ChildProcess, end: () => void): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve()
  return new Promise(resolve => {
    child.once('exit', () => resolve())
    end()
  })
}

function nextMessage<Message>(child: ChildProcess, file: string): Promise<Message> {
  return new Promise((resolve, reject) => {
    const gone = (code: number | null) => reject(new Error(`${file} ended with code ${code}`))
    child.once('exit', gone)
    child.once('message', message => {
      child.off('exit', gone)
      resolve(message as Message)
    })
  })
}

/** Inside a part: what it was started with. */
export const orderOf = <Order>(): Order => JSON.parse(process.argv[2]!)

/** Inside a part: says that it is ready, then answers jobs one by one until the bench lets go of it. */
export function takeJobs<Job, Result>(ready: object, run: (job: Job) => Promise<Result>): void {
  process.on('message', (job: Job) => {
    run(job)
      .then(result => process.send!(result as object))
      .catch(error => {
        process.stderr.write(`${(error as Error).stack}\n`)
        process.exit(1)
      })
  })
  process.once('disconnect', () => process.exit(0))
  process.send!(ready)
}

// Linux counts processor time in hundredths of a second for every process, whatever its clock does.
const microsecondsPerTick = 10_000

/** Processor time that processes have used so far, microseconds; undefined where the system does not tell (no /proc). */
export const processorTime = (pids: readonly number[]): number | undefined => total(pids.map(pid => timeOf(pid, 2)))

/** The same of a PostgreSQL server: its own, its sessions' and background processes', and that of those which have ended. */
export function serverTime(postmaster: number): number | undefined {
  const own = timeOf(postmaster, 4)
  if (own === undefined) return undefined
  return childrenOf(postmaster).reduce((sum, pid) => sum + (timeOf(pid, 2) ?? 0), own)
}

/** Adds up the first of the four times of a process: user, system, and both of its ended children (proc(5)). */
function timeOf(pid: number, times: 2 | 4): number | undefined {
  const ticks = statFields(pid)?.slice(11, 11 + times)
  return ticks && ticks.reduce((sum, text) => sum + Number(text), 0) * microsecondsPerTick
}

function childrenOf(parent: number): number[] {
  try {
    // The kernel lists children by the thread that made them.
    return readdirSync(`/proc/${parent}/task`).flatMap(thread =>
      readFileSync(`/proc/${parent}/task/${thread}/children`, 'utf8')
        .split(' ')
        .filter(text => text !== '')
        .map(Number),
    )
  } catch {
    return []
  }
}

/** A process and those of its children that run the same program, for example workers. */
export function processesOf(pid: number, program: string): number[] {
  return [pid, ...childrenOf(pid).filter(child => commandOf(child).includes(program))]
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}

/** Fields of /proc/<pid>/stat from the third (state) on. */
function statFields(pid: number): string[] | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  } catch {
    return undefined
  }
}

/** Resident memory of processes, megabytes. */
export const residentMegabytes = (pids: readonly number[]): number | undefined => total(pids.map(megabytesOf))

function megabytesOf(pid: number): number | undefined {
  try {
    const found = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
    return found ? Number(found[1]) / 1024 : undefined
  } catch {
    return undefined
  }
}

const total = (values: readonly (number | undefined)[]): number | undefined =>
  values.reduce((sum, value) => (sum === undefined || value === undefined ? undefined : sum + value), 0)
