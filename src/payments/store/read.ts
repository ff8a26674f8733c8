// What is read: a payment with its answer, a chain under its lock.

import type { ConnectorState, Mode, OperationType, PreparedStates } from '../../connectors/connector.ts'
import type { ResultName } from '../../contract/results/results.ts'
import { idAt, isId } from '../../platform/clock.ts'
import type { Connection } from '../../platform/database/connect.ts'
import type { PaymentState } from '../payment.ts'

export type PaymentRow = {
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
  tokenId: string | null
  receivedAt: number
  recordedAt: number
  record: string
  result: ResultName | null
  approved: boolean
  kept: string
  body: string
  answeredAt: number
}

export const answeredColumns = `
  p.merchant_id as "merchantId", p.id, p.channel_id as "channelId", p.root_id as "rootId", p.reference_id as "referenceId", p.payment_type as type,
  p.brand, p.amount, p.currency, p.mode, p.connector, p.merchant_transaction_id as "merchantTransactionId", p.token_id as "tokenId", p.received_at as "receivedAt",
  p.recorded_at as "recordedAt", p.record, a.result, a.approved, a.reply as kept, a.body, a.answered_at as "answeredAt"`
/** The same for whoever needs no text of an answer. */
export const standingColumns = answeredColumns.replace('a.body', "'' as body")
export const answeredTables = 'payments p left join answers a on a.merchant_id = p.merchant_id and a.payment_id = p.id'

export function answeredOf(row: PaymentRow): PaymentState {
  const { merchantId, id, channelId, type, currency, mode, connector, receivedAt, recordedAt } = row
  const kept: ConnectorState = row.kept === null ? {} : storedJson(id, 'kept', row.kept)
  return {
    merchantId,
    id,
    channelId,
    type,
    // Of a payment approved in part only that part stands.
    amount: kept.approvedAmount === undefined ? row.amount : Number(kept.approvedAmount),
    currency,
    mode,
    connector,
    receivedAt,
    recordedAt,
    record: storedJson(id, 'record', row.record),
    bytes: row.record.length + (row.body?.length ?? 0),
    ...(row.rootId !== null && { rootId: row.rootId }),
    ...(row.referenceId !== null && { referenceId: row.referenceId }),
    ...(row.brand !== null && { brand: row.brand }),
    ...(row.merchantTransactionId !== null && { merchantTransactionId: row.merchantTransactionId }),
    ...(row.tokenId !== null && { tokenId: row.tokenId }),
    ...(row.result !== null && {
      answer: {
        result: row.result,
        approved: row.approved,
        kept,
        body: row.body,
        answeredAt: row.answeredAt,
      },
    }),
  }
}

/** What stands there of a payment was written by no gateway. */
export class UnreadableRow extends Error {}

/** The words of a parse error would repeat what stands there. */
export function storedJson(id: string, column: 'kept' | 'record' | 'body', text: string) {
  try {
    const json = JSON.parse(text)
    if (typeof json === 'object' && json !== null) return json
  } catch {}
  throw new UnreadableRow(`the ${column} of the payment ${isId(id) ? id : 'without an id'} is no JSON object`)
}

export async function findPayment(db: Connection, merchantId: string, id: string): Promise<PaymentState | undefined> {
  const { rows } = await db.query<PaymentRow>({
    name: 'find payment',
    text: `select ${answeredColumns} from ${answeredTables} where p.merchant_id = $1 and p.id = $2`,
    values: [merchantId, id],
  })
  return rows[0] && answeredOf(rows[0])
}

/** The payment that had this on disk before its message left, at `madeAt` (milliseconds) or less than a second later. */
export async function findPrepared(
  db: Connection,
  merchantIds: readonly string[],
  prepared: PreparedStates[number],
  madeAt: number,
): Promise<PaymentState | undefined> {
  const { rows } = await db.query<PaymentRow>(
    `select ${answeredColumns} from ${answeredTables}
      where p.merchant_id = any ($1) and p.id between $2 and $3 and p.record::jsonb -> 'prepared' @> $4::jsonb limit 1`,
    [merchantIds, idAt(madeAt - preparedWithin), idAt(madeAt + 1000 + preparedWithin), JSON.stringify([prepared])],
  )
  return rows[0] && answeredOf(rows[0])
}

/** Milliseconds between the id of a payment and what its connector prepares for it. */
const preparedWithin = 1000

/** The first payment of the chain that a payment belongs to: the same for ever. */
export async function findRoot(db: Connection, merchantId: string, id: string): Promise<string | undefined> {
  const { rows } = await db.query<{ root: string }>({
    name: 'find root',
    text: 'select coalesce(root_id, id) as root from payments where merchant_id = $1 and id = $2',
    values: [merchantId, id],
  })
  return rows[0]?.root
}

/** Locks the first payment of a chain, so that one capture, refund or reversal at a time looks at it; the chain as it is then. */
export async function holdChain(db: Connection, merchantId: string, rootId: string): Promise<PaymentState[]> {
  const lock = {
    name: 'lock root',
    text: 'select 1 from payments where merchant_id = $1 and id = $2 for update',
    values: [merchantId, rootId],
  }
  // The second statement begins, and looks, when the first one has the lock.
  const [, chain] = await Promise.all([db.query(lock), findChain(db, merchantId, rootId)])
  return chain
}

/** The first payment of a chain and all that refer to it, oldest first. */
export async function findChain(db: Connection, merchantId: string, rootId: string): Promise<PaymentState[]> {
  const { rows } = await db.query<PaymentRow>({
    name: 'find chain',
    text: `select ${answeredColumns} from ${answeredTables} where p.merchant_id = $1 and (p.id = $2 or p.root_id = $2) order by p.recorded_at, p.id`,
    values: [merchantId, rootId],
  })
  return rows.map(answeredOf)
}

type Carrier = { readonly connector: string; readonly brand?: string; readonly record: { readonly prepared?: PreparedStates } }

/** By what payments are carried, by their ids. */
export async function findCarriers(
  db: Connection,
  subjects: readonly { readonly merchantId: string; readonly subjectId: string }[],
): Promise<ReadonlyMap<string, Carrier>> {
  const { rows } = await db.query<{ id: string; connector: string; brand: string | null; prepared: PreparedStates | null }>(
    `select p.id, p.connector, p.brand, p.record::jsonb -> 'prepared' as prepared from unnest($1::uuid[], $2::uuid[]) as one (merchant_id, id)
       join payments p on p.merchant_id = one.merchant_id and p.id = one.id`,
    [subjects.map(({ merchantId }) => merchantId), subjects.map(({ subjectId }) => subjectId)],
  )
  return new Map(
    rows.map(({ id, connector, brand, prepared }) => [
      id,
      { connector, ...(brand !== null && { brand }), record: { ...(prepared !== null && { prepared }) } },
    ]),
  )
}
