// Registrations in the database, as they are read and ended. An owner is a merchant, or a division whose merchants may all use what it has.

import type { Mode } from '../connectors/connector.ts'
import { sequences } from '../payments/store/registrations.ts'
import { type Connection, timeParameter } from '../platform/database/connect.ts'

export type Registration = {
  readonly ownerId: string
  readonly id: string
  readonly channelId: string
  readonly paymentId: string | null
  /** The payment that it was made with was approved, or there was none. */
  readonly usable: boolean
  readonly mode: Mode
  readonly brand: string
  /** JSON. */
  readonly record: string
  readonly networkTransactionId: string | null
  readonly keyFingerprint: Buffer | null
  /** Business time, milliseconds. */
  readonly madeAt: number
  readonly deletedAt: number | null
}

const columns = `owner_id as "ownerId", id, channel_id as "channelId", payment_id as "paymentId", usable, mode, brand, record,
  network_transaction_id as "networkTransactionId", key_fingerprint as "keyFingerprint", made_at as "madeAt", deleted_at as "deletedAt"`

/** Of several owners at once; an owner has an id at most once. */
export async function findRegistrations(
  db: Connection,
  ownerIds: readonly string[],
  ids: readonly string[],
): Promise<Registration[]> {
  const { rows } = await db.query<Registration>(
    `select ${columns} from registrations where owner_id = any ($1::uuid[]) and id = any ($2::uuid[])`,
    [ownerIds, ids],
  )
  return rows
}

/** Ends a registration and announces it to these merchants; false when it was not there to be ended. */
export async function endRegistration(
  db: Connection,
  { ownerId, id }: Pick<Registration, 'ownerId' | 'id'>,
  merchantIds: readonly string[],
  now: number,
  recordedAt: number,
): Promise<boolean> {
  const { rowCount } = await db.query(
    `with ended as (
       update registrations set deleted_at = $4 where owner_id = $1 and id = $2 and deleted_at is null and usable returning id, channel_id),
     announced as (
       insert into events (merchant_id, payment_id, sequence, type, action, channel_id, root_id, occurred_at, recorded_at)
       select merchant, id, ${sequences.DELETED}, 'REGISTRATION', 'DELETED', channel_id, id, $4, $5 from ended, unnest($3::uuid[]) as told (merchant))
     select id from ended`,
    [ownerId, id, merchantIds, timeParameter(now), timeParameter(recordedAt)],
  )
  return rowCount === 1
}
