// Runs one command after the other in one process, as src/cli/main.ts runs one: most of what a command costs is its start. The program as people start it is
// tried by bin.test.ts, and wherever a command stands beside others.

import { CommanderError } from 'commander'
import { makeProgram } from '../../src/cli/program.ts'

export type CommandOrder = {
  readonly id: number
  /** What it has besides the environment of this process. */
  readonly environment: Readonly<Record<string, string>>
  readonly words: readonly string[]
}
export type CommandReply = { readonly id: number; readonly code: number; readonly stdout: string; readonly stderr: string }

let last = Promise.resolve()
process.on('message', (order: CommandOrder) => {
  last = last.then(() => run(order)).then(reply => void process.send!(reply))
})

const ours = { ...process.env }

async function run({ id, environment, words }: CommandOrder): Promise<CommandReply> {
  process.env = { ...ours, ...environment }
  const told = { stdout: '', stderr: '' }
  const streams = (['stdout', 'stderr'] as const).map(name => {
    const { write } = process[name]
    process[name].write = (chunk: string | Uint8Array, ...more: unknown[]) => {
      told[name] += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString()
      for (const done of more) if (typeof done === 'function') done()
      return true
    }
    return () => {
      process[name].write = write
    }
  })
  process.exitCode = 0
  try {
    await makeProgram().parseAsync(words, { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.exitCode !== 0) process.exitCode = 2
  }
  for (const restore of streams) restore()
  return { id, code: process.exitCode, ...told }
}
