// What reconciliation reads of payments, and keeps of days.

import { createHash } from 'node:crypto'
import {
  type DayOfTerminal,
  type DayTotals,
  type HostBalance,
  type HostTotals,
  saysNothing,
} from '../../connectors/cards/iso8583/totals.ts'
import { nobody } from '../../payments/cases/cases.ts'
import { slackMilliseconds } from '../../payments/store/sweep.ts'
import { idAt } from '../../platform/clock.ts'
import { type Connection, timeParameter } from '../../platform/database/connect.ts'
import { servedHere } from '../../platform/database/elsewhere.ts'
import { storableJson } from '../../platform/database/json.ts'
import type { Moved } from './bookings.ts'

type MovedRow = Omit<Moved, 'kept'> & { readonly kept: string | null }

// What an acquirer has of a file that this database does not know, because it was put back, is of the day of its message.
// A reversal that was closed here left nothing with the acquirer. What was not approved counts only where the acquirer took it back.
const movedColumns = `p.merchant_id as "merchantId", p.id, p.payment_type as type, coalesce(r.payment_type, p.payment_type) as "rootType", p.amount,
  p.currency, p.record::json -> 'prepared' as prepared, a.reply as kept, a.approved is not true as "takenBack",
  c.payment_id is not null and (c.sequence is not null or c.outcome is distinct from 'accepted') as collected, f.day as "filedOn"`
const movedTables = `entities m
  join payments p on p.merchant_id = m.id and p.payment_type in ('DB', 'CD', 'CP', 'RF', 'RV') and p.connector like 'cards %'
  left join payments r on r.merchant_id = p.merchant_id and r.id = p.root_id
  left join answers a on a.merchant_id = p.merchant_id and a.payment_id = p.id
  left join taken_back t on t.merchant_id = p.merchant_id and t.payment_id = p.id and t.acquirer = $1
  left join collected_captures c on c.merchant_id = p.merchant_id and c.payment_id = p.id
  left join capture_files f on f.acquirer = c.acquirer and f.sequence = c.sequence`
const moved = `m.kind = 'merchant' and (a.approved or t.acquirer is not null) and p.record::json ->> 'releasesAtIssuer' is distinct from 'false'
  and coalesce(t.acquirer, a.reply::json ->> 'acquirer', p.record::json -> 'prepared' -> 0 ->> 'acquirer') = $1`

const movedOf = ({ kept, ...row }: MovedRow): Moved => ({ ...row, kept: row.takenBack || kept === null ? {} : JSON.parse(kept) })

/** Payments with an acquirer whose messages were made within some time. Ids begin with the time. */
export async function findMoved(db: Connection, acquirer: string, from: number, to: number): Promise<Moved[]> {
  const { rows } = await db.query<MovedRow>(
    `select ${movedColumns} from ${movedTables} where ${moved} and p.id >= $2 and p.id < $3 order by p.id`,
    [acquirer, idAt(Math.max(0, from - slackMilliseconds)), idAt(to + slackMilliseconds)],
  )
  return rows.map(movedOf)
}

/** Payments whose answer names a day, whenever they were made. */
export async function findSettledOn(db: Connection, acquirer: string, day: string): Promise<Moved[]> {
  const { rows } = await db.query<MovedRow>(
    `select ${movedColumns} from ${movedTables}
      where ${moved} and a.reply like '%"settledOn"%' and substring(a.reply from '"settledOn":"([^"]+)"') = $2 order by p.id`,
    [acquirer, day],
  )
  return rows.map(movedOf)
}

/** Captures in the files of a day, whenever they were made. */
export async function findFiledOn(db: Connection, acquirer: string, day: string): Promise<Moved[]> {
  const { rows } = await db.query<MovedRow>(
    `select ${movedColumns} from ${movedTables} where ${moved} and f.acquirer = $1 and f.day = $2 order by p.id`,
    [acquirer, day],
  )
  return rows.map(movedOf)
}

/** Payments that an acquirer knows by a number of its own (DE37). */
export async function findMovedByReference(db: Connection, acquirer: string, reference: string): Promise<Moved[]> {
  const { rows } = await db.query<MovedRow>(
    `select ${movedColumns} from ${movedTables}
      where ${moved} and a.reply like '%"hostReference"%' and substring(a.reply from '"hostReference":"([^"]+)"') = $2 order by p.id`,
    [acquirer, reference],
  )
  return rows.map(movedOf)
}

/** How many payments with an acquirer, made within some time, are not settled: nobody knows yet what it has booked of them. */
export async function countUnsettled(db: Connection, acquirer: string, from: number, to: number): Promise<number> {
  const { rows } = await db.query<{ count: number }>(
    `select count(*) from entities m
       join payments p on p.merchant_id = m.id and p.payment_type in ('DB', 'CD', 'CP', 'RF', 'RV') and p.id >= $2 and p.id < $3
      where m.kind = 'merchant' and ${servedHere('m.id')} and p.record::jsonb -> 'prepared' @> jsonb_build_array(jsonb_build_object('acquirer', $1::text))
        and (not exists (select from answers a where a.merchant_id = p.merchant_id and a.payment_id = p.id)
             or exists (select from due_work d where d.kind = 'reverse' and d.merchant_id = p.merchant_id and d.subject_id = p.id))`,
    [acquirer, idAt(Math.max(0, from)), idAt(to)],
  )
  return rows[0]!.count
}

/** What is kept of a terminal's day. */
export type DayRow = DayOfTerminal & {
  readonly ours: DayTotals
  readonly trace: string
  readonly madeAt: number
  readonly attempts: number
  readonly theirs: HostTotals | null
  readonly balance: HostBalance | null
  readonly answeredAt: number | null
}

type StoredDay = Omit<DayRow, 'ours' | 'theirs'> & { readonly ours: string; readonly theirs: string | null }

const dayColumns = `day, terminal, currency, ours, trace, made_at as "madeAt", attempts, theirs, balance, answered_at as "answeredAt"`
const dayKey = 'acquirer = $1 and day = $2 and terminal = $3 and currency = $4'

export async function findDay(db: Connection, acquirer: string, day: string): Promise<DayRow[]> {
  const { rows } = await db.query<StoredDay>(
    `select ${dayColumns} from day_totals where acquirer = $1 and day = $2 order by terminal, currency`,
    [acquirer, day],
  )
  return rows.map(({ ours, theirs, ...row }) => ({
    ...row,
    ours: JSON.parse(ours),
    theirs: theirs === null ? null : JSON.parse(theirs),
  }))
}

/** Ours of a day; what stands already stays as it was said. */
export async function insertDay(
  db: Connection,
  acquirer: string,
  { day, terminal, currency, ours, trace, madeAt }: Pick<DayRow, 'day' | 'terminal' | 'currency' | 'ours' | 'trace' | 'madeAt'>,
): Promise<void> {
  await db.query(
    `insert into day_totals (acquirer, day, terminal, currency, ours, trace, made_at) values ($1, $2, $3, $4, $5, $6, $7)
     on conflict do nothing`,
    [acquirer, day, terminal, currency, storableJson(ours), trace, timeParameter(madeAt)],
  )
}

/** Counts an attempt before it is made; false when another process has counted one since. */
export async function countTelling(
  db: Connection,
  acquirer: string,
  { day, terminal, currency, attempts }: DayRow,
): Promise<boolean> {
  const { rowCount } = await db.query(`update day_totals set attempts = attempts + 1 where ${dayKey} and attempts = $5`, [
    acquirer,
    day,
    terminal,
    currency,
    attempts,
  ])
  return rowCount === 1
}

/** What a host has said before stays when it says nothing now. */
export async function storeTheirs(
  db: Connection,
  acquirer: string,
  { day, terminal, currency }: DayOfTerminal,
  said: { readonly theirs: HostTotals; readonly balance: HostBalance },
  now: number,
): Promise<void> {
  const isSilent = saysNothing(said)
  await db.query(
    `update day_totals set theirs = coalesce($5, theirs), balance = coalesce($6, balance), answered_at = $7 where ${dayKey}`,
    [
      acquirer,
      day,
      terminal,
      currency,
      isSilent ? null : storableJson(said.theirs),
      isSilent ? null : said.balance,
      timeParameter(now),
    ],
  )
}

/** The day of an acquirer that waits for its end; what waits already stays. */
export async function insertWaitingDay(db: Connection, acquirer: string, day: string, dueAt: number): Promise<void> {
  await db.query(
    `insert into due_work (kind, merchant_id, subject_id, due_at, details) values ('cutOver', $1, $2, $3, $4) on conflict do nothing`,
    [nobody, subjectOf(acquirer), timeParameter(dueAt), JSON.stringify({ acquirer, day })],
  )
}

/** Names of due work that belongs to no payment. */
export const subjectOf = (...names: string[]): string => createHash('sha256').update(names.join(' ')).digest('hex').slice(0, 32)

/** Names a booking and the line of a file that it is in. */
export type SettledBooking = {
  readonly merchantId: string
  readonly paymentId: string
  readonly kind: string
  readonly acquirer: string
  readonly day: string
  readonly outcome: 'matched' | 'otherAmount'
  readonly hash: Buffer
  readonly line: number
}

/** False when the booking is in the books of its acquirer already; another amount gives way to what comes later. */
export async function insertSettled(db: Connection, one: SettledBooking, now: number): Promise<boolean> {
  const { merchantId, paymentId, kind, acquirer, day, outcome, hash, line } = one
  const { rowCount } = await db.query(
    `insert into settled_bookings as s (merchant_id, payment_id, kind, acquirer, day, outcome, hash, line, settled_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
     on conflict (merchant_id, payment_id, kind) do update
       set day = excluded.day, outcome = excluded.outcome, hash = excluded.hash, line = excluded.line, settled_at = excluded.settled_at
     where s.outcome = 'otherAmount'`,
    [merchantId, paymentId, kind, acquirer, day, outcome, hash, line, timeParameter(now)],
  )
  return rowCount === 1
}

export async function findSettled(
  db: Connection,
  { merchantId, paymentId, kind }: Pick<SettledBooking, 'merchantId' | 'paymentId' | 'kind'>,
): Promise<Pick<SettledBooking, 'day' | 'hash' | 'line'> | undefined> {
  const { rows } = await db.query<Pick<SettledBooking, 'day' | 'hash' | 'line'>>(
    'select day, hash, line from settled_bookings where merchant_id = $1 and payment_id = $2 and kind = $3',
    [merchantId, paymentId, kind],
  )
  return rows[0]
}

/** `payment kind` of those of some payments that are in a file, whichever. */
export async function findSettledOf(
  db: Connection,
  merchantIds: readonly string[],
  paymentIds: readonly string[],
): Promise<ReadonlySet<string>> {
  const { rows } = await db.query<{ paymentId: string; kind: string }>(
    'select payment_id as "paymentId", kind from settled_bookings where merchant_id = any ($1) and payment_id = any ($2)',
    [merchantIds, paymentIds],
  )
  return new Set(rows.map(({ paymentId, kind }) => `${paymentId} ${kind}`))
}

export async function insertSettledDay(db: Connection, acquirer: string, day: string, hash: Buffer, now: number): Promise<void> {
  await db.query('insert into settled_days (acquirer, day, hash, read_at) values ($1, $2, $3, $4) on conflict do nothing', [
    acquirer,
    day,
    hash,
    timeParameter(now),
  ])
}

export async function isSettledDay(db: Connection, acquirer: string, day: string): Promise<boolean> {
  const { rowCount } = await db.query('select 1 from settled_days where acquirer = $1 and day = $2 limit 1', [acquirer, day])
  return rowCount === 1
}
