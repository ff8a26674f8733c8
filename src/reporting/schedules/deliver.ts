// Scheduled reports, as due work that any process may take: one row for each schedule. What a period gave may be added to later (a settlement file says more of
// a payment), so the bytes are kept from the moment at which they were made first: whatever is tried again is the same file.

import { nobody } from '../../payments/cases/cases.ts'
import { timeOrderedId } from '../../platform/clock.ts'
import { inTransaction } from '../../platform/database/connect.ts'
import type { DueHandler } from '../../platform/due/worker.ts'
import { type FileContent, type OwedFile, type OwedParts, sftpTarget, workOff } from '../owedFiles/deliver.ts'
import { findPiece, insertPieces, keepFile } from '../owedFiles/store.ts'
import { reportContent, type ScheduledContentParts } from './content.ts'
import type { ReportSchedule } from './schedule.ts'
import { findSchedule } from './store.ts'

export type ScheduledReportParts = OwedParts & ScheduledContentParts

/** Due work of kind `scheduledReport`. */
export const deliverScheduled: DueHandler<ScheduledReportParts> = async (parts, { merchantId: ownerId, subjectId, details }) => {
  const schedule = await findSchedule(parts.database.work, ownerId, subjectId)
  if (!schedule || schedule.endedAt !== null) return 'done'
  const { settings } = schedule
  const { every, form } = settings
  return workOff(
    parts,
    {
      ownerId,
      source: subjectId,
      every,
      forms: [form],
      target: sftpTarget(parts, settings),
      // A case of no merchant is seen by those who act for the PSP.
      about: { merchantId: parts.directory.merchant(ownerId) ? ownerId : nobody, kind: 'reportFile' },
      name: ({ day }) => reportFileName(schedule, day),
      content: file => keptContent(parts, schedule, file),
    },
    (details as { day: string }).day,
  )
}

export const reportFileName = ({ ownerId, id, settings }: ReportSchedule, day: string): string =>
  `${settings.report}_${ownerId}_${settings.every}_${day}_${id.slice(-8)}.${settings.form}`

const pieceBytes = 1024 * 1024

async function keptContent(parts: ScheduledReportParts, schedule: ReportSchedule, file: OwedFile): Promise<FileContent> {
  const { database, clock, random } = parts
  if (file.fileId !== null) return { records: file.records!, bytes: await readKept(parts, file.fileId) }
  const content = await reportContent(parts, { ...schedule.settings, ownerId: schedule.ownerId, day: file.day })
  const fileId = timeOrderedId(clock.real(), random)
  await inTransaction(database.work, async db => {
    if (!(await keepFile(db, file, fileId, content.records))) throw new Error('another process has made this report')
    for (let at = 0; at * pieceBytes < content.bytes.length; at++)
      await insertPieces(db, fileId, at, [content.bytes.subarray(at * pieceBytes, (at + 1) * pieceBytes)])
  })
  return content
}

async function readKept({ database }: ScheduledReportParts, fileId: string): Promise<Buffer> {
  const pieces: Buffer[] = []
  for (;;) {
    const piece = await findPiece(database.work, fileId, pieces.length)
    if (!piece) return Buffer.concat(pieces)
    pieces.push(piece)
  }
}
