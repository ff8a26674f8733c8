// Files of receipts, as due work that any process may take: one row for each merchant, which goes on from day to day, so that a day that ended while nothing ran
// is not left out. A file is owed from the end of its day until it is on the merchant's server, or is given up: then somebody should know.

import { openCase } from '../../payments/cases/cases.ts'
import { closeSettled } from '../../payments/cases/store.ts'
import type { PaymentParts } from '../../payments/parts.ts'
import type { DueHandler } from '../../platform/due/worker.ts'
import type { OpenSftp } from '../../platform/sftp/open.ts'
import { SftpError } from '../../platform/sftp/sftp.ts'
import { dayAfter } from '../reconciliation/day.ts'
import { type ContentParts, receiptFileName, receiptsOfDay } from './content.ts'
import { findOwed, insertReceiptFiles, insertWaitingMerchant, markDelivered, markFailed, type OwedFile } from './store.ts'

export type ReceiptFileParts = ContentParts &
  Pick<PaymentParts, 'clock' | 'random' | 'directory' | 'log'> & {
    readonly sftp: OpenSftp
  }

const minute = 60_000
/** So long after its end a day is over for receipts that were recorded at its last moment. */
const settledMinutes = 15
const pauseMinutesMost = 360
const givenUpAfterDays = 7
const daysAtOnce = 400

const dayOfTime = (milliseconds: number): string => new Date(milliseconds).toISOString().slice(0, 10)
/** When a day is over, business time. */
const overAt = (day: string): number => Date.parse(dayAfter(day)) + settledMinutes * minute

/** Called at every start: each merchant that wants files has a day that waits. */
export async function beginReceiptFiles({ directory, database, clock }: ReceiptFileParts): Promise<void> {
  const merchants = new Set(directory.channels().map(({ merchantId }) => merchantId))
  for (const id of merchants) {
    if (!directory.merchant(id)?.settings.receiptFiles) continue
    const now = directory.businessTime(id)
    const day = dayOfTime(now)
    await insertWaitingMerchant(database.work, id, day, clock.real() + overAt(day) - now)
  }
}

/** Due work of kind `receiptFiles`. */
export const deliverReceipts: DueHandler<ReceiptFileParts> = async (parts, { merchantId, details }) => {
  const { database, clock, directory } = parts
  const settings = directory.merchant(merchantId)?.settings.receiptFiles
  if (!settings) return 'done' // a start with the setting begins again
  const now = directory.businessTime(merchantId)
  let { day } = details as { day: string }
  const over: string[] = []
  for (; overAt(day) <= now && over.length < daysAtOnce; day = dayAfter(day)) over.push(day)
  if (over.length > 0) await insertReceiptFiles(database.work, merchantId, over, settings.forms, clock.real())
  const owed = await findOwed(database.work, merchantId)
  const failed = owed.length > 0 ? await deliverAll(parts, merchantId, owed) : []
  const nextDay = clock.real() + Math.max(0, overAt(day) - now)
  const pauses = failed.map(({ attempts }) => Math.min(2 ** attempts, pauseMinutesMost) * minute)
  return { again: Math.min(nextDay, ...pauses.map(pause => clock.real() + pause)), details: { day } }
}

/** In one session, the oldest first. Those that failed and are owed still; one that its server does not take keeps no other waiting. */
async function deliverAll(parts: ReceiptFileParts, merchantId: string, owed: readonly OwedFile[]): Promise<OwedFile[]> {
  const settings = parts.directory.merchant(merchantId)!.settings.receiptFiles!
  const left = new Set(owed)
  const failed: OwedFile[] = []
  const fail = async (file: OwedFile, error: Error) => {
    if (!(error instanceof SftpError)) throw error
    left.delete(file)
    failed.push(...(await noteFailure(parts, file, error)))
  }
  try {
    await parts.sftp(
      settings,
      async server => {
        for (const file of owed) {
          const { day, form } = file
          const { receipts, bytes } = await receiptsOfDay(parts, merchantId, day, form)
          const path = `${settings.folder}/${receiptFileName(merchantId, day, form)}`
          const put = await server.put(path, bytes).catch((error: Error) => fail(file, error).then(() => 'failed' as const))
          if (put === 'failed') continue
          await markDelivered(parts.database.work, file, receipts, parts.clock.real())
          await closeSettled(parts.database.work, aboutFile(file), parts.clock.real(), 'gateway', 'it was delivered')
          left.delete(file)
        }
      },
      { guarded: true },
    )
  } catch (error) {
    for (const file of [...left]) await fail(file, error as Error)
  }
  return failed
}

/** Nothing when it was the last attempt. */
async function noteFailure(parts: ReceiptFileParts, file: OwedFile, error: SftpError): Promise<OwedFile[]> {
  const { database, clock, log } = parts
  const now = clock.real()
  const isLast = now - file.madeAt > givenUpAfterDays * 24 * 60 * minute
  await markFailed(database.work, file, error.message, isLast ? now : undefined)
  log.warn({ why: `receipts of ${file.day}: ${error.message}`, attempt: file.attempts + 1 }, 'a file could not be delivered')
  if (isLast || error.about === 'identity')
    await openCase(database.work, parts, { ...aboutFile(file), details: { day: file.day, form: file.form, why: error.message } })
  return isLast ? [] : [{ ...file, attempts: file.attempts + 1 }]
}

const aboutFile = ({ merchantId, day, form }: OwedFile) =>
  ({ merchantId, kind: 'receiptFile', subject: receiptFileName(merchantId, day, form) }) as const
