// What notifications show the operator.

import type { Clock } from '../platform/clock.ts'
import type { Database } from '../platform/database/connect.ts'
import type { Log } from '../platform/log.ts'
import { countBy, type Figure, type FigureValue, gauge, type Measure } from '../platform/metrics.ts'
import { checkNotifications } from './deliveries/check.ts'
import { measureBacklog } from './deliveries/store.ts'

export type AttemptCount = {
  /** How an attempt to notify ended. */
  attempt(ended: 'acknowledged' | 'failed' | 'given up'): void
}

export const countAttempts = (figures: Figure[]): AttemptCount => ({
  attempt: countBy(figures, 'tollgate_notification_attempts_total', 'Attempts to notify by how they ended.', 'ended', [
    'acknowledged',
    'failed',
    'given up',
  ]),
})

/** Counting everything ever delivered takes a while: it runs beside the scrapes, on a connection of its own, and rests sixty times as long as it took, a minute at least. */
const checkEveryMilliseconds = 60_000
const restsTimes = 60

export function measureDeliveries({ work, reports }: Pick<Database, 'work' | 'reports'>, clock: Clock, log: Log): Measure {
  const now = { scheduled: 0, due: 0, oldest: 0, emitted: 0, unaccounted: 0, states: [] as FigureValue[] }
  let checkAt = Number.NEGATIVE_INFINITY
  const check = async (): Promise<void> => {
    const began = clock.elapsed()
    checkAt = Number.POSITIVE_INFINITY
    const { endpoints } = await checkNotifications(reports).finally(() => {
      checkAt = clock.elapsed() + Math.max(checkEveryMilliseconds, restsTimes * (clock.elapsed() - began))
    })
    const sum = (pick: (one: (typeof endpoints)[number]) => number) => endpoints.reduce((total, one) => total + pick(one), 0)
    now.states = [
      [{ state: 'acknowledged' }, sum(one => one.acknowledged)],
      [{ state: 'scheduled' }, sum(one => one.scheduled)],
      [{ state: 'given up' }, sum(one => one.givenUp)],
    ]
    now.emitted = sum(one => one.emitted)
    now.unaccounted = sum(one => Math.abs(one.unaccounted) + one.withoutProof + one.lost)
  }
  return {
    name: 'deliveries',
    figures: [
      { kind: 'gauge', name: 'tollgate_notifications', help: 'Deliveries by state.', read: () => now.states },
      gauge('tollgate_notifications_emitted', 'Deliveries ever made, counted where they are made.', () => now.emitted),
      gauge(
        'tollgate_notifications_unaccounted',
        'Emitted, but neither acknowledged, scheduled nor given up; acknowledged without proof; or lost. Anything but 0 is a defect.',
        () => now.unaccounted,
      ),
      gauge('tollgate_notifications_scheduled', 'Deliveries that wait, of each endpoint at most 10000.', () => now.scheduled),
      gauge('tollgate_notifications_due', 'Deliveries whose time has come, of each endpoint at most 10000.', () => now.due),
      gauge('tollgate_notifications_backlog_age_seconds', 'How long the oldest due delivery has waited.', () => now.oldest),
    ],
    async measure() {
      const backlog = await measureBacklog(work, clock.real())
      now.scheduled = backlog.scheduled
      now.due = backlog.due
      now.oldest = backlog.oldest / 1000
      if (clock.elapsed() > checkAt)
        check().catch((error: Error) => log.warn({ why: error.message }, 'the deliveries could not be counted'))
    },
  }
}
