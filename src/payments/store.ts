// Payments, answers and what is written with them. First payments and all answers ride group commits; captures, refunds and
// reversals are written under a lock on the first payment of their chain.

import type pg from 'pg'
import type { Mode, OperationType } from '../connectors/connector.ts'
import type { ResultName } from '../contract/results/results.ts'
import { type Connection, timeParameter } from '../database/connect.ts'
import { type GroupCommit, groupCommit, perSize, quantised, valuesList } from '../database/groupCommit.ts'
import type { Transfer } from './journal.ts'
import type { Answer, Answered, Payment } from './payment.ts'

/** The idempotency row of a request. */
export type RequestKey = { readonly hash: Buffer; readonly fingerprint: Buffer }

export type NewPayment = {
  readonly payment: Payment
  readonly sealedCard?: { readonly sealed: Buffer; readonly eraseAfter: string }
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
  readonly followUp?: LeftToDo
  readonly recordedAt: number
}

/** Stores a first payment; false when its idempotency key is taken by another request. */
export type PaymentLane = GroupCommit<NewPayment, boolean>
/** Stores an answer with its journal lines and its event; false when the payment has an answer already. */
export type AnswerLane = GroupCommit<NewAnswer, boolean>

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
  ]
}

const insertPayments = perSize(
  size => `
  with given (merchant_id, id, channel_id, root_id, reference_id, payment_type, brand, amount, currency, mode, connector, merchant_transaction_id,
              received_at, recorded_at, record, sealed, erase_after, key_hash, fingerprint) as (values ${valuesList(paymentColumns, size)}),
  claimed as (
    insert into idempotency_keys (merchant_id, key_hash, fingerprint, payment_id, recorded_at)
    select merchant_id, key_hash, fingerprint, id, recorded_at from given where key_hash is not null
    on conflict do nothing returning payment_id),
  stored as (
    insert into payments (merchant_id, id, channel_id, root_id, reference_id, payment_type, brand, amount, currency, mode, connector,
                          merchant_transaction_id, received_at, recorded_at, record)
    select merchant_id, id, channel_id, root_id, reference_id, payment_type, brand, amount, currency, mode, connector,
           merchant_transaction_id, received_at, recorded_at, record
      from given where id is not null and (key_hash is null or id in (select payment_id from claimed))
    on conflict do nothing returning id),
  sealed as (
    insert into sealed_cards (merchant_id, payment_id, sealed, erase_after)
    select merchant_id, id, sealed, erase_after from given where sealed is not null and id in (select id from stored)
    on conflict do nothing)
  select id from stored`,
)

export function paymentLane(pool: pg.Pool): PaymentLane {
  return groupCommit<NewPayment, boolean>({
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

function answerValues({ payment, answer, transfers, announced, updates, followUp, recordedAt }: NewAnswer): unknown[] {
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
    followUp?.kind ?? null,
    followUp === undefined ? null : timeParameter(followUp.dueAt),
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
    on conflict do nothing returning payment_id),
  ours as (select given.* from given join answered using (payment_id)),
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
    on conflict do nothing)
  select payment_id from answered`,
)

export function answerLane(pool: pg.Pool): AnswerLane {
  return groupCommit<NewAnswer, boolean>({
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

export type Place = { readonly merchantId: string; readonly id: string }

/** The merchant that a payment belongs to: an acquirer's report does not name it. Each merchant's own index is asked. */
export async function findOwners(db: Connection, id: string): Promise<Place[]> {
  const { rows } = await db.query<Place>(
    `select p.merchant_id as "merchantId", p.id from entities m join payments p on p.merchant_id = m.id and p.id = $1
      where m.kind = 'merchant'`,
    [id],
  )
  return rows
}

/** Payments recorded within some time that an acquirer knows by a retrieval reference. Ids begin with the time: no index of references is needed. */
export async function findByRetrievalReference(
  db: Connection,
  acquirer: string,
  reference: string,
  from: number,
  to: number,
): Promise<Place[]> {
  const { rows } = await db.query<Place>(
    `select p.merchant_id as "merchantId", p.id
       from entities m
       join payments p on p.merchant_id = m.id and p.id >= $3 and p.id < $4
       join answers a on a.merchant_id = p.merchant_id and a.payment_id = p.id
      where m.kind = 'merchant' and a.reply::json ->> 'rrn' = $2 and a.reply::json ->> 'acquirer' = $1`,
    [acquirer, reference, idAt(Math.max(0, from - slackMilliseconds)), idAt(to + slackMilliseconds)],
  )
  return rows
}

/** Names a line of an acquirer's report. */
export type ChargebackLine = { readonly report: string; readonly line: number }

/** The payment that a line became when it was imported before. */
export async function findChargebackLine(
  db: Connection,
  merchantId: string,
  { report, line }: ChargebackLine,
): Promise<string | undefined> {
  const { rows } = await db.query<{ paymentId: string }>(
    'select payment_id as "paymentId" from chargeback_lines where merchant_id = $1 and report = $2 and line = $3',
    [merchantId, report, line],
  )
  return rows[0]?.paymentId
}

/** Writes a chargeback or its reversal with its answer, journal and event, inside the transaction that holds the lock on the first payment. */
export async function insertChargeback(db: Connection, row: NewAnswer, { report, line }: ChargebackLine): Promise<void> {
  const { merchantId, id } = row.payment
  await db.query('insert into chargeback_lines (merchant_id, report, line, payment_id) values ($1, $2, $3, $4)', [
    merchantId,
    report,
    line,
    id,
  ])
  await insertFollowUp(db, { payment: row.payment }, [], true)
  await db.query({ name: 'answers 1', text: insertAnswers(1), values: answerValues(row) })
}

/** The pending state was answered: recovery is due, and the merchant hears of it. */
export async function insertPending(db: Connection, payment: Payment, recoverAt: number, now: number): Promise<void> {
  await db.query(
    `with waiting as (
       insert into due_work (kind, merchant_id, subject_id, due_at) values ('recover', $1, $2, $5)
       on conflict (kind, merchant_id, subject_id) do update set due_at = least(due_work.due_at, excluded.due_at))
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

type Row = {
  merchantId: string
  id: string
  channelId: string
  rootId: string | null
  referenceId: string | null
  type: OperationType
  brand: string | null
  amount: number
  currency: string
  mode: Mode
  connector: string
  merchantTransactionId: string | null
  receivedAt: number
  recordedAt: number
  record: string
  result: ResultName | null
  approved: boolean
  kept: string
  body: string
  answeredAt: number
}

const answeredColumns = `
  p.merchant_id as "merchantId", p.id, p.channel_id as "channelId", p.root_id as "rootId", p.reference_id as "referenceId", p.payment_type as type,
  p.brand, p.amount, p.currency, p.mode, p.connector, p.merchant_transaction_id as "merchantTransactionId", p.received_at as "receivedAt",
  p.recorded_at as "recordedAt", p.record, a.result, a.approved, a.reply as kept, a.body, a.answered_at as "answeredAt"`
const answeredTables = 'payments p left join answers a on a.merchant_id = p.merchant_id and a.payment_id = p.id'

function answeredOf(row: Row): Answered {
  const { merchantId, id, channelId, type, amount, currency, mode, connector, receivedAt, recordedAt } = row
  return {
    merchantId,
    id,
    channelId,
    type,
    amount,
    currency,
    mode,
    connector,
    receivedAt,
    recordedAt,
    record: JSON.parse(row.record),
    ...(row.rootId !== null && { rootId: row.rootId }),
    ...(row.referenceId !== null && { referenceId: row.referenceId }),
    ...(row.brand !== null && { brand: row.brand }),
    ...(row.merchantTransactionId !== null && { merchantTransactionId: row.merchantTransactionId }),
    ...(row.result !== null && {
      answer: {
        result: row.result,
        approved: row.approved,
        kept: JSON.parse(row.kept),
        body: row.body,
        answeredAt: row.answeredAt,
      },
    }),
  }
}

export async function findPayment(db: Connection, merchantId: string, id: string): Promise<Answered | undefined> {
  const { rows } = await db.query<Row>({
    name: 'find payment',
    text: `select ${answeredColumns} from ${answeredTables} where p.merchant_id = $1 and p.id = $2`,
    values: [merchantId, id],
  })
  return rows[0] && answeredOf(rows[0])
}

/** Locks the first payment of a chain, so that one capture, refund or reversal at a time looks at it. Returns its id. */
export async function lockRoot(db: Connection, merchantId: string, id: string): Promise<string | undefined> {
  const { rows } = await db.query<{ root: string }>(
    'select coalesce(root_id, id) as root from payments where merchant_id = $1 and id = $2',
    [merchantId, id],
  )
  if (!rows[0]) return undefined
  await db.query('select 1 from payments where merchant_id = $1 and id = $2 for update', [merchantId, rows[0].root])
  return rows[0].root
}

/** The first payment of a chain and all that refer to it, oldest first. */
export async function findChain(db: Connection, merchantId: string, rootId: string): Promise<Answered[]> {
  const { rows } = await db.query<Row>({
    name: 'find chain',
    text: `select ${answeredColumns} from ${answeredTables} where p.merchant_id = $1 and (p.id = $2 or p.root_id = $2) order by p.recorded_at, p.id`,
    values: [merchantId, rootId],
  })
  return rows.map(answeredOf)
}

export async function findByTransaction(
  db: Connection,
  merchantId: string,
  merchantTransactionId: string,
  limit: number,
  skip: number,
): Promise<Answered[]> {
  const { rows } = await db.query<Row>(
    `select ${answeredColumns} from ${answeredTables} where p.merchant_id = $1 and p.merchant_transaction_id = $2
      order by p.recorded_at desc, p.id desc limit $3 offset $4`,
    [merchantId, merchantTransactionId, limit, skip],
  )
  return rows.map(answeredOf)
}

export type Search = {
  readonly merchantId: string
  readonly channelId?: string
  readonly merchantTransactionId?: string
  readonly types?: readonly string[]
  readonly brands?: readonly string[]
  /** Business time, milliseconds: from inclusive, to exclusive. */
  readonly from?: number
  readonly to?: number
}

const searched = `
  p.merchant_id = $1 and ($2::uuid is null or p.channel_id = $2) and ($3::text is null or p.merchant_transaction_id = $3)
  and ($4::text[] is null or p.payment_type = any ($4)) and ($5::timestamptz is null or p.received_at >= $5) and ($6::timestamptz is null or p.received_at < $6)
  and ($7::text[] is null or p.brand = any ($7))`

const searchValues = ({ merchantId, channelId, merchantTransactionId, types, brands, from, to }: Search) => [
  merchantId,
  channelId ?? null,
  merchantTransactionId ?? null,
  types ?? null,
  from === undefined ? null : timeParameter(from),
  to === undefined ? null : timeParameter(to),
  brands ?? null,
]

export async function searchPayments(db: Connection, search: Search, limit: number, skip: number): Promise<Answered[]> {
  const { rows } = await db.query<Row>(
    `select ${answeredColumns} from ${answeredTables} where ${searched} order by p.received_at, p.id limit $8 offset $9`,
    [...searchValues(search), limit, skip],
  )
  return rows.map(answeredOf)
}

export async function countPayments(db: Connection, search: Search): Promise<number> {
  const { rows } = await db.query<{ count: number }>(`select count(*) from payments p where ${searched}`, searchValues(search))
  return rows[0]!.count
}

export async function findSealedCard(db: Connection, merchantId: string, paymentId: string): Promise<Buffer | undefined> {
  const { rows } = await db.query<{ sealed: Buffer }>(
    'select sealed from sealed_cards where merchant_id = $1 and payment_id = $2',
    [merchantId, paymentId],
  )
  return rows[0]?.sealed
}

/** Erases sealed cards whose last day is over. */
export const eraseCards = (db: Connection, now: number): Promise<number> =>
  eraseInSteps(db, 'delete from sealed_cards where ctid in (select ctid from sealed_cards where erase_after < $1 limit $2)', now)

/** Erases idempotency keys recorded before a moment. */
export const eraseKeys = (db: Connection, before: number): Promise<number> =>
  eraseInSteps(
    db,
    'delete from idempotency_keys where ctid in (select ctid from idempotency_keys where recorded_at < $1 limit $2)',
    before,
  )

/** Erases the addresses that were handed to shoppers before a moment. */
export const eraseRedirects = (db: Connection, before: number): Promise<number> =>
  eraseInSteps(db, 'delete from redirects where ctid in (select ctid from redirects where made_at < $1 limit $2)', before)

/** Small steps, so that no statement holds many rows. */
async function eraseInSteps(db: Connection, statement: string, before: number): Promise<number> {
  const step = 1000
  let erased = 0
  for (let more = true; more; ) {
    const { rowCount } = await db.query(statement, [timeParameter(before), step])
    erased += rowCount ?? 0
    more = rowCount === step
  }
  return erased
}

export type KeyOwner = { readonly paymentId: string; readonly fingerprint: Buffer }

export async function findKeyOwner(db: Connection, merchantId: string, hash: Buffer): Promise<KeyOwner | undefined> {
  const { rows } = await db.query<{ paymentId: string; fingerprint: Buffer }>({
    name: 'find key',
    text: 'select payment_id as "paymentId", fingerprint from idempotency_keys where merchant_id = $1 and key_hash = $2',
    values: [merchantId, hash],
  })
  return rows[0]
}

/** Hands every unanswered payment recorded before a moment to recovery, and remembers how far it came. Returns how many. */
export async function sweepUnanswered(db: Connection, before: number, dueAt: number): Promise<number> {
  const sweep = await db.query<{ reached: number }>(`select reached_at as reached from sweeps where name = 'unanswered'`)
  const reached = sweep.rows[0]?.reached ?? 0
  const { rows } = await db.query<{ found: number }>(
    `with found as (
       insert into due_work (kind, merchant_id, subject_id, due_at)
       select 'recover', p.merchant_id, p.id, $1
         from entities m
         cross join lateral (
           select p.merchant_id, p.id from payments p
            where p.merchant_id = m.id and p.id >= $2 and p.id < $3
              and not exists (select from answers a where a.merchant_id = p.merchant_id and a.payment_id = p.id)
              and not exists (select from continuations c where c.merchant_id = p.merchant_id and c.payment_id = p.id)) p
        where m.kind = 'merchant'
       on conflict do nothing returning 1)
     select count(*) as found from found`,
    [timeParameter(dueAt), idAt(Math.max(0, reached - slackMilliseconds)), idAt(before)],
  )
  await db.query(
    `insert into sweeps (name, reached_at) values ('unanswered', $1)
     on conflict (name) do update set reached_at = greatest(sweeps.reached_at, excluded.reached_at)`,
    [timeParameter(before)],
  )
  return rows[0]!.found
}

// A row is committed a little after the time in its id.
const slackMilliseconds = 10_000

/** The smallest id that a payment recorded at a time can have: ids begin with the milliseconds. */
const idAt = (milliseconds: number): string => milliseconds.toString(16).padStart(12, '0').padEnd(32, '0')

const padded = (values: unknown[], length: number): unknown[] => {
  while (values.length < length) values.push(null)
  return values
}

/** A journal line as it is stored. */
export type JournalLine = Transfer & {
  readonly merchantId: string
  readonly paymentId: string
  readonly mode: Mode
  readonly currency: string
}

/** First payments after a place in their order, a page at a time. */
export async function findRootsAfter(db: Connection, merchantId: string, id: string, limit: number): Promise<Answered[]> {
  const { rows } = await db.query<Row>(
    `select ${answeredColumns} from ${answeredTables} where p.root_id is null and (p.merchant_id, p.id) > ($1, $2)
      order by p.merchant_id, p.id limit $3`,
    [merchantId, id, limit],
  )
  return rows.map(answeredOf)
}

/** What refers to some first payments of one merchant. */
export async function findFollowersOf(db: Connection, merchantId: string, roots: readonly string[]): Promise<Answered[]> {
  const { rows } = await db.query<Row>(
    `select ${answeredColumns} from ${answeredTables} where p.merchant_id = $1 and p.root_id = any ($2) order by p.recorded_at, p.id`,
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
export async function countStray(db: Connection): Promise<Record<'answers' | 'journal' | 'events', number>> {
  const { rows } = await db.query<Record<'answers' | 'journal' | 'events', number>>(
    `select
       (select count(*) from answers a where not exists (select from payments p where p.merchant_id = a.merchant_id and p.id = a.payment_id)) as answers,
       (select count(*) from journal j where not exists (select from payments p where p.merchant_id = j.merchant_id and p.id = j.payment_id)) as journal,
       (select count(*) from answers a where a.approved and not exists (
          select from events e where e.merchant_id = a.merchant_id and e.payment_id = a.payment_id and e.sequence = 2)) as events`,
  )
  return rows[0]!
}
