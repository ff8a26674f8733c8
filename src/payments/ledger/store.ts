// What the doctor reads: chains a page at a time, with their journal lines and guard rows.

import type { Mode } from '../../connectors/connector.ts'
import { type Connection, timeParameter } from '../../platform/database/connect.ts'
import { servedHere } from '../../platform/database/elsewhere.ts'
import type { PaymentState } from '../payment.ts'
import { answeredOf, answeredTables, type PaymentRow, standingColumns } from '../store/read.ts'
import type { Transfer } from './journal.ts'

/** The rows of one merchant, or of all that are served here. */
const looked = (table: string, only: string): string =>
  `(${table}.merchant_id = ${only} or (${only}::uuid is null and ${servedHere(`${table}.merchant_id`)}))`

/** A journal line as it is stored. */
export type JournalLine = Transfer & {
  readonly merchantId: string
  readonly paymentId: string
  readonly mode: Mode
  readonly currency: string
}

/** First payments after a place in their order, a page at a time. */
export async function findRootsAfter(
  db: Connection,
  merchantId: string,
  id: string,
  limit: number,
  only: string | null,
): Promise<PaymentState[]> {
  const { rows } = await db.query<PaymentRow>(
    `select ${standingColumns} from ${answeredTables} where p.root_id is null and (p.merchant_id, p.id) > ($1, $2) and ${looked('p', '$4')}
      order by p.merchant_id, p.id limit $3`,
    [merchantId, id, limit, only],
  )
  return rows.map(answeredOf)
}

/** First payments of one merchant by their ids. */
export async function findRoots(db: Connection, merchantId: string, ids: readonly string[]): Promise<PaymentState[]> {
  const { rows } = await db.query<PaymentRow>(
    `select ${standingColumns} from ${answeredTables} where p.merchant_id = $1 and p.id = any ($2) and p.root_id is null order by p.id`,
    [merchantId, ids],
  )
  return rows.map(answeredOf)
}

/** What refers to some first payments of one merchant. */
export async function findFollowersOf(db: Connection, merchantId: string, roots: readonly string[]): Promise<PaymentState[]> {
  const { rows } = await db.query<PaymentRow>(
    `select ${standingColumns} from ${answeredTables} where p.merchant_id = $1 and p.root_id = any ($2) order by p.recorded_at, p.id`,
    [merchantId, roots],
  )
  return rows.map(answeredOf)
}

/** The journal lines of some payments of one merchant. */
export async function findJournal(db: Connection, merchantId: string, payments: readonly string[]): Promise<JournalLine[]> {
  const { rows } = await db.query<JournalLine>(
    `select merchant_id as "merchantId", payment_id as "paymentId", line, mode, currency, debit, credit, amount, state
       from journal where merchant_id = $1 and payment_id = any ($2)`,
    [merchantId, payments],
  )
  return rows
}

/** The captures that hold the guard row of some first payments of one merchant. */
export async function findGuards(
  db: Connection,
  merchantId: string,
  roots: readonly string[],
): Promise<{ paymentId: string; captureId: string }[]> {
  const { rows } = await db.query<{ paymentId: string; captureId: string }>(
    'select payment_id as "paymentId", capture_id as "captureId" from captures where merchant_id = $1 and payment_id = any ($2)',
    [merchantId, roots],
  )
  return rows
}

/** Rows that belong to no payment, and final answers that should have been announced and were not. */
export async function countStray(db: Connection, only: string | null): Promise<Record<'answers' | 'journal' | 'events', number>> {
  const { rows } = await db.query<Record<'answers' | 'journal' | 'events', number>>(
    `select
       (select count(*) from answers a where ${looked('a', '$1')} and not exists (select from payments p where p.merchant_id = a.merchant_id and p.id = a.payment_id)) as answers,
       (select count(*) from journal j where ${looked('j', '$1')} and not exists (select from payments p where p.merchant_id = j.merchant_id and p.id = j.payment_id)) as journal,
       (select count(*) from answers a where ${looked('a', '$1')} and a.approved and not exists (
          select from events e where e.merchant_id = a.merchant_id and e.payment_id = a.payment_id and e.sequence = 2)) as events`,
    [only],
  )
  return rows[0]!
}

/** A payment that stands where nothing of its kind should. */
export type PaymentId = { readonly merchantId: string; readonly id: string }

/** Payments recorded before a moment that have no answer and are in nobody's hands: neither recovery's, nor those of a shopper who is away. */
export async function findForgotten(db: Connection, before: number, limit: number, only: string | null): Promise<PaymentId[]> {
  const { rows } = await db.query<PaymentId>(
    `select p.merchant_id as "merchantId", p.id from payments p
      where p.recorded_at < $1 and ${looked('p', '$3')}
        and not exists (select from answers a where a.merchant_id = p.merchant_id and a.payment_id = p.id)
        and not exists (select from due_work d where d.kind = 'recover' and d.merchant_id = p.merchant_id and d.subject_id = p.id)
        and not exists (select from continuations c where c.merchant_id = p.merchant_id and c.payment_id = p.id)
        and not exists (select from operator_cases o where o.merchant_id = p.merchant_id and o.kind = 'answerUnproven'
                           and o.subject = replace(p.id::text, '-', '') and o.closed_at is null)
      limit $2`,
    [timeParameter(before), limit, only],
  )
  return rows
}

/** Payments that the merchant was told to be approved and that are being taken back behind his back. */
export async function findTakenBack(db: Connection, limit: number, only: string | null): Promise<PaymentId[]> {
  const { rows } = await db.query<PaymentId>(
    `select d.merchant_id as "merchantId", d.subject_id as id from due_work d
       join answers a on a.merchant_id = d.merchant_id and a.payment_id = d.subject_id and a.approved
      where d.kind = 'reverse' and ${looked('d', '$2')} limit $1`,
    [limit, only],
  )
  return rows
}

/** Longer than whatever is done about money is put off: a payment's recovery an hour, each attempt after it ten minutes, the deadline of a shopper a day. */
const putOffMost = { recover: '2 hours', reverse: '2 hours', release: '2 hours', capture: '2 hours', redirectExpiry: '25 hours' }

/** What is to be done about payments, at a time to which nothing puts it off; `now` in milliseconds, the last first. */
export async function findPutOff(
  db: Connection,
  now: number,
  limit: number,
  only: string | null,
): Promise<(PaymentId & { readonly kind: string; readonly dueAt: number })[]> {
  const { rows } = await db.query<PaymentId & { kind: string; dueAt: number }>(
    `select d.merchant_id as "merchantId", d.subject_id as id, d.kind, d.due_at as "dueAt" from due_work d
       join json_each_text($1) most on most.key = d.kind
      where d.due_at > $2::timestamptz + most.value::interval and ${looked('d', '$4')} order by d.due_at desc limit $3`,
    [JSON.stringify(putOffMost), timeParameter(now), limit, only],
  )
  return rows
}

export type OpenReversal = PaymentId & { readonly attempts: number; readonly recordedAt: number; readonly connector: string }

/** Reversals, and releases of what a capture left, that nobody has acknowledged; of payments recorded before a moment, the oldest first. */
export async function findOpenReversals(
  db: Connection,
  before: number,
  limit: number,
  only: string | null = null,
): Promise<OpenReversal[]> {
  const { rows } = await db.query<OpenReversal>(
    `select d.merchant_id as "merchantId", p.id, d.attempts, p.recorded_at as "recordedAt", p.connector from due_work d
       join payments p on p.merchant_id = d.merchant_id and p.id = d.subject_id
      where d.kind in ('reverse', 'release') and p.recorded_at < $1 and ${looked('d', '$3')} order by p.recorded_at limit $2`,
    [timeParameter(before), limit, only],
  )
  return rows
}

/** How many there are, and when the payment of the oldest was recorded (milliseconds). */
export async function countOpenReversals(db: Connection): Promise<{ count: number; since: number | null }> {
  const { rows } = await db.query<{ count: number; since: number | null }>(
    `select count(*), min(p.recorded_at) as since
       from (select merchant_id, subject_id from due_work where kind in ('reverse', 'release') and ${servedHere()} limit 10000) d
       join payments p on p.merchant_id = d.merchant_id and p.id = d.subject_id`,
  )
  return rows[0]!
}
