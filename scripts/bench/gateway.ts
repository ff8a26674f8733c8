// The gateway under test, as `npm start` runs it: its own process, its own data folder, its own PostgreSQL.

import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type pg from 'pg'
import { ended, processesOf } from './parts.ts'

export type RunningGateway = {
  /** Its first process, and with WORKERS the others too. */
  readonly pids: readonly number[]
  readonly postmaster: number
  readonly port: number
  readonly entityId: string
  readonly accessToken: string
  readonly connection: pg.PoolConfig
  /** From the start of the process to listening. */
  readonly startMilliseconds: number
  stop(): Promise<void>
}

const project = fileURLToPath(new URL('../../', import.meta.url))
const program = 'src/main.ts'

/** What `npm start` tells Node. */
export const nodeOptions: readonly string[] = startOptions()

function startOptions(): string[] {
  const { scripts } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8'))
  const words = String(scripts.start).split(' ')
  return words.slice(words.indexOf('node') + 1, words.indexOf(program))
}

/** A folder that is gone when the bench is. */
export function makeDataFolder(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'tollgate-bench-'))
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) }
}

export async function startGatewayProcess(
  dataDir: string,
  moreOptions: readonly string[] = [],
  settings: Readonly<Record<string, string>> = {},
): Promise<RunningGateway> {
  // Settings of the surroundings would make it another gateway.
  const env = {
    PATH: process.env.PATH,
    HOME: process.env.HOME,
    TMPDIR: process.env.TMPDIR,
    DATA_DIR: dataDir,
    PORT: '0',
    ...settings,
  }
  const began = performance.now()
  const child = spawn(process.execPath, [...nodeOptions, ...moreOptions, join(project, program)], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await untilReady(child)
  const startMilliseconds = performance.now() - began
  const { baseUrl, entityId, accessToken } = JSON.parse(readFileSync(join(dataDir, 'sandbox.json'), 'utf8'))
  // The server says in its lock file what it is and where its socket is.
  const [postmaster, , , port, host] = readFileSync(join(dataDir, 'postgres/postmaster.pid'), 'utf8').split('\n')
  return {
    pids: processesOf(child.pid!, program),
    postmaster: Number(postmaster),
    port: Number(new URL(baseUrl).port),
    entityId,
    accessToken,
    connection: { host: host!, port: Number(port), user: 'gateway', database: 'tollgate', ssl: false },
    startMilliseconds,
    stop: () => ended(child, () => child.kill('SIGTERM')),
  }
}

function untilReady(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let said = ''
    child.stdout!.on('data', chunk => {
      said += chunk
      if (said.includes('Tollgate is ready')) resolve()
    })
    child.once('exit', code => reject(new Error(`the gateway ended with code ${code} before it listened:\n${said}`)))
  })
}
