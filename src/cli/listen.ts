// tollgate listen: receives a sandbox's notifications without a public address. It reads a cursor, prints every notification decrypted,
// and hands it on, encrypted as it would be sent, to a receiver on this machine. What was not taken is read again the next time; what the receiver
// goes on refusing is passed over only when --skip-after says so, and named then.

import type { Command } from 'commander'
import { decrypt } from '../notifications/cipher.ts'
import { systemClock } from '../platform/clock.ts'
import { wholeNumber } from './choices.ts'
import { secretsText } from './endpoints.ts'
import { runCommand } from './open.ts'
import { type Json, NoGateway, openSandbox, type Sandbox, type SandboxOptions } from './sandbox.ts'

type ListenOptions = SandboxOptions & {
  readonly name: string
  readonly forwardTo?: string
  readonly json?: true
  readonly once?: true
  readonly showSecret?: true
  readonly skipAfter?: number
}

/** As long as a gateway waits for a webhook. */
const patienceSeconds = 30

export default (program: Command): void => {
  program
    .command('listen')
    .description('prints the notifications of a running sandbox, and hands them on')
    .option('--forward-to <url>', 'a receiver on this machine; a notification that it refuses is sent again after a second')
    .option(
      '--skip-after <count>',
      'pass over a notification that the receiver has refused so often, and say so',
      wholeNumber(1, 1_000_000),
    )
    .option('--show-secret', 'print the secret to verify with though the output is no terminal, for example a log')
    .option('--name <name>', 'the cursor: goes on where a listener of this name stopped', 'listen')
    .option('--json', 'the whole envelope, a line each')
    .option('--once', 'end when nothing is left to read')
    .option('--base-url <url>', 'the gateway, if not the one of DATA_DIR')
    .option('--entity <id>', 'merchant or channel')
    .option('--token-file <path>', 'access token: a file that holds it, or - for standard input')
    .action((options: ListenOptions) => runCommand(() => listen(openSandbox(options), options)))
}

async function listen(sandbox: Sandbox, { name, forwardTo, json, once, showSecret, skipAfter }: ListenOptions): Promise<void> {
  process.stdout.on('error', () => process.exit()) // nobody reads any more
  if (!json) process.stderr.write(`Listening as ${name}${forwardTo ? `, handing on to ${forwardTo}` : ''}. Ctrl-C ends it.\n`)
  let shown: string | undefined
  for (let after = '0'; ; ) {
    let read: Json
    try {
      read = await sandbox.post('/sandbox/notifications', { name, after, wait: once ? '0' : '5' })
    } catch (error) {
      if (once || !(error instanceof NoGateway)) throw error
      await systemClock.sleep(1000) // the gateway is away: what it owes us stays
      continue
    }
    // A log outlives what was said on a terminal, and has other readers.
    if ((showSecret || process.stderr.isTTY) && read.secret !== shown) process.stderr.write(secretsText([read.secret]))
    shown = read.secret
    for (const one of read.notifications) {
      const text = clear(one, read.secret)
      process.stdout.write(`${json ? text : line(one, JSON.parse(text))}\n`)
      if (forwardTo !== undefined && !(await handOn(forwardTo, one, skipAfter)))
        process.stderr.write(
          `Skipped #${one.sequence} after ${skipAfter} refusals; \`tollgate notifications replay ${read.endpointId} --id ${one.id}\` tells it again.\n`,
        )
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

/**
 * Until the receiver takes it, because the order must hold; false when it has refused it so often that it is given up. A receiver that cannot be
 * reached refuses nothing.
 */
async function handOn(url: string, { headers, body }: Json, skipAfter: number | undefined): Promise<boolean> {
  for (let refusals = 0; ; await systemClock.sleep(1000)) {
    try {
      const signal = systemClock.deadline(patienceSeconds * 1000)
      const answer = await fetch(url, { method: 'POST', headers, body, redirect: 'manual', signal })
      await answer.body?.cancel()
      if (answer.status >= 200 && answer.status < 300) return true
      refusals++
      const count = skipAfter === undefined ? '' : `, ${refusals} of ${skipAfter} refusals`
      process.stderr.write(`${url} answered ${answer.status}${count}${refusals === skipAfter ? '.' : '; again in a second.'}\n`)
      if (refusals === skipAfter) return false
    } catch (error) {
      const { cause, message } = error as Error
      process.stderr.write(`${url} cannot be reached (${(cause as Error)?.message || message}); again in a second.\n`)
    }
  }
}
