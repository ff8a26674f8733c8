// What payments keep for a time, beside the payments themselves.

import type { Kept } from '../platform/retention/kept.ts'
import { eraseSecrets } from './redirects/store.ts'
import { attemptDays } from './risk/store.ts'
import type { ChainTable } from './store/chainTable.ts'
import { erasePendingAnswers } from './store/pendingAnswers.ts'
import { eraseDetails } from './transfers/store.ts'

/** So long an idempotency key is good, in real time. */
export const keyHours = 72

// biome-ignore format: a kind in few lines
export const keptByPayments: readonly Kept[] = [
  { kind: 'idempotencyKeys', what: 'idempotency keys with the hashes of their requests', table: 'idempotency_keys', key: 'merchant_id, key_hash', since: 'recorded_at',
    days: keyHours / 24, why: 'The interface promises that the same key pays once within 72 hours.' },
  { kind: 'shopperLinks', what: 'addresses that were handed to shoppers, as hashes', table: 'redirects', key: 'merchant_id, payment_id', since: 'made_at',
    days: 30, range: [4, 400], why: 'A shopper who comes back later finds no way to the shop any more.' },
  { kind: 'pendingAnswers', what: 'sealed answers of payments that waited, once the payments are answered', table: 'pending_answers', key: 'merchant_id, payment_id',
    since: 'payment_id', ids: true, statement: erasePendingAnswers,
    days: 90, range: [31, 3650], why: 'Their notifications are tried for 30 days and tell them as they were given; later ones are told from the payment.' },
  { kind: 'bankDetails', what: 'sealed bank details of refunds that have ended', table: 'refund_transfers', key: 'merchant_id, payment_id', since: 'ordered_at', where: 'sealed is not null',
    forgets: 'sealed = null', statement: eraseDetails, days: 180, range: [30, 3650], why: 'So long somebody may ask where a refund went.' },
  { kind: 'riskAttempts', what: 'attempts that the risk check counts', table: 'risk_attempts', key: 'merchant_id, kind, subject, attempted_at, payment_id', since: 'attempted_at',
    days: attemptDays, why: 'The longest window of a risk rule is a week.' },
  { kind: 'challengeSecrets', what: 'sealed CVVs of challenges that go on', table: 'challenge_secrets', key: 'merchant_id, payment_id', since: 'erase_after', erase: eraseSecrets,
    days: 0, everyMinutes: 1, why: 'Card rules forbid to keep them: ten minutes at most, and a minute more in the file of the table (longer only while somebody reads that table in a transaction, as a dump does).' },
]

// What is archived with a payment, and what keeps it from being archived.
// biome-ignore format: a table in a line
export const chainsOfPayments: readonly ChainTable[] = [
  { table: 'payments', payment: 'id' },
  { table: 'answers' },
  { table: 'captures' },
  { table: 'events', holds: 't.notified is null or t.searched is null' },
  { table: 'journal' },
  { table: 'late_approvals', holds: 't.acknowledged_at is null' },
  { table: 'refund_transfers', holds: 't.sequence is null or t.sealed is not null' },
  { table: 'due_work', payment: 'subject_id', holds: 'true', stays: true },
  { table: 'unanswered', holds: 'true', stays: true },
  { table: 'continuations', holds: 'true', stays: true },
  { table: 'staff_orders', holds: 't.waits and t.decision is null', stays: true },
  { table: 'operator_cases', payment: 'subject', isText: true, holds: 't.closed_at is null', stays: true },
  { table: 'claimed_transactions', stays: true },
  { table: 'idempotency_keys', stays: true },
  { table: 'redirects', stays: true },
  { table: 'pending_answers', stays: true },
  { table: 'risk_attempts', stays: true },
  { table: 'challenge_secrets', stays: true },
]
