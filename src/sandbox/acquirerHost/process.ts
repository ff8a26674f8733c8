// The sandbox's acquirer host: a child process, started when the first payment wants to go there, so that it costs the start nothing.
// It keeps its books in DATA_DIR and ends with this process, however that ends, because its stdin closes.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Address } from '../../connectors/cards/acquirer.ts'
import { childEnvironment } from '../../platform/childEnvironment.ts'

export type HostProcess = { address(): Promise<Address>; stop(): Promise<void> }

const program = fileURLToPath(new URL('./main.ts', import.meta.url))

/** Without such a folder its books are in memory only. */
export function acquirerHostProcess(dataDir: string | undefined): HostProcess {
  let running: { child: ChildProcess; address: Promise<Address> } | undefined
  const start = () => {
    const ledger = dataDir === undefined || !existsSync(dataDir) ? [] : [`ledger=${join(dataDir, 'acquirer-host.jsonl')}`]
    const child = spawn(process.execPath, ['--disable-sigusr1', program, 'child', ...ledger], {
      env: childEnvironment(),
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    child.stdin!.on('error', () => {})
    const address = portOf(child)
    // Not before it listens: until then it may be all that this process waits for.
    address
      .catch(() => {})
      .finally(() => {
        for (const one of [child, child.stdin, child.stdout] as unknown as { unref(): void }[]) one.unref()
      })
    const started = { child, address }
    child.once('exit', () => {
      if (running === started) running = undefined
    })
    return started
  }
  return {
    address() {
      running ??= start()
      return running.address
    },
    async stop() {
      if (!running) return
      const { child } = running
      const gone = child.exitCode === null ? once(child, 'exit') : undefined
      child.stdin!.end()
      await gone
    },
  }
}

async function portOf(child: ChildProcess): Promise<Address> {
  const lines = createInterface({ input: child.stdout! })
  const said = await Promise.race([once(lines, 'line'), once(child, 'exit').then(() => undefined)])
  if (said === undefined) throw new Error('the acquirer host of the sandbox ended before it listened')
  return { host: '127.0.0.1', port: JSON.parse(String(said[0])).port }
}
