// What clearing keeps for a time.

import type { ChainTable } from '../payments/store/chainTable.ts'
import type { Kept } from '../platform/retention/kept.ts'

// biome-ignore format: a kind in few lines
export const keptByClearing: readonly Kept[] = [
  { kind: 'bankFiles', what: 'sealed copies of what banks and store chains sent, with the names of payers', table: 'return_files', key: 'merchant_id, id', since: 'received_at',
    where: 'sealed is not null', forgets: 'sealed = null', days: 400, range: [90, 3650],
    why: 'They prove what a bank wrote when somebody doubts it. That a file came, its number and its hash stay: none counts twice.' },
]

// Which line of a report a chargeback was stays known: no line counts twice.
// biome-ignore format: a table in a line
export const chainsOfClearing: readonly ChainTable[] = [
  { table: 'collected_captures', holds: 't.sequence is null and t.outcome is null' },
  { table: 'settled_bookings' },
  { table: 'taken_back' },
  { table: 'receipts' },
  { table: 'slip_orders', holds: 't.sequence is null' },
  { table: 'chargeback_lines', stays: true },
]
