// tollgate search: payments by whatever is known of them, as in one box; and writing what is searched anew.

import type { Command } from 'commander'
import { findArchived } from '../archive/store.ts'
import { tellAndDo } from '../audit/act.ts'
import { amountText } from '../contract/amounts.ts'
import { rebuildSearch, searchPayments } from '../reporting/search/search.ts'
import { namedExactly, understand } from '../reporting/search/terms.ts'
import { wholeNumber } from './choices.ts'
import { type CommandParts, looksLikeId, seeReporting, table, timeText, withOpened } from './open.ts'
import { type ReadOptions, reads, show, timeField } from './reads.ts'

export default (program: Command): void => {
  const search = program.command('search').description('finds payments')

  const find = search
    .command('find <words...>')
    .description(
      'ids, amounts, days (2026-01-31, 2026-01-01..2026-01-31), brands, types, results, e-mail, last four digits, references; all words hold together',
    )
    .option('--limit <count>', 'how many', wholeNumber(1, 1000), 20)
  reads(find, {
    'payments[]':
      'paymentId receivedAt merchantId channelId rootId type brand amount currency result outcome mode merchantTransactionId invoice bin lastFour descriptor slipNumber reference',
  }).action((words: string[], options: ReadOptions & { limit: number }) =>
    withOpened(async opened => {
      const merchants = [...new Set(opened.directory.channels().map(({ merchantId }) => merchantId))]
      await seeReporting(opened)
      const text = words.join(' ')
      const found = await searchPayments(opened, merchants, [...understand(text), ...namedExactly(text)], options.limit)
      const amount = (one: { amount: number | null }) => (one.amount === null ? null : amountText(one.amount))
      const payments = found.map(one => ({ ...one, amount: amount(one), receivedAt: timeField(one.receivedAt) }))
      for (const place of await archivedAmong(opened, merchants, words)) process.stderr.write(`${place}\n`)
      show(options, { payments }, () =>
        table([
          ['payment', 'time', 'type', 'brand', 'amount', '', 'result', 'transaction'],
          ...found.map(one => [
            one.paymentId,
            timeText(one.receivedAt),
            one.type,
            one.brand,
            amount(one),
            one.currency,
            one.result,
            one.merchantTransactionId,
          ]),
        ]),
      )
    }),
  )

  search
    .command('rebuild')
    .description('writes what is searched anew, beside a running gateway; payments are found all the while')
    .action(() =>
      withOpened(async opened => {
        const isSeen = process.stderr.isTTY
        await tellAndDo(opened.database.work, opened, { action: 'searchRebuilt' }, () =>
          rebuildSearch(opened, waiting => isSeen && process.stderr.write(`\r${waiting} events to go   `)),
        )
        process.stdout.write(`${isSeen ? '\n' : ''}Payments are searchable as they are now.\n`)
      }),
    )
}

/** Whoever looks for a payment by its id hears where it went. */
async function archivedAmong({ database }: CommandParts, merchants: readonly string[], words: readonly string[]) {
  const ids = words.filter(looksLikeId)
  const places = await Promise.all(ids.map(id => findArchived(database.reports, merchants, id)))
  return places.flatMap((place, at) => (place ? [`The payment ${ids[at]} is archived, in ${place.name}.`] : []))
}
