// tollgate receipts: the files of receipts that merchants are owed on their servers.

import type { Command } from 'commander'
import { countOwed } from '../reporting/owedFiles/store.ts'
import { receiptSource, retryReceipts } from '../reporting/receiptFiles/deliver.ts'
import { readDate, refuseCommand, table, withOpened } from './open.ts'
import { type ReadOptions, reads, show } from './reads.ts'

export default (program: Command): void => {
  const receipts = program.command('receipts').description('what was paid on slips, as files for merchants')

  const files = receipts
    .command('files')
    .description(
      'the files that merchants are owed on their servers: made = delivered + scheduled + given up; ends with 1 when any was given up',
    )
  reads(files, { 'merchants[]': 'merchantId made delivered scheduled givenUp oldest failure' }).action((options: ReadOptions) =>
    withOpened(async ({ database }) => {
      const merchants = (await countOwed(database.work))
        .filter(({ source }) => source === receiptSource)
        .map(({ ownerId: merchantId, source: _, ...counted }) => ({ merchantId, ...counted }))
      show(options, { merchants }, () =>
        table([
          ['merchant', 'made', 'delivered', 'scheduled', 'given up', 'oldest', 'why'],
          ...merchants.map(one => [one.merchantId, one.made, one.delivered, one.scheduled, one.givenUp, one.oldest, one.failure]),
        ]),
      )
      if (merchants.some(({ givenUp }) => givenUp > 0)) process.exitCode = 1
    }),
  )

  receipts
    .command('again <merchantId>')
    .description('files that were given up are tried again')
    .requiredOption('--from <day>', 'from this day on, yyyy-MM-dd')
    .action((merchantId: string, { from }: { from: string }) =>
      withOpened(async opened => {
        readDate('--from', from)
        if (!opened.directory.merchant(merchantId)) return refuseCommand(`There is no merchant ${merchantId}.`)
        const count = await retryReceipts(opened, merchantId, from)
        process.stdout.write(`${count} files are tried again.\n`)
      }),
    )
}
