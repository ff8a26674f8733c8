// How long everything in the database stays: what ends by a rule, in all rooms, and what does not, with the reason. A table that stands in neither grows by
// accident; the test of retention names it.

import { keptByAudit } from '../audit/kept.ts'
import { chainsOfClearing, keptByClearing } from '../clearing/kept.ts'
import { chainsOfNotifications, keptByNotifications } from '../notifications/kept.ts'
import { chainsOfPayments, keptByPayments } from '../payments/kept.ts'
import type { ChainTable } from '../payments/store/chainTable.ts'
import type { Kept } from '../platform/retention/kept.ts'
import { keptByRegistrations } from '../registrations/kept.ts'
import { chainsOfReporting, keptByReporting } from '../reporting/kept.ts'
import { chainsOfSlips } from '../slips/kept.ts'
import { keptByStaff } from '../staff/kept.ts'
import { cardsOfChains, keptCards } from '../vault/cardStore.ts'

export const allKept: readonly Kept[] = [
  ...keptCards,
  ...keptByPayments,
  ...keptByRegistrations,
  ...keptByNotifications,
  ...keptByReporting,
  ...keptByClearing,
  ...keptByStaff,
  ...keptByAudit,
]

/** Where a payment has rows: what is archived with it, and what keeps it from being archived. Its own row is the last to go. */
export const chainTables: readonly ChainTable[] = [
  ...chainsOfNotifications,
  ...chainsOfReporting,
  ...chainsOfClearing,
  ...chainsOfSlips,
  ...cardsOfChains,
  ...chainsOfPayments,
]

/** Tables that no rule of time empties, by the reason; those whose rows lose a part by a rule stand in both. */
// biome-ignore format: a reason in few lines
export const stays: readonly (readonly [why: string, tables: string])[] = [
  ['the books: payments, what was answered, what refers to them and what is found by them, until somebody archives their chain',
    'answers captures collected_captures events journal late_approvals payments receipts refund_transfers searched_payments settled_bookings slip_orders slips taken_back'],
  ['what stays of archived payments: where they are, and their sums by day',
    'archived_payments archives closing_sums'],
  ['so that no transaction of a bank or a wallet settles a second payment, also when its own is archived',
    'claimed_transactions'],
  ['payment details that a shopper keeps, and what days of acquirers came to',
    'day_totals registrations settled_days'],
  ['so that no file counts twice, and none is made twice',
    'capture_files chargeback_lines clearing_files clearing_lines order_files return_files transfer_files'],
  ['who did what, and why',
    'audit audit_head case_notes merchant_moves operator_cases staff_orders'],
  ['ends with what it is about: work that was done, an answer that came, a checkout a day after its end, an export after three days, an attempt with its notification, failed log-ins once they are told of',
    'checkout_attempts checkouts continuations delivery_attempts due_work exports file_pieces log_in_failures unanswered'],
  ['made by people, and a row for each thing that they made',
    'access_tokens endpoints entities passkeys recovery_codes report_schedules risk_entries saved_filters staff'],
  ['a row for each part of the installation',
    'beats credentials form_scripts installation key_checks migrations reporting_sources slip_numbers sweeps terminals trace_numbers'],
]
