// What payments show the operator.

import { Gauge, type Registry } from 'prom-client'
import type { Clock } from '../platform/clock.ts'
import type { Database } from '../platform/database/connect.ts'
import { countBy } from '../platform/metrics.ts'
import { differenceKinds } from './cases/cases.ts'
import { countOpenCases } from './cases/store.ts'
import { countOpenReversals } from './ledger/store.ts'

export type PaymentCount = {
  /** The outcome of a payment request, or `refused` when nothing was stored. */
  payment(outcome: string): void
}

export const countPayments = (registry: Registry): PaymentCount => ({
  payment: countBy(registry, 'tollgate_payments_total', 'Payment requests by outcome.', 'outcome'),
})

/** Read at every scrape. */
export function measureReversals(registry: Registry, { reports }: Pick<Database, 'reports'>, clock: Clock): () => Promise<void> {
  const registers = [registry]
  const open = new Gauge({ name: 'tollgate_reversals_open', help: 'Reversals that nobody has acknowledged.', registers })
  const oldest = new Gauge({
    name: 'tollgate_reversals_age_seconds',
    help: 'How old the oldest payment is whose reversal nobody has acknowledged.',
    registers,
  })
  const differences = new Gauge({
    name: 'tollgate_acquirer_differences_open',
    help: 'What acquirers and we do not agree on: operator cases that nobody has closed.',
    registers,
  })
  return async () => {
    differences.set((await countOpenCases(reports, differenceKinds)).count)
    const now = clock.real()
    const { count, since } = await countOpenReversals(reports)
    open.set(count)
    oldest.set(since === null ? 0 : (now - since) / 1000)
  }
}
