// What payments show the operator.

import type { Clock } from '../platform/clock.ts'
import type { Database } from '../platform/database/connect.ts'
import { countBy, type Figure, type FigureValue, gauge, type Measure } from '../platform/metrics.ts'
import { differenceKinds } from './cases/cases.ts'
import { countOpenCases } from './cases/store.ts'
import { countOpenReversals } from './ledger/store.ts'
import { consumers } from './outbox/outbox.ts'
import { measureWaiting } from './outbox/store.ts'

export type PaymentCount = {
  /** The outcome of a payment request, or `refused` when nothing was stored. */
  payment(outcome: string): void
}

export const countPayments = (figures: Figure[]): PaymentCount => ({
  payment: countBy(figures, 'tollgate_payments_total', 'Payment requests by outcome.', 'outcome'),
})

export function measureReversals({ work }: Pick<Database, 'work'>, clock: Clock): Measure {
  const now = { open: 0, oldest: 0, differences: 0 }
  return {
    name: 'reversals',
    figures: [
      gauge('tollgate_reversals_open', 'Reversals that nobody has acknowledged, at most 10000.', () => now.open),
      gauge(
        'tollgate_reversals_age_seconds',
        'How old the oldest payment is whose reversal nobody has acknowledged.',
        () => now.oldest,
      ),
      gauge(
        'tollgate_acquirer_differences_open',
        'What acquirers and we do not agree on: operator cases that nobody has closed.',
        () => now.differences,
      ),
    ],
    async measure() {
      now.differences = (await countOpenCases(work, differenceKinds)).count
      const at = clock.real()
      const { count, since } = await countOpenReversals(work)
      now.open = count
      now.oldest = since === null ? 0 : (at - since) / 1000
    },
  }
}

/** What each consumer of events has not taken yet. */
export function measureOutbox({ work }: Pick<Database, 'work'>, clock: Clock): Measure {
  let waiting: FigureValue[] = []
  let oldest: FigureValue[] = []
  return {
    name: 'outbox',
    figures: [
      {
        kind: 'gauge',
        name: 'tollgate_outbox_waiting',
        help: 'Events that a consumer has not taken yet, at most 10000.',
        read: () => waiting,
      },
      {
        kind: 'gauge',
        name: 'tollgate_outbox_age_seconds',
        help: 'How old the oldest event is that a consumer has not taken yet.',
        read: () => oldest,
      },
    ],
    async measure() {
      const at = clock.real()
      const found = await Promise.all(
        Object.entries(consumers).map(async ([consumer, one]) => ({ consumer, ...(await measureWaiting(work, one)) })),
      )
      waiting = found.map(({ consumer, count }) => [{ consumer }, count])
      oldest = found.map(({ consumer, since }) => [{ consumer }, since === null ? 0 : (at - since) / 1000])
    },
  }
}
