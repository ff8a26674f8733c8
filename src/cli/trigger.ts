// tollgate trigger: makes an event happen in a running sandbox, by the very calls that a merchant would make; a chargeback by the import
// that an operator would make.

import type { Command } from 'commander'
import { mismatches, recordChargeback } from '../clearing/chargebacks/chargebacks.ts'
import { hundredths } from '../contract/amounts.ts'
import { results } from '../contract/results/results.ts'
import { buildNumber } from '../platform/build.ts'
import { triggers } from '../sandbox/triggers.ts'
import { argumentOf } from './choices.ts'
import { refuseCommand, runCommand, withOpened } from './open.ts'
import { openSandbox, type Sandbox, type SandboxOptions } from './sandbox.ts'

type Made = { id: string; result: { code: string } }

/** Makes the calls, and returns the payment that the event is about: that of the last one. */
async function makeEvent(sandbox: Sandbox, { steps }: (typeof triggers)[string]): Promise<Made> {
  let made: Made | undefined
  for (const { refers, fields } of steps) made = await sandbox.post(refers ? `/v1/payments/${made!.id}` : '/v1/payments', fields)
  return made!
}

const events: Readonly<Record<string, readonly [description: string, make: (sandbox: Sandbox) => Promise<Made>]>> = {
  ...Object.fromEntries(
    Object.entries(triggers).map(([name, event]) => [name, [event.says, sandbox => makeEvent(sandbox, event)] as const]),
  ),
  chargeback: [
    'a debit and its chargeback',
    async sandbox => chargeBack(await makeEvent(sandbox, triggers['payment.approved']!)),
  ],
}

/** As if an acquirer's report had been imported into the database of this machine's gateway. */
async function chargeBack({ id }: Made): Promise<Made> {
  const { amount, currency } = triggers['payment.approved']!.steps[0]!.fields
  let made = ''
  await withOpened(async opened => {
    const line = { report: `trigger-${id}`, line: 1, type: 'CB', reference: id, amount: hundredths(amount!) } as const
    const date = new Date(opened.clock.real()).toISOString().slice(0, 10)
    const said = await recordChargeback(
      { ...opened, build: buildNumber() },
      { ...line, currency: currency!, reason: results.chargebackFraud.code, date },
    )
    if (said.kind === 'refused') refuseCommand(`The chargeback is refused: ${mismatches[said.why]}.`)
    else made = said.kind === 'known' ? said.paymentId : said.payment.id
  })
  return made === '' ? refuseCommand('The chargeback was not recorded.') : { id: made, result: results.chargebackFraud }
}

export default (program: Command): void => {
  const list = Object.entries(events).map(([name, [description]]) => `  ${name.padEnd(18)} ${description}`)
  program
    .command('trigger')
    .addArgument(argumentOf('event', 'what happens', Object.keys(events)))
    .description('makes an event happen in a running sandbox')
    .option('--base-url <url>', 'the gateway, if not the one of DATA_DIR')
    .option('--entity <id>', 'channel')
    .option('--token-file <path>', 'access token: a file that holds it, or - for standard input')
    .addHelpText('after', `\nEvents:\n${list.join('\n')}\n`)
    .action((name: string, options: SandboxOptions) =>
      runCommand(async () => {
        const { id, result } = await events[name]![1](openSandbox(options))
        process.stdout.write(`${name}  ${id}  ${result.code}\n`)
      }),
    )
}
