// Connections to PostgreSQL. Small pools, so that what waits in one does not hold up the others: one connection for each lane of group commits,
// a few for the chains under their lock, and one pool for everything else. The database is another machine that can be slow, silent or gone:
// every statement has a time limit and every connection a listener for its end (decisions, 60).

import pg from 'pg'
import type { Clock, Timer } from '../clock.ts'
import { OperatorError } from '../errors.ts'
import { isLost } from './errors.ts'
import { fairPool, type InPlace, transactionsAtMerchants } from './fairPool.ts'
import type { ReportingDatabase } from './reporting.ts'
import { clientFor } from './servers.ts'
import { type ReadingTurns, readingTurns, takeTurns } from './turns.ts'

/** Of the connections of chains: of one merchant, and of all that shoppers press, wherever. There is always one for others. */
export const chainsOf = { merchant: 4, shoppers: 3 }

/** How many connections a pool has, and how long one of its statements may take. */
export const sizes = {
  /** Reads and due work. */
  work: { max: 10, statementSeconds: 30 },
  /** Captures, refunds and reversals, with the lock on their chain. */
  chains: { max: chainsOf.merchant + chainsOf.shoppers + 1, statementSeconds: 10 },
  /** Carries first payments. */
  paymentLane: { max: 1, statementSeconds: 10 },
  /** Carries answers. */
  answerLane: { max: 1, statementSeconds: 10 },
  /** Readings of everything there is, without a limit. */
  reports: { max: 1, statementSeconds: 0 },
  /** Merchants' searches: however deep they are, they keep no payment and no other reading waiting. */
  searches: { max: 3, statementSeconds: 5 },
  /** Payments that a merchant names: who may have to send one again hears in time whether it was made, whatever others search. */
  lookups: { max: 2, statementSeconds: 5 },
  /** What shoppers' browsers ask for: strangers can ask for many pages, and keep no payment waiting. */
  pages: { max: 4, statementSeconds: 30 },
  /** Attempts to sign in to the back office: strangers can send many, and keep only each other waiting. */
  signIns: { max: 2, statementSeconds: 5 },
  /** Pages of the back office: those who look at many, and strangers who ask whose a session is, keep only each other waiting. */
  office: { max: 3, statementSeconds: 30 },
  /** Transactions of the back office: most end in the audit, for whose one end they stand in a row with these connections, and with no others. */
  officeWrites: { max: 2, statementSeconds: 30 },
  /** Who may act for whom: what was revoked or changed is known at once, however busy all others are. */
  directory: { max: 1, statementSeconds: 30 },
} as const

/** What /health does not ask: pools that may be busy without harm. */
const spare: ReadonlySet<PoolName> = new Set([
  'reports',
  'searches',
  'lookups',
  'pages',
  'signIns',
  'office',
  'officeWrites',
  'directory',
])

export type PoolName = keyof typeof sizes
export const poolNames = Object.keys(sizes) as PoolName[]

export type Database = Readonly<Record<PoolName, pg.Pool>> & {
  /** Readings of many payments that may be some seconds old: another database, or as the pool of searches. */
  readonly reporting: ReportingDatabase
  /** In which readings by those two pools take turns, whoever reads. */
  readonly turns: Readonly<Record<'searches' | 'lookups', ReadingTurns>>
  /**
   * Runs a transaction on a chain of payments, named by its merchant and first payment; those on one chain come one after the other, and of one merchant not all at once.
   * `lock` takes the lock, and reads what the work is about: it writes nothing, and what it asks for at once travels together. `inPlace`: where it has its connection among
   * others than those of its merchant.
   */
  inChain<Locked, Value>(
    merchantId: string,
    rootId: string,
    lock: (connection: pg.PoolClient) => Promise<Locked>,
    work: (connection: pg.PoolClient, locked: Locked) => Promise<Value>,
    inPlace?: InPlace,
  ): Promise<Value>
  /** Calls `heard` at each notice on a channel, and whenever listening began anew: notices may have been missed meanwhile. */
  listen(channel: string, heard: () => void): Promise<Listener>
  close(): Promise<void>
}

export type Listener = { stop(): Promise<void> }

/** Who writes with what not all may write with: each of its sessions tells that, as long as it lives, and begins when it is admitted. */
export type Writer = {
  /** 40 characters at most. */
  readonly told: string
  /** In every session before its first statement, and after others can see what it tells. Throws when it may not write. */
  admit(session: Connection): Promise<void>
}

/** A pool or one of its connections: what a statement needs. */
export type Connection = Pick<pg.Pool, 'query'>

// Ids travel as 32 hex characters, amounts and counts fit a number, times are milliseconds, days are text.
pg.types.setTypeParser(2950, text => text.replaceAll('-', ''))
pg.types.setTypeParser(20, text => Number(text))
pg.types.setTypeParser(1184, text => {
  // As the session was told to write times; beyond what a Date can hold they are NaN.
  if (!/^(\d{4,}-|-?infinity$)/.test(text)) throw new Error(`The database answers with ${text}, which is no time.`)
  return Date.parse(text)
})
pg.types.setTypeParser(1082, text => text)

/** Waits for a lock end sooner than the statement, so that the statement that waits is named and not the one that is slow. */
const lockSeconds = 5
const turnSeconds = 10
const turnsWaiting = 200
/** Of one merchant so many more wait for a connection of chains. */
const ofMerchantWaiting = 2000
const connectMilliseconds = 5000
const reopenMilliseconds = 1000
const heartbeatMilliseconds = 3000

/** `follower`: the database that follows this one, for readings of many payments; it is closed with it. `writer`: absent for what only reads. */
export function connect(
  options: pg.PoolConfig,
  clock: Clock,
  onError: (error: Error) => void,
  follower?: ReportingDatabase,
  writer?: Writer,
): Database {
  let closed = false
  // When the pools are closed the server may go before they have said goodbye.
  const failed = (error: Error) => closed || onError(error)
  const pools = Object.fromEntries(
    Object.entries(sizes).map(([name, { max, statementSeconds }]) => [
      name,
      // Statements of a chain need not wait for the answer to the one before.
      makePool(
        { ...limited(options, name, statementSeconds, writer), pipeline: name === 'chains' },
        max,
        failed,
        timeLimits(statementSeconds),
        writer,
      ),
    ]),
  ) as Record<PoolName, pg.Pool>
  const reporting: ReportingDatabase = follower ?? pools.searches
  const listenings = new Set<Listener>()
  const inTurn = takeTurns(clock, turnSeconds, turnsWaiting)
  const ofMerchants = takeTurns(clock, turnSeconds, ofMerchantWaiting, chainsOf.merchant)
  return {
    ...pools,
    reporting,
    turns: {
      searches: readingTurns(clock, sizes.searches.max),
      lookups: readingTurns(clock, sizes.lookups.max),
    },
    inChain: (merchantId, rootId, lock, work, inPlace = work => ofMerchants(merchantId, work)) =>
      inTurn(merchantId + rootId, () => inPlace(() => lockedTransaction(pools.chains, lock, work))),
    async listen(channel, heard) {
      const listening = await listen(clock, limited(options, 'notices', 5, writer), channel, heard, failed)
      listenings.add(listening)
      return listening
    },
    async close() {
      if (closed) return
      closed = true
      await Promise.all([...listenings].map(listening => listening.stop()))
      await Promise.all(Object.values(pools).map(pool => pool.end()))
      await reporting.follows?.close()
    },
  }
}

/**
 * What our reading and our rules depend on, whatever a database or a role was set to. Where names are looked for comes first, and by PostgreSQL's own functions alone:
 * one of the same name and with closer types would be taken wherever it stands. PostgreSQL's own names go before all others, and a temporary table does not stand
 * before one of ours. Where there is no other place, nothing may be made: not for the session alone. What is answered is written: how far beyond this server, the operator
 * decides. No trigger and no foreign key acts in a replica, and only a superuser's session can leave that: another one's is refused.
 */
const session = `select pg_catalog.set_config('search_path'::pg_catalog.text, pg_catalog.concat_ws(', '::pg_catalog.text,
    (select coalesce(pg_catalog.string_agg(pg_catalog.quote_ident(name::pg_catalog.text), ', '::pg_catalog.text), 'pg_catalog'::pg_catalog.text) from pg_catalog.unnest(pg_catalog.current_schemas(false)) as name
      where name operator(pg_catalog.<>) 'pg_catalog'::pg_catalog.name and not pg_catalog.starts_with(name::pg_catalog.text, 'pg_temp_'::pg_catalog.text)),
    'pg_temp'::pg_catalog.text), false);
  set session characteristics as transaction isolation level read committed;
  set datestyle = 'ISO'; set timezone = 'UTC'; set intervalstyle = 'postgres'; set bytea_output = 'hex';
  set standard_conforming_strings = on; set array_nulls = on; set transform_null_equals = off; set quote_all_identifiers = off;
  set gin_fuzzy_search_limit = 0; set extra_float_digits = 1;
  select pg_catalog.set_config('synchronous_commit', 'on', false)
   where pg_catalog.current_setting('synchronous_commit') operator(pg_catalog.=) 'off'::pg_catalog.text;
  select pg_catalog.set_config('session_replication_role', 'origin', false)
   where pg_catalog.current_setting('session_replication_role') operator(pg_catalog.=) 'replica'::pg_catalog.text`

export const replicaRefusal =
  'The database cannot be used: its sessions begin with session_replication_role = replica, in which neither triggers nor foreign keys act. ' +
  'Take that back where it was set (database, role or server), and look with `tollgate audit verify` and `tollgate doctor` for what was written meanwhile.'

const sessionError = (error: Error): Error =>
  error.message.includes('session_replication_role') ? new OperatorError(replicaRefusal) : error

/**
 * A pool whose connections never end the process when they break: each has a listener from its first moment, in use or idle. Rules count on
 * seeing what was committed a moment ago, whatever isolation the database has as its default.
 */
export function makePool(
  options: pg.PoolConfig,
  max: number,
  onError: (error: Error) => void,
  more = '',
  writer?: Writer,
): pg.Pool {
  const pool = new pg.Pool({
    ...options,
    Client: options.Client ?? clientFor(options),
    max,
    idleTimeoutMillis: 0,
    connectionTimeoutMillis: connectMilliseconds,
    onConnect: async client => {
      await client.query(session + more).catch((error: Error) => {
        throw sessionError(error)
      })
      await writer?.admit(client)
    },
  })
  pool.on('connect', client => client.on('error', onError))
  pool.on('error', () => {}) // the connection's own listener has told it
  return pool
}

/** A server that is silent is given up, with its connection, a little later than it should have ended a statement. */
export const limited = (options: pg.PoolConfig, name: string, statementSeconds: number, writer?: Writer): pg.PoolConfig => ({
  ...options,
  application_name: `tollgate ${name}${writer ? ` ${writer.told}` : ''}`,
  keepAlive: true,
  keepAliveInitialDelayMillis: 10_000,
  ...(statementSeconds > 0 && { query_timeout: (statementSeconds + 2) * 1000 }),
})

/** The server ends what takes too long. Said in the session, and not as it begins: proxies know few of the words that may be said then. */
export const timeLimits = (statementSeconds: number): string =>
  [
    `; set lock_timeout = ${lockSeconds * 1000}`,
    `; set statement_timeout = ${statementSeconds * 1000}`,
    `; set idle_in_transaction_session_timeout = ${statementSeconds * 1000}`,
  ].join('')

/** Listens on a connection of its own, asks it now and then whether it lives, and opens another when it does not or is lost: what was said meanwhile is heard then. */
async function listen(
  clock: Clock,
  options: pg.PoolConfig,
  channel: string,
  heard: () => void,
  onError: (error: Error) => void,
): Promise<Listener> {
  let stopped = false
  let current: pg.Client | undefined
  let openedAt = 0
  let timer: Timer | undefined
  const later = (act: () => void, milliseconds: number): void => {
    if (!stopped) timer = clock.after(milliseconds, act).unref()
  }
  const open = async (): Promise<void> => {
    const client = new (clientFor(options))({ ...options, connectionTimeoutMillis: connectMilliseconds })
    client.on('error', onError)
    client.on('notification', heard)
    try {
      await client.connect()
      await client.query(`listen ${channel}`)
    } catch (error) {
      client.end().catch(onError)
      throw error
    }
    if (stopped) return void client.end().catch(onError)
    current = client
    openedAt = clock.elapsed()
    client.once('end', () => lost(client))
    beat(client)
  }
  const lost = (client: pg.Client): void => {
    if (stopped || client !== current) return
    current = undefined
    timer?.cancel()
    if (clock.elapsed() - openedAt < reopenMilliseconds) later(reopen, reopenMilliseconds)
    else reopen()
  }
  const reopen = (): void => {
    open().then(
      () => stopped || heard(),
      (error: Error) => {
        onError(error)
        later(reopen, reopenMilliseconds)
      },
    )
  }
  const beat = (client: pg.Client): void => {
    later(() => {
      client.query('select 1').then(
        () => beat(client),
        (error: Error) => {
          onError(error)
          client.end().catch(onError)
          lost(client)
        },
      )
    }, heartbeatMilliseconds)
  }
  await open()
  return {
    async stop() {
      stopped = true
      timer?.cancel()
      await current?.end().catch(() => {})
    },
  }
}

/** A pool for a piece of work of a writer. */
export const writingPool = (options: pg.PoolConfig, max: number, writer: Writer): pg.Pool =>
  makePool(limited(options, 'writes', 0, writer), max, () => {}, '', writer)

/** What the sessions of writers tell, as far as the server shows it. One that was killed may be among them until the server has noticed. */
export async function readTold(db: Connection): Promise<string[]> {
  const { rows } = await db.query<{ told: string }>(
    `select distinct substring(application_name from '^tollgate [a-zA-Z]+ (.+)$') as told from pg_stat_activity
      where datname = current_database() and application_name ~ '^tollgate [a-zA-Z]+ .'`,
  )
  return rows.map(({ told }) => told)
}

/** The same database for what merchants ask for: of one, however much it is, nobody waits for more than a few statements. */
export const forMerchants = (database: Database, clock: Clock): Database => ({
  ...database,
  work: fairPool(database.work, clock, connectMilliseconds / 1000, sizes.work.max),
})

/** The same database for what shoppers' browsers ask for: however many press Pay, and at however many merchants, what those ask themselves does not wait for it, nor it for that. */
export function forShoppers(database: Database, clock: Clock): Database {
  const placeAt = transactionsAtMerchants(clock, turnSeconds, chainsOf.shoppers)
  return {
    ...database,
    work: fairPool(database.pages, clock, pageSeconds, sizes.pages.max),
    inChain: (merchantId, rootId, lock, work) => database.inChain(merchantId, rootId, lock, work, placeAt(merchantId, rootId)),
  }
}
const pageSeconds = 30

/**
 * The same database for the back office, whose work is done by connections of its own: statements by some, transactions by others. Whose a session or a link is, a
 * stranger can ask as well.
 */
export const forOffice = (database: Database, clock: Clock): Database => {
  const { query } = fairPool(database.office, clock, connectMilliseconds / 1000, sizes.office.max)
  return { ...database, work: { query, connect: () => database.officeWrites.connect() } as unknown as pg.Pool }
}

/** The names of the pools in which no statement is answered soon; none = the database can be used. */
export async function unreachable(database: Database, clock: Clock, milliseconds: number): Promise<string[]> {
  const names = poolNames.filter(name => !spare.has(name))
  const answered = await Promise.all(names.map(name => answers(database[name], clock, milliseconds)))
  return names.filter((_, at) => !answered[at])
}

function answers(pool: pg.Pool, clock: Clock, milliseconds: number): Promise<boolean> {
  return new Promise(resolve => {
    const timer = clock.after(milliseconds, () => resolve(false))
    pool
      .query('select 1')
      .then(
        () => resolve(true),
        () => resolve(false),
      )
      .finally(() => timer.cancel())
  })
}

/** Runs a piece of work in one transaction; what it throws rolls back. The rules inside count on seeing what others have committed. */
export const inTransaction = <Value>(pool: pg.Pool, work: (connection: pg.PoolClient) => Promise<Value>): Promise<Value> =>
  lockedTransaction(pool, async () => {}, work)

/** The same behind a lock, which is asked for together with the beginning: it must not write, because a beginning that failed shows only after it. */
export async function lockedTransaction<Locked, Value>(
  pool: pg.Pool,
  lock: (connection: pg.PoolClient) => Promise<Locked>,
  work: (connection: pg.PoolClient, locked: Locked) => Promise<Value>,
): Promise<Value> {
  const connection = await pool.connect()
  let broken: Error | undefined
  try {
    const [, locked] = await Promise.all([connection.query('begin isolation level read committed'), lock(connection)])
    const value = await work(connection, locked)
    await connection.query('commit')
    return value
  } catch (error) {
    // A connection that did not answer is given back as broken: to ask it for a rollback would only wait again.
    if (isLost(error)) broken = error
    else
      await connection.query('rollback').catch((failed: Error) => {
        broken = failed
      })
    throw error
  } finally {
    connection.release(broken)
  }
}

/** Milliseconds → what a timestamptz parameter takes. */
export const timeParameter = (milliseconds: number): string => new Date(milliseconds).toISOString()
