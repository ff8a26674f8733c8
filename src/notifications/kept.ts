// What notifications keep for a time.

import type { ChainTable } from '../payments/store/chainTable.ts'
import type { Kept } from '../platform/retention/kept.ts'
import { eraseDeliveries } from './deliveries/store.ts'

// biome-ignore format: a kind in few lines
export const keptByNotifications: readonly Kept[] = [
  { kind: 'deliveries', what: 'notifications that were acknowledged or given up, with their attempts', table: 'deliveries', key: 'merchant_id, endpoint_id, position',
    since: 'emitted_at', where: `state <> 'scheduled'`, statement: eraseDeliveries, days: 90, range: [31, 3650],
    why: 'They are tried for 30 days. The sums of notifications check count them further; replay tells their events anew, under a new number.' },
]

// A notification is told from its payment as long as it may be told again. By endpoint, as its index is.
const ofEndpoints = 't.endpoint_id in (select e.id from endpoints e where e.merchant_id = t.merchant_id)'
export const chainsOfNotifications: readonly ChainTable[] = [
  { table: 'deliveries', holds: `not t.replay and ${ofEndpoints}`, stays: true },
  { table: 'deliveries', holds: 't.replay', stays: true },
]
