// How long everything in the database stays: what ends by a rule, in all rooms, and what does not, with the reason. A table that stands in neither grows by
// accident; the test of retention names it.

import { keptByClearing } from '../clearing/kept.ts'
import { keptByNotifications } from '../notifications/kept.ts'
import { keptByPayments } from '../payments/kept.ts'
import type { Kept } from '../platform/retention/kept.ts'
import { keptByReporting } from '../reporting/kept.ts'
import { keptByStaff } from '../staff/kept.ts'
import { keptCards } from '../vault/cardStore.ts'

export const allKept: readonly Kept[] = [
  ...keptCards,
  ...keptByPayments,
  ...keptByNotifications,
  ...keptByReporting,
  ...keptByClearing,
  ...keptByStaff,
]

/** Tables that no rule of time empties, by the reason; those whose rows lose a part by a rule stand in both. */
// biome-ignore format: a reason in few lines
export const stays: readonly (readonly [why: string, tables: string])[] = [
  ['the books: payments, what was answered, what refers to them and what is found by them; a new consumer of events begins with the first',
    'answers captures chargeback_lines collected_captures day_totals events journal late_approvals payments receipts refund_transfers registrations searched_payments settled_bookings settled_days slip_orders slips taken_back'],
  ['so that no file counts twice, and none is made twice',
    'capture_files clearing_files clearing_lines order_files return_files transfer_files'],
  ['who did what, and why',
    'audit audit_head case_notes operator_cases staff_orders'],
  ['ends with what it is about: work that was done, an answer that came, a checkout a day after its end, an export after three days, an attempt with its notification, failed log-ins once they are told of',
    'checkout_attempts checkouts continuations delivery_attempts due_work exports file_pieces log_in_failures unanswered'],
  ['made by people, and a row for each thing that they made',
    'access_tokens endpoints entities passkeys recovery_codes report_schedules risk_entries saved_filters staff'],
  ['a row for each part of the installation',
    'credentials form_scripts installation key_checks migrations slip_numbers sweeps terminals'],
]
