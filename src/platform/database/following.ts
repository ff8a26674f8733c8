// A database that others follow tells in a row of its own that it lives. In the copy that row says how old the copy is, and that it is a copy of this database
// and no other; so the way between the two, and who carries it, need not be asked.

import { type Clock, type Random, timeOrderedId } from '../clock.ts'
import type { Log } from '../log.ts'
import type { Figure, Measure } from '../metrics.ts'
import { type Connection, type Database, timeParameter } from './connect.ts'
import { isMigrated } from './migrate.ts'
import { type Following, lagOf, type Standing, toldLagSeconds } from './reporting.ts'

const everyMilliseconds = 2000

/** What an installation that is no cell calls its database. */
export const onlySource = 'database'

/** Tells that the database lives; of many processes the first in a second. */
export async function beat(db: Connection, now: number): Promise<void> {
  const [at, before] = [timeParameter(now), timeParameter(now - everyMilliseconds / 2)]
  await db.query('update beats set beat_at = $1 where beat_at <= $2', [at, before])
}

/** The name under which it tells so. What is there stays, unless another name is wanted. */
export async function nameBeat(db: Connection, now: number, random: Random, source?: string): Promise<void> {
  if (source !== undefined) await db.query('delete from beats where source <> $1', [source])
  await db.query('insert into beats (source, id, beat_at) select $1, $2, $3 where not exists (select from beats)', [
    source ?? onlySource,
    timeOrderedId(now, random),
    timeParameter(now),
  ])
}

type Beat = { readonly source: string; readonly id: string; readonly beatAt: number }
export const readSources = async (db: Connection): Promise<Beat[]> =>
  (await db.query<Beat>('select source, id, beat_at as "beatAt" from beats order by source limit 1000')).rows

/** How the copy stands. It throws only when the database itself does not answer. */
export async function lookAt(own: Connection, follows: Following, clock: Clock): Promise<Standing> {
  const wanted = await readSources(own)
  const { sources: before } = follows.standing()
  try {
    if (!(await isMigrated(follows.pool)))
      return { state: 'unfit', why: 'it lacks migrations: see docs/operating-reporting.md', sources: before }
    const sources = await readSources(follows.pool)
    const stranger = wanted.find(({ source, id }) => !sources.some(one => one.source === source && one.id === id))
    if (stranger) return { state: 'unfit', why: `it does not follow this database (${stranger.source})`, sources }
    const isBehind = sources.some(one => lagOf(one, clock.real()) > toldLagSeconds)
    return { state: isBehind ? 'behind' : 'ready', sources }
  } catch (error) {
    // Tables that are not there: it is another database, or an empty one.
    const isThere = (error as { code?: string }).code === '42P01'
    const why = isThere ? 'it is no copy of this database' : (error as Error).message.slice(0, 300)
    return { state: isThere ? 'unfit' : 'away', why, sources: before }
  }
}

/** Tells that the database lives, and looks at the one that follows it, if there is one. What stands there changes nothing but what is read there. */
export async function watchFollowing(
  database: Pick<Database, 'work' | 'reporting'>,
  clock: Clock,
  random: Random,
  log: Log,
): Promise<{ stop(): Promise<void> }> {
  const { follows } = database.reporting
  let running: Promise<void> | undefined
  const round = async (): Promise<void> => {
    await beat(database.work, clock.real())
    if (!follows) return
    const before = follows.standing().state
    const now = await lookAt(database.work, follows, clock)
    follows.set(now)
    if (now.state !== before)
      log[now.state === 'ready' ? 'info' : 'warn']({ why: now.why ?? '' }, `the reporting database is ${now.state}`)
  }
  const failed = (error: Error) => log.debug({ why: error.message }, 'the database could not tell that it lives')
  const step = (): void => {
    running ??= round()
      .catch(failed)
      .finally(() => {
        running = undefined
      })
  }
  if (follows) await nameBeat(database.work, clock.real(), random)
  step()
  const timer = clock.every(everyMilliseconds, step)
  return {
    async stop() {
      timer.cancel()
      await running
    },
  }
}

type Errors = { readonly source: string; readonly errors: number }

/** What its subscriptions could not take over; a standby has none. */
const readErrors = async (db: Connection, prefix: string): Promise<Errors[]> =>
  (
    await db.query<Errors>(
      `select substr(s.subname, length($1) + 1) as source, t.apply_error_count + t.sync_error_count as errors
         from pg_subscription s join pg_stat_subscription_stats t on t.subid = s.oid where s.subname like $1 || '%' limit 1000`,
      [prefix],
    )
  ).rows

/** Names of subscriptions and their slots: with the name of the source behind it. */
export const followingPrefix = 'tollgate_reporting_'

/** What is kept for those who follow, bytes: the disk of the database holds it until they have it. */
const measureKeptLog = async (db: Connection): Promise<number> =>
  (
    await db.query<{ bytes: number }>(
      `select coalesce(max(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)), 0)::bigint as bytes from pg_replication_slots`,
    )
  ).rows[0]!.bytes

/** As whoever watches it has seen it. */
export function measureFollowing({ work, reporting: { follows } }: Database, clock: Clock): Measure {
  let kept = 0
  let errors: readonly Errors[] = []
  const of = (kind: Figure['kind'], name: string, help: string, read: Figure['read']): Figure => ({ kind, name, help, read })
  const kinds = [
    of(
      'gauge',
      'tollgate_replication_kept_bytes',
      'What the disk of the database keeps for whoever follows it and has not taken it yet, the most of one.',
      () => [[{}, kept]],
    ),
  ]
  const ofFollower = [
    of('gauge', 'tollgate_reporting_up', 'Whether searches and reports can be read in the reporting database.', () => [
      [{}, /^(ready|behind)$/.test(follows!.standing().state) ? 1 : 0],
    ]),
    of('gauge', 'tollgate_reporting_lag_seconds', 'How old what the reporting database knows of a source is.', () =>
      follows!.standing().sources.map(one => [{ source: one.source }, lagOf(one, clock.real())]),
    ),
    of('counter', 'tollgate_reporting_errors_total', 'How often a subscription of the reporting database was stopped.', () =>
      follows!
        .standing()
        .sources.map(({ source }) => [{ source }, errors.find(one => one.source === source.replaceAll('-', '_'))?.errors ?? 0]),
    ),
  ]
  return {
    name: 'reporting',
    figures: follows ? [...kinds, ...ofFollower] : kinds,
    async measure() {
      kept = await measureKeptLog(work)
      // One that is silent is not waited for: the figures say that it is.
      if (follows && follows.standing().state !== 'away')
        errors = await readErrors(follows.pool, followingPrefix).catch(() => errors)
    },
  }
}
