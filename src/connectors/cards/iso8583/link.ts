// The lines to one acquirer, in order: the first that is up carries a message; another takes over only when nothing was sent.

import type { Message } from './codec.ts'
import type { Line, SendResult } from './line.ts'

export type Link = {
  readonly lines: readonly Line[]
  /** How often a later line took over. */
  failovers(): number
  send(message: Message, signal: AbortSignal, again: (answer: Message) => void, merchantId?: string): Promise<SendResult>
  stop(): Promise<void>
}

export function makeLink(lines: readonly Line[], waitForLineMilliseconds: number, drainMilliseconds: number): Link {
  let failovers = 0
  return {
    lines,
    failovers: () => failovers,
    async send(message, signal, again, merchantId) {
      if (!lines.some(line => line.state() === 'up')) await anyReady(lines, waitForLineMilliseconds)
      let last: SendResult = { kind: 'notSent', why: 'no line is configured' }
      for (const [at, line] of lines.entries()) {
        if (line.state() === 'idle') await line.ready(0)
        last = await line.send(message, signal, again, merchantId)
        if (last.kind !== 'notSent') {
          if (at > 0) failovers++
          return last
        }
      }
      return last
    },
    async stop() {
      await Promise.all(lines.map(line => line.stop(drainMilliseconds)))
    },
  }
}

/** Resolves when one line is up, or when none came up in time. */
async function anyReady(lines: readonly Line[], milliseconds: number): Promise<void> {
  await Promise.any(
    lines.map(async line => {
      if (!(await line.ready(milliseconds))) throw new Error('not up')
    }),
  ).catch(() => {})
}
