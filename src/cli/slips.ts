// tollgate slips: pays slips of a sandbox, as a bank or a store would tell of it; and what follows a database that was put back.

import type { Command } from 'commander'
import { record } from '../audit/chain.ts'
import { findOwners } from '../clearing/chargebacks/store.ts'
import { fileSeries } from '../clearing/fileSeries.ts'
import { receiptMismatches } from '../clearing/receipts/receipts.ts'
import { payInSandbox } from '../clearing/receipts/sandbox.ts'
import { amountText, hundredths } from '../contract/amounts.ts'
import { buildNumber } from '../platform/build.ts'
import { inTransaction } from '../platform/database/connect.ts'
import { endOfNumbers } from '../slips/numbers.ts'
import { findSlipOf, passOver, type Slip } from '../slips/store.ts'
import { wholeNumber } from './choices.ts'
import { type CommandParts, looksLikeId, readDate, refuseCommand, refuseWords, withOpened, withOwnServer } from './open.ts'
import { addRelease, refuseNoBank } from './release.ts'

type PayOptions = { readonly amount?: string; readonly on?: string }

/** More than an account gives out between two backups, less than one that is mistyped uses up; of a short one a tenth of its numbers. */
const skippedMost = 1_000_000

export default (program: Command): void => {
  const slips = program.command('slips').description('slips that banks and stores are paid by')
  slips
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
  slips
    .command('skip')
    .argument('<account>', 'of SLIPS_FILE')
    .argument('<count>', 'how many', wholeNumber(1, skippedMost))
    .description('lets an account go on behind so many numbers: those that were given out since a backup that was restored')
    .action(skip)
  addRelease(slips, fileSeries.orders, refuseNoBank)
}

/** What a backup does not know was given to shoppers all the same: a slip of the same number would take their money. */
const skip = (name: string, count: number): Promise<void> =>
  withOwnServer(async ({ config, database, ...recorder }) => {
    const account = config.slips.get(name)
    if (!account)
      return refuseCommand(`SLIPS_FILE has no account ${name}: it has ${[...config.slips.keys()].join(', ') || 'none'}.`)
    const most = Math.min(skippedMost, Math.floor(endOfNumbers(account) / 10))
    if (count > most)
      return refuseCommand(
        `${name} has few numbers: at most ${most} are passed over at a time. To pass over more, give the command again.`,
      )
    const { first, elsewhere } = await inTransaction(database.work, async db => {
      const passed = await passOver(db, name, count, endOfNumbers(account))
      if (!passed) return refuseCommand(`${name} has not so many numbers left.`)
      await record(db, recorder, [{ action: 'slipNumbersSkipped', subject: name, details: { first: passed.first, count } }])
      return passed
    })
    const where = elsewhere ? ', where its numbers are given out: another cell does' : ''
    process.stdout.write(`${name} goes on behind ${first + count - 1}${where}.\n`)
  })

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
