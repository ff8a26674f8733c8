// What is written: first payments and all answers ride group commits; captures, refunds, reversals and what is answered already are written inside the
// transaction that holds the lock on the first payment of their chain.

import type pg from 'pg'
import type { Clock } from '../../platform/clock.ts'
import { type Connection, timeParameter } from '../../platform/database/connect.ts'
import { type GroupCommit, groupCommit, perSize, quantised, valuesList } from '../../platform/database/groupCommit.ts'
import { askedAgain } from '../../platform/due/store.ts'
import { putCards } from '../../vault/cardStore.ts'
import type { SealedCard } from '../../vault/cards.ts'
import type { Transfer } from '../ledger/journal.ts'
import type { Answer, Payment } from '../payment.ts'

/** The idempotency row of a request. While the lookup key is changed it has a second one under the older key: a twin whose process knows only one
 * of the two keys meets it all the same. */
export type RequestKey = KeyClaim & { readonly older?: KeyClaim }
type KeyClaim = { readonly hash: Buffer; readonly fingerprint: Buffer }

export type NewPayment = {
  readonly payment: Payment
  readonly sealedCard?: SealedCard
  readonly key?: RequestKey
}

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
  /** Work that the answer leaves behind, for example a reversal. */
  readonly leftToDo?: LeftToDo
  readonly recordedAt: number
}

/** Stores a first payment; false when its idempotency key is taken by another request. */
export type PaymentLane = GroupCommit<NewPayment, boolean>
/** Stores an answer with its journal lines and its event; false when the payment has an answer already. */
export type AnswerLane = GroupCommit<NewAnswer, boolean>

/** So long a payment or an answer waits for a slow database. What was stored later than that is not carried out: its caller may have left. */
export const writePatienceSeconds = 10

const paymentColumns = [
  'uuid',
  'uuid',
  'uuid',
  'uuid',
  'uuid',
  'text',
  'text',
  'bigint',
  'text',
  'text',
  'text',
  'text',
  'timestamptz',
  'timestamptz',
  'text',
  'bytea',
  'date',
  'bytea',
  'bytea',
  'bytea',
  'bytea',
  'uuid',
]

function paymentValues({ payment, sealedCard, key }: NewPayment): unknown[] {
  const {
    merchantId,
    id,
    channelId,
    rootId,
    referenceId,
    type,
    brand,
    amount,
    currency,
    mode,
    connector,
    merchantTransactionId,
  } = payment
  return [
    merchantId,
    id,
    channelId,
    rootId ?? null,
    referenceId ?? null,
    type,
    brand ?? null,
    amount,
    currency,
    mode,
    connector,
    merchantTransactionId ?? null,
    timeParameter(payment.receivedAt),
    timeParameter(payment.recordedAt),
    JSON.stringify(payment.record),
    sealedCard?.sealed ?? null,
    sealedCard?.eraseAfter ?? null,
    key?.hash ?? null,
    key?.fingerprint ?? null,
    key?.older?.hash ?? null,
    key?.older?.fingerprint ?? null,
    payment.tokenId ?? null,
  ]
}

const insertPayments = perSize(
  size => `
  with given (merchant_id, id, channel_id, root_id, reference_id, payment_type, brand, amount, currency, mode, connector, merchant_transaction_id,
              received_at, recorded_at, record, sealed, erase_after, key_hash, fingerprint, older_hash, older_fingerprint, token_id) as (values ${valuesList(paymentColumns, size)}),
  claimed as (
    insert into idempotency_keys (merchant_id, key_hash, fingerprint, payment_id, recorded_at)
    select given.merchant_id, claim.hash, claim.fingerprint, given.id, given.recorded_at
      from given cross join lateral (values (key_hash, fingerprint), (older_hash, older_fingerprint)) as claim (hash, fingerprint)
     where claim.hash is not null and (older_hash is null or not exists (
       select from idempotency_keys k where k.merchant_id = given.merchant_id and k.key_hash in (given.key_hash, given.older_hash)))
     order by given.merchant_id, claim.hash -- the order in which every process takes them
    on conflict do nothing returning payment_id),
  owned as (
    select given.id from given left join (select payment_id, count(*) as rows from claimed group by payment_id) mine on mine.payment_id = given.id
     where coalesce(mine.rows, 0) = (given.key_hash is not null)::int + (given.older_hash is not null)::int),
  stored as (
    insert into payments (merchant_id, id, channel_id, root_id, reference_id, payment_type, brand, amount, currency, mode, connector,
                          merchant_transaction_id, received_at, recorded_at, record, token_id)
    select merchant_id, id, channel_id, root_id, reference_id, payment_type, brand, amount, currency, mode, connector,
           merchant_transaction_id, received_at, recorded_at, record, token_id
      from given where id in (select id from owned)
    on conflict do nothing returning id),
  sealed as (${putCards}),
  under_way as (
    insert into unanswered (merchant_id, payment_id, recorded_at)
    select merchant_id, id, recorded_at from given where id in (select id from stored))
  select id from stored`,
)

export function paymentLane(pool: pg.Pool, clock: Clock): PaymentLane {
  return groupCommit<NewPayment, boolean>({
    clock,
    patienceSeconds: writePatienceSeconds,
    key: ({ payment, key }) => payment.merchantId + (key?.hash.toString('hex') ?? payment.id),
    async write(rows) {
      const size = quantised(rows.length)
      const values = padded(rows.flatMap(paymentValues), size * paymentColumns.length)
      const stored = await pool.query<{ id: string }>({ name: `payments ${size}`, text: insertPayments(size), values })
      const ids = new Set(stored.rows.map(({ id }) => id))
      return Promise.all(
        rows.map(async ({ payment, key }) => ids.has(payment.id) || (key === undefined && (await isStored(pool, payment)))),
      )
    },
  })
}

/** After a lost connection a batch is written again: a row that is there already is our own. */
async function isStored(db: Connection, { merchantId, id }: Payment): Promise<boolean> {
  const { rowCount } = await db.query('select 1 from payments where merchant_id = $1 and id = $2', [merchantId, id])
  return rowCount === 1
}

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
]

function answerValues({ payment, answer, transfers, announced, updates, leftToDo, recordedAt }: NewAnswer): unknown[] {
  const givesBack = payment.type === 'CP' && !answer.approved ? payment.rootId! : null
  return [
    payment.merchantId,
    payment.id,
    answer.result,
    answer.approved,
    JSON.stringify(answer.kept),
    answer.body,
    timeParameter(answer.answeredAt),
    payment.mode,
    payment.currency,
    payment.channelId,
    payment.rootId ?? payment.id,
    transfers.length === 0 ? null : JSON.stringify(transfers),
    announced,
    updates ? 'UPDATED' : null,
    givesBack,
    leftToDo?.kind ?? null,
    leftToDo === undefined ? null : timeParameter(leftToDo.dueAt),
    timeParameter(recordedAt),
  ]
}

const insertAnswers = perSize(
  size => `
  with given (merchant_id, payment_id, result, approved, reply, body, answered_at, mode, currency, channel_id, root_id, transfers,
              announced, action, gives_back, follow_up, follow_up_at, recorded_at) as (values ${valuesList(answerColumns, size)}),
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
  returned as (
    delete from captures using ours
     where captures.merchant_id = ours.merchant_id and captures.payment_id = ours.gives_back and captures.capture_id = ours.payment_id),
  left_to_do as (
    insert into due_work (kind, merchant_id, subject_id, due_at)
    select follow_up, merchant_id, payment_id, follow_up_at from ours where follow_up is not null
    ${askedAgain}),
  settled as (
    delete from unanswered using ours where unanswered.merchant_id = ours.merchant_id and unanswered.payment_id = ours.payment_id)
  select payment_id from answered`,
)

export function answerLane(pool: pg.Pool, clock: Clock): AnswerLane {
  return groupCommit<NewAnswer, boolean>({
    clock,
    patienceSeconds: writePatienceSeconds,
    key: ({ payment }) => payment.merchantId + payment.id,
    async write(rows) {
      const size = quantised(rows.length)
      const values = padded(rows.flatMap(answerValues), size * answerColumns.length)
      const stored = await pool.query<{ payment_id: string }>({ name: `answers ${size}`, text: insertAnswers(size), values })
      const ids = new Set(stored.rows.map(row => row.payment_id))
      return rows.map(({ payment }) => ids.has(payment.id))
    },
  })
}

/** Writes a capture, refund or reversal inside the transaction that holds the lock; false when its idempotency key is taken.
 * Only an allowed capture takes the guard row; a refused one is kept as the record of its refusal. */
export async function insertFollowUp(
  db: Connection,
  row: NewPayment,
  transfers: readonly Transfer[],
  allowed: boolean,
): Promise<boolean> {
  const stored = await db.query({ name: 'payments 1', text: insertPayments(1), values: paymentValues(row) })
  if (stored.rowCount !== 1) return false
  const { payment } = row
  if (payment.type === 'CP' && allowed) {
    await db.query('insert into captures (merchant_id, payment_id, capture_id) values ($1, $2, $3)', [
      payment.merchantId,
      payment.rootId,
      payment.id,
    ])
  }
  for (const { line, debit, credit, amount, state } of transfers) {
    await db.query(
      'insert into journal (merchant_id, payment_id, line, mode, currency, debit, credit, amount, state, booked_at) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)',
      [
        payment.merchantId,
        payment.id,
        line,
        payment.mode,
        payment.currency,
        debit,
        credit,
        amount,
        state,
        timeParameter(payment.receivedAt),
      ],
    )
  }
  return true
}

/** Writes an operation that is answered already, inside the transaction that holds the lock on the first payment. */
export async function insertAnswered(db: Connection, row: NewAnswer): Promise<void> {
  await insertFollowUp(db, { payment: row.payment }, [], true)
  await db.query({ name: 'answers 1', text: insertAnswers(1), values: answerValues(row) })
}

/** The pending state was answered: recovery is due, and the merchant hears of it in the words of the answer, which comes sealed. */
export async function insertPending(
  db: Connection,
  payment: Payment,
  answer: Buffer,
  recoverAt: number,
  now: number,
): Promise<void> {
  await db.query(
    `with waiting as (
       insert into due_work (kind, merchant_id, subject_id, due_at) values ('recover', $1, $2, $5)
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

const padded = (values: unknown[], length: number): unknown[] => {
  while (values.length < length) values.push(null)
  return values
}
