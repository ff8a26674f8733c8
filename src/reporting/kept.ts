// What reporting keeps for a time.

import type { ChainTable } from '../payments/store/chainTable.ts'
import type { Kept } from '../platform/retention/kept.ts'
import { eraseOwed } from './owedFiles/store.ts'

// biome-ignore format: a kind in few lines
export const keptByReporting: readonly Kept[] = [
  { kind: 'requestRecords', what: 'masked records of requests', table: 'request_records', key: 'merchant_id, id', since: 'recorded_at',
    days: 7, range: [1, 400], why: 'Whoever looks for a mistake looks soon. Of each merchant the newest 10,000 are kept in any case at most.' },
  { kind: 'owedFiles', what: 'what became of files for servers of others', table: 'owed_files', key: 'owner_id, source, day, form', since: 'ended_at', where: 'ended_at is not null',
    statement: eraseOwed, days: 400, range: [31, 3650], why: 'What was given up may be ordered again until then; the sums of schedules count what is kept.' },
]

export const chainsOfReporting: readonly ChainTable[] = [
  { table: 'searched_payments' },
  { table: 'request_records', stays: true },
]
