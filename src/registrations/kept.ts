// What registrations keep for a time, beside themselves.

import { keyHours } from '../payments/kept.ts'
import type { Kept } from '../platform/retention/kept.ts'

// By the time of their merchants, which only a sandbox moves.
// biome-ignore format: a kind in few lines
export const keptByRegistrations: readonly Kept[] = [
  { kind: 'registrationHashes', what: 'hashes of the requests that made registrations, and of their cards where an older version left some', table: 'registrations', key: 'owner_id, id',
    since: 'made_at', where: '(fingerprint is not null or key_fingerprint is not null)', forgets: 'fingerprint = null, key_fingerprint = null',
    days: keyHours / 24, why: 'So long an idempotency key is good.' },
]
