// A gateway that a package has started: it is waited for, and a payment is made.

import { type ChildProcess, execFile } from 'node:child_process'
import { once } from 'node:events'
import { promisify } from 'node:util'
import { readSeed, sandboxSeed } from '../../src/merchants/seed.ts'
import { curlLine, sandboxCredentials } from '../../src/sandbox/welcome.ts'

/** Waits until it takes requests, and makes a payment with the line that a start prints; the code of its result. */
export async function payAt(url: string, running: ChildProcess): Promise<string> {
  const isReady = () =>
    fetch(`${url}/health`).then(
      ({ ok }) => ok,
      () => false,
    )
  const until = Date.now() + 300_000
  while (!(await isReady())) {
    const ended = running.exitCode ?? running.signalCode
    if (ended !== null) throw new Error(`the gateway ended with ${ended}`)
    if (Date.now() > until) throw new Error(`nothing answers at ${url}`)
    await new Promise(resolve => setTimeout(resolve, 100))
  }
  const line = curlLine(sandboxCredentials(url, readSeed(sandboxSeed)))
  const { stdout } = await promisify(execFile)('sh', ['-c', `${line} -s`])
  const { result } = JSON.parse(stdout)
  if (result.code !== '000.100.110') throw new Error(`the payment was answered ${stdout}`)
  return result.code
}

/** How it ended: its exit code, or the signal. */
export async function end(running: ChildProcess, signal: NodeJS.Signals): Promise<number | string> {
  if (running.exitCode !== null) return running.exitCode
  const exit = once(running, 'exit')
  running.kill(signal)
  const [code, by] = await exit
  return code ?? by
}
