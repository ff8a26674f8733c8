// Scheduled reports, as due work that any process may take: one row for each schedule. What a period gave may be added to later (a settlement file says more of
// a payment): whatever is tried again is the same file, because its bytes are kept.

import { nobody } from '../../payments/cases/cases.ts'
import type { DueHandler } from '../../platform/due/worker.ts'
import { type OwedParts, sftpTarget, workOff } from '../owedFiles/deliver.ts'
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
      content: ({ day }) => reportContent(parts, { ...settings, ownerId, day }),
    },
    (details as { day: string }).day,
  )
}

export const reportFileName = ({ ownerId, id, settings }: ReportSchedule, day: string): string =>
  `${settings.report}_${ownerId}_${settings.every}_${day}_${id.slice(-8)}.${settings.form}`
