// What the audit keeps for a time, beside its rows, which stay.

import type { Kept } from '../platform/retention/kept.ts'

// biome-ignore format: a kind in few lines
export const keptByAudit: readonly Kept[] = [
  { kind: 'knownPlaces', what: 'keyed hashes of the networks from which right passwords came', table: 'known_places', key: 'hash', since: 'seen_at',
    days: 90, range: [7, 3650], why: 'A password that comes from one of them need not wait while others guess at its user.' },
]
