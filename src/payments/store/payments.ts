// Payments as they are written: first ones ride a group commit; captures, refunds and reversals are written inside the transaction that holds the lock on
// the first payment of their chain.

import type pg from 'pg'
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
import { putCards } from '../../vault/cardStore.ts'
import type { SealedCard } from '../../vault/cards.ts'
import type { Transfer } from '../ledger/journal.ts'
import type { Payment } from '../payment.ts'
import { claimsOf, dropLost, type RequestKey } from './keys.ts'
import type { NewRegistration } from './registrations.ts'

export type NewPayment = {
  readonly payment: Payment
  readonly sealedCard?: SealedCard
  readonly key?: RequestKey
  /** Made with it; it has a statement of its own. */
  readonly registration?: NewRegistration
}

/** Stores a first payment; false when its idempotency key is taken by another request. */
export type PaymentLane = GroupCommit<NewPayment, boolean>
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
  'bytea[]',
  'bytea[]',
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
    storableJson(payment.record),
    sealedCard?.sealed ?? null,
    sealedCard?.eraseAfter ?? null,
    key ? claimsOf(key).map(({ hash }) => hash) : null,
    key ? claimsOf(key).map(({ fingerprint }) => fingerprint) : null,
    payment.tokenId ?? null,
  ]
}

const paymentsText = (size: number, followUp: string): string => `
  with given (merchant_id, id, channel_id, root_id, reference_id, payment_type, brand, amount, currency, mode, connector, merchant_transaction_id,
              received_at, recorded_at, record, sealed, erase_after, key_hashes, fingerprints, token_id) as (values ${valuesList(paymentColumns, size)}),
  claimed as (
    insert into idempotency_keys (merchant_id, key_hash, fingerprint, payment_id, recorded_at)
    select given.merchant_id, claim.hash, claim.fingerprint, given.id, given.recorded_at
      from given cross join lateral unnest(key_hashes, fingerprints) as claim (hash, fingerprint)
     where cardinality(key_hashes) = 1 or not exists (
       select from idempotency_keys k where k.merchant_id = given.merchant_id and k.key_hash = any (key_hashes))
     order by given.merchant_id, claim.hash -- the order in which every process takes them
    on conflict do nothing returning payment_id),
  owned as (
    select given.id from given left join (select payment_id, count(*) as rows from claimed group by payment_id) mine on mine.payment_id = given.id
     where coalesce(mine.rows, 0) = coalesce(cardinality(key_hashes), 0)),
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
${followUp}
  select id from stored`

/** Two statements, because planning what only a follow-up has costs every payment. */
const insertPayments = perSize(size => paymentsText(size, ''))
const followUpText = `
  , guarded as (
    insert into captures (merchant_id, payment_id, capture_id)
    select merchant_id, root_id, id from given where $${paymentColumns.length + 1}::boolean and id in (select id from stored)),
  reserved as (
    insert into journal (merchant_id, payment_id, line, mode, currency, debit, credit, amount, state, booked_at)
    select merchant_id, id, line, mode, currency, debit, credit, transfer.amount, state, received_at
      from given, jsonb_to_recordset($${paymentColumns.length + 2}::jsonb) as transfer (line smallint, debit text, credit text, amount bigint, state text)
     where id in (select id from stored))`
const insertFollowUps = paymentsText(1, followUpText)

export function paymentLane(pool: pg.Pool, clock: Clock, count?: BatchCount): PaymentLane {
  const lane = groupCommit<{ readonly row: NewPayment; readonly values: readonly unknown[] }, boolean>({
    clock,
    ...(count && { count }),
    patienceSeconds: writePatienceSeconds,
    key: ({ row: { payment, key } }) => payment.merchantId + (key ? key.named[0]!.hash.toString('hex') : payment.id),
    owner: ({ row }) => row.payment.merchantId,
    bytes: ({ values }) => textBytes(values),
    async write(given) {
      const rows = given.map(({ row }) => row)
      const size = quantised(rows.length)
      const values = padded(
        given.flatMap(({ values }) => values),
        size * paymentColumns.length,
      )
      const stored = await pool.query<{ id: string }>({ name: `payments ${size}`, text: insertPayments(size), values })
      const ids = new Set(stored.rows.map(({ id }) => id))
      await dropLost(
        pool,
        rows.filter(({ payment }) => !ids.has(payment.id)),
      )
      return Promise.all(
        rows.map(async ({ payment, key }) => ids.has(payment.id) || (key === undefined && (await isStored(pool, payment)))),
      )
    },
  })
  return row => lane({ row, values: paymentValues(row) })
}

/** After a lost connection a batch is written again: a row that is there already is our own. */
async function isStored(db: Connection, { merchantId, id }: Payment): Promise<boolean> {
  const { rowCount } = await db.query('select 1 from payments where merchant_id = $1 and id = $2', [merchantId, id])
  return rowCount === 1
}

/** Writes a first payment inside a transaction that holds a lock of its own. */
export async function insertClaimed(db: Connection, row: NewPayment): Promise<void> {
  await db.query({ name: 'payments 1', text: insertPayments(1), values: paymentValues(row) })
}

/** Writes a capture, refund or reversal inside the transaction that holds the lock; false when its idempotency key is taken.
 * Only an allowed capture takes the guard row; a refused one is kept as the record of its refusal. */
export async function insertFollowUp(
  db: Connection,
  row: NewPayment,
  transfers: readonly Transfer[],
  allowed: boolean,
): Promise<boolean> {
  const { payment } = row
  const guards = payment.type === 'CP' && allowed
  const { rowCount } = await db.query({
    name: 'follow-up',
    text: insertFollowUps,
    values: [...paymentValues(row), guards, JSON.stringify(transfers)],
  })
  if (rowCount === 0) await dropLost(db, [row])
  return rowCount === 1
}
