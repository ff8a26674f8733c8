// tollgate listen: receives a sandbox's notifications without a public address. It reads a cursor, prints every notification decrypted,
// and hands it on, encrypted as it would be sent, to a receiver on this machine. What was not taken is read again the next time.

import type { Command } from 'commander'
import { decrypt } from '../notifications/cipher.ts'
import { systemClock } from '../platform/clock.ts'
import { runCommand } from './open.ts'
import { type Json, openSandbox, type Sandbox, type SandboxOptions } from './sandbox.ts'

type ListenOptions = SandboxOptions & {
  readonly name: string
  readonly forwardTo?: string
  readonly json?: true
  readonly once?: true
}

export default (program: Command): void => {
  program
    .command('listen')
    .description('prints the notifications of a running sandbox, and hands them on')
    .option('--forward-to <url>', 'a receiver on this machine; a notification that it refuses is sent again after a second')
    .option('--name <name>', 'the cursor: goes on where a listener of this name stopped', 'listen')
    .option('--json', 'the whole envelope, a line each')
    .option('--once', 'end when nothing is left to read')
    .option('--base-url <url>', 'the gateway, if not the one of DATA_DIR')
    .option('--entity <id>', 'merchant or channel')
    .option('--token-file <path>', 'access token: a file that holds it, or - for standard input')
    .action((options: ListenOptions) => runCommand(() => listen(openSandbox(options), options)))
}

async function listen(sandbox: Sandbox, { name, forwardTo, json, once }: ListenOptions): Promise<void> {
  process.stdout.on('error', () => process.exit()) // nobody reads any more
  if (!json) process.stderr.write(`Listening as ${name}${forwardTo ? `, handing on to ${forwardTo}` : ''}. Ctrl-C ends it.\n`)
  for (let after = '0'; ; ) {
    let read: Json
    try {
      read = await sandbox.post('/sandbox/notifications', { name, after, wait: once ? '0' : '5' })
    } catch (error) {
      if (once || !(error instanceof TypeError)) throw error
      await systemClock.sleep(1000) // the gateway is away: what it owes us stays
      continue
    }
    for (const one of read.notifications) {
      const text = clear(one, read.secret)
      process.stdout.write(`${json ? text : line(one, JSON.parse(text))}\n`)
      if (forwardTo !== undefined) await handOn(forwardTo, one)
      after = one.position
    }
    if (once && read.notifications.length === 0) return
  }
}

function clear({ headers, body }: Json, secret: string): string {
  const [iv, tag] = [headers['X-Initialization-Vector'], headers['X-Authentication-Tag']]
  if (iv === undefined) return body
  const sealed = body.startsWith('{') ? JSON.parse(body).encryptedBody : body
  return (
    decrypt(Buffer.from(secret, 'hex'), { iv, tag, body: sealed }) ?? JSON.stringify({ type: 'not readable with this secret' })
  )
}

function line({ sequence }: Json, { type, action, payload }: Json): string {
  const { id, paymentType, amount, currency, result, timestamp } = payload
  return [timestamp, `#${sequence}`, type, action, paymentType, amount, currency, result?.code, id].filter(Boolean).join('  ')
}

/** Until the receiver takes it: the order must hold. */
async function handOn(url: string, { headers, body }: Json): Promise<void> {
  for (;;) {
    try {
      const { status } = await fetch(url, { method: 'POST', headers, body, redirect: 'manual' })
      if (status >= 200 && status < 300) return
      process.stderr.write(`${url} answered ${status}; again in a second.\n`)
    } catch (error) {
      process.stderr.write(
        `${url} cannot be reached (${((error as Error).cause as Error)?.message ?? (error as Error).message}); again in a second.\n`,
      )
    }
    await systemClock.sleep(1000)
  }
}
