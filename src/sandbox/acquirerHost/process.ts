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
    // One that could not be started, where there are no files left, has neither stdin nor stdout, and no end.
    child.stdin?.on('error', () => {})
    const address = portOf(child)
    const started = { child, address }
    const ended = () => {
      if (running === started) running = undefined
    }
    child.once('exit', ended).on('error', ended)
    // Not before it listens: until then it may be all that this process waits for.
    address.catch(ended).finally(() => {
      for (const one of [child, child.stdin, child.stdout] as unknown as ({ unref(): void } | undefined)[]) one?.unref()
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
  const ended = once(child, 'exit').then(() => undefined) // it may be said already that it has not begun
  const said = await (child.stdout ? Promise.race([once(createInterface({ input: child.stdout }), 'line'), ended]) : ended)
  if (said === undefined) throw new Error('the acquirer host of the sandbox ended before it listened')
  return { host: '127.0.0.1', port: JSON.parse(String(said[0])).port }
}
