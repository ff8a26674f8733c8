// tollgate slips: pays slips of a sandbox, as a bank or a store would tell of it.

import type { Command } from 'commander'
import { findOwners } from '../clearing/chargebacks/store.ts'
import { receiptMismatches } from '../clearing/receipts/receipts.ts'
import { payInSandbox } from '../clearing/receipts/sandbox.ts'
import { amountText, hundredths } from '../contract/amounts.ts'
import { buildNumber } from '../platform/build.ts'
import { findSlipOf, type Slip } from '../slips/store.ts'
import { type CommandParts, looksLikeId, readDate, refuseCommand, refuseWords, withOpened } from './open.ts'

type PayOptions = { readonly amount?: string; readonly on?: string }

export default (program: Command): void => {
  program
    .command('slips')
    .description('slips that banks and stores are paid by')
    .command('pay <id>')
    .description('pays a slip of a sandbox: each call makes one more receipt')
    .option('--amount <amount>', 'for example 100.00, if not what the slip asks for')
    .option('--on <day>', 'yyyy-mm-dd, if not today')
    .action((id: string, options: PayOptions) =>
      withOpened(async opened => {
        if (opened.config.mode === 'live') refuseCommand('Only slips of a sandbox are paid like this.')
        const more = readOptions(options)
        const slip = await find(opened, id)
        const said = await payInSandbox({ ...opened, build: buildNumber(), slipAccounts: opened.config.slips }, slip, more)
        if (said.kind !== 'recorded')
          return refuseCommand(`Nothing was paid${said.kind === 'refused' ? `: ${receiptMismatches[said.why]}` : ''}.`)
        const { payment } = said
        process.stdout.write(`RC ${payment.id} of ${slip.paymentId}: ${amountText(payment.amount)} ${payment.currency}\n`)
      }),
    )
}

function readOptions({ amount, on }: PayOptions): { amount?: number; paidOn?: string } {
  if (amount !== undefined && !/^(?=.*[1-9])\d{1,10}(\.\d{2})?$/.test(amount))
    refuseWords('--amount must be above zero, with no or two decimals.')
  return {
    ...(amount !== undefined && { amount: hundredths(amount) }),
    ...(on !== undefined && { paidOn: readDate('--on', on) }),
  }
}

async function find({ database }: CommandParts, id: string): Promise<Slip> {
  const [owner] = looksLikeId(id) ? await findOwners(database.work, id) : []
  const slip = owner && (await findSlipOf(database.work, owner.merchantId, id))
  return slip ?? refuseCommand(`There is no slip ${id}: it is named by the id of its payment.`)
}
