// Files of receipts, as due work that any process may take: one row for each merchant that wants them.

import { type Recorder, record } from '../../audit/chain.ts'
import { type Database, inTransaction } from '../../platform/database/connect.ts'
import type { DueHandler } from '../../platform/due/worker.ts'
import { type OwedParts, overAt, sftpTarget, workOff } from '../owedFiles/deliver.ts'
import { periodOf } from '../owedFiles/period.ts'
import { insertWaiting, oweAgain } from '../owedFiles/store.ts'
import { type ContentParts, type ReceiptForm, receiptFileName, receiptsOfDay } from './content.ts'

export type ReceiptFileParts = ContentParts & OwedParts

/** What stands in the place of a schedule. */
export const receiptSource = '0'.repeat(32)

/** Called at every start: each merchant that wants files has a day that waits. */
export async function beginReceiptFiles({
  directory,
  database,
  clock,
}: Pick<ReceiptFileParts, 'directory' | 'database' | 'clock'>): Promise<void> {
  const merchants = new Set(directory.channels().map(({ merchantId }) => merchantId))
  for (const id of merchants) {
    if (!directory.merchant(id)?.settings.receiptFiles) continue
    const now = directory.businessTime(id)
    const day = periodOf('day', now)
    await insertWaiting(database.work, 'receiptFiles', id, id, day, clock.real() + overAt('day', day) - now)
  }
}

/** Those that were given up since a day are tried again; how many those are. */
export const retryReceipts = (
  parts: Recorder & { readonly database: Pick<Database, 'work'> },
  merchantId: string,
  from: string,
): Promise<number> =>
  inTransaction(parts.database.work, async db => {
    const now = parts.clock.real()
    const count = await oweAgain(db, merchantId, receiptSource, from, now)
    await insertWaiting(db, 'receiptFiles', merchantId, merchantId, new Date(now).toISOString().slice(0, 10), now)
    await record(db, parts, [{ action: 'filesOwedAgain', entityId: merchantId, details: { from, count } }])
    return count
  })

/** Due work of kind `receiptFiles`. */
export const deliverReceipts: DueHandler<ReceiptFileParts> = async (parts, { merchantId, details }) => {
  const settings = parts.directory.merchant(merchantId)?.settings.receiptFiles
  if (!settings) return 'done' // a start with the setting begins again
  const { forms, ...place } = settings
  const { day } = details as { day: string }
  return workOff(
    parts,
    {
      ownerId: merchantId,
      source: receiptSource,
      every: 'day',
      forms,
      target: sftpTarget(parts, place),
      about: { merchantId, kind: 'receiptFile' },
      name: ({ day, form }) => receiptFileName(merchantId, day, form as ReceiptForm),
      content: ({ day, form }) => receiptsOfDay(parts, merchantId, day, form as ReceiptForm),
    },
    day,
  )
}
