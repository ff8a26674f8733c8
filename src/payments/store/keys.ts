// Idempotency keys in the database: each is a row for each of its hashes, written in the transaction of what it was for.

import { type Connection, timeParameter } from '../../platform/database/connect.ts'

/** One hash of a key, and of the body that came with it. */
export type KeyClaim = { readonly hash: Buffer; readonly fingerprint: Buffer }

/**
 * What a request claims. Under each lookup key, the newest first: while that is changed a twin whose process knows only one of the two meets it all the same.
 * `named`: by the entity that the request names, so that a twin is known wherever rules would send it by now. `ruled`: also by the channel that the rules chose,
 * where they did. A gateway of an older release claims that alone; and what is sent again naming that channel is no other order.
 */
export type RequestKey = { readonly named: readonly KeyClaim[]; readonly ruled: readonly KeyClaim[] }

export const claimsOf = ({ named, ruled }: RequestKey): readonly KeyClaim[] => [...named, ...ruled]

/** The id that what is no payment has by its key: of a gateway of an older release, which claims none, its twin makes none. */
export const idOf = ({ hash }: KeyClaim): string => hash.toString('hex', 0, 16)

export type KeyOwner = {
  readonly subjectId: string
  readonly hash: Buffer
  readonly fingerprint: Buffer
  /** It is a payment that is stored. For a moment a row may be of one that lost another row of its key, and was not. */
  readonly paid: boolean
}

/** Whose a key is. What is stored comes first, then the entity that was named: another caller may have the same key on the channel. */
export async function findKeyOwner(db: Connection, merchantId: string, key: RequestKey): Promise<KeyOwner | undefined> {
  const { rows } = await db.query<KeyOwner>({
    name: 'find key',
    text: `select payment_id as "subjectId", key_hash as hash, fingerprint, p.id is not null as paid
             from idempotency_keys k left join payments p on p.merchant_id = k.merchant_id and p.id = k.payment_id
            where k.merchant_id = $1 and key_hash = any ($2) order by paid desc, array_position($2::bytea[], key_hash) limit 1`,
    values: [merchantId, claimsOf(key).map(({ hash }) => hash)],
  })
  return rows[0]
}

/** Inside the transaction that stores what the key is for; `merchantId` is its owner. False when it is another's: then nothing of it is claimed. */
export async function claimKey(
  db: Connection,
  merchantId: string,
  subjectId: string,
  key: RequestKey,
  recordedAt: number,
): Promise<boolean> {
  const claims = claimsOf(key)
  const { rows } = await db.query<{ hash: Buffer }>(
    `insert into idempotency_keys (merchant_id, key_hash, fingerprint, payment_id, recorded_at)
     select $1, hash, fingerprint, $4, $5 from unnest($2::bytea[], $3::bytea[]) as claim (hash, fingerprint)
      order by hash -- the order in which every process takes them
     on conflict do nothing returning key_hash as hash`,
    [
      merchantId,
      claims.map(({ hash }) => hash),
      claims.map(({ fingerprint }) => fingerprint),
      subjectId,
      timeParameter(recordedAt),
    ],
  )
  if (rows.length === claims.length) return true
  await db.query('delete from idempotency_keys where merchant_id = $1 and key_hash = any ($2)', [
    merchantId,
    rows.map(({ hash }) => hash),
  ])
  return false
}

/** A request for a payment, and the key that it came with. */
export type ClaimingPayment = {
  readonly payment: { readonly merchantId: string; readonly id: string }
  readonly key?: RequestKey
}

/**
 * What was claimed in the moment in which a twin claimed the rest: whoever lost leaves nothing, least of all on a channel where the key may be another caller's. All
 * are taken in one order, or two processes would wait for each other; so some may be there before one is lost.
 */
export async function dropLost(db: Connection, lost: readonly ClaimingPayment[]): Promise<void> {
  const parts = lost.flatMap(({ payment, key }) => {
    const claims = key ? claimsOf(key) : []
    return claims.length > 1 ? claims.map(({ hash }) => ({ ...payment, hash })) : []
  })
  if (parts.length === 0) return
  await db.query({
    name: 'drop lost keys',
    text: `delete from idempotency_keys k using unnest($1::uuid[], $2::bytea[], $3::uuid[]) as lost (merchant_id, key_hash, payment_id)
            where k.merchant_id = lost.merchant_id and k.key_hash = lost.key_hash and k.payment_id = lost.payment_id
              and not exists (select from payments p where p.merchant_id = lost.merchant_id and p.id = lost.payment_id)`,
    values: [parts.map(({ merchantId }) => merchantId), parts.map(({ hash }) => hash), parts.map(({ id }) => id)],
  })
}
