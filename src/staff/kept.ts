// What the back office keeps for a time of those who work with it.

import type { Kept } from '../platform/retention/kept.ts'

/** Of somebody of the staff, however busy. */
export const sessionHours = 12
/** So long an order may be approved, or carried out again: shorter than keys of requests are kept. */
export const approvalHours = 24
/** So long attempts to sign in count. */
export const attemptsMinutes = 30

// biome-ignore format: a kind in few lines
export const keptByStaff: readonly Kept[] = [
  { kind: 'orderDetails', what: 'sealed bank details of orders that nobody decided in time', table: 'staff_orders', key: 'merchant_id, id', since: 'asked_at', where: 'sealed is not null',
    forgets: 'sealed = null', days: approvalHours / 24, why: 'An order may be approved for 24 hours.' },
  { kind: 'staffSessions', what: 'sessions', table: 'staff_sessions', key: 'hash', since: 'begun_at',
    days: sessionHours / 24, why: 'A session ends after 12 hours.' },
  { kind: 'staffLinks', what: 'links that nobody used', table: 'staff_links', key: 'hash', since: 'ends_at',
    days: 0, why: 'A link says itself when it ends: after 24 hours.' },
  { kind: 'signInAttempts', what: 'counts of attempts to sign in', table: 'sign_in_attempts', key: 'subject', since: 'since',
    days: attemptsMinutes / 1440, why: 'Attempts of half an hour count.' },
  { kind: 'passkeyChallenges', what: 'challenges of passkeys that were answered', table: 'answered_challenges', key: 'hash', since: 'ends_at',
    days: 0, why: 'A challenge says itself when it ends; until then it is answered once.' },
]
