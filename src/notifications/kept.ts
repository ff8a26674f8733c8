// What notifications keep for a time.

import type { Kept } from '../platform/retention/kept.ts'
import { eraseDeliveries } from './deliveries/store.ts'

// biome-ignore format: a kind in few lines
export const keptByNotifications: readonly Kept[] = [
  { kind: 'deliveries', what: 'notifications that were acknowledged or given up, with their attempts', table: 'deliveries', key: 'merchant_id, endpoint_id, position',
    since: 'emitted_at', where: `state <> 'scheduled'`, statement: eraseDeliveries, days: 90, range: [31, 3650],
    why: 'They are tried for 30 days. The sums of notifications check count them further; replay tells their events anew, under a new number.' },
]
