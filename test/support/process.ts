// The gateway as people start it: a process of its own with a data folder of its own.

import { type ChildProcess, execFile, execFileSync, fork, spawn } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { CommandOrder, CommandReply } from './commandHost.ts'
import { copyCluster } from './database.ts'

export const project = fileURLToPath(new URL('../..', import.meta.url))

/** The command line, with its exit code: null when it did not end by itself within a minute. */
export function commandLine(
  environment: Readonly<Record<string, string>>,
  ...words: string[]
): Promise<{ code: number | null; out: string; stdout: string; stderr: string }> {
  return new Promise(resolve => {
    const options = { env: { PATH: process.env.PATH, HOME: process.env.HOME, ...environment }, timeout: 60_000 }
    const child = execFile(join(project, 'bin/tollgate'), words, options, (_, stdout, stderr) =>
      resolve({ code: child.exitCode, out: stdout + stderr, stdout, stderr }),
    )
  })
}

export type CommandRun = { readonly code: number; readonly out: string; readonly stdout: string; readonly stderr: string }

/** Commands in one process, one after the other, see commandHost.ts; `runIn`: with another environment besides. */
export function manyCommands(environment: Readonly<Record<string, string>> = {}): {
  run(...words: string[]): Promise<CommandRun>
  runIn(more: Readonly<Record<string, string>>, ...words: string[]): Promise<CommandRun>
  stop(): void
} {
  const env = {
    PATH: process.env.PATH,
    HOME: process.env.HOME,
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
    ...environment,
  }
  const host = fork(join(project, 'test/support/commandHost.ts'), { env, execArgv: ['--min-semi-space-size=16'] })
  const waiting = new Map<number, (run: CommandRun) => void>()
  host.on('message', ({ id, code, stdout, stderr }: CommandReply) => {
    waiting.get(id)!({ code, stdout, stderr, out: stdout + stderr })
    waiting.delete(id)
  })
  host.on('exit', code => {
    for (const done of waiting.values()) done({ code: code ?? 1, stdout: '', stderr: 'The host of commands is gone.', out: '' })
  })
  let count = 0
  const runIn = (more: Readonly<Record<string, string>>, ...words: string[]) =>
    new Promise<CommandRun>(done => {
      const id = ++count
      waiting.set(id, done)
      host.send({ id, environment: more, words } satisfies CommandOrder)
    })
  return { run: (...words) => runIn({}, ...words), runIn, stop: () => void host.kill() }
}

export type Started = {
  readonly child: ChildProcess
  /** What it left in sandbox.json. */
  readonly sandbox: { readonly baseUrl: string; readonly entityId: string; readonly accessToken: string }
  /** Its exit code, when it has ended. */
  readonly ended: Promise<number | null>
  /** All that it has printed so far. */
  printed(): string
  stop(signal?: NodeJS.Signals): Promise<number | null>
}

/** Processes with a text among their arguments; a data folder finds the database server, initdb and the sandbox's acquirer host. */
export const runningOn = (text: string, columns = 'args'): string[] =>
  execFileSync('ps', ['-ww', '-eo', columns], { encoding: 'utf8' })
    .split('\n')
    .filter(line => line.includes(text))

/** Lays the files of a database where a sandbox has none yet: making them takes longer than all else. */
function prepareCluster({ DATA_DIR: folder, DATABASE_URL: url, MODE: mode }: Readonly<Record<string, string>>): void {
  const cluster = process.env.TEST_CLUSTER
  if (!cluster || !folder || url || (mode && mode !== 'sandbox')) return
  if (existsSync(folder) && !(statSync(folder).isDirectory() && readdirSync(folder).length === 0)) return
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  copyCluster(cluster, join(folder, 'postgres'))
}

/** Starts `src/main.ts` and waits until it is ready; rejects with what it printed when it ends before. */
/** `began`: is given the process before it is ready. */
export async function startProcess(
  environment: Readonly<Record<string, string>>,
  began: (child: ChildProcess) => void = () => {},
): Promise<Started> {
  prepareCluster(environment)
  const child = spawn(process.execPath, ['--min-semi-space-size=16', 'src/main.ts'], {
    cwd: project,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, PORT: '0', ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  began(child)
  let text = ''
  const ended = new Promise<number | null>(resolve => child.once('exit', code => resolve(code)))
  await new Promise<void>((ready, failed) => {
    const more = (chunk: Buffer) => {
      text += chunk
      if (text.includes('Ctrl-C stops it.') || text.includes('(live)')) ready()
    }
    child.stdout!.on('data', more)
    child.stderr!.on('data', more)
    ended.then(code => failed(new Error(`it ended with ${code}:\n${text}`))).catch(failed)
  })
  return {
    child,
    sandbox:
      environment.MODE === 'live' ? undefined! : JSON.parse(readFileSync(join(environment.DATA_DIR!, 'sandbox.json'), 'utf8')),
    ended,
    printed: () => text,
    async stop(signal = 'SIGINT') {
      child.kill(signal)
      return ended
    },
  }
}
