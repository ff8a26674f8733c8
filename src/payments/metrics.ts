// What payments show the operator.

import { Counter, type Registry } from 'prom-client'

export type PaymentCount = {
  /** The outcome of a payment request, or `refused` when nothing was stored. */
  payment(outcome: string): void
}

export function countPayments(registry: Registry): PaymentCount {
  const payments = new Counter({
    name: 'tollgate_payments_total',
    help: 'Payment requests by outcome.',
    labelNames: ['outcome'],
    registers: [registry],
  })
  return { payment: outcome => payments.inc({ outcome }) }
}
