// tollgate transfers: refunds that are paid by transfer, where they go, and what became of them.

import type { Command } from 'commander'
import { fileSeries } from '../clearing/fileSeries.ts'
import { returnBytesMost } from '../clearing/returns/rows.ts'
import { storedNameAt } from '../clearing/storedName.ts'
import { transferReference } from '../clearing/transfers/transferFile.ts'
import { importTransferReturn } from '../clearing/transfers/transferReturn.ts'
import { transferWaitsFor } from '../clearing/transfers/write.ts'
import { amountText } from '../contract/amounts.ts'
import { readBankDetails } from '../payments/transfers/bankDetails.ts'
import { findTransfer, findTransfers, type TransferRow } from '../payments/transfers/store.ts'
import { endByHand, enterDetails } from '../payments/transfers/transfer.ts'
import { buildNumber } from '../platform/build.ts'
import { inTransaction } from '../platform/database/connect.ts'
import type { Config } from '../start/config.ts'
import { collectLines, linesText, refuseBroken } from './files.ts'
import { freeText } from './freeText.ts'
import {
  type CommandParts,
  looksLikeId,
  readBytes,
  readSecret,
  refuseCommand,
  refuseWords,
  table,
  timeText,
  withOpened,
} from './open.ts'
import { type ReadOptions, reads, show, timeField } from './reads.ts'
import { addRelease, refuseNoBank } from './release.ts'

export default (program: Command): void => {
  const transfers = program.command('transfers').description('refunds of receipts, which are paid by transfer to a bank account')

  const list = transfers
    .command('list')
    .description('the open ones, the oldest first')
    .option('--all', 'ended ones too')
    .option('--limit <count>', 'how many', '100')
  reads(list, {
    'transfers[]': 'refundId merchantId account amount currency mode waitsFor orderedAt file line reference',
  }).action((options: ReadOptions & { all?: true; limit: string }) =>
    withOpened(async ({ database, config }) => {
      if (!/^\d{1,6}$/.test(options.limit)) refuseWords('--limit must be a number.')
      const found = await findTransfers(database.work, options.all === true, Number(options.limit))
      show(options, { transfers: found.map(one => documentOf(one, config)) }, () =>
        table([
          ['refund', 'merchant', 'account', 'amount', 'currency', 'waits for', 'ordered', 'file', 'reference'],
          ...found.map(one => [
            one.paymentId,
            one.merchantId,
            one.account,
            amountText(one.amount),
            one.currency,
            waitsFor(one, config),
            timeText(one.orderedAt),
            one.sequence,
            transferReference(one.paymentId),
          ]),
        ]),
      )
    }),
  )

  transfers
    .command('enter <refundId>')
    .description('says where the money goes; the details come from a file, or from standard input as -')
    .requiredOption('--details <file>', 'name, tax id, bank, agency and account as in merchantMemo, or a name and a CLABE')
    .action((refundId: string, { details: file }: { details: string }) =>
      withOpened(async opened => {
        const row = await named(opened, refundId)
        const details = readBankDetails(readSecret(file, '--details'), row.currency)
        if (!details)
          return refuseCommand(
            'The details cannot be read: name; CPF or CNPJ; bank; agency; account with its hyphen and digit. In MXN name; CLABE.',
          )
        if (!(await inTransaction(opened.database.work, db => enterDetails(opened, db, row, details, opened.by.id))))
          return refuseCommand(`The refund ${refundId} is in a file already, or has ended.`)
        const next =
          transferWaitsFor({ ...row, sealed: Buffer.alloc(0) }, opened.config.slips) === 'file'
            ? 'it is transferred with the next file'
            : `no file takes it, so that somebody has to pay it and say so (transfers end)`
        process.stdout.write(`Entered: ${next}.\n`)
      }),
    )

  transfers
    .command('end <refundId>')
    .description('says what became of a transfer that no return tells of')
    .requiredOption('--as <outcome>', 'paid or refused')
    .requiredOption('--reason <text>', 'what the bank said, for whoever asks later; the merchant reads it')
    .action((refundId: string, { as, reason: given }: { as: string; reason: string }) =>
      withOpened(async opened => {
        if (as !== 'paid' && as !== 'refused') refuseWords('--as must be paid or refused.')
        const reason = freeText(opened, '--reason', given, 200)
        const row = await named(opened, refundId)
        const end = await endByHand(partsOf(opened), row, as === 'paid', reason)
        if (end === 'otherwise') return refuseCommand(`The refund ${refundId} has ended otherwise before.`)
        if (end === 'inFile')
          return refuseCommand(
            `The refund ${refundId} stands in a file that is not on disk yet, and will go to the bank with it: end it when the bank has told of it, or mend the folder first.`,
          )
        process.stdout.write(`The refund ${refundId} has ended: ${as}.\n`)
      }),
    )

  addRelease(transfers, fileSeries.transfers, refuseNoBank)

  const returned = transfers
    .command('import <file>')
    .description("reads a bank's return about transfers; reading it again changes nothing. Ends with 1 when a line fits nothing")
    .requiredOption('--account <name>', 'the account, as SLIPS_FILE names it')
    .option('--same-number', 'the bank has given the number of another file again: read it all the same')
  reads(returned, { 'lines[]': 'line outcome text' }, () => true).action(
    (file: string, options: ReadOptions & { account: string; sameNumber?: true }) =>
      withOpened(async opened => {
        const account = opened.config.slips.get(options.account)
        if (account?.kind !== 'bank') return refuseCommand(`SLIPS_FILE has no bank account ${options.account}.`)
        const { lines, tell } = collectLines()
        const bytes = await readBytes(file, returnBytesMost)
        const how = { sameNumber: options.sameNumber === true }
        const report = await importTransferReturn(partsOf(opened), account, storedNameAt(file), bytes, tell, how)
        if ('broken' in report) return refuseBroken(opened, { what: 'return', of: account.name, file, why: report.broken })
        show(options, { lines }, () => linesText(lines))
        if (report.refused > 0) process.exitCode = 1
      }),
  )
}

const partsOf = (opened: CommandParts) => ({ ...opened, build: buildNumber() })

async function named({ database }: CommandParts, refundId: string): Promise<TransferRow> {
  const row = looksLikeId(refundId) ? await findTransfer(database.work, refundId) : undefined
  return row ?? refuseCommand(`There is no transfer of a refund ${refundId}.`)
}

const waits = { details: 'bank details', file: 'the next file', somebody: 'somebody who pays it', bank: 'the bank' } as const

const waitsFor = (row: TransferRow, { slips }: Config): string | null =>
  row.result === null ? waits[transferWaitsFor(row, slips)] : null

const documentOf = (one: TransferRow, config: Config) => ({
  refundId: one.paymentId,
  merchantId: one.merchantId,
  account: one.account,
  amount: amountText(one.amount),
  currency: one.currency,
  mode: one.mode,
  waitsFor: waitsFor(one, config),
  orderedAt: timeField(one.orderedAt),
  file: one.sequence,
  line: one.line,
  reference: transferReference(one.paymentId),
})
