// How far a move is: its row in each of the two databases, what is the other end of it, and who is at it.

import { isDeepStrictEqual } from 'node:util'
import type pg from 'pg'
import { type Connection, timeParameter } from '../../platform/database/connect.ts'
import { OperatorError } from '../../platform/errors.ts'

/**
 * Leaving: copying → frozen → fenced → handing → moved → forgetting → forgotten; frozen or fenced → returning → copying when it fails, or stayed when it is given up. Arriving: arriving →
 * arrived; arriving → forgetting → forgotten when it was given up.
 */
export type MoveState =
  | 'copying'
  | 'frozen'
  | 'fenced'
  | 'handing'
  | 'returning'
  | 'stayed'
  | 'moved'
  | 'arriving'
  | 'arrived'
  | 'forgetting'
  | 'forgotten'

/** The merchant is refused by its old cell, and no other one serves it by these rows. */
export const inTheMidst: readonly MoveState[] = ['frozen', 'fenced', 'handing', 'returning']

/** Rows and a sum of their hashes, by table. */
export type Counted = Readonly<Record<string, { readonly rows: number; readonly hash: string }>>

export type Move = {
  readonly merchantId: string
  readonly direction: 'leaving' | 'arriving'
  readonly state: MoveState
  /** Whether this cell serves the merchant. */
  readonly here: boolean
  /** The name of the other cell. */
  readonly other: string
  readonly run: number
  /** Both databases of a move have the same; null in moves that began before there were any. */
  readonly moveId: string | null
  readonly counted: Counted | null
  readonly changedAt: number
  /** Since when nobody knows whether another cell has the merchant; null = it is known (see putBack). */
  readonly putBackAt: number | null
}

const columns =
  'merchant_id as "merchantId", direction, state, here, other, run, move_id as "moveId", counted, changed_at as "changedAt", put_back_at as "putBackAt"'

export async function readMove(db: Connection, merchantId: string): Promise<Move | undefined> {
  return (await db.query<Move>(`select ${columns} from merchant_moves where merchant_id = $1`, [merchantId])).rows[0]
}

export async function listMoves(db: Connection): Promise<Move[]> {
  return (await db.query<Move>(`select ${columns} from merchant_moves order by changed_at, merchant_id`)).rows
}

/**
 * Whether another database has its part of a move, as far as the move has come. What was handed over has arrived there, or was sent on by a later run; a database that
 * was put back to before that is the other end no more.
 */
export function isOtherEnd(move: Move, there: Move | undefined): there is Move {
  const isOver = move.state === 'moved' || move.state === 'forgetting'
  if (there?.direction !== 'arriving') return there !== undefined && isOver && there.run > move.run
  return (there.state === 'arrived' || !isOver) && isOfMove(move, there)
}

/** Moves that began before there were ids are known by what was handed over, and until then by their run. */
const isOfMove = (move: Move, there: Move): boolean =>
  move.moveId !== null || there.moveId !== null
    ? move.moveId === there.moveId
    : there.state === 'arrived'
      ? there.counted !== null && isDeepStrictEqual(move.counted, there.counted)
      : move.run === there.run

/** Replaces what stood there; throws when another command has replaced it meanwhile, or the merchant is held by now. */
export async function putMove(
  db: Connection,
  before: Move | undefined,
  move: Omit<Move, 'counted' | 'changedAt' | 'putBackAt'> & { readonly accounts?: readonly string[] },
  now: number,
): Promise<void> {
  const { rowCount } = await db.query(
    `insert into merchant_moves (merchant_id, direction, state, here, other, run, move_id, changed_at, accounts, steps) values ($1, $2, $3, $4, $5, $6, $7, $8, $11, 1)
     on conflict (merchant_id) do update set direction = excluded.direction, state = excluded.state, here = excluded.here, other = excluded.other,
       run = excluded.run, move_id = excluded.move_id, counted = null, changed_at = excluded.changed_at, accounts = excluded.accounts, put_back_at = null,
       held_after = null, steps = merchant_moves.steps + 1
       where merchant_moves.run = $9 and merchant_moves.state = $10 and (merchant_moves.put_back_at is not null) = $12`,
    [
      move.merchantId,
      move.direction,
      move.state,
      move.here,
      move.other,
      move.run,
      move.moveId,
      timeParameter(now),
      before?.run ?? null,
      before?.state ?? null,
      move.accounts ?? null,
      before?.putBackAt != null,
    ],
  )
  if (rowCount !== 1) throw overtaken(move.merchantId)
}

/** The next step of a run; throws when another command has begun its own, or the merchant is held. */
export async function stepMove(
  db: Connection,
  { merchantId, run }: Pick<Move, 'merchantId' | 'run'>,
  from: readonly MoveState[],
  to: Pick<Move, 'state' | 'here'> & { readonly counted?: Counted; readonly accounts?: readonly string[] },
  now: number,
): Promise<void> {
  const { rowCount } = await db.query(
    `update merchant_moves set state = $4, here = $5, counted = coalesce($6::jsonb, counted), changed_at = $7, accounts = coalesce($8, accounts), steps = steps + 1
      where merchant_id = $1 and run = $2 and state = any ($3) and put_back_at is null`,
    [
      merchantId,
      run,
      from,
      to.state,
      to.here,
      to.counted ? JSON.stringify(to.counted) : null,
      timeParameter(now),
      to.accounts ?? null,
    ],
  )
  if (rowCount !== 1) throw overtaken(merchantId)
}

/** Until the transaction ends the move stays as it is: what a command that was overtaken has read is written nowhere. */
export async function holdMove(
  db: Connection,
  { merchantId, run }: Pick<Move, 'merchantId' | 'run'>,
  state: MoveState,
): Promise<void> {
  const { rowCount } = await db.query('select from merchant_moves where merchant_id = $1 and run = $2 and state = $3 for share', [
    merchantId,
    run,
    state,
  ])
  if (rowCount !== 1) throw overtaken(merchantId)
}

const overtaken = (merchantId: string) =>
  new OperatorError(
    `Another command has gone on with the move of the merchant ${merchantId}, or a gateway holds it: this one ends.`,
  )

/** What a process is at: payments without an answer that were recorded a moment ago, and what is leased. */
export async function countTaken(db: Connection, merchantId: string, now: number): Promise<number> {
  const { rows } = await db.query<{ count: number }>(
    `select (select count(*) from unanswered where merchant_id = $1 and recorded_at > $3)
          + (select count(*) from due_work where merchant_id = $1 and leased_until > $2)
          + (select count(*) from deliveries where merchant_id = $1 and state = 'scheduled' and leased_until > $2) as count`,
    [merchantId, timeParameter(now), timeParameter(now - 60_000)],
  )
  return rows[0]!.count
}

/** Moves that refuse their merchant here, and whose place no command has: it was ended in their midst. */
export async function findAbandoned(db: Connection): Promise<Move[]> {
  const { rows } = await db.query<Move>(
    `select ${columns} from merchant_moves
      where not here and put_back_at is null and state = any ($1) and not exists (
        select from pg_locks l join pg_database d on d.oid = l.database
         where d.datname = current_database() and l.locktype = 'advisory' and l.granted and l.objsubid = 1
           and l.classid::bigint << 32 | l.objid::bigint = hashtextextended('move ' || replace(merchant_id::text, '-', ''), 0))
      order by changed_at, merchant_id`,
    [inTheMidst],
  )
  return rows
}

/** Takes the one place of a command that moves this merchant; undefined when another has it. Who dies gives it back with the connection. */
export async function takePlace(pool: pg.Pool, merchantId: string): Promise<{ giveBack(): Promise<void> } | undefined> {
  const connection = await pool.connect()
  const name = [`move ${merchantId}`]
  const { rows } = await connection.query<{ ours: boolean }>('select pg_try_advisory_lock(hashtextextended($1, 0)) as ours', name)
  if (!rows[0]!.ours) {
    connection.release()
    return undefined
  }
  return {
    giveBack: () =>
      connection.query('select pg_advisory_unlock(hashtextextended($1, 0))', name).then(
        () => connection.release(),
        () => connection.release(true),
      ),
  }
}
