// Answers as they are written, with their journal lines, their event and what they leave to be done: all ride a group commit but those of operations that
// are answered when they are written.

import type pg from 'pg'
import type { SlipIssue, SlipOrder } from '../../connectors/connector.ts'
import type { Clock } from '../../platform/clock.ts'
import { type Connection, timeParameter } from '../../platform/database/connect.ts'
import {
  type BatchCount,
  type GroupCommit,
  groupCommit,
  padded,
  perSize,
  quantised,
  textBytes,
  valuesList,
} from '../../platform/database/groupCommit.ts'
import { storableJson } from '../../platform/database/json.ts'
import { askedAgain } from '../../platform/due/store.ts'
import type { Transfer } from '../ledger/journal.ts'
import type { Answer, Payment } from '../payment.ts'
import { insertFollowUp, writePatienceSeconds } from './payments.ts'
import { confirmRegistrations } from './registrations.ts'

/** A kind of due work, and the real time from which it is due. */
export type LeftToDo = { readonly kind: 'reverse' | 'release' | 'capture'; readonly dueAt: number }

export type NewAnswer = {
  readonly payment: Payment
  readonly answer: Answer
  readonly transfers: readonly Transfer[]
  /** Reference refusals are no events (decisions, 15). */
  readonly announced: boolean
  /** Set when the merchant was told before that the payment is pending. */
  readonly updates?: boolean
  /** The network's name of the payment that begins an agreement, for its registration. */
  readonly networkTransactionId?: string
  /** Work that the answer leaves behind, for example a reversal. */
  readonly leftToDo?: LeftToDo
  /** A capture that waits for a file of the acquirer that the answer keeps: its line. */
  readonly collects?: Readonly<Record<string, string>>
  /** A slip that is issued, or an order to the bank for one. */
  readonly slip?: SlipIssue | SlipOrder
  readonly recordedAt: number
}

/** Stores an answer with its journal lines and its event; false when the payment has an answer already. */
export type AnswerLane = GroupCommit<NewAnswer, boolean>

const answerColumns = [
  'uuid',
  'uuid',
  'text',
  'boolean',
  'text',
  'text',
  'timestamptz',
  'text',
  'text',
  'uuid',
  'uuid',
  'jsonb',
  'boolean',
  'text',
  'uuid',
  'text',
  'timestamptz',
  'timestamptz',
  'uuid',
  'uuid',
  'text',
  'text',
  'jsonb',
]

function answerValues(row: NewAnswer): unknown[] {
  const { payment, answer, transfers, announced, updates, leftToDo, recordedAt } = row
  const givesBack = payment.type === 'CP' && !answer.approved ? payment.rootId! : null
  return [
    payment.merchantId,
    payment.id,
    answer.result,
    answer.approved,
    storableJson(answer.kept),
    answer.body,
    timeParameter(answer.answeredAt),
    payment.mode,
    payment.currency,
    payment.channelId,
    payment.rootId ?? payment.id,
    transfers.length === 0 ? null : storableJson(transfers),
    announced,
    updates ? 'UPDATED' : null,
    givesBack,
    leftToDo?.kind ?? null,
    leftToDo === undefined ? null : timeParameter(leftToDo.dueAt),
    timeParameter(recordedAt),
    payment.record.registration?.ownerId ?? null,
    payment.record.registration?.id ?? null,
    row.networkTransactionId ?? null,
    row.collects ? storableJson(row.collects) : null,
    row.slip ? storableJson(row.slip) : null,
  ]
}

const answersText = (size: number, slips: string): string => `
  with given (merchant_id, payment_id, result, approved, reply, body, answered_at, mode, currency, channel_id, root_id, transfers,
              announced, action, gives_back, follow_up, follow_up_at, recorded_at, registration_owner, registration_id, network_transaction, collects, slip) as (values ${valuesList(answerColumns, size)}),
  answered as (
    insert into answers (merchant_id, payment_id, result, approved, reply, body, answered_at)
    select merchant_id, payment_id, result, approved, reply, body, answered_at from given where payment_id is not null
    on conflict do nothing returning merchant_id, payment_id, result),
  -- Ours is the row that was inserted, never another one for the same payment.
  ours as (select given.* from given join answered using (merchant_id, payment_id, result)),
  booked as (
    insert into journal (merchant_id, payment_id, line, mode, currency, debit, credit, amount, state, booked_at)
    select merchant_id, payment_id, line, mode, currency, debit, credit, amount, state, answered_at
      from ours, jsonb_to_recordset(transfers) as transfer (line smallint, debit text, credit text, amount bigint, state text)
    on conflict do nothing),
  announced as (
    insert into events (merchant_id, payment_id, sequence, type, action, channel_id, root_id, occurred_at, recorded_at)
    select merchant_id, payment_id, 2, 'PAYMENT', action, channel_id, root_id, answered_at, recorded_at from ours where announced
    on conflict do nothing),
${confirmRegistrations}
  returned as (
    delete from captures using ours
     where captures.merchant_id = ours.merchant_id and captures.payment_id = ours.gives_back and captures.capture_id = ours.payment_id),
  collected as (
    insert into collected_captures (merchant_id, payment_id, acquirer, said, collected_at)
    select merchant_id, payment_id, reply::json ->> 'acquirer', collects, recorded_at from ours where collects is not null
    on conflict do nothing),
${slips}
  left_to_do as (
    insert into due_work (kind, merchant_id, subject_id, due_at)
    select follow_up, merchant_id, payment_id, follow_up_at from ours where follow_up is not null
    ${askedAgain}),
  settled as (
    delete from unanswered using ours where unanswered.merchant_id = ours.merchant_id and unanswered.payment_id = ours.payment_id)
  select payment_id from answered`

/** Two statements, because planning what is seldom there costs every answer. */
const insertAnswers = perSize(size => answersText(size, ''))
const insertSlips = perSize(size => answersText(size, slipRows))

const slipRows = `
  -- A number that another slip has fails the whole: a slip that no bank's file would find is never told.
  issued as (
    insert into slips (merchant_id, payment_id, account, number, document, due_on, amount, currency, barcode, line, link_hash, issued_at)
    select ours.merchant_id, ours.payment_id, slip ->> 'account', slip ->> 'number', slip ->> 'document', (slip ->> 'dueOn')::date, p.amount,
           p.currency, slip ->> 'barcode', slip ->> 'line', decode(slip ->> 'linkHash', 'hex'), ours.answered_at
      from ours join payments p on p.merchant_id = ours.merchant_id and p.id = ours.payment_id where slip ? 'number'),
  ordered as (
    insert into slip_orders (merchant_id, payment_id, slip_id, account, kind, ordered_at)
    select merchant_id, payment_id, root_id, slip ->> 'account', slip ->> 'order', recorded_at from ours where slip ? 'order'
    on conflict do nothing),`

export function answerLane(pool: pg.Pool, clock: Clock, count?: BatchCount): AnswerLane {
  const lane = groupCommit<{ readonly row: NewAnswer; readonly values: readonly unknown[] }, boolean>({
    clock,
    ...(count && { count }),
    patienceSeconds: writePatienceSeconds,
    key: ({ row: { payment } }) => payment.merchantId + payment.id,
    owner: ({ row }) => row.payment.merchantId,
    bytes: ({ values }) => textBytes(values),
    async write(rows) {
      const size = quantised(rows.length)
      const values = padded(
        rows.flatMap(({ values }) => values),
        size * answerColumns.length,
      )
      const statement = rows.some(({ row }) => row.slip)
        ? { name: `answers with slips ${size}`, text: insertSlips(size) }
        : { name: `answers ${size}`, text: insertAnswers(size) }
      const stored = await pool.query<{ payment_id: string }>({ ...statement, values })
      const ids = new Set(stored.rows.map(row => row.payment_id))
      return rows.map(({ row }) => ids.has(row.payment.id))
    },
  })
  return row => lane({ row, values: answerValues(row) })
}

/** Writes an operation that is answered already, inside the transaction that holds the lock on the first payment. */
export async function insertAnswered(db: Connection, row: NewAnswer): Promise<void> {
  await insertFollowUp(db, { payment: row.payment }, [], true)
  await insertAnswerHere(db, row)
}

/** Answers a payment inside a transaction of its own; false when it has an answer. */
export async function insertAnswerHere(db: Connection, row: NewAnswer): Promise<boolean> {
  const { rowCount } = await db.query({ name: 'answers 1', text: insertAnswers(1), values: answerValues(row) })
  return rowCount === 1
}

/** The pending state was answered: recovery is due, and the merchant hears of it in the words of the answer, which comes sealed. `side`: whom recovery asks. */
export async function insertPending(
  db: Connection,
  payment: Payment,
  answer: Buffer,
  recoverAt: number,
  now: number,
  side: string,
): Promise<void> {
  await db.query(
    `with waiting as (
       insert into due_work (kind, merchant_id, subject_id, due_at, side) values ('recover', $1, $2, $5, $9)
       on conflict (kind, merchant_id, subject_id) do update set due_at = least(due_work.due_at, excluded.due_at)),
     passed_on as (
       delete from unanswered where merchant_id = $1 and payment_id = $2),
     given as (
       insert into pending_answers (merchant_id, payment_id, sealed) values ($1, $2, $8) on conflict do nothing)
     insert into events (merchant_id, payment_id, sequence, type, channel_id, root_id, occurred_at, recorded_at)
     values ($1, $2, 1, 'PAYMENT', $3, $4, $6, $7) on conflict do nothing`,
    [
      payment.merchantId,
      payment.id,
      payment.channelId,
      payment.rootId ?? payment.id,
      timeParameter(recoverAt),
      timeParameter(payment.receivedAt),
      timeParameter(now),
      answer,
      side,
    ],
  )
}

export async function wasAnnouncedPending(db: Connection, { merchantId, id }: Payment): Promise<boolean> {
  const { rowCount } = await db.query('select 1 from events where merchant_id = $1 and payment_id = $2 and sequence = 1', [
    merchantId,
    id,
  ])
  return rowCount === 1
}
