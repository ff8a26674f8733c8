// What the way to the database shows the operator.

import { distribution, type Figure, type FigureValue, gauge, type Measure } from '../metrics.ts'
import { type Database, type PoolName, poolNames } from './connect.ts'
import { pieceNumber } from './embedded/walArchive.ts'
import { waitingFor } from './fairPool.ts'
import { type BatchCount, batchMax } from './groupCommit.ts'

type PoolNumbers = { readonly size: number; readonly idle: number; readonly waiting: number; readonly most: number }

/** The connections of this process: in use, idle and how many there may be, and who waits for one. */
export function figuresOfPools(database: Database): Figure[] {
  const of = (name: string, help: string, values: (pool: PoolNumbers) => Readonly<Record<string, number>>): Figure => ({
    kind: 'gauge',
    name,
    help,
    read: () =>
      poolNames.flatMap(pool =>
        Object.entries(values(numbersOf(database, pool))).map(
          ([state, value]): FigureValue => [{ pool, ...(state !== '' && { state }) }, value],
        ),
      ),
  })
  return [
    of('tollgate_database_connections', 'Connections to the database by pool and state.', ({ size, idle }) => ({
      used: size - idle,
      idle,
    })),
    of('tollgate_database_connections_max', 'How many connections a pool may have.', ({ most }) => ({ '': most })),
    of('tollgate_database_waiting', 'Who waits for a connection of a pool.', ({ waiting }) => ({ '': waiting })),
  ]
}

function numbersOf(database: Database, name: PoolName): PoolNumbers {
  const { totalCount: size, idleCount: idle, options } = database[name]
  return { size, idle, waiting: waitingFor(database[name]), most: options.max ?? 0 }
}

/** Powers of two: every second size of the statements. */
const rowBounds = Array.from({ length: Math.log2(batchMax) + 1 }, (_, power) => 2 ** power)

/** Batches of the lanes, by the name of the lane. */
export function countBatches(figures: Figure[]): (lane: string) => BatchCount {
  const rows = distribution(figures, 'tollgate_batch_rows', 'How many rows were written together, by lane.', ['lane'], rowBounds)
  const waited = distribution(
    figures,
    'tollgate_batch_wait_seconds',
    'How long the first row of a batch waited for its turn, by lane.',
    ['lane'],
  )
  return lane => (count, seconds) => {
    rows(count, lane)
    waited(seconds, lane)
  }
}

/** Pieces of WAL that the server has ended and the archive in BACKUP_DIR has not taken. One waits for a moment each minute. */
export function measureWal({ work }: Pick<Database, 'work'>): Measure {
  let behind = 0
  return {
    name: 'wal',
    figures: [
      gauge('tollgate_wal_behind', 'Pieces of WAL, of 16 MB or a minute, that BACKUP_DIR has not taken yet.', () => behind),
    ],
    async measure() {
      const { rows } = await work.query<{ writing: string; taken: string | null; failed: string | null }>(
        `select pg_walfile_name(pg_current_wal_lsn()) as writing, substring(last_archived_wal from '^\\w{24}') as taken,
                case when last_failed_time > coalesce(last_archived_time, '-infinity') then substring(last_failed_wal from '^\\w{24}') end as failed
           from pg_stat_archiver`,
      )
      const { writing, taken, failed } = rows[0]!
      const next = failed !== null ? pieceNumber(failed) : taken !== null ? pieceNumber(taken) + 1 : pieceNumber(writing)
      behind = Math.max(0, pieceNumber(writing) - next)
    },
  }
}
