// What the archive shows the operator.

import type { Clock } from '../platform/clock.ts'
import type { Database } from '../platform/database/connect.ts'
import { gauge, type Measure } from '../platform/metrics.ts'
import { findArchives } from './store.ts'

export function measureArchive({ work }: Pick<Database, 'work'>, clock: Clock): Measure {
  const now = { payments: 0, unfinished: 0 }
  return {
    name: 'archive',
    figures: [
      gauge(
        'tollgate_archived_payments',
        'Payments that are in files of the archive, and not in the database.',
        () => now.payments,
      ),
      gauge(
        'tollgate_archive_unfinished_seconds',
        'How long ago an archive was begun that is not finished.',
        () => now.unfinished,
      ),
    ],
    async measure() {
      const archives = await findArchives(work)
      now.payments = archives.reduce((sum, { payments }) => sum + payments, 0)
      const begun = archives.find(({ endedAt }) => endedAt === null)
      now.unfinished = begun ? Math.max(0, (clock.real() - begun.beganAt) / 1000) : 0
    },
  }
}
