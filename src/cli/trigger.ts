// tollgate trigger: makes an event happen in a running sandbox, by the very calls that a merchant would make; a chargeback by the import
// that an operator would make.

import type { Command } from 'commander'
import { mismatches, recordChargeback } from '../clearing/chargebacks/chargebacks.ts'
import { hundredths } from '../contract/amounts.ts'
import { results } from '../contract/results/results.ts'
import { buildNumber } from '../platform/build.ts'
import { argumentOf } from './choices.ts'
import { refuseCommand, runCommand, withOpened } from './open.ts'
import { openSandbox, type Sandbox, type SandboxOptions } from './sandbox.ts'

const card = {
  amount: '92.00',
  currency: 'EUR',
  paymentBrand: 'VISA',
  'card.number': '4200000000000000',
  'card.holder': 'Jane Jones',
  'card.expiryMonth': '05',
  'card.expiryYear': '2034',
  'card.cvv': '123',
}

const pay = (sandbox: Sandbox, paymentType: string, more: Readonly<Record<string, string>> = {}) =>
  sandbox.post('/v1/payments', { ...card, paymentType, ...more })

const refer = (sandbox: Sandbox, { id }: { id: string }, paymentType: string, amount?: string) =>
  sandbox.post(`/v1/payments/${id}`, { paymentType, ...(amount !== undefined && { amount, currency: card.currency }) })

/** Each returns the payment that the event is about. */
const events: Readonly<
  Record<string, readonly [description: string, make: (sandbox: Sandbox) => Promise<{ id: string; result: { code: string } }>]>
> = {
  'payment.approved': ['a debit that is approved', sandbox => pay(sandbox, 'DB')],
  'payment.declined': ['a debit that the issuer declines', sandbox => pay(sandbox, 'DB', { 'card.number': '4000000000000002' })],
  'payment.pending': [
    'pending at first, approved a second later',
    sandbox => pay(sandbox, 'DB', { 'customParameters[simulateAnswer]': 'late' }),
  ],
  'payment.timedOut': [
    'pending at first; after 15 seconds (or `tollgate clock`) timed out and reversed',
    sandbox => pay(sandbox, 'DB', { 'customParameters[simulateAnswer]': 'none' }),
  ],
  preauthorization: ['a preauthorization', sandbox => pay(sandbox, 'PA')],
  capture: ['a preauthorization and its capture', async sandbox => refer(sandbox, await pay(sandbox, 'PA'), 'CP', card.amount)],
  refund: ['a debit and its refund', async sandbox => refer(sandbox, await pay(sandbox, 'DB'), 'RF', '10.00')],
  reversal: ['a debit and its reversal', async sandbox => refer(sandbox, await pay(sandbox, 'DB'), 'RV')],
  chargeback: ['a debit and its chargeback', async sandbox => chargeBack(await pay(sandbox, 'DB'))],
}

/** As if an acquirer's report had been imported into the database of this machine's gateway. */
async function chargeBack({ id }: { id: string }): Promise<{ id: string; result: { code: string } }> {
  let made = ''
  await withOpened(async opened => {
    const line = { report: `trigger-${id}`, line: 1, type: 'CB', reference: id, amount: hundredths(card.amount) } as const
    const date = new Date(opened.clock.real()).toISOString().slice(0, 10)
    const said = await recordChargeback(
      { ...opened, build: buildNumber() },
      { ...line, currency: card.currency, reason: results.chargebackFraud.code, date },
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
