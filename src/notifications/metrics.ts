// What notifications show the operator.

import type { Clock } from '../platform/clock.ts'
import type { Database } from '../platform/database/connect.ts'
import { countBy, type Figure, type FigureValue, gauge, type Measure } from '../platform/metrics.ts'
import { checkNotifications } from './deliveries/check.ts'
import { measureBacklog } from './deliveries/store.ts'

export type AttemptCount = {
  /** How an attempt to notify ended. */
  attempt(ended: 'acknowledged' | 'failed' | 'given up'): void
}

export const countAttempts = (figures: Figure[]): AttemptCount => ({
  attempt: countBy(figures, 'tollgate_notification_attempts_total', 'Attempts to notify by how they ended.', 'ended'),
})

/** Counting everything ever delivered takes a while: not at every scrape. */
const checkEveryMilliseconds = 60_000

export function measureDeliveries(database: Database, clock: Clock): Measure {
  const now = { due: 0, oldest: 0, emitted: 0, unaccounted: 0, waiting: 0, states: [] as FigureValue[] }
  let checkedAt = Number.NEGATIVE_INFINITY
  return {
    figures: [
      { kind: 'gauge', name: 'tollgate_notifications', help: 'Deliveries by state.', labels: ['state'], read: () => now.states },
      gauge('tollgate_notifications_emitted', 'Deliveries ever made, counted where they are made.', () => now.emitted),
      gauge(
        'tollgate_notifications_unaccounted',
        'Emitted, but neither acknowledged, scheduled nor given up; acknowledged without proof; or lost. Anything but 0 is a defect.',
        () => now.unaccounted,
      ),
      gauge('tollgate_events_waiting', 'Events not yet turned into deliveries.', () => now.waiting),
      gauge('tollgate_notifications_due', 'Deliveries whose time has come.', () => now.due),
      gauge('tollgate_notifications_backlog_age_seconds', 'How long the oldest due delivery has waited.', () => now.oldest),
    ],
    async measure() {
      const db = database.reports
      const backlog = await measureBacklog(db, clock.real())
      now.due = backlog.due
      now.oldest = backlog.oldest / 1000
      if (clock.elapsed() - checkedAt < checkEveryMilliseconds) return
      const { endpoints, waiting } = await checkNotifications(db)
      checkedAt = clock.elapsed()
      const sum = (pick: (one: (typeof endpoints)[number]) => number) => endpoints.reduce((total, one) => total + pick(one), 0)
      now.states = [
        [{ state: 'acknowledged' }, sum(one => one.acknowledged)],
        [{ state: 'scheduled' }, sum(one => one.scheduled)],
        [{ state: 'given up' }, sum(one => one.givenUp)],
      ]
      now.emitted = sum(one => one.emitted)
      now.unaccounted = sum(one => Math.abs(one.unaccounted) + one.withoutProof + one.lost)
      now.waiting = waiting
    },
  }
}
