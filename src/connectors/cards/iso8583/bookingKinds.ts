// What moves cleared money, as acquirers count it.

/** Purchases and captures are debits, refunds and payouts credits. */
export const bookingKinds = ['debit', 'debitReversal', 'credit', 'creditReversal'] as const
export type BookingKind = (typeof bookingKinds)[number]
