// What notifications show the operator.

import { Gauge, type Registry } from 'prom-client'
import type { Clock } from '../platform/clock.ts'
import type { Database } from '../platform/database/connect.ts'
import { countBy, type Measure } from '../platform/metrics.ts'
import { checkNotifications } from './deliveries/check.ts'
import { measureBacklog } from './deliveries/store.ts'

export type AttemptCount = {
  /** How an attempt to notify ended. */
  attempt(ended: 'acknowledged' | 'failed' | 'given up'): void
}

export const countAttempts = (registry: Registry): AttemptCount => ({
  attempt: countBy(registry, 'tollgate_notification_attempts_total', 'Attempts to notify by how they ended.', 'ended'),
})

/** Counting everything ever delivered takes a while: not at every scrape. */
const checkEveryMilliseconds = 60_000

export function measureDeliveries(registry: Registry, database: Database, clock: Clock): Measure {
  const registers = [registry]
  const deliveries = new Gauge({ name: 'tollgate_notifications', help: 'Deliveries by state.', labelNames: ['state'], registers })
  const emitted = new Gauge({
    name: 'tollgate_notifications_emitted',
    help: 'Deliveries ever made, counted where they are made.',
    registers,
  })
  const unaccounted = new Gauge({
    name: 'tollgate_notifications_unaccounted',
    help: 'Emitted, but neither acknowledged, scheduled nor given up; acknowledged without proof; or lost. Anything but 0 is a defect.',
    registers,
  })
  const waiting = new Gauge({ name: 'tollgate_events_waiting', help: 'Events not yet turned into deliveries.', registers })
  const due = new Gauge({ name: 'tollgate_notifications_due', help: 'Deliveries whose time has come.', registers })
  const oldest = new Gauge({
    name: 'tollgate_notifications_backlog_age_seconds',
    help: 'How long the oldest due delivery has waited.',
    registers,
  })
  let checkedAt = Number.NEGATIVE_INFINITY

  return async () => {
    const db = database.reports
    const backlog = await measureBacklog(db, clock.real())
    due.set(backlog.due)
    oldest.set(backlog.oldest / 1000)
    if (clock.elapsed() - checkedAt < checkEveryMilliseconds) return
    const { endpoints, waiting: events } = await checkNotifications(database.reports)
    checkedAt = clock.elapsed()
    const sum = (pick: (one: (typeof endpoints)[number]) => number) => endpoints.reduce((total, one) => total + pick(one), 0)
    deliveries.set(
      { state: 'acknowledged' },
      sum(one => one.acknowledged),
    )
    deliveries.set(
      { state: 'scheduled' },
      sum(one => one.scheduled),
    )
    deliveries.set(
      { state: 'given up' },
      sum(one => one.givenUp),
    )
    emitted.set(sum(one => one.emitted))
    unaccounted.set(sum(one => Math.abs(one.unaccounted) + one.withoutProof + one.lost))
    waiting.set(events)
  }
}
